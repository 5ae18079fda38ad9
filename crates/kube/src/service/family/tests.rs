use std::sync::Mutex;

use super::super::layout::Common;
use super::super::model::{Port, Protocol, Service};
use super::*;
use chainwright::nft::{self, Chain, Transaction};
use chainwright_testing::FakeKernel;

/// A fake kernel: its ports, what it refuses, and the services that it lost temporarily.
#[derive(Debug, Default)]
struct Kernel {
    ports: Ports,
    /// By port number.
    refuses: HashSet<u16>,
    refuses_all: bool,
    full_syncs: usize,
    lost: HashSet<ObjectName>,
}

#[derive(Debug, Clone)]
struct Fake {
    kernel: Arc<Mutex<Kernel>>,
    check_only: bool,
    common: Common,
}

/// Returns a refusal of the kernel.
fn refusal() -> Error {
    let mut nft = FakeKernel::new().connect().unwrap();
    let mut tx = Transaction::new();
    tx.add(&Chain::new(nft::Family::IP, "absent", "chain"))
        .unwrap();
    Error::from(nft.commit(&tx).unwrap_err())
}

impl FamilyLayout for Fake {
    fn full_sync(&mut self, ports: &Ports) -> Result<usize, Error> {
        let mut kernel = self.kernel.lock().unwrap();
        kernel.full_syncs += 1;
        let is_bad = ports
            .values()
            .any(|port| kernel.refuses.contains(&port.port));
        if is_bad || kernel.refuses_all {
            return Err(refusal());
        }
        if !self.check_only {
            let gone = kernel
                .ports
                .keys()
                .filter(|name| !ports.contains_key(*name));
            let gone: Vec<_> = gone.map(|name| name.service.clone()).collect();
            kernel.lost.extend(gone);
            kernel.ports = ports.clone();
        }
        Ok(1)
    }

    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error> {
        let kernel = self.kernel.lock().unwrap();
        // The desired state is the kernel's state plus the changes.
        let mut kernel_ports = kernel.ports.clone();
        for change in changes {
            assert_eq!(kernel_ports.get(&change.name), change.before.as_ref());
            match &change.after {
                Some(port) => drop(kernel_ports.insert(change.name.clone(), Arc::clone(port))),
                None => drop(kernel_ports.swap_remove(&change.name)),
            }
        }
        assert_eq!(&kernel_ports, ports);
        drop(kernel);
        self.full_sync(ports)
    }

    fn set_check_only(&mut self, yes: bool) -> bool {
        self.check_only = yes;
        true
    }

    fn remove(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

struct Tried {
    services: Services,
    fake: Fake,
    family: FamilyProxy,
    config: Arc<Config>,
}

fn name(number: u16) -> ObjectName {
    ObjectName::new("default", format!("service-{number:03}"))
}

impl Tried {
    fn new() -> Self {
        let config = Arc::new(Config::new("node1"));
        let fake = Fake {
            kernel: Arc::default(),
            check_only: false,
            common: Common::new(Arc::clone(&config)),
        };
        let layout = Box::new(fake.clone());
        Self {
            services: Services::new(),
            family: FamilyProxy::new(Family::Ipv4, layout, &config),
            fake,
            config,
        }
    }

    /// Sets a service with this port number.
    fn set(&mut self, number: u16, port: u16) {
        let ip = [10, 96, 0, number as u8].into();
        let service = Service::new(name(number), [ip]);
        let service = service.with_port(Port::new("p", Protocol::Tcp, port));
        self.services.set_service(service);
    }

    fn kernel(&self) -> std::sync::MutexGuard<'_, Kernel> {
        self.fake.kernel.lock().unwrap()
    }

    fn sync(&mut self) -> Result<SyncResult, Error> {
        let whole = !self.family.is_known;
        let changed: Vec<_> = self.services.take_changed().collect();
        let changed = match whole {
            true => self.services.names().cloned().collect(),
            false => changed,
        };
        let config = &self.config;
        self.family.sync(&self.services, &changed, config, whole)
    }

    fn skipped_services(&self) -> Vec<ObjectName> {
        self.family
            .skipped_services()
            .map(|skipped_services| skipped_services.service)
            .collect()
    }

    /// Returns the services that the kernel has, with their port numbers.
    fn kernel_ports(&self) -> BTreeMap<ObjectName, u16> {
        let kernel = self.kernel();
        let ports = kernel.ports.values();
        ports
            .map(|port| (port.name.service.clone(), port.port))
            .collect()
    }
}

fn names(done: &SyncResult) -> Vec<ObjectName> {
    done.skipped
        .iter()
        .map(|skipped_services| skipped_services.service.clone())
        .collect()
}

#[test]
fn only_refused_changes_are_skipped() {
    let mut tried = Tried::new();
    (0..100).for_each(|number| tried.set(number, 80));
    assert_eq!(names(&tried.sync().unwrap()), []);
    tried.kernel().refuses = [666, 667].into();
    (20..50).for_each(|number| tried.set(number, 81));
    tried.set(33, 666);
    tried.set(100, 667);
    let done = tried.sync().unwrap();
    assert_eq!(names(&done), [name(33), name(100)]);
    assert!(matches!(*done.skipped[0].error, Error::Commit(_)));
    assert_eq!(tried.skipped_services(), [name(33), name(100)]);
    let kernel_ports = tried.kernel_ports();
    // One keeps its previous state, and one does not exist.
    assert_eq!(
        (kernel_ports[&name(33)], kernel_ports.get(&name(100))),
        (80, None)
    );
    assert!((20..50).all(|number| number == 33 || kernel_ports[&name(number)] == 81));
    assert_eq!(kernel_ports.len(), 100);
    assert!(tried.kernel().lost.is_empty());

    // They are retried when they change, and not before.
    tried.kernel().refuses.clear();
    tried.set(1, 82);
    assert_eq!(names(&tried.sync().unwrap()), []);
    assert_eq!(tried.kernel_ports()[&name(33)], 80);
    tried.set(33, 80);
    assert_eq!(tried.sync().unwrap().transactions, 0);
    assert_eq!(tried.skipped_services(), [name(100)]);
    tried.services.remove_service(&name(100));
    tried.sync().unwrap();
    assert_eq!(tried.skipped_services(), []);
}

#[test]
fn full_sync_skips_only_refused_services() {
    let mut tried = Tried::new();
    (0..50).for_each(|number| tried.set(number, 80));
    tried.sync().unwrap();
    // Like a process that starts.
    tried.family = FamilyProxy::new(Family::Ipv4, Box::new(tried.fake.clone()), &tried.config);
    (50..100).for_each(|number| tried.set(number, 80));
    tried.set(70, 666);
    tried.set(7, 666);
    tried.kernel().refuses = [666].into();
    tried.kernel().full_syncs = 0;
    let done = tried.sync().unwrap();
    assert_eq!(names(&done), [name(7), name(70)]);
    assert_eq!(tried.kernel_ports().len(), 98);
    assert_eq!(tried.kernel().lost, [name(7)].into());
    assert!(
        tried.kernel().full_syncs < 40,
        "{}",
        tried.kernel().full_syncs
    );

    // A complete sync retries them; a service that existed keeps its previous state.
    tried.kernel().lost.clear();
    tried.set(8, 666);
    assert_eq!(names(&tried.sync().unwrap()), [name(8)]);
    tried.family.is_known = false;
    assert_eq!(names(&tried.sync().unwrap()), [name(7), name(8), name(70)]);
    assert_eq!(tried.kernel_ports()[&name(8)], 80);
    assert!(tried.kernel().lost.is_empty());
    tried.kernel().refuses.clear();
    tried.family.is_known = false;
    assert_eq!(names(&tried.sync().unwrap()), []);
    assert_eq!(
        (tried.skipped_services(), tried.kernel_ports().len()),
        (vec![], 100)
    );
    assert_eq!(tried.kernel_ports()[&name(8)], 666);
}

#[test]
fn failures_not_caused_by_a_service_are_errors() {
    let mut tried = Tried::new();
    (0..50).for_each(|number| tried.set(number, 80));
    tried.kernel().refuses_all = true;
    assert!(matches!(tried.sync(), Err(Error::Commit(_))));
    assert_eq!(tried.skipped_services(), []);
    assert!(tried.kernel().full_syncs < 5);
    tried.kernel().refuses_all = false;
    tried.sync().unwrap();
    tried.kernel().refuses_all = true;
    tried.set(1, 81);
    assert!(matches!(tried.sync(), Err(Error::Commit(_))));
    assert_eq!(tried.skipped_services(), []);
    // More than the search tolerates.
    tried.kernel().refuses_all = false;
    tried.family.is_known = false;
    tried.sync().unwrap();
    tried.kernel().refuses = [666].into();
    (0..50).for_each(|number| tried.set(number, 666));
    tried.kernel().full_syncs = 0;
    assert!(tried.sync().is_err());
    assert!(tried.kernel().full_syncs <= 2 * MAX_REFUSALS + 2);
}
