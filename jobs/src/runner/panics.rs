//! Panics of the caller's code, and of a store: said, and survived.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
};

use crate::Error;

/// What a panic says, without the secrets of any URL.
pub(super) fn text_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let text = redial::redacted(text.unwrap_or("no text"));
    // What was thrown may throw in its turn as it is dropped; that is left alone.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
    text
}

/// Runs it until it ends or panics.
///
/// # Errors
///
/// It panicked.
pub(super) async fn caught<T>(doing: &'static str, code: impl Future<Output = T>) -> Result<T, Error> {
    let mut code = pin!(code);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| code.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Err(Error::store(doing, format!("panicked: {}", text_of(panic)))).into(),
    })
    .await
}
