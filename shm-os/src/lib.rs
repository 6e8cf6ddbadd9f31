//! The few system calls that both sides of the shared memory need: maps, locks, clocks, names
