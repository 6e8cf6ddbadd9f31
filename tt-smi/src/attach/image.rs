//! A library as the dynamic linker of a process has loaded it: which functions it has, and which it calls through slots.
//!
//! Read from the memory of the process, not from its file: that may be in a container, deleted or replaced. Whatever is
//! found there is the process's word, and only ever used as an address in that process.

use std::io;

use super::memory::{Mapping, Memory};

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_JMPREL: u64 = 23;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
/// Sizes of `Elf64_Phdr`, `Elf64_Dyn`, `Elf64_Sym` and `Elf64_Rela`.
const PHDR: usize = 56;
const DYN: usize = 16;
const SYM: u64 = 24;
const RELA: usize = 24;
/// No library has as many entries in any of its tables; a process may claim so.
const MOST: usize = 1 << 24;

/// What kind of program or library a file is: class and machine of its ELF header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    Other,
}

impl Machine {
    /// From the first bytes of a file.
    pub fn of(header: &[u8]) -> Machine {
        let is_64_bits = header.starts_with(b"\x7fELF\x02\x01");
        match is_64_bits && header.get(18..20) == Some(&[62, 0]) {
            true => Machine::X86_64,
            false => Machine::Other,
        }
    }
}

/// A function of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its place in the table of symbols.
    index: u64,
    pub address: u64,
}

/// A loaded library, or the program itself.
#[derive(Debug)]
pub struct Image<'m> {
    memory: &'m Memory,
    /// What is added to the addresses in its file.
    bias: u64,
    /// Where its first mapping begins.
    start: u64,
    dynamic: Vec<(u64, u64)>,
}

impl<'m> Image<'m> {
    /// The library whose first mapping this is. Fails if it has no dynamic section, as a static program.
    pub fn load(memory: &'m Memory, first: &Mapping) -> io::Result<Image<'m>> {
        let start = first.start;
        let header: [u8; 64] = memory.array(start)?;
        if Machine::of(&header) == Machine::Other {
            return Err(io::Error::other("it is not a library for x86_64"));
        }
        let count = usize::from(u16::from_le_bytes([header[56], header[57]]));
        let phdrs = memory.bytes(start.wrapping_add(u64_at(&header, 32)), count * PHDR)?;
        let find = |wanted| phdrs.chunks_exact(PHDR).find(|phdr| u32_at(phdr, 0) == wanted);
        let loaded = find(PT_LOAD).ok_or_else(|| io::Error::other("nothing of it is to be loaded"))?;
        let bias = start.wrapping_sub(u64_at(loaded, 16) & !0xfff);
        let dynamic = find(PT_DYNAMIC).ok_or_else(|| io::Error::other("it has no dynamic section"))?;
        let length = usize::try_from(u64_at(dynamic, 40)).unwrap_or(MOST).min(MOST);
        let entries = memory.bytes(bias.wrapping_add(u64_at(dynamic, 16)), length)?;
        let entries = entries.chunks_exact(DYN).map(|entry| (u64_at(entry, 0), u64_at(entry, 8)));
        Ok(Image { memory, bias, start, dynamic: entries.take_while(|(tag, _)| *tag != 0).collect() })
    }

    /// A function or variable that it defines, by name.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        let (table, names) = (self.table(DT_GNU_HASH)?, self.table(DT_STRTAB)?);
        let header: [u8; 16] = self.memory.array(table).ok()?;
        let [buckets, first, blooms] = [0, 4, 8].map(|at| u64::from(u32_at(&header, at)));
        let hash = gnu_hash(name);
        let bucket = table.wrapping_add(16 + 8 * blooms);
        let chain = bucket.wrapping_add(4 * buckets);
        let half =
            |table: u64, at| self.memory.array(table.wrapping_add(4 * at)).ok().map(u32::from_le_bytes);
        let start = u64::from(half(bucket, u64::from(hash).checked_rem(buckets)?)?);
        for index in start..start + MOST as u64 {
            let link = half(chain, index.checked_sub(first)?)?;
            if link | 1 == hash | 1 && self.name_of(index, names, name.len() + 1)? == name {
                let symbol = self.entry(index)?;
                let is_defined = u16::from_le_bytes([symbol[6], symbol[7]]) != 0;
                let address = self.bias.wrapping_add(u64_at(&symbol, 8));
                return is_defined.then_some(Symbol { index, address });
            }
            if link & 1 == 1 {
                return None;
            }
        }
        None
    }

    /// Whether the library calls a function of its own through a slot, which can be rewritten.
    pub fn has_slot(&self, symbol: Symbol) -> bool {
        let (Some(table), Some(length)) = (self.table(DT_JMPREL), self.value(DT_PLTRELSZ)) else {
            return false;
        };
        let length = usize::try_from(length).unwrap_or(MOST).min(MOST * RELA);
        let relocations = self.memory.bytes(table, length).unwrap_or_default();
        relocations.chunks_exact(RELA).any(|relocation| u64_at(relocation, 8) >> 32 == symbol.index)
    }

    fn entry(&self, index: u64) -> Option<[u8; SYM as usize]> {
        self.memory.array(self.table(DT_SYMTAB)?.wrapping_add(SYM * index)).ok()
    }

    fn name_of(&self, index: u64, names: u64, most: usize) -> Option<String> {
        Some(self.memory.text(names.wrapping_add(u64::from(u32_at(&self.entry(index)?, 0))), most))
    }

    fn value(&self, wanted: u64) -> Option<u64> {
        self.dynamic.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value)
    }

    /// The address of a table. glibc adds the bias in place, except where it cannot write.
    fn table(&self, tag: u64) -> Option<u64> {
        let value = self.value(tag)?;
        Some(if value >= self.start { value } else { self.bias.wrapping_add(value) })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The hash of `DT_GNU_HASH`.
fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::super::memory::mappings;
    use super::*;

    #[test]
    fn functions_of_our_own_c_library_are_found() {
        let pid = std::process::id();
        let memory = Memory::open(pid).unwrap();
        let mappings = mappings(pid).unwrap();
        let first = mappings.iter().find(|one| one.file_name() == "libc.so.6" && one.offset == 0).unwrap();
        let image = Image::load(&memory, first).unwrap();
        let getpid = image.symbol("getpid").unwrap();
        let text = mappings.iter().find(|one| one.contains(getpid.address)).unwrap();
        assert!(text.file_name() == "libc.so.6" && text.is_executable(), "{text:?}");
        assert!(image.symbol("malloc").is_some() && image.symbol("no_such_function").is_none());
        let stack = mappings.iter().find(|one| one.name == "[stack]").unwrap();
        assert!(Image::load(&memory, stack).is_err());
    }

    #[test]
    fn machines() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(Machine::of(&own[..64]) == Machine::X86_64, cfg!(target_arch = "x86_64"));
        assert_eq!(Machine::of(b"\x7fELF\x01\x01"), Machine::Other);
        assert_eq!(Machine::of(b""), Machine::Other);
    }

    #[test]
    fn the_hash_is_that_of_the_format() {
        assert_eq!((gnu_hash(""), gnu_hash("printf")), (0x1505, 0x156b_2bb8));
    }
}
