//! One retry per path. tonic's body erases types, so two of these compile; the inner one sends once.

use redial::{
    RetryLayer,
    grpc::Commit,
    testing::{Events, Reply, Server},
};
use tonic::Code;
use tower::Layer;

use super::support::*;

#[tokio::test]
async fn two_around_a_channel_do_not_multiply() {
    for reply in [unavailable(), head().ends(redial::GrpcCode::Unavailable), Reply::refused_stream(), Reply::close()] {
        let server = Server::http2([reply.clone()]);
        let events = Events::capture();
        let inner = redial::grpc::channel(channel(server.addr()), idempotent());
        let mut client = Client::new(redial::grpc::channel(inner, idempotent()));
        let status = soon(client.place(order())).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert!(report(&status).inner_stacked(), "{reply:?}");
        let seen = server.seen();
        let counted: Vec<_> = seen.sent(3).requests.iter().map(|request| &request.headers).collect();
        assert!(counted[0].get("grpc-previous-rpc-attempts").is_none());
        assert_eq!(counted[2]["grpc-previous-rpc-attempts"], "2");
        assert_eq!(events.at(tracing::Level::WARN).len(), 1);
    }
}

/// A `RetryLayer` that was made to fit tonic's body, above and below.
#[tokio::test]
async fn nor_do_others_that_were_made_to_fit() {
    let fit = || tower_http::map_request_body::MapRequestBodyLayer::new(tonic::body::Body::new);
    let server = Server::http2([unavailable()]);
    let below = RetryLayer::new(idempotent()).layer(fit().layer(channel(server.addr())));
    let status = soon(Client::new(redial::grpc::channel(below, idempotent())).place(order())).await.unwrap_err();
    assert!(report(&status).inner_stacked());
    server.seen().sent(3);

    let server = Server::http2([unavailable()]);
    let inner = redial::grpc::channel(channel(server.addr()), idempotent());
    let above = RetryLayer::new(idempotent()).layer(fit().layer(inner));
    // It knows nothing of codes: to it, a 200 is a success.
    soon(Client::new(above).place(order())).await.unwrap_err();
    server.seen().sent(1);
}

/// The inner one's proof reaches the outer one.
#[tokio::test]
async fn what_was_never_sent_is_known_through_both() {
    let server = Server::http2([Reply::refused_stream(), done()]);
    let inner = redial::grpc::channel(channel(server.addr()), builder().build().unwrap());
    let mut client = Client::new(redial::grpc::channel(inner, builder().build().unwrap()));
    soon(client.place(order())).await.unwrap();
    server.seen().sent(2);
}

#[tokio::test]
async fn an_answer_passes_through_both_unchanged() {
    for commit in [Commit::Head, Commit::Message, Commit::Status] {
        let server = Server::http2([unavailable(), done()]);
        let inner = redial::grpc::channel(channel(server.addr()), idempotent());
        let mut client = Client::new(redial::grpc::channel(inner, idempotent()).commit(commit));
        let answer = soon(client.place(order())).await.unwrap();
        assert_eq!(answer.get_ref(), "done");
        assert_eq!(answer.metadata().get("x-trailer").unwrap(), "the end");
        server.seen().sent(2);
    }
}
