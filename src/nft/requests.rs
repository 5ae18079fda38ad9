//! What a [`Connection`] can be asked: to look one object up by its name, to list many, and to set back
//! what they count.

use chainwright_sys::netlink::NLM_F_DUMP;
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETFLOWTABLE, NFT_MSG_GETOBJ, NFT_MSG_GETOBJ_RESET, NFT_MSG_GETRULE,
    NFT_MSG_GETRULE_RESET, NFT_MSG_GETSET, NFT_MSG_GETSETELEM, NFT_MSG_GETSETELEM_RESET,
    NFT_MSG_GETTABLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_TABLE,
    NFTA_LIST_ELEM, NFTA_RULE_CHAIN, NFTA_RULE_HANDLE, NFTA_RULE_TABLE,
    NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_NAME, NFTA_SET_TABLE, NFTA_TABLE_NAME,
};

use super::connection::Connection;
use super::element::span_of_list;
use super::expr::ObjectType;
use super::listing::{ElementListing, Filter, Listing};
use super::name::Name;
use super::object::{Listed, Written as _};
use super::scope::{ObjectFilter, RuleFilter, Scope};
use super::{
    Chain, ChainRef, Element, ElementRef, Family, Flowtable, FlowtableRef, Rule, RuleRef, Set,
    SetId, SetRef, StatefulObject, StatefulObjectRef, Table, TableRef,
};
use crate::netlink::{Attributes, Error, Message};

impl Connection {
    /// Looks a table up by its name, without a listing; `None` if there is none.
    ///
    /// # Errors
    /// Those of a request.
    pub fn table<'n>(
        &mut self,
        family: Family,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<TableRef<'_>>, Error> {
        let name = name.into();
        self.look_up::<Table<'_>>("look a table up", NFT_MSG_GETTABLE, family, |writer| {
            writer.string(NFTA_TABLE_NAME, &name);
        })
    }

    /// Looks a chain up by its name, without a listing, in time that does not depend on how many
    /// there are; `None` if there is no such chain or table.
    ///
    /// One request and reply for a chain that is there. That one is absent is asked about again while
    /// the generation holds still (four requests), because a look-up can fall into the middle of a
    /// commit that replaces it.
    ///
    /// # Errors
    /// Those of a request.
    pub fn chain<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<ChainRef<'_>>, Error> {
        let (table, name) = (table.into(), name.into());
        self.look_up::<Chain<'_>>("look a chain up", NFT_MSG_GETCHAIN, family, |writer| {
            writer
                .string(NFTA_CHAIN_TABLE, &table)
                .string(NFTA_CHAIN_NAME, &name);
        })
    }

    /// Whether there is a chain of this name: as [`chain`](Self::chain).
    ///
    /// # Errors
    /// Those of a request.
    pub fn chain_exists<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<bool, Error> {
        Ok(self.chain(family, table, name)?.is_some())
    }

    /// Looks a rule up by its handle, without a listing; `None` if there is none.
    ///
    /// # Errors
    /// Those of a request. The kernel answers a look-up in one page: a rule of more than about
    /// 3,700 bytes comes only in a listing, and here as [`Error::Refused`] with `EPERM`.
    pub fn rule<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        chain: impl Into<Name<'n>>,
        handle: u64,
    ) -> Result<Option<RuleRef<'_>>, Error> {
        let (table, chain) = (table.into(), chain.into());
        self.look_up::<Rule<'_>>("look a rule up", NFT_MSG_GETRULE, family, |writer| {
            writer
                .string(NFTA_RULE_TABLE, &table)
                .string(NFTA_RULE_CHAIN, &chain)
                .be64(NFTA_RULE_HANDLE, handle);
        })
    }

    /// Lists tables.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn tables<'c>(
        &'c mut self,
        filter: Scope<'c>,
    ) -> Result<Listing<'c, Table<'static>>, Error> {
        self.list(filter)
    }

    /// Lists chains. The kernel filters by family only, the rest is left out here.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn chains<'c>(
        &'c mut self,
        filter: Scope<'c>,
    ) -> Result<Listing<'c, Chain<'static>>, Error> {
        self.list(filter)
    }

    /// Lists rules. The kernel filters by family, table and chain. The rules of a chain that does
    /// not exist are none.
    ///
    /// A listing of very many rules costs the kernel time that grows with the square of their
    /// number; asking chain by chain does not.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn rules<'c>(
        &'c mut self,
        filter: impl Into<RuleFilter<'c>>,
    ) -> Result<Listing<'c, Rule<'static>>, Error> {
        let filter: RuleFilter<'c> = filter.into();
        self.list(filter)
    }

    /// Looks a set or map up by its name, without a listing; `None` if there is none.
    ///
    /// # Errors
    /// Those of a request.
    pub fn set<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<SetRef<'_>>, Error> {
        let (table, name) = (table.into(), name.into());
        self.look_up::<Set<'_>>("look a set up", NFT_MSG_GETSET, family, |writer| {
            writer
                .string(NFTA_SET_TABLE, &table)
                .string(NFTA_SET_NAME, &name);
        })
    }

    /// Lists sets and maps, without their elements. The kernel filters by family and table.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn sets<'c>(&'c mut self, filter: Scope<'c>) -> Result<Listing<'c, Set<'static>>, Error> {
        self.list(filter)
    }

    /// Lists the elements of a set, in the kernel's order, which is none in particular.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`ElementListing::next`].
    pub fn elements<'c>(
        &'c mut self,
        family: Family,
        table: impl Into<Name<'c>>,
        set: impl Into<Name<'c>>,
    ) -> Result<ElementListing<'c>, Error> {
        let filter = Filter::set(family, table.into(), set.into());
        self.list(filter).map(ElementListing::new)
    }

    /// As [`elements`](Self::elements), and sets counters and quotas of what is listed back to 0
    /// (Linux 6.5; before, it fails with `EINVAL`). What an interrupted listing gave is set back all
    /// the same.
    ///
    /// # Errors
    /// As [`elements`](Self::elements).
    pub fn reset_elements<'c>(
        &'c mut self,
        family: Family,
        table: impl Into<Name<'c>>,
        set: impl Into<Name<'c>>,
    ) -> Result<ElementListing<'c>, Error> {
        let filter = Filter::set(family, table.into(), set.into());
        self.list_by(NFT_MSG_GETSETELEM_RESET, filter)
            .map(ElementListing::new)
    }

    /// Looks an element up by its key, without a listing; `None` if there is no such element or set.
    ///
    /// Of a set of ranges it is the element that begins the range with the key in it;
    /// [`Element::end`] of the key gives the element that ends the range.
    ///
    /// # Errors
    /// Those of a request.
    pub fn element<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        set: impl Into<Name<'n>>,
        element: &Element<'_>,
    ) -> Result<Option<ElementRef<'_>>, Error> {
        let set = SetId::new(family, table, set);
        self.element_by(NFT_MSG_GETSETELEM, &set, element)
    }

    /// As [`element`](Self::element), and sets its counters and quotas back to 0 (Linux 6.5).
    ///
    /// # Errors
    /// Those of a request.
    pub fn reset_element<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        set: impl Into<Name<'n>>,
        element: &Element<'_>,
    ) -> Result<Option<ElementRef<'_>>, Error> {
        let set = SetId::new(family, table, set);
        self.element_by(NFT_MSG_GETSETELEM_RESET, &set, element)
    }

    fn element_by(
        &mut self,
        message: u8,
        set: &SetId<'_>,
        element: &Element<'_>,
    ) -> Result<Option<ElementRef<'_>>, Error> {
        let Some(message) = self.element_message(message, set, element)? else {
            return Ok(None);
        };
        let list = span_of_list(message.payload)?;
        let mut attributes = Attributes::new(&message.payload[list]);
        if attributes.at_end() {
            return Ok(None);
        }
        let (_, element) = attributes.advance()?;
        Ok(Some(ElementRef::parse(element)?))
    }

    pub(super) fn element_message(
        &mut self,
        message: u8,
        set: &SetId<'_>,
        element: &Element<'_>,
    ) -> Result<Option<Message<'_>>, Error> {
        self.reply("look an element up", message, set.family, |writer| {
            set.write(writer);
            writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
                writer.nested(NFTA_LIST_ELEM, |writer| element.write_named(writer));
            });
        })
    }

    /// Looks a stateful object up by its type and name, without a listing; `None` if there is none.
    ///
    /// # Errors
    /// Those of a request.
    pub fn object<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        object_type: ObjectType,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<StatefulObjectRef<'_>>, Error> {
        let object = StatefulObject::named(family, table, object_type, name);
        self.object_by(NFT_MSG_GETOBJ, &object)
    }

    /// As [`object`](Self::object), and sets a counter, or what is consumed of a quota, back to 0.
    ///
    /// # Errors
    /// Those of a request.
    pub fn reset_object<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        object_type: ObjectType,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<StatefulObjectRef<'_>>, Error> {
        let object = StatefulObject::named(family, table, object_type, name);
        self.object_by(NFT_MSG_GETOBJ_RESET, &object)
    }

    fn object_by(
        &mut self,
        message: u8,
        object: &StatefulObject<'_>,
    ) -> Result<Option<StatefulObjectRef<'_>>, Error> {
        let family = object.family;
        self.look_up::<StatefulObject<'_>>("look an object up", message, family, |writer| {
            object.write_identity(writer);
        })
    }

    /// Lists stateful objects. The kernel filters by family, table and type.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn objects<'c>(
        &'c mut self,
        filter: impl Into<ObjectFilter<'c>>,
    ) -> Result<Listing<'c, StatefulObject<'static>>, Error> {
        let filter: ObjectFilter<'c> = filter.into();
        self.list(filter)
    }

    /// As [`objects`](Self::objects), and sets counters, and what is consumed of quotas, back to 0.
    /// What an interrupted listing gave is set back all the same.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn reset_objects<'c>(
        &'c mut self,
        filter: impl Into<ObjectFilter<'c>>,
    ) -> Result<Listing<'c, StatefulObject<'static>>, Error> {
        let filter: ObjectFilter<'c> = filter.into();
        self.list_by(NFT_MSG_GETOBJ_RESET, filter)
    }

    /// Looks a flowtable up by its name, without a listing; `None` if there is none.
    ///
    /// # Errors
    /// Those of a request.
    pub fn flowtable<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<FlowtableRef<'_>>, Error> {
        let (table, name) = (table.into(), name.into());
        let request = "look a flowtable up";
        self.look_up::<Flowtable<'_>>(request, NFT_MSG_GETFLOWTABLE, family, |writer| {
            writer
                .string(NFTA_FLOWTABLE_TABLE, &table)
                .string(NFTA_FLOWTABLE_NAME, &name);
        })
    }

    /// Lists flowtables. The kernel filters by family and table.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn flowtables<'c>(
        &'c mut self,
        filter: Scope<'c>,
    ) -> Result<Listing<'c, Flowtable<'static>>, Error> {
        self.list(filter)
    }

    /// As [`rules`](Self::rules), and sets counters and quotas of what is listed back to 0
    /// (Linux 6.2; before, it fails with `EINVAL`). What an interrupted listing gave is set back all
    /// the same.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn reset_rules<'c>(
        &'c mut self,
        filter: impl Into<RuleFilter<'c>>,
    ) -> Result<Listing<'c, Rule<'static>>, Error> {
        let filter: RuleFilter<'c> = filter.into();
        self.list_by(NFT_MSG_GETRULE_RESET, filter)
    }

    /// Lists objects of one kind.
    pub(super) fn list<'c, T: Listed>(
        &'c mut self,
        filter: impl Into<Filter<'c>>,
    ) -> Result<Listing<'c, T>, Error> {
        self.list_by(T::MESSAGES.get, filter)
    }

    fn list_by<'c, T: Listed>(
        &'c mut self,
        message: u8,
        filter: impl Into<Filter<'c>>,
    ) -> Result<Listing<'c, T>, Error> {
        let filter = filter.into();
        let sequence = self
            .ask(message, NLM_F_DUMP, filter.family, |writer| {
                filter.write::<T>(writer);
            })
            .map_err(|error| error.of_request(T::REQUEST))?;
        Ok(Listing::new(self, message, filter, sequence))
    }
}
