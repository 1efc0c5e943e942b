//! What the SDKs of AWS run on, whose default is three attempts of any operation.

use std::time::Duration;

use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime::client::{
    orchestrator::operation::Operation,
    retries::classifiers::{HttpStatusCodeClassifier, TransientErrorClassifier},
};
use aws_smithy_runtime_api::client::{
    orchestrator::{HttpRequest, HttpResponse, OrchestratorError},
    result::SdkError,
};
use aws_smithy_types::{body::SdkBody, retry::RetryConfig};
use redial::{
    StandardPolicy, StopReason,
    testing::{Reply, Server},
};
use redial_recipes::aws::{http_client, no_retries};

use crate::support::{Counts, Tried, ours, policy};

type Failure = SdkError<std::io::Error, HttpResponse>;

fn theirs() -> RetryConfig {
    RetryConfig::standard().with_initial_backoff(Duration::from_millis(10))
}

fn unretried() -> StandardPolicy {
    StandardPolicy::unretried("scripted", Duration::from_secs(5)).unwrap()
}

/// One operation, put together as an SDK does it.
async fn invoke(
    server: &Server,
    method: &'static str,
    retries: RetryConfig,
    policy: StandardPolicy,
    tried: &Tried,
) -> Result<(), Failure> {
    Operation::builder()
        .service_name("scripted")
        .operation_name("one")
        .endpoint_url(&server.url("/"))
        .no_auth()
        .standard_retry(&retries)
        .retry_classifier(HttpStatusCodeClassifier::default())
        .retry_classifier(TransientErrorClassifier::<std::io::Error>::new())
        .sleep_impl(TokioSleep::new())
        .http_client(http_client(policy, tried.connector()))
        .serializer(move |()| {
            let mut request = HttpRequest::new(SdkBody::from("an object"));
            request.set_method(method)?;
            request.set_uri("/things/one")?;
            Ok(request)
        })
        .deserializer(|response| match response.status().is_success() {
            true => Ok(()),
            false => Err(OrchestratorError::operation(std::io::Error::other("not a success"))),
        })
        .build()
        .invoke(())
        .await
}

async fn counts(retries: fn() -> RetryConfig, policy: fn() -> StandardPolicy) -> [usize; 4] {
    let (answering, refusing) = (Server::http1([Reply::status(503)]), Server::refusing());
    let mut counts = Vec::new();
    for method in ["PUT", "POST"] {
        assert!(invoke(&answering, method, retries(), policy(), &Tried::default()).await.is_err());
        counts.push(answering.seen().to(&format!("{method} /{{*all}}")).requests.len());
    }
    for method in ["PUT", "POST"] {
        let tried = Tried::default();
        assert!(invoke(&refusing, method, retries(), policy(), &tried).await.is_err());
        counts.push(tried.count());
    }
    counts.try_into().unwrap()
}

#[tokio::test]
async fn counts_of_an_aws_sdk() {
    let columns = ["PUT 503", "POST 503", "PUT refused", "POST refused"];
    let mut table = Counts::new("AWS: requests, or connections tried", columns);
    table.row("its three attempts alone", counts(theirs, unretried).await);
    table.row("the recipe: ours alone", counts(no_retries, policy).await);
    table.row("both", counts(theirs, policy).await);
    table.are(&[[3, 3, 3, 3], [3, 1, 3, 3], [9, 3, 9, 9]]);
}

#[tokio::test]
async fn the_recipe_repeats_the_whole_request() {
    let server = Server::http1([Reply::status(503), Reply::close(), Reply::ok("done")]);
    let tried = Tried::default();
    invoke(&server, "PUT", no_retries(), policy(), &tried).await.unwrap();
    let seen = server.seen();
    assert!(seen.sent(3).requests.iter().all(|request| request.body.is("an object")), "{seen}");

    let error = invoke(&Server::refusing(), "PUT", no_retries(), policy(), &tried).await.unwrap_err();
    assert!(matches!(error, SdkError::DispatchFailure(_)), "{error:?}");
    assert_eq!(ours(&error).report().unwrap().stop(), Some(StopReason::Attempts));
}
