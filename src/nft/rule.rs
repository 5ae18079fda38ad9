//! Rules: lists of expressions, in a chain.

use chainwright_sys::nf_tables::{
    NFT_MSG_DELRULE, NFT_MSG_DESTROYRULE, NFT_MSG_GETRULE, NFT_MSG_NEWRULE, NFTA_RULE_CHAIN,
    NFTA_RULE_CHAIN_ID, NFTA_RULE_COMPAT, NFTA_RULE_COMPAT_FLAGS, NFTA_RULE_COMPAT_PROTO,
    NFTA_RULE_EXPRESSIONS, NFTA_RULE_HANDLE, NFTA_RULE_ID, NFTA_RULE_POSITION,
    NFTA_RULE_POSITION_ID, NFTA_RULE_TABLE, NFTA_RULE_USERDATA,
};

use super::Family;
use super::declare::{attributes, object};
use super::expr::{Expression, Expressions};
use super::name::{Bytes, Name};
use super::object::{Messages, Object, listed};
use crate::netlink::MessageWriter;

attributes! {
    /// What the kernel must know to check xtables extensions (`match` and `target` expressions) of
    /// a rule: the layer-4 protocol that the rule is limited to. It is written with the rule and
    /// never listed. `enum nft_rule_compat_attributes`.
    pub struct Compat {
        /// `IPPROTO_*`.
        NFTA_RULE_COMPAT_PROTO => protocol: u32,
        /// `NFT_RULE_COMPAT_F_INV` when the rule is for all protocols but that one.
        NFTA_RULE_COMPAT_FLAGS => flags: u32,
    }
}

object! {
    /// A rule, to be written: `enum nft_rule_attributes`.
    pub struct Rule viewed as RuleRef, "a rule" {
        /// Name of the table that the rule is in.
        NFTA_RULE_TABLE => table: required Name<'a>,
        /// Name of the chain that the rule is in.
        NFTA_RULE_CHAIN => chain: required Name<'a>,
        /// Handle, given by the kernel; names the rule to be replaced or deleted.
        NFTA_RULE_HANDLE => handle: required u64,
        /// Handle of the rule that this one goes behind (`add`) or before (`insert`); in a
        /// listing, of the rule before it, and so not taken over into a builder.
        NFTA_RULE_POSITION => position: listed u64,
        /// The expressions.
        NFTA_RULE_EXPRESSIONS => expressions: optional Expressions<'a>,
        /// Protocol for the checks of xtables extensions; written only.
        NFTA_RULE_COMPAT => compat: written Compat,
        /// Data that user space keeps with the rule, opaque to the kernel.
        NFTA_RULE_USERDATA => userdata: optional Bytes<'a>,
        /// Number by which operations of the same batch may refer to the rule.
        NFTA_RULE_ID => id: written u32,
        /// The position as such a number.
        NFTA_RULE_POSITION_ID => position_id: written u32,
        /// The chain as the number that it was given in the same batch.
        NFTA_RULE_CHAIN_ID => chain_id: written u32,
    }
}

impl<'a> Rule<'a> {
    /// A rule without expressions, for this chain.
    pub fn new(family: Family, table: impl Into<Name<'a>>, chain: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            chain: Some(chain.into()),
            ..Self::default()
        }
    }

    /// Appends an expression.
    pub fn push(&mut self, expression: &impl Expression) -> &mut Self {
        self.expressions.get_or_insert_default().push(expression);
        self
    }

    /// The same rule with one more expression.
    #[must_use]
    pub fn with(mut self, expression: &impl Expression) -> Self {
        self.push(expression);
        self
    }

    /// Takes all expressions away and keeps the memory, so that one `Rule` can serve for many.
    pub fn clear(&mut self) -> &mut Self {
        self.expressions.get_or_insert_default().clear();
        self
    }
}

impl Object for Rule<'_> {
    const MESSAGES: Messages = Messages {
        kind: "rule",
        new: NFT_MSG_NEWRULE,
        get: NFT_MSG_GETRULE,
        delete: NFT_MSG_DELRULE,
        destroy: NFT_MSG_DESTROYRULE,
        ordered: true,
    };

    fn family(&self) -> Family {
        self.family
    }

    fn write(&self, writer: &mut MessageWriter<'_>) {
        self.write_attributes(writer);
    }

    fn write_identity(&self, writer: &mut MessageWriter<'_>) {
        let identity = Rule {
            table: self.table.as_ref().map(Name::from),
            chain: self.chain.as_ref().map(Name::from),
            // Without either it would stand for all rules of the chain: handle 0 stands for none.
            handle: self.handle.or(self.id.is_none().then_some(0)),
            id: self.id,
            ..Rule::default()
        };
        identity.write_attributes(writer);
    }
}

listed!(Rule as RuleRef, "list rules");
