//! The three forms of the message, which differ in length and have no version: how they are told apart, and what the
//! answers in them hold.

use shm_layout::MAX_DEVICES;
use tt_shm_measure::message::{HEAD_LEN, Kind, Message};

/// Bytes of the head that are enough to check it: up to the sender.
const CHECKED: usize = 24;
/// Highest code of a buffer type.
const MAX_BUFFER_TYPE: u8 = 4;

/// A form of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// 72 bytes: the head alone.
    Head,
    /// 112 bytes: the head and the device, without sums of circular buffers and kernels.
    Device,
    /// 144 bytes: everything.
    Full,
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// No client sends a message of this type.
    Kind(u8),
    /// A report about a device that cannot exist.
    Device(i32),
    /// A buffer or kernel of a type that does not exist.
    BufferType(u8),
    /// What follows the first message is not a message, whatever the form.
    NoForm,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::Kind(code) => write!(f, "a message of type {code}"),
            Malformed::Device(device) => {
                write!(f, "a report about device {device}, not one from 0 to {}", MAX_DEVICES - 1)
            }
            Malformed::BufferType(code) => write!(f, "buffer type {code}"),
            Malformed::NoForm => {
                f.write_str("messages of none of the known lengths (72, 112, 144); --message-size sets one")
            }
        }
    }
}

impl Form {
    /// All forms, shortest first.
    pub(crate) const ALL: [Form; 3] = [Form::Head, Form::Device, Form::Full];

    /// Bytes of a message.
    pub(crate) fn len(self) -> usize {
        match self {
            Form::Head => HEAD_LEN,
            Form::Device => 112,
            Form::Full => 144,
        }
    }

    /// The form with this length.
    pub(crate) fn of_len(len: usize) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.len() == len)
    }

    /// The form of the messages in `bytes`, the first that a client sent; `None` if it takes more bytes to tell.
    ///
    /// A request is zero behind its head, and no message has type 0: so the shortest form after whose length a message
    /// begins is the right one. If a single message is all there is, its length tells, once the client is `quiet`:
    /// a message may arrive in pieces.
    pub(crate) fn detect(bytes: &[u8], quiet: bool) -> Result<Option<Form>, Malformed> {
        check_start(bytes)?;
        for form in Form::ALL {
            let Some(next) = bytes.get(form.len()..) else { return Ok(None) };
            if next.is_empty() {
                return Ok(quiet.then_some(form));
            }
            if check_start(next).is_ok() && is_same_sender(bytes, next) {
                return Ok(Some(form));
            }
        }
        Err(Malformed::NoForm)
    }

    /// The bytes of an answer in this form.
    pub(crate) fn encode(self, answer: &Message) -> Vec<u8> {
        let all = answer.bytes();
        match self {
            Form::Head => all[..HEAD_LEN].to_vec(),
            // The sums of circular buffers and kernels came later, in front of the device's fields.
            Form::Device => [&all[..HEAD_LEN], &all[HEAD_LEN + 16..128]].concat(),
            Form::Full => all.to_vec(),
        }
    }
}

/// Decodes a message and checks everything that a client cannot mean.
pub(super) fn decode(head: &[u8; HEAD_LEN]) -> Result<(Kind, Message), Malformed> {
    let message = Message::from_head(head);
    Ok((check(&message)?, message))
}

/// Checks what can be checked of the beginning of a message, of which some bytes may be missing.
fn check_start(bytes: &[u8]) -> Result<(), Malformed> {
    match bytes.first_chunk::<CHECKED>() {
        Some(start) => {
            let mut head = [0; HEAD_LEN];
            head[..CHECKED].copy_from_slice(start);
            check(&Message::from_head(&head)).map(drop)
        }
        None => bytes.first().map_or(Ok(()), |code| request(*code).map(drop)),
    }
}

fn check(message: &Message) -> Result<Kind, Malformed> {
    let kind = request(message.kind)?;
    let device_exists = usize::try_from(message.device).is_ok_and(|device| device < MAX_DEVICES);
    let highest = match kind {
        Kind::Alloc => MAX_BUFFER_TYPE,
        Kind::KernelLoad => 2,
        _ => u8::MAX,
    };
    if is_report(kind) && !device_exists {
        return Err(Malformed::Device(message.device));
    }
    if message.buffer_type > highest {
        return Err(Malformed::BufferType(message.buffer_type));
    }
    Ok(kind)
}

/// The kind with this code, if it is one that clients send.
fn request(code: u8) -> Result<Kind, Malformed> {
    let kind =
        Kind::from_code(code).filter(|kind| !matches!(kind, Kind::Response | Kind::DeviceInfoResponse));
    kind.ok_or(Malformed::Kind(code))
}

fn is_report(kind: Kind) -> bool {
    use Kind::{Alloc, CbAlloc, CbFree, Free, KernelLoad, KernelUnload};
    matches!(kind, Alloc | Free | CbAlloc | CbFree | KernelLoad | KernelUnload)
}

/// Whether two messages are of one process, as far as they say: questions leave it out.
fn is_same_sender(first: &[u8], second: &[u8]) -> bool {
    let sender = |bytes: &[u8]| bytes.get(20..CHECKED).filter(|pid| **pid != [0; 4]).map(<[u8]>::to_vec);
    match (sender(first), sender(second)) {
        (Some(first), Some(second)) => first == second,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: Kind, device: i32, id: u64) -> Message {
        Message::new(kind, 4711, device, id, 4096)
    }

    fn stream(form: Form, messages: &[Message]) -> Vec<u8> {
        messages.iter().flat_map(|message| form.encode(message)).collect()
    }

    #[test]
    fn the_second_message_tells_the_form() {
        let first = [Kind::Alloc, Kind::Free, Kind::CbAlloc, Kind::KernelLoad];
        for form in Form::ALL {
            for kind in first {
                let bytes = stream(
                    form,
                    &[message(kind, 0, 1), message(Kind::Free, 3, 2), message(Kind::Alloc, 0, 3)],
                );
                for end in 0..=form.len() {
                    assert_eq!(Form::detect(&bytes[..end], false), Ok(None), "{form:?} {end}");
                }
                for end in form.len() + 1..=bytes.len() {
                    assert_eq!(Form::detect(&bytes[..end], false), Ok(Some(form)), "{form:?} {end}");
                }
            }
        }
    }

    #[test]
    fn a_single_message_tells_it_by_its_length() {
        for form in Form::ALL {
            let bytes = stream(form, &[message(Kind::Query, -1, 0)]);
            assert_eq!(Form::detect(&bytes, true), Ok(Some(form)));
        }
        let bytes = stream(Form::Full, &[message(Kind::Alloc, 0, 1)]);
        for end in (0..144).filter(|end| ![72, 112].contains(end)) {
            assert_eq!(Form::detect(&bytes[..end], true), Ok(None), "{end}");
        }
        assert_eq!(Form::of_len(112), Some(Form::Device));
        assert_eq!(Form::of_len(128), None);
    }

    #[test]
    fn what_no_client_means_is_malformed() {
        let bad = |change: fn(&mut Message)| {
            let mut bad = message(Kind::Alloc, 0, 1);
            change(&mut bad);
            decode(bad.bytes().first_chunk().unwrap()).map(drop)
        };
        assert_eq!(bad(|message| message.kind = 0), Err(Malformed::Kind(0)));
        assert_eq!(bad(|message| message.kind = Kind::Response as u8), Err(Malformed::Kind(4)));
        assert_eq!(bad(|message| message.kind = 13), Err(Malformed::Kind(13)));
        assert_eq!(bad(|message| message.device = -1), Err(Malformed::Device(-1)));
        assert_eq!(bad(|message| message.device = 128), Err(Malformed::Device(128)));
        assert_eq!(bad(|message| message.buffer_type = 5), Err(Malformed::BufferType(5)));
        let kernel =
            |message: &mut Message| (message.kind, message.buffer_type) = (Kind::KernelLoad as u8, 3);
        assert_eq!(bad(kernel), Err(Malformed::BufferType(3)));
        assert_eq!(bad(|message| (message.kind, message.device) = (Kind::Query as u8, -1)), Ok(()));
        assert_eq!(bad(|_| ()), Ok(()));
    }

    #[test]
    fn nonsense_has_no_form() {
        let mut bytes = stream(Form::Full, &[message(Kind::Alloc, 0, 1)]);
        bytes.push(0);
        assert_eq!(Form::detect(&bytes, false), Err(Malformed::NoForm));
        assert_eq!(Form::detect(&[77], false), Err(Malformed::Kind(77)));
        assert_eq!(Form::detect(&[], true), Ok(None));
        // Another sender: what stands there is no message.
        let mut other = message(Kind::Alloc, 0, 2);
        other.pid = 4712;
        let bytes = [Form::Full.encode(&message(Kind::Alloc, 0, 1)), Form::Full.encode(&other)].concat();
        assert_eq!(Form::detect(&bytes, false), Err(Malformed::NoForm));
    }

    #[test]
    fn answers_have_the_fields_of_their_form() {
        let mut answer = Message::answer(Kind::DeviceInfoResponse, 3);
        (answer.allocated, answer.totals, answer.ring) = ([1, 2, 3, 4, 5, 6], [7, 8], [9, 10, 11]);
        answer.info.arch = 2;
        answer.info.num_devices = 12;
        let u64_at = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let u32_at = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let [head, device, full] = Form::ALL.map(|form| form.encode(&answer));
        assert_eq!([head.len(), device.len(), full.len()], [72, 112, 144]);
        assert_eq!((u64_at(&head, 40), u64_at(&head, 64)), (1, 4));
        assert_eq!((u64_at(&device, 72), u64_at(&device, 80)), (7, 8), "no circular buffers, no kernels");
        assert_eq!((u32_at(&device, 88), u32_at(&device, 108)), (2, 12));
        assert_eq!((u64_at(&full, 72), u64_at(&full, 80), u64_at(&full, 88)), (5, 6, 7));
        assert_eq!((u32_at(&full, 104), u32_at(&full, 124), u32_at(&full, 136)), (2, 12, 11));
    }
}
