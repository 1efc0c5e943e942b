//! Contracts of well-known providers, which ship with the crate.

use super::Contract;

/// Their names, and the files of `contracts/` in the repository. The example of a service that calls two providers has a
/// folder of its own: one of them is there already.
const PRESETS: [(&str, &str); 9] = [
    ("anthropic", include_str!("../../contracts/anthropic.toml")),
    ("azure-blob", include_str!("../../contracts/azure-blob.toml")),
    ("gcs", include_str!("../../contracts/gcs.toml")),
    ("github", include_str!("../../contracts/github.toml")),
    ("openai", include_str!("../../contracts/openai.toml")),
    ("s3", include_str!("../../contracts/s3.toml")),
    ("slack", include_str!("../../contracts/slack.toml")),
    ("stripe", include_str!("../../contracts/stripe.toml")),
    ("til-service", include_str!("../../contracts/example/til-service.toml")),
];

impl Contract {
    /// The contract of a well-known provider, as it was when somebody last read the provider's pages: each file names them,
    /// the day, and what it leaves out because it is not certain. One of [`presets`](Self::presets).
    ///
    /// ```
    /// use redial::{RetryLayer, contract::Contract};
    ///
    /// let layer = RetryLayer::new(Contract::preset("github").ok_or("no such preset")?);
    /// # Ok::<(), &str>(())
    /// ```
    ///
    /// It is a beginning: timeouts, attempts and fallbacks are yours to say. Copy [`preset_text`](Self::preset_text) into a
    /// file of your own, or load both, with an `[env.NAME]` of yours that says it:
    ///
    /// ```
    /// use redial::contract::Contract;
    ///
    /// let github = Contract::preset_text("github").ok_or("no such preset")?;
    /// let own = "format = 1\n[env.prod.provider.github]\nattempts = 2\nfallback = \"the nightly job\"";
    /// let contract = Contract::builder().text("github", github).text("own.toml", own).env("prod").load()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn preset(name: &str) -> Option<Self> {
        let text = Self::preset_text(name)?;
        Self::parse(format!("preset {name}"), text).ok()
    }

    /// The text of a preset's file.
    pub fn preset_text(name: &str) -> Option<&'static str> {
        PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
    }

    /// The names of the presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }
}
