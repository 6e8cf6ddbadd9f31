//! The library is never unloaded: tt-metal calls its functions, whoever loaded it may close it.

fn main() {
    // The hooks have the names of the functions that they replace. Where the host is linked with tt-metal, its functions
    // come first, and the address of a hook would be that of the function itself: `tt_shm_tap_install` would put in place
    // what is there already. What this library refers to is its own.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // By this name the C library finds it, whatever the file was loaded from: capi/src/tap.rs.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtt_shm_tap.so");
}
