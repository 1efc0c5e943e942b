//! A contract that is read again while the program runs.

use std::{convert::Infallible, sync::Arc, time::Duration};

use super::{Contract, ContractError};
use crate::observe;

/// Looking more often than this costs more than it brings.
const LEAST: Duration = Duration::from_millis(100);

impl Contract {
    /// Reads everything again that it was loaded from, and puts it in force for all clones at once. Calls that are
    /// under way end by the contract that they began with. Budgets of unchanged numbers and holds are kept: what was
    /// spent and what a provider asked for is not forgotten.
    ///
    /// # Errors
    ///
    /// [`ContractError`], where it does not load: then the one before stays in force.
    pub fn reload(&self) -> Result<(), ContractError> {
        let groups = self.loaded.load().groups.next();
        let loaded = self.origin.load_with(groups)?;
        self.loaded.store(Arc::new(loaded));
        Ok(())
    }

    /// Looks at its files `every` so often (100 ms at least) and puts what has changed in force. Never ends, and spawns
    /// nothing: it watches as long as it is polled, so give it to a task of your own, or to `select!`.
    ///
    /// A change counts when two looks in a row find the same, so that a file that is only half written is not taken for
    /// a whole one. A file that is cut where a table ends is a whole one to any reader: whoever writes it writes another
    /// and renames it over this one, as Kubernetes does with its maps. What does not load leaves the contract before it in force, and is one ERROR, until it changes again.
    /// The files are read on the thread that polls: they are few and small.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), redial::contract::ContractError> {
    /// use redial::{RetryLayer, contract::Contract};
    /// use std::time::Duration;
    ///
    /// let contract = Contract::load(["contracts"])?;
    /// tokio::spawn(contract.clone().watch(Duration::from_secs(5)));
    /// let layer = RetryLayer::new(contract);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn watch(self, every: Duration) -> Infallible {
        let mut in_force = self.loaded.load().sources.fingerprint();
        let mut last = in_force;
        loop {
            tokio::time::sleep(every.max(LEAST)).await;
            let found = self.origin.fingerprint();
            if found == last && found != in_force {
                match self.reload() {
                    Ok(()) => observe::contract_reloaded(&self),
                    Err(error) => observe::contract_refused(&error),
                }
                in_force = found;
            }
            last = found;
        }
    }
}
