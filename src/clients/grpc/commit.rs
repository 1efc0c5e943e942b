//! From when on an answer is the caller's.

use std::time::Duration;

/// From when on an answer is the caller's, and no longer this layer's to repeat.
///
/// A client cannot see on the wire whether a method is unary, and tonic's generated code does not say. So it is said here:
/// for a whole channel by [`RetryChannel::commit`](super::RetryChannel::commit), for one request in its extensions, which
/// win.
///
/// ```
/// use redial::grpc::Commit;
///
/// let mut request = tonic::Request::new("an order");
/// request.extensions_mut().insert(Commit::Status);
/// ```
///
/// An interceptor above can say it by method, as generated code tells it which one is called:
///
/// ```
/// use redial::grpc::Commit;
/// use tonic::{GrpcMethod, Request, Status};
///
/// fn unary(mut request: Request<()>) -> Result<Request<()>, Status> {
///     if request.extensions().get::<GrpcMethod<'static>>().is_some_and(|method| method.method() == "Place") {
///         request.extensions_mut().insert(Commit::Status);
///     }
///     Ok(request)
/// }
/// ```
///
/// Where nothing is said, it follows from the request: [`Message`](Self::Message) for one that is there as a whole,
/// [`Head`](Self::Head) for one that is still being said. Neither can break a stream: that is why they are the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Commit {
    /// When its head is there, as gRFC A6 has it; only an answer that is a status alone (`Trailers-Only`) is repeated. The
    /// one choice where the caller sends its first message after it has seen the head.
    Head,
    /// With its first message, or with its status where that comes first. It waits for either no longer than 500 ms after
    /// the head, nor than half of what the attempt has left, as a stream may be silent for long. Messages are never held
    /// back.
    Message,
    /// With its status, after the message: for methods that answer with **one** message (unary and client-streaming).
    ///
    /// The whole answer is then part of the attempt, and a failure after the message is repeated too, as is one that
    /// breaks off. And the server is told the attempt's own end in `grpc-timeout`. Up to 64 KiB of the answer are held
    /// back; a larger one is committed with what has come. A method that streams its answer would keep its messages back
    /// until its end, or until 64 KiB, and be cut off by the attempt timeout.
    Status,
}

/// How long a head waits for what follows it.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// How much of an answer is held back.
pub(super) const HELD: usize = 64 * 1024;
