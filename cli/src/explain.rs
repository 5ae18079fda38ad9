//! `chainwright explain`: rules, chains and services in English.

pub(crate) mod chain;
mod purpose;
mod service;
mod target;
mod writer;

use std::path::PathBuf;

use chainwright::iptables::Rule;
use chainwright::nft;
use chainwright::xt;
use chainwright_lang::Script;
use chainwright_trace::explain::RuleExplanation;
use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::completions;
use crate::output::{Error, Exit, Output, Printable, note};
use crate::scope::{Found, Scope, UnreadPart};
use crate::trace_output::Ruleset;

use chain::{ChainExplanation, Explainer};
use service::ServiceExplanation;
use target::Target;
use writer::Writer;

pub(crate) use writer::about;

/// Explain a rule, a chain or a service in English
///
/// WHAT is one of:
///
/// - a chain, with its table and its family if several have one of this name: `INPUT`, `nat KUBE-SERVICES`, `ip nat
///   KUBE-SERVICES`. Explains each rule, and prints the chain as a table of sources, destinations, ports and outcomes.
///
/// - a rule of a chain, by its number or its handle: `INPUT 3`, `INPUT handle 7`, `inet filter input '#7'`.
///
/// - the text of a rule as one argument, in nft's language, or behind `--` with iptables' options: 'tcp dport 22 accept',
///   -- '-p tcp --dport 22 -j ACCEPT'. The tables are not read.
///
/// - a service in kube-proxy's rules, of any mode: `svc/default/web`, `svc/default/web:http`. Prints its addresses and
///   ports, its endpoints, and the rules that choose one.
///
/// A part of a rule for which there is no sentence is printed in nft's or iptables' own words, and marked. The purposes
/// of chains are guessed from names and comments of kube-proxy, Docker, Calico, firewalld, ufw, CNI plugins, fail2ban
/// and libvirt.
///
/// The exit code is 1 if there is no such chain, rule or service.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A chain, a rule or a service
    #[arg(
        value_name = "WHAT",
        required = true,
        num_args = 1..=5,
        add = ArgValueCompleter::new(completions::chains)
    )]
    what: Vec<String>,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,

    /// Use the rules of this file instead of the kernel's: a snapshot, output of iptables-save, or a ruleset in nft's
    /// language
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// for a terminal
    Text,
    /// Markdown
    Markdown,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'d> {
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<RuleRecord<'d>>,
    chains: &'d [ChainExplanation],
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'d ServiceExplanation>,
    not_read: &'d [UnreadPart],
}

/// A rule from the command line.
#[derive(Serialize)]
struct RuleRecord<'d> {
    text: String,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'d str>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    let target = Target::parse(&args.what).map_err(Error::Other)?;
    let mut out = Output::new();
    if let Target::Rule(words) = &target {
        let rule = of_text(words, &args.scope)?;
        return args.print_rule(&mut out, &rule, json);
    }
    let mut found = Found::default();
    let ruleset = match &args.file {
        Some(file) => Ruleset::of_file(file, &args.scope)?,
        None => Ruleset::of_kernel(&args.scope, &mut found)?,
    };
    for text in &found.notes {
        note(text);
    }
    let explainer = Explainer::new(&ruleset);
    let (mut chains, mut service) = (Vec::new(), None);
    match &target {
        Target::Chain(chain) => {
            chains = chain::explained(&explainer, chain);
        }
        Target::Service(name) => {
            service = service::explained(&explainer, name, args.file.as_ref())?
        }
        Target::Rule(_) => {}
    }
    let is_absent = chains.is_empty() && service.is_none();
    // A rule of one word, such as `drop`.
    if let (true, false, [word]) = (is_absent, found.is_partial(), &args.what[..])
        && let Ok(rule) = of_text(word, &args.scope)
    {
        return args.print_rule(&mut out, &rule, json);
    }
    if json {
        let document = Document {
            rule: None,
            chains: &chains,
            service: service.as_ref(),
            not_read: &found.not_read,
        };
        out.json("explain", &document)?;
    } else {
        let mut writer = Writer::new(&mut out, args.format);
        let only_rule = matches!(&target, Target::Chain(chain) if chain.rule.is_some());
        for chain in &chains {
            writer.chain(chain, only_rule)?;
        }
        if let Some(service) = &service {
            writer.service(service)?;
        }
    }
    out.flush()?;
    if is_absent && !json {
        note(&format!("no such {target}"));
    }
    Ok(match (found.is_partial(), is_absent) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Absent,
        (false, false) => Exit::Done,
    })
}

impl Args {
    /// Prints a rule that was given as text.
    fn print_rule(
        &self,
        out: &mut Output,
        rule: &RuleExplanation,
        json: bool,
    ) -> Result<Exit, Error> {
        if json {
            let record = RuleRecord {
                text: rule.to_string(),
                complete: rule.is_complete(),
                comment: rule.comment.as_deref(),
            };
            let document = Document {
                rule: Some(record),
                chains: &[],
                service: None,
                not_read: &[],
            };
            out.json("explain", &document)?;
        } else {
            Writer::new(out, self.format).rule(rule)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

/// Explains the text of a rule.
fn of_text(words: &str, scope: &Scope) -> Result<RuleExplanation, Error> {
    let words = words.trim();
    if words.starts_with('-') || words.starts_with("! -") {
        let family = scope.place.iptables()?.unwrap_or(xt::Family::Ipv4);
        let rule = match words.split_once(' ') {
            // The chain.
            Some(("-A" | "--append", rest)) => rest.split_once(' ').map_or("", |(_, rule)| rule),
            _ => words,
        };
        let rule = Rule::parse(family, rule).map_err(|error| Error::Other(error.to_string()))?;
        return Ok(RuleExplanation::of_iptables(family, &rule));
    }
    let family = scope
        .place
        .family()
        .map_or(nft::Family::INET, |family| family.nft());
    let failed = |error: chainwright_lang::Error| Error::Other(error.to_string());
    let explanation = RuleExplanation::of_text(family, words).map_err(failed)?;
    // The types of sets are unknown.
    if !words.contains('@') {
        let line = format!("add rule {family} t c {words}\n");
        let script = Script::parse("rule", line).map_err(failed)?;
        script.transaction(None).map_err(failed)?;
    }
    Ok(explanation)
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule(words) => write!(f, "rule {}", Printable(words)),
            Self::Service(name) => write!(f, "service {:?}", Printable(name).to_string()),
            Self::Chain(chain) => match &chain.rule {
                Some(_) => write!(f, "rule in a chain {:?}", chain.chain),
                None => write!(
                    f,
                    "chain {:?}; the text of a rule is one argument, in quotation marks",
                    chain.chain
                ),
            },
        }
    }
}
