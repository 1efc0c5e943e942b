//! The clients that people have: each under the retry layer, with its own requests, responses and errors.

#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "hyper-rustls")]
pub mod hyper;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "reqwest-middleware")]
pub mod reqwest_middleware;
#[cfg(feature = "tower-retry")]
pub mod tower;
