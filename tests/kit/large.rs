//! Bodies beyond what windows and sockets hold: a fault comes after what comes before it in the script.

use redial::testing::Reason;

use super::*;

const LARGE: usize = 3 << 20;

fn large() -> Reply {
    Reply::ok(vec![7; LARGE])
}

/// How much came of a body, and how it ended.
async fn read(http2: bool, reply: Reply) -> (usize, String) {
    let server = play(http2, reply);
    let mut body = soon(client(http2).request(post(&server.url("/")))).await.unwrap().into_body();
    let mut read = 0;
    loop {
        match soon(body.frame()).await {
            Some(Ok(frame)) => read += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(error)) => return (read, words(&error)),
            None => return (read, "whole".to_owned()),
        }
    }
}

#[tokio::test]
async fn what_comes_before_a_fault_comes_whole() {
    for http2 in [false, true] {
        for (reply, end) in [
            (large(), "whole"),
            (large().close_after(), "whole"),
            (large().header("connection", "close"), "whole"),
            (large().trailer("x-sum", "7"), "whole"),
            (large().close_within(), "closed"),
            (large().break_within(), "protocol"),
            (large().header("content-length", (LARGE + 1).to_string()).close_within(), "closed"),
        ] {
            let what = format!("http2: {http2}, {:?}", reply.clone());
            let (came, ended) = read(http2, reply).await;
            assert_eq!((came, &*ended), (LARGE, end), "{}", &what[what.len().saturating_sub(200)..]);
        }
    }
    assert_eq!(read(true, large().reset_stream_within(Reason::Cancel)).await, (LARGE, "reset".to_owned()));
}

/// An answer is being given for as long as its client does not take it.
#[tokio::test]
async fn a_client_that_does_not_read_holds_the_script_up() {
    for http2 in [false, true] {
        let server = play(http2, Reply::ok(vec![7; 32 << 20]).body("end"));
        let response = soon(client(http2).request(post(&server.url("/")))).await.unwrap();
        assert!(
            tokio::time::timeout(Duration::from_millis(100), server.until(|seen| seen.in_flight() == 0)).await.is_err()
        );
        drop(response);
        server.until(|seen| seen.in_flight() == 0).await;
    }
}
