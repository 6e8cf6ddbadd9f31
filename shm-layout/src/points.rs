//! Test points: every store and system call with an effect that others can see, by name.
//!
//! Without the feature `test-points` both macros are empty and nothing of this is compiled. With it, a test
//! helper is notified right after each such store or call, and may be killed or stopped there. Only a test
//! package enables the feature, and only when asked to; see its `Cargo.toml`.

/// Attributes the stores to shared words from here to the end of the block to a point.
#[cfg(feature = "test-points")]
#[macro_export]
macro_rules! stores_of {
    ($point:ident) => {
        let _stores = $crate::points::enter($crate::points::Point::$point);
    };
}
/// Does nothing without the feature `test-points`.
#[cfg(not(feature = "test-points"))]
#[macro_export]
macro_rules! stores_of {
    ($point:ident) => {};
}

/// Notifies that a system call with an effect that others can see has just been made.
#[cfg(feature = "test-points")]
#[macro_export]
macro_rules! point {
    ($point:ident) => {
        $crate::points::visit($crate::points::Point::$point)
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
    use std::cell::Cell;
    use std::sync::OnceLock;

    macro_rules! points {
        ($($point:ident = $name:literal,)*) => {
            /// A place where a process may be killed or stopped.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            pub enum Point { $(#[doc = $name] $point,)* }

            impl Point {
                /// All points, in the order of their discriminants.
                pub const ALL: &[Point] = &[$(Point::$point),*];

                /// The name that tests use.
                pub fn name(self) -> &'static str {
                    match self { $(Point::$point => $name,)* }
                }
            }
        };
    }

    points! {
        Unlabelled = "store without a name",
        SegmentFile = "segment.file",
        SegmentLocked = "segment.locked",
        SegmentMapped = "segment.mapped",
        SegmentPopulated = "segment.populated",
        SegmentHeader = "segment.header",
        SegmentLinked = "segment.linked",
        SegmentState = "segment.state",
        SegmentUnlinked = "segment.unlinked",
        SegmentUnlinkedAtExit = "segment.unlinked-at-exit",
        DevicePopulated = "device.populated",
        DeviceEntry = "device.entry",
        DeviceCount = "device.count",
        NamePopulated = "name.populated",
        NameText = "name.text",
        NameCount = "name.count",
        EmitSlot = "emit.slot",
        EmitRow = "emit.row",
        EmitName = "emit.name",
        EmitCheckpoint = "emit.checkpoint",
        EmitHead = "emit.head",
        Anomaly = "emit.anomaly",
        SelfChecks = "emit.self-checks",
        UnlistedCell = "unlisted.cell",
        UnlistedCount = "unlisted.count",
        GrowthPopulated = "growth.populated",
        GrowthPublished = "growth.published",
        TrackerReapChecked = "tracker.reap.checked",
        TrackerReapUnlinked = "tracker.reap.unlinked",
        ClaimLocked = "claim.locked",
        ClaimNoted = "claim.noted",
        AdoptRead = "adopt.read",
        AdoptInstalled = "adopt.installed",
        TableSwept = "table.swept",
        TableFile = "table.file",
        TableReadable = "table.readable",
        TablePopulated = "table.populated",
        TableHeader = "table.header",
        TableDevice = "table.device",
        TableProcess = "table.process",
        TableUsage = "table.usage",
        TableNotice = "table.notice",
        TableFailure = "table.failure",
        TableHistory = "table.history",
        TableControl = "table.control",
        TableGeneration = "table.generation",
        TableHeartbeat = "table.heartbeat",
        TableRenamed = "table.renamed",
        TableClosed = "table.closed",
        TableUnlinked = "table.unlinked",
        ReapChecked = "reap.checked",
        ReapUnlinked = "reap.unlinked",
        ResetTaken = "reset.taken",
    }

    static HOOK: OnceLock<fn(Point)> = OnceLock::new();

    thread_local! {
        static CURRENT: Cell<Point> = const { Cell::new(Point::Unlabelled) };
    }

    /// Installs a function that is called at every visit. The first one stays.
    pub fn install(hook: fn(Point)) {
        let _ = HOOK.set(hook);
    }

    /// Calls the hook for a point.
    pub fn visit(point: Point) {
        if let Some(hook) = HOOK.get() {
            hook(point);
        }
    }

    /// Calls the hook for a store of the current point.
    pub(crate) fn stored() {
        visit(CURRENT.get());
    }

    /// Attributes stores to a point until it is dropped.
    #[must_use]
    pub struct Stores(Point);

    /// See [`crate::stores_of`].
    pub fn enter(point: Point) -> Stores {
        Stores(CURRENT.replace(point))
    }

    impl Drop for Stores {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
}
