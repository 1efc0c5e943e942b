//! Streaming bodies of unknown size, made by hand.

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use http::HeaderMap;
use http_body::Frame;
use http_body_util::StreamBody;
use redial::BoxError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub type Item = Result<Frame<Bytes>, BoxError>;
pub type Streaming = StreamBody<BoxStream<'static, Item>>;

/// A body of these frames, each ready at once.
pub fn streaming(frames: impl IntoIterator<Item = Item, IntoIter: Send + 'static>) -> Streaming {
    StreamBody::new(futures_util::stream::iter(frames).boxed())
}

pub fn data(bytes: impl Into<Bytes>) -> Item {
    Ok(Frame::data(bytes.into()))
}

pub fn trailers(name: &'static str, value: &'static str) -> Item {
    Ok(Frame::trailers(HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])))
}

/// Bytes in frames of this size.
pub fn chunked(bytes: &Bytes, size: usize) -> Vec<Item> {
    (0..bytes.len()).step_by(size).map(|at| data(bytes.slice(at..bytes.len().min(at + size)))).collect()
}

/// A body that yields what the test feeds it, when the test feeds it. It ends when the feed is dropped.
pub fn fed() -> (UnboundedSender<Item>, Streaming) {
    let (feed, frames) = unbounded_channel();
    let next = |mut frames: UnboundedReceiver<Item>| async move { Some((frames.recv().await?, frames)) };
    (feed, StreamBody::new(futures_util::stream::unfold(frames, next).boxed()))
}
