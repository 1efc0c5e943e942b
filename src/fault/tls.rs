//! Verdicts of rustls.

use super::Fault;
use super::chain::Link;

#[cfg(not(feature = "rustls"))]
pub(super) fn read(_: Link<'_>) -> Option<Fault> {
    None
}

#[cfg(feature = "rustls")]
pub(super) fn read(link: Link<'_>) -> Option<Fault> {
    let error = super::chain::peek::<rustls::Error>(link)?;
    let fault = Fault::of(super::FaultKind::Tls);
    Some(if is_verdict(error) { fault.permanently() } else { fault })
}

/// Whether the same two peers would come to the same end again: a certificate, a name or an offer was rejected. What
/// remains (garbled records, an internal error) may have been the moment's.
#[cfg(feature = "rustls")]
fn is_verdict(error: &rustls::Error) -> bool {
    use rustls::{AlertDescription as Alert, Error};
    match error {
        Error::InvalidCertificate(_)
        | Error::InvalidCertRevocationList(_)
        | Error::NoCertificatesPresented
        | Error::UnsupportedNameType
        | Error::PeerIncompatible(_)
        | Error::NoApplicationProtocol
        | Error::InconsistentKeys(_) => true,
        // What the peer thinks of us, our own certificate for one.
        Error::AlertReceived(alert) => matches!(
            alert,
            Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::CertificateRequired
                | Alert::UnknownCA
                | Alert::AccessDenied
                | Alert::HandshakeFailure
                | Alert::ProtocolVersion
                | Alert::InsufficientSecurity
                | Alert::UnrecognisedName
                | Alert::NoApplicationProtocol
        ),
        _ => false,
    }
}
