//! Any sequence of calls on any part of a mesh: what is resident, and the peaks of L1, are those of a plain set.

mod common;

use common::{info, observe, open_with};
use proptest::prelude::*;
use shm_layout::{Class, MAX_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, CoreType, Device, Kernel, KernelType, Mesh, ProgramBinaryStatus,
    Record, Tracker,
};

#[derive(Clone, Copy, Debug)]
enum Call {
    L1,
    Free,
    CbAlloc,
    CbFree,
    Load,
    Unload,
    Launch,
    Dispatch,
    EndProgram,
    ResetPeaks,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    call: Call,
    /// Bits: which devices.
    devices: u8,
    id: u64,
    program: u64,
    size: u64,
    too_large: bool,
}

/// A circular buffer of a program, or a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Cb { program: u64, id: u64 },
    Kernel { id: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Facts {
    program: u64,
    size: u64,
}

/// One device.
#[derive(Default)]
struct Oracle {
    buffers: BTreeMap<u64, u64>,
    members: BTreeMap<Member, Facts>,
    resident: BTreeSet<Member>,
    dispatches: u64,
    l1_peak: u64,
    eth_peak: u64,
}

fn kernel_type(id: u64) -> KernelType {
    [KernelType::Application, KernelType::Fabric, KernelType::Dispatch][(id % 3) as usize]
}

fn is_ethernet(member: Member) -> bool {
    matches!(member, Member::Kernel { id } if !id.is_multiple_of(2))
}

fn is_application(member: Member) -> bool {
    match member {
        Member::Cb { .. } => true,
        Member::Kernel { id } => kernel_type(id) == KernelType::Application,
    }
}

impl Oracle {
    fn of_program(&self, program: u64) -> Vec<Member> {
        self.members.iter().filter(|(_, facts)| facts.program == program).map(|(member, _)| *member).collect()
    }

    fn dispatch(&mut self, program: u64) -> bool {
        let members = self.of_program(program);
        if members.is_empty() {
            return false;
        }
        self.dispatches += 1;
        if members.iter().any(|member| is_application(*member)) {
            self.resident = members.into_iter().filter(|member| is_application(*member)).collect();
        }
        true
    }

    fn remove(&mut self, member: Member) -> bool {
        self.resident.remove(&member);
        self.members.remove(&member).is_some()
    }

    fn add(&mut self, member: Member, step: &Step) -> bool {
        let fits = !step.too_large && !self.members.contains_key(&member);
        if fits {
            self.members.insert(member, Facts { program: step.program, size: step.size });
        }
        fits
    }

    fn load(&mut self, step: &Step, launch: bool) -> bool {
        let kernel = Member::Kernel { id: step.id };
        match self.members.get(&kernel).copied() {
            Some(loaded) if self.of_program(step.program).is_empty() => self.dispatch(loaded.program),
            Some(_) => self.dispatch(step.program),
            None => {
                let added = self.add(kernel, step);
                // A launch loads first, and a fabric or dispatch kernel is resident from then on.
                self.raise_peaks();
                added && (!launch || self.dispatch(step.program))
            }
        }
    }

    fn carry_out(&mut self, step: &Step) -> bool {
        let Step { call, id, program, size, .. } = *step;
        let done = match call {
            Call::L1 => {
                let fits = !step.too_large && !self.buffers.contains_key(&id);
                if fits {
                    self.buffers.insert(id, size);
                }
                fits
            }
            Call::Free => self.buffers.remove(&id).is_some(),
            Call::CbAlloc => self.add(Member::Cb { program, id }, step),
            Call::CbFree => self.remove(Member::Cb { program, id }),
            Call::Load => self.load(step, false),
            Call::Launch => self.load(step, true),
            Call::Unload => self.remove(Member::Kernel { id }),
            Call::Dispatch => self.dispatch(program),
            Call::EndProgram => {
                let members = self.of_program(program);
                members.iter().for_each(|member| _ = self.remove(*member));
                !members.is_empty()
            }
            Call::ResetPeaks => {
                (self.l1_peak, self.eth_peak) = (0, 0);
                true
            }
        };
        self.raise_peaks();
        done
    }

    fn raise_peaks(&mut self) {
        self.l1_peak = self.l1_peak.max(self.l1());
        self.eth_peak = self.eth_peak.max(self.kernels(true, true) + self.kernels(true, false));
    }

    /// Bytes of kernels: those of applications that are resident, or all others.
    fn kernels(&self, ethernet: bool, application: bool) -> u64 {
        let counts = |member: Member| {
            matches!(member, Member::Kernel { .. })
                && is_ethernet(member) == ethernet
                && is_application(member) == application
                && (!application || self.resident.contains(&member))
        };
        self.members.iter().filter(|(member, _)| counts(**member)).map(|(_, facts)| facts.size).sum()
    }

    fn cbs(&self) -> u64 {
        let cbs = self.resident.iter().filter(|member| matches!(member, Member::Cb { .. }));
        cbs.map(|member| self.members[member].size).sum()
    }

    fn l1(&self) -> u64 {
        self.buffers.values().sum::<u64>()
            + self.cbs()
            + self.kernels(false, true)
            + self.kernels(false, false)
    }
}

fn call(tracker: &Tracker, target: &Mesh, step: &Step) -> bool {
    let Step { call, id, program, .. } = *step;
    let bytes = if step.too_large { MAX_BYTES + 1 } else { step.size };
    let cores = if id.is_multiple_of(2) { CoreType::Tensix } else { CoreType::Ethernet };
    let kernel = Kernel::new(id, kernel_type(id), cores, bytes, 1).program(program);
    match call {
        Call::L1 => tracker.alloc(target, Alloc::new(BufferType::L1, id, bytes)),
        Call::Free => tracker.free(target, id),
        Call::CbAlloc => tracker.cb_alloc(target, CircularBuffer::new(program, id, bytes, 1)),
        Call::CbFree => tracker.cb_free(target, program, id, None),
        Call::Load => tracker.kernel_load(target, kernel).map(|_| ()),
        Call::Launch => tracker.launch(target, kernel, ProgramBinaryStatus::NotSent),
        Call::Unload => tracker.kernel_unload(target, id, None),
        Call::Dispatch => tracker.dispatch(target, program),
        Call::EndProgram => tracker.program_end(target, program),
        Call::ResetPeaks => tracker.reset_peaks(target),
    }
    .is_ok()
}

fn compare(tracker: &Tracker, device: Device, oracle: &Oracle, step: &Step) {
    let own = tracker.counters(device).unwrap();
    let said = [
        own.cb_resident_bytes,
        own.kernel_resident_bytes,
        own.kernel_resident_eth_bytes,
        own.system_kernel_bytes,
        own.system_kernel_eth_bytes,
        own.l1_used(),
        own.l1_peak_bytes,
        own.eth_peak_bytes,
        own.dispatches,
        own.class(Class::L1).live_count,
    ];
    let expected = [
        oracle.cbs(),
        oracle.kernels(false, true),
        oracle.kernels(true, true),
        oracle.kernels(false, false),
        oracle.kernels(true, false),
        oracle.l1(),
        oracle.l1_peak,
        oracle.eth_peak,
        oracle.dispatches,
        oracle.buffers.len() as u64,
    ];
    assert_eq!(said, expected, "after {step:?}");
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use Call::*;
    let calls = vec![
        L1, Free, CbAlloc, CbAlloc, CbFree, Load, Load, Unload, Launch, Launch, Dispatch, Dispatch, Dispatch,
        EndProgram, ResetPeaks,
    ];
    let extreme = |few: u64| prop_oneof![20 => 0..few, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)];
    let step = (
        prop::sample::select(calls),
        1..8_u8,
        extreme(9),
        extreme(4),
        0..1000_u64,
        prop::bool::weighted(0.05),
    );
    let step = step.prop_map(|(call, devices, id, program, size, too_large)| Step {
        call,
        devices,
        id,
        program,
        size,
        too_large,
    });
    prop::collection::vec(step, 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_resident_is_what_was_dispatched_last(
        rows in prop::sample::select(vec![1_u64, 3, 16, 5000]),
        steps in steps(),
    ) {
        let tracker = open_with(|builder| builder.live_capacity(rows).ring_slots(64));
        let devices: Vec<Device> = (0..3).map(|chip| tracker.register_device(&info(chip)).unwrap()).collect();
        let mut oracles: [Oracle; 3] = Default::default();
        for step in &steps {
            let meant: Vec<usize> = (0..3).filter(|device| step.devices >> device & 1 == 1).collect();
            let target = Mesh::new(meant.iter().map(|device| devices[*device]).collect::<Vec<_>>());
            let mut all = true;
            meant.iter().for_each(|device| all &= oracles[*device].carry_out(step));
            prop_assert_eq!(call(&tracker, &target, step), all, "{:?}", step);
            (0..3).for_each(|device| compare(&tracker, devices[device], &oracles[device], step));
        }
        let seen = observe(&tracker).counters().unwrap();
        for (number, device) in devices.iter().enumerate() {
            prop_assert_eq!(seen.counters[number], tracker.counters(*device).unwrap());
        }
    }
}
