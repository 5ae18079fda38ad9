//! References to objects by name or handle, for deletion and for a lookup of whether they exist.

use chainwright_sys::nf_tables::{
    NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_TABLE, NFTA_OBJ_NAME,
    NFTA_OBJ_TABLE, NFTA_OBJ_TYPE, NFTA_RULE_CHAIN, NFTA_RULE_HANDLE, NFTA_RULE_TABLE,
    NFTA_SET_NAME, NFTA_SET_TABLE, NFTA_TABLE_NAME,
};

use super::expr::ObjectType;
use super::name::Name;
use super::object::{Identified, Messages};
use super::{
    Chain, ChainRef, Connection, Family, Flowtable, FlowtableRef, Rule, RuleRef, Set, SetId,
    StatefulObject, StatefulObjectRef, Table, TableRef,
};
use crate::netlink::{Error, MessageWriter};

/// Identifies an object: a [`TableId`], [`ChainId`], [`RuleId`], [`SetId`], [`ObjectId`] or [`FlowtableId`], or an
/// object itself. Nothing else implements it.
pub trait Reference: Identified {}

impl<T: Identified> Reference for T {}

/// Declares references, given the object, the attributes and the name of the method of the object's view.
macro_rules! references {
    ($(
        $(#[$meta:meta])*
        pub struct $Id:ident of $Object:ident, by $View:ident::$of:ident {
            $( $(#[$field_meta:meta])* $KIND:ident => $field:ident: $Type:ty as $write:ident, )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $Id<'a> {
            /// Family of the table.
            pub family: Family,
            $( $(#[$field_meta])* pub $field: $Type, )*
        }

        impl<'a> $Id<'a> {
            /// Refers to the object with these names.
            pub fn new(family: Family $(, $field: impl Into<$Type>)*) -> Self {
                Self { family $(, $field: $field.into())* }
            }
        }

        impl<'a> $View<'a> {
            /// Returns a reference to the object.
            #[must_use]
            pub fn $of(&self) -> $Id<'a> {
                $Id::new(self.family() $(, self.$field())*)
            }
        }

        impl Identified for $Id<'_> {
            const MESSAGES: Messages = $Object::MESSAGES;

            fn family(&self) -> Family {
                self.family
            }

            fn write_identity(&self, writer: &mut MessageWriter<'_>) {
                $( writer.$write($KIND, references!(@value $write self.$field)); )*
            }
        }
    )*};
    (@value string $value:expr) => { &$value };
    (@value be64 $value:expr) => { $value };
    (@value be32 $value:expr) => { $value.0 };
}

references! {
    /// Refers to a table.
    pub struct TableId of Table, by TableRef::table_id {
        /// Name of the table.
        NFTA_TABLE_NAME => name: Name<'a> as string,
    }

    /// Refers to a chain.
    pub struct ChainId of Chain, by ChainRef::chain_id {
        /// Name of the table.
        NFTA_CHAIN_TABLE => table: Name<'a> as string,
        /// Name of the chain.
        NFTA_CHAIN_NAME => name: Name<'a> as string,
    }

    /// Refers to a rule.
    pub struct RuleId of Rule, by RuleRef::rule_id {
        /// Name of the table.
        NFTA_RULE_TABLE => table: Name<'a> as string,
        /// Name of the chain.
        NFTA_RULE_CHAIN => chain: Name<'a> as string,
        /// Handle of the rule.
        NFTA_RULE_HANDLE => handle: u64 as be64,
    }

    /// Refers to a stateful object.
    pub struct ObjectId of StatefulObject, by StatefulObjectRef::object_id {
        /// Name of the table.
        NFTA_OBJ_TABLE => table: Name<'a> as string,
        /// Type of the object: names are unique for each type only.
        NFTA_OBJ_TYPE => object_type: ObjectType as be32,
        /// Name of the object.
        NFTA_OBJ_NAME => name: Name<'a> as string,
    }

    /// Refers to a flowtable.
    pub struct FlowtableId of Flowtable, by FlowtableRef::flowtable_id {
        /// Name of the table.
        NFTA_FLOWTABLE_TABLE => table: Name<'a> as string,
        /// Name of the flowtable.
        NFTA_FLOWTABLE_NAME => name: Name<'a> as string,
    }
}

impl Identified for SetId<'_> {
    const MESSAGES: Messages = Set::MESSAGES;

    fn family(&self) -> Family {
        self.family
    }

    fn write_identity(&self, writer: &mut MessageWriter<'_>) {
        writer
            .string(NFTA_SET_TABLE, &self.table)
            .string(NFTA_SET_NAME, &self.set);
    }
}

impl Connection {
    /// Returns whether an object exists, without a listing, in time independent of the number of objects.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use chainwright::nft::{Family, SetId, Table, TableId, Transaction};
    /// use chainwright_testing::FakeKernel;
    ///
    /// let mut nft = FakeKernel::new().connect()?;
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::INET, "firewall"))?;
    /// nft.commit(&tx)?;
    /// assert!(nft.exists(&TableId::new(Family::INET, "firewall"))?);
    /// assert!(!nft.exists(&SetId::new(Family::INET, "firewall", "blocked"))?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of a request.
    pub fn exists<R: Reference>(&mut self, reference: &R) -> Result<bool, Error> {
        let family = reference.family();
        let found = self.reply("look up an object", R::MESSAGES.get, family, |writer| {
            reference.write_identity(writer);
        })?;
        Ok(found.is_some())
    }
}
