//! `chainwright get ruleset`: rulesets in nft's language.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{Connection, Family, Scope};
use chainwright_lang::{HookListing, Options, Part, QueryResult, Script};

use crate::dialect;
use crate::get::ruleset::Args;
use crate::output::{Error, Exit, Output, note};

/// Format options, the same as nft's.
#[derive(Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Format {
    /// Show the handles assigned by the kernel
    #[arg(short = 'a', long, alias = "handle")]
    pub(crate) handles: bool,

    /// Omit the state of stateful objects, such as counters
    #[arg(short = 's', long)]
    stateless: bool,

    /// Omit the elements of sets
    #[arg(short = 't', long)]
    terse: bool,

    /// Show all named values as numbers: priorities, protocols, times (in seconds), and all others
    #[arg(short = 'n', long)]
    numeric: bool,

    /// Show priorities of chains as numbers
    #[arg(short = 'y', long)]
    numeric_priority: bool,

    /// Show protocols above IP as numbers
    #[arg(short = 'p', long)]
    numeric_protocol: bool,

    /// Show times in seconds
    #[arg(short = 'T', long)]
    numeric_time: bool,

    /// Show users and groups by name
    #[arg(short = 'u', long)]
    guid: bool,

    /// Show ports by their names in /etc/services
    #[arg(short = 'S', long)]
    service: bool,
}

impl Format {
    /// Returns the options, with names from this machine.
    pub(crate) fn options(&self) -> Options {
        let mut options = dialect::of_selected(Options::interfaces_when_needed());
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

/// The requested objects.
struct Target<'a> {
    family: Family,
    table: Option<&'a [u8]>,
    part: Part<'a>,
}

/// Runs `list hooks`, which lists no ruleset.
fn hooks(args: &Args, json: bool) -> Result<Exit, Error> {
    if json {
        let reason = "list hooks has no JSON output";
        return Err(Error::Other(reason.to_owned()));
    }
    let words = args.what.join(OsStr::new(" "));
    let text = [&b"list "[..], words.as_bytes()].concat();
    let script =
        Script::parse("arguments", text).map_err(|error| Error::Other(error.to_string()))?;
    let mut out = Output::new();
    let mut nft = Connection::open()?;
    for (family, device) in script.queries().filter_map(|query| query.hooks()) {
        write!(out, "{}", HookListing::read(&mut nft, family, device)?)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Prints what `args` select in nft's language, or as libnftables' JSON.
pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope
        .place
        .only_nft("nft's language only describes nf_tables: use -o iptables")?;
    let what = &args.what;
    if what.first().is_some_and(|word| word == "hooks") {
        return hooks(args, json);
    }
    let (scope, part) = match what.is_empty() {
        true => (args.scope.filter(), Part::All),
        false if args.scope.is_filtered() => {
            return Err(Error::Other(
                "select tables either by WHAT, or by options".into(),
            ));
        }
        false => {
            let target = target(what)?;
            let scope = Scope {
                family: target.family,
                table: target.table.map(Into::into),
            };
            (scope, target.part)
        }
    };
    let options = args.format.options();
    let mut nft = Connection::open_if_loaded()?;
    let answer = QueryResult::read(&mut nft, &scope, part, &options)?;
    let listing = answer.listing(&options);
    if scope.table.is_some() && listing.is_empty() {
        note("no such table, or it has no object of this name");
        return Ok(Exit::Absent);
    }
    let mut out = Output::new();
    match json {
        true => writeln!(out, "{}", listing.json())?,
        false => write!(out, "{listing}")?,
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Parses the arguments.
fn target(what: &[OsString]) -> Result<Target<'_>, Error> {
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
        .and_then(|word| word.to_str()?.parse::<Family>().ok());
    if family.is_some() {
        words.next();
    }
    let wrong = |reason: &str| Error::Other(format!("list {kind}: {reason}; see --help"));
    let mut name = |what: &str| {
        let word = words.next().map(OsStr::as_bytes);
        word.ok_or_else(|| wrong(&format!("missing {what} name")))
    };
    let (table, part) = match &kind[..] {
        of_many if of_table => {
            // nft has no plural for some kinds.
            let part = many(of_many).or_else(|| Some(Part::Objects(object(of_many)?)));
            let part = part.ok_or_else(|| {
                wrong("expected an object type that has a plural, for example `chains`")
            })?;
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
            (None, None) => return Err(wrong("unknown object type")),
        },
    };
    if let Some(more) = words.next() {
        return Err(wrong(&format!(
            "unexpected argument {:?}",
            more.as_bytes().as_bstr()
        )));
    }
    let family = family.unwrap_or(match table {
        Some(_) => Family::IP,
        None => Family::UNSPEC,
    });
    Ok(Target {
        family,
        table,
        part,
    })
}

/// Returns all objects of a kind.
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

/// Returns the type of stateful objects with this name in nft.
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
