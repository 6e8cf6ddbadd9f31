//! Benchmarks of the memory monitor
