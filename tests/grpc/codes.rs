//! Which codes are repeated: those that are named, and with evidence.

use redial::{AttemptOutcome, CallReport, GrpcCode, Reach, RequestOptions, StopReason, Transient, testing::Events};
use tonic::Code;

use super::support::*;

#[tokio::test(start_paused = true)]
async fn what_works_at_once_is_sent_once_and_says_nothing() {
    let (mut client, service) = scripted([done()], idempotent());
    let events = Events::capture();
    let answer = client.place(order()).await.unwrap();
    assert_eq!(answer.get_ref(), "done");
    assert_eq!(answer.metadata().get("x-trailer").unwrap(), "the end");
    assert!(answer.extensions().get::<CallReport>().is_none());
    service.seen().sent(1);
    assert!(events.all().is_empty(), "{:?}", events.all());
}

#[tokio::test(start_paused = true)]
async fn unavailable_is_repeated_where_it_is_named_and_the_call_is_idempotent() {
    let (mut client, service) = scripted([unavailable(), unavailable(), done()], idempotent());
    let answer = client.place(order()).await.unwrap();
    assert_eq!(answer.get_ref(), "done");
    let report = answer.extensions().get::<CallReport>().unwrap();
    let outcomes: Vec<_> = report.attempts().iter().map(|attempt| attempt.outcome.to_string()).collect();
    assert_eq!(outcomes, ["UNAVAILABLE", "UNAVAILABLE", "200"]);
    assert_eq!(report.attempts()[0].outcome, AttemptOutcome::Grpc(GrpcCode::Unavailable));
    let seen = service.seen();
    assert_eq!(seen.sent(3).gaps(), [WAIT, WAIT]);
    assert!(seen.requests.iter().all(|request| request.body.is(framed("an order"))));
}

/// Every call of gRPC is a POST, and UNAVAILABLE does not say that it was not processed.
#[tokio::test(start_paused = true)]
async fn unavailable_alone_is_no_proof() {
    let (mut client, service) = scripted([unavailable(), done()], builder().build().unwrap());
    let events = Events::capture();
    let status = client.place(order()).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "so it is"));
    assert_eq!(report(&status).stop(), Some(StopReason::NoEvidence));
    assert_eq!(report(&status).attempts()[0].reach, Reach::Unknown);
    service.seen().sent(1);
    assert_eq!(events.one_error().get("error.type"), "UNAVAILABLE");
}

#[tokio::test(start_paused = true)]
async fn one_request_can_state_its_evidence() {
    let (mut client, service) = scripted([unavailable(), done()], builder().build().unwrap());
    let mut request = order();
    request.extensions_mut().insert(RequestOptions::new().idempotent("order numbers are unique"));
    client.place(request).await.unwrap();
    service.seen().sent(2);
}

#[tokio::test(start_paused = true)]
async fn a_key_in_the_metadata_is_evidence() {
    let (mut client, service) = scripted([unavailable(), done()], builder().build().unwrap());
    let mut request = order();
    request.metadata_mut().insert("idempotency-key", "order-7".parse().unwrap());
    client.place(request).await.unwrap();
    let seen = service.seen();
    seen.sent(2);
    assert!(seen.requests.iter().all(|request| request.headers["idempotency-key"] == "order-7"));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_code_needs_no_evidence() {
    let documented = "API guide, section 4: refused before work";
    let transient = Transient::usual().rejected_code(GrpcCode::ResourceExhausted, documented);
    let script = [fails(GrpcCode::ResourceExhausted), unavailable()];
    let (mut client, service) = scripted(script, with(transient).build().unwrap());
    let status = client.place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    // UNAVAILABLE is not named here, and so final.
    assert_eq!(report(&status).stop(), Some(StopReason::Permanent));
    assert_eq!(report(&status).attempts()[0].reach, Reach::Rejected);
    service.seen().sent(2);
}

#[tokio::test(start_paused = true)]
async fn no_code_is_repeated_that_is_not_named() {
    for code in GrpcCode::ALL.into_iter().filter(|code| ![GrpcCode::Ok, GrpcCode::Unavailable].contains(code)) {
        let (mut client, service) = scripted([fails(code), done()], idempotent());
        let status = client.place(order()).await.unwrap_err();
        assert_eq!(status.code(), Code::from(code));
        assert_eq!(status.metadata().get("x-from").unwrap(), "the head");
        assert!(redial::grpc::error(&status).is_none(), "{code}: final at the first try");
        service.seen().sent(1);
    }
}

/// The starting set of HTTP names no code.
#[tokio::test(start_paused = true)]
async fn the_usual_set_names_no_code() {
    let policy = with(Transient::usual()).idempotent("orders have numbers").build().unwrap();
    let (mut client, service) = scripted([unavailable(), done()], policy);
    assert_eq!(client.place(order()).await.unwrap_err().code(), Code::Unavailable);
    service.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn a_status_in_trailers_is_read_where_no_message_came_before() {
    let late = || head().ends(GrpcCode::Unavailable);
    let (mut client, service) = scripted([late(), late(), done()], idempotent());
    assert_eq!(client.place(order()).await.unwrap().get_ref(), "done");
    service.seen().sent(3);

    let (mut client, _) = scripted([late()], idempotent());
    let status = client.place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.metadata().get("x-trailer").unwrap(), "the end");
    assert_eq!(report(&status).attempts().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_message_and_status_is_unknown() {
    let unknown = with(Transient::usual().code(GrpcCode::Unknown)).idempotent("orders have numbers").build().unwrap();
    let (mut client, service) = scripted([head().body(""), head(), done()], unknown);
    assert_eq!(client.place(order()).await.unwrap().get_ref(), "done");
    service.seen().sent(3);
}

/// A proxy's answer: by its number, or by the code that it stands for.
#[tokio::test(start_paused = true)]
async fn a_status_of_http_stands_for_a_code() {
    let rows = [
        // Listed by neither.
        (401, Transient::usual().code(GrpcCode::Unavailable), 1),
        (404, Transient::usual().code(GrpcCode::Unavailable), 1),
        (302, Transient::usual().code(GrpcCode::Unavailable), 1),
        // By its code.
        (503, Transient::none().code(GrpcCode::Unavailable), 2),
        (429, Transient::none().code(GrpcCode::Unavailable), 2),
        (418, Transient::none().code(GrpcCode::Unknown), 2),
        (302, Transient::none().code(GrpcCode::Unknown), 2),
        // By its number.
        (500, Transient::usual(), 2),
        (503, Transient::usual().without_status(503), 1),
    ];
    for (status, transient, sent) in rows {
        let policy = with(transient).idempotent("orders have numbers").build().unwrap();
        let (mut client, service) = scripted([redial::testing::Reply::status(status), done()], policy);
        assert_eq!(client.place(order()).await.is_ok(), sent == 2, "{status}");
        service.seen().sent(sent);
    }
}

/// The provider's document speaks of its own answers, and not of a proxy's: a 504 may have been processed.
#[tokio::test(start_paused = true)]
async fn what_stands_for_a_code_was_not_rejected() {
    let rejected = || Transient::none().rejected_code(GrpcCode::Unavailable, "API guide, section 4");
    let rows = [
        (unavailable(), rejected(), 2),
        (redial::testing::Reply::status(503), rejected(), 1),
        (redial::testing::Reply::status(504), rejected(), 1),
        // By its own number it may be documented too.
        (redial::testing::Reply::status(503), rejected().rejected(503, "proxy guide, section 2"), 2),
    ];
    for (first, transient, sent) in rows {
        let (mut client, service) = scripted([first.clone(), done()], with(transient).build().unwrap());
        assert_eq!(client.place(order()).await.is_ok(), sent == 2, "{first:?}");
        service.seen().sent(sent);
    }
}

/// The code decides where there is one, whatever the status of HTTP.
#[tokio::test(start_paused = true)]
async fn a_code_comes_before_a_status_of_http() {
    let not_found = redial::testing::Reply::status(503).header("grpc-status", "5");
    let (mut client, service) = scripted([not_found, done()], idempotent());
    assert_eq!(client.place(order()).await.unwrap_err().code(), Code::NotFound);
    service.seen().sent(1);
}
