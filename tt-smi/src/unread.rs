//! Segments that could not be read: what is reported about them, and whether data is missing because of them.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tt_shm_reader::OpenError;

use crate::escape::escape;
use crate::private::Refused;
use crate::units::plural;

/// Most reasons reported one by one: a hostile user can cause as many as there are files.
const MAX_REASONS: usize = 32;

/// The segments that were left out, by owner and reason.
#[derive(Debug, Default)]
pub struct Unread {
    alike: BTreeMap<(u32, String), Alike>,
    /// Whether one of them may belong to a live process, so that sums and lists are incomplete.
    pub is_missing: bool,
    /// Of these, a process is known to live whose file has no name.
    pub is_nameless: bool,
}

/// Those of one owner with one reason.
#[derive(Debug)]
struct Alike {
    count: u64,
    first: String,
}

impl Unread {
    /// A file that was refused.
    pub fn refuse(&mut self, path: &Path, error: &OpenError) {
        let uid = path.symlink_metadata().map_or(0, |stat| stat.uid());
        let reason = error.to_string().replace(&path.display().to_string(), "it");
        self.is_missing |= error.may_live(path);
        self.add(uid, reason, file_name(path));
    }

    /// A segment in the private folder of a container, which is not reached by its path.
    pub(crate) fn refuse_private(&mut self, refused: &Refused) {
        let Refused { path, uid, error, may_live } = refused;
        self.is_missing |= may_live;
        self.add(*uid, error.to_string().replace(&path.display().to_string(), "it"), file_name(path));
    }

    /// A segment beyond the limit per user.
    pub fn leave_out(&mut self, path: &Path, uid: u32, most: usize) {
        self.is_missing = true;
        self.add(
            uid,
            format!("over {most} of one user are not read; end some, or `tt-smi clean`"),
            file_name(path),
        );
    }

    /// A live process whose segment file has been unlinked.
    pub fn miss(&mut self, pid: u64, uid: u32) {
        (self.is_missing, self.is_nameless) = (true, true);
        let reason = "it lives, but its file in /dev/shm has no name any more; only a daemon that knew it still counts it";
        self.add(uid, reason.to_owned(), format!("pid {pid}"));
    }

    fn add(&mut self, uid: u32, reason: String, name: String) {
        let alike = self.alike.entry((uid, reason)).or_insert(Alike { count: 0, first: name });
        alike.count += 1;
    }

    /// Whether all were read.
    pub fn is_empty(&self) -> bool {
        self.alike.is_empty()
    }

    /// Lines with file, owner, reason and what to do. The user's own come first; similar ones share a line.
    pub fn errors(&self) -> Vec<String> {
        let own = rustix::process::geteuid().as_raw();
        let mut all: Vec<_> = self.alike.iter().collect();
        all.sort_by_key(|((uid, _), _)| *uid != own);
        let mut lines: Vec<String> =
            all.iter().take(MAX_REASONS).map(|(key, alike)| line(key, alike)).collect();
        let untold: u64 = all.iter().skip(MAX_REASONS).map(|(_, alike)| alike.count).sum();
        if untold > 0 {
            lines.push(format!("left out: {} more, for other reasons", plural(untold, "segment")));
        }
        lines
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn line((uid, reason): &(u32, String), Alike { count, first }: &Alike) -> String {
    let owner = crate::users::name_of(*uid).map_or_else(|| format!("uid {uid}"), |name| name.to_string());
    let (first, reason) = (escape(first), escape(reason));
    match count {
        1 => format!("left out: {first} of {owner}: {reason}"),
        _ => format!("left out: {} of {owner}, such as {first}: {reason}", plural(*count, "segment")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use tt_shm_reader::FileError;

    #[test]
    fn many_alike_are_one_line() {
        let mut unread = Unread::default();
        let refused = |path: &Path| {
            OpenError::File(FileError::Open {
                path: path.to_owned(),
                cause: io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error()),
            })
        };
        for number in 0..1500 {
            let path = tt_shm_os::path_of(&format!("tt-smi-none-{number:04}"));
            unread.refuse(&path, &refused(&path));
        }
        let [line] = &unread.errors()[..] else { panic!("{:?}", unread.errors()) };
        for part in ["1500 segments of ", "such as tt-smi-none-0000: ", "open files", "ulimit -n"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(unread.is_missing, "whoever cannot be opened may live");
        for number in 0..100 {
            unread.leave_out(Path::new("x"), 7, number);
        }
        assert_eq!(unread.errors().len(), MAX_REASONS + 1);
    }
}
