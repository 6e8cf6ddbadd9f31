//! The numbers of errors, and what the last one of a thread was about.

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tt_shm_writer::{BatchError, OpenError, RecordError};

/// Success.
pub const TT_SHM_OK: i32 = 0;
/// A free or name of something that is not live. Nothing changed.
pub const TT_SHM_ERR_UNMATCHED_FREE: i32 = 1;
/// An allocation of something that is live. Nothing changed.
pub const TT_SHM_ERR_DOUBLE_ALLOC: i32 = 2;
/// A free with a different size than was requested. The allocation is freed.
pub const TT_SHM_ERR_SIZE_MISMATCH: i32 = 3;
/// The device is not registered with this tracker.
pub const TT_SHM_ERR_UNKNOWN_DEVICE: i32 = 4;
/// More devices than a segment lists.
pub const TT_SHM_ERR_DEVICE_LIST_FULL: i32 = 5;
/// No room in /dev/shm for the counters of another device.
pub const TT_SHM_ERR_NO_ROOM: i32 = 6;
/// More names, or more bytes of names, than a segment holds.
pub const TT_SHM_ERR_NAMES_FULL: i32 = 7;
/// A size that no device can hold.
pub const TT_SHM_ERR_SIZE_OUT_OF_RANGE: i32 = 8;
/// A dispatch of a program that has neither kernels nor circular buffers.
pub const TT_SHM_ERR_UNKNOWN_PROGRAM: i32 = 9;
/// The lane is out of range.
pub const TT_SHM_ERR_LANE_OUT_OF_RANGE: i32 = 10;
/// This forked process could not create a segment of its own.
pub const TT_SHM_ERR_FORKED_WITHOUT_SEGMENT: i32 = 11;
/// The call would have had to wait, and was made with a handle that does not. Nothing changed.
pub const TT_SHM_ERR_BUSY: i32 = 12;

/// The namespace is not valid.
pub const TT_SHM_ERR_OPEN_NAMESPACE: i32 = 32;
/// A setting is out of range.
pub const TT_SHM_ERR_OPEN_SETTING: i32 = 33;
/// The process may not create files of the required size.
pub const TT_SHM_ERR_OPEN_LIMIT: i32 = 34;
/// The segment's file could not be created.
pub const TT_SHM_ERR_OPEN_CREATE: i32 = 35;
/// The segment's file could not be mapped.
pub const TT_SHM_ERR_OPEN_MAP: i32 = 36;
/// There is no room in /dev/shm for a segment.
pub const TT_SHM_ERR_OPEN_NO_ROOM: i32 = 37;
/// The kernel is too old: Linux 5.14 is needed.
pub const TT_SHM_ERR_OPEN_OLD_KERNEL: i32 = 38;
/// The segment could not be linked under its name.
pub const TT_SHM_ERR_OPEN_PUBLISH: i32 = 39;

/// The file does not exist: its process may have ended, or no aggregator runs.
pub const TT_SHM_ERR_NOT_FOUND: i32 = 64;
/// The file may not be read by this user.
pub const TT_SHM_ERR_NOT_PERMITTED: i32 = 65;
/// The file is not a segment or table, or not an honest one.
pub const TT_SHM_ERR_REFUSED: i32 = 66;
/// The file has a layout that this version does not know.
pub const TT_SHM_ERR_LAYOUT: i32 = 67;
/// The process was faster than its reader in every attempt: try again.
pub const TT_SHM_ERR_READ_BUSY: i32 = 68;
/// The segment has figures that no honest process can have.
pub const TT_SHM_ERR_BROKEN: i32 = 69;
/// A system call failed.
pub const TT_SHM_ERR_IO: i32 = 70;

/// A pointer that must not be null is.
pub const TT_SHM_ERR_NULL: i32 = 128;
/// The handle was closed, is one of another kind, or never was one.
pub const TT_SHM_ERR_HANDLE: i32 = 129;
/// The `size` at the beginning of a struct is impossible, or the struct is that of a newer header and uses what this
/// version does not have.
pub const TT_SHM_ERR_SIZE: i32 = 130;
/// A text that must be UTF-8 is not.
pub const TT_SHM_ERR_UTF8: i32 = 131;
/// An error in this library. Nothing more can be said of the call.
pub const TT_SHM_ERR_PANIC: i32 = 132;
/// An argument has a value that there is not, such as a type that is not defined.
pub const TT_SHM_ERR_VALUE: i32 = 133;
/// A pointer is not aligned for its type.
pub const TT_SHM_ERR_ALIGNMENT: i32 = 134;
/// Too many handles are open.
pub const TT_SHM_ERR_TOO_MANY: i32 = 135;
/// Another thread is using the handle, which is for one at a time.
pub const TT_SHM_ERR_IN_USE: i32 = 136;
/// The call does not fit what the handle is in the middle of: a span has ended, or has not.
pub const TT_SHM_ERR_STATE: i32 = 137;
/// The tracker is exclusive, and does not belong to the calling thread.
pub const TT_SHM_ERR_THREAD: i32 = 138;

/// What a code means, whatever it was about.
fn meaning(code: i32) -> &'static CStr {
    match code {
        TT_SHM_OK => c"success",
        TT_SHM_ERR_UNMATCHED_FREE => c"freed or named what is not live",
        TT_SHM_ERR_DOUBLE_ALLOC => c"allocated what is live",
        TT_SHM_ERR_SIZE_MISMATCH => c"freed with another size than was requested",
        TT_SHM_ERR_UNKNOWN_DEVICE => c"the device is not registered",
        TT_SHM_ERR_DEVICE_LIST_FULL => c"more devices than a segment lists",
        TT_SHM_ERR_NO_ROOM => c"no room in /dev/shm for the counters of another device",
        TT_SHM_ERR_NAMES_FULL => c"no room for another name",
        TT_SHM_ERR_SIZE_OUT_OF_RANGE => c"more bytes than a device can hold",
        TT_SHM_ERR_UNKNOWN_PROGRAM => c"the program has nothing loaded",
        TT_SHM_ERR_LANE_OUT_OF_RANGE => c"the lane is out of range",
        TT_SHM_ERR_FORKED_WITHOUT_SEGMENT => c"this forked process has no segment of its own",
        TT_SHM_ERR_BUSY => c"the tracker is in use, and the call does not wait",
        TT_SHM_ERR_OPEN_NAMESPACE => c"the namespace is not valid",
        TT_SHM_ERR_OPEN_SETTING => c"a setting is out of range",
        TT_SHM_ERR_OPEN_LIMIT => c"the process may not create files of the required size",
        TT_SHM_ERR_OPEN_CREATE => c"cannot create a segment",
        TT_SHM_ERR_OPEN_MAP => c"cannot map a segment",
        TT_SHM_ERR_OPEN_NO_ROOM => c"no room in /dev/shm for a segment",
        TT_SHM_ERR_OPEN_OLD_KERNEL => c"Linux 5.14 or newer is needed",
        TT_SHM_ERR_OPEN_PUBLISH => c"cannot publish a segment",
        TT_SHM_ERR_NOT_FOUND => c"no such segment or table",
        TT_SHM_ERR_NOT_PERMITTED => c"not permitted to read it",
        TT_SHM_ERR_REFUSED => c"not a segment or table, or not an honest one",
        TT_SHM_ERR_LAYOUT => c"a layout that this version does not know",
        TT_SHM_ERR_READ_BUSY => c"the process is too fast to be read: try again",
        TT_SHM_ERR_BROKEN => c"the figures are impossible",
        TT_SHM_ERR_IO => c"a system call failed",
        TT_SHM_ERR_NULL => c"a pointer is null",
        TT_SHM_ERR_HANDLE => c"the handle is closed, or none of this kind",
        TT_SHM_ERR_SIZE => c"the size of a struct is impossible, or it uses what this version does not have",
        TT_SHM_ERR_UTF8 => c"a text is not UTF-8",
        TT_SHM_ERR_PANIC => c"an error in this library",
        TT_SHM_ERR_VALUE => c"an argument has a value that there is not",
        TT_SHM_ERR_ALIGNMENT => c"a pointer is not aligned",
        TT_SHM_ERR_TOO_MANY => c"too many handles are open",
        TT_SHM_ERR_IN_USE => c"another thread is using the handle",
        TT_SHM_ERR_THREAD => c"the tracker is exclusive, and does not belong to this thread",
        TT_SHM_ERR_STATE => c"the call does not fit the state of the handle",
        _ => c"unknown error code",
    }
}

/// Bytes of a text, with its end. Longer ones are cut.
const TEXT: usize = 512;

thread_local! {
    // Neither has a destructor: both can be used by whatever runs while a thread or the process ends.
    static LAST_TEXT: Cell<[u8; TEXT]> = const { Cell::new([0; TEXT]) };
    static LAST_ERRNO: Cell<i32> = const { Cell::new(0) };
}

/// An error whose text and errno are kept for the thread: only its number is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(i32);

/// What a call results in.
pub(crate) type Done<T = ()> = Result<T, Failure>;

impl Failure {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(code: i32, errno: Option<i32>, text: fmt::Arguments<'_>) -> Failure {
        let mut buffer = Buffer { bytes: [0; TEXT], len: 0 };
        // Never fails: it cuts.
        let _ = buffer.write_fmt(text);
        LAST_TEXT.with(|last| last.set(buffer.bytes));
        LAST_ERRNO.with(|last| last.set(errno.unwrap_or(0)));
        Failure(code)
    }

    /// A failure that is about an argument.
    #[cold]
    pub(crate) fn argument(code: i32, what: &str) -> Failure {
        Failure::new(code, None, format_args!("{what}"))
    }

    pub(crate) fn code(self) -> i32 {
        self.0
    }
}

/// Text that is cut at the end, between characters, and always has a zero after it.
struct Buffer {
    bytes: [u8; TEXT],
    len: usize,
}

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT - 1 - self.len;
        let text = &text[..text.floor_char_boundary(room)];
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// The number of a Rust error; they are all small.
#[allow(clippy::cast_possible_wrap, reason = "codes are below 128")]
fn number(code: u32) -> i32 {
    code as i32
}

impl From<RecordError> for Failure {
    #[cold]
    #[inline(never)]
    fn from(error: RecordError) -> Failure {
        Failure::new(number(error.code()), None, format_args!("{error}"))
    }
}

impl From<BatchError> for Failure {
    #[cold]
    fn from(error: BatchError) -> Failure {
        Failure::new(number(error.error.code()), None, format_args!("{error}"))
    }
}

impl From<OpenError> for Failure {
    #[cold]
    fn from(error: OpenError) -> Failure {
        Failure::new(number(error.code()), error.errno(), format_args!("{error}"))
    }
}

/// Errors of the reader, which have a number, an errno and a text.
macro_rules! reader_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            #[cold]
            fn from(error: $error) -> Failure {
                Failure::new(number(error.code()), error.errno(), format_args!("{error}"))
            }
        }
    )*};
}

reader_errors!(
    tt_shm_reader::OpenError,
    tt_shm_reader::ReadError,
    tt_shm_reader::TableError,
    tt_shm_aggregator::SourceError
);

impl From<tt_shm_reader::NameError> for Failure {
    #[cold]
    fn from(error: tt_shm_reader::NameError) -> Failure {
        Failure::new(TT_SHM_ERR_OPEN_NAMESPACE, None, format_args!("{error}"))
    }
}

impl From<std::io::Error> for Failure {
    #[cold]
    fn from(error: std::io::Error) -> Failure {
        Failure::new(TT_SHM_ERR_IO, error.raw_os_error(), format_args!("{error}"))
    }
}

/// Runs a call; no panic gets out of it.
#[inline(always)]
pub(crate) fn call(work: impl FnOnce() -> Done) -> i32 {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => TT_SHM_OK,
        Ok(Err(failure)) => failure.code(),
        Err(payload) => panicked(payload),
    }
}

#[cold]
#[inline(never)]
fn panicked(payload: Box<dyn std::any::Any + Send>) -> i32 {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let failure = Failure::new(TT_SHM_ERR_PANIC, None, format_args!("an error in tt_shm: {text}"));
    // Dropping what somebody panicked with may panic.
    std::mem::forget(payload);
    failure.code()
}

/// What a code means: a text that stays. Every number has one.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_strerror(code: i32) -> *const c_char {
    meaning(code).as_ptr()
}

/// What the last call of this thread that failed was about, with its operands: which device, id, file. Empty if none
/// failed. Valid until the next call of this thread that fails; calls that succeed leave it.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_last_error() -> *const c_char {
    LAST_TEXT.with(|last| last.as_ptr()).cast()
}

/// The `errno` of the last call of this thread that failed; 0 if no system call failed.
#[unsafe(no_mangle)]
pub extern "C" fn tt_shm_last_errno() -> i32 {
    LAST_ERRNO.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_writer::codes;

    #[test]
    fn numbers_are_those_of_the_rust_errors() {
        let pairs = [
            (TT_SHM_ERR_UNMATCHED_FREE, codes::UNMATCHED_FREE),
            (TT_SHM_ERR_DOUBLE_ALLOC, codes::DOUBLE_ALLOC),
            (TT_SHM_ERR_SIZE_MISMATCH, codes::SIZE_MISMATCH),
            (TT_SHM_ERR_UNKNOWN_DEVICE, codes::UNKNOWN_DEVICE),
            (TT_SHM_ERR_DEVICE_LIST_FULL, codes::DEVICE_LIST_FULL),
            (TT_SHM_ERR_NO_ROOM, codes::NO_ROOM),
            (TT_SHM_ERR_NAMES_FULL, codes::NAMES_FULL),
            (TT_SHM_ERR_SIZE_OUT_OF_RANGE, codes::SIZE_OUT_OF_RANGE),
            (TT_SHM_ERR_UNKNOWN_PROGRAM, codes::UNKNOWN_PROGRAM),
            (TT_SHM_ERR_LANE_OUT_OF_RANGE, codes::LANE_OUT_OF_RANGE),
            (TT_SHM_ERR_FORKED_WITHOUT_SEGMENT, codes::FORKED_WITHOUT_SEGMENT),
            (TT_SHM_ERR_BUSY, codes::BUSY),
            (TT_SHM_ERR_OPEN_NAMESPACE, codes::OPEN_NAMESPACE),
            (TT_SHM_ERR_OPEN_SETTING, codes::OPEN_SETTING),
            (TT_SHM_ERR_OPEN_LIMIT, codes::OPEN_LIMIT),
            (TT_SHM_ERR_OPEN_CREATE, codes::OPEN_CREATE),
            (TT_SHM_ERR_OPEN_MAP, codes::OPEN_MAP),
            (TT_SHM_ERR_OPEN_NO_ROOM, codes::OPEN_NO_ROOM),
            (TT_SHM_ERR_OPEN_OLD_KERNEL, codes::OPEN_OLD_KERNEL),
            (TT_SHM_ERR_OPEN_PUBLISH, codes::OPEN_PUBLISH),
            (TT_SHM_ERR_NOT_FOUND, tt_shm_reader::codes::MISSING),
            (TT_SHM_ERR_NOT_PERMITTED, tt_shm_reader::codes::NOT_PERMITTED),
            (TT_SHM_ERR_REFUSED, tt_shm_reader::codes::REFUSED),
            (TT_SHM_ERR_LAYOUT, tt_shm_reader::codes::LAYOUT),
            (TT_SHM_ERR_READ_BUSY, tt_shm_reader::codes::BUSY),
            (TT_SHM_ERR_BROKEN, tt_shm_reader::codes::BROKEN),
            (TT_SHM_ERR_IO, tt_shm_reader::codes::SYSTEM),
        ];
        for (ours, theirs) in pairs {
            assert_eq!(ours, number(theirs));
            assert_ne!(meaning(ours), c"unknown error code");
        }
    }

    #[test]
    fn a_panic_becomes_a_code_and_a_text() {
        assert_eq!(call(|| panic!("of {}", 7)), TT_SHM_ERR_PANIC);
        let text = LAST_TEXT.get();
        assert_eq!(CStr::from_bytes_until_nul(&text), Ok(c"an error in tt_shm: of 7"));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "\u{e9}".repeat(TEXT);
        Failure::new(TT_SHM_ERR_IO, Some(5), format_args!("a{long}"));
        let text = LAST_TEXT.get();
        let text = CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap();
        assert_eq!((text.len(), LAST_ERRNO.get()), (TEXT - 1, 5));
    }
}
