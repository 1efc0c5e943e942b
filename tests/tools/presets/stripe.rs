//! Stripe, row by row of its Python SDK's table, and by its pages on keys.

use serde_json::Value;

use super::{End, Seen, call, request, status, with_header};

const TABLE: &str = include_str!("../../conformance/status_method.json");

/// Where the page is followed, and not the SDK: 429 is refused before anything is processed (Stripe, "Advanced error
/// handling": rate limiters run before the idempotency layer), and is to be repeated with backoff.
const BY_THE_PAGE: &[u64] = &[429];

/// `true` makes an unlisted status transient, which a GET may be repeated for.
#[tokio::test(start_paused = true)]
async fn the_sdks_table() {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let rows = table["cases"].as_array().unwrap().iter().filter(|row| row["src"] == "stripe-python");
    let (mut count, mut other) = (0, Vec::new());
    for row in rows {
        let code = row["status"].as_u64().unwrap();
        let end = match row.get("headers") {
            Some(headers) => {
                let value = headers["stripe-should-retry"].as_str().unwrap();
                with_header(u16::try_from(code).unwrap(), "stripe-should-retry", value)
            }
            None => status(u16::try_from(code).unwrap()),
        };
        let seen = call("stripe", request("GET", "https://api.stripe.com/v1/charges"), &[end]).await;
        let retried = seen.attempts() > 1;
        if retried != row["retry"].as_bool().unwrap() {
            other.push(code);
        }
        count += 1;
    }
    assert_eq!(count, 56);
    assert_eq!(other, BY_THE_PAGE);
}

async fn charge(key: bool, ends: &[End]) -> Seen {
    let mut request = request("POST", "https://api.stripe.com/v1/charges");
    if key {
        request.headers_mut().insert("idempotency-key", "4a1f".parse().unwrap());
    }
    call("stripe", request, ends).await
}

#[tokio::test(start_paused = true)]
async fn a_key_is_for_what_was_not_answered() {
    // The answer is saved, a 500 too: to ask again is to be told the same.
    assert_eq!(charge(true, &[status(500)]).await.attempts(), 1);
    assert_eq!(charge(true, &[End::Lost, status(200)]).await.status, Some(200));
    assert_eq!(charge(false, &[End::Lost]).await.attempts(), 1);
    // Nothing began: neither needs a key.
    assert_eq!(charge(false, &[status(429), status(200)]).await.status, Some(200));
    assert_eq!(charge(true, &[status(409), status(200)]).await.status, Some(200));
    assert_eq!(charge(true, &[with_header(409, "stripe-should-retry", "false")]).await.attempts(), 1);
}
