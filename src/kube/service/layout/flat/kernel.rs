//! What is in the kernel: read once, when a proxy starts or somebody else was there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

use super::rules::Shape;
use super::service::{Front, cluster_group};
use super::sets::{SetKind, TABLE, Words};
use crate::error::Error;
use crate::nft::{Connection, Family, Scope};

/// The table, as it is.
#[derive(Debug)]
pub(super) struct There {
    /// Elements of all sets that are of services.
    pub(super) entries: HashMap<SetKind, HashMap<Words, Option<Words>>>,
    /// The shapes that there are chains for, by their names.
    pub(super) shapes: HashMap<String, Shape>,
    /// What leads to such chains.
    pub(super) picks: HashSet<(SetKind, u32)>,
    /// Endpoints of each group by their places.
    places: HashMap<u32, BTreeMap<u32, SocketAddr>>,
}

impl There {
    /// The group that is served somewhere.
    pub(super) fn group(&self, front: &Front) -> Option<u32> {
        let kinds = match front.address {
            Some(_) => [SetKind::ServiceIps, SetKind::LocalIps],
            None => [SetKind::ServiceNodeports, SetKind::LocalNodeports],
        };
        let key = front.key();
        kinds
            .into_iter()
            .find_map(|kind| self.entries.get(&kind)?.get(&key)?.as_ref()?.number_at(0))
    }

    /// A port's endpoints, by their places.
    pub(super) fn places(&self, id: u32) -> [Vec<SocketAddr>; 2] {
        [0, 1].map(|local| {
            let places = self.places.get(&(cluster_group(id) + local));
            let endpoints = places.into_iter().flat_map(|places| places.values());
            endpoints.copied().collect()
        })
    }
}

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    /// No table, or an empty one.
    Nothing,
    /// A table that this version does not make.
    Other,
    /// One that it makes.
    Ours(There),
}

/// Reads the table.
pub(super) fn read(nft: &mut Connection, family: Family) -> Result<Found, Error> {
    let mut shapes = HashMap::new();
    let mut known = false;
    let mut chains = nft.chains(Scope::table(family, TABLE))?;
    while let Some(chain) = chains.next()? {
        known = true;
        let name = std::str::from_utf8(chain.name()).unwrap_or_default();
        shapes.extend(Shape::of_chain(name).map(|shape| (name.to_owned(), shape)));
    }
    drop(chains);
    let mut names = HashSet::new();
    let mut sets = nft.sets(Scope::table(family, TABLE))?;
    while let Some(set) = sets.next()? {
        names.insert(set.name().to_owned());
    }
    drop(sets);
    if !known || names.is_empty() {
        let empty = !known && names.is_empty();
        return Ok(if empty { Found::Nothing } else { Found::Other });
    }
    let mut picks = HashSet::new();
    for kind in [SetKind::Picks, SetKind::LocalPicks] {
        if names.contains(kind.name().as_bytes()) {
            let mut listing = nft.elements(family, TABLE, kind.name())?;
            while let Some(element) = listing.next()? {
                let key = element.key_bytes().and_then(Words::of);
                picks.extend(key.and_then(|key| key.number_at(0)).map(|key| (kind, key)));
            }
        }
    }
    let mut entries = HashMap::new();
    for kind in SetKind::ALL {
        if !kind.is_of_services() || !names.contains(kind.name().as_bytes()) {
            continue;
        }
        let mut set = HashMap::new();
        let mut listing = nft.elements(family, TABLE, kind.name())?;
        while let Some(element) = listing.next()? {
            let Some(key) = element.key_bytes().and_then(Words::of) else {
                return Ok(Found::Other);
            };
            let value = element.data_bytes().map(Words::of);
            set.insert(key, value.flatten());
        }
        entries.insert(kind, set);
    }
    let mut places: HashMap<u32, BTreeMap<u32, SocketAddr>> = HashMap::new();
    for (key, value) in entries.get(&SetKind::Endpoints).into_iter().flatten() {
        if let (Some(group), Some(place)) = (key.number_at(0), key.number_at(1))
            && let Some(endpoint) = value.as_ref().and_then(Words::as_endpoint)
        {
            places.entry(group).or_default().insert(place, endpoint);
        }
    }
    Ok(Found::Ours(There {
        entries,
        shapes,
        picks,
        places,
    }))
}
