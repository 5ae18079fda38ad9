//! Counting rules.

use super::connection::Connection;
use super::scope::RuleFilter;
use super::{ChainRef, Rule};
use crate::netlink::Error;

impl Connection {
    /// Counts the rules of a chain. Counting chain by chain is cheap; a listing of all rules takes the
    /// kernel time quadratic in their number.
    ///
    /// # Errors
    /// The errors of a listing; [`Error::Interrupted`] if the ruleset changed during it.
    pub fn rule_count(&mut self, chain: &ChainRef<'_>) -> Result<usize, Error> {
        let filter = RuleFilter::chain(chain.family(), chain.table(), chain.name());
        let mut rules = self.list::<Rule<'_>>(filter)?;
        let mut count = 0;
        while rules.try_next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}
