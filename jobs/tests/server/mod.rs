//! The PostgreSQL server that tests may use.

use std::{io::Write, sync::Once};

/// Its URL. Where none is named, a line says so that no test which then ends at once is taken for one that has passed.
pub fn url() -> Option<String> {
    static SAID: Once = Once::new();
    let url = std::env::var("REDIAL_TEST_POSTGRES").ok();
    if url.is_none() {
        SAID.call_once(|| left_out("the tests on PostgreSQL: REDIAL_TEST_POSTGRES names no server"));
    }
    url
}

/// Said past the capture of what a test prints.
pub fn left_out(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nleft out: {what}");
}
