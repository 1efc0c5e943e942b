//! gRPC through tonic: a generated client's calls, against the kit's servers and services and against a server of
//! tonic's own.

mod bodies;
mod codes;
mod commits;
mod deadlines;
mod failures;
mod faults;
mod headers;
mod hostile;
mod interceptors;
mod policies;
mod pushback;
mod stacked;
mod streams;
mod support;

/// What a client may share and move between tasks.
const _: () = {
    use redial::{StandardPolicy, grpc::RetryChannel};
    use tonic::{body::Body, transport::Channel};
    const fn shared<T: Clone + Send + Sync + Unpin>() {}
    shared::<(RetryChannel<Channel, StandardPolicy>, redial::grpc::Commit, redial::GrpcCode)>();
    const fn sent<T: Send>() {}
    sent::<redial::grpc::RetryChannelFuture<Channel, StandardPolicy, Body>>();
    sent::<redial::grpc::ResponseBody<Body>>();
};
