//! The rulesets in `rulesets/`, and `nft`'s listing of them.

use std::path::PathBuf;

use chainwright_lang::{NftVersion, Options};
use chainwright_testing::Sandbox;

use super::tools::Tools;
use super::{accounting, connect, kernel, sandbox};

/// A ruleset in `rulesets/`: its text, with the header.
pub(crate) struct Ruleset {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Ruleset {
    pub(crate) fn all() -> Vec<Self> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(directory("rulesets"))
            .expect("cannot read the directory of rulesets")
            .map(|entry| entry.expect("cannot read a directory entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "nft"))
            .collect();
        paths.sort();
        let read = |path: PathBuf| Self {
            name: path
                .file_stem()
                .expect("no file name")
                .to_string_lossy()
                .into_owned(),
            text: std::fs::read_to_string(&path).expect("cannot read the ruleset's file"),
        };
        paths.into_iter().map(read).collect()
    }

    /// The text after this word in the header's lines.
    pub(crate) fn header<'s>(&'s self, word: &'s str) -> impl Iterator<Item = &'s str> {
        self.text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .filter_map(move |line| {
                line.strip_prefix("# ")?
                    .strip_prefix(word)?
                    .strip_prefix(": ")
            })
    }

    /// Loads it into a new sandbox; `None` if the kernel lacks its feature.
    #[track_caller]
    pub(crate) fn load(&self) -> Option<Sandbox> {
        self.try_load()
            .unwrap_or_else(|refusal| panic!("{}: {refusal}", self.name))
    }

    /// The same, with `nft`'s message if it is refused.
    #[track_caller]
    pub(crate) fn try_load(&self) -> Result<Option<Sandbox>, String> {
        let Some(sandbox) = self.prepare() else {
            return Ok(None);
        };
        self.load_into(&sandbox)?;
        Ok(Some(sandbox))
    }

    /// Whether rules contain lists of elements in the kernel's order.
    pub(crate) fn has_any_order(&self) -> bool {
        self.header("volatile")
            .any(|what| what.starts_with("element-order"))
    }

    /// A sandbox into which it can be loaded; `None` if the kernel lacks its feature.
    #[track_caller]
    pub(crate) fn prepare(&self) -> Option<Sandbox> {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        for command in self.header("needs") {
            tools.run(command);
        }
        let mut nft = connect(&sandbox);
        let known = self
            .header("kernel")
            .all(|feature| kernel::has(&mut nft, feature));
        known.then_some(sandbox)
    }

    /// Loads it; the error is `nft`'s message.
    #[track_caller]
    pub(crate) fn load_into(&self, sandbox: &Sandbox) -> Result<(), String> {
        Tools::new(sandbox).takes("nft -f -", &self.text)
    }
}

/// Options for the library's listings of a sandbox: with its interface names, in the time zone of the tools, and in the
/// form of this version of nft. The installed nft is [`NftVersion::V1_0`].
#[track_caller]
pub(crate) fn options_in(sandbox: &Sandbox, version: NftVersion) -> Options {
    let options = sandbox
        .run(Options::here)
        .expect("cannot enter the sandbox");
    let mut options = options.with_time_zone("UTC").expect("unknown time zone");
    options.nft_version = version;
    options
}

/// Number of rules to load at once: nft's messages must fit into a socket's default buffer.
pub(crate) const PIECE: usize = 150;

/// Loads the rules of `data/nft/rules.nft` into a sandbox, and returns their number.
#[track_caller]
pub(crate) fn rules_of_every_expression() -> (Sandbox, usize) {
    let rules = TypedRules::new();
    let sandbox = sandbox();
    rules.load_into(&sandbox);
    (sandbox, rules.rules.len())
}

/// The rules of `data/nft/rules.nft` as commands.
pub(crate) struct TypedRules {
    /// Their tables and chains.
    pub(crate) frame: String,
    /// One command each.
    pub(crate) rules: Vec<String>,
}

impl TypedRules {
    pub(crate) fn new() -> Self {
        let text = include_str!("../data/nft/rules.nft");
        let mut table = "";
        let mut this = Self {
            frame: String::new(),
            rules: Vec::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix("\t\t") {
                Some(rule) => this.rules.push(format!("add rule {table} c {rule}\n")),
                None => {
                    if let Some(begun) = line.strip_prefix("table ") {
                        table = begun.trim_end_matches(" {");
                    }
                    this.frame.push_str(line);
                    this.frame.push('\n');
                }
            }
        }
        this
    }

    /// Texts that together create all of them, each short enough for nft's messages to fit into a socket's default
    /// buffer.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = String> {
        let pieces = self.rules.chunks(PIECE).map(<[String]>::concat);
        [self.frame.clone()].into_iter().chain(pieces)
    }

    /// Loads them with `nft`.
    #[track_caller]
    pub(crate) fn load_into(&self, sandbox: &Sandbox) {
        let tools = Tools::new(sandbox);
        for piece in self.pieces() {
            tools.run_with("nft -f -", &piece);
        }
    }
}

/// `nft`'s listing of a ruleset, without what changes over time or depends on the order of a hash table.
pub(crate) fn listing(sandbox: &Sandbox) -> Listing {
    listing_in(sandbox, false)
}

pub(crate) fn listing_in(sandbox: &Sandbox, any_order: bool) -> Listing {
    let tools = Tools::new(sandbox);
    let both = tools.run("nft --debug=netlink list ruleset");
    // The bytecode comes first, and none of its lines begins with this word.
    let (bytecode, text) = match both.find("\ntable ") {
        Some(end) if !both.starts_with("table ") => both.split_at(end + 1),
        _ => ("", &both[..]),
    };
    Listing {
        text: without_remainders(text, any_order),
        bytecode: without_handles(bytecode),
    }
}

/// If the ruleset has elements that count connections, waits until the kernel has collected all that count none.
pub(crate) fn wait_for_collection(ruleset: &Ruleset, sandbox: &Sandbox) {
    if !ruleset
        .header("volatile")
        .any(|what| what == "counted-connections")
    {
        return;
    }
    let is_left = |line: &str| !line.trim().starts_with("ct count") && line.contains("ct count");
    for _ in 0..600 {
        let sets =
            Tools::new(sandbox).run("nft list sets") + &Tools::new(sandbox).run("nft list maps");
        if !sets.lines().any(is_left) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{}: elements with ct count are not collected", ruleset.name);
}

#[derive(PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) text: String,
    pub(crate) bytecode: String,
}

/// Replaces `expires 29d23h59m59s992ms` with `expires …`, and sorts lists of elements, because nft sorts only some
/// kinds of keys. `any_order` is for rulesets with such lists inside rules: it sorts the words of each line.
pub(crate) fn without_remainders(text: &str, any_order: bool) -> String {
    let mut words = Vec::new();
    let mut passing = false;
    for word in text.split_inclusive([' ', '\n', ',']) {
        let bare = word.trim_end_matches([' ', '\n', ',']);
        if passing && bare.bytes().all(|byte| b"0123456789dhms".contains(&byte)) {
            words.push(format!("…{}", &word[bare.len()..]));
        } else {
            words.push(word.to_owned());
        }
        passing = bare == "expires";
    }
    let text = words.concat();
    let mut out = String::new();
    let mut rest = &text[..];
    while let Some((before, list)) = rest.split_once("elements = { ") {
        let Some((list, behind)) = list.split_once(" }\n") else {
            break;
        };
        let mut elements: Vec<&str> = list.split(',').map(str::trim).collect();
        elements.sort_unstable();
        out += before;
        out += &format!("elements = {{ {} }}\n", elements.join(", "));
        rest = behind;
    }
    out += rest;
    if any_order {
        let sorted = |line: &str| {
            let mut words: Vec<&str> = line.split([' ', ',']).collect();
            words.sort_unstable();
            words.join(" ")
        };
        return out.lines().map(sorted).collect::<Vec<_>>().join("\n");
    }
    out
}

/// The kernel assigns a rule's handle and that of the rule before it. Elements of a hash table come in its order,
/// which differs between tables.
pub(crate) fn without_handles(bytecode: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut elements = Vec::new();
    for line in bytecode.lines().chain(["end"]) {
        if line.starts_with("\telement") {
            elements.push(line.to_owned());
            continue;
        }
        elements.sort_unstable();
        lines.append(&mut elements);
        let mut words: Vec<&str> = line.split(' ').collect();
        let is_rule = !line.starts_with(' ') && words.len() >= 4;
        if is_rule {
            while words.last().is_some_and(|word| word.parse::<u64>().is_ok()) && words.len() > 3 {
                words.pop();
            }
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

pub(crate) fn diff_listings(before: &Listing, after: &Listing) -> Result<(), String> {
    for (what, before, after) in [
        ("listing", &before.text, &after.text),
        ("bytecode", &before.bytecode, &after.bytecode),
    ] {
        if before != after {
            let differs = before
                .lines()
                .zip(after.lines())
                .find(|(before, after)| before != after);
            return Err(format!(
                "another {what}: {differs:?}\nbefore:\n{before}\nafter:\n{after}"
            ));
        }
    }
    Ok(())
}

/// Reads a file in `data/`.
pub(crate) fn data(name: &str) -> String {
    std::fs::read_to_string(directory("data").join(name)).expect("cannot read the file")
}

/// The rulesets in `data/` that a client wrote to nf_tables.
pub(crate) const OF_CLIENTS: [&str; 4] = [
    "kube-proxy-1.20-4-services.save",
    "kube-proxy-1.20-300-services.save",
    "kube-proxy-1.36-iptables.save",
    "kube-proxy-1.36-nftables.nft",
];

/// Loads one of them with the client's tool.
#[track_caller]
pub(crate) fn loaded_data(name: &str) -> Sandbox {
    let sandbox = accounting::prepared();
    let tools = Tools::new(&sandbox);
    match name.ends_with(".save") {
        true => tools.load_iptables_nft(&data(name)),
        false => tools.load_nft(&data(name)),
    }
    sandbox
}

/// The path of a directory of the tests.
pub(crate) fn directory(name: &str) -> PathBuf {
    super::in_workspace("tests").join(name)
}
