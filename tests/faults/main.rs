//! Every fault over real sockets: what is read from the client's error, and what the server saw.
//!
//! `cargo test --test faults -- --nocapture printed_chains` prints the table of all of them.

#[path = "../common/mod.rs"]
mod common;
#[macro_use]
mod scene;

mod connecting;
mod http1;
mod http2;
mod wrapped;

/// Plays every scene once more and prints it: the fault, the chain of errors it came in, and what was read.
#[tokio::test]
async fn printed_chains() {
    for scenes in [connecting::scenes(), http1::scenes(), http2::scenes(), wrapped::scenes()] {
        for scene in scenes {
            scene.print().await;
        }
    }
}
