//! `chainwright chains`: one line a chain.

use std::borrow::Cow;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use bstr::{BStr, ByteSlice};
use chainwright::legacy::{self, Lookup};
use chainwright::netlink;
use chainwright::nft::{self, ChainRef, Connection, Hook, List, hook_name};
use clap::ValueEnum;
use serde::Serialize;

use crate::glob::Glob;
use crate::output::{Error, Exit, Output, Printable, causes, note};
use crate::scope::{Family, Scope, admits};

/// List chains, one line each
///
/// Of base chains also type, hook, priority and policy. The list is of one generation of the
/// ruleset: when a change runs across it, it is taken again, before anything is written. Only on a
/// ruleset that does not stay unchanged for as long as a look at it takes, what can be seen is
/// listed all the same, said to be so on standard error, and the exit code is 2.
///
/// With --json, one object a line. Names that are not UTF-8 have U+FFFD where they are not.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose chains: of nf_tables, of the legacy x_tables (families ip, ip6 and arp), or of both
    #[arg(long, value_enum, default_value_t = Backend::All)]
    backend: Backend,

    #[command(flatten)]
    scope: Scope,

    /// Only chains whose names match this pattern, for instance 'KUBE-S[VE][CP]-*' or
    /// '{INPUT,OUTPUT}'
    #[arg(long = "match", value_name = "GLOB")]
    pattern: Option<Glob>,

    /// Count the rules of each chain
    #[arg(long)]
    rules: bool,
}

/// Which tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// nf_tables
    Nft,
    /// the legacy x_tables
    Legacy,
    /// both
    All,
}

/// The legacy tables of a family, if it has any.
const fn legacy_family(family: Family) -> Option<legacy::Family> {
    match family {
        Family::Ip => Some(legacy::Family::Ipv4),
        Family::Ip6 => Some(legacy::Family::Ipv6),
        Family::Arp => Some(legacy::Family::Arp),
        Family::Inet | Family::Bridge | Family::Netdev => None,
    }
}

const fn legacy_name(family: legacy::Family) -> &'static str {
    match family {
        legacy::Family::Ipv4 => "ip",
        legacy::Family::Ipv6 => "ip6",
        legacy::Family::Arp => "arp",
    }
}

impl Args {
    /// What stands for `--backend BACKEND --match PATTERN --rules`.
    pub(crate) fn matching(backend: Backend, pattern: &str) -> Result<Self, Error> {
        Ok(Self {
            backend,
            scope: Scope::default(),
            pattern: Some(
                pattern
                    .parse()
                    .map_err(|error: fast_glob::Error| Error::Other(error.to_string()))?,
            ),
            rules: true,
        })
    }

    fn legacy_families(&self) -> Vec<legacy::Family> {
        match self.scope.family {
            None => legacy::Family::ALL.to_vec(),
            Some(family) => legacy_family(family).into_iter().collect(),
        }
    }

    /// Whether a chain's name matches.
    fn admits(&self, chain: &BStr) -> bool {
        admits(self.pattern.as_ref(), chain)
    }

    fn is_narrowed(&self) -> bool {
        self.scope.is_narrowed() || self.pattern.is_some()
    }
}

/// A chain, for people (`Display`) and for programs.
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
        Self {
            backend: "nft",
            family: named(family.name(), &family),
            table: chain.table().to_str_lossy(),
            chain: chain.name().to_str_lossy(),
            chain_type: chain.chain_type().map(|name| name.to_str_lossy()),
            hook: hook
                .and_then(|hook| hook.number)
                .map(|number| named(hook_name(family, number), &number)),
            priority: hook.and_then(|hook| hook.priority),
            devices: hook.map(devices).unwrap_or_default(),
            policy: chain.policy().map(|policy| named(policy.name(), &policy)),
            rules,
        }
    }

    fn legacy(chain: &legacy::ChainRef<'a>, rules: bool) -> Self {
        let lower = |text: &'static str| Cow::Owned(text.to_ascii_lowercase());
        Self {
            backend: "legacy",
            family: Cow::Borrowed(legacy_name(chain.table().family())),
            table: chain.table().name().as_bstr().to_str_lossy(),
            chain: chain.name().to_str_lossy(),
            chain_type: None,
            hook: chain.hook().map(|hook| lower(hook.chain_name())),
            priority: None,
            devices: Vec::new(),
            policy: chain.policy().map(|policy| {
                Cow::Borrowed(match policy {
                    legacy::Policy::Accept => "accept",
                    legacy::Policy::Drop => "drop",
                })
            }),
            rules: rules.then(|| chain.rule_count()),
        }
    }
}

/// The devices of a netdev chain. Newer kernels list all of them, older ones name the only one.
fn devices(hook: &Hook<'_>) -> Vec<String> {
    match (&hook.devices, &hook.device) {
        (Some(list), _) => list.iter().map(|device| device.to_string()).collect(),
        (None, Some(device)) => vec![device.to_string()],
        (None, None) => Vec::new(),
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:6} {:6} {:8} ",
            self.backend,
            self.family,
            Printable(&self.table)
        )?;
        // The last column is not padded: no line ends in blanks.
        let chain = Printable(&self.chain);
        if self.rules.is_some() || self.hook.is_some() {
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
        Ok(())
    }
}

/// What chains are given to, one at a time.
type Each<'e> = dyn FnMut(&Line<'_>) -> Result<(), Error> + 'e;

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    if args.backend == Backend::Legacy && args.legacy_families().is_empty() {
        return Err(Error::Other(
            "legacy tables have the families ip, ip6 and arp only".into(),
        ));
    }
    let mut out = Output::new();
    let mut shown = 0u64;
    let found = list(args, &mut |line| {
        shown += 1;
        if json {
            out.json(line)
        } else {
            writeln!(out, "{line}")
        }
    });
    // What was found before an error is shown before the error.
    out.flush()?;
    let found = found?;
    for said in &found.notes {
        note(said);
    }
    if !found.whole || (shown == 0 && found.hidden) {
        return Ok(Exit::Failed);
    }
    if shown > 0 {
        return Ok(Exit::Done);
    }
    if !json {
        note(match args.backend {
            _ if args.is_narrowed() => "no such chain",
            Backend::Nft => "nf_tables has no chains in this network namespace",
            Backend::Legacy => "no legacy table is in use in this network namespace",
            Backend::All => "there are no chains in this network namespace",
        });
    }
    Ok(Exit::Absent)
}

/// What else there is to be said of a listing.
#[derive(Default)]
pub(crate) struct Found {
    /// To be told to people.
    pub(crate) notes: Vec<String>,
    /// Whether it is whole, as far as could be looked, and of one generation.
    whole: bool,
    /// Whether there may be more where this process may not look.
    hidden: bool,
}

/// Lists the chains of the calling thread's network namespace.
pub(crate) fn list(args: &Args, each: &mut Each<'_>) -> Result<Found, Error> {
    let mut found = Found {
        whole: true,
        ..Found::default()
    };
    if args.backend != Backend::Legacy {
        match list_nft(args, each) {
            Ok(None) => {}
            Ok(Some(torn)) => {
                found.whole = false;
                found.notes.push(torn);
            }
            // A kernel with the legacy tables only is a good one, too.
            Err(error) if args.backend == Backend::All && error.is_nft_not_built() => {
                found
                    .notes
                    .push(format!("nf_tables not looked at: {}", causes(&error)));
            }
            Err(error) => return Err(error),
        }
    }
    if args.backend != Backend::Nft {
        list_legacy(args, each, &mut found)?;
    }
    Ok(found)
}

/// How often a listing is begun again when changes interrupt it; [`List`] itself tries several
/// times each time.
const ATTEMPTS: usize = 8;
/// After how long it is not begun again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lists the chains of nf_tables. The answer is what to say if they are not of one generation.
fn list_nft(args: &Args, each: &mut Each<'_>) -> Result<Option<String>, Error> {
    let mut nft = Connection::open_to_look()?;
    let mut chains = List::new(args.scope.filter());
    let start = Instant::now();
    for _ in 0..ATTEMPTS {
        let rules = match read(args, &mut nft, &mut chains) {
            Ok(rules) => rules,
            Err(error) if error.ask_again() && start.elapsed() < PATIENCE => continue,
            Err(error) if error.ask_again() => break,
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

/// Reads the chains and, if asked to, counts the rules of those that match: both of one
/// generation, else the answer is [`Interrupted`](netlink::Error::Interrupted).
fn read(
    args: &Args,
    nft: &mut Connection,
    chains: &mut List<nft::Chain<'static>>,
) -> Result<Vec<usize>, netlink::Error> {
    chains.refresh(nft)?;
    let mut rules = Vec::new();
    if args.rules {
        for chain in chains.iter().filter(|chain| args.admits(chain.name())) {
            rules.push(count_rules(nft, &chain)?);
        }
        if Some(nft.generation()?) != chains.generation() {
            return Err(netlink::Error::Interrupted);
        }
    }
    Ok(rules)
}

/// Counts the rules of a chain. Asking chain by chain is cheap; a listing of all rules costs the
/// kernel time that grows with the square of their number.
fn count_rules(nft: &mut Connection, chain: &ChainRef<'_>) -> Result<usize, netlink::Error> {
    let mut rules = nft.rules(nft::Filter::chain(
        chain.family(),
        chain.table(),
        chain.name(),
    ))?;
    let mut count = 0;
    while rules.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Lists the chains as they come, changes or not.
fn stream(args: &Args, nft: &mut Connection, each: &mut Each<'_>) -> Result<Option<String>, Error> {
    // The first connection is busy with the chains.
    let mut counting = args.rules.then(Connection::open).transpose()?;
    let before = nft.generation()?;
    let mut chains = nft.chains(args.scope.filter())?;
    let torn = loop {
        let chain = match chains.next() {
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
            Some(counting) => match count_rules(counting, &chain) {
                Ok(count) => Some(count),
                Err(netlink::Error::Interrupted) => None,
                Err(error) => return Err(error.into()),
            },
        };
        each(&Line::nft(&chain, rules))?;
    };
    drop(chains);
    let torn = torn || nft.generation()? != before;
    Ok(torn.then(|| {
        "the ruleset changed again and again while it was being listed: these chains are not of \
         one generation, so some may be missing, stale or listed twice"
            .to_owned()
    }))
}

/// Lists the chains of the legacy tables in use.
fn list_legacy(args: &Args, each: &mut Each<'_>, found: &mut Found) -> Result<(), Error> {
    let mut refused: Vec<legacy::Error> = Vec::new();
    for family in args.legacy_families() {
        match list_legacy_family(args, family, each)? {
            Ok(()) => {}
            Err(error) if args.backend == Backend::Legacy && !is_not_built(&error) => {
                return Err(error.into());
            }
            Err(error) => refused.push(error),
        }
    }
    if args.backend == Backend::Legacy && refused.len() == args.legacy_families().len() {
        // Not one of the families that were asked for is built into the kernel.
        if let Some(error) = refused.into_iter().next() {
            return Err(error.into());
        }
        return Ok(());
    }
    for error in &refused {
        match error {
            legacy::Error::NotBuilt { .. } => {}
            legacy::Error::NoPermission { .. } => found.hidden = true,
            _ => found.whole = false,
        }
    }
    found.notes.extend(not_looked_at(&refused));
    Ok(())
}

const fn is_not_built(error: &legacy::Error) -> bool {
    matches!(error, legacy::Error::NotBuilt { .. })
}

/// Lists the chains of one family. The inner error says why they could not be looked at, the outer
/// one that writing them failed.
fn list_legacy_family(
    args: &Args,
    family: legacy::Family,
    each: &mut Each<'_>,
) -> Result<Result<(), legacy::Error>, Error> {
    let looked = legacy::Connection::open(family)
        .and_then(|connection| connection.tables().map(|tables| (connection, tables)));
    let (connection, tables) = match looked {
        Ok(looked) => looked,
        Err(error) => return Ok(Err(error)),
    };
    let mut buffer = legacy::Table::empty(family);
    for name in tables {
        let wanted = args.scope.table.as_ref().is_none_or(|wanted| {
            let name: &[u8] = name.as_ref();
            wanted.as_bytes() == name
        });
        if !wanted {
            continue;
        }
        let table = match connection.read_into(name, &mut buffer) {
            Ok(Lookup::InUse(table)) => table,
            Ok(Lookup::NotInUse) => continue,
            Err(error) => return Ok(Err(error)),
        };
        for chain in table.chains().filter(|chain| args.admits(chain.name())) {
            each(&Line::legacy(&chain, args.rules))?;
        }
    }
    Ok(Ok(()))
}

/// Says which families of the legacy tables could not be looked at and why, one line a reason.
fn not_looked_at(refused: &[legacy::Error]) -> Vec<String> {
    let mut said = Vec::new();
    let families = |of: &dyn Fn(&legacy::Error) -> Option<legacy::Family>| {
        let names: Vec<_> = refused.iter().filter_map(of).map(legacy_name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = families(&|error| match error {
        legacy::Error::NotBuilt { family } => Some(*family),
        _ => None,
    }) {
        said.push(format!(
            "legacy tables ({names}) not looked at: this kernel has none (not built in, or their \
             module is not loaded)"
        ));
    }
    for wanted in [legacy::Access::Tables, legacy::Access::TableNames] {
        if let Some(names) = families(&|error| match error {
            legacy::Error::NoPermission { family, access } if *access == wanted => Some(*family),
            _ => None,
        }) {
            said.push(format!(
                "legacy tables ({names}) not looked at: no permission: {wanted}"
            ));
        }
    }
    for error in refused {
        if !matches!(
            error,
            legacy::Error::NotBuilt { .. } | legacy::Error::NoPermission { .. }
        ) {
            said.push(format!("legacy tables not looked at: {}", causes(error)));
        }
    }
    said
}
