//! Writes the objects of a [`Ruleset`] into a snapshot, as messages of a listing.

use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFT_MSG_NEWSET,
    NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_LIST_ELEM, NFTA_RULE_POSITION,
    NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_TABLE,
};

use super::Snapshot;
use super::elements::CHUNK;
use crate::arena::Position;
use crate::netlink::{MessageError, MessageWriter, NfGenMsg};
use crate::nft::connection::message_type;
use crate::nft::{Family, Ruleset, RulesetTable, Scope};

/// The reason why the objects of a ruleset fit into a snapshot.
const FITS: &str =
    "invariant: they fitted into messages when they were added, and the snapshot into 16 GiB";

impl Snapshot {
    /// Creates the snapshot of a ruleset, as far as it is in a scope.
    ///
    /// # Panics
    /// If it would be larger than 16 GiB.
    pub(in crate::nft) fn of_ruleset(ruleset: &Ruleset, scope: Scope<'static>) -> Self {
        let mut this = Self {
            scope,
            #[cfg(feature = "serde")]
            of_any_boot: true,
            ..Self::default()
        };
        for table in ruleset.tables() {
            let view = table.table();
            let name = view.name.as_deref().unwrap_or_default();
            if this.scope.admits(view.family, name) {
                this.put_table(table);
            }
        }
        this.close();
        this
    }

    /// Adds a table with its contents, each object after its parents.
    fn put_table(&mut self, table: &RulesetTable) {
        let view = table.table();
        let (family, table_name) = (view.family, view.name.as_deref().unwrap_or_default());
        self.put_listed(NFT_MSG_NEWTABLE, family, |w| view.write_listed(w));
        for chain in table.chains() {
            self.put_listed(NFT_MSG_NEWCHAIN, family, |w| chain.chain().write_listed(w));
        }
        for object in table.objects() {
            self.put_listed(NFT_MSG_NEWOBJ, family, |w| object.write_listed(w));
        }
        for flowtable in table.flowtables() {
            self.put_listed(NFT_MSG_NEWFLOWTABLE, family, |w| flowtable.write_listed(w));
        }
        for set in table.sets() {
            let view = set.set();
            self.put_listed(NFT_MSG_NEWSET, family, |w| view.write_listed(w));
            let set_name = view.name.as_deref().unwrap_or_default();
            let mut elements = set.raw_elements().peekable();
            while elements.peek().is_some() {
                let mut list = Vec::new();
                while let Some(element) = elements.next_if(|_| list.len() < CHUNK) {
                    let mut writer = MessageWriter::bare(&mut list);
                    writer.bytes(NFTA_LIST_ELEM, element);
                    writer.finish_bare().expect(FITS);
                }
                self.put_listed(NFT_MSG_NEWSETELEM, family, |writer| {
                    writer
                        .string(NFTA_SET_ELEM_LIST_TABLE, table_name)
                        .string(NFTA_SET_ELEM_LIST_SET, set_name)
                        .bytes(NFTA_SET_ELEM_LIST_ELEMENTS, &list);
                });
            }
        }
        for chain in table.chains() {
            let mut before = None;
            for rule in chain.rules() {
                self.put_listed(NFT_MSG_NEWRULE, family, |writer| {
                    rule.write_listed(writer);
                    if let Some(handle) = before {
                        writer.be64(NFTA_RULE_POSITION, handle);
                    }
                });
                before = rule.handle;
            }
        }
    }

    fn put_listed(
        &mut self,
        message: u8,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) {
        let at = self.encode(message, family, content).expect(FITS);
        self.index.insert(&self.arena, at).expect(FITS);
    }

    /// Appends a message, which is not indexed yet.
    pub(super) fn encode(
        &mut self,
        message: u8,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<Position, MessageError> {
        let mut bytes = Vec::new();
        let header = NfGenMsg {
            family: family.0,
            resource: 0,
        };
        let kind = message_type(message);
        let mut writer =
            MessageWriter::nfnetlink(&mut bytes, kind, 0, 0, header).without_nested_flag();
        content(&mut writer);
        writer.finish()?;
        Ok(self.arena.put(&bytes).expect(FITS))
    }
}
