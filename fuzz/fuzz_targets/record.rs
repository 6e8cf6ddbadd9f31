#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tt_shm_tests::fuzz::run("record", data));
