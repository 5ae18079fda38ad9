//! `linux/netlink.h`: messages, attributes, acknowledgements and socket options of netlink.

use crate::abi::abi;

abi! {
    header "linux/netlink.h";

    constants {
        /// Protocol numbers of netlink: the third argument of `socket(AF_NETLINK, …)`.
        "#define NETLINK_* (protocols)": i32 {
            /// Links, addresses, routes.
            NETLINK_ROUTE = 0;
            NETLINK_USERSOCK = 2;
            NETLINK_SOCK_DIAG = 4;
            NETLINK_XFRM = 6;
            NETLINK_AUDIT = 9;
            /// Everything under nfnetlink: nf_tables, connection tracking, queues, logs.
            NETLINK_NETFILTER = 12;
            NETLINK_KOBJECT_UEVENT = 15;
            NETLINK_GENERIC = 16;
        }

        /// Flags of any message ([`nlmsghdr::nlmsg_flags`]).
        "#define NLM_F_*": u16 {
            /// A request to the kernel.
            NLM_F_REQUEST = 0x01;
            /// One of several messages; [`NLMSG_DONE`] ends them.
            NLM_F_MULTI = 0x02;
            /// Requests an acknowledgement.
            NLM_F_ACK = 0x04;
            /// Requests a copy of the event that the request causes.
            NLM_F_ECHO = 0x08;
            /// The listing was interrupted by a change and is not consistent.
            NLM_F_DUMP_INTR = 0x10;
            /// The listing was filtered as requested.
            NLM_F_DUMP_FILTERED = 0x20;
        }

        /// Flags of a request that reads (`GET`).
        "#define NLM_F_* (get)": u16 {
            /// The whole table instead of one entry.
            NLM_F_ROOT = 0x100;
            /// All entries that match.
            NLM_F_MATCH = 0x200;
            /// One consistent view; not in use.
            NLM_F_ATOMIC = 0x400;
            /// List everything.
            NLM_F_DUMP = 0x300;
        }

        /// Flags of a request that creates (`NEW`).
        "#define NLM_F_* (new)": u16 {
            /// Replace an existing object.
            NLM_F_REPLACE = 0x100;
            /// Fail when it exists.
            NLM_F_EXCL = 0x200;
            /// Create it when it does not exist.
            NLM_F_CREATE = 0x400;
            /// Add at the end of the list.
            NLM_F_APPEND = 0x800;
        }

        /// Flags of a request that deletes (`DEL`).
        "#define NLM_F_* (delete)": u16 {
            /// Not recursively.
            NLM_F_NONREC = 0x100;
            /// Several objects at once.
            NLM_F_BULK = 0x200;
        }

        /// Flags of an acknowledgement ([`NLMSG_ERROR`]).
        "#define NLM_F_* (acknowledgement)": u16 {
            /// The request's payload was left out.
            NLM_F_CAPPED = 0x100;
            /// Attributes (`NLMSGERR_ATTR_*`) follow.
            NLM_F_ACK_TLVS = 0x200;
        }

        /// Lengths of messages, in bytes.
        "#define NLMSG_* (lengths)": usize {
            /// Alignment of messages.
            NLMSG_ALIGNTO = 4;
            /// Length of the header.
            NLMSG_HDRLEN = 16;
        }

        /// Message types of netlink; the types of the protocols start above them.
        "#define NLMSG_*": u16 {
            /// To be ignored.
            NLMSG_NOOP = 0x1;
            /// An error or, with error 0, an acknowledgement: [`nlmsgerr`].
            NLMSG_ERROR = 0x2;
            /// End of a listing.
            NLMSG_DONE = 0x3;
            /// Data was lost.
            NLMSG_OVERRUN = 0x4;
            /// The lowest type that a protocol may use.
            NLMSG_MIN_TYPE = 0x10;
        }

        /// Attributes of an extended acknowledgement, after [`nlmsgerr`].
        "enum nlmsgerr_attrs": u16 {
            NLMSGERR_ATTR_UNUSED = 0;
            /// Description of the error: a string.
            NLMSGERR_ATTR_MSG = 1;
            /// Offset of the attribute that caused the error from the start of the request, in bytes (u32, host byte
            /// order).
            NLMSGERR_ATTR_OFFS = 2;
            /// Bytes that a protocol returns on success.
            NLMSGERR_ATTR_COOKIE = 3;
            /// Policy that the attribute violates: nested (`NL_POLICY_TYPE_ATTR_*`).
            NLMSGERR_ATTR_POLICY = 4;
            /// Type of an attribute that is missing (u32, host byte order).
            NLMSGERR_ATTR_MISS_TYPE = 5;
            /// Offset of the nest in which it is missing, in bytes (u32, host byte order).
            NLMSGERR_ATTR_MISS_NEST = 6;
        }

        /// Socket options at level `SOL_NETLINK`.
        "#define NETLINK_* (socket options)": i32 {
            /// Join a multicast group (int).
            NETLINK_ADD_MEMBERSHIP = 1;
            /// Leave a multicast group (int).
            NETLINK_DROP_MEMBERSHIP = 2;
            /// Request [`nl_pktinfo`] with each message (int, boolean).
            NETLINK_PKTINFO = 3;
            /// Report failed multicasts to the sender (int, boolean).
            NETLINK_BROADCAST_ERROR = 4;
            /// Do not report lost messages with `ENOBUFS` (int, boolean).
            NETLINK_NO_ENOBUFS = 5;
            /// No longer in the kernel.
            NETLINK_RX_RING = 6;
            /// No longer in the kernel.
            NETLINK_TX_RING = 7;
            /// Receive the events of all network namespaces that have an id here (int, boolean).
            NETLINK_LISTEN_ALL_NSID = 8;
            /// The groups joined, as a bitmap of u32 words (`getsockopt`).
            NETLINK_LIST_MEMBERSHIPS = 9;
            /// Leave the request's payload out of error messages (int, boolean).
            NETLINK_CAP_ACK = 10;
            /// Request extended acknowledgements (int, boolean).
            NETLINK_EXT_ACK = 11;
            /// Check the headers and attributes of listing requests strictly (int, boolean).
            NETLINK_GET_STRICT_CHK = 12;
        }

        /// Flags in an attribute's type field ([`nlattr::nla_type`]) and the mask of the type itself.
        "#define NLA_*": u16 {
            /// The payload is attributes.
            NLA_F_NESTED = 0x8000;
            /// The payload is in network byte order.
            NLA_F_NET_BYTEORDER = 0x4000;
            /// The type without the flags.
            NLA_TYPE_MASK = 0x3fff, c "(__u16)(NLA_TYPE_MASK)";
        }

        /// Lengths of attributes, in bytes.
        "#define NLA_* (lengths)": usize {
            /// Alignment of attributes.
            NLA_ALIGNTO = 4;
            /// Length of the header.
            NLA_HDRLEN = 4;
        }

        /// Types of payload in the kernel's description of its attribute policy.
        "enum netlink_attribute_type": u32 {
            NL_ATTR_TYPE_INVALID = 0;
            NL_ATTR_TYPE_FLAG = 1;
            NL_ATTR_TYPE_U8 = 2;
            NL_ATTR_TYPE_U16 = 3;
            NL_ATTR_TYPE_U32 = 4;
            NL_ATTR_TYPE_U64 = 5;
            NL_ATTR_TYPE_S8 = 6;
            NL_ATTR_TYPE_S16 = 7;
            NL_ATTR_TYPE_S32 = 8;
            NL_ATTR_TYPE_S64 = 9;
            NL_ATTR_TYPE_BINARY = 10;
            NL_ATTR_TYPE_STRING = 11;
            NL_ATTR_TYPE_NUL_STRING = 12;
            NL_ATTR_TYPE_NESTED = 13;
            NL_ATTR_TYPE_NESTED_ARRAY = 14;
            NL_ATTR_TYPE_BITFIELD32 = 15;
            NL_ATTR_TYPE_SINT = 16, since (6, 7);
            NL_ATTR_TYPE_UINT = 17, since (6, 7);
        }

        /// Attributes in [`NLMSGERR_ATTR_POLICY`]: the values that the kernel accepts for an attribute.
        "enum netlink_policy_type_attr": u16 {
            NL_POLICY_TYPE_ATTR_UNSPEC = 0;
            /// `NL_ATTR_TYPE_*` (u32, host byte order).
            NL_POLICY_TYPE_ATTR_TYPE = 1;
            /// Lowest signed value (s64).
            NL_POLICY_TYPE_ATTR_MIN_VALUE_S = 2;
            /// Highest signed value (s64).
            NL_POLICY_TYPE_ATTR_MAX_VALUE_S = 3;
            /// Lowest unsigned value (u64).
            NL_POLICY_TYPE_ATTR_MIN_VALUE_U = 4;
            /// Highest unsigned value (u64).
            NL_POLICY_TYPE_ATTR_MAX_VALUE_U = 5;
            /// Shortest payload, in bytes (u32).
            NL_POLICY_TYPE_ATTR_MIN_LENGTH = 6;
            /// Longest payload, in bytes (u32).
            NL_POLICY_TYPE_ATTR_MAX_LENGTH = 7;
            /// Policy of the attributes inside (u32).
            NL_POLICY_TYPE_ATTR_POLICY_IDX = 8;
            /// Highest attribute inside (u32).
            NL_POLICY_TYPE_ATTR_POLICY_MAXTYPE = 9;
            /// Bits that a bitfield may set (u32).
            NL_POLICY_TYPE_ATTR_BITFIELD32_MASK = 10;
            /// Padding.
            NL_POLICY_TYPE_ATTR_PAD = 11;
            /// Bits that an unsigned number may set (u64).
            NL_POLICY_TYPE_ATTR_MASK = 12;
        }
    }

    structs {
        /// Address of a netlink socket.
        struct sockaddr_nl {
            /// `AF_NETLINK`.
            field nl_family: u16,
            /// Zero.
            field nl_pad: u16,
            /// Port id; 0 is the kernel, or requests a free one in `bind`.
            field nl_pid: u32,
            /// Multicast groups 1 to 32 as bits.
            field nl_groups: u32,
        }

        /// Header of every netlink message.
        struct nlmsghdr {
            /// Length of the message with this head, without padding, in bytes.
            field nlmsg_len: u32,
            /// `NLMSG_*`, or a type of the protocol; under nfnetlink subsystem and message in one byte each.
            field nlmsg_type: u16,
            /// `NLM_F_*`.
            field nlmsg_flags: u16,
            /// Number chosen by the sender of a request; replies carry it.
            field nlmsg_seq: u32,
            /// Port id of the sender; 0 for the kernel.
            field nlmsg_pid: u32,
        }

        /// Payload of [`NLMSG_ERROR`]; the rest of the request follows unless [`NLM_F_CAPPED`], then attributes if [`NLM_F_ACK_TLVS`].
        struct nlmsgerr {
            /// Negative error number; 0 acknowledges.
            field error: i32,
            /// Header of the request that this answers.
            field msg: nlmsghdr,
        }

        /// Control message with the group of a message.
        struct nl_pktinfo {
            /// Multicast group; 0 if it was sent to this socket alone.
            field group: u32,
        }

        /// Header of an attribute; the payload follows.
        struct nlattr {
            /// Length of the attribute with this head, without padding, in bytes.
            field nla_len: u16,
            /// Type, with `NLA_F_*`.
            field nla_type: u16,
        }

        /// Payload of an attribute that sets some bits and preserves the others.
        struct nla_bitfield32 {
            /// New values of the selected bits.
            field value: u32,
            /// Bits to set.
            field selector: u32,
        }
    }
}
