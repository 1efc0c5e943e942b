//! Blocks around the clients of the adapters, and holds around blocks (D34, S13, S17).
#![cfg(all(feature = "grpc", feature = "reqwest-middleware", feature = "tower-retry"))]

use std::{cell::Cell, time::Duration};

use http::Method;
use redial::{
    Backoff, Budget, Error, Failure, GrpcCode, Hold, HoldScope, RetryLayer, StandardPolicy, TimeoutLayer, Timeouts,
    Transient,
    policy::StandardPolicyBuilder,
    testing::{Reply, Server, service},
};
use tokio::time::Instant;
use tower::{Layer, ServiceBuilder, ServiceExt};

use crate::{
    policies::{builder, policy, timeouts},
    script::{Script, ms, request, status},
};

fn quick() -> StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(20) };
    StandardPolicy::builder("shop", timeouts, Transient::usual().code(GrpcCode::Unavailable))
        .backoff(Backoff::fixed(ms(5), "tests are quick"))
        .budget(Budget::unlimited("tests bound themselves"))
}

/// A policy of ours within tower's layer, within a block: one path, three attempts.
#[tokio::test(start_paused = true)]
async fn towers_retry_does_not_multiply_within_a_block() {
    let script = Script::always(status(503));
    let client = ServiceBuilder::new()
        .layer(tower::retry::RetryLayer::new(redial::tower::RetryPolicy::new(policy())))
        .layer(TimeoutLayer::new().head(ms(1_000)))
        .service(script.clone());
    let block = redial::retry(&policy(), |_| async {
        Failure::check(client.clone().oneshot(request(Method::GET)).await?).map(drop)
    });
    let result: Result<(), Error> = block.idempotent("it only reads").await;
    result.unwrap_err();
    assert_eq!(script.count(), 3);
}

/// The calls of a block are its attempts: a reset of reqwest's is repeated by the block as it is by the layer.
#[tokio::test]
async fn reqwests_resets_are_repeated_by_the_block() {
    let server = Server::http1([Reply::reset(), Reply::reset(), Reply::ok("")]);
    let inner = reqwest::Client::builder().retry(reqwest::retry::never()).build().unwrap();
    let client = redial::reqwest::client(inner, quick().build().unwrap());
    let block = redial::retry(&policy(), |_| async { Ok(client.get(server.url("/")).send().await.map(drop)?) });
    let result: Result<(), Error> = block.idempotent("it only reads").await;
    result.unwrap();
    server.seen().sent(3);
}

/// And one through the middleware.
#[tokio::test]
async fn the_middlewares_resets_are_repeated_by_the_block() {
    let server = Server::http1([Reply::reset(), Reply::reset(), Reply::ok("")]);
    let inner = reqwest::Client::builder().retry(reqwest::retry::never()).build().unwrap();
    let middleware = redial::reqwest_middleware::RetryMiddleware::new(quick().build().unwrap());
    let client = reqwest_middleware::ClientBuilder::new(inner).with(middleware).build();
    let block = redial::retry(&policy(), |_| async { Ok(client.get(server.url("/")).send().await.map(drop)?) });
    let result: Result<(), Error> = block.idempotent("it only reads").await;
    assert!(result.is_ok(), "{result:?}");
    server.seen().sent(3);
}

/// A gRPC call that is answered UNAVAILABLE, a code that the policy lists: the layer leaves it to the block, and the block
/// repeats it.
#[tokio::test(start_paused = true)]
async fn a_code_that_is_listed_is_repeated_by_the_block() {
    let asked = Cell::new(0);
    let policy = quick().build().unwrap();
    let block = redial::retry(&policy, |_| async {
        asked.set(asked.get() + 1);
        if asked.get() < 3 {
            Err(tonic::Status::unavailable("try again"))?
        }
        Ok(())
    });
    let result: Result<(), Error> = block.idempotent("it only reads").await;
    assert!(result.is_ok(), "{result:?}");
}

/// The same through the layer, which sends it once.
#[tokio::test(start_paused = true)]
async fn a_grpc_call_within_a_block_is_repeated_by_somebody() {
    let unavailable = || Reply::status(200).header("content-type", "application/grpc").header("grpc-status", "14");
    let server = service([unavailable(), unavailable(), unavailable()]);
    let policy = quick().idempotent("orders have numbers").build().unwrap();
    let channel = redial::grpc::channel(server.clone(), policy.clone());
    let block = redial::retry(&policy, |_| async {
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await?;
        let path = http::uri::PathAndQuery::from_static("/shop.Orders/Get");
        client.unary(tonic::Request::new(()), path, Nothing).await?;
        Ok(())
    });
    let result: Result<(), Error> = block.idempotent("it only reads").await;
    result.unwrap_err();
    server.seen().sent(3);
}

/// Messages that are empty.
#[derive(Default)]
struct Nothing;

impl tonic::codec::Codec for Nothing {
    type Encode = ();
    type Decode = ();
    type Encoder = Nothing;
    type Decoder = Nothing;
    fn encoder(&mut self) -> Nothing {
        Nothing
    }
    fn decoder(&mut self) -> Nothing {
        Nothing
    }
}

impl tonic::codec::Encoder for Nothing {
    type Item = ();
    type Error = tonic::Status;
    fn encode(&mut self, _: (), _: &mut tonic::codec::EncodeBuf<'_>) -> Result<(), tonic::Status> {
        Ok(())
    }
}

impl tonic::codec::Decoder for Nothing {
    type Item = ();
    type Error = tonic::Status;
    fn decode(&mut self, _: &mut tonic::codec::DecodeBuf<'_>) -> Result<Option<()>, tonic::Status> {
        Ok(Some(()))
    }
}

fn rejecting(provider: &str) -> StandardPolicyBuilder {
    let transient = Transient::usual().rejected(429, "API guide, section 4");
    StandardPolicy::builder(provider, timeouts(1_000, 60_000), transient)
        .backoff(Backoff::fixed(ms(100), "tests are exact"))
        .budget(Budget::unlimited("tests bound themselves"))
}

/// "What one call was told holds for the others to that provider" (S17), from within a block of another policy too:
/// nothing is sent earlier than the server said.
#[tokio::test(start_paused = true)]
async fn a_hold_is_heeded_within_a_block() {
    let shop = rejecting("shop").hold(HoldScope::All, Hold::new()).build().unwrap();
    let script = Script::new([status(429).retry_after("30"), status(200), status(200)]);
    let start = Instant::now();
    let client = RetryLayer::new(shop).layer(script.clone());
    let told = tokio::spawn(client.clone().oneshot(request(Method::GET)));
    tokio::time::sleep(ms(1)).await;
    let report = builder().operation("report").build().unwrap();
    let block = redial::retry(&report, |_| async {
        Failure::check(client.clone().oneshot(request(Method::GET)).await?).map(drop)
    });
    let _: Result<(), Error> = block.idempotent("it only reads").await;
    drop(told.await);
    let sent = script.millis(start);
    assert!(sent[1..].iter().all(|at| *at >= 30_000), "{sent:?}");
}

/// What a call within a block is told holds for the others to that provider.
#[tokio::test(start_paused = true)]
async fn what_a_block_is_told_holds_others() {
    let shop = rejecting("shop").hold(HoldScope::All, Hold::new()).build().unwrap();
    let script = Script::new([status(429).retry_after("30"), status(200), status(200)]);
    let start = Instant::now();
    let client = RetryLayer::new(shop).layer(script.clone());
    let report = builder().operation("report").build().unwrap();
    let block = redial::retry(&report, |_| async {
        Failure::check(client.clone().oneshot(request(Method::GET)).await?).map(drop)
    });
    let block = async {
        let result: Result<(), Error> = block.idempotent("it only reads").await;
        result
    };
    let other = async {
        tokio::time::sleep(ms(1)).await;
        client.clone().oneshot(request(Method::GET)).await
    };
    let (block, other) = tokio::join!(block, other);
    assert!(block.is_ok() && other.is_ok());
    let sent = script.millis(start);
    assert!(sent[1..].iter().all(|at| *at >= 30_000), "{sent:?}");
}

/// "`grpc-timeout`, anew for each attempt …; with `Commit::Status` also what is left of the attempt": within a block, whose
/// attempt it is, as well.
#[tokio::test(start_paused = true)]
async fn a_grpc_call_within_a_block_tells_its_time() {
    let done = || Reply::status(200).header("content-type", "application/grpc").header("grpc-status", "5");
    let server = service([done(), done()]);
    let policy = quick().idempotent("orders have numbers").build().unwrap();
    let channel = redial::grpc::channel(server.clone(), policy.clone()).commit(redial::grpc::Commit::Status);
    let call = || async {
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await?;
        let path = http::uri::PathAndQuery::from_static("/shop.Orders/Get");
        client.unary(tonic::Request::new(()), path, Nothing).await.map(drop)
    };
    call().await.unwrap_err();
    let block = redial::retry(&policy, |_| async { Ok(call().await?) });
    let result: Result<(), Error> = block.idempotent("it only reads").await;
    result.unwrap_err();
    let told: Vec<_> = server.seen().requests.iter().map(|seen| seen.headers.contains_key("grpc-timeout")).collect();
    assert_eq!(told, [true, true], "outside of a block, and within");
}
