//! What the agent asks of a proxy, so that tests can put another one in its place.

use std::error::Error;

use chainwright_kube::service::{Config, ObjectName, Services};

/// Any error of a proxy.
pub(crate) type ProxyError = Box<dyn Error + Send + Sync>;

/// What a sync did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// How many services had changed.
    pub(crate) services: usize,
    /// How many transactions it took.
    pub(crate) transactions: usize,
    /// Whether all that is in the kernel was read.
    pub(crate) whole: bool,
    /// Services that this sync brought and the kernel refused, and why.
    pub(crate) set_aside: Vec<(ObjectName, String)>,
    /// How many are refused, also by syncs before.
    pub(crate) refused: usize,
    /// Addresses and ports that this sync found that services ask for and others have.
    pub(crate) conflicts: Vec<String>,
    /// How many there are, also found by syncs before.
    pub(crate) all_conflicts: usize,
}

/// Brings services to where packets are.
pub(crate) trait Proxy: Send {
    /// Brings what changed.
    fn sync(&mut self, services: &mut Services) -> Result<Outcome, ProxyError>;

    /// Has the next [`sync`](Self::sync) follow this configuration. Says whether it can: else another is opened.
    fn set_config(&mut self, _config: &Config) -> Result<bool, ProxyError> {
        Ok(false)
    }

    /// Has the next [`sync`](Self::sync) look at everything.
    fn distrust(&mut self);
}

/// Opens a proxy for a node that is known to be so.
pub(crate) type Open = Box<dyn FnMut(Config) -> Result<Box<dyn Proxy>, ProxyError> + Send>;
