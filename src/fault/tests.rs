use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::{Fault, FaultKind};

type BoxError = Box<dyn Error + Send + Sync>;

/// Somebody else's error around another.
#[derive(Debug)]
struct Wrapper(BoxError);

/// An error that is its own source, and so has no end.
#[derive(Debug)]
struct Endless;

/// An error that nobody knows.
#[derive(Debug)]
struct Unknown;

macro_rules! displays {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("failed")
            }
        }
    )*};
}
displays!(Wrapper Endless Unknown);

impl Error for Wrapper {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

impl Error for Endless {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self)
    }
}

impl Error for Unknown {}

fn wrapped(error: impl Into<BoxError>, times: usize) -> BoxError {
    (0..times).fold(error.into(), |error, _| Wrapper(error).into())
}

fn io(kind: ErrorKind) -> io::Error {
    kind.into()
}

fn kind(error: impl Into<BoxError>) -> FaultKind {
    let fault = Fault::read(&*error.into());
    assert!(!fault.is_unsent() && !fault.asks_calm());
    fault.kind()
}

#[test]
fn names_are_the_closed_list_and_parse_back() {
    let names = FaultKind::ALL.map(FaultKind::as_str).join(" ");
    assert_eq!(names, "connect dns tls reset closed timeout body protocol refused-stream goaway unclassified");
    for kind in FaultKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
    }
    let error = "Reset".parse::<FaultKind>().unwrap_err().to_string();
    assert!(error.starts_with("unknown fault; known are `connect`, `dns`,"), "{error}");
}

#[test]
fn io_errors_are_named_but_prove_nothing() {
    assert_eq!(kind(io(ErrorKind::ConnectionRefused)), FaultKind::Connect);
    assert_eq!(kind(io(ErrorKind::ConnectionReset)), FaultKind::Reset);
    assert_eq!(kind(io(ErrorKind::BrokenPipe)), FaultKind::Closed);
    assert_eq!(kind(io(ErrorKind::UnexpectedEof)), FaultKind::Closed);
    assert_eq!(kind(io(ErrorKind::TimedOut)), FaultKind::Timeout);
    assert_eq!(kind(io(ErrorKind::PermissionDenied)), FaultKind::Unclassified);
}

#[test]
fn an_io_error_within_another_is_seen() {
    let nested = io::Error::other(io::Error::other(io(ErrorKind::ConnectionReset)));
    assert_eq!(kind(nested), FaultKind::Reset);
    assert_eq!(kind(Arc::new(io::Error::other(io(ErrorKind::BrokenPipe)))), FaultKind::Closed);
}

#[test]
fn the_outermost_link_that_knows_decides() {
    assert_eq!(kind(io::Error::new(ErrorKind::TimedOut, io(ErrorKind::ConnectionReset))), FaultKind::Timeout);
}

#[test]
fn chains_are_read_to_a_bound() {
    assert_eq!(kind(wrapped(io(ErrorKind::ConnectionReset), 31)), FaultKind::Reset);
    assert_eq!(kind(wrapped(io(ErrorKind::ConnectionReset), 32)), FaultKind::Unclassified);
    assert_eq!(kind(wrapped(io(ErrorKind::ConnectionReset), 5000)), FaultKind::Unclassified);
    assert_eq!(kind(Endless), FaultKind::Unclassified);
    assert_eq!(kind(wrapped(Unknown, 3)), FaultKind::Unclassified);
}

#[test]
fn pointers_do_not_hide() {
    assert_eq!(kind(Arc::new(io(ErrorKind::ConnectionReset))), FaultKind::Reset);
    assert_eq!(kind(Box::new(io(ErrorKind::ConnectionReset))), FaultKind::Reset);
    let erased: Arc<dyn Error + Send + Sync> = Arc::new(io(ErrorKind::ConnectionReset));
    assert_eq!(kind(Arc::new(Wrapper(erased.into()))), FaultKind::Reset);
}

#[tokio::test(start_paused = true)]
async fn timers_are_timeouts() {
    let elapsed = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
    assert_eq!(kind(wrapped(elapsed.unwrap_err(), 2)), FaultKind::Timeout);
    #[cfg(feature = "tower")]
    assert_eq!(kind(wrapped(tower::timeout::error::Elapsed::new(), 2)), FaultKind::Timeout);
}

#[test]
fn only_a_reading_can_prove() {
    for kind in FaultKind::ALL {
        assert!(!Fault::of(kind).is_unsent());
        assert!(!Fault::of(kind).permanently().is_unsent());
    }
    assert!(!Fault::attempt_timeout().is_unsent());
    assert_eq!(Fault::attempt_timeout().kind(), FaultKind::Timeout);
}

#[test]
fn a_body_that_fails_is_a_body_or_a_stall() {
    assert_eq!(Fault::response_body_failed(&io(ErrorKind::ConnectionReset)).kind(), FaultKind::Body);
    assert_eq!(Fault::response_body_failed(&io(ErrorKind::TimedOut)).kind(), FaultKind::Timeout);
    assert_eq!(Fault::response_body_failed(&Unknown), Fault::of(FaultKind::Body));
}

#[cfg(feature = "rustls")]
#[test]
fn c045_verdicts_of_rustls() {
    use rustls::{AlertDescription, CertificateError, Error as Tls, InvalidMessage};
    let read = |error: Tls| {
        let fault = Fault::read(&io::Error::new(ErrorKind::InvalidData, error));
        assert_eq!(fault.kind(), FaultKind::Tls);
        assert!(!fault.is_unsent(), "only the client's connect error proves");
        fault.is_permanent()
    };
    assert!(read(Tls::InvalidCertificate(CertificateError::Expired)));
    assert!(read(Tls::InvalidCertificate(CertificateError::UnknownIssuer)));
    assert!(read(Tls::AlertReceived(AlertDescription::CertificateRequired)));
    assert!(!read(Tls::AlertReceived(AlertDescription::InternalError)));
    assert!(!read(Tls::InvalidMessage(InvalidMessage::InvalidContentType)));
}

#[cfg(feature = "hyper")]
#[test]
fn an_h2_reason_made_by_hand_proves_nothing() {
    for reason in [h2::Reason::REFUSED_STREAM, h2::Reason::NO_ERROR, h2::Reason::ENHANCE_YOUR_CALM] {
        assert_eq!(kind(h2::Error::from(reason)), FaultKind::Protocol);
    }
}

/// A link of somebody's chain: never a client's.
fn link(kind: usize, around: BoxError) -> BoxError {
    const KINDS: [ErrorKind; 8] = [
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        ErrorKind::NotConnected,
        ErrorKind::TimedOut,
        ErrorKind::UnexpectedEof,
        ErrorKind::InvalidData,
        ErrorKind::Other,
    ];
    match kind {
        0..8 => io::Error::new(KINDS[kind], around).into(),
        8 => Wrapper(around).into(),
        9 => Arc::new(Wrapper(around)).into(),
        10 => Box::new(Wrapper(around)).into(),
        11 => Arc::<dyn Error + Send + Sync>::from(around).into(),
        12 => Endless.into(),
        13 => io::Error::from_raw_os_error(111).into(),
        14 => "failed".into(),
        #[cfg(feature = "hyper")]
        15 => h2::Error::from(h2::Reason::REFUSED_STREAM).into(),
        #[cfg(feature = "hyper")]
        16 => h2::Error::from(h2::Reason::from(around.to_string().len() as u32)).into(),
        #[cfg(feature = "tower")]
        17 => tower::timeout::error::Elapsed::new().into(),
        _ => Unknown.into(),
    }
}

proptest! {
    #[test]
    fn no_chain_without_a_client_proves_anything(links in prop::collection::vec(0usize..20, 0..80)) {
        let error = links.into_iter().fold(BoxError::from(Unknown), |around, kind| link(kind, around));
        let fault = Fault::read(&*error);
        prop_assert!(!fault.is_unsent());
        prop_assert!(!fault.asks_calm());
        prop_assert!(!Fault::response_body_failed(&*error).is_unsent());
        prop_assert_eq!(Fault::read(&*error), fault);
    }

    #[test]
    fn names_never_panic(name in ".*") {
        prop_assert_eq!(name.parse::<FaultKind>().ok().map(FaultKind::as_str).unwrap_or(&name), &name);
    }
}
