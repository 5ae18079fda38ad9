//! Memory that services and a proxy take.

use std::hint::black_box;

use crate::BoxError;
use crate::{Cluster, resident};
use chainwright_kube::service::{Layout, ServiceProxy, Services};
use chainwright_testing::Sandbox;

/// Growth of the process.
#[derive(Debug)]
pub struct Memory {
    /// Bytes of [`Services`].
    pub services: usize,
    /// Bytes in total, including the proxy and what the first sync left allocated.
    pub all: usize,
    _kept: (Services, ServiceProxy),
}

/// Creates services, and a proxy that writes them to a new namespace, and keeps both. A caller that measures several
/// in one process must keep all results to the end, and measure nothing before, so that no freed memory is reused.
///
/// # Errors
/// Those of syncing; [`Error`](crate::Error) if `/proc` does not report the memory.
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
