//! Fifteen tasks as runnable examples.
//!
//! Each runs in a private network namespace, which the first example shows and the others hide.
//! `cargo test --doc --all-features guide` runs them, as root or as an ordinary user.
//!
//! 1. [A test in a sandbox](#a-test-in-a-sandbox)
//! 2. [Chains and rules in one transaction](#chains-and-rules-in-one-transaction)
//! 3. [A map with several fields and verdicts](#a-map-with-several-fields-and-verdicts)
//! 4. [A service with several endpoints](#a-service-with-several-endpoints)
//! 5. [A table with an owner](#a-table-with-an-owner)
//! 6. [A set that rules fill](#a-set-that-rules-fill)
//! 7. [Compare and restore snapshots](#compare-and-restore-snapshots)
//! 8. [Rules in iptables' language](#rules-in-iptables-language)
//! 9. [A kubelet's chains](#a-kubelets-chains)
//! 10. [A script in nft's language](#a-script-in-nfts-language)
//! 11. [A desired state](#a-desired-state)
//! 12. [A desired state in an async program](#a-desired-state-in-an-async-program)
//! 13. [Who reaches whom, without a kernel](#who-reaches-whom-without-a-kernel)
//! 14. [Tracked connections](#tracked-connections)
//! 15. [Errors](#errors)
//!
//! # A test in a sandbox
//!
//! `chainwright_testing::Sandbox` gives each test its own namespace, without root. The crate `chainwright-testing`
//! belongs in `[dev-dependencies]`. After a test harness has started threads, an ordinary user's process cannot become
//! root in a user namespace any more. `chainwright_testing::sandbox_tests!`, once in the test file, does that before
//! `main`. `examples/firewall_test.rs` sends real packets.
//!
//! ```
//! use chainwright_testing::Sandbox;
//! use chainwright::nft::{Connection, Scope};
//!
//! chainwright_testing::sandbox_tests!();
//!
//! // #[test]
//! fn a_sandbox_is_empty() -> Result<(), Box<dyn std::error::Error>> {
//!     let sandbox = Sandbox::new()?;
//!     let mut nft = sandbox.run(Connection::open)??;
//!     assert!(nft.tables(Scope::all())?.try_next()?.is_none());
//!     Ok(())
//! }
//! # a_sandbox_is_empty().unwrap();
//! ```
//!
//! # Chains and rules in one transaction
//!
//! ```
//! use chainwright::nft::build::{Build, CtState};
//! use chainwright::nft::{Chain, Connection, Family, Hook, Policy, Priority, Table, Transaction};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::INET, "filter"))?;
//! let input = Chain::new(Family::INET, "filter", "input");
//! let input = input.with_hook("filter", Hook::INPUT, Priority::FILTER);
//! tx.add(&input.with_policy(Policy::DROP))?;
//! let rule = || Build::new(Family::INET, "filter", "input");
//! tx.add(&rule().ct_state(CtState::ESTABLISHED | CtState::RELATED).accept()?)?;
//! tx.add(&rule().iifname("lo").accept()?)?;
//! tx.add(&rule().tcp_dport(22).counter().comment("who repairs it").accept()?)?;
//! Connection::open()?.commit(&tx)?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # A map with several fields and verdicts
//!
//! The core of a service proxy: one lookup for any number of services. Keys are Rust types
//! ([`nft::typed`](crate::nft::typed)), so their fields cannot be in the wrong order.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use chainwright::nft::build::{Build, Protocol, ip, meta, th};
//! use chainwright::nft::expr::Verdict;
//! use chainwright::nft::typed::TypedMap;
//! use chainwright::nft::{Chain, Connection, Family, Hook, Priority, Table, Transaction};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! type Key = (Ipv4Addr, Protocol, u16);
//! let services = TypedMap::<Key, Verdict<'_>>::new(Family::IP, "proxy", "services");
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "proxy"))?.add(services.set())?;
//! let prerouting = Chain::new(Family::IP, "proxy", "prerouting");
//! tx.add(&prerouting.with_hook("nat", Hook::PREROUTING, Priority::DSTNAT))?;
//! tx.add(&Chain::new(Family::IP, "proxy", "web"))?;
//! let web = (Ipv4Addr::new(10, 96, 0, 1), Protocol::TCP, 80);
//! tx.add_elements(&services.id(), [services.element(&web, &Verdict::Goto("web".into()))])?;
//! // ip daddr . meta l4proto . th dport vmap @services
//! let dispatch = Build::new(Family::IP, "proxy", "prerouting")
//!     .vmap(&[ip::DADDR, meta::L4PROTO, th::DPORT], services.set())
//!     .finish()?;
//! tx.add(&dispatch)?;
//! Connection::open()?.commit(&tx)?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # A service with several endpoints
//!
//! ```
//! use std::net::{Ipv4Addr, SocketAddrV4};
//! use chainwright::nft::build::{AnonymousSet, Build, NatTo, Version, numgen_random};
//! use chainwright::nft::{Chain, Connection, Family, Hook, Priority, Table, Transaction};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "proxy"))?;
//! let prerouting = Chain::new(Family::IP, "proxy", "prerouting");
//! tx.add(&prerouting.with_hook("nat", Hook::PREROUTING, Priority::DSTNAT))?;
//! let endpoints = [4, 5, 6].map(|last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 8080));
//! let map = AnonymousSet::numbered_addresses_with_ports(Family::IP, "proxy", 1, 0, endpoints);
//! map.add_to(&mut tx)?;
//! // ip daddr 10.96.0.1 tcp dport 80 dnat ip addr . port to numgen random mod 3 map { … }
//! let service = Build::new(Family::IP, "proxy", "prerouting")
//!     .ip_daddr(Ipv4Addr::new(10, 96, 0, 1))
//!     .tcp_dport(80)
//!     .dnat(NatTo::map_with_port(Version::V4, numgen_random(3), &map))?;
//! tx.add(&service)?;
//! Connection::open()?.commit(&tx)?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # A table with an owner
//!
//! ```
//! use chainwright::nft::{Connection, Family, Table, TableFlags, Transaction};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut proxy = Connection::open()?; // keep it: the table is this socket's
//! let mut tx = Transaction::new();
//! tx.add(&Table {
//!     // Without PERSIST it goes with the connection; with it, it stays and the next one adopts it.
//!     flags: Some(TableFlags::OWNER | TableFlags::PERSIST),
//!     ..Table::new(Family::IP, "proxy")
//! })?;
//! proxy.commit(&tx)?;
//!
//! let mut firewall = Connection::open()?;
//! let mut flush = Transaction::new();
//! flush.flush_ruleset(Family::UNSPEC)?; // as `nft flush ruleset` does
//! firewall.commit(&flush)?;
//! assert!(firewall.table(Family::IP, "proxy")?.is_some());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # A set that rules fill
//!
//! ```
//! use std::net::Ipv4Addr;
//! use std::time::Duration;
//! use chainwright::nft::build::{Build, Rate, element, ip};
//! use chainwright::nft::expr::Limit;
//! use chainwright::nft::typed::TypedSet;
//! use chainwright::nft::{Chain, Connection, Family, Table, Transaction};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let seen = TypedSet::<Ipv4Addr>::new(Family::IP, "filter", "seen")
//!     .modify_set(|set| set.with_updates(65_536).with_timeout(None));
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "filter"))?.add(seen.set())?;
//! tx.add(&Chain::new(Family::IP, "filter", "input"))?;
//! // update @seen { ip saddr timeout 1m limit rate over 10/second } drop
//! let over = Limit::from(Rate::per_second(10).over());
//! let source = element(ip::SADDR).timeout(Duration::from_secs(60)).with(&over);
//! let rule = Build::new(Family::IP, "filter", "input").update_element("seen", source).drop()?;
//! tx.add(&rule)?;
//! let mut nft = Connection::open()?;
//! nft.commit(&tx)?;
//! let mut listed = nft.elements(Family::IP, "filter", "seen")?;
//! while let Some(element) = listed.try_next()? {
//!     println!("{:?} for {:?} ms more", seen.key(&element), element.expiration());
//! }
//! # drop(listed);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # Compare and restore snapshots
//!
//! A [`Snapshot`](crate::nft::Snapshot) contains one generation, and one transaction restores it. With the feature
//! `backup` it can be saved to a file and loaded again.
//!
//! ```
//! use chainwright::nft::{Connection, DiffOptions, Family, Scope, Table, Transaction};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut nft = Connection::open()?;
//! let before = nft.snapshot(Scope::all())?;
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::INET, "somebodys"))?;
//! nft.commit(&tx)?;
//!
//! let after = nft.snapshot(Scope::all())?;
//! let diff = before.diff(&after, DiffOptions::default())?;
//! println!("{diff}");
//! assert!(!diff.is_empty());
//! before.restore(&mut nft)?;
//! assert!(nft.table(Family::INET, "somebodys")?.is_none());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # Rules in iptables' language
//!
//! ```
//! use chainwright::iptables::{Family, Iptables, Rule};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut iptables = Iptables::nft()?; // or legacy()
//! let rule = Rule::parse(Family::Ipv4, "-m mark --mark 0x8000/0x8000 -j DROP")?;
//! iptables.update(Family::Ipv4, "filter", |table| {
//!     table.ensure_chain("KUBE-FIREWALL")?;
//!     if !table.contains("KUBE-FIREWALL", &rule)? {
//!         table.append("KUBE-FIREWALL", &rule)?;
//!     }
//!     Ok(())
//! })?; // what is not touched stays, byte for byte, with its counters
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # A kubelet's chains
//!
//! ```
//! use chainwright_kube::kubelet::Kubelet;
//! use chainwright::nft::Connection;
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut nft = Connection::open()?;
//! let kubelet = Kubelet::new();
//! kubelet.ensure(&mut nft)?; // what is missing, in one transaction
//! assert!(kubelet.check(&mut nft)?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! The same in the backend that the node uses, with a guard that repairs the chains afterwards:
//!
//! ```
//! use chainwright::iptables::{Backend, Iptables};
//! use chainwright_kube::detect::{DetectedBackend, Detector};
//! use chainwright_kube::guard::{ChainGuard, Event, GuardOptions};
//! use chainwright_kube::kubelet::Kubelet;
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let backend = match Detector::open().probe().detected_backend() {
//!     DetectedBackend::Undetermined => Backend::Nft, // this is the node's first kubelet
//!     other => other.backend().ok_or("the backend in use is not known")?,
//! };
//! Kubelet::new().ensure(&mut Iptables::open(backend)?)?;
//!
//! let guard = ChainGuard::open(Kubelet::new().declared(), backend, GuardOptions::default())?;
//! let running = guard.start(|notification| if let Event::Repaired(repair) = notification.event {
//!     println!("{} vanished, by {:?}", repair.items.len(), repair.by);
//! })?;
//! running.stop();
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # A script in nft's language
//!
//! The crate `chainwright-lang` runs it as one transaction. Errors have a position in the text.
//!
//! ```
//! use chainwright::nft::{Connection, Element, Family};
//! use chainwright_lang::{RunMode, Options, Script};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut nft = Connection::open()?;
//! let text = "table ip t { set s { type ipv4_addr; elements = { 10.0.0.1, 10.0.0.2 }; }; }";
//! Script::parse("rules.nft", text)?.run(&mut nft, RunMode::Commit, &Options::here())?;
//! assert!(nft.element(Family::IP, "t", "s", &Element::new(&[10, 0, 0, 2]))?.is_some());
//!
//! let wrong = Script::parse("rules.nft", "add elment ip t s { 10.0.0.3 }").unwrap_err();
//! assert!(wrong.to_string().starts_with("rules.nft:1:"), "{wrong}");
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # A desired state
//!
//! A [`Ruleset`](crate::nft::Ruleset) is a value: building and comparing it needs no kernel.
//! [`Connection::keep`](crate::nft::Connection::keep) repeats the reconciliation whenever another program changes the
//! tables.
//!
//! ```
//! use chainwright::nft::build::Build;
//! use chainwright::nft::{Chain, Connection, Family, Hook, PlanOptions, Ruleset, Table};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut desired = Ruleset::new();
//! desired.add(&Table::new(Family::INET, "guard"))?;
//! desired.add(&Chain::new(Family::INET, "guard", "in").with_hook("filter", Hook::INPUT, 0))?;
//! desired.add(&Build::new(Family::INET, "guard", "in").tcp_dport(23).counter().drop()?)?;
//!
//! let mut nft = Connection::open()?;
//! let plan = nft.reconcile(&desired, PlanOptions::default())?;
//! println!("{plan}");
//! assert!(nft.reconcile(&desired, PlanOptions::default())?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
//!
//! # A desired state in an async program
//!
//! With the feature `tokio`, a task keeps the tables so; it uses a thread only to compare and to change them. The test
//! uses `chainwright_testing::FakeKernel`, an nf_tables in memory.
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::ops::ControlFlow;
//! use chainwright::nft::{Family, PlanOptions, Ruleset, Table};
//! use chainwright_testing::FakeKernel;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let kernel = FakeKernel::new();
//! let mut desired = Ruleset::new();
//! desired.add(&Table::new(Family::INET, "guard"))?;
//! let kept = kernel.connect()?.keep_async(desired, PlanOptions::default(), |plan| {
//!     println!("{plan}");
//!     ControlFlow::Break(plan.transaction().len()) // `Continue(())` keeps it so for ever
//! });
//! assert_eq!(tokio::spawn(kept).await??, 1);
//! # Ok::<_, Box<dyn std::error::Error>>(()) })
//! # }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! # Who reaches whom, without a kernel
//!
//! The crate `chainwright-trace` simulates packets in a ruleset: a test of a policy needs neither root nor packets.
//!
//! ```
//! use chainwright::nft::Scope;
//! use chainwright_lang::Script;
//! use chainwright_trace::{Direction, Node, Options, Outcome, Packet, Rules};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = "table inet f { chain in { type filter hook input priority 0; policy drop;
//!     ip saddr 10.0.0.0/24 tcp dport { 80, 443 } accept; }; }";
//! let snapshot = Script::parse("policy.nft", policy)?.ruleset()?.to_snapshot(&Scope::all());
//! let rules = Rules::new().with_nft(&snapshot);
//! let reaches = |from: [u8; 4], port: u16| {
//!     let packet = Packet::tcp(Direction::In, (from, 4000).into(), ([10, 0, 0, 1], port).into());
//!     let trace = rules.trace(&packet, &Node::default(), &Options::default());
//!     trace.ends.iter().all(|end| end.outcome == Outcome::Delivered)
//! };
//! assert!(reaches([10, 0, 0, 7], 443));
//! assert!(!reaches([10, 0, 0, 7], 22) && !reaches([192, 0, 2, 1], 443));
//! # Ok(())
//! # }
//! ```
//!
//! # Tracked connections
//!
//! A packet of a tracked connection ignores a changed NAT rule. With the feature `conntrack`, a program deletes the
//! entries that the change concerns.
//!
//! ```
//! # #[cfg(feature = "conntrack")]
//! # fn main() -> Result<(), chainwright_testing::Error> {
//! use std::net::Ipv4Addr;
//! use std::time::Duration;
//! use chainwright::conntrack::{Connection, Entry, Filter, Tuple};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut conntrack = Connection::open()?;
//! let flow = Tuple::udp((Ipv4Addr::new(10, 0, 0, 1), 4000), (Ipv4Addr::new(10, 0, 0, 2), 53));
//! conntrack.create(&Entry::new(flow, Duration::from_secs(30)))?;
//!
//! let mut udp = 0;
//! conntrack.entries(&Filter::all().protocol(17))?.for_each(|_| udp += 1)?;
//! assert_eq!(udp, 1);
//! assert_eq!(conntrack.delete_all([flow.into()])?.deleted, 1);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "conntrack"))]
//! # fn main() {}
//! ```
//!
//! # Errors
//!
//! The error names the operation and explains the kernel's error number in that context.
//!
//! ```
//! use chainwright::nft::{Chain, Connection, Family, Transaction};
//!
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! let mut tx = Transaction::new();
//! tx.add(&Chain::new(Family::IP, "missing", "input"))?;
//! let error = Connection::open()?.commit(&tx).unwrap_err();
//! assert!(error.to_string().contains("add chain ip missing input"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok::<(), chainwright_testing::Error>(())
//! ```
