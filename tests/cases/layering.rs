//! What stands beside a retry layer.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Version, header::LOCATION};
use http_body_util::{BodyExt, Full};
use redial::{AttemptBody, CallReport, RetryLayer, StopReason};
use tokio::time::Instant;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_http::follow_redirect::{FollowRedirectLayer, policy::clone_body_fn};

use crate::{
    policies::policy,
    script::{Failure, Script, fail, hang, ms, request, status},
};

#[tokio::test(start_paused = true)]
async fn c102_an_attempt_is_the_whole_chain_of_redirects() {
    let answers = Mutex::new(VecDeque::from([307, 503, 307, 200]));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = {
        let (seen, answers) = (Arc::clone(&seen), Arc::new(answers));
        service_fn(move |request: Request<AttemptBody<Full<Bytes>>>| {
            let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect().await?.to_bytes();
                seen.lock().unwrap().push((path, body));
                let code = answers.lock().unwrap().pop_front().expect("four requests");
                let response = Response::builder().status(code).header(LOCATION, "/b");
                Ok::<_, BoxError>(response.body(Full::<Bytes>::default()).unwrap())
            }
        })
    };
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .layer(FollowRedirectLayer::with_policy(clone_body_fn(AttemptBody::try_clone)))
        .service(server);
    let keyed =
        Request::post("http://api.example/a").header("idempotency-key", "k1").body(Full::from("order")).unwrap();
    let answer = client.oneshot(keyed).await.unwrap();
    let paths: Vec<_> = seen.lock().unwrap().iter().map(|(path, body)| (path.clone(), body.clone())).collect();
    let expected = ["/a", "/b", "/a", "/b"].map(|path| (path.to_owned(), Bytes::from_static(b"order")));
    assert_eq!(paths, expected);
    // Hops are not attempts.
    assert_eq!(answer.extensions().get::<CallReport>().unwrap().attempts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_later_hops_failure_proves_nothing_about_the_first_request() {
    // The first request had its effect, was answered, and the layer below went on to where nobody listens.
    for body in ["", "order"] {
        let script = Script::new([status(303).header("location", "/b"), fail(Failure::Unsent)]);
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(FollowRedirectLayer::new())
            .service(script.clone());
        let post = Request::post("http://api.example/a").body(Full::<Bytes>::from(body)).unwrap();
        let error = client.oneshot(post).await.unwrap_err();
        assert_eq!((error.stop(), script.count()), (Some(StopReason::NoEvidence), 2), "{body:?}");
        assert!(error.report().unwrap().outcome_unknown());
    }
}

/// Stamps with the time, as a signer does.
fn stamping(start: Instant) -> impl Fn(Request<AttemptBody<Full<Bytes>>>) -> Request<AttemptBody<Full<Bytes>>> + Clone {
    move |mut request| {
        let now = start.elapsed().as_millis();
        request.headers_mut().insert("x-amz-date", HeaderValue::from_str(&now.to_string()).unwrap());
        request.headers_mut().append("authorization", HeaderValue::from_str(&format!("signed at {now}")).unwrap());
        request
    }
}

#[tokio::test(start_paused = true)]
async fn c130_each_attempt_is_signed_afresh_where_the_signer_is_inside() {
    let (script, start) = (Script::new([hang(), status(200)]), Instant::now());
    let client =
        ServiceBuilder::new().layer(RetryLayer::new(policy())).map_request(stamping(start)).service(script.clone());
    client.oneshot(request(Method::GET)).await.unwrap();
    let dates: Vec<_> = script.seen().iter().map(|seen| seen.headers["x-amz-date"].clone()).collect();
    assert_eq!(dates, ["0", "1100"], "after a timeout of 1 s and a wait of 100 ms");
    assert!(script.seen().iter().all(|seen| seen.headers.get_all("authorization").iter().count() == 1));

    // Outside, the first signature is sent again, however old; a caller's own signature is sent as it is.
    let (script, start) = (Script::new([hang(), status(200)]), Instant::now());
    let mut signed = request(Method::GET);
    let now = start.elapsed().as_millis().to_string();
    signed.headers_mut().insert("x-amz-date", HeaderValue::from_str(&now).unwrap());
    RetryLayer::new(policy()).layer(script.clone()).oneshot(signed).await.unwrap();
    assert!(script.seen().iter().all(|seen| seen.headers["x-amz-date"] == now));
}

#[tokio::test(start_paused = true)]
async fn c132_what_inner_layers_append_is_not_appended_to() {
    let script = Script::new([status(503), status(503), status(200)]);
    let append = |mut request: Request<AttemptBody<Full<Bytes>>>| {
        request.headers_mut().append("authorization", HeaderValue::from_static("Bearer one"));
        request.headers_mut().append("cookie", HeaderValue::from_static("b=2"));
        request
    };
    let client = ServiceBuilder::new().layer(RetryLayer::new(policy())).map_request(append).service(script.clone());
    let mut own = request(Method::GET);
    own.headers_mut().insert("cookie", "a=1".parse().unwrap());
    client.oneshot(own).await.unwrap();
    for seen in script.seen() {
        assert_eq!(seen.headers.get_all("authorization").iter().collect::<Vec<_>>(), ["Bearer one"]);
        assert_eq!(seen.headers.get_all("cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn c133_a_retry_layer_within_another_sends_once() {
    let script = Script::always(status(429));
    // Boxed in between, so that types do not see it.
    let inner = RetryLayer::new(policy()).layer(script.clone().map_request(|request: Request<_>| request));
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .map_request(|request: Request<AttemptBody<Full<Bytes>>>| request.map(BodyExt::boxed_unsync))
        .service(inner);
    client.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(script.count(), 3, "three attempts, and not nine");
}

#[derive(Clone, Debug, PartialEq)]
struct Custom(&'static str);

#[tokio::test(start_paused = true)]
async fn c134_all_of_the_head_is_there_on_the_second_attempt() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let server = {
        let heads = Arc::clone(&heads);
        service_fn(move |request: Request<AttemptBody<Full<Bytes>>>| {
            let (parts, _) = request.into_parts();
            let mut heads = heads.lock().unwrap();
            let values: Vec<_> = parts.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            heads.push((parts.version, values, parts.extensions.get::<Custom>().cloned()));
            let code = if heads.len() == 1 { 503 } else { 200 };
            let response = Response::builder().status(code).body(Full::<Bytes>::default()).unwrap();
            async move { Ok::<_, BoxError>(response) }
        })
    };
    let mut own = request(Method::GET);
    *own.version_mut() = Version::HTTP_2;
    own.extensions_mut().insert(Custom("the caller's"));
    for value in [&b"one"[..], b"two", b"\xff\xfe", b"three"] {
        own.headers_mut().append("x-many", HeaderValue::from_bytes(value).unwrap());
    }
    RetryLayer::new(policy()).layer(server).oneshot(own).await.unwrap();
    let heads = heads.lock().unwrap();
    assert_eq!(heads[0], heads[1]);
    assert_eq!((heads[1].0, heads[1].1.len(), &heads[1].2), (Version::HTTP_2, 4, &Some(Custom("the caller's"))));
    assert_eq!(ms(100), crate::policies::WAIT);
}

/// C142: one span for each attempt, siblings, made by the user's own trace layer inside the retry layer.
#[tokio::test(start_paused = true)]
async fn c142_attempts_have_spans_of_their_own() {
    let (capture, _guard) = crate::capture::Capture::start();
    let script = Script::new([status(503), status(503), status(200)]);
    let propagated = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&propagated);
    let per_attempt =
        tower_http::trace::TraceLayer::new_for_http().make_span_with(|request: &Request<AttemptBody<Full<Bytes>>>| {
            let number = redial::attempt_number(request.extensions());
            tracing::info_span!("attempt", number)
        });
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .layer(per_attempt)
        // What a propagator reads: the span that is current when the request goes out.
        .map_request(move |request: Request<AttemptBody<Full<Bytes>>>| {
            seen.lock().unwrap().push(tracing::Span::current().id());
            request
        })
        .service(script.clone());
    client.oneshot(request(Method::GET)).await.unwrap();
    let ids = propagated.lock().unwrap().clone();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(Option::is_some) && ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    let spans: Vec<_> = capture.all().into_iter().filter(|said| said.to_string().contains("attempt")).collect();
    for number in ["1", "2", "3"] {
        assert!(spans.iter().any(|span| span.to_string().contains(&format!("number={number}"))), "{number}: {spans:?}");
    }
}
