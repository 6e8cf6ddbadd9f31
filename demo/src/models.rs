//! What the workers pretend to run.

/// A neural network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// What the process is called; 15 bytes at most, as the kernel keeps no more.
    pub name: &'static str,
    /// Layers.
    pub layers: u32,
    /// Weights, in hundredths of a worker's share of the DRAM.
    pub weights_percent: u64,
    /// KiB of weights that stay in the L1 of each core.
    pub in_l1: u64,
    /// Whether it forgets to free something.
    pub leaks: bool,
    /// Tensors of a layer and their relative sizes.
    pub tensors: &'static [(&'static str, u64)],
    /// Operations of a step, in order; indices into [`OPERATIONS`].
    pub step: &'static [usize],
}

/// An operation: a program with circular buffers and a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// Its name.
    pub name: &'static str,
    /// Bytes of its kernel binary.
    pub binary_bytes: u64,
    /// KiB of each of its circular buffers, per core.
    pub circular_buffers: &'static [u64],
    /// KiB of the activation that it makes, per core, at most.
    pub activation: u64,
    /// Columns and rows of the cores that its program runs on, from core 0,0 on.
    pub cores: (u32, u32),
}

/// The operations.
pub(crate) const OPERATIONS: [Operation; 8] = [
    Operation {
        name: "ttnn::embedding",
        binary_bytes: 12_288,
        circular_buffers: &[16, 16],
        activation: 24,
        cores: (8, 2),
    },
    Operation {
        name: "ttnn::rms_norm",
        binary_bytes: 18_432,
        circular_buffers: &[16, 16, 8],
        activation: 24,
        cores: (8, 4),
    },
    Operation {
        name: "ttnn::matmul",
        binary_bytes: 24_576,
        circular_buffers: &[48, 32, 32, 16],
        activation: 64,
        cores: (8, 8),
    },
    Operation {
        name: "ttnn::softmax",
        binary_bytes: 20_480,
        circular_buffers: &[24, 24, 8],
        activation: 48,
        cores: (8, 6),
    },
    Operation {
        name: "ttnn::conv2d",
        binary_bytes: 30_720,
        circular_buffers: &[64, 32, 32, 8, 8],
        activation: 96,
        cores: (8, 7),
    },
    Operation {
        name: "ttnn::add",
        binary_bytes: 8_192,
        circular_buffers: &[16, 16, 16],
        activation: 32,
        cores: (8, 8),
    },
    Operation {
        name: "ttnn::all_gather",
        binary_bytes: 14_336,
        circular_buffers: &[32, 32],
        activation: 64,
        cores: (8, 1),
    },
    Operation {
        name: "ttnn::argmax",
        binary_bytes: 10_240,
        circular_buffers: &[8, 8],
        activation: 8,
        cores: (4, 1),
    },
];

const TRANSFORMER: &[(&str, u64)] = &[
    ("attention.wq", 4),
    ("attention.wk", 1),
    ("attention.wv", 1),
    ("attention.wo", 4),
    ("feed_forward.w1", 14),
    ("feed_forward.w2", 14),
    ("feed_forward.w3", 14),
];

const CONVOLUTION: &[(&str, u64)] = &[("conv1", 1), ("conv2", 9), ("conv3", 4), ("downsample", 2)];

/// The networks; workers take them in turn.
pub(crate) const NETWORKS: [Network; 4] = [
    Network {
        name: "llama-3.1-8b",
        layers: 32,
        weights_percent: 70,
        in_l1: 130,
        leaks: false,
        tensors: TRANSFORMER,
        step: &[0, 1, 2, 3, 2, 5, 1, 2, 2, 5, 6, 7],
    },
    Network {
        name: "resnet50",
        layers: 16,
        weights_percent: 12,
        in_l1: 78,
        leaks: false,
        tensors: CONVOLUTION,
        step: &[4, 5, 4, 4, 5, 2, 7],
    },
    Network {
        name: "bert-large",
        layers: 24,
        weights_percent: 35,
        in_l1: 130,
        leaks: true,
        tensors: TRANSFORMER,
        step: &[0, 1, 2, 3, 2, 5, 1, 2, 5],
    },
    Network {
        name: "whisper-large",
        layers: 32,
        weights_percent: 45,
        in_l1: 60,
        leaks: false,
        tensors: TRANSFORMER,
        step: &[4, 1, 2, 3, 2, 5, 6, 7],
    },
];
