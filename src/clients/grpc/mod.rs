//! gRPC through tonic (feature `grpc`).

mod answer;
mod attempt;
mod channel;
mod commit;
mod future;
mod request;
mod status;
mod timeout;

pub use answer::AnswerBody;
pub use channel::{RetryChannel, channel};
pub use commit::Commit;
pub use future::RetryChannelFuture;
pub use status::error;

pub(crate) use answer::AnswerFailed;
use request::RequestBody;
