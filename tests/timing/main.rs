//! Time: timeouts, deadlines, waits that the server asks for, and holds. All on paused time.

#[path = "../common/policies.rs"]
mod policies;
#[path = "../common/script.rs"]
mod script;

mod deadlines;
mod hold;
mod server_waits;
