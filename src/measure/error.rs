//! What can go wrong with a measurement itself.

use crate::nft::Plan;
use crate::nft::live::Lost;

/// Something else was measured than what was to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Events were lost: what was to be told of was not.
    #[error(transparent)]
    EventsLost(#[from] Lost),
    /// A chain is not where the ruleset has one.
    #[error("the chain {0} was not found")]
    NoChain(String),
    /// A chain that is to have a rule, which is to become another one, has none.
    #[error("the chain {0} has no rule")]
    NoRule(String),
    /// A plan is not of as many operations as were to be done.
    #[error("there were {expected} operations to be done, and what was planned is\n{plan}")]
    Planned {
        /// How many operations there were to be.
        expected: usize,
        /// The plan, in words.
        plan: String,
    },
    /// A table was not printed as a whole.
    #[error("a table of {rules} rules was printed without all of them, in {bytes} bytes")]
    Printed {
        /// How many rules the table has.
        rules: usize,
        /// Length of the text in bytes.
        bytes: usize,
    },
}

/// Checks that a plan is of so many operations.
pub(super) fn expect_operations(expected: usize, plan: &Plan) -> Result<(), Error> {
    match plan.transaction().len() == expected {
        true => Ok(()),
        false => Err(Error::Planned {
            expected,
            plan: plan.to_string(),
        }),
    }
}
