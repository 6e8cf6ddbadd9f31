//! The library is never unloaded: tt-metal calls its functions, whoever loaded it may close it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
