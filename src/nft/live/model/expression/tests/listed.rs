//! Rulesets of real tools: what the kernel lists of them is taken, and listed in the same way.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use bstr::{BStr, BString};
use chainwright_sys::nf_tables::{NFTA_RULE_EXPRESSIONS, NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS};

use super::super::errors::ENOENT;
use super::super::{Around, ChainFacts, SetFacts, take_list};
use super::{at_rest, hex};
use crate::errno::Errno;
use crate::netlink::Attributes;
use crate::netns::Sandbox;
use crate::nft::expr::{Expressions, ObjectType};
use crate::nft::{Connection, DataType, Family, Scope, SetFlags};

/// A table that was listed. What its rules refer to is there.
struct Listed<'l> {
    family: Family,
    table: &'l BStr,
    sets: &'l BTreeMap<(Family, BString, BString), SetFacts>,
}

impl Around for Listed<'_> {
    fn family(&self) -> Family {
        self.family
    }
    fn set(&mut self, name: &BStr, _: Option<u32>) -> Result<SetFacts, Errno> {
        let key = (self.family, self.table.into(), name.into());
        self.sets.get(&key).cloned().ok_or(ENOENT)
    }
    fn chain(&mut self, name: Option<&BStr>, _: Option<u32>) -> Result<ChainFacts, Errno> {
        Ok(ChainFacts {
            name: name.ok_or(ENOENT)?.into(),
            ..ChainFacts::default()
        })
    }
    fn object(&mut self, _: ObjectType, _: &BStr) -> Result<(), Errno> {
        Ok(())
    }
    fn flowtable(&mut self, _: &BStr) -> Result<(), Errno> {
        Ok(())
    }
}

fn sets(connection: &mut Connection) -> BTreeMap<(Family, BString, BString), SetFacts> {
    let mut found = BTreeMap::new();
    let mut sets = connection.sets(Scope::all()).unwrap();
    while let Some(set) = sets.next().unwrap() {
        let flags = set.flags().unwrap_or_default();
        let mut expressions = Vec::new();
        if let Some(one) = set.attributes().find(NFTA_SET_EXPR) {
            expressions.push(one.to_vec());
        }
        if let Some(list) = set.attributes().find(NFTA_SET_EXPRESSIONS) {
            let list = Attributes::new(list).map(Result::unwrap);
            expressions.extend(list.map(|one| one.payload.to_vec()));
        }
        let facts = SetFacts {
            name: set.name().into(),
            flags,
            key_length: set.key_length().unwrap_or(0),
            maps_to_verdicts: set.data_type() == Some(DataType::VERDICT),
            data_length: set.data_length().unwrap_or(0),
            is_bound: false,
            // A rule that adds to it is listed only if it can.
            can_be_updated: !flags.contains(SetFlags::INTERVAL),
            expressions,
        };
        found.insert((set.family(), set.table().into(), set.name().into()), facts);
    }
    found
}

/// Runs a tool that reads a file; whether it succeeded.
fn load(tool: &str, arguments: &[&str], file: &Path) -> bool {
    let input = std::fs::File::open(file).unwrap();
    let output = Command::new(tool).args(arguments).stdin(input).output();
    output
        .unwrap_or_else(|error| panic!("{tool}, which has to be installed: {error}"))
        .status
        .success()
}

#[test]
fn what_real_tools_write_is_listed_as_the_kernel_lists_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = Vec::new();
    for directory in ["rulesets", "data", "data/encodings"] {
        let entries = std::fs::read_dir(root.join(directory)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.sort();
    let (mut loaded, mut compared) = (0, 0);
    let mut differences = Vec::new();
    for file in files {
        let sandbox = Sandbox::new().unwrap();
        let worked = sandbox.run(|| {
            let is_loaded = match file.extension().and_then(|extension| extension.to_str()) {
                Some("nft") => load("nft", &["-f", "-"], &file),
                Some("save") => load("iptables-nft-restore", &[], &file),
                _ => false,
            };
            loaded += usize::from(is_loaded);
            let mut connection = Connection::open().unwrap();
            let sets = sets(&mut connection);
            let mut rules = connection.rules(Scope::all()).unwrap();
            while let Some(rule) = rules.next().unwrap() {
                let list = rule
                    .attributes()
                    .find(NFTA_RULE_EXPRESSIONS)
                    .unwrap_or_default();
                let listed = Expressions::of_bytes(list);
                let request = listed.to_request().unwrap_or_else(|| listed.clone());
                let mut around = Listed {
                    family: rule.family(),
                    table: rule.table(),
                    sets: &sets,
                };
                let ours = take_list(request.as_bytes(), &mut around).map(|taken| taken.listed);
                compared += 1;
                if ours.clone().map(at_rest) != Ok(at_rest(list.to_vec())) {
                    differences.push(format!(
                        "{}: {listed:?}\n  kernel {}\n  model  {}",
                        file.display(),
                        hex(list),
                        ours.map_or_else(|errno| errno.name(), |listed| hex(&listed)),
                    ));
                }
            }
        });
        worked.unwrap();
    }
    assert!(
        loaded > 80 && compared > 2000,
        "{loaded} files, {compared} rules"
    );
    let differences = differences.join("\n");
    assert!(differences.is_empty(), "of {compared}:\n{differences}");
}
