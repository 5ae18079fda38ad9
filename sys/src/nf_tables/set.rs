//! Sets, their elements, and the expressions `lookup` and `dynset`, which use them.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
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

        /// Optimization policies for a set.
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
            /// Payload: nested: [`NFTA_LIST_ELEM`](super::NFTA_LIST_ELEM).
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
            /// The catch-all element, for every key that is not in the set.
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
            /// Payload: nested: [`NFTA_LIST_ELEM`](super::NFTA_LIST_ELEM).
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
            /// Payload: nested: [`NFTA_LIST_ELEM`](super::NFTA_LIST_ELEM).
            NFTA_DYNSET_EXPRESSIONS = 10;
        }
    }
}
