//! The retry engine on paused time, over a scripted service.

#[path = "../common/policies.rs"]
mod policies;
#[path = "../common/script.rs"]
mod script;

mod attempts;
mod evidence;
mod judging;
mod nested;
mod readiness;
mod report;
mod stops;
