//! `chainwright list`: rulesets in nft's language.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{Connection, Family, Scope};
use chainwright_lang::{Answer, HookListing, Options, Part, Script};

use crate::output::{Error, Exit, Output, note};

/// List in nft's language, as `nft list` does
///
/// What is listed is named as nft has it:
///
///   ruleset [FAMILY]
///   tables [FAMILY] | table [FAMILY] TABLE
///   chains, sets, maps, meters, flowtables, counters, quotas, limits, synproxys, secmarks, tunnels [FAMILY]
///   ct helpers, ct timeouts, ct expectations [FAMILY]
///   any of these with: table [FAMILY] TABLE
///   chain, set, map, meter, flowtable, counter, quota, limit, synproxy, secmark, tunnel, ct helper, ct timeout, ct expectation [FAMILY] TABLE NAME
///   hooks [FAMILY] [device DEVICE]: all that the kernel calls there, chains or not
///
/// FAMILY is ip where nothing else is said of one table, and all of them where there may be many. It is what
/// nft 1.0.6 prints, but for what that version writes of a rule and would read back as another. A rule that nft has
/// no words for is a comment with its instructions; in JSON it is an object that nft refuses.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to list
    #[arg(value_name = "WHAT", default_value = "ruleset")]
    what: Vec<OsString>,

    #[command(flatten)]
    format: Format,

    /// As libnftables' JSON, which `nft -j` writes: what `--json` says, too
    #[arg(short = 'j')]
    libnftables_json: bool,
}

/// How it is written: as nft has it.
#[derive(clap::Args)]
pub(crate) struct Format {
    /// With the handles that the kernel gave
    #[arg(short = 'a', long, alias = "handle")]
    pub(crate) handles: bool,

    /// Without the numbers of counters and the like
    #[arg(short = 's', long)]
    stateless: bool,

    /// Without the elements of sets
    #[arg(short = 't', long)]
    terse: bool,

    /// All that has a name as a number: priorities, protocols, times in seconds, and every other value
    #[arg(short = 'n', long)]
    numeric: bool,

    /// Priorities of chains as numbers
    #[arg(short = 'y', long)]
    numeric_priority: bool,

    /// Protocols above IP as numbers
    #[arg(short = 'p', long)]
    numeric_protocol: bool,

    /// Times as seconds
    #[arg(short = 'T', long)]
    numeric_time: bool,

    /// Users and groups by their names
    #[arg(short = 'u', long)]
    guid: bool,

    /// Ports by the names that /etc/services has for them
    #[arg(short = 'S', long)]
    service: bool,
}

impl Format {
    /// With the names that there are here.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::here_when_needed();
        options.handles = self.handles;
        options.stateless = self.stateless;
        options.terse = self.terse;
        options.numeric_priority = self.numeric_priority;
        options.numeric_protocol = self.numeric_protocol;
        options.numeric_time = self.numeric_time;
        if self.numeric {
            options = options.numeric();
        }
        if self.guid {
            options = options.with_accounts();
        }
        if self.service {
            options = options.with_services();
        }
        options
    }
}

/// What was asked for.
struct Asked<'a> {
    family: Family,
    table: Option<&'a [u8]>,
    part: Part<'a>,
}

/// `list hooks`: what is no ruleset.
fn hooks(args: &Args, json: bool) -> Result<Exit, Error> {
    if json || args.libnftables_json {
        let why = "list hooks has no form in JSON";
        return Err(Error::Other(why.to_owned()));
    }
    let words = args.what.join(OsStr::new(" "));
    let text = [&b"list "[..], words.as_bytes()].concat();
    let script =
        Script::parse("arguments", text).map_err(|error| Error::Other(error.to_string()))?;
    let mut out = Output::new();
    let mut nft = Connection::open()?;
    for (family, device) in script.questions().filter_map(|question| question.hooks()) {
        write!(out, "{}", HookListing::read(&mut nft, family, device)?)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    if args.what.first().is_some_and(|word| word == "hooks") {
        return hooks(args, json);
    }
    let asked = asked(&args.what)?;
    let scope = Scope {
        family: asked.family,
        table: asked.table.map(Into::into),
    };
    let options = args.format.options();
    let mut nft = Connection::open_to_look()?;
    let answer = Answer::read(&mut nft, &scope, asked.part, &options)?;
    let listing = answer.listing(&options);
    if asked.table.is_some() && listing.is_empty() {
        note("there is no such table, or nothing of this name in it");
        return Ok(Exit::Absent);
    }
    let mut out = Output::new();
    match json || args.libnftables_json {
        true => writeln!(out, "{}", listing.json())?,
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
    // `counters table ip t`
    let of_table = kind != "table" && words.next_if(|word| *word == "table").is_some();
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
        of_many if of_table => {
            // nft has no plural of some.
            let part = many(of_many).or_else(|| Some(Part::Objects(object(of_many)?)));
            let part =
                part.ok_or_else(|| wrong("it is one of a table, and has a name of its own"))?;
            (Some(name("table")?), part)
        }
        "ruleset" => (None, Part::All),
        "tables" => (None, Part::Tables),
        "table" => (Some(name("table")?), Part::All),
        "chain" => (Some(name("table")?), Part::Chain(name("chain")?)),
        "set" => (Some(name("table")?), Part::Set(name("set")?)),
        "map" => (Some(name("table")?), Part::Map(name("map")?)),
        "meter" => (Some(name("table")?), Part::Meter(name("meter")?)),
        "flowtable" => (Some(name("table")?), Part::Flowtable(name("flowtable")?)),
        other => match (object(other), many(other)) {
            (Some(object), _) => (Some(name("table")?), Part::Object(object, name("object")?)),
            (None, Some(part)) => (None, part),
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

/// All of a kind.
fn many(word: &str) -> Option<Part<'static>> {
    Some(match word {
        "chains" => Part::Chains,
        "sets" => Part::Sets,
        "maps" => Part::Maps,
        "meters" => Part::Meters,
        "flowtables" => Part::Flowtables,
        other => Part::Objects(other.strip_suffix('s').and_then(object)?),
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
        "tunnel" => ObjectType::TUNNEL,
        "ct helper" => ObjectType::CT_HELPER,
        "ct timeout" => ObjectType::CT_TIMEOUT,
        "ct expectation" => ObjectType::CT_EXPECT,
        _ => return None,
    })
}
