use std::io;

use super::*;

fn refused() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionRefused, "refused https://u:p@host/x?key=K123").into()
}

#[test]
fn one_error_stays_one_error() {
    let inner = Error::limit(Limit::Head(Duration::from_secs(5)));
    let outer = Error::of_inner(BoxError::from(inner));
    assert!(outer.is_timeout());
    assert!(outer.source().is_none());
    assert_eq!(outer.to_string(), "no response head within 5s");
}

#[test]
fn the_clients_own_error_is_untouched_and_found_by_type() {
    let error = Error::not_ready(refused());
    assert!(error.is_not_ready());
    assert_eq!(error.find_source::<io::Error>().map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
}

/// As rustls's error is, and what bodies made of readers fail with.
#[test]
fn an_error_within_an_io_error_is_found() {
    let inner = io::Error::other(Error::limit(Limit::Total(Duration::from_secs(1))));
    let error = Error::not_ready(io::Error::other(inner).into());
    assert!(error.find_source::<Error>().is_some_and(Error::is_timeout));
}

#[test]
fn neither_display_nor_debug_shows_a_secret() {
    let error = Error::failed(refused(), Fault::of(FaultKind::Connect));
    for text in [format!("{error}"), format!("{error:?}"), format!("{error:#?}")] {
        assert!(!text.contains("K123") && !text.contains("u:p"), "{text}");
        assert!(text.contains("refused https://host/x"), "{text}");
    }
}

#[test]
fn a_circular_chain_ends() {
    #[derive(Debug)]
    struct Ring;

    impl fmt::Display for Ring {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("ring")
        }
    }

    impl StdError for Ring {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(self)
        }
    }

    let error = Error::of_inner(Ring.into());
    assert!(error.find_source::<io::Error>().is_none());
    assert!(error.to_string().ends_with(": ring"));
}

#[test]
fn it_goes_between_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Error>();
}
