//! The tools around the library, and the contracts that ship: the model of clients and a provider in trouble, the presets,
//! and the commands that stand on them.

mod command;
mod coverage;
mod deps;
mod diff;
mod doc;
mod presets;
mod readme;
mod simulate;
mod simulating;
