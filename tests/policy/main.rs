//! Policies: what a builder refuses, what it warns of, and what a budget does to calls.

#[path = "../common/capture.rs"]
mod capture;
#[path = "../common/policies.rs"]
mod policies;
#[path = "../common/script.rs"]
mod script;

mod budgets;
mod escapes;
mod rules;
