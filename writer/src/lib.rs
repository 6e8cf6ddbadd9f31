//! Reports a process's accelerator allocations into shared memory in tens of nanoseconds
