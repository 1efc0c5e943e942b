//! What a call of gRPC said to a block, which sees its `Status` alone.

use std::error::Error as StdError;

use http::{HeaderMap, HeaderValue};
use tonic::Status;

use crate::{
    Error,
    fault::{Links, peek},
};

/// The head of an answer that says the same: its code, and what the server sent with it, pushback among it. `None` where
/// there is no status, or it stands for a failure without an answer, whose error says more.
pub(super) fn head_of(error: &(dyn StdError + 'static)) -> Option<HeaderMap> {
    if Links::of(error).filter_map(peek::<Error>).any(|error| !error.is_answered()) {
        return None;
    }
    let status = Links::of(error).find_map(peek::<Status>)?;
    let mut headers = status.metadata().clone().into_headers();
    headers.insert("grpc-status", HeaderValue::from(status.code() as i32));
    Some(headers)
}
