//! Tools for measurements: rulesets of any size, baselines, and alternating rounds.
//!
//! A time alone means little: machines are shared, and the same work may take twice as long an hour
//! later. So everything is compared with a baseline in the same run: the same request to the kernel with
//! the replies received and discarded ([`baseline`]), or the same bytes prepared beforehand. Rounds of
//! the two alternate ([`alternate`]). The result is the median of the rounds' ratios of the thread's
//! CPU time, which includes the kernel's work.
//!
//! The repository's benches and `chainwright-bench` use it.

mod addresses;
pub mod baseline;
mod cluster;
mod error;
pub mod events;
pub mod iptables;
mod memory;
pub mod mirror;
pub mod proxy;
mod rounds;
mod ruleset;
mod services;

pub use addresses::Addresses;
pub use cluster::{ChangeBytes, Cluster};
pub use error::{BoxError, Error};
pub use memory::resident;
pub use rounds::{Contender, Measured, alternate, alternate_prepared, once};
pub use ruleset::KubeProxy;
pub use services::Services;
