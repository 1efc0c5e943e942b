//! What a policy may say of codes.

use redial::{
    Budget, GrpcCode, Policy, RequestHead, StandardPolicy, Timeouts, Transient,
    policy::{Class, Outcome},
    testing::Events,
};

use super::support::*;

fn broken(transient: Transient) -> Vec<&'static str> {
    match with(transient).build() {
        Ok(_) => Vec::new(),
        Err(error) => error.rules().collect(),
    }
}

#[test]
fn a_code_that_does_not_pass_by_itself_needs_a_reason() {
    use GrpcCode::*;
    for code in GrpcCode::ALL {
        let freely = [Unavailable, ResourceExhausted, DeadlineExceeded, Internal, Unknown].contains(&code);
        let (bare, because) = (Transient::none().code(code), Transient::none().code_because(code, "page 4 says so"));
        assert_eq!(broken(bare).is_empty(), freely, "{code}");
        assert_eq!(broken(because).is_empty(), code != Ok, "{code}");
        let blank = Transient::none().code_because(code, " ");
        assert_eq!(broken(blank).is_empty(), freely, "{code}");
        // What is not known, or came too late, may have been processed.
        let may_mean_it = ![Ok, Unknown, DeadlineExceeded].contains(&code);
        assert_eq!(broken(Transient::none().rejected_code(code, "page 4")).is_empty(), may_mean_it, "{code}");
    }
    assert_eq!(broken(Transient::none().code(Ok)), ["S5"]);
    assert_eq!(broken(Transient::none().rejected_code(Unavailable, "")), ["S7"]);
}

#[test]
fn a_code_can_be_taken_out_again() {
    let transient =
        Transient::none().rejected_code(GrpcCode::Unavailable, "page 4").without_code(GrpcCode::Unavailable);
    assert_eq!(transient, Transient::none());
    assert!(!transient.has_code(GrpcCode::Unavailable));
}

/// The tests of a policy need no server.
#[test]
fn a_policy_is_asked_about_a_code() {
    let policy = idempotent();
    let request = http::Request::post("/shop.Orders/Place").body(()).unwrap();
    let plan = policy.plan(&RequestHead::of(&request));
    let headers = http::HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-status"),
        http::HeaderValue::from_static("14"),
    )]);
    let outcome = || Outcome::answer(http::StatusCode::OK, &headers);
    assert_eq!(outcome().over_grpc().grpc_code(), Some(GrpcCode::Unavailable));
    assert_eq!(policy.judge(&plan, &outcome().over_grpc()).class(), Class::Transient);
    // Over HTTP it is a header like any other.
    assert_eq!(outcome().grpc_code(), None);
    assert_eq!(policy.judge(&plan, &outcome()).class(), Class::Success);
}

/// tonic's generated clients send paths without a host: routes name the method.
#[tokio::test(start_paused = true)]
async fn routes_by_method() {
    let timeouts = Timeouts { attempt: WAIT, total: WAIT * 10 };
    let never = StandardPolicy::unretried("shop", timeouts.total).unwrap();
    let routes = redial::Routes::builder(never).route("POST /shop.Orders/Place", idempotent()).build().unwrap();
    let service = redial::testing::service([unavailable(), done()]);
    let mut client = Client::new(redial::grpc::channel(service.clone(), routes));
    client.place(order()).await.unwrap();
    service.seen().sent(2);
    let service = redial::testing::service([unavailable(), done()]);
    let routes = redial::Routes::builder(StandardPolicy::unretried("shop", timeouts.total).unwrap())
        .route("POST /shop.Orders/Watch", idempotent())
        .build()
        .unwrap();
    let mut client = Client::new(redial::grpc::channel(service.clone(), routes));
    client.place(order()).await.unwrap_err();
    service.seen().sent(1);
}

/// An override is shown the code, and its own verdict holds; the server's word too.
#[tokio::test(start_paused = true)]
async fn an_override_sees_the_code() {
    let policy = builder()
        .idempotent("orders have numbers")
        .judge_with(|_, outcome, verdict| match outcome.grpc_code() {
            Some(GrpcCode::Aborted) => redial::Verdict::transient(),
            _ => verdict,
        })
        .build()
        .unwrap();
    let script = [fails(GrpcCode::Aborted).header("grpc-retry-pushback-ms", "700"), done()];
    let (mut client, service) = scripted(script, policy);
    client.place(order()).await.unwrap();
    assert!(service.seen().sent(2).gaps()[0] >= WAIT * 7);
}

/// As over HTTP: throttling has a price of its own, an answer that is not the server's fault earns, and a fault that
/// nobody listed earns nothing.
#[tokio::test(start_paused = true)]
async fn the_budget_counts_codes() {
    let transient = || Transient::usual().code(GrpcCode::Unavailable).code(GrpcCode::ResourceExhausted);
    let budget = Budget::aws_with_capacity(100);
    let level_after = |codes: [GrpcCode; 2]| {
        let budget = budget.clone();
        async move {
            let policy = with(transient()).idempotent("orders have numbers").attempts(2).budget(budget.clone());
            let (mut client, _) = scripted(codes.map(fails), policy.build().unwrap());
            client.place(order()).await.unwrap_err();
            budget.level()
        }
    };
    use GrpcCode::*;
    assert_eq!(level_after([Unavailable, Unavailable]).await, 86.0);
    assert_eq!(level_after([ResourceExhausted, Unavailable]).await, 81.0);
    assert_eq!(level_after([NotFound, NotFound]).await, 82.0);
    for code in [Unknown, DeadlineExceeded, Unimplemented, Internal, DataLoss] {
        assert_eq!(level_after([code, code]).await, 82.0, "{code}");
    }
}

/// What is known and final is not called unclassified.
#[tokio::test(start_paused = true)]
async fn a_business_code_is_known() {
    for (known, events_of_it) in [(true, 0), (false, 1)] {
        let builder = builder().idempotent("orders have numbers");
        let builder = if known { builder.business_codes([GrpcCode::NotFound]) } else { builder };
        let (mut client, service) = scripted([fails(GrpcCode::NotFound)], builder.build().unwrap());
        let events = Events::capture();
        client.place(order()).await.unwrap_err();
        let unclassified = events.all().into_iter().filter(|event| event.get("outcome") == "unclassified");
        let codes: Vec<_> = unclassified.map(|event| event.get("error.type").to_owned()).collect();
        assert_eq!(codes, vec!["NOT_FOUND"; events_of_it]);
        events.no_error();
        service.seen().sent(1);
    }
}
