//! `linux/netfilter/nf_tables.h`: messages, attributes, flags, keys and operations of nf_tables.
//!
//! Messages have the type `NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_*` and start with `nlmsghdr` and
//! `nfgenmsg`; attributes follow. Numbers in attributes are big-endian unless a constant says
//! otherwise; strings end in NUL; bytes in [`NFTA_DATA_VALUE`] are in the byte order of what they are
//! compared with.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Room for names and user data, in bytes; names include the closing NUL.
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

        /// Registers of a rule: the verdict, four of 16 bytes, and the same bytes again as sixteen of 4 bytes.
        "enum nft_registers": u32 {
            /// The verdict.
            NFT_REG_VERDICT = 0;
            /// 16 bytes.
            NFT_REG_1 = 1;
            /// 16 bytes.
            NFT_REG_2 = 2;
            /// 16 bytes.
            NFT_REG_3 = 3;
            /// 16 bytes.
            NFT_REG_4 = 4;
            /// 4 bytes, the same as bytes 0 to 3 of [`NFT_REG_1`].
            NFT_REG32_00 = 8;
            /// 4 bytes, the same as bytes 4 to 7 of [`NFT_REG_1`].
            NFT_REG32_01 = 9;
            /// 4 bytes, the same as bytes 8 to 11 of [`NFT_REG_1`].
            NFT_REG32_02 = 10;
            /// 4 bytes, the same as bytes 12 to 15 of [`NFT_REG_1`].
            NFT_REG32_03 = 11;
            /// 4 bytes, the same as bytes 0 to 3 of [`NFT_REG_2`].
            NFT_REG32_04 = 12;
            /// 4 bytes, the same as bytes 4 to 7 of [`NFT_REG_2`].
            NFT_REG32_05 = 13;
            /// 4 bytes, the same as bytes 8 to 11 of [`NFT_REG_2`].
            NFT_REG32_06 = 14;
            /// 4 bytes, the same as bytes 12 to 15 of [`NFT_REG_2`].
            NFT_REG32_07 = 15;
            /// 4 bytes, the same as bytes 0 to 3 of [`NFT_REG_3`].
            NFT_REG32_08 = 16;
            /// 4 bytes, the same as bytes 4 to 7 of [`NFT_REG_3`].
            NFT_REG32_09 = 17;
            /// 4 bytes, the same as bytes 8 to 11 of [`NFT_REG_3`].
            NFT_REG32_10 = 18;
            /// 4 bytes, the same as bytes 12 to 15 of [`NFT_REG_3`].
            NFT_REG32_11 = 19;
            /// 4 bytes, the same as bytes 0 to 3 of [`NFT_REG_4`].
            NFT_REG32_12 = 20;
            /// 4 bytes, the same as bytes 4 to 7 of [`NFT_REG_4`].
            NFT_REG32_13 = 21;
            /// 4 bytes, the same as bytes 8 to 11 of [`NFT_REG_4`].
            NFT_REG32_14 = 22;
            /// 4 bytes, the same as bytes 12 to 15 of [`NFT_REG_4`].
            NFT_REG32_15 = 23;
        }

        /// Sizes of registers, in bytes, and their number.
        "#define NFT_REG*_SIZE": usize {
            /// Of [`NFT_REG_1`] to [`NFT_REG_4`].
            NFT_REG_SIZE = 16;
            /// Of [`NFT_REG32_00`] to [`NFT_REG32_15`].
            NFT_REG32_SIZE = 4;
            /// Number of registers of 4 bytes.
            NFT_REG32_COUNT = 16;
        }

        /// Verdicts of nf_tables, beside the netfilter ones (`NF_ACCEPT`, …).
        "enum nft_verdicts": i32 {
            /// Go on in this rule.
            NFT_CONTINUE = -1;
            /// Leave this rule and go on with the next one.
            NFT_BREAK = -2;
            /// Go to another chain and come back.
            NFT_JUMP = -3;
            /// Go to another chain and do not come back here.
            NFT_GOTO = -4;
            /// Go back to the calling chain, or to the policy.
            NFT_RETURN = -5;
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
            /// Asks for the generation of the ruleset.
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
            /// Deletes a flow table, or devices of it.
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

        /// Attributes of a list: every entry is one of them.
        "enum nft_list_attributes": u16 {
            /// Not used.
            NFTA_LIST_UNSPEC = 0;
            /// Payload: nested.
            NFTA_LIST_ELEM = 1;
        }

        /// Attributes of a base chain's hook.
        "enum nft_hook_attributes": u16 {
            /// Not used.
            NFTA_HOOK_UNSPEC = 0;
            /// Payload: u32, big-endian: `NF_*` hook of the family.
            NFTA_HOOK_HOOKNUM = 1;
            /// Payload: i32, big-endian.
            NFTA_HOOK_PRIORITY = 2;
            /// Payload: string.
            NFTA_HOOK_DEV = 3;
            /// Payload: nested: `NFTA_DEVICE_*`.
            NFTA_HOOK_DEVS = 4;
        }

        /// Flags of a table.
        "enum nft_table_flags": u32 {
            /// Its base chains are not registered: no packet meets them.
            NFT_TABLE_F_DORMANT = 0x1;
            /// It belongs to the socket that made it; nobody else can change it.
            NFT_TABLE_F_OWNER = 0x2;
            /// It stays when its owner closes the socket.
            NFT_TABLE_F_PERSIST = 0x4, since (6, 9);
        }

        /// Attributes of a table.
        "enum nft_table_attributes": u16 {
            /// Not used.
            NFTA_TABLE_UNSPEC = 0;
            /// Payload: string.
            NFTA_TABLE_NAME = 1;
            /// Payload: u32, big-endian: `NFT_TABLE_F_*`.
            NFTA_TABLE_FLAGS = 2;
            /// Payload: u32, big-endian.
            NFTA_TABLE_USE = 3;
            /// Payload: u64, big-endian.
            NFTA_TABLE_HANDLE = 4;
            /// Padding before a 64-bit payload.
            NFTA_TABLE_PAD = 5;
            /// Payload: bytes.
            NFTA_TABLE_USERDATA = 6;
            /// Payload: u32, big-endian.
            NFTA_TABLE_OWNER = 7;
        }

        /// Flags of a chain.
        "enum nft_chain_flags": u32 {
            /// It is registered at a hook.
            NFT_CHAIN_BASE = 0x1;
            /// Its rules are given to the hardware.
            NFT_CHAIN_HW_OFFLOAD = 0x2;
            /// It lives as long as the rule that jumps to it.
            NFT_CHAIN_BINDING = 0x4;
            /// All flags.
            NFT_CHAIN_FLAGS = 0x7;
        }

        /// Attributes of a chain.
        "enum nft_chain_attributes": u16 {
            /// Not used.
            NFTA_CHAIN_UNSPEC = 0;
            /// Payload: string.
            NFTA_CHAIN_TABLE = 1;
            /// Payload: u64, big-endian.
            NFTA_CHAIN_HANDLE = 2;
            /// Payload: string.
            NFTA_CHAIN_NAME = 3;
            /// Payload: nested: `NFTA_HOOK_*`.
            NFTA_CHAIN_HOOK = 4;
            /// Payload: u32, big-endian: `NF_ACCEPT` or `NF_DROP`.
            NFTA_CHAIN_POLICY = 5;
            /// Payload: u32, big-endian.
            NFTA_CHAIN_USE = 6;
            /// Payload: string.
            NFTA_CHAIN_TYPE = 7;
            /// Payload: nested: `NFTA_COUNTER_*`.
            NFTA_CHAIN_COUNTERS = 8;
            /// Padding before a 64-bit payload.
            NFTA_CHAIN_PAD = 9;
            /// Payload: u32, big-endian: `NFT_CHAIN_*`.
            NFTA_CHAIN_FLAGS = 10;
            /// Payload: u32, big-endian.
            NFTA_CHAIN_ID = 11;
            /// Payload: bytes.
            NFTA_CHAIN_USERDATA = 12;
        }

        /// Attributes of a rule.
        "enum nft_rule_attributes": u16 {
            /// Not used.
            NFTA_RULE_UNSPEC = 0;
            /// Payload: string.
            NFTA_RULE_TABLE = 1;
            /// Payload: string.
            NFTA_RULE_CHAIN = 2;
            /// Payload: u64, big-endian.
            NFTA_RULE_HANDLE = 3;
            /// Payload: nested: `NFTA_EXPR_*`.
            NFTA_RULE_EXPRESSIONS = 4;
            /// Payload: nested: `NFTA_RULE_COMPAT_*`.
            NFTA_RULE_COMPAT = 5;
            /// Payload: u64, big-endian.
            NFTA_RULE_POSITION = 6;
            /// Payload: bytes, at most [`NFT_USERDATA_MAXLEN`].
            NFTA_RULE_USERDATA = 7;
            /// Padding before a 64-bit payload.
            NFTA_RULE_PAD = 8;
            /// Payload: u32, big-endian.
            NFTA_RULE_ID = 9;
            /// Payload: u32, big-endian.
            NFTA_RULE_POSITION_ID = 10;
            /// Payload: u32, big-endian: the chain's `NFTA_CHAIN_ID` in this batch.
            NFTA_RULE_CHAIN_ID = 11;
        }

        /// Flags in a rule's note for x_tables extensions.
        "enum nft_rule_compat_flags": u32 {
            /// Was the inversion in early kernels; ignored.
            NFT_RULE_COMPAT_F_UNUSED = 0x1, since (6, 8);
            /// The protocol is negated.
            NFT_RULE_COMPAT_F_INV = 0x2;
            /// All flags.
            NFT_RULE_COMPAT_F_MASK = 0x2;
        }

        /// Attributes of a rule's note for x_tables extensions: the protocol that the rule matches.
        "enum nft_rule_compat_attributes": u16 {
            /// Not used.
            NFTA_RULE_COMPAT_UNSPEC = 0;
            /// Payload: u32, big-endian: IP protocol number.
            NFTA_RULE_COMPAT_PROTO = 1;
            /// Payload: u32, big-endian: `NFT_RULE_COMPAT_F_*`.
            NFTA_RULE_COMPAT_FLAGS = 2;
        }

        /// Flags of a set.
        "enum nft_set_flags": u32 {
            /// It belongs to the one rule that uses it.
            NFT_SET_ANONYMOUS = 0x1;
            /// Its elements do not change once a rule uses it.
            NFT_SET_CONSTANT = 0x2;
            /// Its keys are intervals.
            NFT_SET_INTERVAL = 0x4;
            /// Its elements have data.
            NFT_SET_MAP = 0x8;
            /// Its elements may time out.
            NFT_SET_TIMEOUT = 0x10;
            /// Rules may add elements.
            NFT_SET_EVAL = 0x20;
            /// Its elements refer to named objects.
            NFT_SET_OBJECT = 0x40;
            /// Its keys are made of several fields.
            NFT_SET_CONCAT = 0x80;
            /// Its elements have expressions.
            NFT_SET_EXPR = 0x100;
        }

        /// What the kernel optimises a set for.
        "enum nft_set_policies": u32 {
            /// Fast rather than small.
            NFT_SET_POL_PERFORMANCE = 0;
            /// Small rather than fast.
            NFT_SET_POL_MEMORY = 1;
        }

        /// Attributes that describe a set's size and key.
        "enum nft_set_desc_attributes": u16 {
            /// Not used.
            NFTA_SET_DESC_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_SET_DESC_SIZE = 1;
            /// Payload: nested: `NFTA_LIST_ELEM` with `NFTA_SET_FIELD_*`.
            NFTA_SET_DESC_CONCAT = 2;
        }

        /// Attributes of one field of a key.
        "enum nft_set_field_attributes": u16 {
            /// Not used.
            NFTA_SET_FIELD_UNSPEC = 0;
            /// Payload: u32, big-endian, bytes.
            NFTA_SET_FIELD_LEN = 1;
        }

        /// Attributes of a set or map.
        "enum nft_set_attributes": u16 {
            /// Not used.
            NFTA_SET_UNSPEC = 0;
            /// Payload: string.
            NFTA_SET_TABLE = 1;
            /// Payload: string.
            NFTA_SET_NAME = 2;
            /// Payload: u32, big-endian: `NFT_SET_*`.
            NFTA_SET_FLAGS = 3;
            /// Payload: u32, big-endian.
            NFTA_SET_KEY_TYPE = 4;
            /// Payload: u32, big-endian, bytes.
            NFTA_SET_KEY_LEN = 5;
            /// Payload: u32, big-endian.
            NFTA_SET_DATA_TYPE = 6;
            /// Payload: u32, big-endian, bytes.
            NFTA_SET_DATA_LEN = 7;
            /// Payload: u32, big-endian: `NFT_SET_POL_*`.
            NFTA_SET_POLICY = 8;
            /// Payload: nested: `NFTA_SET_DESC_*`.
            NFTA_SET_DESC = 9;
            /// Payload: u32, big-endian.
            NFTA_SET_ID = 10;
            /// Payload: u64, big-endian, milliseconds.
            NFTA_SET_TIMEOUT = 11;
            /// Payload: u32, big-endian, milliseconds.
            NFTA_SET_GC_INTERVAL = 12;
            /// Payload: bytes.
            NFTA_SET_USERDATA = 13;
            /// Padding before a 64-bit payload.
            NFTA_SET_PAD = 14;
            /// Payload: u32, big-endian: `NFT_OBJECT_*`.
            NFTA_SET_OBJ_TYPE = 15;
            /// Payload: u64, big-endian.
            NFTA_SET_HANDLE = 16;
            /// Payload: nested: `NFTA_EXPR_*`.
            NFTA_SET_EXPR = 17;
            /// Payload: nested: [`NFTA_LIST_ELEM`].
            NFTA_SET_EXPRESSIONS = 18;
            /// Payload: string: name of the kernel's set backend.
            NFTA_SET_TYPE = 19, since (6, 16);
            /// Payload: u32, big-endian: number of elements.
            NFTA_SET_COUNT = 20, since (6, 16);
        }

        /// Flags of a set element.
        "enum nft_set_elem_flags": u32 {
            /// It ends the interval before it.
            NFT_SET_ELEM_INTERVAL_END = 0x1;
            /// It stands for every key that is not in the set.
            NFT_SET_ELEM_CATCHALL = 0x2;
        }

        /// Attributes of a set element.
        "enum nft_set_elem_attributes": u16 {
            /// Not used.
            NFTA_SET_ELEM_UNSPEC = 0;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_SET_ELEM_KEY = 1;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_SET_ELEM_DATA = 2;
            /// Payload: u32, big-endian: `NFT_SET_ELEM_*`.
            NFTA_SET_ELEM_FLAGS = 3;
            /// Payload: u64, big-endian, milliseconds.
            NFTA_SET_ELEM_TIMEOUT = 4;
            /// Payload: u64, big-endian, milliseconds.
            NFTA_SET_ELEM_EXPIRATION = 5;
            /// Payload: bytes.
            NFTA_SET_ELEM_USERDATA = 6;
            /// Payload: nested: `NFTA_EXPR_*`.
            NFTA_SET_ELEM_EXPR = 7;
            /// Padding before a 64-bit payload.
            NFTA_SET_ELEM_PAD = 8;
            /// Payload: string.
            NFTA_SET_ELEM_OBJREF = 9;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_SET_ELEM_KEY_END = 10;
            /// Payload: nested: [`NFTA_LIST_ELEM`].
            NFTA_SET_ELEM_EXPRESSIONS = 11;
        }

        /// Attributes of a message that carries set elements.
        "enum nft_set_elem_list_attributes": u16 {
            /// Not used.
            NFTA_SET_ELEM_LIST_UNSPEC = 0;
            /// Payload: string.
            NFTA_SET_ELEM_LIST_TABLE = 1;
            /// Payload: string.
            NFTA_SET_ELEM_LIST_SET = 2;
            /// Payload: nested: `NFTA_SET_ELEM_*`.
            NFTA_SET_ELEM_LIST_ELEMENTS = 3;
            /// Payload: u32, big-endian.
            NFTA_SET_ELEM_LIST_SET_ID = 4;
        }

        /// Types of data in a map.
        "enum nft_data_types": u32 {
            /// Plain bytes; any number below 0xffffff00 means the same.
            NFT_DATA_VALUE = 0x0;
            /// A verdict.
            NFT_DATA_VERDICT = 0xffff_ff00;
            /// Types with all of these bits belong to the kernel.
            NFT_DATA_RESERVED_MASK = 0xffff_ff00;
        }

        /// Attributes of a value: bytes or a verdict.
        "enum nft_data_attributes": u16 {
            /// Not used.
            NFTA_DATA_UNSPEC = 0;
            /// Payload: bytes.
            NFTA_DATA_VALUE = 1;
            /// Payload: nested: `NFTA_VERDICT_*`.
            NFTA_DATA_VERDICT = 2;
        }

        /// Room for a value, in bytes.
        "#define NFT_DATA_VALUE_MAXLEN": usize {
            /// Longest value.
            NFT_DATA_VALUE_MAXLEN = 64;
        }

        /// Attributes of a verdict.
        "enum nft_verdict_attributes": u16 {
            /// Not used.
            NFTA_VERDICT_UNSPEC = 0;
            /// Payload: i32, big-endian: `NFT_*` or `NF_*` verdict.
            NFTA_VERDICT_CODE = 1;
            /// Payload: string.
            NFTA_VERDICT_CHAIN = 2;
            /// Payload: u32, big-endian.
            NFTA_VERDICT_CHAIN_ID = 3;
        }

        /// Attributes of any expression: its type and its own attributes.
        "enum nft_expr_attributes": u16 {
            /// Not used.
            NFTA_EXPR_UNSPEC = 0;
            /// Payload: string.
            NFTA_EXPR_NAME = 1;
            /// Payload: nested: attributes of the expression's type.
            NFTA_EXPR_DATA = 2;
        }

        /// Attributes of the expression `immediate`, which loads a value or a verdict.
        "enum nft_immediate_attributes": u16 {
            /// Not used.
            NFTA_IMMEDIATE_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_IMMEDIATE_DREG = 1;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_IMMEDIATE_DATA = 2;
        }

        /// Operations of the expression `bitwise`.
        "enum nft_bitwise_ops": u32 {
            /// `(source & mask) ^ xor`.
            NFT_BITWISE_MASK_XOR = 0, since (6, 13);
            /// Shift left.
            NFT_BITWISE_LSHIFT = 1;
            /// Shift right.
            NFT_BITWISE_RSHIFT = 2;
            /// And of two registers, or of a register and data.
            NFT_BITWISE_AND = 3, since (6, 13);
            /// Or of two registers, or of a register and data.
            NFT_BITWISE_OR = 4, since (6, 13);
            /// Exclusive or of two registers, or of a register and data.
            NFT_BITWISE_XOR = 5, since (6, 13);
            /// The former name of [`NFT_BITWISE_MASK_XOR`].
            NFT_BITWISE_BOOL = 0;
        }

        /// Attributes of the expression `bitwise`.
        "enum nft_bitwise_attributes": u16 {
            /// Not used.
            NFTA_BITWISE_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_BITWISE_SREG = 1;
            /// Payload: u32, big-endian: register.
            NFTA_BITWISE_DREG = 2;
            /// Payload: u32, big-endian.
            NFTA_BITWISE_LEN = 3;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_BITWISE_MASK = 4;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_BITWISE_XOR = 5;
            /// Payload: u32, big-endian: `NFT_BITWISE_*`.
            NFTA_BITWISE_OP = 6;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_BITWISE_DATA = 7;
            /// Payload: u32, big-endian: register of the right operand.
            NFTA_BITWISE_SREG2 = 8, since (6, 13);
        }

        /// Operations of the expression `byteorder`.
        "enum nft_byteorder_ops": u32 {
            /// From network to host byte order.
            NFT_BYTEORDER_NTOH = 0;
            /// From host to network byte order.
            NFT_BYTEORDER_HTON = 1;
        }

        /// Attributes of the expression `byteorder`.
        "enum nft_byteorder_attributes": u16 {
            /// Not used.
            NFTA_BYTEORDER_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_BYTEORDER_SREG = 1;
            /// Payload: u32, big-endian: register.
            NFTA_BYTEORDER_DREG = 2;
            /// Payload: u32, big-endian: `NFT_BYTEORDER_*`.
            NFTA_BYTEORDER_OP = 3;
            /// Payload: u32, big-endian.
            NFTA_BYTEORDER_LEN = 4;
            /// Payload: u32, big-endian, bytes: 2, 4 or 8.
            NFTA_BYTEORDER_SIZE = 5;
        }

        /// Operations of the expression `cmp`; they compare bytes, so numbers compare in network byte order.
        "enum nft_cmp_ops": u32 {
            /// Equal.
            NFT_CMP_EQ = 0;
            /// Not equal.
            NFT_CMP_NEQ = 1;
            /// Less.
            NFT_CMP_LT = 2;
            /// Less or equal.
            NFT_CMP_LTE = 3;
            /// Greater.
            NFT_CMP_GT = 4;
            /// Greater or equal.
            NFT_CMP_GTE = 5;
        }

        /// Attributes of the expression `cmp`.
        "enum nft_cmp_attributes": u16 {
            /// Not used.
            NFTA_CMP_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_CMP_SREG = 1;
            /// Payload: u32, big-endian: `NFT_CMP_*`.
            NFTA_CMP_OP = 2;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_CMP_DATA = 3;
        }

        /// Operations of the expression `range`.
        "enum nft_range_ops": u32 {
            /// Inside the range.
            NFT_RANGE_EQ = 0;
            /// Outside the range.
            NFT_RANGE_NEQ = 1;
        }

        /// Attributes of the expression `range`.
        "enum nft_range_attributes": u16 {
            /// Not used.
            NFTA_RANGE_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_RANGE_SREG = 1;
            /// Payload: u32, big-endian: `NFT_CMP_*`.
            NFTA_RANGE_OP = 2;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_RANGE_FROM_DATA = 3;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_RANGE_TO_DATA = 4;
        }

        /// Flags of the expression `lookup`.
        "enum nft_lookup_flags": u32 {
            NFT_LOOKUP_F_INV = 0x1;
        }

        /// Attributes of the expression `lookup`, which searches a set.
        "enum nft_lookup_attributes": u16 {
            /// Not used.
            NFTA_LOOKUP_UNSPEC = 0;
            /// Payload: string.
            NFTA_LOOKUP_SET = 1;
            /// Payload: u32, big-endian: register.
            NFTA_LOOKUP_SREG = 2;
            /// Payload: u32, big-endian: register.
            NFTA_LOOKUP_DREG = 3;
            /// Payload: u32, big-endian.
            NFTA_LOOKUP_SET_ID = 4;
            /// Payload: u32, big-endian: [`NFT_LOOKUP_F_INV`].
            NFTA_LOOKUP_FLAGS = 5;
        }

        /// Operations of the expression `dynset`.
        "enum nft_dynset_ops": u32 {
            /// Add the element; keep the timeout of one that exists.
            NFT_DYNSET_OP_ADD = 0;
            /// Add the element or renew its timeout.
            NFT_DYNSET_OP_UPDATE = 1;
            /// Delete the element.
            NFT_DYNSET_OP_DELETE = 2;
        }

        /// Flags of the expression `dynset`.
        "enum nft_dynset_flags": u32 {
            NFT_DYNSET_F_INV = 0x1;
            NFT_DYNSET_F_EXPR = 0x2;
        }

        /// Attributes of the expression `dynset`, which changes a set.
        "enum nft_dynset_attributes": u16 {
            /// Not used.
            NFTA_DYNSET_UNSPEC = 0;
            /// Payload: string.
            NFTA_DYNSET_SET_NAME = 1;
            /// Payload: u32, big-endian.
            NFTA_DYNSET_SET_ID = 2;
            /// Payload: u32, big-endian: `NFT_DYNSET_OP_*`.
            NFTA_DYNSET_OP = 3;
            /// Payload: u32, big-endian: register.
            NFTA_DYNSET_SREG_KEY = 4;
            /// Payload: u32, big-endian: register.
            NFTA_DYNSET_SREG_DATA = 5;
            /// Payload: u64, big-endian, milliseconds.
            NFTA_DYNSET_TIMEOUT = 6;
            /// Payload: nested: `NFTA_EXPR_*`.
            NFTA_DYNSET_EXPR = 7;
            /// Padding before a 64-bit payload.
            NFTA_DYNSET_PAD = 8;
            /// Payload: u32, big-endian: `NFT_DYNSET_F_*`.
            NFTA_DYNSET_FLAGS = 9;
            /// Payload: nested: [`NFTA_LIST_ELEM`].
            NFTA_DYNSET_EXPRESSIONS = 10;
        }

        /// Where the offset of the expression `payload` counts from.
        "enum nft_payload_bases": u32 {
            /// Start of the link layer header.
            NFT_PAYLOAD_LL_HEADER = 0;
            /// Start of the network header.
            NFT_PAYLOAD_NETWORK_HEADER = 1;
            /// Start of the transport header.
            NFT_PAYLOAD_TRANSPORT_HEADER = 2;
            /// Start of what the transport header carries.
            NFT_PAYLOAD_INNER_HEADER = 3;
            /// Start of the tunnel header, inside an `inner` expression.
            NFT_PAYLOAD_TUN_HEADER = 4, since (6, 2);
        }

        /// Checksum to correct when the expression `payload` writes.
        "enum nft_payload_csum_types": u32 {
            NFT_PAYLOAD_CSUM_NONE = 0;
            NFT_PAYLOAD_CSUM_INET = 1;
            NFT_PAYLOAD_CSUM_SCTP = 2;
        }

        /// Flags of that checksum.
        "enum nft_payload_csum_flags": u32 {
            NFT_PAYLOAD_L4CSUM_PSEUDOHDR = 0x1;
        }

        /// Tunnels that the expression `inner` looks into.
        "enum nft_inner_type": u32 {
            NFT_INNER_UNSPEC = 0, since (6, 2);
            NFT_INNER_VXLAN = 1, since (6, 2);
            NFT_INNER_GENEVE = 2, since (6, 2);
        }

        /// Flags of the expression `inner`.
        "enum nft_inner_flags": u32 {
            /// The header size counts.
            NFT_INNER_HDRSIZE = 0x1, since (6, 2);
            /// There is an inner link layer header.
            NFT_INNER_LL = 0x2, since (6, 2);
            /// There is an inner network header.
            NFT_INNER_NH = 0x4, since (6, 2);
            /// There is an inner transport header.
            NFT_INNER_TH = 0x8, since (6, 2);
            /// All flags.
            NFT_INNER_MASK = 0xf, since (6, 2);
        }

        /// Attributes of the expression `inner`, which runs another expression inside a tunnel.
        "enum nft_inner_attributes": u16 {
            /// Not used.
            NFTA_INNER_UNSPEC = 0, since (6, 2);
            /// Payload: u32, big-endian.
            NFTA_INNER_NUM = 1, since (6, 2);
            /// Payload: u32, big-endian: `NFT_INNER_*` of `enum nft_inner_type`.
            NFTA_INNER_TYPE = 2, since (6, 2);
            /// Payload: u32, big-endian: `NFT_INNER_*` of `enum nft_inner_flags`.
            NFTA_INNER_FLAGS = 3, since (6, 2);
            /// Payload: u32, big-endian, bytes.
            NFTA_INNER_HDRSIZE = 4, since (6, 2);
            /// Payload: nested: `NFTA_EXPR_*`.
            NFTA_INNER_EXPR = 5, since (6, 2);
        }

        /// Attributes of the expression `payload`, which reads or writes the packet.
        "enum nft_payload_attributes": u16 {
            /// Not used.
            NFTA_PAYLOAD_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_PAYLOAD_DREG = 1;
            /// Payload: u32, big-endian: `NFT_PAYLOAD_*`.
            NFTA_PAYLOAD_BASE = 2;
            /// Payload: u32, big-endian.
            NFTA_PAYLOAD_OFFSET = 3;
            /// Payload: u32, big-endian.
            NFTA_PAYLOAD_LEN = 4;
            /// Payload: u32, big-endian: register.
            NFTA_PAYLOAD_SREG = 5;
            /// Payload: u32, big-endian: `NFT_PAYLOAD_CSUM_*`.
            NFTA_PAYLOAD_CSUM_TYPE = 6;
            /// Payload: u32, big-endian.
            NFTA_PAYLOAD_CSUM_OFFSET = 7;
            /// Payload: u32, big-endian: `NFT_PAYLOAD_L4CSUM_*`.
            NFTA_PAYLOAD_CSUM_FLAGS = 8;
        }

        /// Flags of the expression `exthdr`.
        "enum nft_exthdr_flags": u32 {
            NFT_EXTHDR_F_PRESENT = 0x1;
        }

        /// Kinds of headers and options that the expression `exthdr` knows.
        "enum nft_exthdr_op": u32 {
            NFT_EXTHDR_OP_IPV6 = 0;
            NFT_EXTHDR_OP_TCPOPT = 1;
            NFT_EXTHDR_OP_IPV4 = 2;
            NFT_EXTHDR_OP_SCTP = 3;
            NFT_EXTHDR_OP_DCCP = 4;
        }

        /// Attributes of the expression `exthdr`, which reads or writes extension headers and options.
        "enum nft_exthdr_attributes": u16 {
            /// Not used.
            NFTA_EXTHDR_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_EXTHDR_DREG = 1;
            /// Payload: u8.
            NFTA_EXTHDR_TYPE = 2;
            /// Payload: u32, big-endian.
            NFTA_EXTHDR_OFFSET = 3;
            /// Payload: u32, big-endian.
            NFTA_EXTHDR_LEN = 4;
            /// Payload: u32, big-endian: `NFT_EXTHDR_F_*`.
            NFTA_EXTHDR_FLAGS = 5;
            /// Payload: u32, big-endian: `NFT_EXTHDR_OP_*`.
            NFTA_EXTHDR_OP = 6;
            /// Payload: u32, big-endian.
            NFTA_EXTHDR_SREG = 7;
        }

        /// Keys of the expression `meta`: what it reads or sets.
        "enum nft_meta_keys": u32 {
            /// Length of the packet (u32, bytes).
            NFT_META_LEN = 0;
            /// Ethernet type (u16, big-endian).
            NFT_META_PROTOCOL = 1;
            /// Priority, a traffic class handle (u32).
            NFT_META_PRIORITY = 2;
            /// Mark (u32, host byte order).
            NFT_META_MARK = 3;
            /// Index of the incoming interface (u32, host byte order).
            NFT_META_IIF = 4;
            /// Index of the outgoing interface (u32, host byte order).
            NFT_META_OIF = 5;
            /// Name of the incoming interface (16 bytes, NUL-padded).
            NFT_META_IIFNAME = 6;
            /// Name of the outgoing interface (16 bytes, NUL-padded).
            NFT_META_OIFNAME = 7;
            /// Hardware type of the incoming interface (u16, host byte order).
            NFT_META_IFTYPE = 8;
            /// Hardware type of the outgoing interface (u16, host byte order).
            NFT_META_OIFTYPE = 9;
            /// User id of the socket (u32, host byte order).
            NFT_META_SKUID = 10;
            /// Group id of the socket (u32, host byte order).
            NFT_META_SKGID = 11;
            /// Whether the packet is traced (u8).
            NFT_META_NFTRACE = 12;
            /// Routing realm (u32, host byte order).
            NFT_META_RTCLASSID = 13;
            /// Security mark (u32, host byte order).
            NFT_META_SECMARK = 14;
            /// Protocol family, `NFPROTO_*` (u8).
            NFT_META_NFPROTO = 15;
            /// Layer 4 protocol number (u8).
            NFT_META_L4PROTO = 16;
            /// Name of the bridge it came in by (16 bytes, NUL-padded).
            NFT_META_BRI_IIFNAME = 17;
            /// Name of the bridge it goes out by (16 bytes, NUL-padded).
            NFT_META_BRI_OIFNAME = 18;
            /// Unicast, broadcast, multicast or other (u8).
            NFT_META_PKTTYPE = 19;
            /// Number of the processor (u32, host byte order).
            NFT_META_CPU = 20;
            /// Group of the incoming interface (u32, host byte order).
            NFT_META_IIFGROUP = 21;
            /// Group of the outgoing interface (u32, host byte order).
            NFT_META_OIFGROUP = 22;
            /// Class id of the socket's net_cls control group (u32, host byte order).
            NFT_META_CGROUP = 23;
            /// A random number (u32).
            NFT_META_PRANDOM = 24;
            /// Whether it was decrypted by IPsec (u8).
            NFT_META_SECPATH = 25;
            /// Kind of the incoming interface (16 bytes, NUL-padded).
            NFT_META_IIFKIND = 26;
            /// Kind of the outgoing interface (16 bytes, NUL-padded).
            NFT_META_OIFKIND = 27;
            /// Default VLAN of the bridge port (u16, host byte order).
            NFT_META_BRI_IIFPVID = 28;
            /// VLAN protocol of the bridge (u16, big-endian).
            NFT_META_BRI_IIFVPROTO = 29;
            /// Time since 1970 (u64, nanoseconds).
            NFT_META_TIME_NS = 30;
            /// Day of the week, 0 is Sunday (u8).
            NFT_META_TIME_DAY = 31;
            /// Time of the day (u32, seconds).
            NFT_META_TIME_HOUR = 32;
            /// Index of the device under a VRF (u32, host byte order).
            NFT_META_SDIF = 33;
            /// Name of the device under a VRF (16 bytes, NUL-padded).
            NFT_META_SDIFNAME = 34;
            /// Route the frame instead of bridging it (u8; only to be set).
            NFT_META_BRI_BROUTE = 35, since (6, 4);
            /// Hardware address of the bridge it came in by (6 bytes).
            NFT_META_BRI_IIFHWADDR = 37, since (6, 18);
        }

        /// Second name of a key of the expression `meta`.
        "#define NFT_META_IIFTYPE": u32 {
            /// The same as [`NFT_META_IFTYPE`].
            NFT_META_IIFTYPE = 8;
        }

        /// Keys of the expression `rt`: what it reads of the route.
        "enum nft_rt_keys": u32 {
            NFT_RT_CLASSID = 0;
            NFT_RT_NEXTHOP4 = 1;
            NFT_RT_NEXTHOP6 = 2;
            NFT_RT_TCPMSS = 3;
            NFT_RT_XFRM = 4;
        }

        /// Types of the expression `hash`.
        "enum nft_hash_types": u32 {
            /// Of the bytes in a register.
            NFT_HASH_JENKINS = 0;
            /// Of the connection, the same for both directions.
            NFT_HASH_SYM = 1;
        }

        /// Attributes of the expression `hash`.
        "enum nft_hash_attributes": u16 {
            /// Not used.
            NFTA_HASH_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_HASH_SREG = 1;
            /// Payload: u32, big-endian: register.
            NFTA_HASH_DREG = 2;
            /// Payload: u32, big-endian.
            NFTA_HASH_LEN = 3;
            /// Payload: u32, big-endian.
            NFTA_HASH_MODULUS = 4;
            /// Payload: u32, big-endian.
            NFTA_HASH_SEED = 5;
            /// Payload: u32, big-endian.
            NFTA_HASH_OFFSET = 6;
            /// Payload: u32, big-endian: `NFT_HASH_*`.
            NFTA_HASH_TYPE = 7;
            /// Payload: string.
            NFTA_HASH_SET_NAME = 8;
            /// Payload: u32, big-endian.
            NFTA_HASH_SET_ID = 9;
        }

        /// Attributes of the expression `meta`.
        "enum nft_meta_attributes": u16 {
            /// Not used.
            NFTA_META_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_META_DREG = 1;
            /// Payload: u32, big-endian: `NFT_META_*`.
            NFTA_META_KEY = 2;
            /// Payload: u32, big-endian: register.
            NFTA_META_SREG = 3;
        }

        /// Attributes of the expression `rt`.
        "enum nft_rt_attributes": u16 {
            /// Not used.
            NFTA_RT_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_RT_DREG = 1;
            /// Payload: u32, big-endian: `NFT_RT_*`.
            NFTA_RT_KEY = 2;
        }

        /// Attributes of the expression `socket`.
        "enum nft_socket_attributes": u16 {
            /// Not used.
            NFTA_SOCKET_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_SOCKET_*`.
            NFTA_SOCKET_KEY = 1;
            /// Payload: u32, big-endian: register.
            NFTA_SOCKET_DREG = 2;
            /// Payload: u32, big-endian.
            NFTA_SOCKET_LEVEL = 3;
        }

        /// Keys of the expression `socket`: what it reads of the socket.
        "enum nft_socket_keys": u32 {
            NFT_SOCKET_TRANSPARENT = 0;
            NFT_SOCKET_MARK = 1;
            NFT_SOCKET_WILDCARD = 2;
            NFT_SOCKET_CGROUPV2 = 3;
        }

        /// Keys of the expression `ct`: what it reads or sets of the connection.
        "enum nft_ct_keys": u32 {
            /// State bits (u32, host byte order).
            NFT_CT_STATE = 0;
            /// `IP_CT_DIR_*` (u8).
            NFT_CT_DIRECTION = 1;
            /// `IPS_*` (u32, host byte order).
            NFT_CT_STATUS = 2;
            /// Mark (u32, host byte order).
            NFT_CT_MARK = 3;
            NFT_CT_SECMARK = 4;
            /// Time left (u32, milliseconds).
            NFT_CT_EXPIRATION = 5;
            NFT_CT_HELPER = 6;
            NFT_CT_L3PROTOCOL = 7;
            /// Source address; [`NFT_CT_SRC_IP`] and [`NFT_CT_SRC_IP6`] are better, their length is fixed.
            NFT_CT_SRC = 8;
            /// Destination address; [`NFT_CT_DST_IP`] and [`NFT_CT_DST_IP6`] are better, their length is fixed.
            NFT_CT_DST = 9;
            NFT_CT_PROTOCOL = 10;
            NFT_CT_PROTO_SRC = 11;
            NFT_CT_PROTO_DST = 12;
            /// Labels (16 bytes).
            NFT_CT_LABELS = 13;
            /// Packets (u64, host byte order).
            NFT_CT_PKTS = 14;
            /// Bytes (u64, host byte order).
            NFT_CT_BYTES = 15;
            /// Bytes for each packet (u64, host byte order).
            NFT_CT_AVGPKT = 16;
            /// Zone (u16, host byte order).
            NFT_CT_ZONE = 17;
            /// Events to send (u32, `1 << IPCT_*`).
            NFT_CT_EVENTMASK = 18;
            NFT_CT_SRC_IP = 19;
            NFT_CT_DST_IP = 20;
            NFT_CT_SRC_IP6 = 21;
            NFT_CT_DST_IP6 = 22;
            NFT_CT_ID = 23;
        }

        /// Attributes of the expression `ct`.
        "enum nft_ct_attributes": u16 {
            /// Not used.
            NFTA_CT_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_CT_DREG = 1;
            /// Payload: u32, big-endian: `NFT_CT_*`.
            NFTA_CT_KEY = 2;
            /// Payload: u8: `IP_CT_DIR_*`.
            NFTA_CT_DIRECTION = 3;
            /// Payload: u32, big-endian: register.
            NFTA_CT_SREG = 4;
        }

        /// Attributes of the expression `flow_offload`, which hands a connection to a flow table.
        "enum nft_offload_attributes": u16 {
            /// Not used.
            NFTA_FLOW_UNSPEC = 0;
            /// Payload: string.
            NFTA_FLOW_TABLE_NAME = 1;
        }

        /// What the expression and object `limit` counts.
        "enum nft_limit_type": u32 {
            /// Packets.
            NFT_LIMIT_PKTS = 0;
            /// Bytes.
            NFT_LIMIT_PKT_BYTES = 1;
        }

        /// Flags of the expression and object `limit`.
        "enum nft_limit_flags": u32 {
            NFT_LIMIT_F_INV = 0x1;
        }

        /// Attributes of the expression and object `limit`.
        "enum nft_limit_attributes": u16 {
            /// Not used.
            NFTA_LIMIT_UNSPEC = 0;
            /// Payload: u64, big-endian.
            NFTA_LIMIT_RATE = 1;
            /// Payload: u64, big-endian, seconds.
            NFTA_LIMIT_UNIT = 2;
            /// Payload: u32, big-endian.
            NFTA_LIMIT_BURST = 3;
            /// Payload: u32, big-endian: `NFT_LIMIT_*`.
            NFTA_LIMIT_TYPE = 4;
            /// Payload: u32, big-endian: [`NFT_LIMIT_F_INV`].
            NFTA_LIMIT_FLAGS = 5;
            /// Padding before a 64-bit payload.
            NFTA_LIMIT_PAD = 6;
        }

        /// Flags of the expression and object `connlimit`.
        "enum nft_connlimit_flags": u32 {
            NFT_CONNLIMIT_F_INV = 0x1;
        }

        /// Attributes of the expression and object `connlimit`.
        "enum nft_connlimit_attributes": u16 {
            /// Not used.
            NFTA_CONNLIMIT_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_CONNLIMIT_COUNT = 1;
            /// Payload: u32, big-endian: [`NFT_CONNLIMIT_F_INV`].
            NFTA_CONNLIMIT_FLAGS = 2;
        }

        /// Attributes of the expression and object `counter`, and of a base chain's counters.
        "enum nft_counter_attributes": u16 {
            /// Not used.
            NFTA_COUNTER_UNSPEC = 0;
            /// Payload: u64, big-endian.
            NFTA_COUNTER_BYTES = 1;
            /// Payload: u64, big-endian.
            NFTA_COUNTER_PACKETS = 2;
            /// Padding before a 64-bit payload.
            NFTA_COUNTER_PAD = 3;
        }

        /// Attributes of the expression `last`.
        "enum nft_last_attributes": u16 {
            /// Not used.
            NFTA_LAST_UNSPEC = 0;
            /// Payload: u32, big-endian, boolean.
            NFTA_LAST_SET = 1;
            /// Payload: u64, big-endian, milliseconds.
            NFTA_LAST_MSECS = 2;
            /// Padding before a 64-bit payload.
            NFTA_LAST_PAD = 3;
        }

        /// Attributes of the expression `log`.
        "enum nft_log_attributes": u16 {
            /// Not used.
            NFTA_LOG_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_LOG_GROUP = 1;
            /// Payload: string.
            NFTA_LOG_PREFIX = 2;
            /// Payload: u32, big-endian, bytes.
            NFTA_LOG_SNAPLEN = 3;
            /// Payload: u32, big-endian.
            NFTA_LOG_QTHRESHOLD = 4;
            /// Payload: u32, big-endian: `NFT_LOGLEVEL_*`.
            NFTA_LOG_LEVEL = 5;
            /// Payload: u32, big-endian: `NF_LOG_*`.
            NFTA_LOG_FLAGS = 6;
        }

        /// Levels of the expression `log`, as in syslog.
        "enum nft_log_level": u32 {
            NFT_LOGLEVEL_EMERG = 0;
            NFT_LOGLEVEL_ALERT = 1;
            NFT_LOGLEVEL_CRIT = 2;
            NFT_LOGLEVEL_ERR = 3;
            NFT_LOGLEVEL_WARNING = 4;
            NFT_LOGLEVEL_NOTICE = 5;
            NFT_LOGLEVEL_INFO = 6;
            NFT_LOGLEVEL_DEBUG = 7;
            NFT_LOGLEVEL_AUDIT = 8;
        }

        /// Attributes of the expression `queue`.
        "enum nft_queue_attributes": u16 {
            /// Not used.
            NFTA_QUEUE_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_QUEUE_NUM = 1;
            /// Payload: u16, big-endian.
            NFTA_QUEUE_TOTAL = 2;
            /// Payload: u16, big-endian: `NFT_QUEUE_FLAG_*`.
            NFTA_QUEUE_FLAGS = 3;
            /// Payload: u32, big-endian: register.
            NFTA_QUEUE_SREG_QNUM = 4;
        }

        /// Flags of the expression `queue`.
        "#define NFT_QUEUE_FLAG_*": u16 {
            /// Accept when no program listens.
            NFT_QUEUE_FLAG_BYPASS = 0x1;
            /// Choose the queue by processor.
            NFT_QUEUE_FLAG_CPU_FANOUT = 0x2;
            /// All flags.
            NFT_QUEUE_FLAG_MASK = 0x3;
        }

        /// Flags of the expression and object `quota`.
        "enum nft_quota_flags": u32 {
            /// Match once the quota is used up.
            NFT_QUOTA_F_INV = 0x1;
            /// The quota is used up; set by the kernel.
            NFT_QUOTA_F_DEPLETED = 0x2;
        }

        /// Attributes of the expression and object `quota`.
        "enum nft_quota_attributes": u16 {
            /// Not used.
            NFTA_QUOTA_UNSPEC = 0;
            /// Payload: u64, big-endian.
            NFTA_QUOTA_BYTES = 1;
            /// Payload: u32, big-endian: `NFT_QUOTA_F_*`.
            NFTA_QUOTA_FLAGS = 2;
            /// Padding before a 64-bit payload.
            NFTA_QUOTA_PAD = 3;
            /// Payload: u64, big-endian.
            NFTA_QUOTA_CONSUMED = 4;
        }

        /// Attributes of the object `secmark`.
        "enum nft_secmark_attributes": u16 {
            /// Not used.
            NFTA_SECMARK_UNSPEC = 0;
            /// Payload: string.
            NFTA_SECMARK_CTX = 1;
        }

        /// Room for a security context, in bytes.
        "#define NFT_SECMARK_CTX_MAXLEN": usize {
            /// Longest security context.
            NFT_SECMARK_CTX_MAXLEN = 4096;
        }

        /// Types of the expression `reject`.
        "enum nft_reject_types": u32 {
            /// An ICMP error with a code of the packet's own family.
            NFT_REJECT_ICMP_UNREACH = 0;
            /// A TCP reset.
            NFT_REJECT_TCP_RST = 1;
            /// An ICMP error with a code of either family, `NFT_REJECT_ICMPX_*`.
            NFT_REJECT_ICMPX_UNREACH = 2;
        }

        /// Codes of `NFT_REJECT_ICMPX_UNREACH`, which the kernel turns into those of the packet's family.
        "enum nft_reject_inet_code": u8 {
            NFT_REJECT_ICMPX_NO_ROUTE = 0;
            NFT_REJECT_ICMPX_PORT_UNREACH = 1;
            NFT_REJECT_ICMPX_HOST_UNREACH = 2;
            NFT_REJECT_ICMPX_ADMIN_PROHIBITED = 3;
        }

        /// Attributes of the expression `reject`.
        "enum nft_reject_attributes": u16 {
            /// Not used.
            NFTA_REJECT_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_REJECT_*`.
            NFTA_REJECT_TYPE = 1;
            /// Payload: u8.
            NFTA_REJECT_ICMP_CODE = 2;
        }

        /// Types of the expression `nat`.
        "enum nft_nat_types": u32 {
            /// Translate the source.
            NFT_NAT_SNAT = 0;
            /// Translate the destination.
            NFT_NAT_DNAT = 1;
        }

        /// Attributes of the expression `nat`.
        "enum nft_nat_attributes": u16 {
            /// Not used.
            NFTA_NAT_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_NAT_*`.
            NFTA_NAT_TYPE = 1;
            /// Payload: u32, big-endian: `NFPROTO_*`.
            NFTA_NAT_FAMILY = 2;
            /// Payload: u32, big-endian: register.
            NFTA_NAT_REG_ADDR_MIN = 3;
            /// Payload: u32, big-endian: register.
            NFTA_NAT_REG_ADDR_MAX = 4;
            /// Payload: u32, big-endian: register.
            NFTA_NAT_REG_PROTO_MIN = 5;
            /// Payload: u32, big-endian: register.
            NFTA_NAT_REG_PROTO_MAX = 6;
            /// Payload: u32, big-endian: `NF_NAT_RANGE_*`.
            NFTA_NAT_FLAGS = 7;
        }

        /// Attributes of the expression `tproxy`.
        "enum nft_tproxy_attributes": u16 {
            /// Not used.
            NFTA_TPROXY_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFPROTO_*`.
            NFTA_TPROXY_FAMILY = 1;
            /// Payload: u32, big-endian: register.
            NFTA_TPROXY_REG_ADDR = 2;
            /// Payload: u32, big-endian: register.
            NFTA_TPROXY_REG_PORT = 3;
        }

        /// Attributes of the expression `masq`.
        "enum nft_masq_attributes": u16 {
            /// Not used.
            NFTA_MASQ_UNSPEC = 0;
            /// Payload: u32, big-endian: `NF_NAT_RANGE_*`.
            NFTA_MASQ_FLAGS = 1;
            /// Payload: u32, big-endian: register.
            NFTA_MASQ_REG_PROTO_MIN = 2;
            /// Payload: u32, big-endian: register.
            NFTA_MASQ_REG_PROTO_MAX = 3;
        }

        /// Attributes of the expression `redir`.
        "enum nft_redir_attributes": u16 {
            /// Not used.
            NFTA_REDIR_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_REDIR_REG_PROTO_MIN = 1;
            /// Payload: u32, big-endian: register.
            NFTA_REDIR_REG_PROTO_MAX = 2;
            /// Payload: u32, big-endian: `NF_NAT_RANGE_*`.
            NFTA_REDIR_FLAGS = 3;
        }

        /// Attributes of the expression `dup`.
        "enum nft_dup_attributes": u16 {
            /// Not used.
            NFTA_DUP_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_DUP_SREG_ADDR = 1;
            /// Payload: u32, big-endian: register.
            NFTA_DUP_SREG_DEV = 2;
        }

        /// Attributes of the expression `fwd`.
        "enum nft_fwd_attributes": u16 {
            /// Not used.
            NFTA_FWD_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_FWD_SREG_DEV = 1;
            /// Payload: u32, big-endian: register.
            NFTA_FWD_SREG_ADDR = 2;
            /// Payload: u32, big-endian: `NFPROTO_*`.
            NFTA_FWD_NFPROTO = 3;
        }

        /// Attributes of the expression `objref`, which uses a named object.
        "enum nft_objref_attributes": u16 {
            /// Not used.
            NFTA_OBJREF_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_OBJECT_*`.
            NFTA_OBJREF_IMM_TYPE = 1;
            /// Payload: string.
            NFTA_OBJREF_IMM_NAME = 2;
            /// Payload: u32, big-endian: register.
            NFTA_OBJREF_SET_SREG = 3;
            /// Payload: string.
            NFTA_OBJREF_SET_NAME = 4;
            /// Payload: u32, big-endian.
            NFTA_OBJREF_SET_ID = 5;
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

        /// Attributes of the expression `fib`, which asks the routing table.
        "enum nft_fib_attributes": u16 {
            /// Not used.
            NFTA_FIB_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_FIB_DREG = 1;
            /// Payload: u32, big-endian: `NFT_FIB_RESULT_*`.
            NFTA_FIB_RESULT = 2;
            /// Payload: u32, big-endian: `NFTA_FIB_F_*`.
            NFTA_FIB_FLAGS = 3;
        }

        /// What the expression `fib` returns.
        "enum nft_fib_result": u32 {
            NFT_FIB_RESULT_UNSPEC = 0;
            /// Index of the outgoing interface.
            NFT_FIB_RESULT_OIF = 1;
            /// Name of the outgoing interface.
            NFT_FIB_RESULT_OIFNAME = 2;
            /// Type of the address, `RTN_*`.
            NFT_FIB_RESULT_ADDRTYPE = 3;
        }

        /// Flags of the expression `fib`; not attributes, despite their names.
        "enum nft_fib_flags": u32 {
            /// Look up the source address.
            NFTA_FIB_F_SADDR = 0x1;
            /// Look up the destination address.
            NFTA_FIB_F_DADDR = 0x2;
            /// Use the packet's mark.
            NFTA_FIB_F_MARK = 0x4;
            /// Only routes of the incoming interface.
            NFTA_FIB_F_IIF = 0x8;
            /// Only routes of the outgoing interface.
            NFTA_FIB_F_OIF = 0x10;
            /// Only whether there is one.
            NFTA_FIB_F_PRESENT = 0x20;
        }

        /// Attributes of the object `ct helper`.
        "enum nft_ct_helper_attributes": u16 {
            /// Not used.
            NFTA_CT_HELPER_UNSPEC = 0;
            /// Payload: string.
            NFTA_CT_HELPER_NAME = 1;
            /// Payload: u16, big-endian.
            NFTA_CT_HELPER_L3PROTO = 2;
            /// Payload: u8.
            NFTA_CT_HELPER_L4PROTO = 3;
        }

        /// Attributes of the object `ct timeout`.
        "enum nft_ct_timeout_timeout_attributes": u16 {
            /// Not used.
            NFTA_CT_TIMEOUT_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_CT_TIMEOUT_L3PROTO = 1;
            /// Payload: u8.
            NFTA_CT_TIMEOUT_L4PROTO = 2;
            /// Payload: nested.
            NFTA_CT_TIMEOUT_DATA = 3;
        }

        /// Attributes of the object `ct expectation`.
        "enum nft_ct_expectation_attributes": u16 {
            /// Not used.
            NFTA_CT_EXPECT_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_CT_EXPECT_L3PROTO = 1;
            /// Payload: u8.
            NFTA_CT_EXPECT_L4PROTO = 2;
            /// Payload: u16, big-endian.
            NFTA_CT_EXPECT_DPORT = 3;
            /// Payload: u32, host byte order.
            NFTA_CT_EXPECT_TIMEOUT = 4;
            /// Payload: u8.
            NFTA_CT_EXPECT_SIZE = 5;
        }

        /// Types of named objects.
        "#define NFT_OBJECT_*": u32 {
            NFT_OBJECT_UNSPEC = 0;
            /// A counter.
            NFT_OBJECT_COUNTER = 1;
            /// A quota.
            NFT_OBJECT_QUOTA = 2;
            /// A helper of connection tracking.
            NFT_OBJECT_CT_HELPER = 3;
            /// A limit.
            NFT_OBJECT_LIMIT = 4;
            /// A limit of connections.
            NFT_OBJECT_CONNLIMIT = 5;
            /// A tunnel's metadata.
            NFT_OBJECT_TUNNEL = 6;
            /// Timeouts of connections.
            NFT_OBJECT_CT_TIMEOUT = 7;
            /// A security mark.
            NFT_OBJECT_SECMARK = 8;
            /// An expectation.
            NFT_OBJECT_CT_EXPECT = 9;
            /// A SYN proxy.
            NFT_OBJECT_SYNPROXY = 10;
        }

        /// Attributes of a named object.
        "enum nft_object_attributes": u16 {
            /// Not used.
            NFTA_OBJ_UNSPEC = 0;
            /// Payload: string.
            NFTA_OBJ_TABLE = 1;
            /// Payload: string.
            NFTA_OBJ_NAME = 2;
            /// Payload: u32, big-endian: `NFT_OBJECT_*`.
            NFTA_OBJ_TYPE = 3;
            /// Payload: nested: attributes of the object's type.
            NFTA_OBJ_DATA = 4;
            /// Payload: u32, big-endian.
            NFTA_OBJ_USE = 5;
            /// Payload: u64, big-endian.
            NFTA_OBJ_HANDLE = 6;
            /// Padding before a 64-bit payload.
            NFTA_OBJ_PAD = 7;
            /// Payload: bytes.
            NFTA_OBJ_USERDATA = 8;
        }

        /// Flags of a flow table.
        "enum nft_flowtable_flags": u32 {
            NFT_FLOWTABLE_HW_OFFLOAD = 0x1;
            NFT_FLOWTABLE_COUNTER = 0x2;
            /// All flags.
            NFT_FLOWTABLE_MASK = 0x3;
        }

        /// Attributes of a flow table.
        "enum nft_flowtable_attributes": u16 {
            /// Not used.
            NFTA_FLOWTABLE_UNSPEC = 0;
            /// Payload: string.
            NFTA_FLOWTABLE_TABLE = 1;
            /// Payload: string.
            NFTA_FLOWTABLE_NAME = 2;
            /// Payload: nested: `NFTA_FLOWTABLE_HOOK_*`.
            NFTA_FLOWTABLE_HOOK = 3;
            /// Payload: u32, big-endian.
            NFTA_FLOWTABLE_USE = 4;
            /// Payload: u64, big-endian.
            NFTA_FLOWTABLE_HANDLE = 5;
            /// Padding before a 64-bit payload.
            NFTA_FLOWTABLE_PAD = 6;
            /// Payload: u32, big-endian: `NFT_FLOWTABLE_*`.
            NFTA_FLOWTABLE_FLAGS = 7;
        }

        /// Attributes of a flow table's hook.
        "enum nft_flowtable_hook_attributes": u16 {
            /// Not used.
            NFTA_FLOWTABLE_HOOK_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_FLOWTABLE_HOOK_NUM = 1;
            /// Payload: i32, big-endian.
            NFTA_FLOWTABLE_HOOK_PRIORITY = 2;
            /// Payload: nested: `NFTA_DEVICE_*`.
            NFTA_FLOWTABLE_HOOK_DEVS = 3;
        }

        /// Attributes of the expression `osf`.
        "enum nft_osf_attributes": u16 {
            /// Not used.
            NFTA_OSF_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_OSF_DREG = 1;
            /// Payload: u8.
            NFTA_OSF_TTL = 2;
            /// Payload: u32, big-endian: `NFT_OSF_F_*`.
            NFTA_OSF_FLAGS = 3;
        }

        /// Flags of the expression `osf`.
        "enum nft_osf_flags": u32 {
            NFT_OSF_F_VERSION = 0x1;
        }

        /// Attributes of the expression and object `synproxy`.
        "enum nft_synproxy_attributes": u16 {
            /// Not used.
            NFTA_SYNPROXY_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_SYNPROXY_MSS = 1;
            /// Payload: u8.
            NFTA_SYNPROXY_WSCALE = 2;
            /// Payload: u32, big-endian.
            NFTA_SYNPROXY_FLAGS = 3;
        }

        /// Attributes of a list of devices.
        "enum nft_devices_attributes": u16 {
            /// Not used.
            NFTA_DEVICE_UNSPEC = 0;
            /// Payload: string.
            NFTA_DEVICE_NAME = 1;
            /// Payload: string: start of the names of the devices.
            NFTA_DEVICE_PREFIX = 2, since (6, 17);
        }

        /// Attributes of the expression `xfrm`.
        "enum nft_xfrm_attributes": u16 {
            /// Not used.
            NFTA_XFRM_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_XFRM_DREG = 1;
            /// Payload: u32, big-endian: `NFT_XFRM_KEY_*`.
            NFTA_XFRM_KEY = 2;
            /// Payload: u8.
            NFTA_XFRM_DIR = 3;
            /// Payload: u32, big-endian.
            NFTA_XFRM_SPNUM = 4;
        }

        /// Keys of the expression `xfrm`: what it reads of the IPsec state.
        "enum nft_xfrm_keys": u32 {
            NFT_XFRM_KEY_UNSPEC = 0;
            NFT_XFRM_KEY_DADDR_IP4 = 1;
            NFT_XFRM_KEY_DADDR_IP6 = 2;
            NFT_XFRM_KEY_SADDR_IP4 = 3;
            NFT_XFRM_KEY_SADDR_IP6 = 4;
            NFT_XFRM_KEY_REQID = 5;
            NFT_XFRM_KEY_SPI = 6;
        }

        /// Attributes of a trace event.
        "enum nft_trace_attributes": u16 {
            /// Not used.
            NFTA_TRACE_UNSPEC = 0;
            /// Payload: string.
            NFTA_TRACE_TABLE = 1;
            /// Payload: string.
            NFTA_TRACE_CHAIN = 2;
            /// Payload: u64, big-endian.
            NFTA_TRACE_RULE_HANDLE = 3;
            /// Payload: u32, big-endian: `NFT_TRACETYPE_*`.
            NFTA_TRACE_TYPE = 4;
            /// Payload: nested: `NFTA_VERDICT_*`.
            NFTA_TRACE_VERDICT = 5;
            /// Payload: u32, without a byte order: compare only.
            NFTA_TRACE_ID = 6;
            /// Payload: bytes.
            NFTA_TRACE_LL_HEADER = 7;
            /// Payload: bytes.
            NFTA_TRACE_NETWORK_HEADER = 8;
            /// Payload: bytes.
            NFTA_TRACE_TRANSPORT_HEADER = 9;
            /// Payload: u32, big-endian.
            NFTA_TRACE_IIF = 10;
            /// Payload: u16, big-endian.
            NFTA_TRACE_IIFTYPE = 11;
            /// Payload: u32, big-endian.
            NFTA_TRACE_OIF = 12;
            /// Payload: u16, big-endian.
            NFTA_TRACE_OIFTYPE = 13;
            /// Payload: u32, big-endian.
            NFTA_TRACE_MARK = 14;
            /// Payload: u32, big-endian.
            NFTA_TRACE_NFPROTO = 15;
            /// Payload: u32, big-endian.
            NFTA_TRACE_POLICY = 16;
            /// Padding before a 64-bit payload.
            NFTA_TRACE_PAD = 17;
            /// Payload: u32, without a byte order: compare only, as with `CTA_ID`.
            NFTA_TRACE_CT_ID = 18, since (6, 16);
            /// Payload: u8: `IP_CT_DIR_*`.
            NFTA_TRACE_CT_DIRECTION = 19, since (6, 16);
            /// Payload: u32, big-endian: `IPS_*`.
            NFTA_TRACE_CT_STATUS = 20, since (6, 16);
            /// Payload: u32, big-endian: bits of `ct state`.
            NFTA_TRACE_CT_STATE = 21, since (6, 16);
        }

        /// What a trace event tells of.
        "enum nft_trace_types": u32 {
            NFT_TRACETYPE_UNSPEC = 0;
            /// A base chain's policy.
            NFT_TRACETYPE_POLICY = 1;
            /// The end of a chain.
            NFT_TRACETYPE_RETURN = 2;
            /// A rule.
            NFT_TRACETYPE_RULE = 3;
        }

        /// Attributes of the expression `numgen`.
        "enum nft_ng_attributes": u16 {
            /// Not used.
            NFTA_NG_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_NG_DREG = 1;
            /// Payload: u32, big-endian.
            NFTA_NG_MODULUS = 2;
            /// Payload: u32, big-endian: `NFT_NG_*`.
            NFTA_NG_TYPE = 3;
            /// Payload: u32, big-endian.
            NFTA_NG_OFFSET = 4;
            /// Payload: string.
            NFTA_NG_SET_NAME = 5;
            /// Payload: u32, big-endian.
            NFTA_NG_SET_ID = 6;
        }

        /// Types of the expression `numgen`.
        "enum nft_ng_types": u32 {
            /// One after the other.
            NFT_NG_INCREMENTAL = 0;
            /// At random.
            NFT_NG_RANDOM = 1;
        }

        /// Attributes of the addresses of an IPv4 tunnel.
        "enum nft_tunnel_key_ip_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_IP_UNSPEC = 0;
            /// Payload: IPv4 address.
            NFTA_TUNNEL_KEY_IP_SRC = 1;
            /// Payload: IPv4 address.
            NFTA_TUNNEL_KEY_IP_DST = 2;
        }

        /// Attributes of the addresses of an IPv6 tunnel.
        "enum nft_tunnel_ip6_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_IP6_UNSPEC = 0;
            /// Payload: IPv6 address.
            NFTA_TUNNEL_KEY_IP6_SRC = 1;
            /// Payload: IPv6 address.
            NFTA_TUNNEL_KEY_IP6_DST = 2;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_IP6_FLOWLABEL = 3;
        }

        /// Attributes of the options of a tunnel.
        "enum nft_tunnel_opts_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_OPTS_UNSPEC = 0;
            /// Payload: nested: `NFTA_TUNNEL_KEY_VXLAN_*`.
            NFTA_TUNNEL_KEY_OPTS_VXLAN = 1;
            /// Payload: nested: `NFTA_TUNNEL_KEY_ERSPAN_*`.
            NFTA_TUNNEL_KEY_OPTS_ERSPAN = 2;
            /// Payload: nested: `NFTA_TUNNEL_KEY_GENEVE_*`.
            NFTA_TUNNEL_KEY_OPTS_GENEVE = 3;
        }

        /// Attributes of the options of a VXLAN tunnel.
        "enum nft_tunnel_opts_vxlan_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_VXLAN_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_VXLAN_GBP = 1;
        }

        /// Attributes of the options of an ERSPAN tunnel.
        "enum nft_tunnel_opts_erspan_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_ERSPAN_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_ERSPAN_VERSION = 1;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_ERSPAN_V1_INDEX = 2;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_ERSPAN_V2_HWID = 3;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_ERSPAN_V2_DIR = 4;
        }

        /// Attributes of one option of a Geneve tunnel.
        "enum nft_tunnel_opts_geneve_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_GENEVE_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_TUNNEL_KEY_GENEVE_CLASS = 1;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_GENEVE_TYPE = 2;
            /// Payload: bytes.
            NFTA_TUNNEL_KEY_GENEVE_DATA = 3;
        }

        /// Flags of a tunnel.
        "enum nft_tunnel_flags": u32 {
            NFT_TUNNEL_F_ZERO_CSUM_TX = 0x1;
            NFT_TUNNEL_F_DONT_FRAGMENT = 0x2;
            NFT_TUNNEL_F_SEQ_NUMBER = 0x4;
            /// All flags.
            NFT_TUNNEL_F_MASK = 0x7;
        }

        /// Attributes of the object `tunnel`.
        "enum nft_tunnel_key_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_ID = 1;
            /// Payload: nested: `NFTA_TUNNEL_KEY_IP_*`.
            NFTA_TUNNEL_KEY_IP = 2;
            /// Payload: nested: `NFTA_TUNNEL_KEY_IP6_*`.
            NFTA_TUNNEL_KEY_IP6 = 3;
            /// Payload: u32, big-endian: `NFT_TUNNEL_F_*`.
            NFTA_TUNNEL_KEY_FLAGS = 4;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_TOS = 5;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_TTL = 6;
            /// Payload: u16, big-endian.
            NFTA_TUNNEL_KEY_SPORT = 7;
            /// Payload: u16, big-endian.
            NFTA_TUNNEL_KEY_DPORT = 8;
            /// Payload: nested: `NFTA_TUNNEL_KEY_OPTS_*`.
            NFTA_TUNNEL_KEY_OPTS = 9;
        }

        /// Keys of the expression `tunnel`.
        "enum nft_tunnel_keys": u32 {
            NFT_TUNNEL_PATH = 0;
            NFT_TUNNEL_ID = 1;
        }

        /// Directions of the expression `tunnel`.
        "enum nft_tunnel_mode": u32 {
            NFT_TUNNEL_MODE_NONE = 0;
            NFT_TUNNEL_MODE_RX = 1;
            NFT_TUNNEL_MODE_TX = 2;
        }

        /// Attributes of the expression `tunnel`.
        "enum nft_tunnel_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_TUNNEL_*`.
            NFTA_TUNNEL_KEY = 1;
            /// Payload: u32, big-endian: register.
            NFTA_TUNNEL_DREG = 2;
            /// Payload: u32, big-endian: `NFT_TUNNEL_MODE_*`.
            NFTA_TUNNEL_MODE = 3;
        }
    }
}
