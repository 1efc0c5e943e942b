//! A second retry layer that types do not show sends once, says so once, and is named in the outer one's report.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use hyper::body::Incoming;
use redial::{BoxError, CallReport, RetryLayer, StopReason};
use tower::{Service, ServiceBuilder, ServiceExt};
use tracing::Level;

use super::{
    events, hidden, report,
    support::{Server, VERSIONS, policy, policy_for},
};

type Done = Result<(), BoxError>;

#[tokio::test]
async fn nothing_is_multiplied() -> Done {
    for version in VERSIONS {
        let server = Server::always(503).await;
        let stack =
            ServiceBuilder::new().layer(RetryLayer::new(policy())).service(hidden(version, RetryLayer::new(policy())));
        let response = stack.oneshot(server.get("/")).await?;
        assert_eq!((response.status().as_u16(), server.count()), (503, 3));
        let report = report(&response);
        assert_eq!((report.attempts().len(), report.stop()), (3, Some(StopReason::Attempts)));
        assert!(report.inner_stacked());
    }
    Ok(())
}

#[tokio::test]
async fn a_single_layer_reports_no_second_one() -> Done {
    let server = Server::always(503).await;
    let stack =
        ServiceBuilder::new().layer(RetryLayer::new(policy())).service(super::support::client(http::Version::HTTP_11));
    let response = stack.oneshot(server.get("/")).await?;
    assert!(!report(&response).inner_stacked());
    Ok(())
}

#[tokio::test]
async fn the_second_one_says_so_to_the_layers_between() -> Done {
    let server = Server::always(503).await;
    let stops = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&stops);
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .map_response(move |response: Response<redial::AnswerBody<Incoming>>| {
            seen.lock().expect("no panic while locked").push(report(&response).stop());
            response
        })
        .service(hidden(http::Version::HTTP_11, RetryLayer::new(policy())));
    stack.oneshot(server.get("/")).await?;
    assert_eq!(*stops.lock().expect("no panic while locked"), [Some(StopReason::Stacked); 3]);
    Ok(())
}

/// The caller is told of the path's one call, and of a second layer that is there to be removed, whatever the answer.
#[tokio::test]
async fn the_report_of_a_first_answer_is_the_outer_ones() -> Done {
    for (status, stop) in [(200, None), (404, Some(StopReason::Permanent))] {
        let server = Server::always(status).await;
        let stack = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .service(hidden(http::Version::HTTP_11, RetryLayer::new(policy())));
        let response = stack.oneshot(server.get("/")).await?;
        let report = report(&response);
        assert_eq!((report.attempts().len(), report.stop(), report.inner_stacked()), (1, stop, true), "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn errors_come_through() -> Done {
    // Nobody listens there: the port was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let request = Request::get(format!("http://{free}/")).body(Default::default())?;
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .service(hidden(http::Version::HTTP_11, RetryLayer::new(policy())));
    let error = stack.oneshot(request).await.expect_err("nobody listens");
    assert!(error.is_connect() && error.is_exhausted() && !error.is_stacked(), "{error}");
    assert!(error.find_source::<std::io::Error>().is_some(), "{error}");
    let report = error.report().expect("a report");
    assert_eq!((report.attempts().len(), report.inner_stacked()), (3, true));
    Ok(())
}

#[tokio::test]
async fn each_layer_warns_once() -> Done {
    events::capture();
    let server = Server::always(503).await;
    let outer = RetryLayer::new(policy());
    let second = RetryLayer::new(policy_for("warns-once"));
    // Two services of one layer, and clones of both: one instance.
    for service in [hidden(http::Version::HTTP_11, second.clone()), hidden(http::Version::HTTP_11, second)] {
        let stack = ServiceBuilder::new().layer(outer.clone()).service(service);
        for mut stack in [stack.clone(), stack] {
            stack.ready().await?.call(server.get("/")).await?;
        }
    }
    assert_eq!(events::of("warns-once", Level::WARN), [Some("stacked".to_owned())]);

    // Another layer is another instance.
    let another = hidden(http::Version::HTTP_11, RetryLayer::new(policy_for("warns-once")));
    ServiceBuilder::new().layer(outer).service(another).oneshot(server.get("/")).await?;
    assert_eq!(events::of("warns-once", Level::WARN).len(), 2);
    Ok(())
}

/// S16: the outer layer says what became of the call, once. The second one is silent but for its warning.
#[tokio::test]
async fn a_failure_is_one_error() -> Done {
    events::capture();
    let server = Server::always(503).await;
    let second = hidden(http::Version::HTTP_11, RetryLayer::new(policy_for("one-error-second")));
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy_for("one-error"))).service(second);
    stack.oneshot(server.get("/")).await?;
    assert_eq!(events::of("one-error", Level::ERROR), [Some("attempts".to_owned())]);
    assert_eq!(events::of("one-error-second", Level::ERROR), []);
    assert_eq!(events::of("one-error-second", Level::DEBUG), []);
    Ok(())
}

#[tokio::test]
async fn a_second_layer_may_refuse() -> Done {
    events::capture();
    let server = Server::always(200).await;
    let second = RetryLayer::new(policy_for("refuses")).refuse_stacking();
    let stack =
        ServiceBuilder::new().layer(RetryLayer::new(policy())).service(hidden(http::Version::HTTP_11, second.clone()));
    let error = stack.oneshot(server.get("/")).await.expect_err("refused");
    assert!(error.is_stacked(), "{error}");
    assert!(error.to_string().contains("already passed a retry layer"), "{error}");
    let report: &CallReport = error.report().expect("a report");
    assert_eq!((report.attempts().len(), report.stop()), (1, Some(StopReason::Permanent)));
    assert!(report.inner_stacked());
    assert_eq!(server.count(), 0);
    assert_eq!(events::of("refuses", Level::WARN), []);

    // Alone on its path it is a layer like any other.
    let alone = ServiceBuilder::new().layer(second).service(super::support::client(http::Version::HTTP_11));
    assert_eq!(alone.oneshot(server.get("/")).await?.status(), 200);
    Ok(())
}
