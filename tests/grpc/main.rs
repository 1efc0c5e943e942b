//! gRPC through tonic: a generated client's calls, against the kit's servers and services and against a server of
//! tonic's own.

mod bodies;
mod codes;
mod commits;
mod deadlines;
mod failures;
mod faults;
mod headers;
mod interceptors;
mod policies;
mod pushback;
mod stacked;
mod streams;
mod support;
