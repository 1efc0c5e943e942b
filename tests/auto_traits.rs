//! What can be sent, shared, cloned and moved, and what cannot: exactly what the inner parts allow.

use std::{
    cell::Cell,
    convert::Infallible,
    future::Ready,
    marker::PhantomData,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{
    Empty, Full,
    combinators::{BoxBody, UnsyncBoxBody},
};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use redial::{
    AttemptBody, BoxError, CallReport, Policy, RetryLayer, StandardPolicy, Streamed, TimeoutLayer,
    retry::{Retry, RetryFuture},
    timeout::{Timeout, TimeoutBody, TimeoutFuture},
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

#[path = "support/counting.rs"]
mod support;

use support::policy;

type Hyper<B> = Client<HttpConnector, AttemptBody<B>>;

/// A service with a future of this type.
struct Scripted<F>(PhantomData<fn() -> F>);

impl<F> Clone for Scripted<F> {
    fn clone(&self) -> Self {
        Scripted(PhantomData)
    }
}

impl<F, B> Service<Request<B>> for Scripted<F>
where
    F: Future<Output = Result<Response<Full<Bytes>>, Infallible>>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = F;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> F {
        unreachable!("only types are looked at")
    }
}

type Answer = Result<Response<Full<Bytes>>, Infallible>;

/// Sent and shared.
type Shared = Ready<Answer>;

/// Sent, not shared.
type Sent = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Neither.
type Local = Pin<Box<dyn Future<Output = Answer>>>;

/// A body that stays on its thread.
type LocalBody = http_body_util::StreamBody<
    futures_util::stream::LocalBoxStream<'static, Result<http_body::Frame<Bytes>, BoxError>>,
>;

type Call<F, B = Full<Bytes>> = RetryFuture<Scripted<F>, StandardPolicy, B, Full<Bytes>>;

/// A block of code with a future of this type.
type Block<F> = redial::block::RetryBlockFuture<fn(redial::Attempt) -> F, F>;

macro_rules! is {
    ($($type:ty: $($bound:ident)+;)+) => {
        $(const _: fn() = || {
            fn is<T: $($bound +)+>() {}
            is::<$type>();
        };)+
    };
}

/// Two impls that are both there would make the path ambiguous, and this would not compile.
macro_rules! is_not {
    ($($type:ty: $bound:ident;)+) => {
        $(const _: fn() = || {
            struct Bound;
            trait Either<Which> {
                fn of() {}
            }
            impl<T> Either<()> for T {}
            impl<T: $bound> Either<Bound> for T {}
            <$type as Either<_>>::of()
        };)+
    };
}

is! {
    RetryLayer<StandardPolicy>: Send Sync Clone;
    RetryLayer<Arc<dyn Policy + Send + Sync>>: Send Sync Clone;
    TimeoutLayer: Send Sync Clone;
    Retry<Hyper<Full<Bytes>>, StandardPolicy>: Send Sync Clone;
    Timeout<Hyper<Full<Bytes>>>: Send Sync Clone;
    TimeoutBody<Incoming>: Send Unpin;
    TimeoutBody<Full<Bytes>>: Send Sync Unpin;
    TimeoutBody<UnsyncBoxBody<Bytes, BoxError>>: Send Unpin;
    redial::Error: Send Sync Unpin;
    CallReport: Send Sync Clone Unpin;

    redial::Failure: Send Sync Unpin;
    redial::OutboundHints: Send Sync Clone Unpin;
    redial::layers::InboundLayer: Send Sync Clone;
    redial::layers::OutboundHeadersLayer: Send Sync Clone;
    redial::layers::Inbound<Hyper<Full<Bytes>>>: Send Sync Clone;
    redial::Scoped<Shared>: Send Sync Unpin;
    redial::Scoped<Sent>: Send;
    Block<Shared>: Send Sync;
    Block<Sent>: Send;

    // A call: what the inner future is.
    Call<Shared>: Send Sync;
    Call<Sent>: Send;
    RetryFuture<Hyper<Full<Bytes>>, StandardPolicy, Full<Bytes>, Incoming>: Send;
    TimeoutFuture<Shared>: Send Sync;
    TimeoutFuture<Sent>: Send;

    Call<Shared, UnsyncBoxBody<Bytes, BoxError>>: Send;

    // A body: what the caller's is.
    AttemptBody<Full<Bytes>>: Send Sync Unpin Default;
    AttemptBody<Empty<Bytes>>: Send Sync Unpin Default;
    AttemptBody<BoxBody<Bytes, BoxError>>: Send Sync Unpin Default;
    AttemptBody<UnsyncBoxBody<Bytes, BoxError>>: Send Unpin Default;
    AttemptBody<Streamed<Full<Bytes>>>: Send Sync Unpin Default;
    AttemptBody<Incoming>: Send Unpin;
}

is_not! {
    Call<Sent>: Sync;
    Call<Local>: Send;
    redial::Scoped<Local>: Send;
    Block<Sent>: Sync;
    Block<Local>: Send;
    TimeoutFuture<Sent>: Sync;
    TimeoutFuture<Local>: Send;
    TimeoutBody<LocalBody>: Send;
    AttemptBody<Streamed<LocalBody>>: Send;
    // An error holds the client's own, which is not `Clone`.
    redial::Error: Clone;
}

#[tokio::test]
async fn an_inner_service_need_not_be_send() -> Result<(), BoxError> {
    let calls = Rc::new(Cell::new(0));
    let counted = Rc::clone(&calls);
    let mut stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().total(Duration::from_secs(30)))
        .layer(RetryLayer::new(policy()))
        .service(service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
            let calls = Rc::clone(&counted);
            async move {
                tokio::task::yield_now().await;
                calls.set(calls.get() + 1);
                Ok::<_, Infallible>(support::answer(if calls.get() < 3 { 503 } else { 200 }))
            }
        }));
    let response = stack.ready().await?.call(Request::new(Full::default())).await?;
    assert_eq!((response.status().as_u16(), calls.get()), (200, 3));
    Ok(())
}
