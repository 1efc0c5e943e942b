//! Each test on each store: SQLite always, PostgreSQL where `REDIAL_TEST_POSTGRES` names a server.

/// Runs each test on each store.
macro_rules! on_each_store {
    ($($module:ident: $($test:ident),+;)+) => {
        mod sqlite {
            use super::*;
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
            async fn $test() {
                let place = Place::sqlite().await;
                $module::$test(&place).await;
                place.end().await;
            })+)+
        }
        mod postgres {
            use super::*;
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
            async fn $test() {
                let Some(place) = Place::postgres().await else { return };
                $module::$test(&place).await;
                place.end().await;
            })+)+
        }
    };
}
