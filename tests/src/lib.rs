//! Cross-process tests of the memory monitor, and their helper binaries
