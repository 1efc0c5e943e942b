//! `IdempotencyKeyLayer`: which requests, which bytes, and one effect.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use redial::{
    CallReport, IdempotencyKeyLayer, RequestOptions, RetryLayer, StopReason, Timeouts, Transient,
    testing::{Reply, SeenRequest, service},
};
use tower::{Layer, ServiceBuilder, ServiceExt};

use crate::{
    get, paused, post,
    support::{
        Wire, attempts, hyper_client, policy_within,
        site::{Site, answer},
        soon, stop,
    },
};

const KEY: &str = "idempotency-key";

fn keys(request: &SeenRequest) -> Vec<&[u8]> {
    request.headers.get_all(KEY).iter().map(HeaderValue::as_bytes).collect()
}

/// What a server sees of this request's key.
async fn seen_key(layer: IdempotencyKeyLayer, request: Request<Full<Bytes>>) -> Option<Vec<u8>> {
    let server = service([Reply::ok("")]);
    layer.layer(server.clone()).oneshot(request).await.unwrap();
    let seen = server.seen().requests.remove(0);
    assert!(keys(&seen).len() <= 1);
    keys(&seen).first().map(|key| key.to_vec())
}

#[tokio::test]
async fn a_key_is_a_string_of_structured_fields_and_a_uuid_of_version_7() {
    let key = seen_key(IdempotencyKeyLayer::new(), post("/orders")).await.expect("a key");
    let item: sfv::Item = sfv::Parser::new(&key).parse().expect("RFC 9651");
    let text = item.bare_item.as_string().expect("a string").as_str().to_owned();
    assert!(item.params.is_empty());
    let uuid: uuid::Uuid = text.parse().expect("a UUID");
    assert_eq!((uuid.get_version_num(), uuid.get_variant()), (7, uuid::Variant::RFC4122));
    // Its first half is now.
    let (seconds, _) = uuid.get_timestamp().expect("a time").to_unix();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(seconds) < 60, "{seconds} is not {now}");

    let raw = seen_key(IdempotencyKeyLayer::new().raw(), post("/orders")).await.expect("a key");
    assert!(std::str::from_utf8(&raw).unwrap().parse::<uuid::Uuid>().is_ok());
}

#[tokio::test]
async fn keys_differ_from_call_to_call_and_are_not_secret() {
    let layer = IdempotencyKeyLayer::new();
    let made: std::collections::HashSet<_> = (0..1000).map(|_| layer.key()).collect();
    assert_eq!(made.len(), 1000);
    assert!(made.iter().all(|key| !key.is_sensitive()));
}

#[tokio::test]
async fn who_is_given_one() {
    let made = |method: &str| Request::builder().method(method).uri("/").body(Full::default()).unwrap();
    for (method, given) in [
        ("POST", true),
        ("PATCH", true),
        ("LOCK", true),
        ("GET", false),
        ("HEAD", false),
        ("OPTIONS", false),
        ("PUT", false),
        ("DELETE", false),
        ("QUERY", false),
        ("CONNECT", false),
    ] {
        let key = seen_key(IdempotencyKeyLayer::new(), made(method)).await;
        assert_eq!(key.is_some(), given, "{method}");
    }
    let mut upgrade = made("POST");
    upgrade.headers_mut().insert("upgrade", HeaderValue::from_static("websocket"));
    assert_eq!(seen_key(IdempotencyKeyLayer::new(), upgrade).await, None);

    let mut stated = post("/");
    stated.extensions_mut().insert(RequestOptions::new().idempotent("order numbers are unique"));
    assert_eq!(seen_key(IdempotencyKeyLayer::new(), stated).await, None);
    let mut unstated = post("/");
    unstated.extensions_mut().insert(RequestOptions::new().attempts(2));
    assert!(seen_key(IdempotencyKeyLayer::new(), unstated).await.is_some());
}

#[tokio::test]
async fn a_predicate_decides_otherwise() {
    let payments = || IdempotencyKeyLayer::new().when(|head| head.uri().path().starts_with("/payments"));
    assert!(seen_key(payments(), post("/payments")).await.is_some());
    assert_eq!(seen_key(payments(), post("/orders")).await, None);
    let delete = Request::delete("/payments/7").body(Full::default()).unwrap();
    assert!(seen_key(payments(), delete).await.is_some());
    // But never over a key.
    let mut own = post("/payments");
    own.headers_mut().insert(KEY, HeaderValue::from_static("mine"));
    assert_eq!(seen_key(payments(), own).await.as_deref(), Some(&b"mine"[..]));
}

#[tokio::test]
async fn a_caller_s_key_is_left_as_it_is() {
    for own in ["\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", "mine", "\"\"", "not a (valid) string\"", "\u{e9}"] {
        let mut request = post("/orders");
        request.headers_mut().insert(KEY, HeaderValue::from_bytes(own.as_bytes()).unwrap());
        assert_eq!(seen_key(IdempotencyKeyLayer::new(), request).await.as_deref(), Some(own.as_bytes()), "{own}");
    }
    // Whichever line it is on.
    let mut request = post("/orders");
    request.headers_mut().append(KEY, HeaderValue::from_static(""));
    request.headers_mut().append(KEY, HeaderValue::from_static("mine"));
    let server = service([Reply::ok("")]);
    IdempotencyKeyLayer::new().layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!(keys(&server.seen().requests[0]), [&b""[..], b"mine"]);
}

#[tokio::test]
async fn a_blank_header_is_no_key() {
    for blank in ["", "  ", "\t"] {
        let mut request = post("/orders");
        request.headers_mut().insert(KEY, HeaderValue::from_static(blank));
        let key = seen_key(IdempotencyKeyLayer::new(), request).await.expect("a key");
        assert_eq!(key.len(), 38, "a UUID and its quotes");
    }
}

#[tokio::test(start_paused = true)]
async fn another_header_by_the_vendor_s_contract() {
    let header = HeaderName::from_static("x-request-key");
    let server = service([Reply::status(503), Reply::ok("done")]);
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new().header(header.clone()).raw())
        .layer(RetryLayer::new(paused().key_header(header.clone()).build().unwrap()))
        .service(server.clone());
    assert_eq!(client.oneshot(post("/orders")).await.unwrap().status(), 200);
    let seen = server.seen();
    let sent: Vec<_> = seen.sent(2).requests.iter().map(|request| request.headers[&header].clone()).collect();
    assert_eq!((sent[0].len(), &sent[0]), (36, &sent[1]));
    assert!(seen.requests.iter().all(|request| !request.headers.contains_key(KEY)));
}

#[tokio::test(start_paused = true)]
async fn in_the_wrong_order_no_attempt_gets_one() {
    let server = service([Reply::status(503), Reply::ok("done")]);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(paused().build().unwrap()))
        .layer(IdempotencyKeyLayer::new())
        .service(server.clone());
    let response = client.oneshot(post("/orders")).await.unwrap();
    assert_eq!((response.status().as_u16(), stop(&response)), (503, Some(StopReason::NoEvidence)));
    assert!(keys(&server.seen().sent(1).requests[0]).is_empty());
}

/// What the draft has a server answer.
#[tokio::test(start_paused = true)]
async fn a_key_used_for_another_request_is_final_and_one_in_progress_is_by_contract() {
    let call = async |replies: Vec<Reply>, transient: Transient| {
        let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(60) };
        let policy = redial::StandardPolicy::builder("shop", timeouts, transient).backoff(crate::wait());
        let server = service(replies);
        let client = ServiceBuilder::new()
            .layer(IdempotencyKeyLayer::new())
            .layer(RetryLayer::new(policy.build().unwrap()))
            .service(server.clone());
        let response = client.oneshot(post("/orders")).await.unwrap();
        let requests = server.seen().requests;
        assert!(requests.iter().all(|request| keys(request) == keys(&requests[0])), "one key a call");
        (response.status().as_u16(), requests.len(), stop(&response))
    };
    for status in [400, 422, 409] {
        let end = call(vec![Reply::status(status), Reply::ok("done")], Transient::usual()).await;
        assert_eq!(end, (status, 1, None), "an answer that is final at the first try has no report");
    }
    let by_contract = Transient::usual().status_because(409, "shop's API, keys: the first request is in progress");
    let in_progress = vec![Reply::status(409), Reply::status(409), Reply::status(201)];
    assert_eq!(call(in_progress, by_contract.clone()).await, (201, 3, None));
    let reused = vec![Reply::status(409), Reply::status(422), Reply::status(201)];
    assert_eq!(call(reused, by_contract).await, (422, 2, Some(StopReason::Permanent)));
}

/// A shop that knows its keys, and loses its answers.
#[derive(Clone, Default)]
struct Shop {
    orders: Arc<Mutex<HashMap<Vec<u8>, Bytes>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

#[tokio::test]
async fn printed_one_key_one_effect_through_reset_503_and_timeout() {
    for wire in [Wire::Http1, Wire::Http2] {
        let shop = Shop::default();
        let known = shop.clone();
        let site = Site::start(wire, move |number, request| {
            let shop = known.clone();
            async move {
                let key = request.headers().get(KEY).map(|key| key.as_bytes().to_vec()).unwrap_or_default();
                let order = request.into_body().collect().await?.to_bytes();
                let new = shop.orders.lock().unwrap().insert(key.clone(), order).is_none();
                let effect = if new { "takes effect" } else { "known" };
                let fault = ["reset", "503", "no answer", "201"][(number - 1).min(3)];
                let line = format!("{number}. {} -> {effect}, then {fault}", String::from_utf8_lossy(&key));
                shop.seen.lock().unwrap().push(line);
                match fault {
                    "reset" => Err("the connection is lost".into()),
                    "503" => Ok(answer(503, "")),
                    "no answer" => std::future::pending().await,
                    _ => Ok(answer(201, "")),
                }
            }
        })
        .await;
        let timeouts = Timeouts { attempt: Duration::from_millis(500), total: Duration::from_secs(30) };
        let policy = policy_within(timeouts).attempts_because(4, "three faults, then an answer").build().unwrap();
        let client = ServiceBuilder::new()
            .layer(IdempotencyKeyLayer::new())
            .layer(RetryLayer::new(policy))
            .service(hyper_client(wire));
        let request = Request::post(site.url()).body(Full::<Bytes>::from("one order")).unwrap();
        let response = soon(client.oneshot(request)).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (201, 4));
        let report = response.extensions().get::<CallReport>().unwrap();
        let ends: Vec<_> = report.attempts().iter().map(|attempt| attempt.outcome.to_string()).collect();
        assert_eq!(ends[1..], ["503", "timeout", "201"], "{ends:?}");
        assert!(report.outcome_unknown());

        let seen = shop.seen.lock().unwrap().clone();
        println!("{wire:?}: POST with a generated key\n  {}\n  {} at the client", seen.join("\n  "), ends.join(", "));
        assert_eq!(seen.len(), 4);
        let orders = shop.orders.lock().unwrap();
        assert_eq!(orders.len(), 1, "one key, one effect: {seen:?}");
        assert_eq!(orders.values().next().unwrap(), "one order");
    }
}

/// Without the layer, the first fault is the end.
#[tokio::test]
async fn without_a_key_a_lost_answer_is_final() {
    let site = Site::start(Wire::Http1, |_, _| async { Err("the connection is lost".into()) }).await;
    let client = RetryLayer::new(crate::support::policy().build().unwrap()).layer(hyper_client(Wire::Http1));
    let request = Request::post(site.url()).body(Full::<Bytes>::from("one order")).unwrap();
    let error = soon(client.oneshot(request)).await.unwrap_err();
    assert_eq!((error.stop(), site.seen().started), (Some(StopReason::NoEvidence), 1));
}

#[tokio::test]
async fn an_idempotent_method_needs_none() {
    assert_eq!(seen_key(IdempotencyKeyLayer::new(), get("/")).await, None);
    let shown = format!("{:?}", IdempotencyKeyLayer::new());
    assert!(shown.contains("idempotency-key"), "{shown}");
    assert!(Method::PUT.is_idempotent());
}
