//! What a caller can know of a failed call.

use std::error::Error as _;

use redial::{GrpcCode, StopReason, testing::Reply};
use tonic::Code;

use super::support::*;

#[tokio::test(start_paused = true)]
async fn a_status_that_was_answered_leads_to_the_report() {
    let details = [0, 2, 3];
    let answer = || unavailable().header("grpc-status-details-bin", "AAID");
    let (mut client, _) = scripted([answer()], idempotent());
    let status = client.place(order()).await.unwrap_err();
    // All that tonic gives, and the report.
    assert_eq!((status.code(), status.message(), status.details()), (Code::Unavailable, "so it is", &details[..]));
    assert_eq!(status.metadata().get("x-from").unwrap(), "the head");
    let error = redial::grpc::error(&status).unwrap();
    assert!(error.is_exhausted() && error.stop() == Some(StopReason::Attempts));
    assert_eq!(error.report().unwrap().attempts().len(), 3);
    assert!(status.source().unwrap().is::<redial::Error>());
    let line = error.to_string();
    assert!(line.starts_with("the call was answered UNAVAILABLE after 3 attempts in 200"), "{line}");
}

/// tonic panics on details that are not base64: where a status is made here, they are left out.
#[tokio::test(start_paused = true)]
async fn details_that_are_none_do_no_harm() {
    for garbage in ["*", "AAID,AAID", "A", "\u{e9}"] {
        let (mut client, _) = scripted([unavailable().header("grpc-status-details-bin", garbage)], idempotent());
        let status = client.place(order()).await.unwrap_err();
        assert_eq!((status.code(), status.details()), (Code::Unavailable, &b""[..]), "{garbage}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_error_does_too_and_is_there_itself() {
    let (mut client, _) = scripted([Reply::reset()], idempotent());
    let status = client.place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let error = redial::grpc::error(&status).unwrap();
    assert!(error.find_source::<hyper::Error>().is_some());
    assert_eq!(report(&status).attempts().len(), 3);
    assert!(status.message().starts_with("shop any: the request failed after 3 attempts"), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn what_recovered_is_reported_in_the_answer() {
    let (mut client, _) = scripted([unavailable(), done()], idempotent());
    let answer = client.place(order()).await.unwrap();
    assert_eq!(answer.extensions().get::<redial::CallReport>().unwrap().attempts().len(), 2);
    let (mut client, _) = scripted([unavailable(), done()], idempotent());
    let answer = client.watch(order()).await.unwrap();
    assert_eq!(answer.extensions().get::<redial::CallReport>().unwrap().attempts().len(), 2);
}

/// A business answer after a repeat: the caller learns that the first attempt may have worked.
#[tokio::test(start_paused = true)]
async fn a_business_answer_after_a_repeat_says_so() {
    let (mut client, _) = scripted([Reply::reset(), fails(GrpcCode::AlreadyExists)], idempotent());
    let status = client.place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
    assert!(report(&status).outcome_unknown());
    assert_eq!(report(&status).attempts()[1].outcome.to_string(), "ALREADY_EXISTS");
}

/// No secret of the request is in what a status prints.
#[tokio::test(start_paused = true)]
async fn a_status_shows_no_credentials() {
    for reply in [unavailable(), Reply::reset(), Reply::stall()] {
        let (mut client, _) = scripted([reply], idempotent());
        let mut request = order();
        request.metadata_mut().insert("authorization", "Bearer hunter2".parse().unwrap());
        let status = client.place(request).await.unwrap_err();
        assert!(!format!("{status} {status:?}").contains("hunter2"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_is_not_ready_is_unavailable() {
    use redial::testing::{Readiness, Script};
    // The first readiness is the caller's own to wait for; the second is waited for within the call.
    let script = Script::new([unavailable()]).readiness([Readiness::Now, Readiness::Fails]);
    let (mut client, service) = scripted(script, idempotent());
    let status = client.place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(report(&status).stop(), Some(StopReason::NotReady));
    service.seen().sent(1);
}
