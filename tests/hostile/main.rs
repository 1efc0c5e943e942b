//! The small layers, blocks, hints and counts, as somebody sees them who means no good.

#[path = "../common/capture.rs"]
mod capture;
#[path = "../common/policies.rs"]
mod policies;
#[path = "../common/script.rs"]
mod script;

mod blocks;
mod blocks_and_layers;
mod bodies;
mod clients;
mod hints;
mod resumes;
mod sound;
mod spans_and_counts;
