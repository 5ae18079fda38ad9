//! What measuring takes: rulesets of any size, floors, and alternating rounds.
//!
//! A time by itself says little: machines are shared, and the same work takes twice as long an hour
//! later. So everything is measured against a floor in the same run: the same request to the kernel
//! with the replies received and thrown away ([`floor`]), or the same bytes prepared beforehand.
//! Rounds of the two alternate ([`alternate`]), and what counts is the median of the rounds' ratios of
//! the thread's CPU time, which includes the kernel's work.
//!
//! The benches of the repository and `chainwright-bench` are built on this.

mod addresses;
mod cluster;
mod error;
pub mod events;
pub mod floor;
pub mod iptables;
mod memory;
pub mod mirror;
pub mod proxy;
mod rounds;
mod ruleset;
mod services;

pub use addresses::Addresses;
pub use cluster::{Cluster, There};
pub use error::{BoxError, Error};
pub use memory::resident;
pub use rounds::{Contender, Measured, alternate, alternate_prepared, once};
pub use ruleset::KubeProxy;
pub use services::Services;
