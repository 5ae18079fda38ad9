//! Connects expressions with the ruleset: resolves the names that they use to handles.

use bstr::{BStr, BString, ByteSlice as _};
use chainwright_sys::nf_tables::NFT_DATA_VERDICT;

use super::expression::{
    self, ChainInfo, Reference as Named, RulesetView, SetInfo, evaluate_list, evaluate_one,
    evaluate_verdict,
};
use super::members::{Kind, Member, Members};
use super::state::{Chain, Reference, Rule, Set, Table};
use super::tx_state::TxState;
use super::wire::{Refusal, refuse};
use chainwright::Errno;
use chainwright::netlink::Attributes;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{Family, SetFlags};

/// The view that expressions have of a table.
struct TableContext<'d> {
    tx_state: &'d TxState,
    number: usize,
    /// Index of the chain of the rule.
    chain: Option<usize>,
}

impl TableContext<'_> {
    fn table(&self) -> &Table {
        &self.tx_state.state.tables[self.number]
    }

    /// Resolves names to handles, and distinguishes sets that rules update.
    fn resolve(&self, named: &[Named]) -> Result<Vec<Reference>, Refusal> {
        let table = self.table();
        let resolved = named.iter().map(|named| {
            Ok(match named {
                Named::Set(name) => Reference::Set(handle_of(&table.sets, name)?),
                Named::UpdatedSet(name) => Reference::UpdatedSet(handle_of(&table.sets, name)?),
                Named::Chain(name) => Reference::Chain(handle_of(&table.chains, name)?),
                Named::Object(object_type, name) => {
                    let at = table.objects.of_type(object_type.0, name.as_ref())?;
                    Reference::Object(table.objects[at].handle)
                }
                Named::Flowtable(name) => Reference::Flowtable(handle_of(&table.flowtables, name)?),
            })
        });
        resolved.collect()
    }
}

fn handle_of<K: Kind>(members: &Members<K>, name: &BString) -> Result<u64, Refusal> {
    Ok(members[members.named(name.as_ref())?].handle)
}

impl RulesetView for TableContext<'_> {
    fn family(&self) -> Family {
        Family(self.table().family)
    }

    fn set(&mut self, name: &BStr, id: Option<u32>) -> Result<SetInfo, Errno> {
        let at = self.tx_state.set_by(self.number, Some(name), id);
        Ok(set_info(
            &self.table().sets[at.map_err(|refusal| refusal.errno)?],
        ))
    }

    fn chain(&mut self, name: Option<&BStr>, id: Option<u32>) -> Result<ChainInfo, Errno> {
        let at = match (name, id) {
            (Some(name), _) => self.table().chains.named(name),
            (None, Some(id)) => self.tx_state.chain_by_id(self.number, id),
            (None, None) => Err(refuse(libc::EINVAL)),
        };
        let chains = &self.table().chains;
        let chain = &chains[at.map_err(|refusal| refusal.errno)?];
        let set_info = ChainInfo {
            name: chain.name().to_owned(),
            is_base: chain.base.is_some(),
            is_anonymous: chain.is_binding(),
            is_bound: chain.is_binding() && chain.is_bound,
        };
        // Rules of a binding chain can't bind another chain.
        let from = self.chain.map(|at| &chains[at]);
        match from.is_some_and(|from| from.is_binding())
            && set_info.is_anonymous
            && !set_info.is_bound
        {
            true => Err(refuse(libc::EOPNOTSUPP).errno),
            false => Ok(set_info),
        }
    }

    fn object(&mut self, object_type: ObjectType, name: &BStr) -> Result<(), Errno> {
        let at = self.table().objects.of_type(object_type.0, name);
        at.map(|_| ()).map_err(|refusal| refusal.errno)
    }

    fn flowtable(&mut self, name: &BStr) -> Result<(), Errno> {
        let at = self.table().flowtables.named(name);
        at.map(|_| ()).map_err(|refusal| refusal.errno)
    }
}

fn set_info(set: &Member<Set>) -> SetInfo {
    let flags = SetFlags::from_bits_retain(set.flags);
    SetInfo {
        name: set.name().to_owned(),
        flags,
        key_length: set.key_length,
        maps_to_verdicts: set.data_type == NFT_DATA_VERDICT,
        data_length: set.data_length,
        is_bound: set.is_bound,
        can_be_updated: SetInfo::in_growing_table(flags, set.key_length, set.had_size),
        expressions: set.expressions.clone(),
    }
}

/// Expressions as listed, and their references.
type Evaluated = (Vec<u8>, Vec<Reference>);

impl TxState {
    const fn table_context(&self, number: usize) -> TableContext<'_> {
        TableContext {
            tx_state: self,
            number,
            chain: None,
        }
    }

    /// Returns the listed expressions of a rule of this chain.
    pub(super) fn expressions_of_rule(
        &self,
        number: usize,
        chain: usize,
        list: &[u8],
    ) -> Result<Evaluated, Refusal> {
        let mut table_context = TableContext {
            chain: Some(chain),
            ..self.table_context(number)
        };
        let taken = evaluate_list(list, &mut table_context)?;
        Ok((taken.listed, table_context.resolve(&taken.references)?))
    }

    /// Returns a listed expression for new elements of a set.
    pub(super) fn expression_of_set(
        &self,
        number: usize,
        element: &[u8],
    ) -> Result<Vec<u8>, Refusal> {
        Ok(evaluate_one(element, &mut self.table_context(number))?.listed)
    }

    /// Returns the listed verdict of an element, from its data.
    pub(super) fn verdict(&self, number: usize, data: &[u8]) -> Result<Evaluated, Refusal> {
        let mut table_context = self.table_context(number);
        let taken = evaluate_verdict(data, &mut table_context)?;
        Ok((taken.listed, table_context.resolve(&taken.references)?))
    }
}

/// Checks whether packets may reach a rule from this base chain.
pub(super) fn validate(table: &Table, base: &Chain, rule: &Rule) -> Result<(), Refusal> {
    let Some(hook) = &base.base else {
        return Ok(());
    };
    let base = expression::Base {
        chain_type: hook.chain_type.as_bstr(),
        hook: hook.hook,
    };
    for attribute in Attributes::new(&rule.expressions).map_while(Result::ok) {
        expression::validate(attribute.payload, Family(table.family), base)?;
    }
    Ok(())
}

/// Copies attributes without the flag for nested ones.
pub(super) fn plain(attributes: &[u8]) -> Vec<u8> {
    let mut out = super::wire::AttributeBuffer::default();
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        out.bytes(attribute.kind, attribute.payload);
    }
    out.0
}
