//! A failed response is let go.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http_body::Body;

/// How much of a failed response is read to free its connection. A larger one is dropped with its connection.
pub(super) const MOST: usize = 1024 * 1024;

/// What a frame costs at least: endless empty frames end too.
const FRAME: usize = 64;

/// Reads a failed response to its end, unless it is too large.
pub(super) fn drain<RB: Body>(mut body: Pin<&mut RB>, left: &mut usize, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        match ready!(body.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => {
                let size = frame.data_ref().map_or(0, Buf::remaining).max(FRAME);
                match left.checked_sub(size) {
                    Some(rest) => *left = rest,
                    None => return Poll::Ready(()),
                }
                if body.is_end_stream() {
                    return Poll::Ready(());
                }
            }
            Some(Err(_)) | None => return Poll::Ready(()),
        }
    }
}
