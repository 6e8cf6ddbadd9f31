//! Random sequences of events.

use crate::oracle::{Command, Oracle, Thing};
use proptest::collection::vec;
use proptest::prelude::*;
use shm_layout::{Class, Counters, Event, EventKind, LANES, MAX_BYTES, RowKind};

fn thing() -> impl Strategy<Value = Thing> {
    let sizes = (0..1_u64 << 40, 0..1_u64 << 40, any::<bool>());
    (0..Class::COUNT, sizes, any::<bool>(), 0..3_u64).prop_map(|(class, sizes, ethernet, program)| {
        let class = Class::ALL[class];
        let (size, requested, basis) = sizes;
        let is_buffer = class.row_kind() == RowKind::Buffer;
        // A program has at most 2^32 bytes of kernels.
        let size = if class.kernel_type().is_some() { size >> 20 } else { size };
        Thing {
            class,
            size,
            requested: if is_buffer && !basis { requested } else { size },
            basis: is_buffer && basis,
            // Only kernels run on ethernet cores.
            ethernet: ethernet && class.kernel_type().is_some(),
            program,
            lane: None,
        }
    })
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        8 => thing().prop_map(Command::Allocate),
        6 => any::<usize>().prop_map(|pick| Command::Free { pick }),
        4 => (0..3_u64, any::<bool>(), 0..LANES as u8, 1..5_u32)
            .prop_map(|(program, cached, lane, times)| Command::Dispatch { program, cached, lane, times }),
        1 => (0..3_u64).prop_map(Command::EndProgram),
        1 => Just(Command::ResetPeaks),
        1 => Just(Command::Fail),
        1 => any::<bool>().prop_map(Command::Open),
        1 => any::<u64>().prop_map(Command::Gauge),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// After every single event, the counters equal the sum of what is live.
    #[test]
    fn counters_equal_the_naive_sums(commands in vec(command(), 1..120)) {
        let (mut oracle, mut counters) = (Oracle::default(), Counters::ZERO);
        for command in &commands {
            let Some(event) = oracle.carry_out(command) else { continue };
            counters.apply(&event).unwrap();
            oracle.check(&counters);
        }
    }

    /// Any event is applied to plausible counters and leaves them plausible, or is refused and leaves them
    /// unchanged.
    #[test]
    fn no_event_harms_plausible_counters(
        commands in vec(command(), 0..20),
        hostile in vec((any::<[u64; 8]>(), 0..EventKind::ALL.len(), any::<bool>()), 1..40),
    ) {
        let (mut oracle, mut counters) = (Oracle::default(), Counters::ZERO);
        for event in commands.iter().filter_map(|command| oracle.carry_out(command)) {
            counters.apply(&event).unwrap();
        }
        for (words, kind, small) in hostile {
            let mut event: Event = bytemuck::cast(words);
            event.kind = EventKind::ALL[kind] as u8;
            event.class %= Class::COUNT as u8 + 1;
            if small {
                event.size %= 2 * MAX_BYTES;
                event.address %= 2 * MAX_BYTES;
                event.aux %= 2 * MAX_BYTES;
                event.place %= 1 << LANES;
            }
            let before = counters;
            if counters.apply(&event).is_err() {
                prop_assert_eq!(before, counters);
            }
            prop_assert!(counters.is_plausible(), "after {:?}", event);
        }
    }
}
