//! Byte layout and lock-free protocols of the memory monitor's shared memory
