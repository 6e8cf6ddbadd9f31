//! The bad inputs: what each is called, how it is made, and what must be said of it.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, FallocateFlags, FileType, Mode, fallocate};
use shm_layout::control::{DEVICE_COUNT, HEAD, NAME_COUNT, ROWS_PUBLISHED, STATE, UNLISTED};
use shm_layout::{Block, Class, Event, EventKind, Row, SegmentHeader, SegmentWords, store_pod};

use super::forge::{Forged, MAX_SEGMENT, device, place, put};
use crate::space::Space;

/// How a bad input is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It is left out, for a reason that has these words.
    Reason(&'static str),
    /// It is shown for what it claims, and does no harm.
    Harmless,
}

/// Something bad under a segment's name.
pub struct Made {
    /// Where it is.
    pub path: PathBuf,
    /// The segment, if it is one.
    pub forged: Option<Forged>,
    /// What else has to stay.
    keep: Option<UnixListener>,
}

impl Drop for Made {
    fn drop(&mut self) {
        self.keep = None;
        if std::fs::remove_file(&self.path).is_err() {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

impl From<Forged> for Made {
    fn from(forged: Forged) -> Made {
        Made { path: forged.path.clone(), forged: Some(forged), keep: None }
    }
}

impl From<PathBuf> for Made {
    fn from(path: PathBuf) -> Made {
        Made { path, forged: None, keep: None }
    }
}

/// One bad input.
pub struct Case {
    /// What it is called.
    pub name: &'static str,
    /// Makes it; `None` if this user or system cannot.
    pub make: fn(&Space) -> Option<Made>,
    /// Done to it once it is followed, if a daemon follows it.
    pub then: Option<fn(&Forged)>,
    /// What a daemon must say.
    pub followed: Expect,
    /// What is said by who looks once, afterwards.
    pub direct: Expect,
}

const fn case(name: &'static str, expect: Expect, make: fn(&Space) -> Option<Made>) -> Case {
    Case { name, make, then: None, followed: expect, direct: expect }
}

const fn refused(name: &'static str, why: &'static str, make: fn(&Space) -> Option<Made>) -> Case {
    case(name, Expect::Reason(why), make)
}

const fn harmless(name: &'static str, make: fn(&Space) -> Option<Made>) -> Case {
    case(name, Expect::Harmless, make)
}

fn made(made: impl Into<Made>) -> Option<Made> {
    Some(made.into())
}

fn header(space: &Space, change: impl FnOnce(&mut SegmentHeader)) -> Option<Made> {
    made(Forged::new(space, (64, 64, 4096), change))
}

fn filled(space: &Space, fill: impl FnOnce(&SegmentWords<'_, AtomicU64>)) -> Option<Made> {
    made(Forged::prepared(space, (64, 64, 4096), |_| {}, fill))
}

fn set(words: &SegmentWords<'_, AtomicU64>, control: usize, value: u64) {
    words.control[control].store(value, Ordering::Relaxed);
}

fn add_devices(words: &SegmentWords<'_, AtomicU64>, count: usize) {
    for index in 0..count {
        store_pod(&words.devices[index], &device(super::DEVICE_CHIP + index as u64));
    }
    set(words, DEVICE_COUNT, count as u64);
}

/// Events from the first on, each as it is but for its stamp, and the head behind them.
fn add_events(words: &SegmentWords<'_, AtomicU64>, events: &[Event]) {
    add_devices(words, 1);
    for (stamp, event) in (1..).zip(events) {
        store_pod(&words.ring[stamp as usize % words.ring.len()], &Event { stamp, ..*event });
        set(words, HEAD, stamp);
    }
}

fn event(kind: EventKind, size: u64) -> Event {
    Event { class: Class::Dram as u8, size, aux: size, id: 7, row: 3, ..Event::new(kind, 0) }
}

/// Puts a small ring where there is memory, over the list of devices.
fn small_ring(header: &mut SegmentHeader) {
    header.ring = Block { offset: header.devices.offset, capacity: 64 };
}

fn node(space: &Space, kind: FileType, device: u64) -> Option<Made> {
    let path = place(space);
    rustix::fs::mknodat(CWD, &path, kind, Mode::from_raw_mode(0o600), device).ok()?;
    made(path)
}

fn symlink(space: &Space, target: &Path) -> Option<Made> {
    let path = place(space);
    std::os::unix::fs::symlink(target, &path).ok()?;
    made(path)
}

fn fill_all(words: &[AtomicU64], value: u64) {
    words.iter().for_each(|word| word.store(value, Ordering::Relaxed));
}

/// Every case.
pub const CASES: &[Case] = &[
    refused("empty", "has 0 bytes, expected", |space| made(put(space, b"", 0, 0o600))),
    refused("a few bytes", "has 100 bytes, expected", |space| made(put(space, b"TTSHMSEG", 100, 0o600))),
    refused("all holes", "published header words are not backed", |space| {
        made(put(space, b"", 1 << 20, 0o600))
    }),
    refused("all zero", "magic is 0x0000000000000000", |space| made(put(space, &[0; 4096], 1 << 20, 0o600))),
    refused("all 0xff", "magic is 0xffffffffffffffff", |space| {
        made(put(space, &[0xff; 1 << 20], 1 << 20, 0o600))
    }),
    refused("huge and sparse", "has 8589934592 bytes, expected", |space| {
        made(put(space, b"TTSHMSEG", 8 << 30, 0o600))
    }),
    refused("the longest there is", "has 9223372036854771712 bytes", |space| {
        made(put(space, b"TTSHMSEG", (1 << 63) - 4096, 0o600))
    }),
    refused("cut short before it is mapped", "header says total_len", |space| {
        let forged = Forged::honest(space);
        let bytes = std::fs::read(&forged.path).ok()?;
        made(put(space, &bytes[..bytes.len() / 2], bytes.len() as u64 / 2, 0o600))
    }),
    refused("wrong magic", "not a file of the memory monitor", |space| {
        header(space, |header| header.magic ^= 1)
    }),
    refused("a table's magic", "not a file of the memory monitor", |space| {
        header(space, |header| header.magic = u64::from_le_bytes(*b"TTSHMTAB"))
    }),
    refused("another version", "layout 3.7 cannot be read", |space| {
        header(space, |header| (header.major, header.minor) = (3, 7))
    }),
    refused("a feature from the future", "uses features 0x4", |space| {
        header(space, |header| header.incompatible = 4)
    }),
    refused("a header of another length", "header_len", |space| {
        header(space, |header| header.header_len = u64::MAX)
    }),
    refused("a length that lies", "total_len", |space| header(space, |header| header.total_len = u64::MAX)),
    refused("a ring outside", "block ring", |space| header(space, |header| header.ring.offset = 1 << 40)),
    refused("rows that begin inside and end outside", "block rows", |space| {
        header(space, |header| header.rows.capacity = 1 << 20)
    }),
    refused("an offset that overflows", "block counters", |space| {
        header(space, |header| header.counters.offset = u64::MAX - 127)
    }),
    refused("a capacity that overflows", "block rows", |space| {
        header(space, |header| header.rows.capacity = 1 << 62)
    }),
    refused("an offset between two words", "block rows", |space| {
        header(space, |header| header.rows.offset += 4)
    }),
    refused("a ring not a power of two", "ring slots", |space| {
        header(space, |header| header.ring.capacity = 63)
    }),
    refused("a ring too small", "ring slots", |space| header(space, |header| header.ring.capacity = 2)),
    refused("no ring", "block ring", |space| header(space, |header| header.ring.capacity = 0)),
    refused("too many devices", "header says devices", |space| {
        header(space, |header| header.devices.capacity = 1 << 20)
    }),
    refused("another process's name", "renamed or forged", |space| header(space, |header| header.pid += 1)),
    refused("another segment's name", "renamed or forged", |space| {
        header(space, |header| header.identity ^= 1)
    }),
    refused("no such clock", "clock_kind = 99", |space| header(space, |header| header.clock_kind = 99)),
    harmless("a clock that stands at the end of time", |space| {
        header(space, |header| {
            (header.anchor_ticks, header.anchor_monotonic_ns) = (u64::MAX, u64::MAX);
            header.anchor_realtime_ns = u64::MAX;
        })
    }),
    harmless("blocks on top of each other", |space| {
        header(space, |header| {
            (header.rows.offset, header.name_bytes.offset) = (header.ring.offset, header.ring.offset);
            header.counters.offset = header.devices.offset;
        })
    }),
    harmless("all 0xff behind the header", |space| {
        filled(space, |words| {
            let blocks = [words.control, words.name_index, words.name_bytes];
            blocks.iter().for_each(|block| fill_all(block, u64::MAX));
            fill_all(words.devices.as_flattened(), u64::MAX);
            fill_all(words.counters.as_flattened(), u64::MAX);
            fill_all(words.ring.as_flattened(), u64::MAX);
            fill_all(words.rows.as_flattened(), u64::MAX);
        })
    }),
    harmless("a head far ahead", |space| {
        filled(space, |words| {
            add_devices(words, 1);
            set(words, HEAD, 1 << 62);
        })
    }),
    harmless("a head at the end of the numbers", |space| {
        filled(space, |words| {
            add_devices(words, 1);
            set(words, HEAD, u64::MAX);
        })
    }),
    Case {
        name: "a head that goes backwards",
        make: |space| filled(space, |words| add_events(words, &[event(EventKind::Alloc, 64); 20])),
        then: Some(|forged| (0..19).for_each(|head| forged.set(HEAD, 19 - head))),
        followed: Expect::Harmless,
        direct: Expect::Harmless,
    },
    harmless("stamps that lie", |space| {
        filled(space, |words| {
            add_events(words, &[event(EventKind::Alloc, 64); 8]);
            for (slot, stamp) in words.ring.iter().zip([65, u64::MAX, 3, 1 << 63, 0]) {
                slot[0].store(stamp, Ordering::Relaxed);
            }
        })
    }),
    refused("a free of what never was", "event 1", |space| {
        filled(space, |words| add_events(words, &[event(EventKind::Free, 64)]))
    }),
    refused("a size near 2^64", "event 1", |space| {
        filled(space, |words| add_events(words, &[event(EventKind::Alloc, u64::MAX - 7)]))
    }),
    refused("sizes that add up to 2^64", "event", |space| {
        filled(space, |words| add_events(words, &[event(EventKind::Alloc, 1 << 49); 60]))
    }),
    harmless("kinds, classes and devices that do not exist", |space| {
        filled(space, |words| {
            let foreign = Event { kind: 250, ..event(EventKind::Alloc, 1) };
            add_events(
                words,
                &[foreign, Event { kind: 0, device: 200, ..foreign }, Event { device: 127, ..foreign }],
            );
        })
    }),
    refused("counters near 2^64", "impossible counters on device 0", |space| {
        filled(space, |words| {
            add_devices(words, 1);
            fill_all(&words.counters[0][..], u64::MAX - 1);
            // Even, so that the latch looks at rest.
            set(words, HEAD, 1 << 20);
        })
    }),
    harmless("128 devices of 2^63 bytes", |space| filled(space, |words| add_devices(words, 128))),
    harmless("more devices than there can be", |space| {
        filled(space, |words| {
            add_devices(words, 2);
            set(words, DEVICE_COUNT, u64::MAX);
        })
    }),
    harmless("rows that lie", |space| {
        filled(space, |words| {
            add_devices(words, 1);
            for (number, row) in words.rows.iter().enumerate() {
                let wild: Row = bytemuck::cast([u64::MAX - number as u64; 8]);
                store_pod(
                    row,
                    &Row {
                        kind: number as u8 % 6,
                        class: number as u8 % 12,
                        device: number as u8 % 3,
                        ..wild
                    },
                );
            }
            set(words, ROWS_PUBLISHED, u64::MAX);
            set(words, UNLISTED, u64::MAX);
            set(words, STATE, u64::MAX);
        })
    }),
    refused(
        "a ring of a gigabyte without memory behind it",
        "published event slots are not backed",
        |space| {
            made(Forged::prepared(
                space,
                MAX_SEGMENT,
                |_| {},
                |words| {
                    add_devices(words, 1);
                    set(words, HEAD, 1 << 24);
                },
            ))
        },
    ),
    refused("eight million rows without memory behind them", "published rows are not backed", |space| {
        made(Forged::prepared(space, MAX_SEGMENT, small_ring, |words| {
            set(words, ROWS_PUBLISHED, u64::MAX);
        }))
    }),
    refused("names without memory behind them", "published names are not backed", |space| {
        made(Forged::prepared(space, MAX_SEGMENT, small_ring, |words| set(words, NAME_COUNT, u64::MAX)))
    }),
    refused("devices without memory behind them", "published counters are not backed", |space| {
        made(Forged::prepared(space, MAX_SEGMENT, small_ring, |words| {
            set(words, DEVICE_COUNT, 128);
        }))
    }),
    Case {
        name: "rows that are published later, without memory behind them",
        make: |space| made(Forged::prepared(space, MAX_SEGMENT, small_ring, |_| {})),
        then: Some(|forged| forged.set(ROWS_PUBLISHED, u64::MAX)),
        followed: Expect::Reason("published rows are not backed"),
        direct: Expect::Reason("published rows are not backed"),
    },
    Case {
        name: "holes punched into its ring",
        make: |space| filled(space, |words| add_events(words, &[event(EventKind::Alloc, 64); 8])),
        then: Some(|forged| {
            let Block { offset, .. } = forged.header.ring;
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&forged.file, flags, offset / 4096 * 4096, 8192).expect("tmpfs has holes");
        }),
        followed: Expect::Reason("are not backed"),
        direct: Expect::Reason("are not backed"),
    },
    harmless("a process name without end", |space| header(space, |header| header.process_name = [b'A'; 64])),
    harmless("a process name that is not UTF-8", |space| {
        header(space, |header| header.process_name = [0xff; 64])
    }),
    harmless("names that a terminal would obey", |space| {
        let name = b"\x1b]0;owned\x07\xc2\x9b31m\r\xe2\x80\xae\\";
        let forged = Forged::prepared(
            space,
            (64, 64, 4096),
            |header| header.process_name[..name.len()].copy_from_slice(name),
            |words| add_events(words, &[Event { name: 1, site: 1, ..event(EventKind::Alloc, 64) }]),
        );
        forged.intern(name, name.len() as u64);
        let row = Row::from_event(&Event { stamp: 1, name: 1, site: 1, ..event(EventKind::Alloc, 64) });
        store_pod(&forged.words().rows[3], &row);
        forged.set(ROWS_PUBLISHED, 64);
        made(forged)
    }),
    harmless("interned names that end outside", |space| {
        let named = Event { name: 1, site: 2, ..event(EventKind::Alloc, 64) };
        let forged = Forged::prepared(space, (64, 64, 4096), |_| {}, |words| add_events(words, &[named]));
        forged.intern(b"abc", u64::from(u32::MAX) << 32 | u64::from(u32::MAX));
        forged.words().name_index[2].store(4090 << 32 | 1024, Ordering::Relaxed);
        forged.set(NAME_COUNT, u64::MAX);
        made(forged)
    }),
    refused("a symbolic link to nowhere", "is a symbolic link", |space| {
        symlink(space, Path::new("/nonexistent"))
    }),
    refused("a symbolic link to a secret", "is a symbolic link", |space| {
        symlink(space, Path::new("/etc/shadow"))
    }),
    refused("a symbolic link to an honest segment", "is a symbolic link", |space| {
        symlink(space, space.segments().first()?)
    }),
    refused("a FIFO", "is a FIFO", |space| node(space, FileType::Fifo, 0)),
    refused("a directory", "is a directory", |space| {
        let path = place(space);
        std::fs::create_dir(&path).ok()?;
        made(path)
    }),
    refused("a socket", "is a socket", |space| {
        let path = place(space);
        let keep = UnixListener::bind(&path).ok();
        Some(Made { path, forged: None, keep })
    }),
    refused("a character device", "is a device", |space| {
        node(space, FileType::CharacterDevice, rustix::fs::makedev(1, 5))
    }),
    refused("a block device", "is a device", |space| {
        node(space, FileType::BlockDevice, rustix::fs::makedev(7, 200))
    }),
    refused("two hard links", "2 hard links", |space| {
        let path = place(space);
        let other = space.folder_name("second-name");
        std::fs::write(&other, b"TTSHMSEG").ok()?;
        std::fs::hard_link(&other, &path).ok()?;
        made(path)
    }),
    refused("writable by its group", "can be written by others", |space| {
        made(put(space, b"", 1 << 20, 0o620))
    }),
    refused("writable by all", "can be written by others", |space| made(put(space, b"", 1 << 20, 0o602))),
    Case {
        name: "cut short while it is mapped",
        make: |space| filled(space, |words| add_events(words, &[event(EventKind::Alloc, 64); 8])),
        then: Some(|forged| forged.file.set_len(4096).expect("our own file")),
        followed: Expect::Reason("truncated while it was mapped"),
        direct: Expect::Reason("total_len"),
    },
    Case {
        name: "emptied while it is mapped",
        make: |space| filled(space, |words| add_events(words, &[event(EventKind::Alloc, 64); 8])),
        then: Some(|forged| forged.file.set_len(0).expect("our own file")),
        followed: Expect::Reason("truncated while it was mapped"),
        direct: Expect::Reason("has 0 bytes"),
    },
    Case {
        name: "grown while it is mapped",
        make: |space| filled(space, |words| add_events(words, &[event(EventKind::Alloc, 64); 8])),
        then: Some(|forged| forged.file.set_len(8 << 30).expect("our own file")),
        followed: Expect::Harmless,
        direct: Expect::Reason("has 8589934592 bytes"),
    },
];
