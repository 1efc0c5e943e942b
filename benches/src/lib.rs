//! What the benchmarks share: the work they measure, the ways to measure it, and the page they write.

pub mod callgrind;
pub mod contention;
pub mod machine;
pub mod report;
pub mod rounds;

#[path = "../../tests/common/memory.rs"]
pub mod memory;
#[path = "../../tests/common/towers.rs"]
pub mod towers;
