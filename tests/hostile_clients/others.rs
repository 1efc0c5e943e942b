//! hyper in one call, tower's retry, axum's body, and what is declared elsewhere.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use redial::{
    Budget, CallReport, Place, RequestOptions, RetryLayer, StopReason, TimeoutLayer, Transient,
    testing::{Reply, Script, Server, service},
    tower::RetryPolicy,
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, retry};

use crate::{ms, policy, with};

fn put(url: &str) -> Request<Full<Bytes>> {
    Request::put(url).body(Full::from("one more")).unwrap()
}

#[tokio::test]
async fn tower_clones_share_the_budget_and_not_the_calls_state() {
    let server = Server::http1([Reply::status(503)]);
    let policy = RetryPolicy::new(policy().budget(Budget::usual()).build().unwrap());
    let mut client = ServiceBuilder::new()
        .layer(retry::RetryLayer::new(policy))
        .layer(TimeoutLayer::new().head(ms(5_000)))
        .service(Client::builder(TokioExecutor::new()).build_http());
    // One service, called again while its first call is under way; and clones of it.
    let mut calls = Vec::new();
    for number in 0..40 {
        let ready = client.ready().await.unwrap();
        calls.push(ready.call(put(&server.url("/"))));
        if number % 2 == 0 {
            client = client.clone();
        }
    }
    futures_util::future::join_all(calls).await;
    let sent = server.seen().requests.len();
    assert!((40..=46).contains(&sent), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn towers_second_call_begins_anew() {
    let busy = || Reply::status(503);
    let inner = service([busy(), busy(), busy(), busy(), busy(), Reply::ok("")]);
    let mut client = ServiceBuilder::new()
        .layer(retry::RetryLayer::new(RetryPolicy::new(policy().build().unwrap())))
        .layer(TimeoutLayer::new().head(ms(5_000)))
        .service(inner.clone());
    let first = ServiceExt::<Request<Full<Bytes>>>::ready(&mut client).await.unwrap().call(put("/")).await.unwrap();
    assert_eq!(first.extensions().get::<CallReport>().unwrap().attempts().len(), 3);
    let mut client = client.clone();
    let second = ServiceExt::<Request<Full<Bytes>>>::ready(&mut client).await.unwrap().call(put("/")).await.unwrap();
    assert_eq!((second.status().as_u16(), second.extensions().get::<CallReport>().unwrap().attempts().len()), (200, 3));
    inner.seen().sent(6);
}

#[tokio::test(start_paused = true)]
async fn tower_needs_evidence() {
    for (evident, sent) in [(false, 1), (true, 3)] {
        let inner = service([Reply::status(503)]);
        let client = ServiceBuilder::new()
            .layer(retry::RetryLayer::new(RetryPolicy::new(policy().build().unwrap())))
            .layer(TimeoutLayer::new().head(ms(5_000)))
            .service(inner.clone());
        let mut post = Request::post("/").body(Full::<Bytes>::from("one more")).unwrap();
        if evident {
            post.extensions_mut().insert(RequestOptions::new().idempotent("numbers are unique"));
        }
        client.oneshot(post).await.unwrap();
        inner.seen().sent(sent);
    }
}

/// tower's retry over a redirect layer: a rejection of a later hop.
#[tokio::test]
async fn tower_a_rejection_of_a_later_hop_does_not_repeat_the_post() {
    let script = Script::new([Reply::status(303).header("location", "/receipt")])
        .route("GET /receipt", [Reply::status(429), Reply::ok("receipt")]);
    let server = Server::http1(script);
    let policy = with(Transient::usual().rejected(429, "throttled is not processed")).build().unwrap();
    let client = ServiceBuilder::new()
        .layer(retry::RetryLayer::new(RetryPolicy::new(policy)))
        .layer(TimeoutLayer::new().head(ms(5_000)))
        .layer(tower_http::follow_redirect::FollowRedirectLayer::new())
        .service(Client::builder(TokioExecutor::new()).build_http());
    let post = Request::post(server.url("/orders")).body(Full::<Bytes>::from("one more")).unwrap();
    client.oneshot(post).await.unwrap();
    server.seen().to("POST /orders").sent(1);
}

/// A proxy: a handler's body, as it comes from a socket, handed on.
async fn proxy(upstream: String) -> (String, Arc<Mutex<Vec<Option<StopReason>>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let stops = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&stops);
    let client = RetryLayer::new(policy().build().unwrap())
        .layer(Client::builder(TokioExecutor::new()).build_http::<redial::AttemptBody<axum_core::body::Body>>());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (client, upstream, kept) = (client.clone(), upstream.clone(), Arc::clone(&kept));
            let handler = hyper::service::service_fn(move |request: Request<Incoming>| {
                let (client, upstream, kept) = (client.clone(), upstream.clone(), Arc::clone(&kept));
                async move {
                    let body = axum_core::body::Body::new(request.into_body());
                    let onward = Request::put(upstream).body(body).unwrap();
                    let answer = client.oneshot(onward).await;
                    kept.lock().unwrap().push(match &answer {
                        Ok(answer) => answer.extensions().get::<CallReport>().and_then(|report| report.stop()),
                        Err(error) => error.report().and_then(|report| report.stop()),
                    });
                    let answer = answer?;
                    Ok::<_, redial::Error>(answer.map(axum_core::body::Body::new))
                }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), handler));
        }
    });
    (url, stops)
}

#[tokio::test]
async fn an_axum_body_is_proxied_and_repeated() {
    for (size, expected) in [(10 << 10, 200), (1 << 20, 503)] {
        let server = Server::http1([Reply::status(503), Reply::ok("done").trailer("x-sum", "7")]);
        let (url, stops) = proxy(server.url("/")).await;
        let body = vec![7; size];
        let chunks = body.chunks(1 << 10).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect::<Vec<_>>();
        let body_stream = ::reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
        let response = crate::inner().build().unwrap().put(url).body(body_stream).send().await.unwrap();
        assert_eq!(response.status().as_u16(), expected, "{size}: {:?}", stops.lock().unwrap());
        let seen = server.until(|seen| seen.complete() == seen.requests.len()).await;
        assert!(seen.requests.iter().all(|request| request.body.is(&body)));
    }
}

/// The client goes in the middle of its upload: what is forwarded breaks, and is not repeated.
#[tokio::test]
async fn a_client_that_goes_in_the_middle_does_not_make_the_proxy_repeat() {
    let server = Server::http1([Reply::ok("done")]);
    let (url, stops) = proxy(server.url("/")).await;
    let addr = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nhalf")
        .await
        .unwrap();
    server.until(|seen| seen.requests.len() == 1).await;
    drop(stream);
    server.until(|seen| seen.in_flight() == 0).await;
    tokio::time::sleep(ms(200)).await;
    eprintln!("{:?}", stops.lock().unwrap());
    server.seen().sent(1);
}

#[tokio::test]
async fn one_call_keeps_its_connection_through_a_failure() {
    let server = Server::http1([Reply::status(503).body("busy"), Reply::ok("an order"), Reply::ok("another")]);
    let client = redial::hyper::client::<Full<Bytes>>(policy().build().unwrap());
    for word in ["an order", "another"] {
        let answer = client.clone().oneshot(put(&server.url("/"))).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), word);
    }
    assert_eq!(server.seen().connections, 1);
}

#[tokio::test]
async fn one_call_to_a_server_that_ends_the_handshake() {
    let refusing = Server::tls_refused();
    let client = redial::hyper::client::<Full<Bytes>>(policy().build().unwrap());
    let post = Request::post(refusing.url_with("https", "/")).body(Full::<Bytes>::from("one more")).unwrap();
    let error = client.oneshot(post).await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    eprintln!("{:?}", error.report());
    assert!(!error.report().unwrap().outcome_unknown());
}

/// `https` spoken to a plain server, and a scheme that nobody speaks.
#[tokio::test]
async fn one_call_by_the_wrong_scheme() {
    let server = Server::http1([Reply::ok("")]);
    let client = redial::hyper::client::<Full<Bytes>>(policy().build().unwrap());
    let error = client.clone().oneshot(put(&server.url_with("https", "/"))).await.unwrap_err();
    assert!(error.is_connect() && !error.report().unwrap().outcome_unknown(), "{error:?}");
    let error = client.oneshot(put(&server.url_with("ftp", "/"))).await.unwrap_err();
    assert_eq!(error.report().unwrap().attempts().len(), 1, "{error:?}");
}

#[test]
fn elsewhere_cannot_be_talked_out_of_its_bound() {
    let refused = |builder: redial::policy::StandardPolicyBuilder| builder.build().unwrap_err().to_string();
    refused(policy().elsewhere(Place::Sdk, "octocrab", 0));
    refused(policy().elsewhere(Place::Sdk, "  ", 1));
    refused(policy().attempts(1).elsewhere(Place::Sdk, "a", u32::MAX).elsewhere(Place::Gateway, "b", u32::MAX));
    refused(policy().attempts_because(3, "why").elsewhere(Place::Sdk, "octocrab", 4));
    // A product that is made small again by nothing.
    refused(policy().elsewhere(Place::Sdk, "a", 1 << 16).elsewhere(Place::Gateway, "b", 1 << 16));
    let text = refused(policy().elsewhere(Place::Sdk, "evil\nname\u{1b}[31m\u{7}", 5));
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    let single = policy().attempts(1).elsewhere(Place::Client, "reqwest", 3).build().unwrap();
    assert_eq!(single.worst_case_requests(), 3);
}

/// The page of `whole_bodies` says: declare `elsewhere(Place::Client, "reqwest", 3)`, for a written reason.
#[test]
fn what_whole_bodies_tells_people_to_declare_can_be_built() {
    let declared = || policy().elsewhere(Place::Client, "reqwest", 3);
    assert!(declared().build().is_err(), "nine requests need a reason");
    assert_eq!(declared().attempts_because(3, "a stated one").build().unwrap().worst_case_requests(), 9);
}

mod blocks {
    //! A block of code is the one path: what it calls is sent once an attempt (D34).

    use redial::{Failure, StandardPolicy, reqwest_middleware::RetryMiddleware};
    use tower::ServiceExt;

    use super::*;

    fn built() -> StandardPolicy {
        policy().build().unwrap()
    }

    #[tokio::test]
    async fn around_reqwest() {
        let server = Server::http1([Reply::status(503)]);
        let client = crate::client(policy());
        let _ = redial::retry(&built(), |_| {
            let (client, url) = (client.clone(), server.url("/"));
            async move {
                match client.get(url).send().await?.status().is_server_error() {
                    true => Err(Failure::transient("busy")),
                    false => Ok(()),
                }
            }
        })
        .idempotent("it only reads")
        .await;
        server.seen().sent(3);
    }

    #[tokio::test]
    async fn around_reqwest_middleware() {
        let server = Server::http1([Reply::status(503)]);
        let client = reqwest_middleware::ClientBuilder::new(crate::inner().build().unwrap())
            .with(RetryMiddleware::new(built()))
            .build();
        let _ = redial::retry(&built(), |_| {
            let (client, url) = (client.clone(), server.url("/"));
            async move {
                match client.get(url).send().await?.status().is_server_error() {
                    true => Err(Failure::transient("busy")),
                    false => Ok(()),
                }
            }
        })
        .idempotent("it only reads")
        .await;
        server.seen().sent(3);
    }

    /// The block of docs/coming-from.md, as it stands there: a busy server that says when.
    #[tokio::test]
    async fn the_block_of_the_page_repeats_a_503_and_heeds_retry_after() {
        let server = Server::http1([Reply::status(503).header("retry-after", "1"), Reply::ok("an order")]);
        let client = crate::inner().build().unwrap();
        let text = redial::retry(&built(), |_| {
            let (client, url) = (client.clone(), server.url("/"));
            async move {
                let answer = redial::reqwest::check(client.get(url).send().await?)?;
                Ok::<_, Failure>(answer.text().await?)
            }
        })
        .idempotent("it only reads")
        .await;
        assert_eq!(
            text.unwrap_or_else(|error| panic!("after {} requests: {error}", server.seen().requests.len())),
            "an order"
        );
    }

    #[tokio::test]
    async fn around_grpc() {
        use crate::support::{Client, channel, idempotent, order, unavailable};
        let server = Server::http2([unavailable()]);
        let client = Client::new(redial::grpc::channel(channel(server.addr()), idempotent()));
        let _ = redial::retry(&idempotent(), |_| {
            let mut client = client.clone();
            async move { Ok::<_, Failure>(client.place(order()).await?) }
        })
        .idempotent("it only reads")
        .await;
        let sent = server.seen().requests.len();
        // Not one, because its own layer leaves it to the block and the block does not know the code.
        assert_eq!(sent, 3);
    }

    #[tokio::test]
    async fn around_towers_retry() {
        let server = Server::http1([Reply::status(503)]);
        let client = ServiceBuilder::new()
            .layer(retry::RetryLayer::new(RetryPolicy::new(built())))
            .layer(TimeoutLayer::new().head(ms(5_000)))
            .service(Client::builder(TokioExecutor::new()).build_http());
        let _ = redial::retry(&built(), |_| {
            let (client, url) = (client.clone(), server.url("/"));
            async move {
                let answer = client.oneshot(put(&url)).await?;
                match answer.status().is_server_error() {
                    true => Err(Failure::transient("busy")),
                    false => Ok(()),
                }
            }
        })
        .idempotent("it only reads")
        .await;
        server.seen().sent(3);
    }
}

/// The block of docs/coming-from.md, and a URL with a secret in its query: errors and events show none of it.
#[tokio::test]
async fn a_block_shows_no_secret_of_reqwests_error() {
    use redial::{Failure, testing::Events};
    let refusing = Server::refusing();
    let events = Events::capture();
    let client = crate::inner().build().unwrap();
    let error = redial::retry(&policy().build().unwrap(), |_| {
        let (client, url) = (client.clone(), refusing.url("/?token=SECRET"));
        async move { Ok::<_, Failure>(client.get(url).send().await?.status()) }
    })
    .idempotent("it only reads")
    .await
    .unwrap_err();
    assert!(!format!("{:?}", events.all()).contains("SECRET"), "in an event: {:?}", events.all());
    assert!(!format!("{error:?}").contains("SECRET"), "in Debug: {error:?}");
    assert!(!format!("{error}").contains("SECRET"), "in Display: {error}");
}

/// A code that the policy names, said by a plain tonic client within a block.
#[tokio::test]
async fn a_block_around_a_plain_tonic_client_knows_its_codes() {
    use crate::support::{Client, channel, done, idempotent, order, unavailable};
    let server = Server::http2([unavailable(), done()]);
    let client = Client::new(channel(server.addr()));
    let answer = redial::retry(&idempotent(), |_| {
        let mut client = client.clone();
        async move { Ok::<_, redial::Failure>(client.place(order()).await?) }
    })
    .idempotent("it only reads")
    .await;
    assert!(answer.is_ok(), "after {} requests: {answer:?}", server.seen().requests.len());
}

/// A `TimeoutLayer` below is required by types; that it bounds the head is the user's to say, and the page says so.
#[tokio::test(start_paused = true)]
async fn towers_retry_over_a_timeout_layer_with_a_head_ends() {
    let timeouts = redial::Timeouts { attempt: ms(1_000), total: ms(5_000) };
    let policy = redial::StandardPolicy::new("orders", timeouts, Transient::usual()).unwrap();
    let client = ServiceBuilder::new()
        .layer(retry::RetryLayer::new(RetryPolicy::new(policy)))
        .layer(TimeoutLayer::new().head(ms(1_000)).body_idle(ms(1_000)))
        .service(service([Reply::stall()]));
    let ended = tokio::time::timeout(std::time::Duration::from_secs(3600), client.oneshot(put("/"))).await;
    assert!(ended.is_ok(), "a retry without a timeout can be written after all");
}

/// An outer deadline in the extensions, in the past: nothing is sent, through every client.
#[tokio::test]
async fn a_deadline_that_has_passed_sends_nothing() {
    let server = Server::http1([Reply::ok("")]);
    let over = redial::Deadline::after(ms(0));
    let mut request = put(&server.url("/"));
    request.extensions_mut().insert(over);
    let one_call = redial::hyper::client::<Full<Bytes>>(policy().build().unwrap());
    assert!(one_call.oneshot(request).await.unwrap_err().is_timeout());
    let reqwests = crate::client(policy());
    assert!(reqwests.put(server.url("/")).extension(over).send().await.unwrap_err().is_timeout());
    let middleware = reqwest_middleware::ClientBuilder::new(crate::inner().build().unwrap())
        .with(redial::reqwest_middleware::RetryMiddleware::new(policy().build().unwrap()))
        .build();
    let error = middleware.put(server.url("/")).with_extension(over).send().await.unwrap_err();
    assert!(redial::reqwest_middleware::as_redial(&error).unwrap().is_timeout());
    server.seen().sent(0);
}

/// What a server's caller told, by `OutboundHints`: no repeats while the caller repeats, through every client of ours.
#[tokio::test]
async fn a_callers_word_reaches_the_clients() {
    let server = Server::http1([Reply::status(503)]);
    let middleware = reqwest_middleware::ClientBuilder::new(crate::inner().build().unwrap())
        .with(redial::reqwest_middleware::RetryMiddleware::new(policy().build().unwrap()))
        .build();
    let hints = redial::OutboundHints::new().with_deadline(redial::Deadline::after(ms(0)));
    let error = hints.scope(async { middleware.put(server.url("/")).send().await }).await.unwrap_err();
    assert!(redial::reqwest_middleware::as_redial(&error).unwrap().is_timeout());
    server.seen().sent(0);
}
