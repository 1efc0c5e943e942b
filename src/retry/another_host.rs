//! Where an answer came from, for a client that follows redirects by itself and says so.

use http::Extensions;

/// In the extensions of an answer that another host gave than the one that was asked.
#[derive(Clone, Copy)]
struct OfAnotherHost;

#[cfg(feature = "reqwest")]
pub(crate) fn of_another_host(extensions: &mut Extensions) {
    extensions.insert(OfAnotherHost);
}

pub(super) fn is_of_another_host(extensions: &Extensions) -> bool {
    extensions.get::<OfAnotherHost>().is_some()
}
