//! Contracts: what is read, what is refused and how, what runs, and the command.

#[path = "../common/capture.rs"]
mod capture;
mod cases;
mod command;
mod design;
mod inherit;
mod input;
mod mistakes;
mod running;
mod schema;
mod support;
