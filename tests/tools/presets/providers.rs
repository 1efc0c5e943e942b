//! What the other providers' pages say.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redial::StopReason;

use super::{End, Seen, call, request, status, with_header};

const SECOND: Duration = Duration::from_secs(1);

async fn github(method: &str, path: &str, ends: &[End]) -> Seen {
    call("github", request(method, &format!("https://api.github.com{path}")), ends).await
}

#[tokio::test(start_paused = true)]
async fn github_limits() {
    // With `retry-after`, for a POST too: a limited request was refused.
    for code in [403, 429] {
        let ends = [with_header(code, "retry-after", "7"), status(201)];
        let seen = github("POST", "/repos/o/r/issues", &ends).await;
        assert_eq!(seen.status, Some(201));
        assert!(seen.first_wait().is_some_and(|wait| wait >= 7 * SECOND), "{:?}", seen.at);
    }
    // The primary limit: until an instant.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let spent = |reset: u64| {
        let headers = vec![("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", reset.to_string())];
        End::Answer(403, headers, "")
    };
    let seen = github("POST", "/repos/o/r/issues", &[spent(now + 20), status(201)]).await;
    assert_eq!(seen.status, Some(201));
    assert!(seen.first_wait().is_some_and(|wait| wait >= 18 * SECOND), "{:?}", seen.at);
    // An hour does not fit: at once, and with the time.
    let seen = github("GET", "/user", &[spent(now + 3600)]).await;
    assert_eq!((seen.attempts(), seen.stop, seen.told_when), (1, Some(StopReason::WaitTooLong), true));
    // A secondary limit is told by its message alone, and needs a minute.
    let message = r#"{"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}"#;
    let seen = github("GET", "/user", &[End::Answer(403, Vec::new(), message)]).await;
    assert_eq!((seen.attempts(), seen.stop, seen.told_when), (1, Some(StopReason::WaitTooLong), true));
    // Where the end of a limit cannot be read, it is a minute; `retry-after` does not hide when the primary limit resets.
    for headers in [
        vec![("x-ratelimit-remaining", "0".to_owned())],
        vec![("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", "soon".to_owned())],
        vec![("retry-after", "soon".to_owned())],
        vec![
            ("retry-after", "1".to_owned()),
            ("x-ratelimit-remaining", "0".to_owned()),
            ("x-ratelimit-reset", (now + 3600).to_string()),
        ],
    ] {
        let seen = github("POST", "/repos/o/r/issues", &[End::Answer(403, headers.clone(), ""), status(201)]).await;
        assert_eq!(
            (seen.attempts(), seen.stop, seen.told_when),
            (1, Some(StopReason::WaitTooLong), true),
            "{headers:?}"
        );
    }
    // What is forbidden stays so.
    let forbidden = End::Answer(403, Vec::new(), r#"{"message": "Resource not accessible by integration"}"#);
    let seen = github("GET", "/user", &[forbidden]).await;
    assert_eq!((seen.attempts(), seen.stop), (1, None));
}

#[tokio::test(start_paused = true)]
async fn github_contents() {
    let path = "/repos/o/r/contents/notes/2026/12.md";
    // A 409 at once is an answer; after an attempt of unknown effect it may be the first one's success.
    let seen = github("PUT", path, &[status(409)]).await;
    assert_eq!((seen.attempts(), seen.stop), (1, None));
    let seen = github("PUT", path, &[End::Lost, status(409)]).await;
    assert_eq!((seen.attempts(), seen.stop), (2, Some(StopReason::Verify)));
    let seen = github("DELETE", path, &[status(502), status(404)]).await;
    assert_eq!((seen.attempts(), seen.stop), (2, Some(StopReason::Verify)));
    for code in [400, 401, 404, 422, 500] {
        assert_eq!(github("PUT", path, &[status(code)]).await.attempts(), 1, "{code}");
    }
    assert_eq!(github("POST", "/repos/o/r/issues", &[status(502)]).await.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn openai() {
    let chat = |ends: Vec<End>| async move {
        call("openai", request("POST", "https://api.openai.com/v1/chat/completions"), &ends).await
    };
    let quota = End::Answer(429, Vec::new(), r#"{"error": {"code": "insufficient_quota"}}"#);
    assert_eq!(chat(vec![quota]).await.attempts(), 1);
    let limited = End::Answer(429, Vec::new(), r#"{"error": {"code": "rate_limit_exceeded"}}"#);
    assert_eq!(chat(vec![limited.clone()]).await.attempts(), 3);
    for (code, attempts) in [(408, 3), (409, 3), (500, 3), (503, 3), (400, 1), (401, 1), (404, 1), (422, 1)] {
        assert_eq!(chat(vec![status(code)]).await.attempts(), attempts, "{code}");
    }
    assert_eq!(chat(vec![with_header(503, "x-should-retry", "false")]).await.attempts(), 1);
    // What stays is not made twice, unless it was refused.
    let responses = || request("POST", "https://api.openai.com/v1/responses");
    assert_eq!(call("openai", responses(), &[status(503)]).await.attempts(), 1);
    assert_eq!(call("openai", responses(), &[limited, status(200)]).await.status, Some(200));
}

#[tokio::test(start_paused = true)]
async fn anthropic() {
    let messages = |ends: Vec<End>| async move {
        call("anthropic", request("POST", "https://api.anthropic.com/v1/messages"), &ends).await
    };
    for (code, attempts) in [(408, 3), (409, 3), (500, 3), (529, 3), (400, 1), (401, 1), (404, 1), (413, 1)] {
        assert_eq!(messages(vec![status(code)]).await.attempts(), attempts, "{code}");
    }
    // Without `retry-after` too, as the SDK has it: by the backoff.
    assert_eq!(messages(vec![status(429)]).await.attempts(), 3);
    let seen = messages(vec![with_header(429, "retry-after", "3"), status(200)]).await;
    assert_eq!(seen.status, Some(200));
    assert!(seen.first_wait().is_some_and(|wait| wait >= 3 * SECOND), "{:?}", seen.at);
    // What stays is not made twice: only a limit that says when to come back is known to be a refusal.
    let batches = || request("POST", "https://api.anthropic.com/v1/messages/batches");
    for code in [429, 529] {
        assert_eq!(call("anthropic", batches(), &[status(code)]).await.attempts(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn slack() {
    let post = || request("POST", "https://slack.com/api/chat.postMessage");
    let seen = call("slack", post(), &[with_header(429, "retry-after", "2"), status(200)]).await;
    assert_eq!(seen.status, Some(200));
    assert!(seen.first_wait().is_some_and(|wait| wait >= 2 * SECOND), "{:?}", seen.at);
    assert_eq!(call("slack", post(), &[status(503)]).await.attempts(), 1);
    assert_eq!(call("slack", post(), &[End::Lost]).await.attempts(), 1);
    let history = request("POST", "https://slack.com/api/conversations.history");
    assert_eq!(call("slack", history, &[End::Lost]).await.attempts(), 3);
}

#[tokio::test(start_paused = true)]
async fn azure_blob() {
    let put = |condition: Option<(&'static str, &'static str)>| {
        let mut request = request("PUT", "https://shop.blob.core.windows.net/reports/2026/1?comp=appendblock");
        if let Some((name, value)) = condition {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request
    };
    assert_eq!(call("azure-blob", put(None), &[status(503)]).await.attempts(), 1);
    for condition in [("if-match", "\"1\""), ("if-none-match", "*"), ("x-ms-blob-condition-appendpos", "4096")] {
        assert_eq!(call("azure-blob", put(Some(condition)), &[status(503)]).await.attempts(), 3, "{condition:?}");
        let seen = call("azure-blob", put(Some(condition)), &[End::Lost, status(412)]).await;
        assert_eq!((seen.attempts(), seen.stop), (2, Some(StopReason::Verify)));
    }
    let get = request("GET", "https://shop.blob.core.windows.net/reports/2026/1");
    let seen = call("azure-blob", get, &[with_header(503, "x-ms-retry-after-ms", "4500"), status(200)]).await;
    assert!(seen.first_wait().is_some_and(|wait| wait >= Duration::from_millis(4500)), "{:?}", seen.at);
}

#[tokio::test(start_paused = true)]
async fn s3() {
    let uri = "https://reports.s3.us-east-1.amazonaws.com/2026/1";
    for (method, attempts) in [("GET", 3), ("PUT", 3), ("DELETE", 3), ("POST", 1)] {
        for code in [429, 500, 502, 503, 504] {
            let seen = call("s3", request(method, uri), &[status(code)]).await;
            assert_eq!(seen.attempts(), attempts, "{method} {code}");
        }
    }
    for code in [403, 404, 409, 412] {
        assert_eq!(call("s3", request("PUT", uri), &[status(code)]).await.attempts(), 1, "{code}");
    }
}

/// The origin's rules: three attempts, two seconds and then twice that, no 4xx from GitHub.
#[tokio::test(start_paused = true)]
async fn til_service() {
    for path in ["/ai/analyze", "/ai/til"] {
        let uri = format!("https://ai.til.example{path}");
        let seen = call("til-service", request("POST", &uri), &[status(503)]).await;
        assert_eq!(seen.attempts(), 3);
        let (first, second) = (seen.at[1], seen.at[2] - seen.at[1]);
        assert!((Duration::from_millis(1500)..=2 * SECOND).contains(&first), "{first:?}");
        assert!((Duration::from_millis(1500)..=4 * SECOND).contains(&second), "{second:?}");
        assert_eq!(call("til-service", request("POST", &uri), &[End::Lost]).await.attempts(), 3);
        assert_eq!(call("til-service", request("POST", &uri), &[status(422)]).await.attempts(), 1);
    }
    let put = || request("PUT", "https://api.github.com/repos/o/r/contents/til/2026-12-01.md");
    for code in [400, 401, 403, 404, 409, 422, 429] {
        let limited = with_header(code, "retry-after", "1");
        assert_eq!(call("til-service", put(), &[limited]).await.attempts(), 1, "{code}");
    }
    for (code, attempts) in [(502, 3), (500, 1)] {
        assert_eq!(call("til-service", put(), &[status(code)]).await.attempts(), attempts, "{code}");
    }
    let seen = call("til-service", put(), &[End::Lost, status(422)]).await;
    assert_eq!((seen.attempts(), seen.stop), (2, Some(StopReason::Verify)));
}
