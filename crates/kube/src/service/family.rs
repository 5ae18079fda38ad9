//! The part of a proxy that handles one family.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::mem;
use std::sync::Arc;

use super::config::Config;
use super::conflict::{Conflict, FrontendOwners};
use super::layout::{FamilyLayout, Observer, OwnCommits, PortChange, Ports};
use super::map::Map;
use super::model::ObjectName;
use super::names::PortName;
use super::resolve::ServicePort;
use super::stale::StaleFlows;
use super::store::Services;
use chainwright::Error;
use chainwright::iptables::{self, Family};
use chainwright::nft::CommitError;

/// Number of refusals of the kernel that one sync tolerates: enough to find a few bad services among very many.
const MAX_REFUSALS: usize = 64;

/// The state of one family.
pub(super) struct FamilyProxy {
    pub(super) family: Family,
    pub(super) layout: Box<dyn FamilyLayout>,
    /// The desired ports; for skipped services their previous ports.
    ports: Ports,
    /// The ports of each service.
    names: Map<ObjectName, Vec<PortName>>,
    /// Whether the kernel's state is the one that the last sync left.
    pub(super) is_known: bool,
    /// UDP conntrack entries that syncs made stale since the last `take_stale`: at most one record for each UDP port.
    pub(super) stale: StaleFlows,
    /// Services that the kernel refused.
    skipped: BTreeMap<ObjectName, Arc<Error>>,
    /// The frontends of all ports: `ports` lacks those that another port has.
    frontends: FrontendOwners,
    observer: Observer,
}

impl fmt::Debug for FamilyProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("FamilyProxy");
        f.field("family", &self.family)
            .field("ports", &self.ports.len())
            .field("is_known", &self.is_known)
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}

/// A service that the kernel refused while it accepted others.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SkippedService {
    /// The service. The kernel keeps its previous state: nothing, if the service is new.
    pub service: ObjectName,
    /// The family.
    pub family: Family,
    /// The kernel's error for this service alone.
    pub error: Arc<Error>,
}

/// The errors of each family. An error in one family does not stop the sync of the other.
#[derive(Default)]
pub struct FamilyErrors(Vec<(Family, Error)>);

chainwright::debug_as_message!(FamilyErrors);

impl FamilyErrors {
    /// Returns the errors, each with its family.
    pub fn iter(&self) -> impl Iterator<Item = (Family, &Error)> {
        self.0.iter().map(|(family, error)| (*family, error))
    }

    pub(super) fn push(&mut self, family: Family, error: Error) {
        self.0.push((family, error));
    }

    /// Returns an error if there is any: the family's own error if only one family is served.
    pub(super) fn into_result(mut self, served: usize) -> Result<(), crate::Error> {
        match self.0.pop() {
            None => Ok(()),
            Some((_, error)) if served == 1 && self.0.is_empty() => Err(error.into()),
            Some(last) => {
                self.0.push(last);
                Err(crate::Error::Families(self))
            }
        }
    }
}

impl fmt::Display for FamilyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (family, error)) in self.iter().enumerate() {
            let before = if position == 0 { "" } else { "; " };
            write!(f, "{before}{family}: {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FamilyErrors {}

/// The result of a sync.
#[derive(Debug, Default)]
pub(super) struct SyncResult {
    pub(super) transactions: usize,
    pub(super) skipped: Vec<SkippedService>,
    pub(super) conflicts: Vec<Conflict>,
    /// Number of the kernel's refusals.
    refusals: usize,
}

impl FamilyProxy {
    pub(super) fn new(family: Family, layout: Box<dyn FamilyLayout>, config: &Arc<Config>) -> Self {
        Self {
            family,
            layout,
            ports: Ports::default(),
            names: Map::default(),
            is_known: false,
            stale: StaleFlows::none(family, Arc::clone(config)),
            skipped: BTreeMap::new(),
            frontends: FrontendOwners::default(),
            observer: Observer::default(),
        }
    }

    pub(super) fn set_config(&mut self, config: &Arc<Config>) {
        self.layout.set_config(Arc::clone(config));
        self.stale.set_config(Arc::clone(config));
    }

    pub(super) fn share(&mut self, commits: &OwnCommits) {
        self.layout.share(commits.clone());
    }

    pub(super) fn observe(&mut self, observer: Observer) {
        self.layout.observe(observer.clone());
        self.observer = observer;
    }

    /// Writes services to the kernel. If `whole`, `changed` lists all services, and everything in the kernel is compared.
    pub(super) fn sync(
        &mut self,
        services: &Services,
        changed: &[ObjectName],
        config: &Config,
        whole: bool,
    ) -> Result<SyncResult, Error> {
        let mut done = SyncResult::default();
        match whole {
            true => self.sync_all_services(services, changed, config, &mut done)?,
            false => {
                let mut changes = Vec::new();
                for service in changed {
                    self.skipped.remove(service);
                    self.resolve(services, service, config, |change| changes.push(change));
                }
                self.resolve_conflicts(services, config, &mut changes, &mut done);
                self.apply_changes(changes, &mut done)?;
            }
        }
        Ok(done)
    }

    fn sync_all_services(
        &mut self,
        services: &Services,
        all: &[ObjectName],
        config: &Config,
        done: &mut SyncResult,
    ) -> Result<(), Error> {
        // Skipped services keep their previous state for now; they are retried at the end.
        let refused = mem::take(&mut self.skipped);
        let mut ports = mem::take(&mut self.ports);
        let mut names = mem::take(&mut self.names);
        self.ports.reserve(all.len());
        self.names.reserve(all.len());
        self.frontends.clear();
        self.frontends.reserve(all.len());
        for service in refused.keys() {
            if let Some(of_it) = names.swap_remove(service) {
                let there = of_it
                    .iter()
                    .filter_map(|name| ports.swap_remove_entry(name));
                for (name, port) in there {
                    self.frontends.acquire(&port);
                    self.ports.insert(name, port);
                }
                self.names.insert(service.clone(), of_it);
            }
        }
        drop((ports, names));
        for service in all.iter().filter(|service| !refused.contains_key(*service)) {
            self.resolve(services, service, config, |_| {});
        }
        self.resolve_conflicts(services, config, &mut Vec::new(), done);
        done.conflicts = self.conflicts().collect();
        match self.layout.full_sync(&self.ports) {
            Ok(transactions) => done.transactions += transactions,
            Err(error) if is_refusal(&error) => self.full_sync_accepted(error, done)?,
            Err(error) => return Err(error),
        }
        self.is_known = true;
        self.stale.record_all(&self.ports);
        let mut changes = Vec::new();
        for service in refused.keys() {
            self.resolve(services, service, config, |change| changes.push(change));
        }
        self.resolve_conflicts(services, config, &mut changes, done);
        self.apply_changes(changes, done)
    }

    /// Resolves a service's ports, and calls `on_change` for each change.
    fn resolve(
        &mut self,
        services: &Services,
        service: &ObjectName,
        config: &Config,
        mut on_change: impl FnMut(PortChange),
    ) {
        let resolved = services.resolve(service, self.family, config);
        let names = self.names.entry(service.clone()).or_default();
        let mut before = mem::replace(names, Vec::with_capacity(resolved.len()));
        for port in resolved {
            // The API accepts no service with two ports of the same name.
            before.retain(|name| *name != port.name);
            names.push(port.name.clone());
            let port = Arc::new(port);
            let previous = self.ports.insert(port.name.clone(), Arc::clone(&port));
            if let Some(previous) = &previous {
                self.frontends.release(previous);
            }
            self.frontends.acquire(&port);
            if previous.as_ref() != Some(&port) {
                on_change(changed(port.name.clone(), previous, Some(port)));
            }
        }
        if names.is_empty() {
            self.names.swap_remove(service);
        }
        for name in before {
            let previous = self.ports.swap_remove(&name);
            if let Some(previous) = &previous {
                self.frontends.forget(previous);
            }
            on_change(changed(name, previous, None));
        }
    }

    /// Removes frontends from ports that lost them to others, and gives ports the ones that became free. Affects the
    /// changed ports and those that compete with them.
    fn resolve_conflicts(
        &mut self,
        services: &Services,
        config: &Config,
        changes: &mut Vec<PortChange>,
        done: &mut SyncResult,
    ) {
        let names = self.frontends.take_contested_ports();
        if names.is_empty() {
            return;
        }
        let indices = changes.iter().enumerate();
        let indices: HashMap<_, _> = indices.map(|(i, c)| (c.name.clone(), i)).collect();
        for name in names {
            // A skipped service keeps its state.
            let resolved = services.resolve(&name.service, self.family, config);
            let resolved = resolved.into_iter().find(|port| port.name == name);
            let Some(mut port) = resolved.filter(|_| !self.skipped.contains_key(&name.service))
            else {
                continue;
            };
            if self.frontends.remove_conflicting(&mut port) {
                done.conflicts
                    .extend(self.frontends.conflicts(&name, self.family));
            }
            let port = Arc::new(port);
            let previous = self.ports.insert(name.clone(), Arc::clone(&port));
            match indices.get(&name) {
                Some(&index) => changes[index].after = Some(port),
                None if previous.as_ref() != Some(&port) => {
                    changes.push(changed(name, previous, Some(port)));
                }
                None => {}
            }
        }
        changes.retain(|change| change.before != change.after);
    }

    /// Lists the frontends that services lack because others have them.
    pub(super) fn conflicts(&self) -> impl Iterator<Item = Conflict> {
        let ports_missing_frontends = self.frontends.ports_missing_frontends().into_iter();
        ports_missing_frontends.flat_map(|name| self.frontends.conflicts(name, self.family))
    }

    /// Writes changes to the kernel. If it refuses them, skips each service that it refuses individually and keeps that
    /// service's previous state.
    fn apply_changes(
        &mut self,
        changes: Vec<PortChange>,
        done: &mut SyncResult,
    ) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        let error = match self.layout.change(&self.ports, &changes) {
            Ok(transactions) => {
                done.transactions += transactions;
                changes.iter().for_each(|change| self.stale.take(change));
                return Ok(());
            }
            Err(error) if is_refusal(&error) && done.may_be_refused() => error,
            Err(error) => return Err(error),
        };
        for change in &changes {
            self.put(&change.name, change.before.as_ref());
        }
        match self.layout.full_sync(&self.ports) {
            Ok(transactions) => done.transactions += transactions,
            // The changes are not the reason for the refusal.
            Err(_) => return Err(error),
        }
        let mut services: BTreeMap<ObjectName, Vec<PortChange>> = BTreeMap::new();
        for change in changes {
            let service = change.name.service.clone();
            services.entry(service).or_default().push(change);
        }
        if services.len() == 1 {
            let service = services.into_keys().next();
            if let Some(service) = service {
                self.skipped(service, error, done);
            }
            return Ok(());
        }
        let middle = services.keys().nth(services.len() / 2).cloned();
        let right = middle.map_or_else(BTreeMap::new, |middle| services.split_off(&middle));
        for half in [services, right] {
            let changes: Vec<_> = half.into_values().flatten().collect();
            for change in &changes {
                self.put(&change.name, change.after.as_ref());
            }
            self.apply_changes(changes, done)?;
        }
        Ok(())
    }

    /// Syncs all services except those that the kernel refuses individually. Finds these with checks that change
    /// nothing, so that the other services are not disturbed.
    fn full_sync_accepted(&mut self, error: Error, done: &mut SyncResult) -> Result<(), Error> {
        if !self.layout.set_check_only(true) {
            return Err(error);
        }
        let mut all: Vec<_> = mem::take(&mut self.names).into_iter().collect();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut search = Search {
            layout: &mut *self.layout,
            ports: &self.ports,
            refused: Vec::new(),
            done,
        };
        // These checks are not progress.
        search.layout.observe(Observer::default());
        let searched = search.all(&all, error);
        let refused = search.refused;
        self.layout.set_check_only(false);
        self.layout.observe(self.observer.clone());
        searched?;
        let skipped_services: HashSet<_> =
            refused.iter().map(|(service, _)| service.clone()).collect();
        for (service, names) in all {
            match skipped_services.contains(&service) {
                true => {
                    for name in &names {
                        if let Some(port) = self.ports.swap_remove(name) {
                            self.frontends.release(&port);
                        }
                    }
                }
                false => drop(self.names.insert(service, names)),
            }
        }
        done.transactions += self.layout.full_sync(&self.ports)?;
        for (service, error) in refused {
            self.skipped(service, error, done);
        }
        Ok(())
    }

    /// Lists the skipped services.
    pub(super) fn skipped_services(&self) -> impl Iterator<Item = SkippedService> {
        self.skipped.iter().map(|(service, error)| SkippedService {
            service: service.clone(),
            family: self.family,
            error: Arc::clone(error),
        })
    }

    fn skipped(&mut self, service: ObjectName, error: Error, done: &mut SyncResult) {
        let error = Arc::new(error);
        self.skipped.insert(service.clone(), Arc::clone(&error));
        done.skipped.push(SkippedService {
            service,
            family: self.family,
            error,
        });
    }

    /// Sets the state of a port.
    fn put(&mut self, name: &PortName, port: Option<&Arc<ServicePort>>) {
        let names = self.names.entry(name.service.clone()).or_default();
        names.retain(|previous| previous != name);
        if let Some(previous) = self.ports.get(name) {
            self.frontends.release(previous);
        }
        if let Some(port) = port {
            self.frontends.acquire(port);
        }
        match port {
            Some(port) => {
                names.push(name.clone());
                self.ports.insert(name.clone(), Arc::clone(port));
            }
            None => {
                let is_last = names.is_empty();
                self.ports.swap_remove(name);
                if is_last {
                    self.names.swap_remove(&name.service);
                }
            }
        }
    }
}

impl SyncResult {
    /// Returns `true` if one more refusal is allowed, so that the refused services are searched. Each call counts.
    const fn may_be_refused(&mut self) -> bool {
        self.refusals += 1;
        self.refusals <= MAX_REFUSALS
    }
}

/// A search for services that the kernel refuses. Changes nothing.
struct Search<'s> {
    layout: &'s mut dyn FamilyLayout,
    ports: &'s Ports,
    refused: Vec<(ObjectName, Error)>,
    done: &'s mut SyncResult,
}

impl Search<'_> {
    /// Searches these services, which the kernel refuses together.
    fn all(&mut self, services: &[(ObjectName, Vec<PortName>)], error: Error) -> Result<(), Error> {
        match self.layout.full_sync(&Ports::default()) {
            Ok(_) => self.bisect(services, error),
            // The services are not the reason for the refusal.
            Err(_) => Err(error),
        }
    }

    fn bisect(
        &mut self,
        services: &[(ObjectName, Vec<PortName>)],
        error: Error,
    ) -> Result<(), Error> {
        match services {
            [] => Err(error),
            [(service, _)] => {
                self.refused.push((service.clone(), error));
                Ok(())
            }
            several => {
                let (left, right) = several.split_at(several.len() / 2);
                self.check_half(left)?;
                self.check_half(right)
            }
        }
    }

    fn check_half(&mut self, services: &[(ObjectName, Vec<PortName>)]) -> Result<(), Error> {
        let names = services.iter().flat_map(|(_, names)| names);
        let ports =
            names.filter_map(|name| Some((name.clone(), Arc::clone(self.ports.get(name)?))));
        match self.layout.full_sync(&ports.collect()) {
            Ok(_) => Ok(()),
            Err(error) if is_refusal(&error) && self.done.may_be_refused() => {
                self.bisect(services, error)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns `true` if the kernel, or the code that writes rules for it, refuses this content and would accept other
/// content.
fn is_refusal(error: &Error) -> bool {
    use iptables::Error as Tables;
    match error {
        Error::Commit(error) => is_refused(error),
        Error::MessageError(_) | Error::Comment(_) | Error::Build(_) | Error::Unwritable(_) => true,
        Error::Iptables(error) => match &**error {
            Tables::Commit(error) => is_refused(error),
            Tables::Edit(_)
            | Tables::Unwritable(_)
            | Tables::MessageError(_)
            | Tables::Builtin { .. }
            | Tables::TargetName { .. }
            | Tables::UnknownExtension { .. }
            | Tables::Refused { .. } => true,
            _ => false,
        },
        _ => false,
    }
}

/// Returns `true` if the kernel refused the content of the transaction, not its sender or because of the kernel's
/// state.
fn is_refused(error: &CommitError) -> bool {
    const OTHERS: [i32; 6] = [
        libc::EPERM,
        libc::EACCES,
        libc::EINTR,
        libc::EAGAIN,
        libc::ENOMEM,
        libc::ENOBUFS,
    ];
    let mut errors = error.failures.iter().map(|failure| failure.errno.number());
    error.is_refusal() && !errors.any(|number| OTHERS.contains(&number))
}

const fn changed(
    name: PortName,
    before: Option<Arc<ServicePort>>,
    after: Option<Arc<ServicePort>>,
) -> PortChange {
    PortChange {
        name,
        before,
        after,
    }
}

#[cfg(test)]
mod tests;
