//! Errors in a line, and their messages.

use super::*;

/// Lines of table filter, and the error up to `…`, without the line number before it.
const LINES: &[(&str, &str)] = &[
    (
        "-A INPUT --coment x",
        ", column 10: unknown option `--coment` (did you mean --comment, an option of -m comment?)",
    ),
    (
        "-A INPUT -m comment --coment x",
        ", column 21: unknown option `--coment` (did you mean --comment?)",
    ),
    (
        "-A INPUT --comment x",
        ", column 10: unknown option `--comment` (it is an option of -m comment, which must come before it)",
    ),
    ("-A INPUT -y", ", column 10: unknown option `-y`"),
    (
        "-A INPUT --",
        ", column 10: `--` is not an option (an option is `-` and a letter, or `--` and a name)",
    ),
    (
        "-A INPUT -",
        ", column 10: `-` is not an option (an option is `-` and a letter, or `--` and a name)",
    ),
    (
        "-A INPUT -m comet --comment x",
        ", column 13: match `comet` not found (did you mean -m comment?)",
    ),
    ("-A INPUT -m nix", ", column 13: match `nix` not found"),
    (
        "-A INPUT -m comment",
        ", column 13: -m comment: --comment is required",
    ),
    (
        "-A INPUT -m comment --comment a --comment b",
        ", column 33: -m comment: --comment can be given only once",
    ),
    (
        "-A INPUT -m mark --mark",
        ", column 18: `--mark` requires a value",
    ),
    (
        "-A INPUT -m mark --mark 0x1g",
        ", column 25: -m mark: --mark: `0x1g` is not a number from 0 to 4294967295",
    ),
    (
        "-A INPUT -m mark --mark 4294967296",
        ", column 25: -m mark: --mark: `4294967296` is not a number from 0 to 4294967295",
    ),
    (
        "-A INPUT -m conntrack --ctstate NEW,ESTABLISHD",
        ", column 33: -m conntrack: --ctstate: `ESTABLISHD` …",
    ),
    ("-A INPUT -j", ", column 10: `-j` requires a value"),
    ("-A INPUT -s", ", column 10: `-s` requires a value"),
    (
        "-A INPUT -s -j ACCEPT",
        ", column 13: `-s` requires a value, but `-j` follows",
    ),
    ("-A", ", column 1: `-A` requires a value"),
    (
        "-A INPUT -A FORWARD",
        ", column 10: a line can only have one command",
    ),
    (
        "-A INPUT -N x",
        ", column 10: a line can only have one command",
    ),
    (
        "-A INPUT -j ACCEPT -j DROP",
        ", column 20: a rule can only have one target",
    ),
    (
        "-A INPUT -s 1.2.3.4 -s 5.6.7.8",
        ", column 21: duplicate option `-s`",
    ),
    (
        "-A INPUT -s 1.2.3.256",
        ", column 13: `1.2.3.256` is not an IPv4 address (host names are not looked up)",
    ),
    (
        "-A INPUT -s 1.2.3.4/33",
        ", column 13: `1.2.3.4/33` has a mask that is neither a prefix length from 0 to 32 nor an address",
    ),
    (
        "-A INPUT -s 1.2.3.4,1.2.x",
        ", column 21: `1.2.x` is not an IPv4 address (host names are not looked up)",
    ),
    (
        "-A INPUT ! -s 1.2.3.4,1.2.3.5",
        ", column 15: a negated option takes only one address",
    ),
    (
        "-A INPUT -s example.com",
        ", column 13: `example.com` is not an IPv4 address (host names are not looked up)",
    ),
    (
        "-A INPUT -s fd00::1",
        ", column 13: `fd00::1` is not an IPv4 address (host names are not looked up) (it is an IPv6 address)",
    ),
    (
        "-A INPUT -i averylongname123",
        ", column 13: `averylongname123` is not an interface name: it must have 1 to 15 bytes",
    ),
    (
        "-A INPUT -p tpc",
        ", column 13: `tpc` is not a protocol number or name (did you mean tcp?)",
    ),
    (
        "-A INPUT -p 256",
        ", column 13: `256` is not a protocol number or name",
    ),
    (
        "-A INPUT -s ! 1.2.3.4",
        ", column 13: `!` must come before the option that it negates (write `! -s`)",
    ),
    ("-A INPUT !", ", column 10: `!` must come before an option"),
    (
        "-A INPUT ! -j ACCEPT",
        ", column 12: `-j` cannot be negated",
    ),
    (
        "-A INPUT -t filter -j ACCEPT",
        ", column 10: unknown option `-t` (the table is set by an earlier line, like *filter)",
    ),
    (
        "-A INPUT --table nat",
        ", column 10: unknown option `--table` (the table is set by an earlier line, like *filter)",
    ),
    (
        "-t nat -A INPUT",
        ", column 1: unknown option `-t` (the table is set by an earlier line, like *filter)",
    ),
    (
        "-A INPUT word",
        ", column 10: `word` is not an option (a value with spaces must be in double quotes)",
    ),
    (
        "-A INPUT -m comment --comment two words",
        ", column 35: `words` is not an option (a value with spaces must be in double quotes)",
    ),
    (
        "-A INPUT -m comment --comment 'two words'",
        ", column 36: `words'` is not an option (only double quotes can enclose several words)",
    ),
    (
        "-A INPUT -c 5",
        ", column 10: -c requires packets and bytes",
    ),
    (
        "-A INPUT -c 5 x",
        ", column 15: `x` is not a number from 0 to 18446744073709551615",
    ),
    (
        "-A INPUT -m comment --comment \"open",
        ", column 31: unterminated quotes",
    ),
    (
        "[1:x] -A INPUT",
        ", column 1: expected counters in the form [PACKETS:BYTES]",
    ),
    (
        "[1:2]",
        ", column 1: no command in the line (-A, -I, -D, …)",
    ),
    (
        "-j ACCEPT",
        ", column 10: no command in the line (-A, -I, -D, …)",
    ),
    (
        "-P INPUT REJECT",
        ", column 10: `REJECT` is not a policy (ACCEPT or DROP)",
    ),
    (
        "-P INPUT accept",
        ", column 10: `accept` is not a policy (ACCEPT or DROP)",
    ),
    ("-P INPUT", ", column 1: `-P` requires a value"),
    (
        "-P full DROP",
        ": chain full of table filter is not built-in, so it has no policy",
    ),
    (
        ":INPUT REJECT [0:0]",
        ", column 8: `REJECT` is not a policy (ACCEPT, DROP or -)",
    ),
    (":INPUT", ", column 7: expected a policy or `-`"),
    (":", ", column 2: expected a chain name"),
    (
        ":INPUT ACCEPT 0:0",
        ", column 15: invalid policy counters for chain 'INPUT'",
    ),
    (
        ":a-name-of-more-than-28-bytes- - [0:0]",
        ", column 2: chain name `a-name-of-more-than-28-bytes-' too long (must be under 29 chars)",
    ),
    (
        "*mangle",
        ", column 1: expected COMMIT before the next table",
    ),
    (
        "-A full -j ful",
        ": chain ful not found in table filter (did you mean full?)",
    ),
    (
        "-A INPUT -j KUBE-FOWARD",
        ": chain KUBE-FOWARD not found in table filter (did you mean KUBE-FORWARD?)",
    ),
    (
        "-A fulll -j DROP",
        ": chain fulll not found in table filter (did you mean full?)",
    ),
    (
        "-A INPUT -j accept",
        ": chain accept not found in table filter (did you mean ACCEPT?)",
    ),
    (
        "-A INPUT -j OUTPUT",
        ": chain OUTPUT of table filter is built-in: it cannot be created, removed, renamed or jumped to",
    ),
    (
        "-D full -p udp -j RETURN",
        ": rule not found in chain full of table filter: -p udp -j RETURN",
    ),
    ("-D full 2", ": chain full of table filter has only 1 rule"),
    ("-D full 0", ", column 9: `0` is not a rule number (from 1)"),
    ("-D nix 1", ": chain nix not found in table filter"),
    ("-D nix -p tcp", ": chain nix not found in table filter"),
    (
        "-I INPUT 3 -j ACCEPT",
        ": chain INPUT of table filter has only 1 rule",
    ),
    (
        "-I INPUT 0 -j ACCEPT",
        ", column 10: `0` is not a rule number (from 1)",
    ),
    (
        "-R INPUT 2 -j ACCEPT",
        ": chain INPUT of table filter has only 1 rule",
    ),
    (
        "-R INPUT -j ACCEPT",
        ", column 1: -R requires the number of the rule to replace",
    ),
    (
        "-R INPUT 1 -s 1.2.3.4,5.6.7.8",
        ", column 1: -R replaces one rule with one rule: it takes one source and one destination",
    ),
    ("-N full", ": chain full already exists in table filter"),
    (
        "-N INPUT",
        ": chain INPUT of table filter is built-in: it cannot be created, removed, renamed or jumped to",
    ),
    (
        "-X full",
        ": chain full of table filter has rules: flush it before removing it",
    ),
    (
        // nf_tables could remove it if it had no rules; a legacy table cannot.
        "-X INPUT",
        ": chain INPUT of table filter …",
    ),
    ("-X nix", ": chain nix not found in table filter"),
    ("-F nix", ": chain nix not found in table filter"),
    ("-Z nix", ": chain nix not found in table filter"),
    (
        "-E full empty",
        ": chain empty already exists in table filter",
    ),
    ("-E nix other", ": chain nix not found in table filter"),
    (
        "-E INPUT other",
        ": chain INPUT of table filter is built-in: it cannot be created, removed, renamed or jumped to",
    ),
    (
        "-X empty -j ACCEPT",
        ", column 1: this command takes no rule",
    ),
    (
        "-L",
        ", column 1: unknown option `-L` (a text can only change tables, not list them)",
    ),
    (
        "-S",
        ", column 1: unknown option `-S` (a text can only change tables, not list them)",
    ),
    (
        "-w -A INPUT",
        ", column 1: unknown option `-w` (it can only be used on the command line)",
    ),
];

#[test]
fn mistakes_in_lines() {
    let mut wrong = Vec::new();
    for backend in BACKENDS {
        let sandbox = prepared(backend);
        let before = state(&sandbox, backend);
        for (line, expected) in LINES {
            // A table before it, and lines before and after it.
            let text = format!(
                "*mangle\n-A OUTPUT -p tcp\nCOMMIT\n*filter\n# here\n-A OUTPUT -p tcp\n{line}\n\
                 -A OUTPUT -p udp\nCOMMIT\n"
            );
            let mut iptables = open(&sandbox, backend);
            let found = match restore(&mut iptables, &text, true) {
                Ok(()) => "nothing".to_owned(),
                Err(error) => {
                    if !error.nothing_applied() {
                        wrong.push(format!("{backend:?} {line}: in part"));
                    }
                    error.to_string()
                }
            };
            let as_expected = match expected.strip_suffix('…') {
                Some(start) => found.starts_with(&format!("line 7{start}")),
                None => found == format!("line 7{expected}"),
            };
            if !as_expected {
                wrong.push(format!("{backend:?} {line}\n    {found}"));
            }
            if state(&sandbox, backend) != before {
                wrong.push(format!("{backend:?} {line}: it was applied in part"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
