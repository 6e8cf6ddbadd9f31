//! The files of a recording: how they are called, and the thread that compresses frames and writes them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use rustix::fs::{Mode, OFlags};
use tt_shm_record::{FrameSink, RawFrame, WriterOptions};

use crate::escape::escape;

/// The frames, of about 1 MiB each, that wait for a slow disk. After that rings wait, too, and events are lost and
/// counted.
const QUEUE: usize = 64;
/// The end of the name of a record.
pub(crate) const EXTENSION: &str = "ttrec";
/// What the black box keeps is in this many files: one is removed at a time.
const KEPT_FILES: u64 = 8;

/// The name of this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// How the files of a recording are called, and how large they get.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// The file, or what the files are called but for their numbers.
    path: PathBuf,
    /// The size after which the next file is begun.
    rotate: Option<u64>,
    /// The most bytes of all files: the oldest ones are removed.
    keep: Option<u64>,
    /// Whether an existing file is replaced.
    force: bool,
    next: u64,
}

impl Parts {
    /// One file, or with `rotate` numbered ones.
    pub(crate) fn new(path: Option<PathBuf>, rotate: Option<u64>, force: bool) -> Parts {
        let path = path.unwrap_or_else(|| format!("tt-smi-{}-{}.{EXTENSION}", host_in_name(), now()).into());
        Parts { path, rotate, keep: None, force, next: 1 }
    }

    /// Files in a folder whose sum stays below a size.
    pub(crate) fn black_box(folder: &Path, keep: u64) -> Parts {
        let path = folder.join(format!("{BLACK_BOX}{}.{EXTENSION}", now()));
        Parts { path, rotate: Some(keep / KEPT_FILES), keep: Some(keep), force: false, next: 1 }
    }

    fn next(&mut self) -> PathBuf {
        if self.rotate.is_none() {
            return self.path.clone();
        }
        let number = self.next;
        self.next += 1;
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let extension = self.path.extension().map_or(EXTENSION.into(), |end| end.to_string_lossy());
        self.path.with_file_name(format!("{stem}-{number:04}.{extension}"))
    }

    fn create(&mut self) -> anyhow::Result<(PathBuf, File)> {
        self.make_room();
        let path = self.next();
        let shown = escape(&path.to_string_lossy());
        if self.force && path.symlink_metadata().is_ok_and(|stat| stat.is_file()) {
            std::fs::remove_file(&path).with_context(|| format!("cannot replace {shown}"))?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok((path, file.into())),
            Err(rustix::io::Errno::EXIST) => {
                Err(anyhow!("{shown} exists: give another name with -o, or --force to replace it"))
            }
            Err(errno) => Err(errno).with_context(|| format!("cannot create {shown}")),
        }
    }

    /// Removes the oldest files of a black box, so that the next one has room.
    fn make_room(&self) {
        let (Some(keep), Some(rotate)) = (self.keep, self.rotate) else { return };
        let Some(folder) = self.path.parent() else { return };
        let mut files = black_box_files(folder);
        // A file gets some frames larger than it should.
        let room = keep.saturating_sub(rotate + rotate / 2);
        while files.iter().map(|(_, len)| len).sum::<u64>() > room && !files.is_empty() {
            let (oldest, _) = files.remove(0);
            if let Err(error) = std::fs::remove_file(&oldest) {
                eprintln!("tt-smi: cannot remove {}: {error}", escape(&oldest.to_string_lossy()));
            }
        }
    }
}

/// How the files of a black box begin.
const BLACK_BOX: &str = "black-box-";

/// The files of a black box with their sizes, oldest first: their names begin with the time.
pub(crate) fn black_box_files(folder: &Path) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(BLACK_BOX) && name.ends_with(EXTENSION)
    });
    let mut files: Vec<(PathBuf, u64)> = ours
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok().filter(|stat| stat.is_file())?.len())))
        .collect();
    files.sort();
    files
}

fn host_in_name() -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    host_name().chars().map(plain).collect()
}

/// The time as it is in the names of files: UTC, to the second.
fn now() -> String {
    let text = crate::model::rfc3339(tt_shm_os::realtime_ns());
    text.chars().take(19).filter(|c| c.is_ascii_alphanumeric()).collect::<String>() + "Z"
}

enum Message {
    Frame(RawFrame),
    Next(File),
}

/// What the thread has done.
#[derive(Default)]
struct Progress {
    /// Bytes in the current file, and in those before it.
    current: AtomicU64,
    before: AtomicU64,
    /// The number of the file that is written, from 1.
    file: AtomicU64,
    failure: Mutex<Option<std::io::Error>>,
}

/// The thread that writes.
pub(super) struct Output {
    parts: Parts,
    path: PathBuf,
    files: u64,
    send: Option<SyncSender<Message>>,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
}

impl Output {
    pub(super) fn open(mut parts: Parts) -> anyhow::Result<Output> {
        let (path, file) = parts.create()?;
        let options = WriterOptions::default();
        let mut sink = FrameSink::new(file, options).context("cannot compress")?;
        let progress = Arc::new(Progress { file: AtomicU64::new(1), ..Progress::default() });
        let (send, receive) = sync_channel(QUEUE);
        let shared = Arc::clone(&progress);
        let thread = std::thread::spawn(move || {
            for message in receive {
                if let Err(error) = shared.take(&mut sink, message) {
                    shared.fail(&mut sink, error);
                    // Dropping the receiver tells the sender.
                    return;
                }
            }
            if let Err(error) = sink.finish() {
                shared.fail(&mut sink, error);
            }
            shared.current.store(sink.written().bytes, Ordering::Relaxed);
        });
        Ok(Output { parts, path, files: 1, send: Some(send), progress, thread: Some(thread) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Hands a frame over. Waits if the disk is that slow.
    pub(super) fn send(&self, frame: RawFrame) {
        // A thread that is gone has left its error.
        let _ = self.send.as_ref().map(|send| send.send(Message::Frame(frame)));
    }

    /// Whether the next file should be begun.
    pub(super) fn is_full(&self) -> bool {
        let Progress { current, file, .. } = &*self.progress;
        // What waits for the thread is still for the old file: its size must not begin yet another one.
        let is_current = file.load(Ordering::Acquire) == self.files;
        is_current && self.parts.rotate.is_some_and(|size| current.load(Ordering::Relaxed) >= size)
    }

    pub(super) fn next_part(&mut self) -> anyhow::Result<()> {
        let (path, file) = self.parts.create()?;
        let _ = self.send.as_ref().map(|send| send.send(Message::Next(file)));
        (self.path, self.files) = (path, self.files + 1);
        Ok(())
    }

    /// Bytes in all files, and their number.
    pub(super) fn written(&self) -> (u64, u64) {
        let Progress { current, before, .. } = &*self.progress;
        (current.load(Ordering::Relaxed) + before.load(Ordering::Relaxed), self.files)
    }

    /// Why the file cannot be written any more.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        let failure = self.progress.failure.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let shown = escape(&self.path.to_string_lossy());
        let so = "what was recorded until then is in it and can be read";
        Some(anyhow!(failure).context(format!("cannot write {shown}; {so}")))
    }

    /// Waits until everything is written.
    pub(super) fn finish(&mut self) -> Option<anyhow::Error> {
        drop(self.send.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            return Some(anyhow!("the thread that writes panicked"));
        }
        self.failure()
    }
}

impl Progress {
    fn take(&self, sink: &mut FrameSink<File>, message: Message) -> std::io::Result<()> {
        match message {
            Message::Frame(frame) => {
                sink.write(&frame)?;
                self.current.store(sink.written().bytes, Ordering::Relaxed);
            }
            Message::Next(file) => {
                sink.finish()?;
                self.before.fetch_add(sink.written().bytes, Ordering::Relaxed);
                self.current.store(0, Ordering::Relaxed);
                // Release: pairs with the acquire load in is_full(), which must not see the old size.
                self.file.fetch_add(1, Ordering::Release);
                *sink = FrameSink::new(file, WriterOptions::default())?;
            }
        }
        Ok(())
    }

    /// Cuts off the frame that did not fit, and keeps the reason.
    fn fail(&self, sink: &mut FrameSink<File>, error: std::io::Error) {
        let whole = sink.written().bytes;
        // If that fails, too, a reader finds the end by itself.
        let _ = sink.output().set_len(whole);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}
