//! Checks for the optional kernel features that a transaction requires, before it changes anything.
//!
//! Most of nf_tables is built or loaded in parts: expressions, types of objects and chains, families, x_tables
//! extensions. Each part is probed with an otherwise invalid operation: the kernel answers `ENOENT` for a missing
//! part, and another error otherwise. The probes are sent in a batch without an end, which the kernel never applies,
//! in tables that do not exist before or after it.

use std::collections::HashSet;
use std::fmt;

use bstr::{BStr, BString, ByteSlice as _};
use chainwright_sys::netlink::NLM_F_CREATE;
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFTA_CHAIN_HOOK,
    NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, NFTA_CHAIN_TYPE, NFTA_EXPR_NAME, NFTA_FLOWTABLE_HOOK,
    NFTA_FLOWTABLE_HOOK_NUM, NFTA_FLOWTABLE_HOOK_PRIORITY, NFTA_FLOWTABLE_NAME,
    NFTA_FLOWTABLE_TABLE, NFTA_HOOK_HOOKNUM, NFTA_HOOK_PRIORITY, NFTA_LIST_ELEM, NFTA_OBJ_DATA,
    NFTA_OBJ_NAME, NFTA_OBJ_TABLE, NFTA_OBJ_TYPE, NFTA_RULE_CHAIN, NFTA_RULE_EXPRESSIONS,
    NFTA_RULE_TABLE,
};

use super::declare::Field;
use super::expr::{ExpressionRef, ExpressionView, Match, ObjectType, Target};
use super::feature::{self, Feature};
use super::name::Name;
use super::references::{MessageItem, each_mention};
use super::{
    Chain, Connection, Cost, ExtensionKind, Family, Operation, Rule, Scope, Table, Transaction,
};
use crate::error::Error;
use crate::netlink::{Attributes, Message, MessageError};

/// A part of nf_tables that a transaction requires.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Requirement {
    /// A family of tables.
    Family(Family),
    /// An expression in tables of this family.
    Expression(Family, BString),
    /// An x_tables extension, for the expressions `match` and `target`.
    Extension {
        /// Family of the tables.
        family: Family,
        /// Match or target.
        kind: ExtensionKind,
        /// Its name.
        name: BString,
        /// Its revision.
        revision: u8,
    },
    /// A type of base chain in tables of this family.
    ChainType(Family, BString),
    /// A type of stateful object in tables of this family.
    ObjectType(Family, ObjectType),
    /// Flowtables in tables of this family.
    Flowtable(Family),
    /// A feature of nf_tables itself, with the Linux release that introduced it.
    Feature(Feature),
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Family(family) => write!(f, "tables of the family {family}"),
            Self::Expression(family, name) => write!(f, "the expression `{name}` in {family}"),
            Self::Extension {
                family,
                kind,
                name,
                revision,
            } => write!(f, "the {kind} `{name}` in {family}, revision {revision}"),
            Self::ChainType(family, name) => write!(f, "chains of type {name} in {family}"),
            Self::ObjectType(family, object_type) => write!(f, "{object_type} in {family}"),
            Self::Flowtable(family) => write!(f, "flowtables in {family}"),
            Self::Feature(feature) => feature.fmt(f),
        }
    }
}

impl Requirement {
    /// Returns the kernel build option that enables it, if it has its own: `CONFIG_NFT_QUEUE`.
    ///
    /// Source: `net/netfilter/Kconfig`, `net/ipv4/netfilter/Kconfig` and the corresponding files for IPv6 and
    /// bridges, Linux 6.18.
    #[must_use]
    pub fn config(&self) -> Option<&'static str> {
        Some(match self {
            Self::Family(Family::INET) => "CONFIG_NF_TABLES_INET",
            Self::Family(Family::IP) => "CONFIG_NF_TABLES_IPV4",
            Self::Family(Family::IP6) => "CONFIG_NF_TABLES_IPV6",
            Self::Family(Family::ARP) => "CONFIG_NF_TABLES_ARP",
            Self::Family(Family::BRIDGE) => "CONFIG_NF_TABLES_BRIDGE",
            Self::Family(Family::NETDEV) => "CONFIG_NF_TABLES_NETDEV",
            Self::Expression(family, name) => return of_expression(*family, name.as_ref()),
            Self::ChainType(_, name) if name == "nat" => "CONFIG_NFT_NAT",
            Self::ObjectType(_, object_type) => match *object_type {
                ObjectType::QUOTA => "CONFIG_NFT_QUOTA",
                ObjectType::CT_HELPER | ObjectType::CT_TIMEOUT | ObjectType::CT_EXPECT => {
                    "CONFIG_NFT_CT"
                }
                ObjectType::LIMIT => "CONFIG_NFT_LIMIT",
                ObjectType::CONNLIMIT => "CONFIG_NFT_CONNLIMIT",
                ObjectType::TUNNEL => "CONFIG_NFT_TUNNEL",
                ObjectType::SYNPROXY => "CONFIG_NFT_SYNPROXY",
                ObjectType::SECMARK => "CONFIG_NETWORK_SECMARK",
                _ => return None,
            },
            Self::Flowtable(_) => "CONFIG_NF_FLOW_TABLE_INET",
            _ => return None,
        })
    }

    /// Returns the name that the kernel passes to `modprobe`, if it may be a module: `nft-expr-queue`.
    #[must_use]
    pub fn module_alias(&self) -> Option<String> {
        Some(match self {
            Self::Expression(_, name) => format!("nft-expr-{name}"),
            Self::Extension { family, name, .. } => {
                let tables = match *family {
                    Family::IP6 => "ip6t",
                    Family::ARP => "arpt",
                    Family::BRIDGE => "ebt",
                    _ => "ipt",
                };
                format!("{tables}_{name}")
            }
            Self::ChainType(family, name) => format!("nft-chain-{}-{name}", family.0),
            Self::ObjectType(_, object_type) => format!("nft-obj-{}", object_type.0),
            Self::Flowtable(family) => format!("nf-flowtable-{}", family.0),
            Self::Family(_) | Self::Feature(_) => return None,
        })
    }

    /// Returns the family of the tables in which it is probed.
    const fn family(&self) -> Option<Family> {
        match self {
            Self::Family(family)
            | Self::Expression(family, _)
            | Self::Extension { family, .. }
            | Self::ChainType(family, _)
            | Self::ObjectType(family, _)
            | Self::Flowtable(family) => Some(*family),
            Self::Feature(_) => None,
        }
    }
}

/// Returns the build option of an expression that is not part of nf_tables itself.
fn of_expression(family: Family, name: &BStr) -> Option<&'static str> {
    Some(match (name.as_bytes(), family) {
        (b"connlimit", _) => "CONFIG_NFT_CONNLIMIT",
        (b"ct" | b"notrack", _) => "CONFIG_NFT_CT",
        (b"dup", Family::IP) => "CONFIG_NFT_DUP_IPV4",
        (b"dup", Family::IP6) => "CONFIG_NFT_DUP_IPV6",
        (b"dup", Family::NETDEV) => "CONFIG_NFT_DUP_NETDEV",
        (b"fib", Family::IP) => "CONFIG_NFT_FIB_IPV4",
        (b"fib", Family::IP6) => "CONFIG_NFT_FIB_IPV6",
        (b"fib", Family::INET) => "CONFIG_NFT_FIB_INET",
        (b"fib", Family::NETDEV) => "CONFIG_NFT_FIB_NETDEV",
        (b"flow_offload", _) => "CONFIG_NFT_FLOW_OFFLOAD",
        (b"fwd", Family::NETDEV) => "CONFIG_NFT_FWD_NETDEV",
        (b"hash", _) => "CONFIG_NFT_HASH",
        (b"limit", _) => "CONFIG_NFT_LIMIT",
        (b"log", _) => "CONFIG_NFT_LOG",
        (b"masq", Family::IP | Family::IP6 | Family::INET) => "CONFIG_NFT_MASQ",
        (b"match" | b"target", _) => "CONFIG_NFT_COMPAT",
        (b"nat", _) => "CONFIG_NFT_NAT",
        (b"numgen", _) => "CONFIG_NFT_NUMGEN",
        (b"osf", _) => "CONFIG_NFT_OSF",
        (b"queue", _) => "CONFIG_NFT_QUEUE",
        (b"quota", _) => "CONFIG_NFT_QUOTA",
        (b"redir", Family::IP | Family::IP6 | Family::INET) => "CONFIG_NFT_REDIR",
        (b"reject", Family::BRIDGE) => "CONFIG_NFT_BRIDGE_REJECT",
        (b"reject", Family::NETDEV) => "CONFIG_NFT_REJECT_NETDEV",
        (b"reject", Family::IP | Family::IP6 | Family::INET) => "CONFIG_NFT_REJECT",
        (b"socket", _) => "CONFIG_NFT_SOCKET",
        (b"synproxy", _) => "CONFIG_NFT_SYNPROXY",
        (b"tproxy", _) => "CONFIG_NFT_TPROXY",
        (b"tunnel", _) => "CONFIG_NFT_TUNNEL",
        (b"xfrm", _) => "CONFIG_NFT_XFRM",
        _ => return None,
    })
}

/// A part of nf_tables that a transaction requires and this kernel lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The missing part.
    pub requirement: Requirement,
    /// The first operation that requires it.
    pub operation: Operation,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: this kernel lacks {}",
            self.operation, self.requirement
        )?;
        match (self.requirement.config(), self.requirement.module_alias()) {
            (Some(config), Some(alias)) => write!(f, " ({config}, modprobe {alias})"),
            (Some(config), None) => write!(f, " ({config})"),
            (None, Some(alias)) => write!(f, " (modprobe {alias})"),
            (None, None) => Ok(()),
        }
    }
}

/// The result of [`Connection::preflight`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preflight {
    /// The parts of nf_tables that the transaction requires and this kernel lacks; empty if it has them all.
    pub missing: Vec<Missing>,
    /// The operations that take the kernel unusually much time or memory.
    pub costs: Vec<Cost>,
}

impl Connection {
    /// Returns the parts of nf_tables that a transaction requires and this kernel lacks (families, expressions,
    /// x_tables extensions, types of objects and chains, flowtables, and features introduced after the running Linux
    /// release), and the operations that take the kernel unusually much time or memory.
    ///
    /// Each part is probed with an operation in a table that [never exists](Self::check): the kernel loads modules to
    /// answer, as it would for the transaction, and nothing else changes. Releases are compared by number, so a
    /// feature that was backported to an older kernel is reported as missing. Costs follow from the operations. If
    /// they add many sets to a table, the sets that it contains already count too; the elements of existing sets do not.
    ///
    /// Use [`check`](Self::check) to find out whether the kernel would accept the whole transaction.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright::Error> {
    /// use chainwright::nft::expr::{Decoded, Expressions, Opaque};
    /// use chainwright::nft::{Chain, Connection, Family, Rule, Table, Transaction};
    ///
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::INET, "ids"))?;
    /// tx.add(&Chain::new(Family::INET, "ids", "inspect"))?;
    /// let mut rule = Rule::new(Family::INET, "ids", "inspect");
    /// let unknown = Opaque { name: "no_such".into(), ..Default::default() };
    /// rule.expressions = Some(Expressions::new());
    /// rule.expressions.as_mut().unwrap().push_decoded(&Decoded::Opaque(unknown));
    /// tx.add(&rule)?;
    ///
    /// let found = Connection::open()?.preflight(&tx)?;
    /// assert_eq!(
    ///     found.missing[0].to_string(),
    ///     "add rule inet ids inspect #2: this kernel lacks the expression `no_such` in inet \
    ///      (modprobe nft-expr-no_such)"
    /// );
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of a request; [`Error::Commit`] if the kernel does not allow the caller to create tables.
    #[tracing::instrument(level = "debug", skip_all, fields(operations = transaction.len()))]
    pub fn preflight(&mut self, transaction: &Transaction) -> Result<Preflight, Error> {
        let needs = Requirements::of(transaction);
        let mut missing = self.probe_missing(&needs.found)?;
        // Extensions cannot be probed without the expression that contains them.
        let lacks_expression = |requirement: &Requirement| match requirement {
            Requirement::Extension { family, kind, .. } => {
                missing.contains(&Requirement::Expression(*family, kind.to_string().into()))
            }
            _ => false,
        };
        let untried: Vec<Requirement> = (missing.iter())
            .filter(|requirement| lacks_expression(requirement))
            .cloned()
            .collect();
        for requirement in untried {
            missing.remove(&requirement);
        }
        let words: Vec<Operation> = transaction.described().collect();
        let found = needs.found.into_iter().filter(|(requirement, _)| {
            missing.contains(requirement) || matches!(requirement, Requirement::Feature(_))
        });
        let missing = found.filter_map(|(requirement, index)| {
            let operation = words.get(index)?.clone();
            Some(Missing {
                requirement,
                operation,
            })
        });
        let missing = missing.collect();
        let costs = transaction.costs(|family, table| {
            let mut count = 0;
            self.sets(Scope::table(family, table))?
                .for_each(|_| count += 1)?;
            Ok(count)
        })?;
        Ok(Preflight { missing, costs })
    }

    /// Returns the parts that the kernel lacks according to probes.
    fn probe_missing(
        &mut self,
        needs: &[(Requirement, usize)],
    ) -> Result<HashSet<Requirement>, Error> {
        let (tx, probed_parts) = probes(needs)?;
        // Refusals are the answers to the probes.
        let diagnoses = std::mem::replace(&mut self.diagnoses, false);
        let checked = self.check(&tx);
        self.diagnoses = diagnoses;
        let Err(error) = checked else {
            return Ok(HashSet::new());
        };
        if error.source.is_some() {
            return Err(error.into());
        }
        if error.incomplete && needs.len() > 1 {
            let (one, other) = needs.split_at(needs.len() / 2);
            let mut missing = self.probe_missing(one)?;
            missing.extend(self.probe_missing(other)?);
            return Ok(missing);
        }
        let mut missing = HashSet::new();
        for failure in &error.failures {
            let operation = failure.operation.as_ref();
            let probed_parts =
                operation.and_then(|operation| probed_parts.get(operation.index)?.as_ref());
            let errno = failure.errno.number();
            match probed_parts {
                Some(need @ Requirement::Family(_)) => match errno {
                    libc::EOPNOTSUPP | libc::EAFNOSUPPORT => _ = missing.insert(need.clone()),
                    _ => return Err(error.into()),
                },
                Some(need) if errno == libc::ENOENT => _ = missing.insert(need.clone()),
                // The kernel has it, and rejected the rest of the operation.
                Some(_) => {}
                // A table for the probes, or the transaction as a whole.
                None if missing.is_empty() => return Err(error.into()),
                None => {}
            }
        }
        // Parts of a family cannot be probed without its tables.
        let lacks_family = |need: &Requirement| {
            let family = need.family().map(Requirement::Family);
            family.is_some_and(|family| family != *need && missing.contains(&family))
        };
        let of_no_family = missing.iter().filter(|need| !lacks_family(need));
        Ok(of_no_family.cloned().collect())
    }
}

/// The parts required by a transaction, in the order of the first operations that require them.
#[derive(Debug, Default)]
struct Requirements {
    found: Vec<(Requirement, usize)>,
    known: HashSet<Requirement>,
}

impl Requirements {
    fn of(transaction: &Transaction) -> Self {
        let mut needs = Self::default();
        for (index, message) in transaction.messages().enumerate() {
            // The kernel rejects malformed messages too.
            let _ = needs.take(index, &message);
        }
        needs
    }

    fn add(&mut self, index: usize, need: Requirement) {
        if self.known.insert(need.clone()) {
            self.found.push((need, index));
        }
    }

    fn take(&mut self, index: usize, message: &Message<'_>) -> Option<()> {
        let (header, attributes) = message.nfgenmsg().ok()?;
        let family = Family(header.family);
        let find = |kind| Attributes::new(attributes).find(kind);
        for feature in feature::newer_features(message) {
            self.add(index, Requirement::Feature(feature));
        }
        if Family::WITH_TABLES.contains(&family) {
            self.add(index, Requirement::Family(family));
        }
        match message.kind as u8 {
            NFT_MSG_NEWCHAIN => {
                find(NFTA_CHAIN_HOOK)?;
                let chain_type = Name::parse_payload(find(NFTA_CHAIN_TYPE)?)?.to_owned();
                self.add(index, Requirement::ChainType(family, chain_type));
            }
            NFT_MSG_NEWOBJ => {
                let object_type = ObjectType::decode(find(NFTA_OBJ_TYPE)?)?;
                self.add(index, Requirement::ObjectType(family, object_type));
            }
            NFT_MSG_NEWFLOWTABLE => self.add(index, Requirement::Flowtable(family)),
            _ => {}
        }
        each_mention(message, &mut |_, found| {
            if let MessageItem::Expression(expression) = found {
                self.expression(index, family, &expression);
            }
        });
        Some(())
    }

    fn expression(&mut self, index: usize, family: Family, expression: &ExpressionRef<'_>) {
        let name = expression.name.to_owned();
        self.add(index, Requirement::Expression(family, name));
        let (kind, name, revision) = match expression.view() {
            Ok(ExpressionView::Match(view)) => (ExtensionKind::Match, view.name(), view.revision()),
            Ok(ExpressionView::Target(view)) => {
                (ExtensionKind::Target, view.name(), view.revision())
            }
            _ => return,
        };
        if let (Some(name), Some(Ok(revision))) = (name, revision.map(u8::try_from)) {
            let extension = Requirement::Extension {
                family,
                kind,
                name: name.to_owned(),
                revision,
            };
            self.add(index, extension);
        }
    }
}

/// Returns operations that probe these parts, and the part that each operation probes.
fn probes(
    needs: &[(Requirement, usize)],
) -> Result<(Transaction, Vec<Option<Requirement>>), MessageError> {
    /// No hook has this number.
    const NO_HOOK: u32 = 31;
    let name = format!("preflight-{}", std::process::id());
    let table = name.as_bytes();
    let (mut tx, mut probed_parts) = (Transaction::new(), Vec::new());
    for family in Family::WITH_TABLES {
        let of_family = || needs.iter().map(|(need, _)| need);
        let mut of_family = of_family()
            .filter(|need| need.family() == Some(family))
            .peekable();
        if of_family.peek().is_none() {
            continue;
        }
        tx.add(&Table::new(family, name.as_str()))?;
        probed_parts.push(Some(Requirement::Family(family)));
        tx.add(&Chain::new(family, name.as_str(), "c"))?;
        probed_parts.push(None);
        for need in of_family {
            match need {
                Requirement::Expression(_, expression) => {
                    tx.operation(NFT_MSG_NEWRULE, NLM_F_CREATE, family, |writer| {
                        writer.string(NFTA_RULE_TABLE, table);
                        writer.string(NFTA_RULE_CHAIN, b"c");
                        writer.nested(NFTA_RULE_EXPRESSIONS, |writer| {
                            writer.nested(NFTA_LIST_ELEM, |writer| {
                                writer.string(NFTA_EXPR_NAME, expression);
                            });
                        });
                    })?;
                }
                Requirement::Extension {
                    kind,
                    name: extension,
                    revision,
                    ..
                } => {
                    let (extension, revision) = (extension.as_bstr(), (*revision).into());
                    // Too little data for any extension.
                    let data: &[u8] = &[0];
                    let rule = Rule::new(family, name.as_str(), "c");
                    tx.add(&match kind {
                        ExtensionKind::Match => rule.with(&Match::new(extension, revision, data)),
                        ExtensionKind::Target => rule.with(&Target::new(extension, revision, data)),
                    })?;
                }
                Requirement::ChainType(_, chain_type) => {
                    tx.operation(NFT_MSG_NEWCHAIN, NLM_F_CREATE, family, |writer| {
                        writer.string(NFTA_CHAIN_TABLE, table);
                        writer.string(NFTA_CHAIN_NAME, b"base");
                        writer.nested(NFTA_CHAIN_HOOK, |writer| {
                            writer.be32(NFTA_HOOK_HOOKNUM, NO_HOOK);
                            writer.be32(NFTA_HOOK_PRIORITY, 0);
                        });
                        writer.string(NFTA_CHAIN_TYPE, chain_type);
                    })?;
                }
                Requirement::ObjectType(_, object_type) => {
                    tx.operation(NFT_MSG_NEWOBJ, NLM_F_CREATE, family, |writer| {
                        writer.string(NFTA_OBJ_TABLE, table);
                        writer.string(NFTA_OBJ_NAME, b"o");
                        writer.be32(NFTA_OBJ_TYPE, object_type.0);
                        writer.nested(NFTA_OBJ_DATA, |_| {});
                    })?;
                }
                Requirement::Flowtable(_) => {
                    tx.operation(NFT_MSG_NEWFLOWTABLE, NLM_F_CREATE, family, |writer| {
                        writer.string(NFTA_FLOWTABLE_TABLE, table);
                        writer.string(NFTA_FLOWTABLE_NAME, b"f");
                        // (Without these two attributes newer kernels also answer `ENOENT`.)
                        writer.nested(NFTA_FLOWTABLE_HOOK, |writer| {
                            writer.be32(NFTA_FLOWTABLE_HOOK_NUM, NO_HOOK);
                            writer.be32(NFTA_FLOWTABLE_HOOK_PRIORITY, 0);
                        });
                    })?;
                }
                Requirement::Family(_) | Requirement::Feature(_) => continue,
            }
            probed_parts.push(Some(need.clone()));
        }
    }
    Ok((tx, probed_parts))
}
