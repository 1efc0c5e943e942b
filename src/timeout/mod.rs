//! How long: the timer of every timeout here, and the layer for paths without retries and for bodies.

mod body;
mod future;
mod layer;
mod service;
mod timer;

pub use body::TimeoutBody;
pub use future::TimeoutFuture;
pub use layer::{NoLimit, SomeLimit, TimeoutLayer};
pub use service::Timeout;

pub(crate) use timer::{Expired, Timer};
