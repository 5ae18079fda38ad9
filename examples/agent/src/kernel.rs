//! The kernel's tables as a [`Proxy`].

use chainwright::kube::service::{Layout, ServiceProxy, Services};

use crate::proxy::{Open, Outcome, Proxy, ProxyError};

/// Opens proxies for this network namespace.
pub(crate) fn open(layout: Layout) -> Open {
    Box::new(move |config| {
        let proxy = ServiceProxy::open(layout, config)?;
        Ok(Box::new(Kernel {
            proxy,
            others_are_gone: false,
        }))
    })
}

/// The library's proxy, which removes other layouts when its own serves.
struct Kernel {
    proxy: ServiceProxy,
    others_are_gone: bool,
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
        Ok(Outcome {
            services: synced.services,
            transactions: synced.transactions,
            whole: synced.whole,
            set_aside: Vec::new(),
        })
    }

    fn distrust(&mut self) {
        self.proxy.distrust();
    }

    fn remove(&mut self) -> Result<(), ProxyError> {
        Ok(self.proxy.remove()?)
    }
}
