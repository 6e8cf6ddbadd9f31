//! Why figures of a region are never exact, in words for whoever looks at them.

/// A reason that holds for every region, whatever stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inexactness {
    /// A short name, for machines.
    pub key: &'static str,
    /// A sentence, for people.
    pub text: &'static str,
}

/// Since ttnn 0.72.
pub const FIRST_THREAD_ONLY: Inexactness = Inexactness {
    key: "first_thread_only",
    text: "since 0.72 tt-metal counts only what the thread that opened the first device allocates and frees; memory of \
           other threads is missing, and freeing it on the first thread takes off what others hold",
};

/// The allocator works in lock step: a buffer takes its share in every bank.
pub const REQUESTED_BYTES: Inexactness = Inexactness {
    key: "requested_bytes",
    text: "requested bytes are counted, not those that the allocator occupies, which are rounded up in every bank",
};

/// What matmul, softmax and reshape use instead of circular buffers.
pub const NO_DATAFLOW_BUFFERS: Inexactness = Inexactness {
    key: "no_dataflow_buffers",
    text: "dataflow buffers, which matmul and softmax use, are not counted, and circular buffers are counted at most \
           every 100 ms",
};

/// No order between the counters of several writers, and nobody removes what dead ones leave.
pub const RACES: Inexactness = Inexactness {
    key: "races",
    text: "processes that write at the same time overwrite each other, and what a killed process held stays counted",
};

/// All of them.
pub const INEXACTNESS: [Inexactness; 4] = [FIRST_THREAD_ONLY, REQUESTED_BYTES, NO_DATAFLOW_BUFFERS, RACES];
