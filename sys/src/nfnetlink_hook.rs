//! `linux/netfilter/nfnetlink_hook.h`: functions registered at netfilter hooks (`NFNL_SUBSYS_HOOK`).

use crate::abi::abi;

abi! {
    header "linux/netfilter/nfnetlink_hook.h";

    constants {
        /// Messages of the subsystem: the lower byte of a message's type.
        "enum nfnl_hook_msg_types": u8 {
            /// Requests the functions of a hook, with `NLM_F_DUMP` only; each function is a message of this type.
            NFNL_MSG_HOOK_GET = 0;
        }

        /// Attributes of [`NFNL_MSG_HOOK_GET`].
        "enum nfnl_hook_attributes": u16 {
            /// Not used.
            NFNLA_HOOK_UNSPEC = 0;
            /// Payload: u32, big-endian: number of the hook in its family.
            NFNLA_HOOK_HOOKNUM = 1;
            /// Payload: u32, big-endian, of an `int`: lower ones come first.
            NFNLA_HOOK_PRIORITY = 2;
            /// Payload: string: name of the device, in requests of family netdev.
            NFNLA_HOOK_DEV = 3;
            /// Payload: string with its NUL: name of the function.
            NFNLA_HOOK_FUNCTION_NAME = 4;
            /// Payload: string with its NUL: name of the module that has it; not sent if it is built in.
            NFNLA_HOOK_MODULE_NAME = 5;
            /// Payload: nested: `NFNLA_HOOK_INFO_*`.
            NFNLA_HOOK_CHAIN_INFO = 6;
        }

        /// Attributes of [`NFNLA_HOOK_CHAIN_INFO`].
        "enum nfnl_hook_chain_info_attributes": u16 {
            /// Not used.
            NFNLA_HOOK_INFO_UNSPEC = 0;
            /// Payload: nested; the attributes depend on the type.
            NFNLA_HOOK_INFO_DESC = 1;
            /// Payload: u32, big-endian: `NFNL_HOOK_TYPE_*`.
            NFNLA_HOOK_INFO_TYPE = 2;
        }

        /// Attributes of [`NFNLA_HOOK_INFO_DESC`] for a chain or a flowtable.
        "enum nfnl_hook_chain_desc_attributes": u16 {
            /// Not used.
            NFNLA_CHAIN_UNSPEC = 0;
            /// Payload: string with its NUL: the table.
            NFNLA_CHAIN_TABLE = 1;
            /// Payload: u8: `NFPROTO_*`, the family of the table.
            NFNLA_CHAIN_FAMILY = 2;
            /// Payload: string with its NUL: the chain, or the flowtable.
            NFNLA_CHAIN_NAME = 3;
        }

        /// Owner of a function.
        "enum nfnl_hook_chaintype": u32 {
            /// A base chain of nf_tables.
            NFNL_HOOK_TYPE_NFTABLES = 1;
            /// A BPF program.
            NFNL_HOOK_TYPE_BPF = 2, since (6, 4);
            /// A flowtable of nf_tables.
            NFNL_HOOK_TYPE_NFT_FLOWTABLE = 3, since (6, 17);
        }

        /// Attributes of [`NFNLA_HOOK_INFO_DESC`] for a BPF program.
        "enum nfnl_hook_bpf_attributes": u16 {
            /// Not used.
            NFNLA_HOOK_BPF_UNSPEC = 0, since (6, 4);
            /// Payload: u32, big-endian: the program's number.
            NFNLA_HOOK_BPF_ID = 1, since (6, 4);
        }
    }
}
