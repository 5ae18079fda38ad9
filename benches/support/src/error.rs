//! Errors of a measurement itself.

use chainwright::nft::Plan;
use chainwright::nft::live::Lost;

/// Any error of a measurement.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A measurement did not measure what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Expected events were lost.
    #[error(transparent)]
    EventsLost(#[from] Lost),
    /// A chain of the ruleset is missing.
    #[error("the chain {0} was not found")]
    NoChain(String),
    /// A chain whose rule is to be changed has none.
    #[error("the chain {0} has no rule")]
    NoRule(String),
    /// A plan does not have the expected number of operations.
    #[error("expected a plan of {expected} operations, found\n{plan}")]
    Planned {
        /// The expected number of operations.
        expected: usize,
        /// The plan, in words.
        plan: String,
    },
    /// The change of a service was not written to the kernel alone.
    #[error("the change of one service was {0}")]
    Synced(String),
    /// The first packet of a connection did not arrive.
    #[error("a packet did not pass through the node: {0}")]
    Packet(std::io::Error),
    /// The kernel does not report the process's memory.
    #[error("cannot read the memory usage of the process: {0}")]
    Memory(#[from] std::io::Error),
    /// A table was not printed completely.
    #[error("a table of {rules} rules was printed without all of them, in {bytes} bytes")]
    Printed {
        /// Number of rules in the table.
        rules: usize,
        /// Length of the text in bytes.
        bytes: usize,
    },
}

/// Checks the number of a plan's operations.
pub(super) fn expect_operations(expected: usize, plan: &Plan) -> Result<(), Error> {
    match plan.transaction().len() == expected {
        true => Ok(()),
        false => Err(Error::Planned {
            expected,
            plan: plan.to_string(),
        }),
    }
}
