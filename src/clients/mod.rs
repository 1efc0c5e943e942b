//! Clients that are brought, each behind the feature of its name.

#[cfg(feature = "grpc")]
pub mod grpc;
