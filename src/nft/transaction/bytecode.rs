//! The bytecode of a transaction, as printed by `nft --debug=netlink` before sending it (nft 1.0.6, libnftnl 1.2.4).

use std::fmt;

use chainwright_sys::nf_tables::{
    NFT_MSG_DELSETELEM, NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFTA_RULE_CHAIN,
    NFTA_RULE_EXPRESSIONS, NFTA_RULE_POSITION, NFTA_RULE_TABLE, NFTA_RULE_USERDATA, NFTA_SET_DESC,
    NFTA_SET_DESC_SIZE, NFTA_SET_FLAGS, NFTA_SET_GC_INTERVAL, NFTA_SET_NAME, NFTA_SET_POLICY,
    NFTA_SET_TABLE, NFTA_SET_TIMEOUT,
};

use super::Transaction;
use crate::netlink::{Attributes, Message};
use crate::nft::declare::Field;
use crate::nft::expr::Expressions;
use crate::nft::{ElementsRef, Family, Name, Rule};

impl Transaction {
    /// Formats the added rules, sets and elements, and the deleted elements, as the bytecode that `nft --debug=netlink`
    /// prints before sending the same.
    ///
    /// ```
    /// use chainwright::nft::build::Build;
    /// use chainwright::nft::{Family, Transaction};
    ///
    /// let mut tx = Transaction::new();
    /// tx.add(&Build::new(Family::IP, "t", "c").tcp_dport(22).accept()?)?;
    /// let text = tx.bytecode().to_string();
    /// assert!(text.starts_with("ip t c\n  [ meta load l4proto => reg 1 ]\n"), "{text}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn bytecode(&self) -> impl fmt::Display {
        Bytecode(self)
    }
}

struct Bytecode<'t>(&'t Transaction);

impl fmt::Display for Bytecode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for message in self.0.messages() {
            let Ok((header, attributes)) = message.nfgenmsg() else {
                continue;
            };
            match message.kind as u8 {
                NFT_MSG_NEWRULE => rule(f, Family(header.family), attributes)?,
                NFT_MSG_NEWSET => set(f, attributes)?,
                NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM => elements(f, &message)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn of<'a, T: Field<'a>>(attributes: &'a [u8], kind: u16) -> Option<T> {
    Attributes::new(attributes).find(kind).and_then(T::decode)
}

/// A rule to be added has no handle yet.
fn rule(f: &mut fmt::Formatter<'_>, family: Family, attributes: &[u8]) -> fmt::Result {
    let rule = Rule {
        family,
        table: of(attributes, NFTA_RULE_TABLE),
        chain: of(attributes, NFTA_RULE_CHAIN),
        position: of(attributes, NFTA_RULE_POSITION),
        expressions: of::<Expressions<'_>>(attributes, NFTA_RULE_EXPRESSIONS),
        userdata: Attributes::new(attributes)
            .find(NFTA_RULE_USERDATA)
            .map(Into::into),
        ..Rule::empty()
    };
    write!(f, "{rule}")
}

fn set(f: &mut fmt::Formatter<'_>, attributes: &[u8]) -> fmt::Result {
    let name: Name<'_> = of(attributes, NFTA_SET_NAME).unwrap_or_default();
    let table: Name<'_> = of(attributes, NFTA_SET_TABLE).unwrap_or_default();
    let flags: u32 = of(attributes, NFTA_SET_FLAGS).unwrap_or_default();
    write!(f, "{name} {table} {flags:x}")?;
    if let Some(timeout) = of::<u64>(attributes, NFTA_SET_TIMEOUT) {
        write!(f, " timeout {timeout}ms")?;
    }
    if let Some(interval) = of::<u32>(attributes, NFTA_SET_GC_INTERVAL) {
        write!(f, " gc_interval {interval}ms")?;
    }
    if let Some(policy) = of::<u32>(attributes, NFTA_SET_POLICY) {
        write!(f, " policy {policy}")?;
    }
    let described = Attributes::new(attributes).find(NFTA_SET_DESC);
    if let Some(size) = described.and_then(|all| of::<u32>(all, NFTA_SET_DESC_SIZE)) {
        write!(f, " size {size}")?;
    }
    f.write_str("\n")
}

fn elements(f: &mut fmt::Formatter<'_>, message: &Message<'_>) -> fmt::Result {
    let Ok(elements) = ElementsRef::parse(message) else {
        return Ok(());
    };
    writeln!(f, "{} {} 0", elements.set(), elements.table())?;
    for element in elements.elements().into_iter().flatten().flatten() {
        write!(f, "\t{element}")?;
    }
    f.write_str("\n")
}
