//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The name that hosts record. Its number is that of the ABI: TT_SHM_ABI_VERSION >> 16.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtt_shm.so.1");
    // Whoever loads it may close it, while threads are in calls and trackers are open: it stays.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
