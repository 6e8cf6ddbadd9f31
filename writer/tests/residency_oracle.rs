//! Any sequence of calls on any part of a mesh: what is resident, and the peaks of L1, match those of plain
//! sets, and a call that one device refuses changes none.

use crate::common::{info, observe, open_with};
use proptest::prelude::*;
use shm_layout::{Class, MAX_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, CoreType, Device, Dispatch, Kernel, KernelType, Launch, Mesh,
    ProgramBinaryStatus, Record, Tracker,
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
    /// The devices, as bits.
    devices: u8,
    id: u64,
    program: u64,
    /// Whether a kernel names the program that runs it.
    names_program: bool,
    size: u64,
    too_large: bool,
    lane: u8,
    times: u32,
}

/// A circular buffer of a program, or a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Cb { program: u64, id: u64 },
    Kernel { id: u64 },
}

#[derive(Clone, Debug)]
struct Facts {
    size: u64,
    /// The program that it belongs to, or that loaded it.
    program: u64,
    /// The programs that run it.
    runners: BTreeSet<u64>,
}

/// One device.
#[derive(Clone, Default)]
struct Oracle {
    /// Bytes requested; a buffer occupies [`occupied`] bytes.
    buffers: BTreeMap<u64, u64>,
    members: BTreeMap<Member, Facts>,
    /// By lane, the program that was dispatched last and what is resident of it.
    lanes: BTreeMap<u8, (u64, BTreeSet<Member>)>,
    dispatches: u64,
    l1_peak: u64,
    eth_peak: u64,
}

fn occupied(size: u64) -> u64 {
    3 * size + 1
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

/// The kernels that a launch has.
fn launched(id: u64) -> [u64; 3] {
    [id, id.wrapping_add(1), id.wrapping_add(3)]
}

impl Oracle {
    fn of_program(&self, program: u64) -> BTreeSet<Member> {
        let its = self.members.iter().filter(|(_, facts)| facts.runners.contains(&program));
        its.map(|(member, _)| *member).collect()
    }

    fn dispatch(&mut self, program: u64, lane: u8, times: u32) -> bool {
        let members = self.of_program(program);
        if members.is_empty() || lane >= 8 {
            return false;
        }
        self.dispatches += u64::from(times);
        let applications: BTreeSet<Member> =
            members.into_iter().filter(|member| is_application(*member)).collect();
        if times > 0 && !applications.is_empty() {
            self.lanes.retain(|_, (resident, _)| *resident != program);
            self.lanes.insert(lane, (program, applications));
        }
        true
    }

    fn remove(&mut self, member: Member) -> bool {
        let facts = self.members.remove(&member);
        self.lanes.values_mut().for_each(|(_, members)| _ = members.remove(&member));
        self.end_empty();
        facts.is_some()
    }

    /// A program of which nothing is left leaves its lane.
    fn end_empty(&mut self) {
        let lanes = std::mem::take(&mut self.lanes);
        self.lanes =
            lanes.into_iter().filter(|(_, (program, _))| !self.of_program(*program).is_empty()).collect();
    }

    fn add(&mut self, member: Member, program: u64, step: &Step) -> bool {
        let fits = !step.too_large && !self.members.contains_key(&member);
        if fits {
            let facts = Facts { size: step.size, program, runners: BTreeSet::from([program]) };
            self.members.insert(member, facts);
        }
        fits
    }

    fn load(&mut self, step: &Step) -> bool {
        let kernel = Member::Kernel { id: step.id };
        let named = Some(step.program).filter(|_| step.names_program);
        match self.members.get_mut(&kernel) {
            Some(loaded) => {
                let program = named.unwrap_or(loaded.program);
                loaded.runners.insert(program);
                self.dispatch(program, 0, 1)
            }
            None => self.add(kernel, named.unwrap_or(step.id), step),
        }
    }

    /// Loads what is not loaded, and dispatches once.
    fn launch(&mut self, step: &Step) -> bool {
        let kernels = launched(step.id).map(|id| Member::Kernel { id });
        let is_missing = |kernel: &Member| !self.members.contains_key(kernel);
        if step.lane >= 8 || step.too_large && kernels.iter().any(is_missing) {
            return false;
        }
        for kernel in kernels {
            match self.members.get_mut(&kernel) {
                Some(loaded) => _ = loaded.runners.insert(step.program),
                None => _ = self.add(kernel, step.program, step),
            }
            // A fabric or dispatch kernel is resident from then on.
            self.raise_peaks();
        }
        self.dispatch(step.program, step.lane, 1)
    }

    fn end_program(&mut self, program: u64) -> bool {
        let members = self.of_program(program);
        for member in &members {
            let facts = self.members.get_mut(member).unwrap();
            if facts.program == program {
                self.members.remove(member);
                self.lanes.values_mut().for_each(|(_, members)| _ = members.remove(member));
            } else {
                facts.runners.remove(&program);
            }
        }
        self.end_empty();
        !members.is_empty()
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
            Call::CbAlloc => self.add(Member::Cb { program, id }, program, step),
            Call::CbFree => self.remove(Member::Cb { program, id }),
            Call::Load => self.load(step),
            Call::Launch => self.launch(step),
            Call::Unload => self.remove(Member::Kernel { id }),
            Call::Dispatch => self.dispatch(program, step.lane, step.times),
            Call::EndProgram => self.end_program(program),
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
        self.eth_peak = self.eth_peak.max(self.resident_kernels(true) + self.system_kernels(true));
    }

    /// Sizes of what is resident, once for each lane.
    fn resident(&self, wanted: impl Fn(Member) -> bool) -> u64 {
        let members = self.lanes.values().flat_map(|(_, members)| members);
        members.filter(|member| wanted(**member)).map(|member| self.members[member].size).sum()
    }

    fn resident_kernels(&self, ethernet: bool) -> u64 {
        let is_kernel = |member| matches!(member, Member::Kernel { .. });
        self.resident(|member| is_kernel(member) && is_ethernet(member) == ethernet)
    }

    fn system_kernels(&self, ethernet: bool) -> u64 {
        let counts = |member: Member| !is_application(member) && is_ethernet(member) == ethernet;
        self.members.iter().filter(|(member, _)| counts(**member)).map(|(_, facts)| facts.size).sum()
    }

    fn cbs(&self) -> u64 {
        self.resident(|member| matches!(member, Member::Cb { .. }))
    }

    fn l1(&self) -> u64 {
        self.buffers.values().map(|size| occupied(*size)).sum::<u64>() + self.cbs()
    }
}

fn kernel(step: &Step, id: u64, bytes: u64) -> Kernel {
    let cores = if id.is_multiple_of(2) { CoreType::Tensix } else { CoreType::Ethernet };
    let kernel = Kernel::new(id, kernel_type(id), cores, bytes, 1);
    if step.names_program { kernel.program(step.program) } else { kernel }
}

fn call(tracker: &Tracker, target: &Mesh, step: &Step) -> bool {
    let Step { call, id, program, lane, .. } = *step;
    let bytes = if step.too_large { MAX_BYTES + 1 } else { step.size };
    match call {
        Call::L1 => tracker.alloc(target, Alloc::new(BufferType::L1, id, bytes).occupied(occupied(bytes))),
        Call::Free => tracker.free(target, id),
        Call::CbAlloc => tracker.cb_alloc(target, CircularBuffer::new(program, id, bytes, 1)),
        Call::CbFree => tracker.cb_free(target, program, id, None),
        Call::Load => tracker.kernel_load(target, kernel(step, id, bytes)).map(|_| ()),
        Call::Launch => {
            let kernels = launched(id).map(|id| kernel(step, id, bytes));
            tracker.launch(target, Launch::new(program, &kernels, ProgramBinaryStatus::NotSent).lane(lane))
        }
        Call::Unload => tracker.kernel_unload(target, id, None),
        Call::Dispatch => tracker.dispatch(target, Dispatch::new(program).lane(lane).times(step.times)),
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
        own.l1_requested(),
        own.l1_peak_bytes,
        own.eth_peak_bytes,
        own.dispatches,
        own.class(Class::L1).live_count,
    ];
    let expected = [
        oracle.cbs(),
        oracle.resident_kernels(false),
        oracle.resident_kernels(true),
        oracle.system_kernels(false),
        oracle.system_kernels(true),
        oracle.l1(),
        oracle.buffers.values().sum::<u64>() + oracle.cbs(),
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
        (0..1000_u64, prop::bool::weighted(0.05)),
        any::<bool>(),
        // A device has eight lanes.
        prop_oneof![4 => Just(0_u8), 4 => 0..4_u8, 1 => 7..9_u8],
        prop_oneof![4 => Just(1_u32), 1 => 0..5_u32],
    );
    let step = step.prop_map(|(call, devices, id, program, sizes, names_program, lane, times)| Step {
        call,
        devices,
        id,
        program,
        names_program,
        size: sizes.0,
        too_large: sizes.1,
        lane,
        times,
    });
    prop::collection::vec(step, 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_resident_is_what_was_dispatched_last_in_each_lane(
        rows in prop::sample::select(vec![1_u64, 3, 16, 5000]),
        steps in steps(),
    ) {
        let tracker = open_with(|builder| builder.live_capacity(rows).ring_slots(64));
        let devices: Vec<Device> = (0..3).map(|chip| tracker.register_device(&info(chip)).unwrap()).collect();
        let mut oracles: [Oracle; 3] = Default::default();
        for step in &steps {
            let meant: Vec<usize> = (0..3).filter(|device| step.devices >> device & 1 == 1).collect();
            let target = Mesh::new(meant.iter().map(|device| devices[*device]).collect::<Vec<_>>());
            let mut after = oracles.clone();
            let all = meant.iter().fold(true, |all, device| all & after[*device].carry_out(step));
            // What one device refuses happens on none.
            if all {
                oracles = after;
            }
            prop_assert_eq!(call(&tracker, &target, step), all, "{:?}", step);
            (0..3).for_each(|device| compare(&tracker, devices[device], &oracles[device], step));
        }
        let seen = observe(&tracker).counters().unwrap();
        for (number, device) in devices.iter().enumerate() {
            prop_assert_eq!(seen.counters[number], tracker.counters(*device).unwrap());
        }
    }
}
