//! Runs `explain` on kube-proxy's rulesets, on the kernel's tables of both backends, and on texts.

use super::*;
use crate::common::tools::Tools;

/// Runs with arguments that contain spaces.
#[track_caller]
fn explain(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut command = Command::new(PROGRAM);
    command.arg("explain").args(arguments);
    command.current_dir(crate::common::in_workspace(""));
    let output = run_on(&mut command, input.as_bytes()).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn texts_of_rules() {
    for (arguments, expected) in [
        (
            &["ip saddr 10.0.0.0/8 tcp dport { 22, 80 } drop"][..],
            "If the IPv4 source address is in 10.0.0.0/8 and the TCP destination port is 22 or 80, the rule \
             drops the packet.",
        ),
        (
            &[
                "--",
                "-A INPUT -s 10.0.0.0/8 -p tcp -m tcp --dport 22 -j ACCEPT",
            ],
            "If the IPv4 source address is in 10.0.0.0/8 and the TCP destination port is 22, the rule accepts the \
             packet.",
        ),
        (
            &["-6", "--", "-s fd00::/8 -j DROP"],
            "If the IPv6 source address is in fd00::/8, the rule drops the packet.",
        ),
        (
            &["ip saddr @blocked jump refuse"],
            "If the IPv4 source address is in the set @blocked, the rule jumps to the chain refuse.",
        ),
    ] {
        let (code, out, err) = explain(arguments, "");
        assert_eq!((code, &*flat(&out)), (0, expected), "{err}");
    }
    for (arguments, expected) in [
        (&["tcp dport 99999 accept"][..], "99999"),
        (&["tcp dport 1 accept; drop"], "drop"),
        (&["--", "-p tcp --dprot 22"], "--dprot"),
        (&["svc/web"], "svc/NAMESPACE/NAME"),
        (&["a", "b", "c", "d"], "in quotation marks"),
    ] {
        let (code, out, err) = explain(arguments, "");
        assert!(
            code == 2 && out.is_empty() && err.contains(expected),
            "{arguments:?}: {code} {out}{err}"
        );
    }
}

#[test]
fn rules_are_selected_by_number_and_handle() {
    let json = done(
        &format!("explain nat KUBE-SERVICES --json --file {IPTABLES}"),
        "",
    );
    let document: Value = serde_json::from_str(&json).unwrap();
    let rule = &document["chains"][0]["rules"][79];
    assert_eq!(rule["number"], 80);
    let text = rule["text"].as_str().unwrap();
    assert!(
        text.contains("10.96.10.10") && text.ends_with("KUBE-SVC-7G3ZKRFF37FPGNHN."),
        "{text}"
    );
    let names = [
        "KUBE-SERVICES 80".to_owned(),
        format!("ip nat KUBE-SERVICES handle {}", rule["handle"]),
    ];
    for name in names {
        let out = done(
            &format!("explain nat {name} --file {IPTABLES}").replace("nat ip", "ip"),
            "",
        );
        assert!(flat(&out).contains(text), "{out}");
        assert!(
            out.contains("comment: default/azure-vote-front cluster IP"),
            "{out}"
        );
        assert!(!out.contains("10.96.0.1"), "{out}");
    }
    for (name, message) in [
        ("nothing", "no such chain \"nothing\""),
        (
            "nat KUBE-SERVICES 9999",
            "no such rule in a chain \"KUBE-SERVICES\"",
        ),
        ("mangle KUBE-SERVICES", "no such chain"),
        ("svc/default/nothing", "no such service \"default/nothing\""),
    ] {
        let (code, out, err) = run(&format!("explain {name} --file {IPTABLES}"), "");
        assert!(
            code == 1 && out.is_empty() && err.contains(message),
            "{name}: {code} {out}{err}"
        );
    }
}

/// For each service in the manifests, `explain` finds its addresses and ports, and the endpoints of a trace.
#[test]
fn services_of_both_modes() {
    let (addresses, _) = manifests();
    for file in [IPTABLES, NFTABLES] {
        let ports: BTreeSet<_> = addresses.iter().map(|(name, ..)| name).collect();
        for port in ports
            .iter()
            .step_by(40)
            .chain([&&"default/azure-vote-front".to_owned()])
        {
            let json = done(&format!("explain svc/{port} --json --file {file}"), "");
            let document: Value = serde_json::from_str(&json).unwrap();
            let [one] = &document["service"]["ports"].as_array().unwrap()[..] else {
                panic!("{port}: {document}");
            };
            assert_eq!(one["name"].as_str(), Some(port.as_str()));
            let frontends = one["frontends"].as_array().unwrap();
            for (_, address, ..) in addresses.iter().filter(|(name, ..)| name == *port) {
                assert!(
                    frontends
                        .iter()
                        .any(|one| one["address"] == address.as_str()),
                    "{port} {address}"
                );
            }
            let traced = done(&format!("trace {port} --json --file {file}"), "");
            let traced: Value = serde_json::from_str(&traced).unwrap();
            assert_eq!(
                frontends.len(),
                traced["traces"].as_array().unwrap().len(),
                "{port}"
            );
            // Its chains lead to the endpoints.
            let chains = one["chains"].to_string();
            for outcome in frontends
                .iter()
                .flat_map(|one| one["outcomes"].as_array().unwrap())
            {
                if let Some(endpoint) = outcome["endpoint"].as_str() {
                    assert!(chains.contains(endpoint), "{port}: {endpoint}");
                }
            }
        }
    }
    let out = done(
        &format!("explain svc/default/empty:http --file {IPTABLES}"),
        "",
    );
    assert!(
        flat(&out).contains("default/empty:http has no endpoints"),
        "{out}"
    );
    let out = flat(&done(
        &format!("explain svc/default/azure-vote-front --file {NFTABLES}"),
        "",
    ));
    assert!(
        out.contains("An endpoint is chosen at random for each new connection"),
        "{out}"
    );
    assert!(
        out.contains("10.244.1.5:80 or 10.244.1.6:80, chosen at random"),
        "{out}"
    );
}

#[test]
fn tables_of_the_kernel_in_both_backends() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table inet t {
            chain c { ip saddr 192.0.2.1 counter packets 7 bytes 8 drop comment \"not him\"; }
            chain b { type filter hook input priority -7; policy drop; tcp dport 22 jump c; }
         }",
    );
    assert!(
        crate::common::arp::drop_all(&sandbox),
        "this test needs legacy tables"
    );
    tools.run("iptables-legacy -N c");
    tools.run("iptables-legacy -A c -p udp --dport 53 -j DROP");
    tools.run("iptables-legacy -A INPUT -j c");
    let run = |arguments: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(arguments.split(' '));
        let output = sandbox.run(|| command.output().unwrap()).unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let out = flat(&run("explain c"));
    for part in [
        "chain inet t c: 1 rule from: b",
        "If the IPv4 source address is 192.0.2.1, the rule counts the packet, then drops it. comment: not him",
        "1 192.0.2.1 drops it 7 not him",
        "chain legacy ip filter c: 1 rule from: INPUT",
        "If the UDP destination port is 53, the rule drops the packet.",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!flat(&run("explain c --backend legacy")).contains("192.0.2.1"));
    let out = flat(&run("explain inet t b"));
    let base = "hook input, priority -7; it drops the packets that no rule decides on";
    assert!(out.contains(base), "{out}");
}

/// Chains that no packet reaches, chains of devices, names that look like kube-proxy's, and rules of one word.
#[test]
fn chains_and_rules_of_other_kinds() {
    let ruleset = "table inet mine { flags dormant; chain services { tcp dport 22 accept; }; \
        chain base { type filter hook input priority 0; jump services; }; }; \
        table netdev d { chain in { type filter hook ingress devices = { lo, eth0 } priority 5; drop; }; }";
    let of = |what: &str| {
        let (code, out, err) = explain(&[what, "--file", "-"], ruleset);
        assert_eq!(code, 0, "{what}: {err}");
        flat(&out)
    };
    let services = of("services");
    assert!(services.contains("from: base"), "{services}");
    assert!(!services.contains("probably"), "{services}");
    let base = of("base");
    assert!(
        base.contains("its table is dormant: no packet reaches it"),
        "{base}"
    );
    let devices = of("in");
    let hook = "hook ingress of the devices eth0, lo, priority 5; it accepts";
    assert!(devices.contains(hook), "{devices}");
    // A chain of this name comes first.
    assert_eq!(of("drop"), "The rule drops every packet.");
    let (code, out, err) = explain(
        &["drop", "--file", "-"],
        "table ip t { chain drop { accept; }; }",
    );
    assert!(
        code == 0 && flat(&out).contains("accepts every packet"),
        "{out}{err}"
    );
    let (code, _, err) = explain(&["missing", "--file", "-"], ruleset);
    assert!(
        code == 1 && err.contains("no such chain \"missing\""),
        "{err}"
    );
}

/// A comment cannot forge Markdown or lines.
#[test]
fn markdown_is_escaped() {
    let ruleset = "table ip t { chain c { drop comment \"a|b <script>*x* [l](u) `c` # h\"; }; }";
    let (code, out, err) = explain(&["c", "--format", "markdown", "--file", "-"], ruleset);
    assert_eq!(code, 0, "{err}");
    let escaped = r"a\|b &lt;script>\*x\* \[l\](u) \`c\` \# h";
    assert!(
        out.contains(&format!("| 1 | drops it | {escaped} |")),
        "{out}"
    );
    assert!(out.contains(&format!("comment: {escaped}\n")), "{out}");
    assert!(!out.contains("<script"), "{out}");
}

/// The purposes of other programs' chains.
#[test]
fn chains_of_other_programs_have_purposes() {
    let ruleset = "*filter\n:FORWARD ACCEPT [0:0]\n:DOCKER-USER - [0:0]\n:cali-tw-cali1 - [0:0]\n\
        :ufw-user-input - [0:0]\n-A FORWARD -j DOCKER-USER\n-A DOCKER-USER -j RETURN\nCOMMIT\n";
    for (chain, purpose) in [
        (
            "DOCKER-USER",
            "probably of Docker: the administrator's rules for containers",
        ),
        (
            "cali-tw-cali1",
            "probably of Calico: packets to the workload behind one interface",
        ),
        (
            "ufw-user-input",
            "probably of ufw: the rules of `ufw allow`",
        ),
    ] {
        let (code, out, err) = explain(&[chain, "--file", "-"], ruleset);
        assert!(
            code == 0 && flat(&out).contains(purpose),
            "{chain}: {out}{err}"
        );
    }
    let (_, out, _) = explain(&["FORWARD", "--file", "-"], ruleset);
    assert!(!out.contains("probably"), "{out}");
}
