//! Names of operations, which ttnn tells tt-metal's Inspector when it launches one.

use std::ffi::{CStr, c_void};

use tt_shm_writer::{Allocation, NameId, Record};

use super::{Hook, Symbol, missing};
use crate::cxx::StringView;
use crate::segment::{self, Segment};
use crate::shield::shielded;
use crate::{doing, settings};

/// Whether Inspector itself wants to be told.
fn inspector_is_on() -> bool {
    static REAL: Symbol = Symbol::new(c"_ZN2tt8tt_metal12experimental9inspector9IsEnabledEv");
    let Some(real) = REAL.get() else { return false };
    // SAFETY: the function of that name, which has no argument.
    let real = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> bool>(real) };
    // SAFETY: as above.
    unsafe { real() }
}

/// The buffers that were allocated for an operation get its name.
fn operation(name: &str) {
    let Some(tracker) = segment::current().map(Segment::tracker) else { return };
    let name = tracker.intern(name).unwrap_or(NameId::NONE);
    for (accounts, buffer) in doing::operation_is(name) {
        let _ = tracker.name_if_live(accounts.mesh(), Allocation::Buffer(buffer), name);
    }
}

hooks! {
    NAMES:

    // ttnn asks before it tells a name, and nobody else asks.
    "_ZN2tt8tt_metal12experimental9inspector9IsEnabledEv":
    fn is_enabled() -> bool |forward| {
        forward() || settings::names()
    }

    // Copies that only Inspector has a use for.
    "_ZN2tt8tt_metal12experimental9inspector24ShouldCaptureTensorSpecsEv":
    fn should_capture_specs() -> bool |forward| {
        forward() && inspector_is_on()
    }

    "_ZN2tt8tt_metal12experimental9inspector26EmitMeshWorkloadDebugEntryERNS0_11distributed12MeshWorkloadEmSt17basic_string_viewIcSt11char_traitsIcEESt6vectorINS0_10TensorSpecESaISB_EESt8optionalIN4ttsl10StrongTypeIjNS3_14MeshTraceIdTagEEEE":
    fn emit_entry(workload: *mut c_void, id: u64, name: StringView, specs: *mut c_void, trace: u64) |forward| {
        shielded(|| {
            // SAFETY: the text that tt-metal has just been passed.
            operation(unsafe { name.text() });
        });
        if inspector_is_on() {
            forward();
        }
    }

    // The first thing that an operation asks of its inputs.
    "_ZNK4ttnn6Tensor12is_allocatedEv":
    fn is_allocated(tensor: *const c_void) -> bool |forward| {
        shielded(doing::operation_begins);
        forward()
    }

    // The same up to 0.77.
    "_ZNK2tt8tt_metal6Tensor12is_allocatedEv":
    fn is_allocated_before(tensor: *const c_void) -> bool |forward| {
        shielded(doing::operation_begins);
        forward()
    }
}
