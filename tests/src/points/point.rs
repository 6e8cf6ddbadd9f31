//! The points, by the names that tests use.

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

            /// The point of a system call, by its name in the code.
            pub(super) fn of_call(name: &str) -> Point {
                match name { $(stringify!($point) => Point::$point,)* _ => Point::Unknown }
            }
        }
    };
}

points! {
    Unknown = "unknown",
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
