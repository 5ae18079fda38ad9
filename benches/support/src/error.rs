//! What can go wrong with a measurement itself.

use chainwright::nft::Plan;
use chainwright::nft::live::Lost;

/// Any error of a measurement.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

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
    /// The change of a service was not brought to the kernel by itself.
    #[error("the change of one service was {0}")]
    Synced(String),
    /// The first packet of a connection did not arrive.
    #[error("a packet did not come through the node: {0}")]
    Packet(std::io::Error),
    /// The kernel does not say how much memory the process has.
    #[error("cannot read how much memory the process has: {0}")]
    Memory(#[from] std::io::Error),
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
