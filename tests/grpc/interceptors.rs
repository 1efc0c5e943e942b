//! Interceptors: above, once a call; below, once an attempt.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use redial::testing;
use tonic::{Code, Request, Status, service::interceptor::InterceptedService};

use super::support::*;

/// A token for each time that it is asked.
fn tokens() -> impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone {
    let asked = Arc::new(AtomicU32::new(0));
    move |mut request: Request<()>| {
        let token = asked.fetch_add(1, Relaxed) + 1;
        request.metadata_mut().insert("authorization", format!("token {token}").parse().unwrap());
        Ok(request)
    }
}

#[tokio::test(start_paused = true)]
async fn above_it_is_asked_once_a_call() {
    let service = testing::service([unavailable(), unavailable(), done()]);
    let channel = redial::grpc::channel(service.clone(), idempotent());
    Client::new(InterceptedService::new(channel, tokens())).place(order()).await.unwrap();
    let seen = service.seen();
    let sent: Vec<_> = seen.sent(3).requests.iter().map(|request| &request.headers["authorization"]).collect();
    assert_eq!(sent, ["token 1", "token 1", "token 1"]);
}

#[tokio::test(start_paused = true)]
async fn below_it_is_asked_once_an_attempt() {
    let service = testing::service([unavailable(), unavailable(), done()]);
    let channel = InterceptedService::new(service.clone(), tokens());
    Client::new(redial::grpc::channel(channel, idempotent())).place(order()).await.unwrap();
    let seen = service.seen();
    let sent: Vec<_> = seen.sent(3).requests.iter().map(|request| &request.headers["authorization"]).collect();
    assert_eq!(sent, ["token 1", "token 2", "token 3"]);
}

/// What it refuses is judged by its code, like an answer.
#[tokio::test(start_paused = true)]
async fn its_refusal_is_an_answer() {
    let service = testing::service([done()]);
    let refuse = |_: Request<()>| Err(Status::unauthenticated("who are you"));
    let channel = InterceptedService::new(service.clone(), refuse);
    let status = Client::new(redial::grpc::channel(channel, idempotent())).place(order()).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unauthenticated, "who are you"));
    service.seen().sent(0);
}
