//! Names of operations, which ttnn tells tt-metal's Inspector when it launches one.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};

use tt_shm_writer::{Allocation, NameId, Record, Tracker};

use super::{Hook, Symbol, missing};
use crate::cxx::StringView;
use crate::segment::{self, Segment};
use crate::shield::{self, shielded};
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

/// Numbers of names, kept by each thread so that a name is looked up in the segment once and not in every launch.
struct Known {
    /// Whose numbers these are.
    tracker: *const Tracker,
    /// Each in the place that its bytes say; another with the same place replaces it.
    names: Vec<(Box<[u8]>, NameId)>,
}

/// A power of two: more operations than a model has.
const PLACES: usize = 256;

thread_local! {
    static KNOWN: RefCell<Known> = const { RefCell::new(Known { tracker: std::ptr::null(), names: Vec::new() }) };
}

impl Known {
    fn number_of(&mut self, tracker: &'static Tracker, name: &[u8]) -> NameId {
        if !std::ptr::eq(self.tracker, tracker) {
            self.tracker = tracker;
            self.names.clear();
            self.names.resize_with(PLACES, Default::default);
        }
        // Names of operations differ in their lengths and in the middle.
        let (middle, last) = (name.get(name.len() / 2), name.last());
        let place =
            [middle, last].into_iter().flatten().fold(name.len(), |sum, byte| sum * 31 + usize::from(*byte));
        let known = &mut self.names[place % PLACES];
        if *known.0 != *name {
            let number = std::str::from_utf8(name).ok().and_then(|name| tracker.intern(name).ok());
            *known = (name.into(), number.unwrap_or(NameId::NONE));
        }
        known.1
    }
}

/// The buffers that were allocated for an operation get its name.
fn operation(name: &[u8]) {
    let Some(tracker) = segment::current().map(Segment::tracker) else { return };
    let number = KNOWN.try_with(|known| Some(known.try_borrow_mut().ok()?.number_of(tracker, name)));
    let number = number.ok().flatten().unwrap_or(NameId::NONE);
    doing::operation_is(number, |accounts, buffer| {
        let _ = tracker.name_if_live(accounts.mesh(), Allocation::Buffer(buffer), number);
    });
}

/// An operation looks at an input.
#[inline]
fn operation_begins() {
    if !doing::is_fresh() {
        shielded(doing::operation_begins);
    }
}

hooks! {
    NAMES:

    // ttnn asks before it tells a name, and nobody else asks.
    "_ZN2tt8tt_metal12experimental9inspector9IsEnabledEv":
    fn is_enabled() -> bool |forward| {
        forward() || shield::is_on() && settings::names()
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
            operation(unsafe { name.bytes() });
        });
        if inspector_is_on() {
            forward();
        }
    }

    // The first thing that an operation asks of its inputs.
    "_ZNK4ttnn6Tensor12is_allocatedEv":
    fn is_allocated(tensor: *const c_void) -> bool |forward| {
        operation_begins();
        forward()
    }

    // The same up to 0.77.
    "_ZNK2tt8tt_metal6Tensor12is_allocatedEv":
    fn is_allocated_before(tensor: *const c_void) -> bool |forward| {
        operation_begins();
        forward()
    }
}
