//! Segments in the private /dev/shm of containers whose processes hold a device.
//!
//! Only root looks there, through `/proc/PID/root` ([`ShmFolder`]). What is found is followed like any other segment.
//! Nothing there is ever created, changed, locked or removed, and no folder is kept open: a container's file system
//! goes when its last process does.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tt_shm_os::{Namespace, Procfs, ShmFolder, parse_segment_name};
use tt_shm_reader::{FileError, OpenError, Segment, is_held_in};

use crate::aggregator::Aggregator;
use crate::model::notice::About;
use crate::segments::attach::{Fate, MAX_OPENS, MAX_PENDING, Mark, reason};
use crate::segments::reap::Inode;

/// The time between two looks at who holds devices and has a private folder.
const LOOK_NS: u64 = 1_000_000_000;
/// The most folders that are followed.
const MAX_FOLDERS: usize = 64;
/// The processes that are looked into at a time. Each second continues behind the last.
const MAX_PROCESSES_LOOKED_INTO: usize = 1024;
/// The entries read of one folder, and of all of them per look: a container can make any number of files.
const MAX_ENTRIES: usize = 16 * 1024;
const MAX_ENTRIES_PER_LOOK: usize = 4 * MAX_ENTRIES;
/// The notifications read per poll.
const MAX_EVENTS: usize = 4096;
/// How long a folder is remembered that no holder of a device has any more.
const FORGET_NS: u64 = 60_000_000_000;

/// The private folders that are known.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    /// By device and inode of the folder: processes of one container share it.
    folders: BTreeMap<Inode, Folder>,
    inotify: Option<OwnedFd>,
    /// Whether to watch the folders for changes, as [`crate::Config::watch`] says.
    watching: bool,
    next_look: u64,
    /// The process that was looked into last, and the folder that was listed last.
    last_pid: u32,
    last_listed: Inode,
    /// Folders that were left out because there are too many.
    left_out: bool,
    /// Whether files may have come and gone unnoticed since the last look.
    untold: bool,
    /// Whether anything changed in a folder.
    stirred: bool,
}

/// A private folder.
#[derive(Debug)]
struct Folder {
    /// A process that has it.
    pid: u32,
    watch: Option<i32>,
    /// When a holder of a device had it last.
    seen: u64,
    /// What was decided about each file, by name.
    known: HashMap<String, (Inode, Fate)>,
    pending: VecDeque<String>,
    /// Whether its names have to be listed.
    is_due: bool,
    /// Whether it has more files than are read.
    is_cut: bool,
}

impl Folder {
    fn has_pending(&self) -> bool {
        self.is_due || !self.pending.is_empty()
    }
}

impl Containers {
    /// Starts to watch the folders for changes.
    pub(crate) fn start_watching(&mut self) {
        (self.watching, self.next_look) = (true, 0);
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.watching
    }

    /// The descriptor to wait on for the next change.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Whether files wait to be opened.
    pub(crate) fn is_waiting(&self) -> bool {
        self.folders.values().any(Folder::has_pending)
    }

    /// Whether anything changed in a folder at the last poll.
    pub(crate) fn stirred(&self) -> bool {
        self.stirred
    }

    /// The files refused at this moment.
    pub(crate) fn refused(&self) -> u64 {
        self.count(|fate| matches!(fate, Fate::Refused(..) | Fate::Waiting))
    }

    /// The files that may hold memory and could not be read, and the folders of which not all are known.
    pub(crate) fn unread(&self) -> u64 {
        let unopened = self.folders.values().map(|folder| folder.pending.len() + usize::from(folder.is_cut));
        let kept_out = self.count(|fate| matches!(fate, Fate::Refused(_, true) | Fate::Waiting));
        kept_out + unopened.sum::<usize>() as u64 + u64::from(self.left_out)
    }

    fn count(&self, which: impl Fn(&Fate) -> bool) -> u64 {
        let fates = self.folders.values().flat_map(|folder| folder.known.values());
        fates.filter(|(_, fate)| which(fate)).count() as u64
    }

    /// Finds the private folders of these processes, and forgets those that nobody has.
    fn look(&mut self, pids: &BTreeSet<u32>, now: u64) {
        let (Some(own), procfs) = (ShmFolder::own_id(), Procfs::default()) else { return };
        self.left_out = false;
        let (later, earlier) = (pids.range(self.last_pid.saturating_add(1)..), pids.range(..=self.last_pid));
        for pid in later.chain(earlier).take(MAX_PROCESSES_LOOKED_INTO) {
            self.last_pid = *pid;
            let Ok(shm) = ShmFolder::of(&procfs, *pid) else { continue };
            if shm.id() != own {
                self.see(*pid, &shm, now);
            }
        }
        let (inotify, keep) = (&self.inotify, |folder: &Folder| now < folder.seen.saturating_add(FORGET_NS));
        self.folders.retain(|_, folder| {
            if let (Some(inotify), Some(watch), false) = (inotify, folder.watch, keep(folder)) {
                // It is gone with its file system already.
                let _ = inotify::remove_watch(inotify, watch);
            }
            keep(folder)
        });
    }

    fn see(&mut self, pid: u32, shm: &ShmFolder, now: u64) {
        let known = self.folders.get(&shm.id());
        // Another process of the same container.
        if known.is_some_and(|folder| folder.seen == now) || !shm.is_tmpfs() {
            return;
        }
        if known.is_none() && self.folders.len() >= MAX_FOLDERS {
            self.left_out = true;
            return;
        }
        // Before it is listed, so that no file comes between.
        let watch = known.and_then(|folder| folder.watch).or_else(|| self.watch(shm));
        if let Some(folder) = self.folders.get_mut(&shm.id()) {
            (folder.pid, folder.seen, folder.is_due, folder.watch) = (pid, now, true, watch);
            return;
        }
        let folder = Folder {
            pid,
            watch,
            seen: now,
            known: HashMap::new(),
            pending: VecDeque::new(),
            is_due: true,
            is_cut: false,
        };
        self.folders.insert(shm.id(), folder);
    }

    fn watch(&mut self, shm: &ShmFolder) -> Option<i32> {
        if self.inotify.is_none() && self.watching {
            self.inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok();
        }
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE | WatchFlags::MOVED_FROM;
        let inotify = self.inotify.as_ref()?;
        inotify::add_watch(inotify, shm.descriptor_path(), flags | WatchFlags::ONLYDIR).ok()
    }

    /// Takes over what was noticed since the last poll.
    fn read_events(&mut self, namespace: &Namespace) {
        self.stirred = false;
        // A folder that is not watched is listed by the second.
        self.untold = self.folders.values().any(|folder| folder.watch.is_none());
        let Some(inotify) = &self.inotify else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        for _ in 0..MAX_EVENTS {
            let Ok(event) = reader.next() else { return };
            self.stirred = true;
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.untold = true;
                self.folders.values_mut().for_each(|folder| folder.is_due = true);
                return;
            }
            let watch = event.wd();
            let folder = self.folders.values_mut().find(|folder| folder.watch == Some(watch));
            let (Some(folder), Some(name)) = (folder, event.file_name().and_then(|name| name.to_str().ok()))
            else {
                continue;
            };
            if !is_ours(namespace, name) {
                continue;
            }
            if event.events().intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
                // A new one that waits stays: to find it gone is how its process is noticed at all.
                if folder.known.remove(name).is_some() {
                    folder.pending.retain(|waiting| waiting != name);
                }
            } else if folder.pending.len() < MAX_PENDING {
                folder.pending.push_back(name.to_owned());
            } else {
                folder.is_due = true;
            }
        }
    }

    /// Lists the folders that are due, each time beginning behind the one that was listed last.
    fn list(&mut self, namespace: &Namespace) {
        let due = self.folders.iter().filter(|(_, folder)| folder.is_due).map(|(id, _)| *id);
        let mut due: Vec<Inode> = due.collect();
        due.sort_by_key(|id| (*id <= self.last_listed, *id));
        let mut left = MAX_ENTRIES_PER_LOOK;
        for id in due {
            let Some(folder) = self.folders.get_mut(&id).filter(|_| left > 0) else { return };
            (folder.is_due, self.last_listed) = (false, id);
            let most = left.min(MAX_ENTRIES);
            let listed = open_again(id, folder.pid).and_then(|shm| shm.names(most).ok());
            let Some((mut names, complete)) = listed else { continue };
            left = left.saturating_sub(names.len());
            names.retain(|name| is_ours(namespace, name));
            folder.is_cut = !complete || names.len() > MAX_PENDING;
            names.truncate(MAX_PENDING);
            if !folder.is_cut {
                let there: BTreeSet<&String> = names.iter().collect();
                folder.known.retain(|name, _| there.contains(name));
            }
            let is_settled =
                |name: &String| matches!(folder.known.get(name), Some((_, Fate::Followed | Fate::LeftAlone)));
            let waiting: BTreeSet<String> = folder.pending.iter().cloned().collect();
            names.retain(|name| !is_settled(name) && !waiting.contains(name));
            folder.pending.extend(names);
        }
    }
}

impl Aggregator {
    /// Looks for segments in private folders; returns whether new ones are followed.
    pub(crate) fn find_in_containers(&mut self, now: u64) -> bool {
        let Some(driver) = self.driver.as_mut().filter(|_| self.uid == 0) else { return false };
        driver.look();
        self.containers.read_events(&self.config.namespace);
        if now >= self.containers.next_look {
            self.containers.next_look = now.saturating_add(LOOK_NS);
            self.containers.look(&driver.holders(), now);
        }
        if self.containers.untold && !self.starting {
            self.doubt_since_last_find();
        }
        self.containers.list(&self.config.namespace);
        let before = self.followers.len();
        self.open_pending(now);
        self.followers.len() > before
    }

    /// Opens files that wait, as many of each folder.
    fn open_pending(&mut self, now: u64) {
        let waiting = self.containers.folders.iter().filter(|(_, folder)| !folder.pending.is_empty());
        let waiting: Vec<_> = waiting.map(|(id, folder)| (*id, folder.pid)).collect();
        for (id, pid) in &waiting {
            let (id, pid) = (*id, *pid);
            let shm = open_again(id, pid);
            for _ in 0..MAX_OPENS / waiting.len().min(MAX_FOLDERS) {
                let Some(folder) = self.containers.folders.get_mut(&id) else { break };
                let Some(name) = folder.pending.pop_front() else { break };
                match &shm {
                    Some(shm) => self.consider_in(id, shm, pid, &name, now),
                    // Its processes have ended, and nobody saw what they held.
                    None if folder.known.contains_key(&name) => {}
                    None => self.lose(),
                }
            }
        }
    }

    /// Decides what to do with a file of a private folder.
    fn consider_in(&mut self, id: Inode, shm: &ShmFolder, pid: u32, name: &str, now: u64) {
        // Taken before the file is opened, so that a change meanwhile is noticed.
        let stat = shm.stat(name);
        let mark = stat.as_ref().map(Mark::from).unwrap_or_default();
        let before = self.containers.folders.get(&id).and_then(|folder| folder.known.get(name)).copied();
        match before {
            Some((inode, Fate::Followed | Fate::LeftAlone)) if inode == mark.inode() => return,
            Some((_, Fate::Refused(old, may_live))) if old == mark => {
                if may_live && !is_held_in(shm, name) {
                    self.remember(id, name, mark, Fate::Refused(mark, false));
                }
                return;
            }
            _ => {}
        }
        let path = shm.path_of(name);
        let (fate, why) = match Segment::open_in(shm, pid, name) {
            Ok(segment) => self.admit(segment, now),
            Err(error) if error.is_not_found() => {
                return if before.is_none() {
                    self.lose()
                };
            }
            Err(error @ OpenError::File(FileError::Open { .. } | FileError::Map { .. })) => {
                (Fate::Waiting, Some(reason(&error, &path)))
            }
            Err(error) => (Fate::Refused(mark, is_held_in(shm, name)), Some(reason(&error, &path))),
        };
        let file = format!("pid {pid}: {name}");
        let again = before.is_some_and(|(_, before)| before == Fate::Waiting) && fate == Fate::Waiting;
        match why {
            Some(why) if !again => {
                let uid = stat.map_or(0, |stat| stat.st_uid);
                let process = parse_segment_name(name).map_or(0, |name| u64::from(name.pid));
                self.note_refusal(About { pid: process, uid, file: &file }, &why, now);
            }
            None if before.is_some() => {
                let generation = self.model.mark_changed();
                self.model.notices.withdraw(generation, &file);
            }
            _ => {}
        }
        self.remember(id, name, mark, fate);
    }

    fn remember(&mut self, id: Inode, name: &str, mark: Mark, fate: Fate) {
        if let Some(folder) = self.containers.folders.get_mut(&id)
            && (folder.known.len() < MAX_PENDING || folder.known.contains_key(name))
        {
            folder.known.insert(name.to_owned(), (mark.inode(), fate));
        }
    }
}

/// The folder, if that process still has it. Another file system may have the numbers by now.
fn open_again(id: Inode, pid: u32) -> Option<ShmFolder> {
    ShmFolder::of(&Procfs::default(), pid).ok().filter(|shm| shm.id() == id && shm.is_tmpfs())
}

fn is_ours(namespace: &Namespace, name: &str) -> bool {
    parse_segment_name(name).is_some_and(|name| name.namespace == *namespace)
}
