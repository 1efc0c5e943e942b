//! Stripe, row by row of its Python SDK's table, and by its pages on keys.

use super::{
    End, Seen, call, request, status,
    table::{self, Deviation, only, outcome},
    with_header,
};

const TABLE: &str = include_str!("../../conformance/status_method.json");

/// D11: refused before anything is processed, says Stripe's page "Advanced error handling": rate limiters run before the
/// layer that knows keys. Its SDK leaves the repeat to the caller.
const BY_THE_PAGE: &str = "D26: of a 429 the contract decides, and Stripe's page says to repeat it with backoff";
const DEVIATIONS: &[Deviation] = &[Deviation(49, BY_THE_PAGE, "true")];

/// `true` makes an unlisted status transient, which a GET may be repeated for.
#[tokio::test(start_paused = true)]
async fn the_sdks_table() {
    let table: serde_json::Value = serde_json::from_str(TABLE).unwrap();
    let mut rows = Vec::new();
    for row in table::rows(&table["cases"]).iter().filter(|row| row["src"] == "stripe-python") {
        only(row, &["src", "status", "headers", "retry"]);
        let code = row["status"].as_u64().and_then(|code| code.try_into().ok()).unwrap();
        let end = match row.get("headers") {
            Some(headers) => {
                only(headers, &["stripe-should-retry"]);
                with_header(code, "stripe-should-retry", headers["stripe-should-retry"].as_str().unwrap())
            }
            None => status(code),
        };
        let seen = call("stripe", request("GET", "https://api.stripe.com/v1/charges"), &[end]).await;
        rows.push((row.to_string(), outcome(row["retry"].as_bool().unwrap(), seen.attempts() > 1)));
    }
    assert_eq!(rows.len(), 56);
    table::compare("status_method, by the preset of stripe", rows, DEVIATIONS);
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
