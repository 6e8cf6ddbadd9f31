//! The same checks on protocols that lack something: each must fail, or it proves nothing about the
//! sound ones.

use crate::cells::{cell, expect_first, latch, overwrite};
use crate::commit::{Script, attach, in_order, lap};
use crate::growth;
use crate::live::{commit_name, commit_reuse, name_list, reuse, reuse_event, walk};
use crate::word::{ModelWord, NO_ACQUIRE_FENCE, NO_RELEASE_FENCE, RELAXED_STORE, SOUND, kill_writer_after};
use shm_layout::protocol::{commit::Accounts, stamped};
use shm_layout::{Event, SegmentWords};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs a check and returns what it complained about.
fn complaint(check: impl FnOnce()) -> String {
    let result = catch_unwind(AssertUnwindSafe(check));
    kill_writer_after(usize::MAX);
    let panic = result.expect_err("a broken protocol passed its check");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default()
}

/// The complaint must be that of the check, not one of loom about the model.
macro_rules! fails {
    ($($name:ident: $check:expr => $complaint:literal;)*) => {$(
        #[test]
        fn $name() {
            let complaint = complaint(|| $check);
            assert!(complaint.contains($complaint), "{complaint}");
        }
    )*};
}

const TWO: Script = Script { events: 2, stores: usize::MAX, preemptions: 3 };
/// The latch turns twice, so that the copy which is being read is written.
const FOUR: Script = Script { events: 4, preemptions: 2, ..TWO };

fails! {
    cell_without_release_fence:
        cell(&Arc::default(), overwrite::<NO_RELEASE_FENCE>, expect_first) => "torn";
    cell_without_acquire_fence:
        cell(&Arc::default(), overwrite::<NO_ACQUIRE_FENCE>, expect_first) => "torn";
    cell_with_relaxed_stamp:
        cell(&Arc::default(), overwrite::<RELAXED_STORE>, |cell| stamped::read(&cell[..])) => "torn";
    latch_without_release_fence: latch::<NO_RELEASE_FENCE>(&Arc::default(), 3, 1) => "torn";
    latch_without_acquire_fence: latch::<NO_ACQUIRE_FENCE>(&Arc::default(), 3, 1) => "torn";
    latch_with_relaxed_sequence: latch::<RELAXED_STORE>(&Arc::default(), 1, 1) => "torn";
    ring_without_release_fence: lap::<NO_RELEASE_FENCE>(&Arc::default()) => "wrong event";
    ring_without_acquire_fence: lap::<NO_ACQUIRE_FENCE>(&Arc::default()) => "wrong event";
    ring_with_relaxed_stamp: lap::<RELAXED_STORE>(&Arc::default()) => "wrong event";
    attach_without_release_fence: attach(&Arc::default(), FOUR, in_order::<NO_RELEASE_FENCE>) => "at ";
    attach_without_acquire_fence:
        attach(&Arc::default(), TWO, in_order::<NO_ACQUIRE_FENCE>) => "the ring holds every event";
    attach_with_relaxed_stores: attach(&Arc::default(), TWO, in_order::<RELAXED_STORE>) => "at ";
    list_without_acquire_fence:
        walk::<NO_ACQUIRE_FENCE>(&Arc::default(), reuse(2), commit_reuse) => "at 2";
    list_with_relaxed_stores:
        walk::<RELAXED_STORE>(&Arc::default(), reuse(2), commit_reuse) => "at 2";
    row_before_slot: walk::<SOUND>(&Arc::default(), reuse(2), |segment, position| {
        let event = reuse_event(position);
        segment.change_row(&event, event.to_words());
        segment.write_slot(event.to_words());
        segment.publish_head(position);
    }) => "at 1";
    head_before_row: walk::<SOUND>(&Arc::default(), reuse(2), |segment, position| {
        let event = reuse_event(position);
        segment.write_slot(event.to_words());
        segment.publish_head(position);
        segment.change_row(&event, event.to_words());
    }) => "at 2";
    name_before_slot: name_list::<SOUND>(&Arc::default(), |segment, event| {
        segment.change_row(event, event.to_words());
        segment.write_slot(event.to_words());
        segment.publish_head(event.stamp);
    }) => "name at";
    name_with_relaxed_stores: name_list::<RELAXED_STORE>(&Arc::default(), commit_name) => "name at";
    name_without_acquire_fence: name_list::<NO_ACQUIRE_FENCE>(&Arc::default(), commit_name) => "name at";
    row_used_before_it_is_published: growth::walk::<SOUND>(&Arc::default(), |segment| {
        growth::allocate(segment);
        growth::grow(segment);
    }) => "at 2";
    growth_with_relaxed_stores: growth::walk::<RELAXED_STORE>(&Arc::default(), |segment| {
        growth::grow(segment);
        growth::allocate(segment);
    }) => "at ";
    counters_before_slot: attach(&Arc::default(), TWO, counters_first) => "Behind";
}

fn counters_first(segment: &SegmentWords<'_, ModelWord<SOUND>>, event: &Event, accounts: &mut Accounts) {
    // Without ring and control words a commit does the row and the counters only.
    SegmentWords { ring: &[], control: &[], ..*segment }.commit(event, None, accounts).unwrap();
    segment.write_slot(event.to_words());
    segment.publish_head(event.stamp);
}
