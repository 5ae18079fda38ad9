//! What services and a proxy take of memory.

use std::hint::black_box;

use crate::BoxError;
use crate::{Cluster, resident};
use chainwright_kube::service::{Layout, ServiceProxy, Services};
use chainwright_testing::Sandbox;

/// By how much the process grew.
#[derive(Debug)]
pub struct Memory {
    /// Bytes of [`Services`].
    pub services: usize,
    /// Bytes of all, the proxy and what the first sync left of its own included.
    pub all: usize,
    _kept: (Services, ServiceProxy),
}

/// Makes services and a proxy that has brought them to a new namespace, and keeps them: who measures several in one
/// process keeps all answers to the end, and measures nothing before, so that nothing that was freed is taken again.
///
/// # Errors
/// Those of syncing; [`Error`](crate::Error) if `/proc` does not say.
pub fn memory(cluster: Cluster, layout: Layout) -> Result<Memory, BoxError> {
    let before = resident()?;
    let mut services = cluster.services();
    let of_services = resident()?.saturating_sub(before);
    let namespace = Sandbox::new()?;
    let proxy = namespace.run(|| Cluster::load(&mut services, layout, true))??;
    let all = resident()?.saturating_sub(before);
    black_box((&services, &proxy));
    Ok(Memory {
        services: of_services,
        all,
        _kept: (services, proxy),
    })
}
