//! Contracts: what is read, what is refused and how, what runs, and the command.

mod design;
mod support;
