//! `chainwright list`: rulesets in nft's language.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{Connection, Family, Scope};
use chainwright::text::{Listing, Options, Part};

use crate::output::{Error, Exit, Output, note};

/// List in nft's language, as `nft list` does
///
/// What is listed is named as nft has it:
///
///   ruleset [FAMILY]
///   tables [FAMILY] | table [FAMILY] TABLE
///   chains, sets, maps, flowtables, counters, quotas, limits, synproxys [FAMILY]
///   chain, set, map, flowtable, counter, quota, limit, synproxy, ct helper, ct timeout, ct expectation [FAMILY] TABLE NAME
///
/// FAMILY is ip where nothing else is said of one table, and all of them where there may be many. It is what
/// nft 1.0.6 prints, but for what that version writes of a rule and would read back as another. A rule that nft has
/// no words for is a comment with its instructions; in JSON it is an object that nft refuses.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to list
    #[arg(value_name = "WHAT", default_value = "ruleset")]
    what: Vec<OsString>,

    /// With the handles that the kernel gave
    #[arg(short = 'a', long)]
    handles: bool,

    /// Without the numbers of counters and the like
    #[arg(short = 's', long)]
    stateless: bool,

    /// Without the elements of sets
    #[arg(short = 't', long)]
    terse: bool,

    /// As libnftables' JSON, which `nft -j` writes: what `--json` says, too
    #[arg(short = 'j')]
    libnftables_json: bool,
}

/// What was asked for.
struct Asked<'a> {
    family: Family,
    table: Option<&'a [u8]>,
    part: Part<'a>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let asked = asked(&args.what)?;
    let scope = Scope {
        family: asked.family,
        table: asked.table.map(Into::into),
    };
    let snapshot = Connection::open_to_look()?.snapshot(scope)?;
    let mut options = Options::here();
    options.handles = args.handles;
    options.stateless = args.stateless;
    options.terse = args.terse;
    let listing = Listing::new(&snapshot, &options).part(asked.part);
    if asked.table.is_some() && listing.is_empty() {
        note("there is no such table, or nothing of this name in it");
        return Ok(Exit::Absent);
    }
    let mut out = Output::new();
    match json || args.libnftables_json {
        true => {
            out.value(&listing.json())?;
            writeln!(out)?;
        }
        false => write!(out, "{listing}")?,
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Reads the words.
fn asked(what: &[OsString]) -> Result<Asked<'_>, Error> {
    let mut words = what.iter().map(|word| word.as_os_str()).peekable();
    let first = words.next().unwrap_or(OsStr::new("ruleset"));
    let mut kind = first.to_string_lossy().into_owned();
    if kind == "ct" {
        let second = words.next().unwrap_or_default();
        kind = format!("ct {}", second.to_string_lossy());
    }
    let family = words
        .peek()
        .and_then(|word| Family::from_name(word.to_str()?));
    if family.is_some() {
        words.next();
    }
    let wrong = |why: &str| Error::Other(format!("list {kind}: {why}; see --help"));
    let mut name = |what: &str| {
        let word = words.next().map(OsStr::as_bytes);
        word.ok_or_else(|| wrong(&format!("the {what}'s name is missing")))
    };
    let (table, part) = match &kind[..] {
        "ruleset" => (None, Part::All),
        "tables" => (None, Part::Tables),
        "chains" => (None, Part::Chains),
        "sets" => (None, Part::Sets),
        "maps" => (None, Part::Maps),
        "flowtables" => (None, Part::Flowtables),
        "table" => (Some(name("table")?), Part::All),
        "chain" => (Some(name("table")?), Part::Chain(name("chain")?)),
        "set" => (Some(name("table")?), Part::Set(name("set")?)),
        "map" => (Some(name("table")?), Part::Map(name("map")?)),
        "flowtable" => (Some(name("table")?), Part::Flowtable(name("flowtable")?)),
        other => match (object(other), other.strip_suffix('s').and_then(object)) {
            (Some(object), _) => (Some(name("table")?), Part::Object(object, name("object")?)),
            (None, Some(objects)) => (None, Part::Objects(objects)),
            (None, None) => return Err(wrong("there is nothing of this kind")),
        },
    };
    if let Some(more) = words.next() {
        return Err(wrong(&format!(
            "{:?} is more than is asked for",
            more.as_bytes().as_bstr()
        )));
    }
    let family = family.unwrap_or(match table {
        Some(_) => Family::IP,
        None => Family::UNSPEC,
    });
    Ok(Asked {
        family,
        table,
        part,
    })
}

/// The type of stateful objects that nft calls so.
fn object(word: &str) -> Option<ObjectType> {
    Some(match word {
        "counter" => ObjectType::COUNTER,
        "quota" => ObjectType::QUOTA,
        "limit" => ObjectType::LIMIT,
        "synproxy" => ObjectType::SYNPROXY,
        "secmark" => ObjectType::SECMARK,
        "ct helper" => ObjectType::CT_HELPER,
        "ct timeout" => ObjectType::CT_TIMEOUT,
        "ct expectation" => ObjectType::CT_EXPECT,
        _ => return None,
    })
}
