//! `TimeoutLayer`: the head, the whole, and silence between frames. On paused time.

#[path = "common/policies.rs"]
mod policies;
#[path = "common/script.rs"]
mod script;

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use policies::{builder_within, timeouts};
use redial::{BoxError, Deadline, Error, RetryLayer, TimeoutLayer, timeout::TimeoutBody};
use script::{Failure, NotReady, Readiness, Script, fail, hang, ms, request, secs, status};
use tokio::time::{Instant, Sleep, sleep};
use tower::{Layer, ServiceBuilder, ServiceExt};

/// A body of single bytes with a pause before each.
struct Drip {
    pause: Duration,
    left: usize,
    next: Option<Pin<Box<Sleep>>>,
}

impl Drip {
    fn new(left: usize, pause: Duration) -> Self {
        Drip { pause, left, next: None }
    }
}

impl Body for Drip {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let pause = self.pause;
        let next = self.next.get_or_insert_with(|| Box::pin(sleep(pause)));
        std::task::ready!(next.as_mut().poll(cx));
        self.next = None;
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b".")))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

/// A response through this layer: its head after `head`, then a byte each `pause`.
async fn get(
    layer: TimeoutLayer,
    head: Duration,
    bytes: usize,
    pause: Duration,
) -> Result<Response<TimeoutBody<Drip>>, Error> {
    let service = tower::service_fn(move |_: Request<Full<Bytes>>| async move {
        sleep(head).await;
        Ok::<_, BoxError>(Response::new(Drip::new(bytes, pause)))
    });
    layer.layer(service).oneshot(request(Method::GET)).await
}

/// How many bytes came, and what ended them.
async fn read<B: Body<Data = Bytes, Error = Error>>(response: Response<B>) -> (usize, Option<Error>) {
    let mut body = std::pin::pin!(response.into_body());
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => read += frame.into_data().map_or(0, |data| data.len()),
            Err(error) => {
                assert!(body.frame().await.is_none(), "after its error a body is over");
                return (read, Some(error));
            }
        }
    }
    (read, None)
}

#[tokio::test(start_paused = true)]
async fn the_head_in_time() {
    let layer = || TimeoutLayer::new().head(ms(300));
    let start = Instant::now();
    let error = get(layer(), ms(301), 1, ms(0)).await.map(drop).unwrap_err();
    assert!(error.is_timeout() && !error.is_body() && error.report().is_none());
    assert_eq!((start.elapsed(), error.to_string()), (ms(300), "no response head within 300ms".to_owned()));
    // It says nothing about the body.
    let (bytes, error) = read(get(layer(), ms(299), 10, secs(5)).await.unwrap()).await;
    assert!((bytes, error.is_none()) == (10, true));
}

#[tokio::test(start_paused = true)]
async fn c076_head_and_body_on_one_clock() {
    // C076: the head comes, three bytes come, and then nothing; status and headers stay readable.
    let start = Instant::now();
    let response = get(TimeoutLayer::new().total(ms(300)), ms(50), 10, ms(70)).await.unwrap();
    assert_eq!(response.status(), 200);
    let (bytes, error) = read(response).await;
    let error = error.unwrap();
    assert_eq!((start.elapsed(), bytes), (ms(300), 3));
    assert!(error.is_timeout() && !error.is_body());
    assert_eq!(error.to_string(), "the response did not end within 300ms");
    // It bounds the head as well.
    let start = Instant::now();
    assert!(get(TimeoutLayer::new().total(ms(300)), secs(1), 1, ms(0)).await.map(drop).unwrap_err().is_timeout());
    assert_eq!(start.elapsed(), ms(300));
}

#[tokio::test(start_paused = true)]
async fn c077_silence_between_frames() {
    // C077: a byte every 20 ms for 10 s passes an idle limit of 50 ms, and fails an absolute one of 500 ms.
    let idle = || TimeoutLayer::new().body_idle(ms(50));
    let (bytes, error) = read(get(idle(), ms(0), 500, ms(20)).await.unwrap()).await;
    assert!((bytes, error.is_none()) == (500, true));
    let start = Instant::now();
    let (bytes, error) = read(get(idle().total(ms(500)), ms(0), 500, ms(20)).await.unwrap()).await;
    assert!(error.is_some_and(|error| error.is_timeout()));
    assert_eq!(start.elapsed(), ms(500));
    assert!((24..=25).contains(&bytes), "{bytes}");
    // Silence is an error, and of the body.
    let start = Instant::now();
    let (bytes, error) = read(get(idle(), secs(1), 5, ms(60)).await.unwrap()).await;
    let error = error.unwrap();
    assert_eq!((start.elapsed(), bytes), (ms(1_050), 0));
    assert!(error.is_timeout() && error.is_body());
    assert_eq!(error.to_string(), "the response body was silent for 50ms");
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_punished() {
    // What has arrived is handed out however late it is asked for. The total is the reader's time too.
    let layer = TimeoutLayer::new().body_idle(ms(50)).total(secs(90));
    let response = get(layer, ms(0), 5, ms(0)).await.unwrap();
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().into_data().unwrap().len();
        sleep(secs(10)).await;
    }
    assert_eq!(bytes, 5);
}

#[tokio::test(start_paused = true)]
async fn the_limits_are_asked_for_in_any_order() {
    let start = Instant::now();
    let layer = TimeoutLayer::new().body_idle(secs(1)).head(secs(9)).total(secs(2)).head(ms(10));
    get(layer, secs(1), 1, ms(0)).await.map(drop).unwrap_err();
    assert_eq!(start.elapsed(), ms(10));
}

/// What deadline a service sees below a layer, in milliseconds from now.
async fn deadline_below(layer: TimeoutLayer, outer: Option<Duration>) -> Option<u128> {
    let service = tower::service_fn(|request: Request<Full<Bytes>>| async move {
        let seen = request.extensions().get::<Deadline>().map(|deadline| deadline.remaining().as_millis());
        let mut response = Response::new(String::new());
        response.extensions_mut().insert(seen);
        Ok::<_, BoxError>(response)
    });
    let mut request = request(Method::GET);
    if let Some(outer) = outer {
        request.extensions_mut().insert(Deadline::after(outer));
    }
    let response = layer.layer(service).oneshot(request).await.map_err(drop).unwrap();
    *response.extensions().get::<Option<u128>>().unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_hands_its_deadline_down() {
    let layer = TimeoutLayer::new;
    assert_eq!(deadline_below(layer().head(secs(2)).total(secs(5)), None).await, Some(2_000));
    assert_eq!(deadline_below(layer().head(secs(9)).total(secs(5)), None).await, Some(5_000));
    assert_eq!(deadline_below(layer().body_idle(secs(5)), None).await, None, "silence is no deadline");
    assert_eq!(deadline_below(layer().total(secs(5)), Some(secs(3))).await, Some(3_000), "never lengthened");
    assert_eq!(deadline_below(layer().total(secs(5)), Some(secs(8))).await, Some(5_000));
}

#[tokio::test(start_paused = true)]
async fn an_outer_deadline_shortens_the_head_of_a_bare_stack() {
    // The one who put it in is obeyed without a retry layer too.
    let start = Instant::now();
    let mut request = request(Method::GET);
    request.extensions_mut().insert(Deadline::after(ms(40)));
    let stack = TimeoutLayer::new().total(secs(5)).layer(Script::new([hang()]));
    let error = stack.oneshot(request).await.unwrap_err();
    assert!(error.is_timeout() && error.is_outer_deadline(), "{error}");
    assert_eq!(start.elapsed(), ms(40));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_ours_below_stays_one_error() {
    let stack = |script: Script| {
        ServiceBuilder::new()
            .layer(TimeoutLayer::new().total(secs(60)))
            .layer(RetryLayer::new(builder_within(timeouts(100, 1_000)).build().unwrap()))
            .service(script)
    };
    let error = stack(Script::always(fail(Failure::Reset))).oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_exhausted() && error.find_source::<Error>().is_none());
    assert!(error.find_source::<std::io::Error>().is_some());
    assert_eq!(error.report().unwrap().attempts().len(), 3);
    let text = error.to_string();
    assert_eq!(text.matches("attempt").count(), 2, "said once: {text}");
    // So does one of readiness.
    let never = Script::new([]).readiness([Readiness::Fails]);
    let error = stack(never).oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_not_ready() && error.find_source::<NotReady>().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_is_in_the_source() {
    let stack = TimeoutLayer::new().head(secs(1)).layer(Script::new([fail(Failure::Unsent)]));
    let error = stack.oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_connect() && !error.is_timeout() && error.report().is_none());
    assert!(error.find_source::<hyper_util::client::legacy::Error>().is_some());
}

#[tokio::test(start_paused = true)]
async fn size_and_end_are_kept() {
    let layer = TimeoutLayer::new().total(secs(9)).body_idle(secs(1));
    let mut body = get(layer, ms(0), 2, ms(1)).await.unwrap().into_body();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(2), false));
    body.frame().await.unwrap().unwrap();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(1), false));
    body.frame().await.unwrap().unwrap();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
}

#[tokio::test(start_paused = true)]
async fn limits_without_end_do_not_overflow() {
    let layer = TimeoutLayer::new().head(Duration::MAX).total(Duration::MAX).body_idle(Duration::MAX);
    assert_eq!(read(get(layer, ms(1), 2, ms(1)).await.unwrap()).await.0, 2);
}

#[test]
fn unpin_send_and_clone_where_the_inner_is() {
    fn unpin<T: Unpin>() {}
    fn goes_between_threads<T: Send + Sync>() {}
    fn clone<T: Clone>(_: &T) {}
    unpin::<TimeoutBody<Full<Bytes>>>();
    goes_between_threads::<TimeoutBody<Full<Bytes>>>();
    clone(&TimeoutLayer::new().head(secs(1)).layer(Script::new([status(200)])));
}
