//! What the benchmarks share: who is measured, the ways to measure it, and the page they write.

pub mod budgets;
pub mod callgrind;
pub mod contenders;
pub mod contention;
pub mod cpu;
pub mod heap;
pub mod machine;
pub mod options;
pub mod picture;
pub mod progress;
pub mod report;
pub mod rounds;
mod table;
pub mod versions;

#[path = "../../tests/common/memory.rs"]
pub mod memory;
#[path = "../../tests/common/tower_budget.rs"]
pub mod tower_budget;
#[path = "../../tests/common/towers.rs"]
pub mod towers;
