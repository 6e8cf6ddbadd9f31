//! Reports what an unmodified tt-metal allocates, from inside its process.
//!
//! The published tt-metal calls its own allocator through slots of the dynamic linker. A library that is loaded first
//! (`LD_PRELOAD`) and has functions of the same names is called instead: it forwards every call, and reports it by the
//! writer crate into this process's segment. Nothing of tt-metal is changed or copied, and no header is used: only
//! exported names, whose arguments are part of the name.
//!
//! A process that never loads tt-metal never calls anything in here, and has no segment.

mod accounts;
mod addresses;
mod books;
mod calls;
mod chips;
mod cxx;
mod doing;
mod hooks;
mod host;
mod metal;
mod needs;
mod notes;
mod older;
mod per_core;
mod programs;
mod rectangles;
mod requests;
mod ring;
mod segment;
mod settings;
mod shield;
mod site;
mod slots;
