//! Text that a kube-proxy passes to `iptables-restore`, of any size.

use std::fmt::Write;

/// The table `nat` of a kube-proxy in iptables mode, as text: for each service, which has two
/// endpoints, three chains and eight rules, with the text and order of kube-proxy 1.36.
#[derive(Debug, Clone, Copy)]
pub struct Services {
    /// Number of services.
    pub services: usize,
}

const BUILTIN: [&str; 4] = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"];
const SHARED: [&str; 4] = [
    "KUBE-MARK-MASQ",
    "KUBE-NODEPORTS",
    "KUBE-POSTROUTING",
    "KUBE-SERVICES",
];
/// Jumps from the built-in chains.
const JUMPS: &str = "\
-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A OUTPUT -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment \"kubernetes postrouting rules\" -j KUBE-POSTROUTING
";
/// The shared chains' rules.
const SHARED_RULES: &str = "\
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000
-A KUBE-POSTROUTING -m comment --comment \"kubernetes service traffic requiring SNAT\" -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
";

impl Services {
    /// The table.
    pub const TABLE: &str = "nat";
    /// The chain that sends packets to every service.
    pub const CHAIN: &str = "KUBE-SERVICES";

    /// Returns the number of rules, including those that do not belong to a single service.
    #[must_use]
    pub const fn rules(self) -> usize {
        self.services * 8 + 7
    }

    /// Returns the number of chains, including the built-in ones.
    #[must_use]
    pub const fn chains(self) -> usize {
        self.services * 3 + BUILTIN.len() + SHARED.len()
    }

    /// Returns the names of all chains.
    pub fn chain_names(self) -> impl Iterator<Item = String> {
        let shared = BUILTIN.into_iter().chain(SHARED).map(String::from);
        shared.chain((0..self.services).flat_map(|number| {
            let [first, second] = endpoints(number);
            [name("SVC", number), name("SEP", first), name("SEP", second)]
        }))
    }

    /// Returns the complete table, including built-in chains: input for a restore that empties the
    /// table first.
    #[must_use]
    pub fn to_table(self) -> String {
        let mut text = String::from("*nat\n");
        for builtin in BUILTIN {
            let _ = writeln!(text, ":{builtin} ACCEPT [0:0]");
        }
        self.write(&mut text, JUMPS);
        text
    }

    /// Returns the text that kube-proxy passes when it writes all services: input for a restore
    /// that keeps the other chains of the table (`--noflush`).
    #[must_use]
    pub fn to_sync(self) -> String {
        let mut text = String::from("*nat\n");
        self.write(&mut text, "");
        text
    }

    /// Returns the rule that jumps to the first service, without `-A CHAIN`.
    #[must_use]
    pub fn rule(self) -> String {
        format!(
            "-m comment --comment \"ns/svc-0:http cluster IP\" -m tcp -p tcp -d 10.96.0.1 --dport 80 -j {}",
            name("SVC", 0)
        )
    }

    fn write(self, text: &mut String, jumps: &str) {
        for shared in SHARED {
            let _ = writeln!(text, ":{shared} - [0:0]");
        }
        for number in 0..self.services {
            let _ = writeln!(text, ":{} - [0:0]", name("SVC", number));
            for endpoint in endpoints(number) {
                let _ = writeln!(text, ":{} - [0:0]", name("SEP", endpoint));
            }
        }
        text.push_str(jumps);
        text.push_str(SHARED_RULES);
        for number in 0..self.services {
            write_service(text, number);
        }
        text.push_str("COMMIT\n");
    }
}

/// The eight rules of a service.
fn write_service(text: &mut String, number: usize) {
    let [_, a, b, c] = (number as u32).to_be_bytes();
    let address = format!("10.{}.{b}.{c}", 96_u8.wrapping_add(a));
    let service = name("SVC", number);
    let port = format!("ns/svc-{number}:http");
    let of_port =
        format!("-m comment --comment \"{port} cluster IP\" -m tcp -p tcp -d {address} --dport 80");
    let [first, second] = endpoints(number);
    let _ = write!(
        text,
        "-A KUBE-SERVICES {of_port} -j {service}\n\
         -A {service} {of_port} ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ\n\
         -A {service} -m comment --comment \"{port} -> {}:8080\" -m statistic --mode random \
         --probability 0.5000000000 -j {}\n\
         -A {service} -m comment --comment \"{port} -> {}:8080\" -j {}\n",
        pod(first),
        name("SEP", first),
        pod(second),
        name("SEP", second),
    );
    for endpoint in [first, second] {
        let (chain, pod) = (name("SEP", endpoint), pod(endpoint));
        let _ = write!(
            text,
            "-A {chain} -m comment --comment {port} -s {pod} -j KUBE-MARK-MASQ\n\
             -A {chain} -m comment --comment {port} -m tcp -p tcp -j DNAT --to-destination {pod}:8080\n"
        );
    }
}

/// Returns the numbers of a service's endpoints.
const fn endpoints(service: usize) -> [usize; 2] {
    [service * 2, service * 2 + 1]
}

/// Returns an endpoint's address: `10.244.x.y`, repeating after 65,536 endpoints.
fn pod(endpoint: usize) -> String {
    let [.., a, b] = (endpoint as u32).to_be_bytes();
    format!("10.244.{a}.{b}")
}

/// Returns a chain's name: `KUBE-`, kind, and 16 characters like those of a hash, all different.
fn name(kind: &str, number: usize) -> String {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut name = format!("KUBE-{kind}-");
    // Multiplying by an odd number spreads 2³² numbers and keeps them distinct.
    let mut bits = u128::from((number as u32).wrapping_mul(0x9e37_79b1)) << 48
        | u128::from((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16);
    for _ in 0..16 {
        name.push(char::from(DIGITS[(bits >> 75) as usize % 32]));
        bits <<= 5;
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn generated_text_has_the_declared_counts() {
        let services = Services { services: 1000 };
        let starting =
            |text: &str, start: &str| text.lines().filter(|l| l.starts_with(start)).count();
        let text = services.to_table();
        assert_eq!(starting(&text, "-A "), services.rules());
        assert_eq!(starting(&text, ":"), services.chains());
        assert_eq!(starting(&services.to_sync(), "-A "), services.rules() - 3);
        let names: HashSet<_> = services.chain_names().collect();
        assert_eq!(names.len(), services.chains());
        for line in text.lines().filter_map(|line| line.strip_prefix(':')) {
            assert!(names.contains(line.split(' ').next().unwrap()), "{line}");
        }
        assert!(names.iter().all(|name| name.len() <= 28));
        assert!(text.contains(&format!(
            "-A KUBE-SERVICES {}\n",
            services.rule().replace(".0.1 ", ".0.0 ")
        )));
    }
}
