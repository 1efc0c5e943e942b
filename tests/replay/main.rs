//! Bodies that are sent again: each attempt arrives whole and alike, or the request is not repeated.

#[path = "../common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod early;
mod failing;
mod lying;
mod memory;
mod streams;
