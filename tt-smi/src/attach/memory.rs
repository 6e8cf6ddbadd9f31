//! The memory of another process: what is mapped where, and its bytes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use tt_shm_os::Procfs;

/// Most bytes of `maps` that are read: 100 000 mappings have about 10 MB.
const MAX_MAPS: u64 = 64 << 20;

/// The bytes of a process, by address. Being allowed to open this is being allowed to trace the process.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    pub fn open(pid: u32) -> io::Result<Memory> {
        OpenOptions::new().read(true).write(true).open(Procfs::default().path(pid, "mem")).map(Memory)
    }

    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(bytes, address)
    }

    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, address)
    }

    pub fn bytes(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    pub fn array<const N: usize>(&self, address: u64) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    pub fn word(&self, address: u64) -> io::Result<u64> {
        self.array(address).map(u64::from_ne_bytes)
    }

    pub fn set_word(&self, address: u64, word: u64) -> io::Result<()> {
        self.write(address, &word.to_ne_bytes())
    }

    /// A text that ends with a 0, or what can be read of its first `most` bytes.
    pub fn text(&self, address: u64, most: usize) -> String {
        let mut bytes = Vec::new();
        while bytes.len() < most
            && let Ok([byte]) = self.array(address.wrapping_add(bytes.len() as u64))
            && byte != 0
        {
            bytes.push(byte);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Such as `r-xp`.
    pub access: String,
    /// Where in its file it begins.
    pub offset: u64,
    /// Its file, a name such as `[stack]`, or nothing.
    pub name: String,
}

impl Mapping {
    fn parse(line: &str) -> Option<Mapping> {
        // The name comes last and may hold blanks; it is padded on its left.
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (access, offset) = (fields.next()?.to_owned(), number(fields.next()?)?);
        let name = fields.nth(2).unwrap_or_default().trim_start().to_owned();
        Some(Mapping { start: number(start)?, end: number(end)?, access, offset, name })
    }

    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    pub fn is_executable(&self) -> bool {
        self.access.contains('x')
    }

    /// The last part of its file's name; the file may have been replaced since.
    pub fn file_name(&self) -> &str {
        let name = self.name.strip_suffix(" (deleted)").unwrap_or(&self.name);
        name.rsplit('/').next().unwrap_or_default()
    }
}

/// What a process has mapped now, by address.
pub fn mappings(pid: u32) -> io::Result<Vec<Mapping>> {
    let mut text = Vec::new();
    File::open(Procfs::default().path(pid, "maps"))?.take(MAX_MAPS).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(Mapping::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = "7f00-8f00 r-xp 00026000 fe:00 1234                       /a dir/lib x.so (deleted)";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f00, 0x8f00, 0x26000));
        assert_eq!((mapping.file_name(), mapping.is_executable()), ("lib x.so", true));
        assert_eq!(Mapping::parse("0-1000 rw-p 00000000 00:00 0 ").unwrap().name, "");
        assert_eq!(Mapping::parse("nonsense"), None);
    }
}
