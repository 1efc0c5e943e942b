//! Contracts: what is read, what is refused and how, what runs, and the command.

mod cases;
mod command;
mod design;
mod inherit;
mod input;
mod mistakes;
mod schema;
mod support;
