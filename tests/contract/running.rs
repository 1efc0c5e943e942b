//! A contract at work: in a retry layer, in a timeout layer, and read again meanwhile. On paused time.

use std::{
    convert::Infallible,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use redial::{BoxError, Policy, RequestHead, RetryLayer, TimeoutLayer, contract::Contract};
use tokio::time::{Instant, sleep};
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tracing::Level;

use crate::{
    capture::Capture,
    command::Folder,
    support::{SHOP, contract},
};

type Body = Full<Bytes>;

fn request(method: &str, path: &str) -> Request<Body> {
    let uri = format!("https://api.shop.example{path}");
    Request::builder().method(method).uri(uri).body(Body::default()).unwrap()
}

/// How many requests one call became.
async fn requests(contract: &Contract, method: &str, status: u16) -> u32 {
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let service = service_fn(move |_: Request<_>| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(Response::builder().status(status).body(Body::default()).unwrap()) }
    });
    let client = ServiceBuilder::new().layer(RetryLayer::new(contract.clone())).service(service);
    let response = client.oneshot(request(method, "/")).await.unwrap();
    assert_eq!(response.status(), StatusCode::from_u16(status).unwrap());
    count.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn a_contract_is_what_a_retry_layer_runs() {
    let contract = contract(SHOP);
    assert_eq!(requests(&contract, "GET", 503).await, 3);
    assert_eq!(requests(&contract, "GET", 500).await, 1);
    assert_eq!(requests(&contract, "POST", 503).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_layer_has_each_operations_limits() {
    let text = SHOP.replace("\"10s\"", "\"10s\", body_idle = \"3s\"")
        + "[[provider.shop.operation]]\nname = \"slow\"\nmatch = \"GET /slow\"\ntimeouts = { total = \"20s\" }\nnever = \"it is slow\"\n";
    let contract = contract(&text);
    let hang = service_fn(|_: Request<Body>| async {
        sleep(Duration::from_secs(1_000)).await;
        Ok::<_, Infallible>(Response::new(Body::default()))
    });
    for (path, uri_host, seconds) in [("/", "", 10), ("/slow", "", 20), ("/", "other.", 60)] {
        let start = Instant::now();
        let layered = ServiceBuilder::new().layer(TimeoutLayer::of(&contract)).service(hang);
        let uri = format!("https://{uri_host}api.shop.example{path}");
        let error = layered.oneshot(Request::get(uri).body(Body::default()).unwrap()).await.unwrap_err();
        assert!(error.is_timeout());
        assert_eq!(start.elapsed().as_secs(), seconds, "{path}");
    }
    // A limit that is named holds for every request.
    let start = Instant::now();
    let named = TimeoutLayer::of(&contract).head(Duration::from_secs(5));
    ServiceBuilder::new().layer(named).service(hang).oneshot(request("GET", "/slow")).await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 5);

    let stalls = service_fn(|_: Request<Body>| async {
        let frames = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, BoxError>>();
        Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
    });
    let start = Instant::now();
    let layered = ServiceBuilder::new().layer(TimeoutLayer::of(&contract)).service(stalls);
    let response = layered.oneshot(request("GET", "/")).await.unwrap();
    response.into_body().collect().await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(contract.connect_timeout("shop"), None);
}

fn attempts(contract: &Contract) -> u32 {
    contract.plan(&RequestHead::of(&request("GET", "/"))).max_attempts()
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_is_in_force_and_a_broken_one_is_one_error() {
    let (capture, _guard) = Capture::start();
    let folder = Folder::new();
    let file = folder.write("shop.toml", SHOP.as_bytes());
    let contract = Contract::load([folder.path("")]).unwrap();
    let layer = contract.clone();
    let second = Duration::from_secs(1);
    let watched = contract.clone().watch(second);
    let test = async {
        let write = |text: &str| fs::write(&file, text).unwrap();
        let two = SHOP.replace("attempts  = 3", "attempts  = 2");
        // Between two looks, so that each write is seen by the next one.
        sleep(second * 5 + second / 2).await;
        assert_eq!(attempts(&layer), 3);

        write(&two);
        sleep(second * 3).await;
        assert_eq!(attempts(&layer), 2);
        assert_eq!(capture.at(Level::INFO).len(), 1);

        write(&two.replace("attempts  = 2", "attempts  = 12"));
        sleep(second * 60).await;
        assert_eq!(attempts(&layer), 2, "the one before stays in force");
        let errors = capture.at(Level::ERROR);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].get("first").contains("shop.toml: S12: attempts = 12"), "{}", errors[0]);
        assert_eq!((errors[0].get("line"), errors[0].get("problems")), ("7", "1"));

        // Half of a file, and then the whole: the half is not taken for one.
        write("format = 1\n");
        sleep(second).await;
        write(SHOP);
        sleep(second * 3).await;
        assert_eq!(attempts(&layer), 3);
        assert_eq!(capture.at(Level::ERROR).len(), 1);

        fs::remove_file(&file).unwrap();
        sleep(second * 5).await;
        assert_eq!(attempts(&layer), 3);
        assert_eq!(capture.at(Level::ERROR).len(), 2);
    };
    tokio::select! {
        _ = watched => unreachable!("it never ends"),
        () = test => {}
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_stays_spent_when_a_contract_is_read_again() {
    let folder = Folder::new();
    let text = SHOP.replace("elsewhere = []", "elsewhere = []\nbudget = { capacity = 3.0 }");
    let file = folder.write("shop.toml", text.as_bytes());
    let contract = Contract::load([&file]).unwrap();
    assert_eq!(requests(&contract, "GET", 503).await, 3);
    fs::write(&file, text.replace("503, ", "503, 500, ")).unwrap();
    contract.reload().unwrap();
    assert_eq!(requests(&contract, "GET", 500).await, 2, "one retry was left");
    assert_eq!(requests(&contract, "GET", 500).await, 1);
    // Other numbers are another budget.
    fs::write(&file, text.replace("capacity = 3.0", "capacity = 4.0")).unwrap();
    contract.reload().unwrap();
    assert_eq!(requests(&contract, "GET", 503).await, 3);
}
