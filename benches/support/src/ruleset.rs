//! Rulesets like those of kube-proxy, of any size.

use std::fmt::Write;
use std::ops::Range;

use chainwright_sys::nf_nat::{NF_NAT_RANGE_MAP_IPS, NF_NAT_RANGE_PROTO_SPECIFIED, nf_nat_range2};
use zerocopy::{FromZeros, IntoBytes};

use crate::BoxError;
use chainwright::iptables::Family as IptablesFamily;
use chainwright::iptables::nft::chain;
use chainwright::netlink::{self, MessageError};
use chainwright::nft::UnknownAttributes;
use chainwright::nft::expr::{
    Cmp, Counter, Immediate, Match, Meta, MetaKey, Payload, PayloadBase, Register, Target,
};
use chainwright::nft::{Chain, CommitError, Compat, Connection, Family, Rule, Table, Transaction};

/// The ruleset of a kube-proxy in iptables mode: half of the chains are `KUBE-SVC-*`, half
/// `KUBE-SEP-*`, in table `ip nat`, reached from one `KUBE-SERVICES`, with two and a half rules per
/// chain; comments, matches and targets are xtables extensions, as iptables-nft writes them.
#[derive(Debug, Clone, Copy)]
pub struct KubeProxy {
    /// Number of `KUBE-SVC-*` and `KUBE-SEP-*` chains; rounded down to a pair.
    pub chains: usize,
}

/// The table.
const TABLE: &str = "nat";
const BUILTIN: [&str; 4] = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"];
const SERVICES: &str = "KUBE-SERVICES";
const MARK_MASQ: &str = "KUBE-MARK-MASQ";

/// Buffers that are reused for every rule, so that writing a ruleset does not allocate for each.
struct RuleBuffers {
    service: String,
    endpoint: String,
    comment: [u8; 256],
    rule: Rule<'static>,
}

impl KubeProxy {
    /// Returns the number of pairs of chains.
    const fn pairs(self) -> usize {
        self.chains / 2
    }

    /// Returns the number of rules, including those of `KUBE-SERVICES`.
    #[must_use]
    pub const fn rules(self) -> usize {
        self.pairs() * 5
    }

    /// Returns the family and name of the table.
    #[must_use]
    pub const fn table(self) -> (Family, &'static str) {
        (Family::IP, TABLE)
    }

    /// Returns the name of the service chain with this number, below half of
    /// [`chains`](Self::chains).
    #[must_use]
    pub fn service_chain(self, number: usize) -> String {
        let mut name = String::new();
        name_chain(&mut name, "SVC", number);
        name
    }

    /// Returns the names of all chains.
    pub fn chain_names(self) -> impl Iterator<Item = String> {
        let fixed = BUILTIN.into_iter().chain([SERVICES, MARK_MASQ]);
        let pairs = (0..self.pairs()).flat_map(|number| {
            ["SVC", "SEP"].map(|kind| {
                let mut name = String::new();
                name_chain(&mut name, kind, number);
                name
            })
        });
        fixed.map(String::from).chain(pairs)
    }

    /// Appends the operations that create the ruleset in an empty table.
    ///
    /// # Errors
    /// Never [`MessageError`] in practice: everything written is short.
    pub fn write(self, tx: &mut Transaction) -> Result<(), MessageError> {
        self.write_chains(tx, 0..self.pairs())?;
        self.write_rules(tx, 0..self.pairs())
    }

    /// Creates the ruleset: in one transaction, or in several if the send buffer of a user without
    /// privileges is too small for it.
    ///
    /// # Errors
    /// Those of [`Connection::commit`].
    pub fn load(self, nft: &mut Connection) -> Result<(), BoxError> {
        let mut tx = Transaction::new();
        self.write(&mut tx)?;
        match nft.commit(&tx) {
            Err(CommitError {
                source: Some(netlink::Error::TooLarge { .. }),
                ..
            }) => {}
            committed => return Ok(committed?),
        }
        for (size, write) in [
            (1000, Self::write_chains as fn(_, &mut _, _) -> _),
            (50, Self::write_rules),
        ] {
            for start in (0..self.pairs().max(1)).step_by(size) {
                tx.clear();
                write(self, &mut tx, start..(start + size).min(self.pairs()))?;
                nft.commit(&tx)?;
            }
        }
        Ok(())
    }

    /// Writes the table, the parts that all services share, and the chains of these pairs.
    fn write_chains(self, tx: &mut Transaction, pairs: Range<usize>) -> Result<(), MessageError> {
        tx.add(&Table::new(Family::IP, TABLE))?;
        for builtin in BUILTIN {
            tx.add(&chain(IptablesFamily::Ipv4, TABLE, builtin))?;
        }
        for name in [SERVICES, MARK_MASQ] {
            tx.add(&Chain::new(Family::IP, TABLE, name))?;
        }
        let (mut service, mut endpoint) = (String::new(), String::new());
        for number in pairs {
            name_chain(&mut service, "SVC", number);
            name_chain(&mut endpoint, "SEP", number);
            tx.add(&Chain::new(Family::IP, TABLE, &service))?
                .add(&Chain::new(Family::IP, TABLE, &endpoint))?;
        }
        Ok(())
    }

    /// Writes the rules of these pairs.
    fn write_rules(self, tx: &mut Transaction, pairs: Range<usize>) -> Result<(), MessageError> {
        let mut buffers = RuleBuffers {
            service: String::with_capacity(32),
            endpoint: String::with_capacity(32),
            comment: [0; 256],
            rule: Rule::new(Family::IP, TABLE, SERVICES),
        };
        buffers.rule.compat = Some(Compat {
            protocol: Some(0),
            flags: Some(0),
            unknown: UnknownAttributes::NONE,
        });
        for number in pairs {
            self.write_pair(tx, &mut buffers, number)?;
        }
        Ok(())
    }

    /// Appends one more service: a chain, and three rules. Numbers from [`chains`](Self::chains) on
    /// are free.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn write_one_more(self, tx: &mut Transaction, number: usize) -> Result<(), MessageError> {
        let mut name = String::new();
        name_chain(&mut name, "SVC", number);
        tx.add(&Chain::new(Family::IP, TABLE, &name))?;
        for _ in 0..3 {
            tx.add(
                &Rule::new(Family::IP, TABLE, &name)
                    .with(&Counter::new(0, 0))
                    .with(&Immediate::jump(MARK_MASQ)),
            )?;
        }
        Ok(())
    }

    /// Writes the five rules of a service with one endpoint.
    fn write_pair(
        self,
        tx: &mut Transaction,
        buffers: &mut RuleBuffers,
        number: usize,
    ) -> Result<(), MessageError> {
        let [_, a, b, c] = (number as u32).to_be_bytes();
        name_chain(&mut buffers.service, "SVC", number);
        name_chain(&mut buffers.endpoint, "SEP", number);
        comment(&mut buffers.comment, number);

        // -A KUBE-SERVICES -d 10.x.y.z/32 -p tcp … -j KUBE-SVC-…
        buffers.begin(SERVICES);
        tcp(&mut buffers.rule);
        let destination = [10, a, b, c];
        address(&mut buffers.rule, 16, &destination, false);
        buffers
            .rule
            .push(&Match::new("comment", 0, &buffers.comment[..]))
            .push(&Match::new("tcp", 0, &TCP_PORT_80[..]))
            .push(&Counter::new(0, 0))
            .push(&Immediate::jump(&buffers.service));
        buffers.end(tx)?;

        // -A KUBE-SVC-… ! -s 10.244.0.0/16 … -j KUBE-MARK-MASQ, and … -j KUBE-SEP-…
        let service = std::mem::take(&mut buffers.service);
        buffers.begin(&service);
        address(&mut buffers.rule, 12, &[10, 244], true);
        buffers
            .rule
            .push(&Match::new("comment", 0, &buffers.comment[..]))
            .push(&Counter::new(0, 0))
            .push(&Immediate::jump(MARK_MASQ));
        buffers.end(tx)?;
        buffers.begin(&service);
        buffers
            .rule
            .push(&Match::new("comment", 0, &buffers.comment[..]))
            .push(&Counter::new(0, 0))
            .push(&Immediate::jump(&buffers.endpoint));
        buffers.end(tx)?;
        buffers.service = service;

        // -A KUBE-SEP-… -s 10.244.y.z/32 … -j KUBE-MARK-MASQ, and … -j DNAT
        let endpoint = std::mem::take(&mut buffers.endpoint);
        let pod = [10, 244, b, c];
        buffers.begin(&endpoint);
        address(&mut buffers.rule, 12, &pod, false);
        buffers
            .rule
            .push(&Match::new("comment", 0, &buffers.comment[..]))
            .push(&Counter::new(0, 0))
            .push(&Immediate::jump(MARK_MASQ));
        buffers.end(tx)?;
        buffers.begin(&endpoint);
        tcp(&mut buffers.rule);
        let to = dnat(pod, 8080);
        buffers
            .rule
            .push(&Match::new("comment", 0, &buffers.comment[..]))
            .push(&Match::new("tcp", 0, &TCP_ANY[..]))
            .push(&Counter::new(0, 0))
            .push(&Target::new("DNAT", 2, to.as_bytes()));
        buffers.end(tx)?;
        buffers.endpoint = endpoint;
        Ok(())
    }

    /// Returns the same ruleset as input for `iptables-restore`.
    #[must_use]
    pub fn to_iptables_save(self) -> String {
        let mut text = String::from("*nat\n");
        for builtin in BUILTIN {
            let _ = writeln!(text, ":{builtin} ACCEPT [0:0]");
        }
        let _ = writeln!(text, ":{SERVICES} - [0:0]\n:{MARK_MASQ} - [0:0]");
        let (mut svc, mut sep) = (String::new(), String::new());
        for number in 0..self.pairs() {
            name_chain(&mut svc, "SVC", number);
            name_chain(&mut sep, "SEP", number);
            let _ = writeln!(text, ":{svc} - [0:0]\n:{sep} - [0:0]");
        }
        for number in 0..self.pairs() {
            let [_, a, b, c] = (number as u32).to_be_bytes();
            name_chain(&mut svc, "SVC", number);
            name_chain(&mut sep, "SEP", number);
            let comment_option = format!("-m comment --comment \"ns/svc-{number}:http\"");
            let _ = write!(
                text,
                "-A {SERVICES} -d 10.{a}.{b}.{c}/32 -p tcp {comment_option} -m tcp --dport 80 -j {svc}\n\
                 -A {svc} ! -s 10.244.0.0/16 {comment_option} -j {MARK_MASQ}\n\
                 -A {svc} {comment_option} -j {sep}\n\
                 -A {sep} -s 10.244.{b}.{c}/32 {comment_option} -j {MARK_MASQ}\n\
                 -A {sep} -p tcp {comment_option} -m tcp -j DNAT --to-destination 10.244.{b}.{c}:8080\n"
            );
        }
        text.push_str("COMMIT\n");
        text
    }
}

impl RuleBuffers {
    /// Starts a rule in this chain.
    fn begin(&mut self, chain: &str) {
        let mut name = self.rule.chain.take().unwrap_or_default();
        name.set(chain.as_bytes());
        self.rule.chain = Some(name);
        self.rule.clear();
    }

    fn end(&mut self, tx: &mut Transaction) -> Result<(), MessageError> {
        tx.add(&self.rule).map(drop)
    }
}

/// Writes a chain's name: `KUBE-`, kind, and 16 letters and digits as in a hash.
fn name_chain(name: &mut String, kind: &str, number: usize) {
    name.clear();
    let _ = write!(name, "KUBE-{kind}-{number:07}ABCDEFGHI");
}

/// Writes the data of a `comment` match.
fn comment(info: &mut [u8; 256], number: usize) {
    info.fill(0);
    let mut rest = &mut info[..];
    let _ = std::io::Write::write_fmt(&mut rest, format_args!("ns/svc-{number}:http"));
}

/// Data of a `tcp` match (`struct xt_tcp`, `linux/netfilter/xt_tcpudp.h`) that matches destination
/// port 80, padded: source ports, destination ports (host byte order), option, flags, negations.
const TCP_PORT_80: [u8; 16] = {
    let mut info = TCP_ANY;
    let port = 80u16.to_ne_bytes();
    info[4] = port[0];
    info[5] = port[1];
    info[6] = port[0];
    info[7] = port[1];
    info
};

/// The same for a match of all TCP packets.
const TCP_ANY: [u8; 16] = [0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];

/// Adds `-p tcp`.
fn tcp(rule: &mut Rule<'static>) {
    rule.push(&Meta::load(MetaKey::L4PROTO, Register::R1))
        .push(&Cmp::eq(Register::R1, &[6]));
    rule.compat = Some(Compat {
        protocol: Some(6),
        flags: Some(0),
        unknown: UnknownAttributes::NONE,
    });
}

/// Compares the address at this offset of the IPv4 header.
fn address(rule: &mut Rule<'static>, offset: u32, bytes: &[u8], not: bool) {
    let cmp = if not { Cmp::neq } else { Cmp::eq };
    let length = bytes.len() as u32;
    rule.push(&Payload::load(
        PayloadBase::NETWORK,
        offset,
        length,
        Register::R1,
    ))
    .push(&cmp(Register::R1, bytes));
}

/// Returns the data of a `DNAT` target to one address and port.
fn dnat(address: [u8; 4], port: u16) -> nf_nat_range2 {
    let mut range = nf_nat_range2::new_zeroed();
    range.flags = NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED;
    for end in [&mut range.min_addr, &mut range.max_addr] {
        end.as_mut_bytes()[..4].copy_from_slice(&address);
    }
    for end in [&mut range.min_proto, &mut range.max_proto] {
        end.as_mut_bytes().copy_from_slice(&port.to_be_bytes());
    }
    range
}
