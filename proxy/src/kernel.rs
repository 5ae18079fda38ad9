//! Implements [`Proxy`] with the kernel's tables.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;

use chainwright::iptables::{Backend, Family};
use chainwright::netlink;
use chainwright::nft::{self, Connection, Table, Transaction};
use chainwright_kube::detect::{
    DetectedBackend, Detection, Detector, ProbeResult, ServiceTableKind,
};
use chainwright_kube::service::{Config, Layout, Progress, ServiceProxy, Services, StaleFlows};
use tracing::{debug, info, warn};

use crate::agent::with_sources;
use crate::options::Mode;
use crate::proxy::{Open, Outcome, Proxy, ProxyError};

/// Opens proxies for this network namespace. Sends stale conntrack entries to `stale`.
pub(crate) fn open(mode: Mode, stale: Sender<StaleFlows>) -> Open {
    Box::new(move |config| {
        let layout = match mode {
            Mode::Flat => Layout::Flat,
            Mode::Nftables => Layout::Nftables,
            Mode::Iptables => {
                let detection = Detector::open().probe();
                let (verdict, backend) = (detection.detected_backend(), backend(&detection));
                info!(%verdict, %backend, "iptables backend detected");
                Layout::Iptables(backend)
            }
        };
        let mut proxy = ServiceProxy::open(layout, config)?;
        proxy.set_progress_callback(|progress: Progress| {
            let Progress {
                family,
                completed: done,
                total: all,
            } = progress;
            debug!(%family, done, all, "service ports written");
        });
        Ok(Box::new(Kernel {
            proxy,
            cleaned_families: Vec::new(),
            stale: stale.clone(),
        }))
    })
}

/// Returns the backend that the node's components use, chosen as in iptables-wrappers: nf_tables if both have a
/// kubelet's chains, or neither has.
pub(crate) fn backend(detection: &Detection) -> Backend {
    let is_absent = |backend| {
        detection
            .of(backend)
            .iter()
            .all(|probe| *probe == ProbeResult::Absent)
    };
    match detection.detected_backend() {
        DetectedBackend::Legacy => Backend::Legacy,
        DetectedBackend::Nft | DetectedBackend::Mixed => Backend::Nft,
        // A backend that could only partly be read is better than none.
        _ if is_absent(Backend::Nft) && !is_absent(Backend::Legacy) => Backend::Legacy,
        _ => Backend::Nft,
    }
}

/// The library's proxy, which removes other layouts once its own works.
struct Kernel {
    proxy: ServiceProxy,
    /// Families in which other layouts were removed.
    cleaned_families: Vec<Family>,
    stale: Sender<StaleFlows>,
}

impl Kernel {
    /// Removes other layouts in the families that are served.
    fn remove_other_layouts(&mut self) -> Result<(), chainwright_kube::Error> {
        let mut done = Ok(());
        for family in self.proxy.config().families.clone() {
            if self.cleaned_families.contains(&family) || !self.proxy.is_synced(family) {
                continue;
            }
            match self.proxy.remove_other_layouts_in(&[family]) {
                Ok(removed) => {
                    if removed > 0 {
                        info!(%family, removed, "old layouts removed");
                    }
                    self.cleaned_families.push(family);
                }
                Err(error) => done = Err(error),
            }
        }
        done
    }

    /// Creates the marks if they are missing: a flush removes them together with everything else that a complete sync
    /// restores.
    fn mark(&self) {
        for &family in &self.proxy.config().families {
            if self.proxy.is_synced(family) {
                mark(self.proxy.layout(), family);
            }
        }
    }
}

impl Proxy for Kernel {
    fn sync(&mut self, services: &mut Services) -> Result<Outcome, ProxyError> {
        let synced = self.proxy.sync(services);
        // One family may have failed, and the other succeeded.
        let others = self.remove_other_layouts();
        if synced.as_ref().map_or(true, |synced| synced.is_full) {
            self.mark();
        }
        for flows in self.proxy.take_stale() {
            // Fails only when the agent stops.
            let _ = self.stale.send(flows);
        }
        let synced = synced?;
        others?;
        let refused: BTreeSet<_> = self
            .proxy
            .skipped()
            .map(|skipped| skipped.service)
            .collect();
        let skipped = synced.skipped.into_iter().map(|skipped| {
            let reason = format!("{}: {}", skipped.family, with_sources(&*skipped.error));
            (skipped.service, reason)
        });
        Ok(Outcome {
            services: synced.services,
            transactions: synced.transactions,
            whole: synced.is_full,
            skipped: skipped.collect(),
            refused: refused.len(),
            conflicts: synced.conflicts.iter().map(ToString::to_string).collect(),
            all_conflicts: self.proxy.conflicts().count(),
        })
    }

    fn set_config(&mut self, config: &Config) -> Result<bool, ProxyError> {
        self.proxy.set_config(config.clone())?;
        Ok(true)
    }

    fn require_full_sync(&mut self) {
        self.proxy.require_full_sync();
    }
}

/// Returns the name of the nf_tables table that marks this backend's chains as created by this program. The chains have
/// kube-proxy's names, and the iptables tables have no place for a note.
const fn mark_of(backend: Backend) -> &'static str {
    match backend {
        Backend::Nft => "chainwright-proxy-iptables-nft",
        Backend::Legacy => "chainwright-proxy-iptables-legacy",
    }
}

/// Updates the marks of both backends for this layout. Chains without a mark are kept by `--cleanup`.
fn mark(layout: Layout, family: Family) {
    for backend in [Backend::Nft, Backend::Legacy] {
        let marked = match layout == Layout::Iptables(backend) {
            // Do not load nf_tables only to mark the legacy tables.
            true if backend == Backend::Legacy && !nft::is_loaded() => continue,
            true => put_mark(backend, family),
            false => remove_mark(backend, family),
        };
        if let Err(error) = marked {
            warn!(%family, %backend, error = %with_sources(&error), "cannot mark the chains as created by this program");
        }
    }
}

fn put_mark(backend: Backend, family: Family) -> Result<(), chainwright::Error> {
    let comment = "chainwright-proxy created the KUBE chains in iptables' tables";
    let mut tx = Transaction::new();
    tx.add(&Table::new(family.into(), mark_of(backend)).with_comment(comment)?)?;
    Ok(Connection::open()?.commit(&tx)?)
}

fn remove_mark(backend: Backend, family: Family) -> Result<(), chainwright::Error> {
    if !is_marked(backend, family)? {
        return Ok(());
    }
    let mut tx = Transaction::new();
    tx.delete(&Table::new(family.into(), mark_of(backend)))?;
    Ok(Connection::open()?.commit(&tx)?)
}

fn is_marked(backend: Backend, family: Family) -> Result<bool, chainwright::Error> {
    match Connection::open_if_loaded() {
        Ok(mut nft) => Ok(nft.table(family.into(), mark_of(backend))?.is_some()),
        Err(netlink::Error::NotLoaded) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The result of a clean-up.
#[derive(Debug, Default)]
pub(crate) struct CleanUp {
    /// The removed layouts.
    pub(crate) removed: Vec<(Layout, Family)>,
    /// Layouts that were kept because they belong to a kube-proxy, or may, and why.
    pub(crate) left: Vec<(Layout, Family, String)>,
    /// Layouts that could not be read or removed.
    pub(crate) failed: Vec<String>,
}

/// Removes the layouts of all modes from this network namespace. Layouts that a kube-proxy created, or that one running
/// here may have taken over, stay unless `including_kube_proxy`. A failure for one layout does not stop the removal of the
/// others.
pub(crate) fn clean_up(including_kube_proxy: bool, runs: Option<u32>) -> CleanUp {
    let mut done = CleanUp::default();
    let mut installed_layouts = Vec::new();
    let tables = Detector::open().service_tables();
    for layout in Layout::ALL {
        for family in Family::ALL {
            let found = layout.is_installed(family).and_then(|is_installed| {
                let is_own = match layout {
                    Layout::Nftables => match &tables {
                        Ok(tables) => tables.iter().any(|table| {
                            (table.family, table.kind) == (family, ServiceTableKind::Nftables)
                        }),
                        Err(_) => false,
                    },
                    Layout::Iptables(backend) => is_marked(backend, family)?,
                    _ => true,
                };
                Ok(is_installed.then_some(is_own))
            });
            match found {
                Ok(Some(is_own)) => installed_layouts.push((layout, family, is_own)),
                Ok(None) => done.unmark(layout, family),
                Err(error) => done.fail(layout, family, &error),
            }
        }
    }
    // A running kube-proxy uses the tables that this program did not create. If there are no such tables, it has taken
    // over those that this program created.
    let took_over = runs.filter(|_| installed_layouts.iter().all(|(_, _, is_own)| *is_own));
    for (layout, family, is_own) in installed_layouts {
        let reason = match (is_own, runs, took_over) {
            (false, Some(process), _) => Some(format!(
                "kube-proxy is running on this node (process {process})"
            )),
            (false, None, _) => Some("it is not marked as created by this program".to_owned()),
            (true, _, Some(process)) if layout != Layout::Flat => Some(format!(
                "kube-proxy is running on this node (process {process}) and may have taken it over"
            )),
            _ => None,
        };
        if let Some(reason) = reason.filter(|_| !including_kube_proxy) {
            done.left.push((layout, family, reason));
            continue;
        }
        match layout.clean_up(family) {
            Ok(_) => {
                done.removed.push((layout, family));
                done.unmark(layout, family);
            }
            Err(error) => done.fail(layout, family, &error),
        }
    }
    done
}

impl CleanUp {
    /// Removes the mark of chains that are gone.
    fn unmark(&mut self, layout: Layout, family: Family) {
        if let Layout::Iptables(backend) = layout
            && let Err(error) = remove_mark(backend, family)
        {
            self.fail(layout, family, &error);
        }
    }

    fn fail(&mut self, layout: Layout, family: Family, error: &chainwright::Error) {
        let error = with_sources(error);
        self.failed
            .push(format!("{}: {error}", name(layout, family)));
    }
}

/// Describes a layout of a family.
pub(crate) fn name(layout: Layout, family: Family) -> String {
    match layout {
        Layout::Flat => format!("flat, {family}"),
        Layout::Nftables => format!("nftables (table kube-proxy), {family}"),
        Layout::Iptables(backend) => format!("iptables (chains KUBE-* in {backend}), {family}"),
        other => format!("{other:?}, {family}"),
    }
}

/// Returns the process ID of a kube-proxy that runs in this network namespace, if it can be seen.
pub(crate) fn running_kube_proxy() -> Option<u32> {
    let own = std::fs::read_link("/proc/thread-self/ns/net").ok();
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|entry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        if name.trim_end() != "kube-proxy" {
            return None;
        }
        let its = std::fs::read_link(entry.path().join("ns/net")).ok();
        // A process whose namespace cannot be read may be in this one.
        (its.is_none() || its == own).then_some(process)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use chainwright::iptables::Iptables;
    use chainwright::nft::Scope;
    use chainwright_kube::detect::Marks;
    use chainwright_kube::service::{ObjectName, Port, Protocol, Service};
    use chainwright_testing::Sandbox;

    use super::*;

    const MODES: [Mode; 3] = [Mode::Flat, Mode::Nftables, Mode::Iptables];

    fn services() -> Services {
        let mut services = Services::new();
        let ips = [[10, 96, 0, 1].into(), "fd00::1".parse().unwrap()];
        let service = Service::new(ObjectName::new("default", "web"), ips);
        services.set_service(service.with_port(Port::new("p", Protocol::Tcp, 80)));
        services
    }

    fn serve(mode: Mode) -> Box<dyn Proxy> {
        let (stale, _) = mpsc::channel();
        let mut proxy = open(mode, stale)(Config::new("node1")).unwrap();
        proxy.sync(&mut services()).unwrap();
        proxy
    }

    /// Returns the tables of nf_tables by family and name, and whether one has an owner.
    fn tables() -> (Vec<String>, bool) {
        let mut connection = Connection::open().unwrap();
        let (mut tables, mut is_owned) = (Vec::new(), false);
        let listed = connection.tables(Scope::all()).unwrap();
        listed
            .for_each(|table| {
                tables.push(format!("{} {}", table.family(), table.name()));
                is_owned |= table.owner().is_some();
            })
            .unwrap();
        tables.sort();
        (tables, is_owned)
    }

    /// Simulates a process that served in this mode and ended.
    fn served(mode: Mode) {
        drop(serve(mode));
        while tables().1 {
            std::thread::yield_now();
        }
    }

    /// Creates the names of a kube-proxy's tables and chains in this layout, without content.
    fn kube_proxys(layout: Layout) {
        match layout {
            Layout::Nftables => {
                let mut tx = Transaction::new();
                for family in Family::ALL {
                    let table = Table::new(family.into(), "kube-proxy");
                    tx.add(&table.with_comment("rules for kube-proxy").unwrap())
                        .unwrap();
                }
                Connection::open().unwrap().commit(&tx).unwrap();
            }
            Layout::Iptables(backend) => {
                let text = "*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n";
                for family in Family::ALL {
                    let mut iptables = Iptables::open(backend).unwrap();
                    iptables.restore(family, text, &Default::default()).unwrap();
                }
            }
            _ => unreachable!("kube-proxy has no flat layout"),
        }
    }

    fn installed_layouts() -> Vec<Layout> {
        let is_installed =
            |layout: &Layout| Family::ALL.map(|family| layout.is_installed(family).unwrap());
        let installed_layouts = Layout::ALL.into_iter();
        installed_layouts
            .filter(|layout| is_installed(layout) == [true, true])
            .collect()
    }

    #[track_caller]
    fn assert_done(done: &CleanUp, removed: &[Layout], left: &[Layout]) {
        let both = |layouts: &[Layout]| -> Vec<(Layout, Family)> {
            let both = |layout: &Layout| Family::ALL.map(|family| (*layout, family));
            layouts.iter().flat_map(both).collect()
        };
        assert_eq!(done.failed, [""; 0]);
        assert_eq!(done.removed, both(removed));
        let stays: Vec<_> = done
            .left
            .iter()
            .map(|(layout, family, _)| (*layout, *family))
            .collect();
        assert_eq!(stays, both(left));
    }

    const NFT: Layout = Layout::Iptables(Backend::Nft);
    const LEGACY: Layout = Layout::Iptables(Backend::Legacy);

    #[test]
    fn tables_of_the_agent_are_removed() {
        for (mode, layout) in MODES.into_iter().zip([Layout::Flat, Layout::Nftables, NFT]) {
            let node = Sandbox::new().unwrap();
            node.run(|| {
                served(mode);
                assert_eq!(installed_layouts(), [layout]);
                assert_done(&clean_up(false, None), &[layout], &[]);
                assert_eq!(installed_layouts(), []);
                let left = tables().0;
                assert!(
                    left.iter()
                        .all(|name| !name.contains("kube") && !name.contains("chainwright")),
                    "{left:?}"
                );
                assert_done(&clean_up(false, None), &[], &[]);
            })
            .unwrap();
        }
    }

    /// Covers kube-proxy's layouts together with one of the agent, and a running kube-proxy.
    #[test]
    fn kube_proxy_tables_stay_unless_requested() {
        for theirs in [Layout::Nftables, NFT, LEGACY] {
            for runs in [None, Some(1)] {
                let node = Sandbox::new().unwrap();
                node.run(|| {
                    kube_proxys(theirs);
                    assert_eq!(installed_layouts(), [theirs]);
                    assert_done(&clean_up(false, runs), &[], &[theirs]);
                    // Beside a layout of the agent, whose first sync would remove kube-proxy's.
                    for (mode, layout) in
                        MODES.into_iter().zip([Layout::Flat, Layout::Nftables, NFT])
                    {
                        if layout == theirs {
                            continue;
                        }
                        served(mode);
                        kube_proxys(theirs);
                        assert_done(&clean_up(false, runs), &[layout], &[theirs]);
                        assert_eq!(installed_layouts(), [theirs]);
                    }
                    assert_done(&clean_up(true, runs), &[theirs], &[]);
                    assert_eq!(installed_layouts(), []);
                })
                .unwrap();
            }
        }
    }

    /// The marks are created with the chains and removed with them.
    #[test]
    fn marks_follow_the_chains() {
        let node = Sandbox::new().unwrap();
        node.run(|| {
            let marks = || Family::ALL.map(|family| is_marked(Backend::Nft, family).unwrap());
            let mut proxy = serve(Mode::Iptables);
            assert_eq!(marks(), [true; 2]);
            for family in Family::ALL {
                remove_mark(Backend::Nft, family).unwrap();
            }
            proxy.sync(&mut services()).unwrap();
            assert_eq!(marks(), [false; 2]);
            proxy.require_full_sync();
            proxy.sync(&mut services()).unwrap();
            assert_eq!(marks(), [true; 2]);
            // Another program flushes only iptables' tables.
            for family in Family::ALL {
                NFT.clean_up(family).unwrap();
            }
            assert_done(&clean_up(false, None), &[], &[]);
            assert_eq!(marks(), [false; 2]);
            // The agent changes to another mode.
            served(Mode::Iptables);
            served(Mode::Flat);
            assert_eq!(
                (installed_layouts(), marks()),
                (vec![Layout::Flat], [false; 2])
            );
        })
        .unwrap();
    }

    /// It took over the agent's tables: nothing else of kube-proxy exists.
    #[test]
    fn running_kube_proxy_tables_stay() {
        for (mode, layout) in [(Mode::Nftables, Layout::Nftables), (Mode::Iptables, NFT)] {
            let node = Sandbox::new().unwrap();
            node.run(|| {
                served(mode);
                assert_done(&clean_up(false, Some(1)), &[], &[layout]);
                assert_eq!(installed_layouts(), [layout]);
                assert_done(&clean_up(false, None), &[layout], &[]);
            })
            .unwrap();
        }
        let node = Sandbox::new().unwrap();
        node.run(|| {
            served(Mode::Flat);
            assert_done(&clean_up(false, Some(1)), &[Layout::Flat], &[]);
        })
        .unwrap();
    }

    #[test]
    fn one_failure_does_not_stop_the_others() {
        let node = Sandbox::new().unwrap();
        node.run(|| {
            served(Mode::Iptables);
            // The first table that is tried has an owner.
            let mut owner = Connection::open().unwrap();
            let mut tx = Transaction::new();
            let mut table = Table::new(Family::Ipv4.into(), "kube-services");
            table.flags = Some(nft::TableFlags::OWNER);
            tx.add(&table).unwrap();
            owner.commit(&tx).unwrap();
            let done = clean_up(false, None);
            assert_eq!(done.removed, Family::ALL.map(|family| (NFT, family)));
            let [failed] = &done.failed[..] else {
                panic!("{:?}", done.failed)
            };
            assert!(
                failed.contains("flat, IPv4") && failed.contains("EPERM"),
                "{failed}"
            );
        })
        .unwrap();
    }

    #[test]
    fn iptables_mode_uses_the_backend_that_is_found() {
        let none = ProbeResult::Marks(Marks::default());
        let hint = ProbeResult::Marks(Marks {
            hint: true,
            canary: false,
        });
        let canary = ProbeResult::Marks(Marks {
            hint: false,
            canary: true,
        });
        let failed = || ProbeResult::Failed("denied".to_owned());
        for (nft, legacy, expected) in [
            (
                [none.clone(), none.clone()],
                [none.clone(), none.clone()],
                Backend::Nft,
            ),
            (
                [hint.clone(), none.clone()],
                [none.clone(), none.clone()],
                Backend::Nft,
            ),
            (
                [none.clone(), none.clone()],
                [none.clone(), hint.clone()],
                Backend::Legacy,
            ),
            (
                [none.clone(), none.clone()],
                [canary.clone(), canary],
                Backend::Legacy,
            ),
            (
                [none.clone(), none.clone()],
                [ProbeResult::Absent, ProbeResult::Absent],
                Backend::Nft,
            ),
            (
                [ProbeResult::Absent, ProbeResult::Absent],
                [none.clone(), none.clone()],
                Backend::Legacy,
            ),
            (
                [ProbeResult::Absent, ProbeResult::Absent],
                [failed(), failed()],
                Backend::Legacy,
            ),
            (
                [ProbeResult::Absent, ProbeResult::Absent],
                [ProbeResult::Absent, ProbeResult::Absent],
                Backend::Nft,
            ),
            (
                [hint.clone(), none.clone()],
                [hint.clone(), none.clone()],
                Backend::Nft,
            ),
            ([none.clone(), none.clone()], [failed(), none], Backend::Nft),
            ([failed(), failed()], [hint.clone(), hint], Backend::Nft),
        ] {
            let detection = Detection { nft, legacy };
            assert_eq!(backend(&detection), expected, "{detection:?}");
        }
        for (of, expected) in [(Backend::Nft, NFT), (Backend::Legacy, LEGACY)] {
            let node = Sandbox::new().unwrap();
            node.run(|| {
                let text = "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n";
                let mut iptables = Iptables::open(of).unwrap();
                iptables
                    .restore(Family::Ipv6, text, &Default::default())
                    .unwrap();
                served(Mode::Iptables);
                assert_eq!(installed_layouts(), [expected]);
                assert_done(&clean_up(false, None), &[expected], &[]);
                // The hint belongs to a kubelet.
                assert_eq!(backend(&Detector::open().probe()), of);
            })
            .unwrap();
        }
    }

    /// One family is served even if the other fails, including the removal of other layouts.
    #[test]
    fn a_family_that_fails_does_not_stop_the_other() {
        for (broken, serves) in [(Family::Ipv4, Family::Ipv6), (Family::Ipv6, Family::Ipv4)] {
            let node = Sandbox::new().unwrap();
            node.run(|| {
                kube_proxys(Layout::Nftables);
                let mut owner = Connection::open().unwrap();
                let mut tx = Transaction::new();
                let mut table = Table::new(broken.into(), "kube-services");
                table.flags = Some(nft::TableFlags::OWNER);
                tx.add(&table).unwrap();
                owner.commit(&tx).unwrap();
                let (stale, _) = mpsc::channel();
                let mut proxy = open(Mode::Flat, stale)(Config::new("node1")).unwrap();
                let mut services = services();
                for _ in 0..2 {
                    let error = proxy.sync(&mut services).unwrap_err();
                    let error = with_sources(&*error);
                    assert!(
                        error.starts_with(&format!("{broken}: "))
                            && !error.contains(&format!("{serves}: ")),
                        "{error}"
                    );
                    assert!(Layout::Flat.is_installed(serves).unwrap());
                    assert!(!Layout::Nftables.is_installed(serves).unwrap());
                    assert!(Layout::Nftables.is_installed(broken).unwrap());
                }
                drop(owner);
                while tables()
                    .0
                    .contains(&format!("{} kube-services", nft::Family::from(broken)))
                {
                    std::thread::yield_now();
                }
                proxy.sync(&mut services).unwrap();
                assert_eq!(installed_layouts(), [Layout::Flat]);
            })
            .unwrap();
        }
    }
}
