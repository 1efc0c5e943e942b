//! Contracts and their command, met by somebody who wishes them ill.

mod bounds;
#[path = "../common/capture.rs"]
mod capture;
mod diff;
mod explaining;
mod printing;
mod refusing;
mod support;
mod watching;
