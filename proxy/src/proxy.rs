//! The interface between the agent and a proxy, which tests can implement.

use std::error::Error;

use chainwright_kube::service::{Config, ObjectName, Services};

/// Any error of a proxy.
pub(crate) type ProxyError = Box<dyn Error + Send + Sync>;

/// The result of a sync.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// Number of services that had changed.
    pub(crate) services: usize,
    /// Number of transactions.
    pub(crate) transactions: usize,
    /// Whether the kernel's tables were read completely.
    pub(crate) whole: bool,
    /// Services in this sync that the kernel refused, and why.
    pub(crate) skipped: Vec<(ObjectName, String)>,
    /// Number of refused services, including those of earlier syncs.
    pub(crate) refused: usize,
    /// Conflicts found by this sync: addresses and ports that services request and others have.
    pub(crate) conflicts: Vec<String>,
    /// Number of conflicts, including those found by earlier syncs.
    pub(crate) all_conflicts: usize,
}

/// Applies services where packets are handled.
pub(crate) trait Proxy: Send {
    /// Applies the changes.
    fn sync(&mut self, services: &mut Services) -> Result<Outcome, ProxyError>;

    /// Makes the next [`sync`](Self::sync) use this configuration. Returns whether that is possible; if not, the
    /// agent opens a new proxy.
    fn set_config(&mut self, _config: &Config) -> Result<bool, ProxyError> {
        Ok(false)
    }

    /// Makes the next [`sync`](Self::sync) compare everything.
    fn require_full_sync(&mut self);
}

/// Opens a proxy with this configuration.
pub(crate) type Open = Box<dyn FnMut(Config) -> Result<Box<dyn Proxy>, ProxyError> + Send>;
