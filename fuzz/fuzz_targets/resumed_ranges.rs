#![no_main]

#[allow(dead_code)] // the other targets
#[path = "../../tests/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::resumed_ranges(data));
