//! Rulesets as libnftables' JSON (libnftables-json(5)): the output of `nft -j list ruleset`, and in `read` the input
//! of `nft -j -f`.
//!
//! The writer uses the syntax tree of the text ([`super::syntax`]). Objects, statements and elements are converted to
//! JSON one at a time, so that no second tree is in memory.

pub(crate) mod echo;
pub(crate) mod expr;
mod layout;
mod monitor;
#[cfg(feature = "nftables-crate")]
mod nftables;
pub(crate) mod object;
pub(crate) mod read;
pub(crate) mod statement;

use std::fmt;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

pub(crate) use self::expr::{Expression, Record, flags, numeric};
pub(crate) use self::monitor::Events;
#[cfg(feature = "nftables-crate")]
pub use self::nftables::UnrepresentableListing;
use self::object::Object;
pub(crate) use self::read::{Fields, Key, Kind, Node, Reader as JsonReader, is_object, option};
use super::dialect::Form;
use super::list::set::is_in;
use super::list::{Listing, Options};
use chainwright::nft::{ChainFlags, Family, Part, SetFlags, SnapshotTable};

/// A listing as libnftables' JSON, created by [`Listing::json`]. `Display` writes one line in nft's layout;
/// `Serialize` supports any format.
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
/// The [`Options`] `stateless` and `terse` have the same effect as for `nft -j`: counter values in rules and sets are
/// omitted, those of stateful objects are not. Handles are always written.
///
/// The output is that of nft in the version of [`Options::nft_version`], byte for byte, except:
///
/// - `metainfo` has the name and version of this crate, or those set by [`in_place_of`](Self::in_place_of);
///   `json_schema_version` is 1.
/// - Some properties are written that nft 1.0.6 omits: `dev` and `comment` of chains, `comment` of tables, `dynamic`
///   among the `flags` of sets, `auto-merge`, all statements of an element, a window scale of 0, the `level` of
///   `socket cgroupv2`; and `flags` of tables are words. nft reads or rejects these.
/// - Numbers of expressions above 2^63 - 1 are strings of digits. nft writes negative numbers, and reads them back as
///   different ones. Counters are negative, because nft writes and reads them so.
/// - A timeout of less than a second is written as 1, because 0 would mean "never".
/// - Elements that a rule adds to a map are `{"map": {"op", "elem", "data", "map"}}`, as in nft 1.1; a jump to
///   an anonymous chain is `{"jump": {"rules": [{"expr": [..]}]}}`. nft 1.0.6 writes strings for both, which it
///   cannot read.
/// - Types of keys and data that have no length of their own are `{"typeof": EXPRESSION}`, as the types of keys in
///   newer versions.
/// - A rule that nft's language cannot represent is a list of `{"opaque": INSTRUCTION}`. So is anything that would be
///   read as something else, such as a name that begins with `@`, and the elements of a set if one of them cannot be
///   represented. Nothing else has such an object, and nft rejects it.
#[derive(Debug, Clone, Copy)]
pub struct Json<'s> {
    listing: Listing<'s>,
    metainfo: Metainfo<'s>,
}

impl<'s> Listing<'s> {
    /// Returns the listing as libnftables' JSON.
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
    /// Sets the version and release name in `metainfo`, for a program that replaces another one and whose readers may
    /// check them.
    #[must_use]
    pub const fn in_place_of(mut self, version: &'s str, release_name: &'s str) -> Self {
        self.metainfo.version = version;
        self.metainfo.release_name = release_name;
        self
    }
}

/// Object with one key.
#[derive(Debug)]
pub(crate) struct Tagged<T>(pub(crate) &'static str, pub(crate) T);

impl<T: Serialize> Serialize for Tagged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &self.1)?;
        map.end()
    }
}

/// Writer from syntax trees to JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'o> {
    pub(crate) options: &'o Options,
    /// Family of the table.
    pub(crate) family: Family,
    /// Whether to omit counter values and similar state.
    pub(crate) stateless: bool,
}

/// Program that wrote the document.
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
            ..
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
    /// Writes names of flags; `None` if there are none.
    pub(crate) fn flags(self, words: Vec<&'static str>) -> Option<Expression<'static>> {
        let words: Vec<_> = words.into_iter().map(Expression::word).collect();
        match self.options.has(Form::JsonFlags) && !words.is_empty() {
            true => Some(Expression::List(words)),
            false => Expression::one_or_many(words),
        }
    }

    /// Passes the objects of a table's part to `take`, in nft's order: rules after all chains.
    fn objects<E>(
        self,
        table: &SnapshotTable<'o>,
        part: Part<'_>,
        take: &mut impl FnMut(Object<'o>) -> Result<(), E>,
    ) -> Result<(), E> {
        if matches!(part, Part::All | Part::Tables) {
            take(self.table(&table.table()))?;
        }
        let chains = || {
            table.chains().filter(|chain| {
                let view = chain.chain();
                let flags = view.flags().unwrap_or_default();
                !flags.contains(ChainFlags::BINDING) && part.has_chain(&view)
            })
        };
        let has_chains_first = self.options.has(Form::JsonChainsFirst);
        if has_chains_first {
            for chain in chains() {
                take(self.chain(&chain.chain()))?;
            }
        }
        for object in table.objects().filter(|object| part.has_object(object)) {
            take(self.object(&object))?;
        }
        for set in table.sets() {
            let view = set.set();
            let flags = view.flags().unwrap_or_default();
            if !flags.contains(SetFlags::ANONYMOUS) && is_in(part, &view, self.options.nft_version)
            {
                take(self.set(&set))?;
            }
        }
        for flowtable in table.flowtables().filter(|each| part.has_flowtable(each)) {
            take(self.flowtable(&flowtable))?;
        }
        if !has_chains_first {
            for chain in chains() {
                take(self.chain(&chain.chain()))?;
            }
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

    /// Most kernels are built without DCCP options, so there is no reference listing. The test checks that JSON
    /// compiles like the text, and is written as it was read.
    #[test]
    fn dccp_options_round_trip_through_json() {
        let mut nft = FakeKernel::new().connect().unwrap();
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::INET, "t")).unwrap();
        nft.commit(&tx).unwrap();
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let table = snapshot.tables().next().unwrap();
        let sent = |script: Script| {
            let change = script.transaction(None).unwrap();
            let sent = change.transaction().datagram(<[u8]>::to_vec);
            let (_, rest) = Message::split(&sent).unwrap(); // begin of the batch
            Message::split(rest).unwrap().0.payload.to_vec()
        };
        for (number, is_present, words) in [(42, true, "exists"), (0, false, "missing")] {
            let option = json!({"dccp option": {"type": number}});
            let expr = json!([{"match": {"op": "==", "left": option, "right": is_present}}]);
            // With a handle, like rules from the kernel.
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
