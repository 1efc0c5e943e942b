//! Pages that are no part of the program: what to write with a client that is not in the table of the first page, what
//! changes for those who come from another crate, and what the features weigh. For `cargo doc`; nothing is here in a build.

/// Recipes for SDKs that bring their own client.
#[cfg(not(doctest))] // compiled and run in `recipes/`
#[doc = include_str!("../docs/sdks.md")]
pub mod sdks {}

/// For those who come from reqwest-retry, backon, or tower's own retry.
#[doc = include_str!("../docs/coming-from.md")]
pub mod coming_from {}

/// Dependencies, compiler versions and build times, by feature.
#[doc = include_str!("../docs/weight.md")]
pub mod weight {}
