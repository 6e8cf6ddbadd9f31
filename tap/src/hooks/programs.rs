//! Programs: their making and end, the regions of L1 that they are given, their kernels, and their launches.

use std::ffi::{CStr, c_void};

use super::{Hook, Symbol, missing};
use crate::cxx::Vector;
use crate::metal::Device;
use crate::metal::programs::{
    CoreRanges, MeshRange, Program, ProgramHandle, Queue, Ring, SharedKernel, Workload, first_of,
};
use crate::programs::{self, Region, Regions};
use crate::ring;
use crate::shield::shielded;
use crate::{books, doing, segment};

/// Two words that a function returns in registers.
#[derive(Clone, Copy)]
#[repr(C)]
struct Two(u64, u64);

/// `std::span` that is passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct Words {
    begin: *const u32,
    length: usize,
}

/// Does something with what is collected while a function runs; nothing if it ends with an exception.
fn collect(program: Program, kind: Regions, work: impl FnOnce()) {
    struct Collecting;
    impl Drop for Collecting {
        fn drop(&mut self) {
            shielded(doing::regions_forget);
        }
    }
    shielded(|| doing::regions_begin(kind));
    let _collecting = Collecting;
    work();
    shielded(|| programs::placed(program, kind, doing::regions_end()));
}

/// Notes that a program does not fit, if the check of it ends with an exception.
struct Check {
    program: Program,
    device: Device,
    passed: bool,
}

impl Drop for Check {
    fn drop(&mut self) {
        if !self.passed {
            shielded(|| programs::clashed(self.program, self.device));
        }
    }
}

fn check(program: Program, device: Device, work: impl FnOnce()) {
    let mut check = Check { program, device, passed: false };
    work();
    check.passed = true;
}

hooks! {
    PROGRAMS:

    "_ZN2tt8tt_metal9Inspector15program_createdEPKNS0_6detail11ProgramImplE":
    fn program_created(program: Program) |forward| {
        shielded(|| programs::created(program));
        forward()
    }

    "_ZN2tt8tt_metal9Inspector17program_destroyedEPKNS0_6detail11ProgramImplE":
    fn program_destroyed(program: Program) |forward| {
        shielded(|| programs::destroyed(program));
        forward()
    }

    "_ZN2tt8tt_metal6detail11ProgramImpl25allocate_circular_buffersEPKNS0_7IDeviceE":
    fn allocate_circular_buffers(program: Program, device: Device) |forward| {
        collect(program, Regions::CircularBuffers, forward)
    }

    "_ZN2tt8tt_metal6detail11ProgramImpl25allocate_dataflow_buffersEPKNS0_7IDeviceE":
    fn allocate_dataflow_buffers(program: Program, device: Device) |forward| {
        collect(program, Regions::DataflowBuffers, forward)
    }

    "_ZN2tt8tt_metal6detail11ProgramImpl20allocate_scratchpadsEPKNS0_7IDeviceE":
    fn allocate_scratchpads(program: Program, device: Device) |forward| {
        collect(program, Regions::Scratchpads, forward)
    }

    "_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERKNS0_12CoreRangeSetEmmbPKNS0_7IDeviceE":
    fn track_allocate_cb(tracker: *mut c_void, cores: CoreRanges, address: u64, bytes: u64, in_a_buffer: bool, device: Device) |forward| {
        shielded(|| {
            let Some(count) = cores.count() else { return segment::partial() };
            let (device, rectangles) = (Some(device), cores.rectangles(count).unwrap_or_default());
            doing::region(Region { address, bytes, cores: count, in_a_buffer, device, rectangles });
        });
        forward()
    }

    // The object begins with the first and the last core of a rectangle.
    "_ZN2tt8tt_metal6detail11ProgramImpl23CircularBufferAllocator12mark_addressEmmm":
    fn mark_address(rectangle: *const [usize; 4], address: u64, bytes: u64, base: u64) |forward| {
        // SAFETY: what tt-metal has just passed, which begins with four words.
        let rectangle_is = unsafe { *rectangle };
        shielded(|| programs::marked(address, bytes, rectangle_is));
        forward()
    }

    "_ZN2tt8tt_metal6detail11ProgramImpl31validate_circular_buffer_regionEPKNS0_7IDeviceE":
    fn validate_circular_buffers(program: Program, device: Device) |forward| {
        check(program, device, forward)
    }

    "_ZN2tt8tt_metal6detail11ProgramImpl31validate_dataflow_buffer_regionEPKNS0_7IDeviceE":
    fn validate_dataflow_buffers(program: Program, device: Device) |forward| {
        check(program, device, forward)
    }

    // Some versions return a reference, and some a copy, whose address comes first then. Either way a pointer to a
    // vector comes back, and a program is where a program is known to be.
    "_ZN2tt8tt_metal6detail11ProgramImpl24determine_sub_device_idsEPKNS0_7IDeviceE":
    fn determine_sub_devices(one: *mut c_void, two: *mut c_void, three: *mut c_void) -> *const Vector<u8> |forward| {
        let sub_devices = forward();
        shielded(|| {
            let candidates = [(Program(one), Device(two)), (Program(two), Device(three))];
            // SAFETY: the vector that tt-metal has just returned.
            programs::runs_on(candidates, unsafe { first_of(sub_devices) });
        });
        sub_devices
    }

    "_ZN2tt4llrt15get_risc_binaryERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN6ll_api6memory7LoadingERKSt8functionIFvRSA_EE":
    fn read_binary(one: *mut c_void, two: *mut c_void, three: *mut c_void, four: *mut c_void) -> *mut c_void |forward| {
        shielded(doing::binary_read);
        forward()
    }

    "_ZN2tt8tt_metal9Inspector31program_kernel_compile_finishedEPKNS0_6detail11ProgramImplEPKNS0_7IDeviceERKSt10shared_ptrINS0_6KernelEERKNS0_15JitBuildOptionsERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE":
    fn kernel_compiled(program: Program, device: Device, kernel: SharedKernel, options: *const c_void, root: *const c_void) |forward| {
        shielded(|| programs::compiled(program, device, kernel.kernel(), doing::binaries()));
        forward()
    }

    "_ZN2tt8tt_metal11distributed16MeshWorkloadImpl11add_programERKNS1_19MeshCoordinateRangeEONS0_7ProgramE":
    fn add_program(workload: Workload, range: MeshRange, program: ProgramHandle) |forward| {
        let added = shielded(|| (range.part(), program.program()));
        forward();
        if let Some((part, program)) = added {
            shielded(|| programs::added(workload, part, program));
        }
    }

    "_ZN2tt8tt_metal11distributed16MeshWorkloadImplD1Ev":
    fn workload_destroyed(workload: Workload) |forward| {
        shielded(|| programs::workload_gone(workload));
        forward()
    }

    "_ZN2tt8tt_metal11distributed16MeshWorkloadImplD2Ev":
    fn workload_destroyed_2(workload: Workload) |forward| {
        shielded(|| programs::workload_gone(workload));
        forward()
    }

    "_ZN2tt8tt_metal11distributed16MeshWorkloadImpl7compileEPNS1_10MeshDeviceE":
    fn compile_workload(workload: Workload, mesh: Device) |forward| {
        shielded(|| doing::launch_is(workload, mesh));
        forward()
    }

    "_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb":
    fn enqueue_workload(queue: Queue, workload: *mut c_void, blocking: bool) |forward| {
        shielded(doing::launch_begin);
        // Not launched, if it ends with an exception.
        forward();
        shielded(|| programs::launched(queue, doing::launch_end()));
    }

    "_ZN2tt8tt_metal11distributed14MeshDeviceImpl15initialize_implEPNS1_10MeshDeviceEhmmmSt4spanIKjLm18446744073709551615EEb":
    fn initialize_mesh(implementation: *mut c_void, mesh: Device, queues: u8, l1_small: u64, trace: u64, worker_l1: u64, banks: Words, minimal: bool) -> u64 |forward| {
        let done = forward();
        books::opened(mesh);
        done
    }

    "_ZN2tt8tt_metal21WorkerConfigBufferMgrC1Ev":
    fn ring_made(of: Ring) |forward| {
        shielded(|| ring::made(of));
        forward()
    }

    "_ZN2tt8tt_metal21WorkerConfigBufferMgr15init_add_bufferEjj":
    fn ring_buffer(of: Ring, base: u32, bytes: u32) |forward| {
        shielded(|| ring::buffer(of, bytes));
        forward()
    }

    "_ZN2tt8tt_metal21WorkerConfigBufferMgr7reserveERKSt6vectorIjSaIjEE":
    fn ring_reserve(of: Ring, sizes: *const Vector<u32>) -> Two |forward| {
        // SAFETY: the vector that tt-metal has just passed.
        let first = unsafe { first_of(sizes) };
        shielded(|| ring::reserved(of, first.map_or(0, |(bytes, _)| bytes)));
        forward()
    }

    "_ZN2tt8tt_metal21WorkerConfigBufferMgr5allocEj":
    fn ring_take(of: Ring, until: u32) |forward| {
        shielded(|| ring::taken(of, until));
        forward()
    }

    "_ZN2tt8tt_metal21WorkerConfigBufferMgr4freeEj":
    fn ring_free(of: Ring, count: u32) |forward| {
        shielded(|| ring::freed(of, count));
        forward()
    }

    "_ZN2tt8tt_metal21WorkerConfigBufferMgr20mark_completely_fullEj":
    fn ring_fill(of: Ring, until: u32) |forward| {
        shielded(|| ring::filled(of, until));
        forward()
    }
}
