//! Opening a table, reading all of it, and showing it.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::AtomicU64;

use shm_layout::table::{HISTORY_RESOLUTIONS, TableHeader, TableWords};
use shm_layout::{HEADER_WORDS, store_pod};
use tt_shm_os::{WriteMap, path_of, table_file_name};
use tt_shm_reader::Table;
use tt_smi::model::{Clock, Model};
use tt_smi::model::{Origin, Reading};
use tt_smi::output::json;
use tt_smi::output::paint::Paint;
use tt_smi::output::snapshot_json::SnapshotJson;
use tt_smi::output::table::{Parts, write};

use super::patch::{Patched, Step, steps};
use crate::space::Space;

struct Forged {
    map: WriteMap,
    header: TableHeader,
    path: std::path::PathBuf,
    uid: u32,
    _space: Space,
}

thread_local! {
    static TABLE: Forged = forge();
}

fn forge() -> Forged {
    let space = Space::new();
    let uid = rustix::process::geteuid().as_raw();
    let path = path_of(&table_file_name(space.namespace(), uid));
    let header = TableHeader::plan();
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).mode(0o644).open(&path).expect("a new file");
    file.set_len(header.total_len).expect("sparse files take no room");
    let map = WriteMap::new(&file, header.total_len as usize).expect("it can be mapped");
    // As an aggregator does before it publishes: what has no memory behind it is refused.
    map.populate(0, header.total_len as usize).expect("there is room");
    store_pod(map.words(), &header);
    Forged { map, header, path, uid, _space: space }
}

/// See [`super::BODIES`].
pub(super) fn run(data: &[u8]) {
    TABLE.with(|forged| {
        let blocks = blocks(forged);
        let mut patched = Patched::default();
        let early = Table::open_path(&forged.path, forged.uid);
        for step in steps(data) {
            match step {
                Step::Store { block, word, value } => patched.store(&blocks, block, word, value),
                Step::Look => {
                    early.iter().for_each(look);
                    Table::open_path(&forged.path, forged.uid).iter().for_each(look);
                }
            }
        }
    });
}

fn blocks(forged: &Forged) -> [&[AtomicU64]; 8] {
    let words = TableWords::carve(forged.map.words(), &forged.header);
    [
        &forged.map.words()[..HEADER_WORDS],
        words.control,
        words.devices.as_flattened(),
        words.processes.as_flattened(),
        words.usages.as_flattened(),
        words.notices.as_flattened(),
        // The first device's: a history is long.
        &words.history[0][..],
        words.failures.as_flattened(),
    ]
}

/// Everything that can be asked of a table, and everything that is shown of it.
fn look(table: &Table) {
    for resolution in 0..=HISTORY_RESOLUTIONS.len() {
        std::hint::black_box(table.history(0, resolution));
    }
    let snapshot = table.snapshot();
    let origin = Origin::Table { pid: table.header().pid, age_ns: snapshot.freshness.age_ns };
    let reading = Reading {
        snapshot,
        origin,
        clock: Clock::now(),
        rates_known: true,
        hidden: Vec::new(),
        refused_table: None,
    };
    let model = Model::new(&reading);
    let mut shown = Vec::new();
    write(&mut shown, &model, Parts { processes: true, detail: true }, Paint::PLAIN).expect("memory");
    json::write(&mut shown, &SnapshotJson::new(&model, "fuzz")).expect("memory");
    let shown = String::from_utf8(shown).expect("what is shown is text");
    assert!(!shown.contains(|c: char| c != '\n' && c.is_control()), "a terminal would obey: {shown:?}");
}
