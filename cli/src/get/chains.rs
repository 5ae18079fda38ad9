//! `chainwright get chains`: lists chains, one per line.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};

use bstr::BStr;
use chainwright::Retry;
use chainwright::legacy;
use chainwright::netlink;
use chainwright::nft::{self, ChainRef, Connection, Hook, List, hook_name};
use serde::Serialize;

use super::{ListFormat, ListOutput};
use crate::glob::Names;
use crate::legacy_tables::{self, family_name};
use crate::output::{Error, Exit, Output, Printable, Rows, name_text};
use crate::scope::{Found, Scope};

/// List chains, one per line
///
/// Prints backend, family, table and name; for a base chain also type, hook, priority and policy. -o wide adds what
/// the kernel reports besides: the counters of a policy, the number of references (rules of the chain, and jumps to
/// it), the handle and the comment.
///
/// The listing shows one generation of the ruleset. If the ruleset changes meanwhile, it is read again. If it keeps
/// changing, the chains are listed anyway, standard error warns that the listing may be inconsistent, and the exit code
/// is 2.
///
/// Names without a pattern are looked up in each table of nf_tables, in time independent of the number of chains.
///
/// Bytes in names that are not UTF-8 are shown as U+FFFD.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    names: Names,

    /// Show the number of rules of each chain
    #[arg(long)]
    rules: bool,

    #[command(flatten)]
    output: ListOutput,

    #[command(flatten)]
    scope: Scope,
}

impl Args {
    /// Returns `true` if a chain's name matches.
    fn admits(&self, chain: &BStr) -> bool {
        self.names.admits(chain)
    }

    fn is_filtered(&self) -> bool {
        self.scope.is_filtered() || !self.names.is_empty()
    }
}

/// A listed chain, as text (`Display`) and JSON.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    backend: &'static str,
    family: Cow<'static, str>,
    table: Cow<'a, str>,
    chain: Cow<'a, str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    chain_type: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<u32>,
    /// The counters of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<Cow<'a, str>>,
}

impl<'a> Line<'a> {
    pub(crate) fn nft(chain: &ChainRef<'a>, rules: Option<usize>) -> Self {
        let family = chain.family();
        let named = |name: Option<&'static str>, number: &dyn fmt::Display| match name {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(number.to_string()),
        };
        let hook = chain.hook();
        let hook = hook.as_ref();
        let counters = chain.counters();
        Self {
            backend: "nft",
            family: named(family.name(), &family),
            table: name_text(chain.table()),
            chain: name_text(chain.name()),
            chain_type: chain.chain_type().map(|name| name_text(name)),
            hook: hook
                .and_then(|hook| hook.number)
                .map(|number| named(hook_name(family, number), &number)),
            priority: hook.and_then(|hook| hook.priority),
            devices: hook.map(devices).unwrap_or_default(),
            policy: chain.policy().map(|policy| named(policy.name(), &policy)),
            rules,
            handle: Some(chain.handle()),
            references: chain.references(),
            packets: counters.as_ref().and_then(|counters| counters.packets),
            bytes: counters.as_ref().and_then(|counters| counters.bytes),
            comment: chain.comment().map(|comment| name_text(comment)),
        }
    }

    fn into_owned(self) -> Line<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        Line {
            backend: self.backend,
            family: self.family,
            table: owned(self.table),
            chain: owned(self.chain),
            chain_type: self.chain_type.map(owned),
            comment: self.comment.map(owned),
            hook: self.hook,
            priority: self.priority,
            devices: self.devices,
            policy: self.policy,
            rules: self.rules,
            handle: self.handle,
            references: self.references,
            packets: self.packets,
            bytes: self.bytes,
        }
    }

    pub(crate) fn legacy(chain: &legacy::ChainRef<'a>, rules: bool) -> Self {
        let lower = |text: &'static str| Cow::Owned(text.to_ascii_lowercase());
        let counters = chain.builtin().map(|builtin| builtin.counters);
        Self {
            backend: "legacy",
            family: Cow::Borrowed(family_name(chain.table().family())),
            table: name_text(chain.table().name().as_ref()),
            chain: name_text(chain.name()),
            chain_type: None,
            hook: chain.hook().map(|hook| lower(hook.chain_name())),
            priority: None,
            devices: Vec::new(),
            policy: chain.policy().map(|policy| lower(policy.name())),
            rules: rules.then(|| chain.rule_count()),
            handle: None,
            references: None,
            packets: counters.map(|counters| counters.packets),
            bytes: counters.map(|counters| counters.bytes),
            comment: None,
        }
    }
}

/// Returns the devices of a netdev chain. Newer kernels list all of them, older ones only a single one.
pub(crate) fn devices(hook: &Hook<'_>) -> Vec<String> {
    match (&hook.devices, &hook.device) {
        (Some(list), _) => list.iter().map(|device| device.to_string()).collect(),
        (None, Some(device)) => vec![device.to_string()],
        (None, None) => Vec::new(),
    }
}

impl fmt::Display for Line<'_> {
    /// Formats the line; with `#` the wide one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:6} {:6} {:8} ",
            self.backend,
            self.family,
            Printable(&self.table)
        )?;
        // The last column is not padded, so that lines have no trailing spaces.
        let chain = Printable(&self.chain);
        let is_wide = f.alternate();
        let has_more = is_wide && (self.handle.is_some() || self.packets.is_some());
        if self.rules.is_some() || self.hook.is_some() || has_more {
            write!(f, "{chain:28}")?;
        } else {
            write!(f, "{chain}")?;
        }
        if let Some(rules) = self.rules {
            let plural = if rules == 1 { "" } else { "s" };
            write!(f, " {rules:6} rule{plural}")?;
            if rules == 1 && self.hook.is_some() {
                f.write_str(" ")?;
            }
        }
        if let Some(chain_type) = &self.chain_type {
            write!(f, " type {}", Printable(chain_type))?;
        }
        if let Some(hook) = &self.hook {
            write!(f, " hook {hook}")?;
        }
        for device in &self.devices {
            write!(f, " device {}", Printable(device))?;
        }
        if let Some(priority) = self.priority {
            write!(f, " priority {priority}")?;
        }
        if let Some(policy) = &self.policy {
            write!(f, " policy {policy}")?;
        }
        if !is_wide {
            return Ok(());
        }
        if let (Some(packets), Some(bytes)) = (self.packets, self.bytes) {
            write!(f, " packets {packets} bytes {bytes}")?;
        }
        if let Some(references) = self.references {
            write!(f, " references {references}")?;
        }
        if let Some(handle) = self.handle {
            write!(f, " handle {handle}")?;
        }
        if let Some(comment) = &self.comment {
            write!(f, " comment \"{}\"", Printable(comment))?;
        }
        Ok(())
    }
}

/// The note on chains that are not of one generation.
const INCONSISTENT: &str = "the ruleset kept changing while it was listed: these chains are not from one generation, \
                            so some may be missing, stale or listed twice";

/// A callback that receives the chains one by one.
type ChainCallback<'e> = dyn FnMut(&Line<'_>) -> Result<(), Error> + 'e;

/// Prints the line of a chain as text.
pub(super) fn print_line(
    out: &mut Output,
    line: &Line<'_>,
    format: ListFormat,
) -> Result<(), Error> {
    match format {
        ListFormat::Name => writeln!(out, "{}", Printable(&line.chain)),
        ListFormat::Wide => writeln!(out, "{line:#}"),
        _ => writeln!(out, "{line}"),
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    let mut out = Output::new();
    let mut any = false;
    let format = args.output.format(json);
    let json = format == ListFormat::Json;
    let mut rows = json.then(|| Rows::new("chains", "chains"));
    let found = list(args, &mut |line| {
        any = true;
        match &mut rows {
            Some(rows) => rows.add(&mut out, line),
            None => print_line(&mut out, line, format),
        }
    });
    if let Some(rows) = rows {
        let rest = found.as_ref().ok();
        let rest = rest.map(|found| ("not_read", &found.not_read));
        rows.end(&mut out, found.is_ok(), rest)?;
    }
    // Prints the chains found before an error before the error itself.
    out.flush()?;
    let backend = args.scope.place.listed();
    Ok(found?.end(any, "chain", args.is_filtered(), backend, json))
}

/// Lists the chains of the calling thread's network namespace.
fn list(args: &Args, each: &mut ChainCallback<'_>) -> Result<Found, Error> {
    let mut found = Found::default();
    found.nft(args.scope.place.listed(), || {
        Ok(((), list_nft(args, each)?))
    })?;
    legacy_tables::read_selected(&args.scope, &mut found, &mut |table| {
        let chains = table.chains();
        chains
            .filter(|chain| args.admits(chain.name()))
            .try_for_each(|chain| each(&Line::legacy(&chain, args.rules)))
    })?;
    Ok(found)
}

/// Maximum time for which a listing that changes interrupt is restarted, before it is shown inconsistently.
const RETRY_LIMIT: Duration = Duration::from_secs(5);

/// Lists the chains of nf_tables. Returns a note if they are not of one generation.
fn list_nft(args: &Args, each: &mut ChainCallback<'_>) -> Result<Option<String>, Error> {
    let mut nft = Connection::open_if_loaded()?.with_retry(Retry::within(RETRY_LIMIT));
    if let Some(names) = args.names.exact() {
        return look_up(args, &mut nft, &names, each);
    }
    let mut chains = List::new(args.scope.filter());
    let start = Instant::now();
    loop {
        let rules = match read(args, &mut nft, &mut chains) {
            Ok(rules) => rules,
            Err(error) if error.is_retryable() && start.elapsed() < RETRY_LIMIT => continue,
            Err(error) if error.is_retryable() => break,
            Err(error) => return Err(error.into()),
        };
        let mut rules = rules.into_iter();
        for chain in chains.iter().filter(|chain| args.admits(chain.name())) {
            each(&Line::nft(&chain, rules.next()))?;
        }
        return Ok(None);
    }
    stream(args, &mut nft, each)
}

/// Looks up these chains in each selected table. Returns a note if they are not of one generation.
fn look_up(
    args: &Args,
    nft: &mut Connection,
    names: &[&[u8]],
    each: &mut ChainCallback<'_>,
) -> Result<Option<String>, Error> {
    // A chain borrows its connection while the other counts its rules.
    let mut counting = Connection::open()?;
    let mut tables = List::<nft::Table<'_>>::new(args.scope.filter());
    let start = Instant::now();
    loop {
        let before = nft.stable_generation()?;
        tables.refresh(nft)?;
        let mut is_consistent = true;
        let mut lines = Vec::new();
        for table in tables.iter() {
            for name in names {
                let Some(chain) = nft.chain(table.family(), table.name(), *name)? else {
                    continue;
                };
                let rules = match args.rules.then(|| counting.rule_count(&chain)).transpose() {
                    Err(error) if error.is_retryable() => {
                        is_consistent = false;
                        None
                    }
                    rules => rules?,
                };
                lines.push(Line::nft(&chain, rules).into_owned());
            }
        }
        is_consistent &= nft.generation()? == before;
        if is_consistent || start.elapsed() > RETRY_LIMIT {
            lines.iter().try_for_each(&mut *each)?;
            return Ok((!is_consistent).then(|| INCONSISTENT.to_owned()));
        }
    }
}

/// Reads the chains and, if requested, counts the rules of those that match. Returns
/// [`Interrupted`](netlink::Error::Interrupted) if these are not of one generation.
fn read(
    args: &Args,
    nft: &mut Connection,
    chains: &mut List<nft::Chain<'static>>,
) -> Result<Vec<usize>, netlink::Error> {
    chains.refresh(nft)?;
    let mut rules = Vec::new();
    if args.rules {
        for chain in chains.iter().filter(|chain| args.admits(chain.name())) {
            rules.push(nft.rule_count(&chain)?);
        }
        if Some(nft.generation()?) != chains.generation() {
            return Err(netlink::Error::Interrupted);
        }
    }
    Ok(rules)
}

/// Lists the chains as they arrive, regardless of changes.
fn stream(
    args: &Args,
    nft: &mut Connection,
    each: &mut ChainCallback<'_>,
) -> Result<Option<String>, Error> {
    // The first connection is receiving the chains.
    let mut counting = args.rules.then(Connection::open).transpose()?;
    let before = nft.stable_generation()?;
    let mut chains = nft.chains(args.scope.filter())?;
    let is_inconsistent = loop {
        let chain = match chains.try_next() {
            Ok(Some(chain)) => chain,
            Ok(None) => break false,
            Err(netlink::Error::Interrupted) => break true,
            Err(error) => return Err(error.into()),
        };
        if !args.admits(chain.name()) {
            continue;
        }
        let rules = match &mut counting {
            None => None,
            Some(counting) => match counting.rule_count(&chain) {
                Ok(count) => Some(count),
                Err(netlink::Error::Interrupted) => None,
                Err(error) => return Err(error.into()),
            },
        };
        each(&Line::nft(&chain, rules))?;
    };
    drop(chains);
    let is_inconsistent = is_inconsistent || nft.generation()? != before;
    Ok(is_inconsistent.then(|| INCONSISTENT.to_owned()))
}
