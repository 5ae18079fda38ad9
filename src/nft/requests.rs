//! Requests of a [`Connection`]: lookups of single objects by name, listings, and resets of counters.

use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETFLOWTABLE, NFT_MSG_GETOBJ, NFT_MSG_GETOBJ_RESET, NFT_MSG_GETRULE,
    NFT_MSG_GETRULE_RESET, NFT_MSG_GETSET, NFT_MSG_GETSETELEM, NFT_MSG_GETSETELEM_RESET,
    NFT_MSG_GETTABLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_TABLE,
    NFTA_LIST_ELEM, NFTA_RULE_CHAIN, NFTA_RULE_HANDLE, NFTA_RULE_TABLE,
    NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_NAME, NFTA_SET_TABLE, NFTA_TABLE_NAME,
};

use super::connection::{Connection, message_type};
use super::element::span_of_list;
use super::expr::ObjectType;
use super::listing::{ElementListing, Filter, Listing};
use super::name::Name;
use super::object::{Identified as _, Listed};
use super::scope::{ObjectFilter, RuleFilter, Scope};
use super::{
    Chain, ChainRef, Element, ElementRef, Family, Flowtable, FlowtableRef, ObjectId, Rule, RuleRef,
    Set, SetId, SetRef, StatefulObject, StatefulObjectRef, Table, TableRef,
};
use crate::netlink::{Attributes, Error, Message, MessageWriter, Request};

impl Connection {
    /// Looks up a table by name, without a listing; `None` if it does not exist.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn table<'n>(
        &mut self,
        family: Family,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<TableRef<'_>>, Error> {
        let name = name.into();
        self.look_up::<Table<'_>>("look up a table", NFT_MSG_GETTABLE, family, |writer| {
            writer.string(NFTA_TABLE_NAME, &name);
        })
    }

    /// Looks up a chain by name, without a listing, in time independent of the number of chains; `None`
    /// if the chain or table does not exist.
    ///
    /// Takes one request for an existing chain. For an absent one the lookup is repeated until the
    /// generation is the same twice (four requests), because a lookup may happen in the middle of a
    /// commit that replaces the chain.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn chain<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<ChainRef<'_>>, Error> {
        let (table, name) = (table.into(), name.into());
        self.look_up::<Chain<'_>>("look up a chain", NFT_MSG_GETCHAIN, family, |writer| {
            writer
                .string(NFTA_CHAIN_TABLE, &table)
                .string(NFTA_CHAIN_NAME, &name);
        })
    }

    /// Returns whether a chain with this name exists: see [`chain`](Self::chain).
    ///
    /// # Errors
    /// The errors of a request.
    pub fn chain_exists<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<bool, Error> {
        Ok(self.chain(family, table, name)?.is_some())
    }

    /// Looks up a rule by handle, without a listing; `None` if it does not exist.
    ///
    /// # Errors
    /// The errors of a request. The kernel's reply to a lookup is limited to one page: for a rule of
    /// more than about 3,700 bytes, which only a listing returns, this fails with [`Error::Refused`]
    /// and `EPERM`.
    pub fn rule<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        chain: impl Into<Name<'n>>,
        handle: u64,
    ) -> Result<Option<RuleRef<'_>>, Error> {
        let (table, chain) = (table.into(), chain.into());
        self.look_up::<Rule<'_>>("look up a rule", NFT_MSG_GETRULE, family, |writer| {
            writer
                .string(NFTA_RULE_TABLE, &table)
                .string(NFTA_RULE_CHAIN, &chain)
                .be64(NFTA_RULE_HANDLE, handle);
        })
    }

    /// Lists tables.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
    pub fn tables<'c>(
        &'c mut self,
        filter: Scope<'c>,
    ) -> Result<Listing<'c, Table<'static>>, Error> {
        self.list(filter)
    }

    /// Lists chains. The kernel filters by family only; the rest is filtered here.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
    pub fn chains<'c>(
        &'c mut self,
        filter: Scope<'c>,
    ) -> Result<Listing<'c, Chain<'static>>, Error> {
        self.list(filter)
    }

    /// Lists rules. The kernel filters by family, table and chain. For a missing chain the list is
    /// empty.
    ///
    /// A listing of very many rules takes the kernel time quadratic in their number; listing chain by
    /// chain does not.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
    pub fn rules<'c>(
        &'c mut self,
        filter: impl Into<RuleFilter<'c>>,
    ) -> Result<Listing<'c, Rule<'static>>, Error> {
        let filter: RuleFilter<'c> = filter.into();
        self.list(filter)
    }

    /// Looks up a set or map by name, without a listing; `None` if it does not exist.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn set<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<SetRef<'_>>, Error> {
        let (table, name) = (table.into(), name.into());
        self.look_up::<Set<'_>>("look up a set", NFT_MSG_GETSET, family, |writer| {
            writer
                .string(NFTA_SET_TABLE, &table)
                .string(NFTA_SET_NAME, &name);
        })
    }

    /// Lists sets and maps, without their elements. The kernel filters by family and table.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
    pub fn sets<'c>(&'c mut self, filter: Scope<'c>) -> Result<Listing<'c, Set<'static>>, Error> {
        self.list(filter)
    }

    /// Lists the elements of a set, in the kernel's order, which is unspecified.
    ///
    /// # Errors
    /// [`Error::Send`]; [`ElementListing::try_next`] returns the errors of the listing.
    pub fn elements<'c>(
        &'c mut self,
        family: Family,
        table: impl Into<Name<'c>>,
        set: impl Into<Name<'c>>,
    ) -> Result<ElementListing<'c>, Error> {
        let filter = Filter::set(family, table.into(), set.into());
        self.list(filter).map(ElementListing::new)
    }

    /// Lists elements like [`elements`](Self::elements), and resets their counters and quotas to 0
    /// (Linux 6.5; before, it fails with `EINVAL`). Elements returned by an interrupted listing are
    /// reset too.
    ///
    /// # Errors
    /// Same as [`elements`](Self::elements).
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

    /// Looks up an element by key, without a listing; `None` if the element or set does not exist.
    ///
    /// In an interval set, returns the element that begins the range containing the key; with
    /// [`Element::end`] of the key, the element that ends the range.
    ///
    /// # Errors
    /// The errors of a request.
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

    /// Looks up like [`element`](Self::element), and resets counters and quotas to 0 (Linux 6.5).
    ///
    /// # Errors
    /// The errors of a request.
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
        self.reply("look up an element", message, set.family, |writer| {
            set.write(writer);
            writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
                writer.nested(NFTA_LIST_ELEM, |writer| element.write_named(writer));
            });
        })
    }

    /// Looks up a stateful object by type and name, without a listing; `None` if it does not exist.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn object<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        object_type: ObjectType,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<StatefulObjectRef<'_>>, Error> {
        let object = ObjectId::new(family, table, object_type, name);
        self.object_by(NFT_MSG_GETOBJ, &object)
    }

    /// Looks up like [`object`](Self::object), and resets a counter, or the consumed bytes of a quota,
    /// to 0.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn reset_object<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        object_type: ObjectType,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<StatefulObjectRef<'_>>, Error> {
        let object = ObjectId::new(family, table, object_type, name);
        self.object_by(NFT_MSG_GETOBJ_RESET, &object)
    }

    fn object_by(
        &mut self,
        message: u8,
        object: &ObjectId<'_>,
    ) -> Result<Option<StatefulObjectRef<'_>>, Error> {
        let family = object.family;
        self.look_up::<StatefulObject<'_>>("look up an object", message, family, |writer| {
            object.write_identity(writer);
        })
    }

    /// Lists stateful objects. The kernel filters by family, table and type.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
    pub fn objects<'c>(
        &'c mut self,
        filter: impl Into<ObjectFilter<'c>>,
    ) -> Result<Listing<'c, StatefulObject<'static>>, Error> {
        let filter: ObjectFilter<'c> = filter.into();
        self.list(filter)
    }

    /// Lists objects like [`objects`](Self::objects), and resets counters, and the consumed bytes of
    /// quotas, to 0. Objects returned by an interrupted listing are reset too.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
    pub fn reset_objects<'c>(
        &'c mut self,
        filter: impl Into<ObjectFilter<'c>>,
    ) -> Result<Listing<'c, StatefulObject<'static>>, Error> {
        let filter: ObjectFilter<'c> = filter.into();
        self.list_by(NFT_MSG_GETOBJ_RESET, filter)
    }

    /// Looks up a flowtable by name, without a listing; `None` if it does not exist.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn flowtable<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        name: impl Into<Name<'n>>,
    ) -> Result<Option<FlowtableRef<'_>>, Error> {
        let (table, name) = (table.into(), name.into());
        let request = "look up a flowtable";
        self.look_up::<Flowtable<'_>>(request, NFT_MSG_GETFLOWTABLE, family, |writer| {
            writer
                .string(NFTA_FLOWTABLE_TABLE, &table)
                .string(NFTA_FLOWTABLE_NAME, &name);
        })
    }

    /// Lists flowtables. The kernel filters by family and table.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
    pub fn flowtables<'c>(
        &'c mut self,
        filter: Scope<'c>,
    ) -> Result<Listing<'c, Flowtable<'static>>, Error> {
        self.list(filter)
    }

    /// Lists rules like [`rules`](Self::rules), and resets their counters and quotas to 0 (Linux 6.2;
    /// before, it fails with `EINVAL`). Rules returned by an interrupted listing are reset too.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
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
        let request = Request::new(T::REQUEST, message_type(message));
        let write = |writer: &mut MessageWriter<'_>| filter.write::<T>(writer);
        let reader = self.session.dump(&request, filter.family.0, write)?;
        Ok(Listing::new(reader, message, filter))
    }
}
