//! How services stand in the kernel's tables.
//!
//! | layout | as | a change costs |
//! |---|---|---|
//! | [flat](Layout::Flat) | elements of maps of data, under rules that stay | as much as the change |
//! | [nftables](Layout::Nftables) | kube-proxy's: a chain a service, a verdict map | the kernel's look at all chains |
//! | [iptables](Layout::Iptables) | kube-proxy's: a chain a service, a chain an endpoint | a reading of the table |

pub(super) mod claims;
pub(super) mod flat;
pub(super) mod iptables;
pub(super) mod nftables;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::names::PortName;
use super::resolve::ServicePort;
use crate::error::Error;
use crate::iptables::Backend;

/// How services stand in the kernel's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// All that grows with services is an element of a map or set of data.
    Flat,
    /// That of kube-proxy's nftables mode.
    Nftables,
    /// That of kube-proxy's iptables mode, in one of the backends.
    Iptables(Backend),
}

impl Layout {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Flat,
        Self::Nftables,
        Self::Iptables(Backend::Nft),
        Self::Iptables(Backend::Legacy),
    ];
}

/// What is desired of one family, whole: every port of every service.
pub(super) type Ports = HashMap<PortName, Arc<ServicePort>>;

/// A port that changed.
#[derive(Debug, Clone)]
pub(super) struct PortChange {
    pub(super) name: PortName,
    /// What it was when the kernel was last brought up to date; `None` if it was not there.
    pub(super) before: Option<Arc<ServicePort>>,
    /// What it is to be; `None` if it is to be no more.
    pub(super) after: Option<Arc<ServicePort>>,
}

/// One family of one layout in one network namespace.
pub(super) trait FamilyLayout: fmt::Debug + Send {
    /// Makes what is in the kernel what is desired, whatever is there: the smallest change, without disturbing what
    /// is right. Says how many transactions it took (0: all was there).
    fn adopt(&mut self, ports: &Ports) -> Result<usize, Error>;

    /// Brings changes to a kernel that is as the last [`adopt`](Self::adopt) or `change` left it; `ports` is what is
    /// desired, the changes included. If that turns out not to be so, it is to adopt.
    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error>;

    /// Removes all that the layout put into the kernel.
    fn remove(&mut self) -> Result<(), Error>;
}
