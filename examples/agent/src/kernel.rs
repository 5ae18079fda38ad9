//! The kernel's tables as a [`Proxy`].

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;

use chainwright::kube::service::{Config, Layout, Progress, ServiceProxy, Services, StaleFlows};

use crate::agent::with_sources;
use crate::proxy::{Open, Outcome, Proxy, ProxyError};

/// Opens proxies for this network namespace. What they make wrong of the table of connections goes to `stale`.
pub(crate) fn open(layout: Layout, stale: Sender<StaleFlows>) -> Open {
    Box::new(move |config| {
        let mut proxy = ServiceProxy::open(layout, config)?;
        proxy.on_progress(|progress: Progress| {
            let Progress { family, done, all } = progress;
            tracing::debug!(%family, done, all, "ports of services brought");
        });
        Ok(Box::new(Kernel {
            proxy,
            others_are_gone: false,
            stale: stale.clone(),
        }))
    })
}

/// The library's proxy, which removes other layouts when its own serves.
struct Kernel {
    proxy: ServiceProxy,
    others_are_gone: bool,
    stale: Sender<StaleFlows>,
}

impl Proxy for Kernel {
    fn sync(&mut self, services: &mut Services) -> Result<Outcome, ProxyError> {
        let synced = self.proxy.sync(services)?;
        if !self.others_are_gone {
            let removed = self.proxy.remove_others()?;
            if removed > 0 {
                tracing::info!(removed, "layouts of before are removed");
            }
            self.others_are_gone = true;
        }
        for flows in self.proxy.take_stale() {
            // Nobody takes them if the agent stops.
            let _ = self.stale.send(flows);
        }
        let refused: BTreeSet<_> = self.proxy.set_aside().map(|aside| aside.service).collect();
        let set_aside = synced.set_aside.into_iter().map(|aside| {
            let why = format!("{}: {}", aside.family, with_sources(&*aside.error));
            (aside.service, why)
        });
        Ok(Outcome {
            services: synced.services,
            transactions: synced.transactions,
            whole: synced.whole,
            set_aside: set_aside.collect(),
            refused: refused.len(),
            conflicts: synced.conflicts.iter().map(ToString::to_string).collect(),
            all_conflicts: self.proxy.conflicts().count(),
        })
    }

    fn set_config(&mut self, config: &Config) -> Result<bool, ProxyError> {
        self.proxy.set_config(config.clone())?;
        Ok(true)
    }

    fn distrust(&mut self) {
        self.proxy.distrust();
    }

    fn remove(&mut self) -> Result<(), ProxyError> {
        Ok(self.proxy.remove()?)
    }
}
