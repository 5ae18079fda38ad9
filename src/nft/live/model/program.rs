//! Expressions: what the kernel makes of them, and what they refer to.

use bstr::{BStr, ByteSlice as _};
use chainwright_sys::nf_tables::*;

use super::draft::Draft;
use super::state::{Chain, Reference, Rule, Table};
use super::wire::{Given, NAME, Out, Policy, Refusal, U32, refuse};
use crate::netlink::Attributes;

/// The expressions of a rule, a set or an element, as they are read one after the other.
pub(super) struct Program<'d> {
    draft: &'d Draft,
    number: usize,
    /// What they refer to.
    pub(super) references: Vec<Reference>,
}

const EXPRESSION: &[(u16, Policy)] = &[(NFTA_EXPR_NAME, NAME), (NFTA_EXPR_DATA, Policy::Any)];

impl Draft {
    /// Expressions of a rule of this chain, or of none.
    pub(super) const fn program(&self, number: usize, _chain: Option<&Chain>) -> Program<'_> {
        Program {
            draft: self,
            number,
            references: Vec::new(),
        }
    }
}

impl Program<'_> {
    /// What the kernel lists for an expression.
    pub(super) fn take(&mut self, payload: &[u8]) -> Result<Vec<u8>, Refusal> {
        let given = Given::read(payload, EXPRESSION)?;
        let name = given.text(NFTA_EXPR_NAME).ok_or(refuse(libc::EINVAL))?;
        let data = given.get(NFTA_EXPR_DATA).unwrap_or_default();
        self.refer(name, data)?;
        let mut out = Out::default();
        out.text(NFTA_EXPR_NAME, name);
        if given.has(NFTA_EXPR_DATA) {
            out.bytes(NFTA_EXPR_DATA, &plain(data));
        }
        Ok(out.0)
    }

    /// The same, of an expression that is made with each element.
    pub(super) fn take_of_set(&mut self, payload: &[u8]) -> Result<Vec<u8>, Refusal> {
        self.take(payload)
    }

    fn refer(&mut self, name: &BStr, data: &[u8]) -> Result<(), Refusal> {
        const IMMEDIATE: &[(u16, Policy)] = &[(NFTA_IMMEDIATE_DATA, Policy::Any)];
        const DATA: &[(u16, Policy)] = &[(NFTA_DATA_VERDICT, Policy::Any)];
        const VERDICT: &[(u16, Policy)] =
            &[(NFTA_VERDICT_CHAIN, NAME), (NFTA_VERDICT_CHAIN_ID, U32)];
        const LOOKUP: &[(u16, Policy)] = &[(NFTA_LOOKUP_SET, NAME), (NFTA_LOOKUP_SET_ID, U32)];
        let table = &self.draft.state.tables[self.number];
        match name.as_bytes() {
            b"immediate" => {
                let given = Given::read(data, IMMEDIATE)?;
                let value = given.get(NFTA_IMMEDIATE_DATA).unwrap_or_default();
                let verdict = Given::read(value, DATA)?.get(NFTA_DATA_VERDICT);
                let verdict = Given::read(verdict.unwrap_or_default(), VERDICT)?;
                let at = match (
                    verdict.text(NFTA_VERDICT_CHAIN),
                    verdict.u32(NFTA_VERDICT_CHAIN_ID),
                ) {
                    (Some(chain), _) => table.chain_named(chain)?,
                    (None, Some(id)) => self.draft.chain_by_id(self.number, id)?,
                    (None, None) => return Ok(()),
                };
                let chain = &table.chains[at];
                if chain.base.is_some() {
                    return Err(refuse(libc::EOPNOTSUPP));
                }
                self.references.push(Reference::Chain(chain.handle));
            }
            b"lookup" => {
                let given = Given::read(data, LOOKUP)?;
                let id = given.u32(NFTA_LOOKUP_SET_ID);
                let at = self
                    .draft
                    .set_by(self.number, given.text(NFTA_LOOKUP_SET), id)?;
                let set = &table.sets[at];
                if set.is_anonymous() && set.is_bound {
                    return Err(refuse(libc::EBUSY));
                }
                self.references.push(Reference::Set(set.handle));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Attributes without the flag that tells nested ones.
pub(super) fn plain(attributes: &[u8]) -> Vec<u8> {
    let mut out = Out::default();
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        out.bytes(attribute.kind, attribute.payload);
    }
    out.0
}

/// Whether a rule may stand in a chain that this base chain leads to.
pub(super) fn validate(_table: &Table, _base: &Chain, _rule: &Rule) -> Result<(), Refusal> {
    Ok(())
}
