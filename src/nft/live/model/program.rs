//! Expressions in their place: what they ask of the ruleset around them, and what they refer to, by handles.

use bstr::{BStr, ByteSlice as _};
use chainwright_sys::nf_tables::{NFT_CHAIN_BINDING, NFT_DATA_VERDICT};

use super::draft::Draft;
use super::expression::{
    self, Around, ChainFacts, Reference as Named, SetFacts, take_list, take_one, take_verdict,
};
use super::state::{Chain, Reference, Rule, Set, Table};
use super::wire::{Refusal, refuse};
use crate::errno::Errno;
use crate::netlink::Attributes;
use crate::nft::expr::ObjectType;
use crate::nft::{Family, SetFlags};

/// A table as expressions see it.
struct Place<'d> {
    draft: &'d Draft,
    number: usize,
}

impl Place<'_> {
    fn table(&self) -> &Table {
        &self.draft.state.tables[self.number]
    }

    /// What has this name, by its handle; and whether it is a set that rules add to.
    fn resolve(&self, named: &[Named]) -> Result<Vec<Reference>, Refusal> {
        let table = self.table();
        let resolved = named.iter().map(|named| {
            Ok(match named {
                Named::Set(name) => {
                    Reference::Set(table.sets[table.set_named(name.as_ref())?].handle)
                }
                Named::UpdatedSet(name) => {
                    Reference::UpdatedSet(table.sets[table.set_named(name.as_ref())?].handle)
                }
                Named::Chain(name) => {
                    Reference::Chain(table.chains[table.chain_named(name.as_ref())?].handle)
                }
                Named::Object(object_type, name) => {
                    let at = table.object_named(object_type.0, name.as_ref())?;
                    Reference::Object(table.objects[at].handle)
                }
                Named::Flowtable(name) => {
                    let at = table.flowtable_named(name.as_ref())?;
                    Reference::Flowtable(table.flowtables[at].handle)
                }
            })
        });
        resolved.collect()
    }
}

impl Around for Place<'_> {
    fn family(&self) -> Family {
        Family(self.table().family)
    }

    fn set(&mut self, name: &BStr, id: Option<u32>) -> Result<SetFacts, Errno> {
        let at = self.draft.set_by(self.number, Some(name), id);
        Ok(facts(
            &self.table().sets[at.map_err(|refusal| refusal.errno)?],
        ))
    }

    fn chain(&mut self, name: Option<&BStr>, id: Option<u32>) -> Result<ChainFacts, Errno> {
        let at = match (name, id) {
            (Some(name), _) => self.table().chain_named(name),
            (None, Some(id)) => self.draft.chain_by_id(self.number, id),
            (None, None) => Err(refuse(libc::EINVAL)),
        };
        let chain = &self.table().chains[at.map_err(|refusal| refusal.errno)?];
        Ok(ChainFacts {
            name: chain.name.clone(),
            is_base: chain.base.is_some(),
            is_anonymous: chain.flags & NFT_CHAIN_BINDING != 0,
            is_bound: chain.flags & NFT_CHAIN_BINDING != 0 && chain.is_bound,
        })
    }

    fn object(&mut self, object_type: ObjectType, name: &BStr) -> Result<(), Errno> {
        let at = self.table().object_named(object_type.0, name);
        at.map(|_| ()).map_err(|refusal| refusal.errno)
    }

    fn flowtable(&mut self, name: &BStr) -> Result<(), Errno> {
        let at = self.table().flowtable_named(name);
        at.map(|_| ()).map_err(|refusal| refusal.errno)
    }
}

fn facts(set: &Set) -> SetFacts {
    let flags = SetFlags::from_bits_retain(set.flags);
    SetFacts {
        name: set.name.clone(),
        flags,
        key_length: set.key_length,
        maps_to_verdicts: set.data_type == NFT_DATA_VERDICT,
        data_length: set.data_length,
        is_bound: set.is_bound,
        can_be_updated: SetFacts::in_growing_table(flags, set.key_length, set.had_size),
        expressions: set.expressions.clone(),
    }
}

/// Expressions as they are listed, and what they refer to.
type Taken = (Vec<u8>, Vec<Reference>);

impl Draft {
    const fn place(&self, number: usize) -> Place<'_> {
        Place {
            draft: self,
            number,
        }
    }

    /// The expressions of a rule.
    pub(super) fn expressions_of_rule(&self, number: usize, list: &[u8]) -> Result<Taken, Refusal> {
        let mut place = self.place(number);
        let taken = take_list(list, &mut place)?;
        Ok((taken.listed, place.resolve(&taken.references)?))
    }

    /// An expression that is made with each element of a set.
    pub(super) fn expression_of_set(
        &self,
        number: usize,
        element: &[u8],
    ) -> Result<Vec<u8>, Refusal> {
        Ok(take_one(element, &mut self.place(number))?.listed)
    }

    /// A verdict of an element: what stands in its data.
    pub(super) fn verdict(&self, number: usize, data: &[u8]) -> Result<Taken, Refusal> {
        let mut place = self.place(number);
        let taken = take_verdict(data, &mut place)?;
        Ok((taken.listed, place.resolve(&taken.references)?))
    }
}

/// Whether packets may come to a rule from this base chain.
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

/// Attributes without the flag that tells nested ones.
pub(super) fn plain(attributes: &[u8]) -> Vec<u8> {
    let mut out = super::wire::Out::default();
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        out.bytes(attribute.kind, attribute.payload);
    }
    out.0
}
