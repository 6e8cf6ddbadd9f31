//! Reads the monitor's shared memory: devices, processes, live allocations, events
