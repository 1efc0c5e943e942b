//! Recipes for clients that bring their own stack: each as `docs/sdks.md` shows it, each run against a scripted server
//! by the tests of its name.
#![forbid(unsafe_code)]

pub mod async_openai;
pub mod aws;
pub mod google;
pub mod kube;
pub mod octocrab;
