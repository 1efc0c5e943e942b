//! Attempts to make it send twice, wait too short, leak or hang, each met in a review.

#[path = "../common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod duplicates;
mod tape;
mod time;
mod waker;
