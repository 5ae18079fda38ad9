//! Converts a listed rule into the operation that creates it, at its position, with IDs for the objects that the same
//! transaction creates.

use std::collections::HashMap;

use bstr::{BStr, BString};
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE};
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWRULE, NFTA_RULE_CHAIN, NFTA_RULE_CHAIN_ID, NFTA_RULE_COMPAT, NFTA_RULE_EXPRESSIONS,
    NFTA_RULE_POSITION,
};

use super::request::{copy_attributes, request_of_list};
use crate::netlink::MessageError;
use crate::nft::declare::{AttributeSet, Field};
use crate::nft::expr::{Data, Decoded, Expressions, Immediate, Verdict};
use crate::nft::transaction::Transaction;
use crate::nft::{Compat, Rule, RuleRef};

/// Anonymous objects that are created in the same transaction as the rules that use them: maps the listed name to the
/// ID in the transaction.
#[derive(Debug, Default)]
pub(super) struct BatchIds<'s> {
    /// Chains that are bound to a rule.
    pub(super) chains: HashMap<&'s BStr, u32>,
    /// Anonymous sets, with the name pattern for the kernel.
    pub(super) sets: HashMap<&'s BStr, (BString, u32)>,
}

/// The position of a rule in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertPosition {
    /// At the end.
    End,
    /// Before the rule with this handle.
    Before(u64),
}

/// Appends the operation that creates a listed rule.
pub(super) fn write_rule(
    tx: &mut Transaction,
    rule: &RuleRef<'_>,
    numbers: &BatchIds<'_>,
    position: InsertPosition,
) -> Result<(), MessageError> {
    let compat = Compat::of(rule);
    let listed = rule.attributes().find(NFTA_RULE_EXPRESSIONS);
    let mut rewritten = listed.and_then(request_of_list);
    let mut without = const { AttributeSet::kernel_set(Rule::ATTRIBUTE_NOTES) };
    let chain_id = numbers.chains.get(rule.chain()).copied();
    if chain_id.is_some() {
        without = without.and(NFTA_RULE_CHAIN);
    }
    if !(numbers.chains.is_empty() && numbers.sets.is_empty()) {
        rewritten = Some(numbers.put_into(rewritten.or(listed.and_then(Expressions::decode))));
    }
    if rewritten.is_some() {
        without = without.and(NFTA_RULE_EXPRESSIONS);
    }
    let flags = match position {
        InsertPosition::Before(_) => NLM_F_CREATE,
        InsertPosition::End => NLM_F_CREATE | NLM_F_APPEND,
    };
    tx.operation(NFT_MSG_NEWRULE, flags, rule.family(), |writer| {
        copy_attributes(writer, rule.attributes().rest(), without);
        if let Some(expressions) = rewritten {
            expressions.encode(writer, NFTA_RULE_EXPRESSIONS);
        }
        if let Some(id) = chain_id {
            writer.be32(NFTA_RULE_CHAIN_ID, id);
        }
        if let InsertPosition::Before(handle) = position {
            writer.be64(NFTA_RULE_POSITION, handle);
        }
        if let Some(compat) = compat {
            compat.encode(writer, NFTA_RULE_COMPAT);
        }
    })?;
    Ok(())
}

impl BatchIds<'_> {
    /// Replaces names that have an ID in expressions.
    fn put_into(&self, expressions: Option<Expressions<'_>>) -> Expressions<'static> {
        let mut numbered = Expressions::new();
        let expressions = expressions.unwrap_or_default();
        for expression in expressions.iter().map_while(Result::ok) {
            match expression
                .decode()
                .ok()
                .and_then(|decoded| self.number(decoded))
            {
                Some(decoded) => numbered.push_decoded(&decoded),
                None => numbered.push_raw(&expression),
            };
        }
        numbered
    }

    /// Replaces the name in an expression by its ID; `None` if it has none.
    fn number<'e>(&'e self, expression: Decoded<'e>) -> Option<Decoded<'e>> {
        let set = |name: &[u8]| {
            let (pattern, id) = self.sets.get(BStr::new(name))?;
            Some((Some(pattern.as_slice().into()), Some(*id)))
        };
        Some(match expression {
            Decoded::Immediate(Immediate {
                data: Some(Data::Verdict(verdict)),
                ..
            }) => {
                let chain = |name: &[u8]| self.chains.get(BStr::new(name)).copied();
                let verdict = match verdict {
                    Verdict::Jump(name) => Verdict::JumpId(chain(&name)?),
                    Verdict::Goto(name) => Verdict::GotoId(chain(&name)?),
                    _ => return None,
                };
                Immediate::verdict(verdict).into()
            }
            Decoded::Lookup(mut lookup) => {
                (lookup.set, lookup.set_id) = set(lookup.set.as_ref()?)?;
                lookup.into()
            }
            Decoded::Dynset(mut dynset) => {
                (dynset.set_name, dynset.set_id) = set(dynset.set_name.as_ref()?)?;
                dynset.into()
            }
            Decoded::Objref(mut objref) => {
                (objref.set_name, objref.set_id) = set(objref.set_name.as_ref()?)?;
                objref.into()
            }
            _ => return None,
        })
    }
}
