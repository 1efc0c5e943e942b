//! What can be sent, shared and cloned, and spawned.

use bytes::Bytes;
use http_body_util::Full;
use redial::{StandardPolicy, reqwest::Adapter, reqwest_middleware::RetryMiddleware, tower::RetryPolicy};

fn shared<T: Clone + Send + Sync + 'static>() {}

fn response<T: Send + Sync + 'static>() {}

fn spawned<F: Future + Send + 'static>(_: impl FnOnce() -> F) {}

#[test]
fn clients_are_shared_and_their_calls_spawned() {
    shared::<redial::reqwest::Client>();
    shared::<Adapter>();
    shared::<RetryMiddleware>();
    shared::<RetryPolicy<StandardPolicy>>();
    shared::<redial::hyper::Client<Full<Bytes>>>();
    shared::<redial::hyper::Connector>();
    response::<redial::reqwest::ResponseBody>();

    let client: fn() -> redial::reqwest::Client = || unreachable!("only types are looked at");
    spawned(move || client().get("http://127.0.0.1/").send());
    spawned(move || async move { client().execute(reqwest::Request::new(http::Method::GET, url())).await });
}

fn url() -> reqwest::Url {
    unreachable!("only types are looked at")
}
