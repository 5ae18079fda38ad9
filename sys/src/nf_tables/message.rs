//! Messages: their types, common attributes, and the sizes of names.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Maximum size of names and user data, in bytes; names include the closing NUL.
        "#define NFT_*_MAXNAMELEN": usize {
            /// Any of the names.
            NFT_NAME_MAXLEN = 256;
            /// A table's name.
            NFT_TABLE_MAXNAMELEN = 256;
            /// A chain's name.
            NFT_CHAIN_MAXNAMELEN = 256;
            /// A set's name.
            NFT_SET_MAXNAMELEN = 256;
            /// An object's name.
            NFT_OBJ_MAXNAMELEN = 256;
            /// User data of an object.
            NFT_USERDATA_MAXLEN = 256;
            /// Name of an operating system.
            NFT_OSF_MAXGENRELEN = 16;
        }

        /// Messages of the subsystem `NFNL_SUBSYS_NFTABLES`.
        "enum nf_tables_msg_types": u8 {
            /// Adds or changes a table.
            NFT_MSG_NEWTABLE = 0;
            /// Reads a table or lists tables.
            NFT_MSG_GETTABLE = 1;
            /// Deletes a table with all in it.
            NFT_MSG_DELTABLE = 2;
            /// Adds or changes a chain.
            NFT_MSG_NEWCHAIN = 3;
            /// Reads a chain or lists chains.
            NFT_MSG_GETCHAIN = 4;
            /// Deletes a chain.
            NFT_MSG_DELCHAIN = 5;
            /// Adds, inserts or replaces a rule.
            NFT_MSG_NEWRULE = 6;
            /// Reads a rule or lists rules.
            NFT_MSG_GETRULE = 7;
            /// Deletes a rule, or all rules of a chain or table.
            NFT_MSG_DELRULE = 8;
            /// Adds a set or map.
            NFT_MSG_NEWSET = 9;
            /// Reads a set or lists sets.
            NFT_MSG_GETSET = 10;
            /// Deletes a set.
            NFT_MSG_DELSET = 11;
            /// Adds elements to a set.
            NFT_MSG_NEWSETELEM = 12;
            /// Reads or lists elements of a set.
            NFT_MSG_GETSETELEM = 13;
            /// Deletes elements of a set, or all of them.
            NFT_MSG_DELSETELEM = 14;
            /// The ruleset has a new generation: an event, and the answer to [`NFT_MSG_GETGEN`].
            NFT_MSG_NEWGEN = 15;
            /// Requests the generation of the ruleset.
            NFT_MSG_GETGEN = 16;
            /// A traced packet met a rule: an event.
            NFT_MSG_TRACE = 17;
            /// Adds a named object.
            NFT_MSG_NEWOBJ = 18;
            /// Reads a named object or lists them.
            NFT_MSG_GETOBJ = 19;
            /// Deletes a named object.
            NFT_MSG_DELOBJ = 20;
            /// Reads named objects and resets their state.
            NFT_MSG_GETOBJ_RESET = 21;
            /// Adds or changes a flow table.
            NFT_MSG_NEWFLOWTABLE = 22;
            /// Reads a flow table or lists them.
            NFT_MSG_GETFLOWTABLE = 23;
            /// Deletes a flowtable, or some of its devices.
            NFT_MSG_DELFLOWTABLE = 24;
            /// Reads rules and resets their counters and other state.
            NFT_MSG_GETRULE_RESET = 25, since (6, 2);
            /// Deletes a table; no error when it does not exist.
            NFT_MSG_DESTROYTABLE = 26, since (6, 3);
            /// Deletes a chain; no error when it does not exist.
            NFT_MSG_DESTROYCHAIN = 27, since (6, 3);
            /// Deletes a rule; no error when it does not exist.
            NFT_MSG_DESTROYRULE = 28, since (6, 3);
            /// Deletes a set; no error when it does not exist.
            NFT_MSG_DESTROYSET = 29, since (6, 3);
            /// Deletes elements; no error when they do not exist.
            NFT_MSG_DESTROYSETELEM = 30, since (6, 3);
            /// Deletes a named object; no error when it does not exist.
            NFT_MSG_DESTROYOBJ = 31, since (6, 3);
            /// Deletes a flow table; no error when it does not exist.
            NFT_MSG_DESTROYFLOWTABLE = 32, since (6, 3);
            /// Reads elements and resets their counters and other state.
            NFT_MSG_GETSETELEM_RESET = 33, since (6, 5);
        }

        /// Attributes of the elements of a list.
        "enum nft_list_attributes": u16 {
            /// Not used.
            NFTA_LIST_UNSPEC = 0;
            /// Payload: nested.
            NFTA_LIST_ELEM = 1;
        }

        /// Attributes of a generation.
        "enum nft_gen_attributes": u16 {
            /// Not used.
            NFTA_GEN_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_GEN_ID = 1;
            /// Payload: u32, big-endian: process that changed the ruleset.
            NFTA_GEN_PROC_PID = 2;
            /// Payload: string: name of the process that changed the ruleset.
            NFTA_GEN_PROC_NAME = 3;
        }
    }
}
