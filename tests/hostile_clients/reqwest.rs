//! reqwest, as a user has it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use redial::{
    Budget, Policy, StandardPolicy, Timeouts, Transient,
    policy::AnswerRule,
    testing::{Reply, Script, Server},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{attempts, client, inner, ms, policy};

#[tokio::test]
async fn the_answers_url_keeps_its_fragment_as_without_us() {
    let server = Server::http1([Reply::ok("")]);
    let url = server.url("/page?x=1#part");
    let alone = inner().build().unwrap().get(&url).send().await.unwrap();
    let ours = client(policy()).get(&url).send().await.unwrap();
    assert_eq!(ours.url(), alone.url());
}

#[tokio::test]
async fn whole_bodies_are_framed_as_reqwest_does_it() {
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "PUT", "POST"] {
        let server = Server::http1([Reply::ok("")]);
        let method: http::Method = method.parse().unwrap();
        inner().build().unwrap().request(method.clone(), server.url("/")).send().await.unwrap();
        client(policy()).request(method.clone(), server.url("/")).send().await.unwrap();
        client(policy()).whole_bodies().request(method.clone(), server.url("/")).send().await.unwrap();
        let seen = server.seen();
        let requests = &seen.sent(3).requests;
        assert_eq!(requests[1].headers, requests[0].headers, "{method}: streamed");
        assert_eq!(requests[2].headers, requests[0].headers, "{method}: whole");
    }
}

#[tokio::test]
async fn userinfo_in_the_url_is_basic_auth_on_every_attempt() {
    let server = Server::http1([Reply::status(503), Reply::ok("")]);
    let url = server.url("/").replace("http://", "http://me:p%40ss@");
    client(policy()).get(url).send().await.unwrap();
    let seen = server.seen();
    // me:p@ss
    assert!(seen.sent(2).requests.iter().all(|request| request.headers["authorization"] == "Basic bWU6cEBzcw=="));
}

#[tokio::test]
async fn odd_urls_arrive_as_without_us() {
    for path in ["//double//slash", "/a|b", "/%7Etilde/%2F", "/ümlaut?q=ü", "/?", "/a?b=c?d", "/;p=1", "/[x]", "/a^b"]
    {
        let server = Server::http1([Reply::ok("")]);
        let alone = inner().build().unwrap().get(server.url(path)).send().await;
        let ours = client(policy()).get(server.url(path)).send().await;
        match (alone, ours) {
            (Ok(alone), Ok(ours)) => {
                assert_eq!(ours.url(), alone.url());
                let seen = server.seen();
                assert_eq!(seen.requests[0].path, seen.requests[1].path, "{path}");
            }
            (Err(_), Err(_)) => {}
            (alone, ours) => panic!("{path}: {alone:?} {ours:?}"),
        }
    }
}

/// reqwest makes a stream of it: repeated as far as the tape goes.
#[tokio::test]
async fn multipart_is_repeated_while_it_fits_the_tape() {
    for (size, status, sent) in [(1 << 10, 200, 2), (100 << 10, 503, 1)] {
        let server = Server::http1([Reply::status(503), Reply::ok("")]);
        let form = ::reqwest::multipart::Form::new()
            .text("name", "seven")
            .part("file", ::reqwest::multipart::Part::bytes(vec![7; size]).file_name("seven.bin"));
        let put = client(policy()).put(server.url("/")).with(|request| request.multipart(form));
        let response = put.send().await.unwrap();
        let seen = server.until(|seen| seen.complete() == seen.requests.len()).await;
        let first = &seen.requests[0];
        assert!(first.headers["content-type"].to_str().unwrap().starts_with("multipart/form-data"));
        assert!(seen.requests.iter().all(|request| request.body.sha256 == first.body.sha256));
        assert!(seen.requests.iter().all(|request| request.headers == first.headers));
        assert_eq!((response.status().as_u16(), attempts(&response)), (status, sent), "{size}");
    }
}

#[tokio::test]
async fn cookies_of_a_failed_attempt_go_along_with_the_next() {
    let server = Server::http1([Reply::status(503).header("set-cookie", "session=7"), Reply::ok("")]);
    let jar = inner().cookie_store(true).build().unwrap();
    let client = redial::reqwest::client(jar, policy().build().unwrap());
    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let seen = server.seen();
    assert_eq!(seen.sent(2).requests[1].headers["cookie"], "session=7");
}

fn zipped(text: &str) -> Vec<u8> {
    // Stored, not deflated: gzip without a crate.
    let data = text.as_bytes();
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    out.extend((data.len() as u16).to_le_bytes());
    out.extend((!(data.len() as u16)).to_le_bytes());
    out.extend(data);
    let mut crc = !0_u32;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    out.extend((!crc).to_le_bytes());
    out.extend((data.len() as u32).to_le_bytes());
    out
}

#[tokio::test]
async fn gzip_is_unpacked_and_an_error_body_is_looked_into_unpacked() {
    let gz = |status, text: &str| Reply::status(status).header("content-encoding", "gzip").body(zipped(text));
    let server = Server::http1([gz(200, "an order")]);
    let response = client(policy()).get(server.url("/")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "an order");

    let rule = || AnswerRule::transient().status([400]).json_equals("/code", "busy").because("documented as passing");
    let busy = "{\"code\": \"busy\"}";
    let server = Server::http1([gz(400, busy), gz(200, "an order")]);
    let response = client(policy().answer(rule())).get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    assert_eq!(response.text().await.unwrap(), "an order");

    // The last is the caller's, with its body, its URL and its length.
    let script = Script::new([Reply::status(302).header("location", "/there")]).route("/there", [gz(400, busy)]);
    let server = Server::http1(script);
    let response = client(policy().answer(rule())).get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (400, 3));
    assert_eq!(response.url().as_str(), server.url("/there"));
    assert_eq!(response.remote_addr(), Some(server.addr()));
    let failed = response.error_for_status_ref().unwrap_err();
    assert_eq!(failed.url().unwrap().as_str(), server.url("/there"));
    assert_eq!(response.text().await.unwrap(), busy);

    let plain = Reply::status(400).body(busy);
    let server = Server::http1([plain]);
    let response = client(policy().answer(rule())).get(server.url("/")).send().await.unwrap();
    assert_eq!(response.content_length(), Some(busy.len() as u64));
}

#[tokio::test]
async fn reqwests_timeout_also_ends_a_body_that_was_looked_into() {
    let rule = AnswerRule::transient().status([400]).json_equals("/code", "busy").because("documented as passing");
    let server = Server::http1([Reply::status(400).body("{\"code\":").stall_within()]);
    let began = Instant::now();
    let response = client(policy().answer(rule)).get(server.url("/")).timeout(ms(300)).send().await;
    // Either it is an answer whose body ends in a timeout, or an error that is one.
    match response {
        Ok(response) => assert!(response.text().await.unwrap_err().is_timeout()),
        Err(error) => assert!(error.is_timeout(), "{error}"),
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_upgrade_through_the_client_still_upgrades() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n").await.unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        stream.write_all(&word).await.unwrap();
    });
    let get = client(policy()).get(url).header("connection", "upgrade").header("upgrade", "echo");
    let mut upgraded = get.send().await.unwrap().upgrade().await.unwrap();
    upgraded.write_all(b"word").await.unwrap();
    let mut word = [0; 4];
    upgraded.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"word");
}

#[tokio::test]
async fn http2_by_prior_knowledge_keeps_one_connection_and_the_version() {
    let server = Server::http2([Reply::status(503).body("busy"), Reply::ok("an order")]);
    let h2 = inner().http2_prior_knowledge().build().unwrap();
    let client = redial::reqwest::client(h2, policy().build().unwrap());
    let response = client.put(server.url("/")).body("one more").send().await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    assert_eq!((attempts(&response), server.seen().connections), (2, 1));
    assert_eq!(response.text().await.unwrap(), "an order");
    let get = client.get(server.url("/")).version(http::Version::HTTP_2).send().await.unwrap();
    assert_eq!(get.version(), http::Version::HTTP_2);
}

#[tokio::test]
async fn a_version_that_the_connection_does_not_speak_is_one_attempt() {
    let server = Server::http1([Reply::ok("")]);
    let sent = client(policy()).get(server.url("/")).version(http::Version::HTTP_2).send().await;
    let error = sent.unwrap_err();
    assert_eq!(error.report().unwrap().attempts().len(), 1, "{error:?}");
}

#[tokio::test]
async fn a_policy_behind_dyn_and_a_spawned_call() {
    let server = Server::http1([Reply::status(503), Reply::ok("")]);
    let erased: Arc<dyn Policy + Send + Sync> = Arc::new(policy().build().unwrap());
    let client = redial::reqwest::client(inner().build().unwrap(), erased);
    let url = server.url("/");
    let call = tokio::spawn(async move { client.get(url).send().await.map(|response| response.status()) });
    assert_eq!(call.await.unwrap().unwrap(), 200);
}

#[tokio::test]
async fn clones_share_the_budget() {
    let server = Server::http1([Reply::status(503)]);
    let policy = policy().budget(Budget::usual());
    let client = client(policy);
    let calls = (0..40).map(|_| client.clone().get(server.url("/")).send());
    futures_util::future::join_all(calls).await;
    let sent = server.seen().requests.len();
    assert!((40..=46).contains(&sent), "{sent}");
}

#[tokio::test]
async fn the_bodies_timeout_of_reqwest_is_there_after_a_retry_with_large_answers() {
    // A large failed answer is not read to its end.
    let large = Reply::status(503).body(Bytes::from(vec![0; 8 << 20]));
    let server = Server::http1([large, Reply::ok("done")]);
    let response = client(policy()).get(server.url("/")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "done");
    server.seen().sent(2);
}

#[tokio::test]
async fn a_stalled_failed_answer_does_not_hold_the_retry() {
    let server = Server::http1([Reply::status(503).body("half").stall_within(), Reply::ok("done")]);
    let began = Instant::now();
    let response = client(policy()).get(server.url("/")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "done");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_stream_that_fails_in_the_middle_is_the_callers_own_and_not_repeated() {
    let server = Server::http1([Reply::ok("")]);
    let chunks = futures_util::stream::iter([Ok("one"), Err(std::io::Error::other("the disk is gone"))]);
    let put = client(policy()).put(server.url("/")).body(::reqwest::Body::wrap_stream(chunks));
    let error = put.send().await.unwrap_err();
    assert_eq!(error.report().unwrap().attempts().len(), 1, "{error:?}");
    let mut text = format!("{error}");
    let mut source = std::error::Error::source(&error);
    while let Some(link) = source {
        text += &format!(": {link}");
        source = link.source();
    }
    assert!(text.contains("the disk is gone"), "{text}");
}

#[tokio::test]
async fn a_proxy_that_is_down_was_not_sent_to() {
    let down = Server::refusing();
    let proxied = ::reqwest::Client::builder()
        .proxy(::reqwest::Proxy::http(down.url("")).unwrap())
        .retry(::reqwest::retry::never())
        .build()
        .unwrap();
    let client = redial::reqwest::client(proxied, policy().build().unwrap());
    let error = client.post("http://orders.example/").body("one more").send().await.unwrap_err();
    assert!(error.is_connect());
    assert_eq!(error.report().unwrap().attempts().len(), 3, "{error:?}");
}

#[tokio::test]
async fn the_message_that_people_print_shows_no_query() {
    let refusing = Server::refusing();
    let error = client(policy()).get(refusing.url("/?token=SECRET")).send().await.unwrap_err();
    let mut text = format!("{error} {error:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(link) = source {
        text += &format!(" {link} {link:?}");
        source = link.source();
    }
    assert!(!text.contains("SECRET"), "{text}");
}

#[tokio::test]
async fn an_attempt_and_a_total_that_bound_a_clients_longer_timeout() {
    let server = Server::http1([Reply::stall()]);
    let timeouts = Timeouts { attempt: ms(150), total: ms(400) };
    let slow = inner().timeout(Duration::from_secs(60)).build().unwrap();
    let policy = StandardPolicy::new("orders", timeouts, Transient::usual()).unwrap();
    let began = Instant::now();
    let error = redial::reqwest::client(slow, policy).get(server.url("/")).send().await.unwrap_err();
    assert!(error.is_timeout());
    assert!(began.elapsed() < ms(600), "{:?}", began.elapsed());
}

#[tokio::test]
async fn early_answer_to_a_large_stream() {
    let server = Server::http1([Reply::status(503).early(), Reply::ok("")]);
    let body = Bytes::from(vec![7; 4 << 20]);
    let response = client(policy()).put(server.url("/")).body(body.clone()).send().await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    let seen = server.until(|seen| seen.requests.len() == 2 && seen.requests[1].body.complete).await;
    assert!(seen.requests[1].body.is(&body));
}

/// What breaks after the server has it is not repeated for a POST, whatever its body and however it is handed over.
#[tokio::test]
async fn no_post_is_sent_twice() {
    use redial::testing::Reason;
    for whole in [false, true] {
        for body in ["", "one more"] {
            for reply in [Reply::close(), Reply::reset(), Reply::half_head(), Reply::status(500), Reply::status(429)] {
                let server = Server::http1([Reply::ok(""), reply.clone(), Reply::ok("")]);
                let mut client = client(policy());
                if whole {
                    client = client.whole_bodies();
                }
                client.get(server.url("/")).send().await.unwrap();
                let _ = client.post(server.url("/")).body(body).send().await;
                assert_eq!(server.seen().requests.len(), 2, "{whole} {body:?} {reply:?}");
            }
            for reply in [
                Reply::close(),
                Reply::reset_stream(Reason::InternalError),
                Reply::reset_stream(Reason::Cancel),
                Reply::refused_stream(),
                Reply::ok("").break_within(),
            ] {
                let server = Server::http2([Reply::ok(""), reply.clone(), Reply::ok("")]);
                let h2 = inner().http2_prior_knowledge().build().unwrap();
                let mut client = redial::reqwest::client(h2, policy().build().unwrap());
                if whole {
                    client = client.whole_bodies();
                }
                client.get(server.url("/")).send().await.unwrap();
                let _ = client.post(server.url("/")).body(body).send().await;
                assert_eq!(server.seen().requests.len(), 2, "{whole} {body:?} {reply:?}");
            }
        }
    }
}

/// A request built without the builder, whose URL holds credentials: as without us, and in no event.
#[tokio::test]
async fn a_raw_request_with_userinfo_is_as_without_us() {
    use redial::testing::Events;
    let server = Server::http1([Reply::ok(""), Reply::status(503)]);
    let url: ::reqwest::Url = server.url("/?token=SECRET#frag").replace("http://", "http://me:PASS@").parse().unwrap();
    let request = || ::reqwest::Request::new(http::Method::GET, url.clone());
    inner().build().unwrap().execute(request()).await.unwrap();
    let events = Events::capture();
    client(policy()).execute(request()).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.requests[1].headers, seen.requests[0].headers);
    assert_eq!(seen.requests[1].path, seen.requests[0].path);
    let text = format!("{:?}", events.all());
    assert!(!text.contains("PASS") && !text.contains("SECRET"), "{text}");
}

/// A policy per host and path, for reqwest's absolute URLs.
#[tokio::test]
async fn routes_match_reqwests_urls() {
    let server = Server::http1([Reply::status(503)]);
    let once = StandardPolicy::unretried("other", Duration::from_secs(5)).unwrap();
    let routes = redial::Routes::builder(once).route("GET /orders/{id}", policy().build().unwrap()).build().unwrap();
    let client = redial::reqwest::client(inner().build().unwrap(), routes);
    client.get(server.url("/orders/7?x=1")).send().await.unwrap();
    client.get(server.url("/else")).send().await.unwrap();
    server.seen().to("GET /orders/{id}").sent(3);
    server.seen().to("GET /else").sent(1);
}
