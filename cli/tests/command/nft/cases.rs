//! Invocations of nft that are compared.

/// An invocation.
pub(crate) struct Case {
    /// The ruleset before the invocation.
    pub(crate) before: &'static str,
    /// The arguments, split as a shell does.
    pub(crate) arguments: &'static str,
    /// Standard input.
    pub(crate) input: &'static str,
    pub(crate) same: Same,
}

/// What must be equal for both programs.
pub(crate) enum Same {
    /// Exit code, standard output, whether there are errors, and the ruleset.
    All,
    /// Everything but standard output: the reason, and our output.
    ButOutput(&'static str, &'static str),
    /// Only the exit code and a part of our output are checked: the reason, the exit code, and the
    /// part.
    AllBut(&'static str, i32, &'static str),
}

/// Files in the working directory.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("empty.nft", ""),
    ("comment.nft", "# nothing\n\n  # here\n"),
    (
        "table.nft",
        "table inet f {\n\tchain c {\n\t\ttcp dport { 22, 80 } accept\n\t}\n}\n",
    ),
    (
        "shebang.nft",
        "#!/usr/sbin/nft -f\nflush ruleset\ntable ip f {\n}\n",
    ),
    ("wrong.nft", "add table ip good\nadd rule ip good\n"),
    (
        "refused.nft",
        "add table ip good\nadd rule ip good missing accept\n",
    ),
    ("port.nft", "add rule ip t c tcp dport $port accept\n"),
    (
        "mixed.nft",
        "add table ip one\nlist tables\nadd table ip two\n",
    ),
    ("included/one.nft", "add table ip one\n"),
    ("included/two.nft", "define two = 2\nadd table ip two\n"),
    ("by-name.nft", "include \"one.nft\"\n"),
    ("by-dot.nft", "include \"./included/one.nft\"\n"),
    ("by-path.nft", "include \"included/one.nft\"\n"),
    (
        "by-glob.nft",
        "include \"./included/*.nft\"\nadd chain ip two c\n",
    ),
    ("by-empty-glob.nft", "include \"./nothing/*.nft\"\n"),
    ("itself.nft", "include \"./itself.nft\"\n"),
    (
        "text.json",
        r#"{"nftables": [{"add": {"table": {"family": "ip", "name": "j"}}}, {"add": {"chain": {"family": "ip", "table": "j", "name": "c"}}}]}"#,
    ),
    (
        "list.json",
        r#"{"nftables": [{"list": {"chains": null}}, {"list": {"chains": {"family": "inet"}}}]}"#,
    ),
    (
        "every.json",
        r#"{"nftables": [{"add": {"table": {"handle": 3, "family": "ip", "name": "x"}}},
            {"create": {"chain": {"family": "ip", "table": "x", "name": "c"}}},
            {"add": {"set": {"family": "ip", "table": "x", "name": "s", "type": "ipv4_addr", "elem": ["192.0.2.1"]}}},
            {"add": {"map": {"family": "ip", "table": "x", "name": "m", "type": "ipv4_addr", "map": "mark"}}},
            {"add": {"counter": {"family": "ip", "table": "x", "name": "k", "packets": 1, "bytes": 2}}},
            {"add": {"element": {"family": "ip", "table": "x", "name": "s", "elem": ["192.0.2.7"]}}},
            {"insert": {"rule": {"family": "ip", "table": "x", "chain": "c", "expr": [{"accept": null}]}}},
            {"delete": {"element": {"family": "ip", "table": "t", "name": "s", "elem": ["192.0.2.1"]}}},
            {"delete": {"chain": {"family": "inet", "table": "u", "name": "e"}}}]}"#,
    ),
    (
        "bare.json",
        r#"{"nftables": [{"table": {"family": "ip", "name": "x", "handle": 99}},
            {"chain": {"family": "ip", "table": "x", "name": "c", "handle": 98}},
            {"rule": {"family": "ip", "table": "x", "chain": "c", "handle": 97, "expr": [{"accept": null}]}}]}"#,
    ),
    (
        "replaced.json",
        r#"{"nftables": [{"add": {"rule": {"family": "ip", "table": "t", "chain": "d", "expr": [{"drop": null}]}}},
            {"replace": {"rule": {"family": "ip", "table": "t", "chain": "d", "handle": 11, "expr": [{"accept": null}]}}}]}"#,
    ),
    (
        "wrong.json",
        r#"{"nftables": [{"add": {"table": {"family": "ip"}}}]}"#,
    ),
];

/// The ruleset of most cases.
const T: &str = r#"
table ip t {
    counter k { packets 5 bytes 60; }
    quota q { over 100 mbytes used 3 bytes; }
    limit l { rate 5/second; }
    ct helper h { type "ftp" protocol tcp; }
    set s { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 }; }
    set r { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.0.2.1-192.0.2.9 }; }
    set w { type ipv4_addr . inet_service; elements = { 192.0.2.1 . 80 }; }
    map m { type inet_service : verdict; elements = { 80 : accept, 22 : jump d }; }
    chain d { meta l4proto tcp counter name "k"; }
    chain c {
        type filter hook input priority filter; policy accept;
        tcp dport { 22, 80 } counter packets 1 bytes 2 accept comment "web"
        ip saddr @s drop
        tcp dport vmap @m
        ct state new meta mark set 0x7 meta skuid 0
    }
}
table inet u { chain e { type filter hook input priority -5; }; }
"#;

/// Sets with `auto-merge`, and other objects.
const J: &str = r#"
table inet j {
    set a { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/24, 10.0.2.0/24, 192.0.2.1 }; }
    set e { type inet_service; flags interval; auto-merge; }
    set n { type ipv4_addr; flags interval; elements = { 10.0.0.0/24 }; }
    set l { type ipv4_addr; flags interval; elements = { 0.0.0.0/24 }; }
    map m { type ipv4_addr : verdict; flags interval; elements = { 10.0.0.0/24 : drop }; }
    set w { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/24 . 1-5 }; }
    chain c { ip saddr @a drop; tcp dport @e accept; counter; }
    chain d { }
}
"#;

const fn of_joining(arguments: &'static str) -> Case {
    Case {
        before: J,
        ..case(arguments)
    }
}

const fn case(arguments: &'static str) -> Case {
    Case {
        before: T,
        arguments,
        input: "",
        same: Same::All,
    }
}

const fn with(arguments: &'static str, input: &'static str) -> Case {
    Case {
        input,
        ..case(arguments)
    }
}

const fn but_output(arguments: &'static str, reason: &'static str, output: &'static str) -> Case {
    Case {
        same: Same::ButOutput(reason, output),
        ..case(arguments)
    }
}

const fn but(
    arguments: &'static str,
    reason: &'static str,
    code: i32,
    message: &'static str,
) -> Case {
    Case {
        same: Same::AllBut(reason, code, message),
        ..case(arguments)
    }
}

const fn without_tables(case: Case) -> Case {
    Case { before: "", ..case }
}

const LISTS_BEFORE_COMMIT: &str =
    "nft lists before it commits, and shows only some of the pending changes";
const ACCEPTED_BY_NEWER_NFT: &str = "newer versions of nft accept it";
const IGNORED_BY_NFT: &str = "nft ignores it, or does nothing useful";

pub(crate) const CASES: &[Case] = &[
    // Listings.
    case("list ruleset"),
    case("list ruleset inet"),
    case("list ruleset arp"),
    case("-a list ruleset"),
    case("-s list ruleset"),
    case("-t list ruleset"),
    case("-n list ruleset"),
    case("-nn list ruleset"),
    case("-y list table inet u"),
    case("-p list chain ip t d"),
    case("-T list set ip t s"),
    case("-u list chain ip t c"),
    case("-S list chain ip t c"),
    case("-as list chain ip t c"),
    case("-nat list table ip t"),
    case("--handle --stateless list ruleset"),
    case("--hand --stateless list ruleset"),
    case("-j list ruleset"),
    case("-j list ruleset inet"),
    case("-j -a list ruleset"),
    case("-j -s list ruleset"),
    case("-j -t list ruleset"),
    case("-j -n list ruleset"),
    case("-jnn list ruleset"),
    case("-jy list ruleset"),
    case("-jp list ruleset"),
    case("-jT list ruleset"),
    case("-ju list ruleset"),
    case("-jS list ruleset"),
    case("-j list chains"),
    case("-j list set ip t s"),
    case("-jt list set ip t s"),
    case("-j list set ip t w"),
    case("-j list maps"),
    case("-j list map ip t m"),
    case("-j list meters"),
    case("-j list flowtables"),
    case("-j list counters"),
    case("-j list counter ip t k"),
    case("-j list quotas"),
    case("-j list limits table ip t"),
    case("-j list ct helper ip t h"),
    case("-j list secmarks"),
    but(
        "-j list synproxys",
        "nft has no JSON for it, and aborts",
        0,
        "metainfo",
    ),
    case("-j \"list sets; list counters\""),
    case("-ja list table ip t"),
    case("-j -s list chain ip t c"),
    case("--json list sets"),
    case("list tables"),
    case("list tables ip"),
    case("-a list tables"),
    case("list table t"),
    case("list table ip t"),
    case("list chains"),
    case("list chains inet"),
    case("list chain t c"),
    case("list sets"),
    case("list set ip t s"),
    case("list set ip t r"),
    case("list maps"),
    case("list map ip t m"),
    case("list meters"),
    case("list flowtables"),
    case("list counters"),
    case("list counters table ip t"),
    case("list counter ip t k"),
    case("list quotas"),
    case("list quota t q"),
    case("list limits"),
    case("list limit ip t l"),
    case("list ct helpers table ip t"),
    case("list ct helper ip t h"),
    but_output(
        "list secmarks",
        "nft 1.0.6 lists tables with objects of other types, too; 1.1 does not",
        "",
    ),
    but_output(
        "list synproxys",
        "nft 1.0.6 lists tables with objects of other types, too; 1.1 does not",
        "",
    ),
    without_tables(case("list ruleset")),
    without_tables(case("list tables")),
    without_tables(case("-j list ruleset")),
    without_tables(case("list counters")),
    case("\"list tables; list sets\""),
    but_output(
        "list tables \\; list chain ip t d",
        "nft has read only one table, for the second command",
        "table ip t\ntable inet u\ntable ip t {\n\tchain d {\n\t\tmeta l4proto tcp counter name \"k\"\n\t}\n}\n",
    ),
    case("list sets \\; list maps"),
    case("-j list tables \\; list tables"),
    // Missing objects.
    case("list table ip nope"),
    case("list table inet t"),
    case("list chain ip t nope"),
    case("list chain ip nope c"),
    case("list set ip t nope"),
    case("list set ip t m"),
    case("list map ip t s"),
    case("list meter ip t nope"),
    case("list counter ip t nope"),
    case("list flowtable inet u nope"),
    case("list counters table ip nope"),
    case("-j list table ip nope"),
    case("\"list tables; list table ip nope\""),
    case("\"add table ip x; list table ip nope\""),
    case("\"list table ip nope; add table ip x\""),
    case("\"delete table ip t; list table ip t\""),
    case("\"flush ruleset; list chain ip t c\""),
    case("\"delete table ip t; add table ip t; list chain ip t c\""),
    // Resets and elements.
    case("reset counters"),
    case("reset counters table ip t"),
    case("reset counters table inet u"),
    case("reset quotas table inet u"),
    case("list counters table inet u"),
    case("-j list counters table inet u"),
    case("list limits table inet u"),
    case("list ct helpers table inet u"),
    case("list sets table inet u"),
    case("reset counter ip t k"),
    case("reset quotas"),
    case("reset quota ip t q"),
    case("-j reset counters"),
    case("-j reset counter ip t k"),
    case("-j -s reset quotas"),
    case("-j reset quota ip t q"),
    case("reset counter ip t nope"),
    case("reset chains"),
    case("get element ip t s { 192.0.2.1 }"),
    case("get element ip t s { 192.0.2.1, 192.0.2.2 }"),
    case("get element ip t r { 10.1.2.3 }"),
    case("get element ip t w { 192.0.2.1 . 80 }"),
    case("get element ip t m { 80 }"),
    case("get element ip t s { 192.0.2.9 }"),
    case("get element ip t nope { 192.0.2.9 }"),
    // Changes.
    case("add table ip x"),
    case("add chain ip t x { type filter hook input priority 0 \\; policy drop \\; }"),
    case("\"add chain ip t x { type filter hook input priority -5; policy drop; }\""),
    case("add chain ip t x { type filter hook input priority -5 \\; }"),
    case("-- add table ip x"),
    case("add rule ip t c tcp dport 443 accept"),
    case("add rule ip t c ip saddr { 192.0.2.1, 192.0.2.7 } drop"),
    case("insert rule ip t c index 1 drop"),
    case("add element ip t s { 192.0.2.77 }"),
    case("delete element ip t s { 192.0.2.1 }"),
    case("add rule ip t c comment \"\\\"two words\\\"\" accept"),
    case("flush chain ip t c"),
    case("flush set ip t s"),
    case("flush table ip t"),
    case("flush ruleset"),
    case("rename chain ip t d dd"),
    case("delete table ip t"),
    case("\"delete rule ip t c handle 9999\""),
    case("\"add table ip x; add chain ip x c; # comment\""),
    case("\"add table ip x\nadd chain ip x c\""),
    case("add table ip x-y_z.0"),
    case("\"\""),
    case("\" \""),
    without_tables(case(
        "\"add table ip x; add chain ip x c; add rule ip x c accept\"",
    )),
    // Changes whose result depends on the existing ruleset.
    of_joining("add element inet j a { 10.0.1.0/24 }"),
    of_joining("add element inet j a { 10.0.0.5, 10.0.2.0/23, 172.16.0.0/12 }"),
    of_joining("add element inet j a { 0.0.0.0/8 }"),
    of_joining("create element inet j a { 10.0.0.0/25 }"),
    of_joining("\"add element inet j a { 10.0.1.0/24 }; add element inet j a { 10.0.3.0/24 }\""),
    of_joining("\"delete element inet j a { 10.0.0.0/24 }; add element inet j a { 10.0.0.0/25 }\""),
    of_joining("\"flush set inet j a; add element inet j a { 10.0.1.0/24 }\""),
    of_joining("add element inet j e { 0-5, 6 }"),
    of_joining("add element inet j n { 0.0.0.0/24 }"),
    of_joining("add element inet j n { 10.0.0.0/25 }"),
    of_joining("add element inet j l { 10.0.0.0/24 }"),
    of_joining("delete element inet j l { 0.0.0.0/24 }"),
    of_joining("add element inet j m { 10.0.1.0/24 : accept }"),
    of_joining("add element inet j w { 10.0.1.0/24 . 6 }"),
    of_joining("add element inet j nope { 10.0.1.0/24 }"),
    of_joining(
        "\"table inet j { set a { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.1.0/24 }; }; }\"",
    ),
    of_joining("insert rule inet j c index 1 ip saddr @n accept"),
    of_joining("add rule inet j c index 2 ip saddr @n ip daddr @a accept"),
    of_joining("add rule inet j c index 3 accept"),
    of_joining("rename chain inet j d dd"),
    of_joining("rename chain inet j nope dd"),
    of_joining("add rule inet j d ip saddr @nope accept"),
    of_joining("\"rename chain inet j d dd; add element inet j a { 10.0.1.0/24 }\""),
    // Input that the kernel or the language rejects.
    case("create table ip t"),
    case("replace rule ip t c handle 9999 drop"),
    case("rename chain ip t c c"),
    case("delete rule ip t c"),
    case("get element ip t s { nope }"),
    case("-c add rule ip t nope drop"),
    case("-c list table ip nope"),
    case("-c -f nonexistent.nft"),
    case("-c nonsense"),
    case("-c delete chain ip t d"),
    case("delete table ip nope"),
    case("add chain ip nope c"),
    case("add rule ip t nope accept"),
    case("add rule ip t c tcp dport 99999"),
    case("add rule ip t c tcp dprot 22"),
    case("add rule ip t c jump nope"),
    case("add rule ip t c ip saddr @nope"),
    case("add element ip t s { 300.0.0.1 }"),
    case("add element ip t nope { 1.2.3.4 }"),
    case("\"add table ip x; add rule ip t nope accept\""),
    case("\"add table ip x; nonsense\""),
    case("nonsense"),
    case("list"),
    case("list nonsense"),
    case("list ruleset nonsense"),
    case("flush ruleset nonsense"),
    case("monitor nonsense"),
    case("import ruleset"),
    case("export ruleset"),
    // Options.
    case(""),
    case("--nonsense"),
    case("-z list ruleset"),
    case("-f"),
    case("-I"),
    case("--handle=1 list tables"),
    but(
        "list ruleset -a",
        "nft writes the error to standard output",
        1,
        "options must precede commands",
    ),
    but(
        "list -a ruleset",
        "nft writes the error to standard output",
        1,
        "options must precede commands",
    ),
    but(
        "add rule ip t c tcp dport -5",
        "nft writes the error to standard output",
        1,
        "options must precede commands",
    ),
    case("-D port=22 list tables"),
    case("-d nonsense list tables"),
    case("-d \"\" list tables"),
    case("-d all,nonsense list tables"),
    case("--debug=netlink,netlink list table inet u"),
    case("-d netlink nonsense"),
    case("-d netlink add table ip x"),
    case("-d netlink add rule ip t d tcp dport 22 accept"),
    case("-d netlink insert rule ip t d counter comment \"some\""),
    case("-d netlink add rule ip t d ip saddr { 192.0.2.1, 192.0.2.7 } drop"),
    case("-d netlink add rule ip t d ip saddr vmap { 1.1.1.1 : drop, 2.2.2.0/24 : accept }"),
    case("-d netlink add rule ip t d tcp dport { 22, 80-90 } accept"),
    case("-d netlink \"add set ip t x { type ipv4_addr; flags timeout; timeout 5m; size 12; }\""),
    case(
        "-d netlink \"add set ip t x { type ipv4_addr; flags timeout; gc-interval 1m; policy memory; }\"",
    ),
    case(
        "-d netlink \"add set ip t x { type ipv4_addr; flags interval; elements = { 1.2.3.4, 5.0.0.0/8 }; }\"",
    ),
    but_output(
        "-d netlink add element ip t s { 192.0.2.77, 192.0.2.78 }",
        "nft also prints the elements that it reads first",
        "s t 0\n\telement 4d0200c0  : 0 [end]\telement 4e0200c0  : 0 [end]\n",
    ),
    but_output(
        "-d netlink delete element ip t s { 192.0.2.1 }",
        "nft also prints the elements that it reads first",
        "s t 0\n\telement 010200c0  : 0 [end]\n",
    ),
    case(
        "-d netlink \"add map ip t x { type ipv4_addr : verdict; elements = { 1.1.1.1 : jump d }; }\"",
    ),
    case("-d netlink delete rule ip t d handle 11"),
    case("-d netlink flush chain ip t d"),
    case("-d netlink -c add rule ip t d drop"),
    case("-d netlink add rule ip t nope drop"),
    but_output(
        "-d netlink add chain ip t x",
        "nft prints a chain with (null) in place of its properties",
        "",
    ),
    case("-d netlink list chain inet u e"),
    case("--debug=netlink list table inet u"),
    // Files.
    case("-f table.nft"),
    case("-ftable.nft"),
    case("--file=table.nft"),
    case("--fil table.nft"),
    case("-f empty.nft"),
    case("-f comment.nft"),
    case("-f shebang.nft"),
    case("-f wrong.nft"),
    case("-f refused.nft"),
    case("-f nonexistent.nft"),
    but(
        "-i -f table.nft",
        "nft 1.1.7 rejects it, too",
        1,
        "cannot be used with",
    ),
    case("-f /etc/hostname"),
    case("-f table.nft -f empty.nft"),
    case("-f table.nft list tables"),
    with("-f -", "add table ip x\nlist tables ip6\n"),
    with("-f /dev/stdin", "add table ip x\n"),
    with("-f -", ""),
    with("-f -", "nonsense\n"),
    with(
        "-f -",
        "add table ip x\nadd chain ip x c \\\n { type filter hook \\\n input priority 0; }\n",
    ),
    with(
        "-f -",
        "define p = 22\nadd rule ip t c tcp dport $p accept\n",
    ),
    case("-f port.nft"),
    case("-D port=22 -f port.nft"),
    case("--define port=22 --file port.nft"),
    case("-D port=http -f port.nft"),
    case("-f port.nft -D port=22"),
    case("-D port -f port.nft"),
    case("-D port={22,80} -f port.nft"),
    case("-D port=nonsense -f port.nft"),
    case("-f by-name.nft"),
    case("-I included -f by-name.nft"),
    case("-I nonexistent -I included -f by-name.nft"),
    case("--includepath included -f by-name.nft"),
    case("-f by-dot.nft"),
    case("-f by-path.nft"),
    case("-I . -f by-path.nft"),
    case("-f by-glob.nft"),
    case("-f by-empty-glob.nft"),
    case("-f itself.nft"),
    case("include \"\\\"./included/one.nft\\\"\""),
    // Check only.
    case("-c -f table.nft"),
    case("-c -f refused.nft"),
    case("-c flush ruleset"),
    case("-c add table ip x"),
    case("-c delete table ip nope"),
    case("-c -e add table ip x"),
    case("-ca list chain ip t c"),
    case("\"-c\" \"add table ip x; add chain ip x c\""),
    // Echo.
    case("-e add table ip x"),
    case("-e -a add table ip x"),
    case("-ea add rule ip t c tcp dport 443 counter accept"),
    case("-e insert rule ip t c index 1 tcp dport { 1, 2-5 } drop"),
    case("-e create chain ip t x"),
    case("-e add chain ip t x { type filter hook input priority 0 \\; }"),
    case("-ne add chain ip t x { type filter hook input priority 0 \\; }"),
    case("-e add element ip t s { 192.0.2.77, 192.0.2.78 }"),
    case("-e add element ip t r { 172.16.0.0/12 }"),
    case("-e \"add set ip t x { type inet_service; flags timeout; timeout 1h; }\""),
    case("-e \"add map ip t x { type inet_service : ipv4_addr; elements = { 80 : 192.0.2.1 }; }\""),
    case("-e add counter ip t x"),
    case("-e add quota ip t x { 5 mbytes \\; }"),
    case("-e delete table ip t"),
    case("-e add table ip t"),
    case("-e -f table.nft"),
    case("-e add chain ip nope c"),
    case("-je add table ip x"),
    case("-je add rule ip t c tcp dport 443 counter accept"),
    case("-j -e -s add rule ip t c counter accept"),
    case("-je add element ip t s { 192.0.2.77, 192.0.2.78 }"),
    case("-je add element ip t r { 172.16.0.0/12 }"),
    case("-je \"add set ip t x { type ipv4_addr; elements = { 192.0.2.1 }; }\""),
    case(
        "-je \"add table ip x; create chain ip x c; insert rule ip x c accept; add counter ip x k\"",
    ),
    case("-je delete table ip t"),
    case("-je -f table.nft"),
    case("-j -e -f text.json"),
    case("-je -a -f text.json"),
    case("-j -e -c -f text.json"),
    case("-j -e -f list.json"),
    case("-e -j -f every.json"),
    case("-je -f bare.json"),
    case("-j -e -f replaced.json"),
    case("-j -e -f wrong.json"),
    with("-j -e -f -", r#"{"nftables":[]}"#),
    with(
        "-j -e -f -",
        r#"  {"nftables":[{"metainfo":{"json_schema_version":1}},{"add":{"rule":{"family":"ip","table":"t","chain":"d",
            "comment":"h\u00e9 \/ \"","expr":[{"match":{"op":"==","left":{"payload":{"protocol":"tcp","field":"dport"}},
            "right":{"set":[22,80]}}},{"counter":null},{"accept":null}]}}},{"flush":{"chain":{"family":"ip","table":"t","name":"c"}}}]}"#,
    ),
    // JSON.
    case("-j -f text.json"),
    case("-j -f list.json"),
    case("-j -f wrong.json"),
    case("-f text.json"),
    case("-j -f table.nft"),
    with(
        "-j -f -",
        r#"{"nftables": [{"add": {"table": {"family": "ip", "name": "x"}}}]}"#,
    ),
    Case {
        input: r#"{"nftables": ["#,
        ..but("-j -f -", IGNORED_BY_NFT, 1, "unexpected end of input")
    },
    with("-j -f -", r#"{"nftables": []}"#),
    case(r#"-j "{\"nftables\": [{\"add\": {\"table\": {\"family\": \"ip\", \"name\": \"x\"}}}]}""#),
    // Explanations.
    case("describe ipv4_addr"),
    case("describe inet_service"),
    case("describe icmp_type"),
    case("describe inet_proto"),
    case("describe ip6 nexthdr"),
    case("describe dccp type"),
    case("describe igmp type"),
    case("describe ct_dir"),
    case("describe fib_addrtype"),
    case("describe uid"),
    case("describe iface_type"),
    case("describe meta time"),
    case("describe meta hour"),
    case("describe ct label"),
    case("describe ct expiration"),
    case("describe arp operation"),
    case("describe sctp vtag"),
    case("describe socket wildcard"),
    case("describe ipsec out ip daddr"),
    case("describe symhash mod 3"),
    case("describe nope nope"),
    but(
        "describe nope",
        "nft reports that it is a symbol",
        1,
        "unknown statement",
    ),
    but(
        "describe ecn",
        "nft does not accept it as a type",
        0,
        "Explicit Congestion",
    ),
    case("describe icmpv6_code"),
    case("describe ct_status"),
    case("describe tcp_flag"),
    case("describe dscp"),
    case("describe boolean"),
    case("describe pkt_type"),
    case("describe verdict"),
    case("describe mark"),
    case("describe ifname"),
    case("describe ether_addr"),
    case("describe tcp dport"),
    case("describe ip saddr"),
    case("describe ip6 flowlabel"),
    case("describe ip version"),
    case("describe tcp flags"),
    case("describe icmp type"),
    case("describe icmpv6 code"),
    case("describe vlan id"),
    case("describe meta iifname"),
    case("describe meta length"),
    case("describe meta nfproto"),
    case("describe meta skuid"),
    case("describe meta day"),
    case("describe ct state"),
    case("describe icmp_code"),
    case("describe realm"),
    but_output(
        "describe ct original saddr",
        "nft 1.0.6 prints no line end",
        "ct expression, datatype invalid (invalid)\n",
    ),
    case("describe @nh,8,4"),
    case("describe tcp option 254"),
    case("describe ip option lsrr addr"),
    case("describe sctp chunk data"),
    case("describe exthdr hbh"),
    case("describe ip frag-off"),
    case("describe tcp option mptcp subtype"),
    case("describe ct mark"),
    case("describe ct bytes"),
    case("describe ct original ip saddr"),
    case("describe fib saddr oif"),
    case("describe rt mtu"),
    case("describe socket mark"),
    case("describe osf name"),
    case("describe numgen inc mod 3"),
    case("describe jhash ip saddr mod 3"),
    case("describe tcp option maxseg size"),
    case("describe ip option rr length"),
    case("describe dst hdrlength"),
    case("describe frag id"),
    case("describe ipsec in reqid"),
    // Line by line.
    with("-i", "list tables\nquit\nlist tables\n"),
    with("-i", "list tables"),
    with("-i", "nonsense\nadd table ip x\nlist tables\n"),
    with(
        "-i",
        "add table ip x\nadd chain ip x c { type filter hook input priority 0; }\nadd rule ip x c \\\n  accept\nlist table ip x\nquit\n",
    ),
    with(
        "-i",
        "define p = 22\nadd rule ip t c tcp dport $p accept\nlist chain ip t c\n",
    ),
    with("-i", "add chain ip t x {\n}\nlist chains inet\n"),
    with("-ia", "list chain ip t c\n"),
    with("-ij", "list tables\n"),
    with("-ie", "add table ip x\n\n\n# nothing\nadd chain ip x c\n"),
    with("-i", ""),
    with("--interactive", "list tables ip6\nquit\n"),
    with("-i list tables", "list chains\n"),
    // Documented differences, with their reasons.
    but_output(
        "\"add rule ip t d accept; list chain ip t d\"",
        LISTS_BEFORE_COMMIT,
        "table ip t {\n\tchain d {\n\t\tmeta l4proto tcp counter name \"k\"\n\t\taccept\n\t}\n}\n",
    ),
    but_output(
        "\"delete element ip t s { 192.0.2.1 }; list set ip t s\"",
        LISTS_BEFORE_COMMIT,
        "table ip t {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 192.0.2.2 }\n\t}\n}\n",
    ),
    but_output(
        "\"add table ip x; list tables; delete table ip nope\"",
        "nft lists changes that are never committed",
        "",
    ),
    but_output(
        "-c \"add table arp x; list tables arp\"",
        "ours does not list changes that are only checked",
        "",
    ),
    but_output(
        "-j get element ip t s { 192.0.2.1 }",
        "nft prints text",
        concat!(
            r#"{"nftables": [{"metainfo": {"version": "1.0.6", "release_name": "chainwright "#,
            env!("CARGO_PKG_VERSION"),
            r#"", "json_schema_version": 1}}, {"set": {"family": "ip", "name": "s", "table": "t", "type": "ipv4_addr", "#,
            r#""handle": 7, "elem": ["192.0.2.1"]}}]}"#,
            "\n"
        ),
    ),
    but("list rules", ACCEPTED_BY_NEWER_NFT, 0, "chain c {"),
    but("list ct helpers", ACCEPTED_BY_NEWER_NFT, 0, "ct helper h {"),
    but("destroy table ip t", ACCEPTED_BY_NEWER_NFT, 0, ""),
    but(
        "-o list tables",
        IGNORED_BY_NFT,
        1,
        "--optimize is not supported",
    ),
    but(
        "-N list tables",
        IGNORED_BY_NFT,
        1,
        "--reversedns is not supported",
    ),
    but(
        "-d mnl list tables",
        "this debug output is not implemented",
        1,
        "--debug mnl is not supported",
    ),
    but(
        "-j list hooks",
        "nft has no JSON for it, and aborts",
        1,
        "no JSON output",
    ),
    but(
        "list hooks table ip t",
        "nft ignores the argument",
        1,
        "table",
    ),
    but("-f .", "nft exits with 2", 1, "Is a directory"),
    but(
        "-v",
        "the version names the program",
        0,
        "nftables v1.0.6 (chainwright",
    ),
    but(
        "--version",
        "the version names the program",
        0,
        "nftables v1.0.6 (chainwright",
    ),
    but("-V", "the version names the program", 0, "json:"),
    but("-h", "the help has different words", 0, "--includepath"),
    but("--help", "the help has different words", 0, "--includepath"),
];
