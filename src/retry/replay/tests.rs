use std::{collections::VecDeque, convert::Infallible};

use bytes::Bytes;
use futures_util::FutureExt;
use http::HeaderMap;
use http_body_util::BodyExt;

use super::*;
use crate::retry::{UploadRevoked, source::Source};

/// A body of these frames, of unknown size unless it is exact.
struct Frames {
    frames: VecDeque<Result<Frame<Bytes>, BoxError>>,
    exact: bool,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.frames.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.exact && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let size = |frame: &Result<Frame<Bytes>, _>| match frame {
            Ok(frame) => frame.data_ref().map_or(0, Bytes::len) as u64,
            Err(_) => 0,
        };
        if self.exact { SizeHint::with_exact(self.frames.iter().map(size).sum()) } else { SizeHint::new() }
    }
}

impl Replay for Frames {}

fn data(text: &'static str) -> Result<Frame<Bytes>, BoxError> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

fn frames(frames: impl IntoIterator<Item = Result<Frame<Bytes>, BoxError>>) -> Frames {
    Frames { frames: frames.into_iter().collect(), exact: false }
}

fn exact(list: impl IntoIterator<Item = Result<Frame<Bytes>, BoxError>>) -> Frames {
    Frames { exact: true, ..frames(list) }
}

fn next<B: Replay<Data = Bytes>>(body: &mut AttemptBody<B>) -> Option<Result<Frame<Bytes>, BoxError>>
where
    AttemptBody<B>: Unpin,
{
    body.frame().now_or_never().expect("a frame at once")
}

fn text<B: Replay<Data = Bytes>>(body: AttemptBody<B>) -> String {
    let bytes = body.collect().now_or_never().expect("all at once").expect("no error").to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn split<B: Replay>(body: B) -> (AttemptBody<B>, Source<B>) {
    Source::split(body, None, Reading::new())
}

fn revoked<T>(frame: Option<Result<T, BoxError>>) -> bool {
    matches!(frame, Some(Err(error)) if error.is::<UploadRevoked>())
}

#[test]
fn what_is_in_memory_is_shared_and_not_taped() {
    let bytes = Bytes::from(vec![7; 1 << 20]);
    let at = bytes.as_ptr();
    let (first, mut source) = split(Full::new(bytes));
    assert!(matches!(source, Source::Whole { .. }));
    for mut body in [first, source.again(Reading::new()).unwrap(), source.again(Reading::new()).unwrap()] {
        assert_eq!(body.size_hint().exact(), Some(1 << 20));
        assert_eq!(next(&mut body).unwrap().unwrap().into_data().unwrap().as_ptr(), at);
        assert!(body.is_end_stream());
    }
}

#[test]
fn a_stream_is_taped_and_played_again_with_its_trailers() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    let (first, mut source) = split(frames([data("one "), data("two"), Ok(Frame::trailers(trailers.clone()))]));
    assert_eq!(first.size_hint().exact(), None);
    let mut attempt = Some(first);
    for _ in 1..=3 {
        let body = attempt.take().or_else(|| source.again(Reading::new())).unwrap();
        let collected = body.collect().now_or_never().unwrap().unwrap();
        assert_eq!(collected.trailers(), Some(&trailers));
        assert_eq!(collected.to_bytes(), "one two");
    }
}

#[test]
fn an_attempt_that_failed_before_any_frame_does_not_send_a_chunk_twice() {
    let (first, mut source) = split(frames([data("one "), data("two")]));
    drop(first);
    assert_eq!(text(source.again(Reading::new()).unwrap()), "one two");
}

#[test]
fn an_attempt_cut_off_in_the_middle_leaves_the_rest_to_the_next() {
    let (mut first, mut source) = split(exact([data("one "), data("two "), data("three")]));
    assert_eq!(first.size_hint().exact(), Some(13));
    assert_eq!(next(&mut first).unwrap().unwrap().into_data().unwrap(), "one ");
    assert_eq!(first.size_hint().exact(), Some(9));

    let second = source.again(Reading::new()).unwrap();
    assert!(revoked(next(&mut first)), "the stale upload is cut off");
    assert!(!first.is_end_stream());
    assert_eq!(second.size_hint().exact(), Some(13), "framed as the first was");
    assert_eq!(text(second), "one two three");
}

#[test]
fn the_end_is_exact_on_every_attempt() {
    let (mut body, mut source) = split(exact([data("one")]));
    for _ in 1..=3 {
        assert!(!body.is_end_stream());
        assert!(next(&mut body).unwrap().is_ok());
        assert!(body.is_end_stream());
        body = source.again(Reading::new()).unwrap();
    }
    let (empty, mut source) = split(exact([]));
    assert!(empty.is_end_stream() && source.again(Reading::new()).unwrap().is_end_stream());
    assert_eq!(empty.size_hint().exact(), Some(0));
}

#[test]
fn past_the_cap_it_streams_once() {
    let chunk = Bytes::from(vec![1; 16 * 1024]);
    let (body, mut source) = split(frames((0..100).map(|_| Ok(Frame::data(chunk.clone())))));
    assert!(source.can_repeat());
    let sent = body.collect().now_or_never().unwrap().unwrap().to_bytes();
    assert_eq!(sent.len(), 100 * 16 * 1024);
    assert!(!source.can_repeat());
    assert!(source.again(Reading::new()).is_none());
}

#[test]
fn a_thousand_tiny_frames_are_past_the_cap_too() {
    let (body, source) = split(frames((0..2000).map(|_| data("x"))));
    assert_eq!(text(body).len(), 2000);
    assert!(!source.can_repeat());
}

#[test]
fn an_erased_body_in_memory_is_kept_whatever_its_size() {
    let bytes = Bytes::from(vec![7; 1 << 20]);
    let (first, mut source) = split(BoxBody::new(Full::new(bytes.clone())));
    assert!(matches!(source, Source::Taped { .. }));
    let mut attempt = Some(first);
    for _ in 1..=2 {
        let body = attempt.take().or_else(|| source.again(Reading::new())).unwrap();
        assert_eq!(body.size_hint().exact(), Some(1 << 20));
        assert_eq!(body.collect().now_or_never().unwrap().unwrap().to_bytes(), bytes);
    }
}

#[test]
fn a_body_that_fails_is_the_callers_fault() {
    let (mut body, source) = split(frames([data("one"), Err("no more".into())]));
    assert!(next(&mut body).unwrap().is_ok());
    let error = next(&mut body).unwrap().unwrap_err();
    assert!(error.is::<BodyFailed>());
    assert_eq!(std::error::Error::source(&*error).unwrap().to_string(), "no more");
    assert!(source.failure().is_some() && !source.can_repeat());
}

#[test]
fn whether_an_upload_may_still_be_on_its_way() {
    let uploading = |size: usize| split(Full::new(Bytes::from(vec![0; size]))).1.may_be_uploading();
    assert!(!uploading(0) && !uploading(64 * 1024) && uploading(64 * 1024 + 1));

    let (mut body, source) = split(exact([data("one"), data("two")]));
    assert!(source.may_be_uploading());
    let _ = (next(&mut body), next(&mut body));
    assert!(!source.may_be_uploading());
}

#[test]
fn it_is_what_the_body_is() {
    fn unpin<T: Unpin>() {}
    fn send_sync<T: Send + Sync>() {}
    fn default<T: Default>() {}
    unpin::<AttemptBody<Full<Bytes>>>();
    unpin::<AttemptBody<BoxBody<Bytes, Infallible>>>();
    send_sync::<AttemptBody<Full<Bytes>>>();
    send_sync::<AttemptBody<BoxBody<Bytes, BoxError>>>();
    default::<AttemptBody<Full<Bytes>>>();
}

/// Its size is known once it has ended, but it was not when the first attempt was framed.
#[test]
fn a_size_that_was_unknown_stays_unknown() {
    for list in [vec![], vec![data("one"), data("two")]] {
        let (mut attempt, mut source) = split(frames(list));
        for _ in 1..=3 {
            assert_eq!(attempt.size_hint().exact(), None);
            assert!(!attempt.is_end_stream());
            while next(&mut attempt).is_some() {}
            assert!(attempt.is_end_stream());
            attempt = source.again(Reading::new()).unwrap();
        }
    }
}

/// A copy of another length than the body that the head was made for.
#[test]
fn a_copy_that_is_shorter_than_the_first_is_not_sent() {
    #[derive(Clone)]
    struct Reader(std::rc::Rc<std::cell::Cell<u64>>);

    impl Body for Reader {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            let bytes = vec![0; self.0.take() as usize];
            Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes.into()))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0.get())
        }
    }

    impl Replay for Reader {
        fn try_clone(&self) -> Option<Self> {
            Some(self.clone())
        }
    }

    let (mut first, mut source) = split(Reader(std::rc::Rc::new(6900.into())));
    assert_eq!(source.again(Reading::new()).unwrap().size_hint().exact(), Some(6900));
    assert_eq!(next(&mut first).unwrap().unwrap().into_data().unwrap().len(), 6900);
    assert!(source.again(Reading::new()).is_none());
}

#[test]
fn a_failed_body_shows_no_secret_of_its_cause() {
    let failed = BodyFailed::new("GET https://user:s3cret@host/?key=K123 failed".into());
    let shown = format!("{failed} {failed:?}");
    assert!(shown.contains("https://host/") && !shown.contains("s3cret") && !shown.contains("K123"), "{shown}");
}
