//! What else retries on the path (S13): declared, so that the worst case is known and bounded.

use std::fmt;

/// Where on the path a foreign retry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// In an SDK, around the client that redial retries for or within it.
    Sdk,
    /// In the HTTP client itself, below redial.
    Client,
    /// On the way: a gateway, a proxy, a service mesh.
    Gateway,
    /// In the application, above redial.
    Application,
}

impl Place {
    /// The name in texts and contracts, such as `gateway`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Place::Sdk => "sdk",
            Place::Client => "client",
            Place::Gateway => "gateway",
            Place::Application => "application",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A retry on the path that is not redial's, as
/// [`StandardPolicyBuilder::elsewhere`](super::StandardPolicyBuilder::elsewhere) was told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Elsewhere {
    /// Where it is.
    pub place: Place,
    /// What does it, such as `envoy`.
    pub by: Box<str>,
    /// How many requests it makes of one, the first included. 1: it was switched off.
    pub attempts: u32,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by the {} `{}`", self.attempts, self.place, self.by)
    }
}

/// How many requests one call may come to, when everything on the path fails and retries as often as it may.
pub(super) fn worst_case(attempts: u32, elsewhere: &[Elsewhere]) -> u32 {
    elsewhere.iter().map(|other| other.attempts).fold(attempts, u32::saturating_mul)
}
