//! What is not retry, one small layer each.

mod attempt_span;
mod hint_header;
mod inbound;
mod outbound_headers;

pub use attempt_span::{AttemptSpan, AttemptSpanFuture, AttemptSpanLayer};
pub use hint_header::HintHeader;
pub use inbound::{Inbound, InboundLayer};
pub use outbound_headers::{OutboundHeaders, OutboundHeadersLayer};
