//! Each recipe against a scripted server: what its client sends by itself, what with ours in its place, and what with
//! both. In this folder, `cargo test -- --nocapture counts` prints the counts.

mod async_openai;
mod aws;
mod google;
mod kube;
mod octocrab;
mod page;
mod support;
