//! Tests the layout in kernels, on both backends.

use std::collections::HashMap;

use super::super::cleanup::TABLES;
use super::super::rules::{Chain, Rules, Shared};
use super::super::{Iptables, clean_up};
use super::*;
use crate::service::layout::{FamilyLayout, PortChange};
use chainwright::Retry;
use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{self, Backend, Rule, Target, tables_in_use};
use chainwright::legacy::LockPolicy;
use chainwright_testing::Sandbox;

const BACKENDS: [Backend; 2] = [Backend::Nft, Backend::Legacy];

/// Returns a configuration without nfacct objects, which do not exist here.
fn without_counters() -> Arc<Config> {
    let mut config = config();
    config.nfacct = false;
    Arc::new(config)
}

fn open(backend: Backend) -> iptables::Iptables {
    let ipt = iptables::Iptables::open(backend).unwrap();
    ipt.with_lock(LockPolicy::None, Retry::ONCE)
}

fn layout(backend: Backend, family: Family, config: &Arc<Config>) -> Iptables {
    Iptables::new(open(backend), family, Arc::clone(config))
}

/// Runs `work` in a new network namespace for each backend.
fn on_both(work: impl Fn(Backend) + Sync) {
    for backend in BACKENDS {
        let sandbox = Sandbox::new().unwrap();
        sandbox.run(|| work(backend)).unwrap();
    }
}

fn save(backend: Backend, family: Family) -> String {
    let mut text = Vec::new();
    let tables = open(backend).read(family, &TABLES).unwrap();
    let omissions = tables.save(SaveOptions::default(), &mut text).unwrap();
    assert!(omissions.is_none(), "{omissions:?}");
    String::from_utf8(text).unwrap()
}

/// Returns the rules of all chains of a table except the built-in ones and `KUBE-MARK-DROP`, which does not matter
/// here.
fn chains(backend: Backend, family: Family, table: &str) -> HashMap<String, Vec<Rule>> {
    let tables = open(backend).read(family, &TABLES).unwrap();
    let chains = tables
        .table(table)
        .into_iter()
        .flat_map(|table| table.chains());
    let rules = |chain: iptables::Chain<'_>| {
        let rules = chain.rules().map(|rule| rule.entry().unwrap().rule);
        (chain.name().to_string(), rules.collect())
    };
    let chains = chains.map(rules);
    chains
        .filter(|(name, _)| iptables::builtin(table, name).is_none() && name != "KUBE-MARK-DROP")
        .collect()
}

/// Returns the expected chains and rules.
fn wanted(
    family: Family,
    config: &Config,
    ports: &Ports,
    table: &str,
) -> HashMap<String, Vec<Rule>> {
    let rules = Rules {
        family,
        config,
        comments: true,
    };
    let named = |(chain, rules): (&str, Vec<Rule>)| (chain.to_owned(), rules);
    let mut chains: HashMap<_, _> = rules.fixed(table).into_iter().map(named).collect();
    let shared = Shared::ALL.into_iter().filter(|of| of.table() == table);
    chains.extend(shared.map(|of| named((of.chain(), rules.whole(of, ports)))));
    chains.extend(
        rules
            .rules_in_shared_chains(table)
            .into_iter()
            .map(|(c, rule)| named((c, vec![rule]))),
    );
    if table == "nat" {
        chains.extend(
            ports
                .values()
                .flat_map(|port| -> Vec<Chain> { rules.own(port) }),
        );
    }
    chains
}

#[track_caller]
fn assert_holds(backend: Backend, family: Family, config: &Config, ports: &Ports) {
    for table in TABLES {
        let actual = chains(backend, family, table);
        let wanted = wanted(family, config, ports, table);
        let names = |chains: &HashMap<String, Vec<Rule>>| {
            let mut names: Vec<_> = chains.keys().cloned().collect();
            names.sort();
            names
        };
        assert_eq!(names(&actual), names(&wanted), "{backend} {table}");
        for (chain, rules) in wanted {
            let actual = &actual[&chain];
            assert_eq!(
                actual.len(),
                rules.len(),
                "{backend} {table} {chain}: {actual:?}"
            );
            for (actual, rule) in actual.iter().zip(&rules) {
                assert!(
                    actual.means_the_same(rule),
                    "{backend} {chain}: {actual} is not {rule}"
                );
            }
        }
    }
}

/// Applies changed services to a layout.
fn change(
    layout: &mut Iptables,
    family: Family,
    config: &Config,
    before: &mut Ports,
    services: &Services,
) -> usize {
    let after = ports(services, family, config);
    let mut changes = Vec::new();
    let mut names: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
    names.sort();
    names.dedup();
    for name in names {
        let (before, after) = (before.get(&name).cloned(), after.get(&name).cloned());
        if before != after {
            changes.push(PortChange {
                name,
                before,
                after,
            });
        }
    }
    *before = after;
    layout.change(before, &changes).unwrap()
}

#[test]
fn full_sync_then_change_then_remove() {
    let config = without_counters();
    on_both(|backend| {
        let family = Family::Ipv4;
        let mut services = services();
        let mut now = ports(&services, family, &config);
        let mut layout = layout(backend, family, &config);
        let (both, one) = match backend {
            Backend::Nft => (1, 1),
            Backend::Legacy => (2, 1),
        };
        assert!(layout.full_sync(&now).unwrap() > 0);
        assert_holds(backend, family, &config, &now);
        assert_eq!(layout.full_sync(&now).unwrap(), 0);
        assert_eq!(layout.change(&now, &[]).unwrap(), 0);
        // Another layout without any state finds nothing to do either.
        assert_eq!(
            super::kernel::layout(backend, family, &config)
                .full_sync(&now)
                .unwrap(),
            0
        );

        // One more endpoint; the first endpoint, so that nothing is refused; no endpoints again; one service less.
        let name = |name| ObjectName::new("default", name);
        let dns = ObjectName::new("kube-system", "kube-dns");
        let mut step = |services: &Services, transactions: usize| {
            let made = change(&mut layout, family, &config, &mut now, services);
            assert_eq!(made, transactions, "{backend}");
            assert_holds(backend, family, &config, &now);
        };
        let mut slice = services.slices(&dns).next().unwrap().clone();
        slice.endpoints.push(Endpoint::new(address("10.244.0.5")));
        services.set_slice(slice.clone());
        step(&services, one);
        let empty = service(
            "default",
            "empty",
            "10.96.7.7",
            &[Port::new("http", Protocol::Tcp, 8080)],
        );
        add(&mut services, empty, &[("10.244.7.7", "node1")], &[8080]);
        step(&services, both);
        services.remove_slice(&slice.name);
        step(&services, both);
        services.remove_service(&name("lb-local"));
        step(&services, both);
        services.remove_service(&name("azure-vote-front"));
        step(&services, one);
        step(&services, 0);

        layout.remove().unwrap();
        let left = save(backend, family);
        let left: Vec<_> = left.lines().filter(|line| line.contains("KUBE-")).collect();
        assert!(
            left.iter().all(|line| line.contains("KUBE-FIREWALL")),
            "{left:?}"
        );
        assert_eq!(left.len(), 4, "{left:?}");
    });
}

#[test]
fn both_families_coexist() {
    let config = without_counters();
    on_both(|backend| {
        let mut services = services();
        let ports_of = [Port {
            node_port: Some(30001),
            ..Port::new("p80", Protocol::Tcp, 80)
        }];
        let six = service("ns1", "six", "fd00:96::41", &ports_of);
        let endpoints = [("fd00:244::1", "node1"), ("fd00:244::2", "node2")];
        add(&mut services, six, &endpoints, &[8080]);
        services.set_service(service("ns1", "none", "fd00:96::42", &ports_of));
        let of = Family::ALL.map(|family| (family, ports(&services, family, &config)));
        for (family, ports) in &of {
            assert!(layout(backend, *family, &config).full_sync(ports).unwrap() > 0);
        }
        for (family, ports) in &of {
            assert_holds(backend, *family, &config, ports);
        }
        assert_eq!(
            clean_up(&mut open(backend), Family::Ipv6).unwrap().min(1),
            1
        );
        assert!(!save(backend, Family::Ipv6).contains("KUBE-"));
        let (family, ports) = &of[0];
        assert_holds(backend, *family, &config, ports);
    });
}

#[test]
fn flushed_rules_are_restored() {
    let config = without_counters();
    on_both(|backend| {
        let family = Family::Ipv4;
        let mut services = services();
        let mut now = ports(&services, family, &config);
        let mut layout = layout(backend, family, &config);
        layout.full_sync(&now).unwrap();
        let slice = services
            .slices(&ObjectName::new("ns3", "svc-3"))
            .next()
            .unwrap()
            .clone();
        type Damage = fn(&mut iptables::TableEdit<'_>) -> Result<(), iptables::Error>;
        let damages: [(&str, Damage); 3] = [
            ("iptables -F", |table| table.flush_all()),
            ("iptables -F; iptables -X", |table| {
                table.flush_all()?;
                table.remove_all_chains()
            }),
            ("iptables -F KUBE-MARK-MASQ; iptables -X", |table| {
                // Only chains that a change does not read are gone.
                table.flush_all()?;
                for chain in table.chains()? {
                    if chain.starts_with(b"KUBE-MARK-MASQ") {
                        table.remove_chain(chain)?;
                    }
                }
                Ok(())
            }),
        ];
        for (index, (what, damage)) in damages.into_iter().enumerate() {
            open(backend).update(family, "nat", damage).unwrap();
            let mut slice = slice.clone();
            slice.endpoints.truncate(index + 1);
            services.set_slice(slice);
            let made = change(&mut layout, family, &config, &mut now, &services);
            assert_eq!(made, 1, "{backend}: {what}");
            assert_holds(backend, family, &config, &now);
        }
    });
}

/// Returns a kube-proxy's ruleset without the rules that need nfacct objects.
fn left_by(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("nfacct"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn kube_proxy_leftovers_are_reused_or_removed() {
    let config = without_counters();
    for left in [KUBE_PROXY_1_36, KUBE_PROXY_1_20].map(left_by) {
        on_both(|backend| {
            let family = Family::Ipv4;
            let now = ports(&services(), family, &config);
            let restore = || {
                let restored = open(backend).restore(family, &left, &RestoreOptions::default());
                restored.unwrap();
            };
            restore();
            let mut layout = layout(backend, family, &config);
            assert!(layout.full_sync(&now).unwrap() > 0);
            // Nothing is left of the 300 services that were removed.
            assert_holds(backend, family, &config, &now);
            assert_eq!(layout.full_sync(&now).unwrap(), 0);

            restore();
            assert!(clean_up(&mut open(backend), family).unwrap() > 0);
            let left = save(backend, family);
            let mut left = left.lines().filter(|line| line.contains("KUBE-"));
            let kubelets = ["KUBE-FIREWALL", "KUBE-MARK-DROP"];
            assert!(left.all(|line| kubelets.iter().any(|chain| line.contains(chain))));
            assert_eq!(clean_up(&mut open(backend), family).unwrap(), 0);
        });
    }
}

#[test]
fn correct_rules_keep_their_counters() {
    let config = without_counters();
    on_both(|backend| {
        let family = Family::Ipv4;
        // Packet counters in each rule.
        let counted: String = left_by(KUBE_PROXY_1_36)
            .lines()
            .flat_map(|line| match line.starts_with("-A") {
                true => ["[7:700] ", line, "\n"],
                false => ["", line, "\n"],
            })
            .collect();
        let options = RestoreOptions {
            counters: true,
            ..RestoreOptions::default()
        };
        open(backend).restore(family, &counted, &options).unwrap();
        let now = ports(&services(), family, &config);
        layout(backend, family, &config).full_sync(&now).unwrap();
        let tables = open(backend).read(family, &["nat"]).unwrap();
        let nat = tables.table("nat").unwrap();
        for chain in nat.chains() {
            let of_port = ["KUBE-SVC-", "KUBE-SEP-", "KUBE-EXT-"].map(str::as_bytes);
            if of_port
                .iter()
                .any(|prefix| chain.name().starts_with(prefix))
            {
                let counters = chain
                    .rules()
                    .map(|rule| rule.entry().unwrap().counters.packets);
                assert!(
                    counters.eq(std::iter::repeat_n(7, chain.rule_count())),
                    "{}",
                    chain.name()
                );
            }
        }
    });
}

#[test]
fn chains_referenced_by_others_are_kept() {
    let config = without_counters();
    on_both(|backend| {
        let family = Family::Ipv4;
        let mut all = services();
        let now = ports(&all, family, &config);
        let mut layout = layout(backend, family, &config);
        layout.full_sync(&now).unwrap();
        let frontend = now
            .keys()
            .find(|name| &*name.service.name == "azure-vote-front")
            .unwrap();
        let chain = frontend.iptables_chain(crate::service::ChainKind::Service);
        let mut ipt = open(backend);
        let jumps = [Rule::jump("KUBE-MARK-MASQ"), Rule::jump(chain.as_str())];
        let updated = ipt.update(family, "nat", |table| {
            table.new_chain("CNI-DN-1")?;
            jumps
                .iter()
                .try_for_each(|rule| table.append("CNI-DN-1", rule))
        });
        updated.unwrap();

        // The chain of a removed service stays without rules, however often its removal is requested.
        all.remove_service(&ObjectName::new("default", "azure-vote-front"));
        let mut before = now;
        change(&mut layout, family, &config, &mut before, &all);
        assert!(
            chains(backend, family, "nat")[&chain].is_empty(),
            "{backend}"
        );
        assert_eq!(layout.full_sync(&before).unwrap(), 0);

        layout.remove().unwrap();
        let left = chains(backend, family, "nat");
        let mut names: Vec<_> = left.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut wanted = vec!["CNI-DN-1", "KUBE-MARK-MASQ", "KUBE-POSTROUTING", &chain];
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{backend}");
        assert_eq!(left["CNI-DN-1"], jumps);
        assert_eq!(left["KUBE-MARK-MASQ"].len(), 1);
        assert_eq!(left["KUBE-POSTROUTING"].len(), 3);
        let text = save(backend, family);
        assert!(
            text.contains("-A POSTROUTING -m comment --comment \"kubernetes postrouting rules\"")
        );
        assert!(!text.contains("kubernetes service portals"));
        assert_eq!(clean_up(&mut open(backend), family).unwrap(), 0);
    });
}

#[test]
fn cleanup_keeps_kubelet_rules_and_creates_no_table() {
    let mut config = Config::clone(&without_counters());
    on_both(|backend| {
        for family in Family::ALL {
            assert_eq!(clean_up(&mut open(backend), family).unwrap(), 0);
            assert_eq!(tables_in_use(backend, family).unwrap(), [""; 0]);
        }
    });
    config.localhost_node_ports = true;
    let config = Arc::new(config);
    on_both(|backend| {
        let family = Family::Ipv4;
        let drop_marked = "-m comment --comment \"kubernetes firewall for dropping marked packets\" -m mark --mark \
                           0x8000/0x8000 -j DROP";
        let drop_marked = Rule::parse(family, drop_marked).unwrap();
        let kubelet = open(backend).update(family, "filter", |table| {
            table.new_chain("KUBE-FIREWALL")?;
            table.append("KUBE-FIREWALL", &drop_marked)
        });
        kubelet.unwrap();
        let now = ports(&services(), family, &config);
        let mut layout = layout(backend, family, &config);
        layout.full_sync(&now).unwrap();
        assert_eq!(layout.full_sync(&now).unwrap(), 0);
        layout.remove().unwrap();
        let left = chains(backend, family, "filter");
        assert_eq!(left.len(), 1, "{left:?}");
        let firewall = &left["KUBE-FIREWALL"];
        assert_eq!(firewall[0], drop_marked);
        assert_eq!((firewall.len(), &firewall[1].target), (2, &Target::Drop));
    });
}
