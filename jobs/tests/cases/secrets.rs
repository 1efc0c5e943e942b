//! What a table must not hold.

use std::time::Duration;

use redial::{
    RetryLayer, StandardPolicy, Timeouts, Transient,
    testing::{self, Reply},
};
use redial_jobs::{BoxError, JobContext, JobError, State};
use tower::{Layer, ServiceExt};

use crate::{
    place::{Database, Place},
    team::{Plain, Short, Team, add, all, plain, runner, until_state},
};

/// Of a request's headers, and of its query.
const SECRETS: [&str; 5] = ["s3cret-bearer", "s3cret-cookie", "s3cret-api-key", "s3cret-token", "s3cret-password"];

/// Credentials are the handler's, which takes them anew from where they are kept; a failure's row tells nothing of them.
pub async fn c173_a_failed_jobs_row_holds_no_secret(place: &Place) {
    add(&place.store, &plain("a")).await;
    add(&place.store, &plain("b")).await;
    add(&place.store, &Short).await;
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::new("shop", timeouts, Transient::usual()).unwrap();
    let client = RetryLayer::new(policy).layer(testing::service([Reply::reset()]));
    let team = Team::start(
        runner(&place.store)
            .recovery_elsewhere(redial_jobs::Recovery::default())
            .on(move |job: Plain, _: JobContext| {
                let client = client.clone();
                async move {
                    if job.name == "b" {
                        // As reqwest and others write their errors.
                        let text = "error sending request for url (https://ada:s3cret-password@shop.example/o?token=s3cret-token)";
                        return Err(BoxError::from(text));
                    }
                    let request = http::Request::post("https://ada:s3cret-password@shop.example/orders?token=s3cret-token")
                        .header("authorization", "Bearer s3cret-bearer")
                        .header("cookie", "session=s3cret-cookie")
                        .header("x-api-key", "s3cret-api-key")
                        .body(http_body_util::Empty::<bytes::Bytes>::new())?;
                    Ok(JobError::of_answer(&client.oneshot(request).await?)?)
                }
            })
            .on(|_: Short, _: JobContext| async {
                panic!("no route to https://shop.example/orders?token=s3cret-token");
                #[allow(unreachable_code)]
                Ok::<_, BoxError>(())
            }),
    );
    let rows = until_state(&place.store, State::Failed, 3).await;
    team.end().await;
    assert!(rows.iter().all(|row| row.error.as_deref().is_some_and(|error| !error.is_empty())));
    let mut shown = serde_json::to_string(&rows).unwrap() + &format!("{:?}", all(&place.store).await);
    if let Database::Sqlite(pool) = &place.database {
        let file = pool.connect_options().get_filename().to_owned();
        for path in [file.clone(), file.with_extension("db-wal")] {
            shown.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
        }
    }
    assert!(shown.contains("shop.example"), "the failures are there");
    for secret in SECRETS {
        assert!(!shown.contains(secret), "{secret} is in the table");
    }
}
