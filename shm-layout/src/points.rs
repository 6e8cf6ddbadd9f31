//! Test points: every store and system call with an effect that others can see.
//!
//! Without the feature `test-points` nothing of this is compiled. With it, a test helper is notified right
//! after each such store or call, and may be killed or stopped there. A store is told by its address, from
//! which the helper finds the place in the file; only system calls have names in the code. Only a test
//! package enables the feature, and only when asked to; see its `Cargo.toml`.

/// Notifies that a system call with an effect that others can see has just been made.
#[cfg(feature = "test-points")]
#[macro_export]
macro_rules! point {
    ($point:ident) => {
        $crate::points::visit($crate::points::Visit::Call(stringify!($point)))
    };
}
/// Does nothing without the feature `test-points`.
#[cfg(not(feature = "test-points"))]
#[macro_export]
macro_rules! point {
    ($point:ident) => {};
}

#[cfg(feature = "test-points")]
pub use compiled_in::*;

#[cfg(feature = "test-points")]
mod compiled_in {
    use std::sync::OnceLock;

    /// What has just happened.
    #[derive(Clone, Copy, Debug)]
    pub enum Visit {
        /// The system call with this name was made.
        Call(&'static str),
        /// The word at this address was stored.
        Store(usize),
    }

    static HOOK: OnceLock<fn(Visit)> = OnceLock::new();

    /// Installs a function that is called at every visit. The first one stays.
    pub fn install(hook: fn(Visit)) {
        let _ = HOOK.set(hook);
    }

    /// Calls the hook.
    pub fn visit(visit: Visit) {
        if let Some(hook) = HOOK.get() {
            hook(visit);
        }
    }
}
