//! Model checks: loom runs the protocols' own code through every interleaving and every order in which
//! the memory model lets stores become visible.
//!
//! Each check also counts outcomes outside the model, because loom is silent if it explored only one
//! schedule: a check in which nothing was ever read, or nothing ever interfered, proves nothing.

mod broken;
mod cells;
mod commit;
mod files;
mod growth;
mod live;
mod word;
