//! Rulesets as libnftables' JSON: what `nft -j list ruleset` prints (libnftables-json(5)), and in `read` what `nft -j -f`
//! takes.
//!
//! The sentences are those of the text ([`super::syntax`]). Each object of the list becomes JSON when its turn comes,
//! and each statement and each element of it likewise, so that no second tree of them stands in memory.

pub(super) mod echo;
mod expr;
mod layout;
mod monitor;
#[cfg(feature = "nftables-crate")]
mod nftables;
mod object;
pub(super) mod read;
mod stateful;
mod statement;
mod tunnel;

use std::fmt;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

pub(super) use self::monitor::Events;
#[cfg(feature = "nftables-crate")]
pub use self::nftables::NotInStructs;
use self::object::Object;
use super::list::{Listing, Options};
use chainwright::nft::{ChainFlags, Family, Part, SetFlags, SnapshotTable};

/// A listing as libnftables' JSON, which [`Listing::json`] makes: by its `Display` in one line, laid out as nft does it; by
/// `Serialize` in whatever form.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), chainwright::Error> {
/// use chainwright::nft::build::Build;
/// use chainwright::nft::{Chain, Connection, Family, Scope, Table, Transaction};
/// use chainwright_lang::{Listing, Options};
///
/// let mut tx = Transaction::new();
/// tx.add(&Table::new(Family::INET, "filter"))?;
/// tx.add(&Chain::new(Family::INET, "filter", "web"))?;
/// tx.add(&Build::new(Family::INET, "filter", "web").tcp_dport(80..=89).accept().unwrap())?;
/// let mut nft = Connection::open()?;
/// nft.commit(&tx)?;
///
/// let snapshot = nft.snapshot(Scope::all())?;
/// let json = Listing::new(&snapshot, &Options::default()).json().to_string();
/// assert!(json.contains(r#""right": {"range": [80, 89]}}}, {"accept": null}]"#), "{json}");
/// # Ok(()) })??;
/// # Ok(())
/// # }
/// ```
///
/// Of the [`Options`] `stateless` and `terse` say here what they say to `nft -j`: numbers of counters in rules and sets
/// are left out, those of stateful objects are not. Handles are always written.
///
/// It is what nft 1.0.6 writes, byte for byte, but for these:
///
/// - `metainfo` names this crate and its version, or what is said of [it](Self::in_place_of); `json_schema_version` is 1.
/// - What that version leaves out is written: `dev` and `comment` of chains, `comment` of tables, `dynamic` among the
///   `flags` of sets, `auto-merge`, all statements of an element, a window scale of 0, the `level` of
///   `socket cgroupv2`; and `flags` of tables are words. nft reads these, or refuses them.
/// - Numbers of expressions above 2^63 - 1 are strings of digits: nft writes negative ones and reads those back as
///   others. Counters are negative there, as nft writes and reads them.
/// - A timeout of less than a second is 1: 0 would be for ever.
/// - Elements that a rule adds to a map are `{"map": {"op", "elem", "data", "map"}}`, as newer versions have it; a jump to
///   a chain without a name is `{"jump": {"rules": [{"expr": [..]}]}}`. nft 1.0.6 writes strings for both that it does not
///   read itself.
/// - A rule that nft has no words for is a list of `{"opaque": INSTRUCTION}`; so is what would be read as
///   something else, as a name that begins with `@`, and the elements of a set if one of them has no words. Nothing
///   else has such an object: nft refuses it.
#[derive(Debug, Clone, Copy)]
pub struct Json<'s> {
    listing: Listing<'s>,
    metainfo: Metainfo<'s>,
}

impl<'s> Listing<'s> {
    /// As libnftables' JSON instead of text.
    #[must_use]
    pub const fn json(self) -> Json<'s> {
        let (version, release_name) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_NAME"));
        Json {
            listing: self,
            metainfo: Metainfo {
                version,
                release_name,
                json_schema_version: 1,
            },
        }
    }
}

impl<'s> Json<'s> {
    /// As a program that stands in the place of another writes it: with that one's version in `metainfo`, which who reads it
    /// may look at, and a name of the release.
    #[must_use]
    pub const fn in_place_of(mut self, version: &'s str, release_name: &'s str) -> Self {
        self.metainfo.version = version;
        self.metainfo.release_name = release_name;
        self
    }
}

/// One key and what it has.
#[derive(Debug)]
struct Tagged<T>(&'static str, T);

impl<T: Serialize> Serialize for Tagged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &self.1)?;
        map.end()
    }
}

/// A list, which is not written as one where it has one entry.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// `None` of none.
    fn new(mut all: Vec<T>) -> Option<Self> {
        match (all.pop(), all.is_empty()) {
            (None, _) => None,
            (Some(one), true) => Some(Self::One(one)),
            (Some(last), false) => {
                all.push(last);
                Some(Self::Many(all))
            }
        }
    }
}

/// From sentences to JSON.
#[derive(Debug, Clone, Copy)]
struct Writer<'o> {
    options: &'o Options,
    /// Of the table.
    family: Family,
    /// Without numbers of counters and the like.
    stateless: bool,
}

/// What wrote it.
#[derive(Debug, Clone, Copy, Serialize)]
struct Metainfo<'s> {
    version: &'s str,
    release_name: &'s str,
    json_schema_version: u32,
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        layout::write(f, self)
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("nftables", &Objects(self))?;
        map.end()
    }
}

/// The list of objects.
struct Objects<'s>(&'s Json<'s>);

impl Serialize for Objects<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Listing {
            snapshot,
            options,
            part,
        } = self.0.listing;
        let mut out = serializer.serialize_seq(None)?;
        out.serialize_element(&Tagged("metainfo", self.0.metainfo))?;
        for table in snapshot.tables() {
            let writer = Writer {
                options,
                family: table.table().family(),
                stateless: options.stateless,
            };
            writer.objects(&table, part, &mut |object| out.serialize_element(&object))?;
        }
        out.end()
    }
}

impl<'o> Writer<'o> {
    /// Hands out what a table has of this part, in nft's order: rules behind all chains.
    fn objects<E>(
        self,
        table: &SnapshotTable<'o>,
        part: Part<'_>,
        take: &mut impl FnMut(Object<'o>) -> Result<(), E>,
    ) -> Result<(), E> {
        if matches!(part, Part::All | Part::Tables) {
            take(self.table(&table.table()))?;
        }
        for object in table.objects().filter(|object| part.has_object(object)) {
            take(self.object(&object))?;
        }
        for set in table.sets() {
            let view = set.set();
            let flags = view.flags().unwrap_or_default();
            if !flags.contains(SetFlags::ANONYMOUS) && part.has_set(&view) {
                take(self.set(&set))?;
            }
        }
        for flowtable in table.flowtables().filter(|each| part.has_flowtable(each)) {
            take(self.flowtable(&flowtable))?;
        }
        let chains = || {
            table.chains().filter(|chain| {
                let view = chain.chain();
                let flags = view.flags().unwrap_or_default();
                !flags.contains(ChainFlags::BINDING) && part.has_chain(&view)
            })
        };
        for chain in chains() {
            take(self.chain(&chain.chain()))?;
        }
        if part == Part::Chains {
            return Ok(());
        }
        for chain in chains() {
            for rule in chain.rules() {
                take(self.rule(table, &rule))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Script;
    use chainwright::netlink::Message;
    use chainwright::nft::{RuleRef, Scope, Table, Transaction};
    use chainwright_testing::FakeKernel;

    /// Most kernels are built without them, so that no listing has them to be compared with: what JSON makes is what the
    /// text makes, and is written as it was read.
    #[test]
    fn options_of_dccp_are_read_and_written() {
        let mut nft = FakeKernel::new().connect().unwrap();
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::INET, "t")).unwrap();
        nft.commit(&tx).unwrap();
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let table = snapshot.tables().next().unwrap();
        let sent = |script: Script| {
            let change = script.transaction(None).unwrap();
            let sent = change.transaction().datagram(<[u8]>::to_vec);
            let (_, rest) = Message::split(&sent).unwrap(); // the batch's begin
            Message::split(rest).unwrap().0.payload.to_vec()
        };
        for (number, is_there, words) in [(42, true, "exists"), (0, false, "missing")] {
            let option = json!({"dccp option": {"type": number}});
            let expr = json!([{"match": {"op": "==", "left": option, "right": is_there}}]);
            // One with a handle, as those that the kernel sends.
            let rule = json!({
                "family": "inet", "table": "t", "chain": "c", "handle": 7, "expr": expr,
            });
            let document = json!({"nftables": [{"replace": {"rule": rule}}]}).to_string();
            let made = sent(Script::parse_json("t.json", document).unwrap());
            let text = format!("replace rule inet t c handle 7 dccp option {number} {words}");
            assert_eq!(made, sent(Script::parse("t.nft", text).unwrap()));
            let view = RuleRef::of_payload(&made).unwrap();
            let writer = Writer {
                options: &Options::default(),
                family: Family::INET,
                stateless: false,
            };
            let written = serde_json::to_value(writer.rule(&table, &view)).unwrap();
            assert_eq!(written["rule"]["expr"], expr);
        }
        let document = r#"{"nftables": [{"add": {"rule": {"family": "inet", "table": "t", "chain": "c",
            "expr": [{"match": {"op": "==", "left": {"dccp option": {"type": 256}}, "right": true}}]}}}]}"#;
        let error = Script::parse_json("t.json", document)
            .unwrap_err()
            .to_string();
        assert!(error.contains("256"), "{error}");
    }
}
