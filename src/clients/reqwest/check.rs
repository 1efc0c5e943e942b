//! Answers of reqwest within a block of code.

use http::Response;

use crate::{CallReport, Failure};

/// The answer; or, from status 400 on, the failure of a block of code ([`redial::retry`](fn@crate::retry)) that it is, judged
/// with all that its headers say. Instead of `error_for_status()`, which loses them, `Retry-After` among them.
///
/// ```no_run
/// # async fn example(client: reqwest::Client, policy: redial::StandardPolicy) -> Result<(), redial::Error> {
/// let text = redial::retry(&policy, |_| async {
///     let answer = redial::reqwest::check(client.get("https://orders.example/7").send().await?)?;
///     Ok(answer.text().await?)
/// })
/// .idempotent("it only reads")
/// .await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The failure ([`Failure::answer`]). The response is dropped with its body.
pub fn check(response: reqwest::Response) -> Result<reqwest::Response, Failure> {
    if response.status().as_u16() < 400 {
        return Ok(response);
    }
    let mut head = Response::new(());
    *head.status_mut() = response.status();
    *head.headers_mut() = response.headers().clone();
    if let Some(report) = response.extensions().get::<CallReport>() {
        head.extensions_mut().insert(report.clone());
    }
    Err(Failure::answer(&head))
}
