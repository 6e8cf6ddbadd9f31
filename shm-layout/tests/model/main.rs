//! Model checks: loom runs the protocols' own code through every interleaving and every order in which
//! the memory model lets stores become visible.
//!
//! Each check also counts outcomes outside of the model, because loom is silent when it explored one
//! schedule only: a check in which nothing was ever read, or nothing was ever in the way, proves nothing.

mod broken;
mod cells;
mod commit;
mod files;
mod growth;
mod live;
mod word;
