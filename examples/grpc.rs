//! A generated client whose channel retries: `cargo run --features grpc --example grpc`. Needs nothing else: it starts a
//! server of its own, which is unavailable twice.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use redial::{GrpcCode, StandardPolicy, Timeouts, Transient, grpc::Commit};
use tonic::{Code, Request, transport::Endpoint};

#[path = "support/orders.rs"]
mod orders;

use orders::OrdersClient;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = orders::serve(2).await?;

    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let transient = Transient::usual().code(GrpcCode::Unavailable);
    // Every call of gRPC is a POST: without this, UNAVAILABLE would be final.
    let policy = StandardPolicy::builder("orders", timeouts, transient)
        .idempotent("orders have numbers: the second of two is refused")
        .build()?;

    let channel = Endpoint::from_shared(server.url.clone())?.connect_lazy();
    // All methods of this service are unary.
    let channel = redial::grpc::channel(channel, policy).commit(Commit::Status);
    let mut client = OrdersClient::new(channel);

    let mut request = Request::new(Bytes::from("order 7"));
    request.set_timeout(Duration::from_secs(5));
    let answer = client.place(request).await?;
    println!("{:?} after {} calls", answer.get_ref(), server.calls());
    assert_eq!((answer.get_ref().as_ref(), server.calls()), (&b"placed: order 7"[..], 3));

    // What nobody named is final.
    let status = client.place(Request::new(Bytes::new())).await.expect_err("an empty order");
    println!("{:?} after {} call", status.code(), server.calls() - 3);
    assert_eq!((status.code(), server.calls()), (Code::InvalidArgument, 4));
    Ok(())
}
