//! Numbers of rules.

use super::connection::Connection;
use super::scope::RuleFilter;
use super::{ChainRef, Rule};
use crate::netlink::Error;

impl Connection {
    /// How many rules a chain has. To ask chain by chain is cheap; a listing of all rules costs the kernel
    /// time that grows with the square of their number.
    ///
    /// # Errors
    /// Those of a listing; [`Error::Interrupted`] if a change ran across it.
    pub fn rule_count(&mut self, chain: &ChainRef<'_>) -> Result<usize, Error> {
        let filter = RuleFilter::chain(chain.family(), chain.table(), chain.name());
        let mut rules = self.list::<Rule<'_>>(filter)?;
        let mut count = 0;
        while rules.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}
