//! `linux/netfilter/ipset/ip_set.h`: sets of addresses, ports and interfaces (`NFNL_SUBSYS_IPSET`):
//! messages, attributes and errors, and the types that the matches and targets of
//! [`xt_set`](crate::xt_set) share with them.
//!
//! Numbers in attributes are big-endian and have `NLA_F_NET_BYTEORDER` set.

use crate::abi::abi;

abi! {
    header "linux/netfilter/ipset/ip_set.h";

    constants {
        /// Versions of the protocol ([`IPSET_ATTR_PROTOCOL`]).
        "#define IPSET_PROTOCOL*": u8 {
            /// The version with [`IPSET_CMD_GET_BYNAME`] and [`IPSET_CMD_GET_BYINDEX`].
            IPSET_PROTOCOL = 7;
            /// The oldest version that kernels of this protocol still accept.
            IPSET_PROTOCOL_MIN = 6;
        }

        /// Sizes of strings, in bytes.
        "#define IPSET_MAX*": usize {
            /// Room for a set's or a set type's name, the closing NUL included.
            IPSET_MAXNAMELEN = 32;
            /// The longest comment, without the closing NUL.
            IPSET_MAX_COMMENT_SIZE = 255;
        }

        /// Messages of the subsystem. The commands from 16 on are internal to the program `ipset` and never reach the kernel.
        "enum ipset_cmd": u8 {
            /// Not used.
            IPSET_CMD_NONE = 0;
            /// Requests the protocol version.
            IPSET_CMD_PROTOCOL = 1;
            /// Creates an empty set.
            IPSET_CMD_CREATE = 2;
            /// Deletes a set or, without a name, all of them.
            IPSET_CMD_DESTROY = 3;
            /// Empties a set or, without a name, all of them.
            IPSET_CMD_FLUSH = 4;
            /// Renames a set.
            IPSET_CMD_RENAME = 5;
            /// Exchanges the contents of two sets.
            IPSET_CMD_SWAP = 6;
            /// Lists sets with their elements.
            IPSET_CMD_LIST = 7;
            /// Lists sets in a form that creates them again.
            IPSET_CMD_SAVE = 8;
            /// Adds elements.
            IPSET_CMD_ADD = 9;
            /// Deletes elements.
            IPSET_CMD_DEL = 10;
            /// Checks whether an element is in a set.
            IPSET_CMD_TEST = 11;
            /// Requests a set's type, family and revision.
            IPSET_CMD_HEADER = 12;
            /// Requests the supported revisions of a set type.
            IPSET_CMD_TYPE = 13;
            /// Requests a set's index by its name.
            IPSET_CMD_GET_BYNAME = 14;
            /// Requests a set's name by its index.
            IPSET_CMD_GET_BYINDEX = 15;
        }

        /// Attributes of a message.
        "enum IPSET_ATTR_* (messages)": u16 {
            /// Not used.
            IPSET_ATTR_UNSPEC = 0;
            /// u8: version of the protocol.
            IPSET_ATTR_PROTOCOL = 1;
            /// String: name of the set.
            IPSET_ATTR_SETNAME = 2;
            /// String: name of the set type.
            IPSET_ATTR_TYPENAME = 3;
            /// String: the other set's name, in [`IPSET_CMD_RENAME`] and [`IPSET_CMD_SWAP`].
            IPSET_ATTR_SETNAME2 = 3;
            /// u8: revision of the set type.
            IPSET_ATTR_REVISION = 4;
            /// u8: `NFPROTO_*`.
            IPSET_ATTR_FAMILY = 5;
            /// u32: `IPSET_FLAG_*` of messages.
            IPSET_ATTR_FLAGS = 6;
            /// Nested: the set's parameters or one element.
            IPSET_ATTR_DATA = 7;
            /// Nested: several [`IPSET_ATTR_DATA`], one for each element.
            IPSET_ATTR_ADT = 8;
            /// u32: line of the input that an error is about.
            IPSET_ATTR_LINENO = 9;
            /// u8: oldest version of the protocol that the kernel accepts.
            IPSET_ATTR_PROTOCOL_MIN = 10;
            /// u8: oldest revision of the set type that the kernel has.
            IPSET_ATTR_REVISION_MIN = 10;
            /// u16: index of the set.
            IPSET_ATTR_INDEX = 11;
        }

        /// Attributes in [`IPSET_ATTR_DATA`], of both sets and elements; from [`IPSET_ATTR_INITVAL`] on, only of sets.
        "enum IPSET_ATTR_* (create, add, delete, test)": u16 {
            /// Nested `IPSET_ATTR_IPADDR_*`: an address.
            IPSET_ATTR_IP = 1;
            /// First address of a range; the same number.
            IPSET_ATTR_IP_FROM = 1;
            /// Nested `IPSET_ATTR_IPADDR_*`: last address of a range.
            IPSET_ATTR_IP_TO = 2;
            /// u8: length of the network prefix, in bits.
            IPSET_ATTR_CIDR = 3;
            /// u16: a port.
            IPSET_ATTR_PORT = 4;
            /// First port of a range; the same number.
            IPSET_ATTR_PORT_FROM = 4;
            /// u16: last port of a range.
            IPSET_ATTR_PORT_TO = 5;
            /// u32: timeout of an element, in seconds.
            IPSET_ATTR_TIMEOUT = 6;
            /// u8: layer 4 protocol.
            IPSET_ATTR_PROTO = 7;
            /// u32: `IPSET_FLAG_*` of sets and elements.
            IPSET_ATTR_CADT_FLAGS = 8;
            /// u32: line of the input, as [`IPSET_ATTR_LINENO`].
            IPSET_ATTR_CADT_LINENO = 9;
            /// u32: packet mark.
            IPSET_ATTR_MARK = 10;
            /// u32: mask of packet marks.
            IPSET_ATTR_MARKMASK = 11;
            /// Nested `IPSET_ATTR_IPADDR_*`: mask that addresses are stored under.
            IPSET_ATTR_BITMASK = 12, since (6, 2);
            /// The highest attribute shared by sets and elements; does not change.
            IPSET_ATTR_CADT_MAX = 16;
            /// u32: seed of the hash.
            IPSET_ATTR_INITVAL = 17;
            /// u32: number of hash buckets at the start.
            IPSET_ATTR_HASHSIZE = 18;
            /// u32: the most elements.
            IPSET_ATTR_MAXELEM = 19;
            /// u8: length of the prefix that addresses are stored under, in bits.
            IPSET_ATTR_NETMASK = 20;
            /// u8: the most elements in a hash bucket.
            IPSET_ATTR_BUCKETSIZE = 21;
            /// u8: not used.
            IPSET_ATTR_RESIZE = 22;
            /// u32: size of a list of sets.
            IPSET_ATTR_SIZE = 23;
            /// u32, only from the kernel: number of elements.
            IPSET_ATTR_ELEMENTS = 24;
            /// u32, only from the kernel: number of references to the set.
            IPSET_ATTR_REFERENCES = 25;
            /// u32, only from the kernel: memory used, in bytes.
            IPSET_ATTR_MEMSIZE = 26;
        }

        /// Attributes in [`IPSET_ATTR_DATA`] that only elements have.
        "enum IPSET_ATTR_* (add, delete, test)": u16 {
            /// Six bytes: Ethernet address.
            IPSET_ATTR_ETHER = 17;
            /// String: name of a member set.
            IPSET_ATTR_NAME = 18;
            /// String: name of the member set before or after which to insert.
            IPSET_ATTR_NAMEREF = 19;
            /// Nested `IPSET_ATTR_IPADDR_*`: second address.
            IPSET_ATTR_IP2 = 20;
            /// u8: length of the second network prefix, in bits.
            IPSET_ATTR_CIDR2 = 21;
            /// Nested `IPSET_ATTR_IPADDR_*`: last address of the second range.
            IPSET_ATTR_IP2_TO = 22;
            /// String: interface.
            IPSET_ATTR_IFACE = 23;
            /// u64: bytes counted.
            IPSET_ATTR_BYTES = 24;
            /// u64: packets counted.
            IPSET_ATTR_PACKETS = 25;
            /// String: comment.
            IPSET_ATTR_COMMENT = 26;
            /// u64: packet mark above, its mask below.
            IPSET_ATTR_SKBMARK = 27;
            /// u32: traffic control class.
            IPSET_ATTR_SKBPRIO = 28;
            /// u16: transmit queue.
            IPSET_ATTR_SKBQUEUE = 29;
            /// Padding, ignored.
            IPSET_ATTR_PAD = 30;
        }

        /// Attributes in an address.
        "enum IPSET_ATTR_IPADDR_*": u16 {
            /// Four bytes, network byte order.
            IPSET_ATTR_IPADDR_IPV4 = 1;
            /// Sixteen bytes, network byte order.
            IPSET_ATTR_IPADDR_IPV6 = 2;
        }

        /// Errors in addition to `errno.h`; netlink's error message contains them negated.
        "enum ipset_errno": i32 {
            /// Below it are the numbers of `errno.h`.
            IPSET_ERR_PRIVATE = 4096;
            /// The message breaks the protocol.
            IPSET_ERR_PROTOCOL = 4097;
            /// There is no such set type.
            IPSET_ERR_FIND_TYPE = 4098;
            /// There are too many sets.
            IPSET_ERR_MAX_SETS = 4099;
            /// The set is in use.
            IPSET_ERR_BUSY = 4100;
            /// The new name is in use, or there is no second set.
            IPSET_ERR_EXIST_SETNAME2 = 4101;
            /// The two sets have different types.
            IPSET_ERR_TYPE_MISMATCH = 4102;
            /// The element is there already, or is not there.
            IPSET_ERR_EXIST = 4103;
            /// The prefix length is wrong.
            IPSET_ERR_INVALID_CIDR = 4104;
            /// The netmask is wrong.
            IPSET_ERR_INVALID_NETMASK = 4105;
            /// The family is wrong.
            IPSET_ERR_INVALID_FAMILY = 4106;
            /// The set has no timeouts.
            IPSET_ERR_TIMEOUT = 4107;
            /// The set is referred to.
            IPSET_ERR_REFERENCED = 4108;
            /// The IPv4 address is missing or wrong.
            IPSET_ERR_IPADDR_IPV4 = 4109;
            /// The IPv6 address is missing or wrong.
            IPSET_ERR_IPADDR_IPV6 = 4110;
            /// The set has no counters.
            IPSET_ERR_COUNTER = 4111;
            /// The set has no comments.
            IPSET_ERR_COMMENT = 4112;
            /// The mark mask is wrong.
            IPSET_ERR_INVALID_MARKMASK = 4113;
            /// The set has no packet metadata.
            IPSET_ERR_SKBINFO = 4114;
            /// A bitmask and a netmask exclude each other.
            IPSET_ERR_BITMASK_NETMASK_EXCL = 4115, since (6, 2);
            /// From here on each set type has its own numbers.
            IPSET_ERR_TYPE_SPECIFIC = 4352;
        }

        /// Flags of messages, and of the matches and targets `set` and `SET`; `BIT` names are bit numbers.
        "enum ipset_cmd_flags": u32 {
            /// Bit number of [`IPSET_FLAG_EXIST`].
            IPSET_FLAG_BIT_EXIST = 0;
            /// No error when an element is there already or is missing.
            IPSET_FLAG_EXIST = 1 << 0;
            /// Bit number of [`IPSET_FLAG_LIST_SETNAME`].
            IPSET_FLAG_BIT_LIST_SETNAME = 1;
            /// List only names.
            IPSET_FLAG_LIST_SETNAME = 1 << 1;
            /// Bit number of [`IPSET_FLAG_LIST_HEADER`].
            IPSET_FLAG_BIT_LIST_HEADER = 2;
            /// List sets without their elements.
            IPSET_FLAG_LIST_HEADER = 1 << 2;
            /// Bit number of [`IPSET_FLAG_SKIP_COUNTER_UPDATE`].
            IPSET_FLAG_BIT_SKIP_COUNTER_UPDATE = 3;
            /// Do not update the element's counters.
            IPSET_FLAG_SKIP_COUNTER_UPDATE = 1 << 3;
            /// Bit number of [`IPSET_FLAG_SKIP_SUBCOUNTER_UPDATE`].
            IPSET_FLAG_BIT_SKIP_SUBCOUNTER_UPDATE = 4;
            /// Leave the counters of member sets' elements alone.
            IPSET_FLAG_SKIP_SUBCOUNTER_UPDATE = 1 << 4;
            /// Bit number of [`IPSET_FLAG_MATCH_COUNTERS`].
            IPSET_FLAG_BIT_MATCH_COUNTERS = 5;
            /// Compare counters.
            IPSET_FLAG_MATCH_COUNTERS = 1 << 5;
            /// Bit number of [`IPSET_FLAG_RETURN_NOMATCH`].
            IPSET_FLAG_BIT_RETURN_NOMATCH = 7;
            /// Match only elements that are marked as exceptions.
            IPSET_FLAG_RETURN_NOMATCH = 1 << 7;
            /// Bit number of [`IPSET_FLAG_MAP_SKBMARK`].
            IPSET_FLAG_BIT_MAP_SKBMARK = 8;
            /// Take the packet mark from the element.
            IPSET_FLAG_MAP_SKBMARK = 1 << 8;
            /// Bit number of [`IPSET_FLAG_MAP_SKBPRIO`].
            IPSET_FLAG_BIT_MAP_SKBPRIO = 9;
            /// Take the traffic control class from the element.
            IPSET_FLAG_MAP_SKBPRIO = 1 << 9;
            /// Bit number of [`IPSET_FLAG_MAP_SKBQUEUE`].
            IPSET_FLAG_BIT_MAP_SKBQUEUE = 10;
            /// Take the transmit queue from the element.
            IPSET_FLAG_MAP_SKBQUEUE = 1 << 10;
            /// The highest bit number of these flags; does not change.
            IPSET_FLAG_CMD_MAX = 15;
        }

        /// Flags of sets and elements ([`IPSET_ATTR_CADT_FLAGS`]); `BIT` names are bit numbers.
        "enum ipset_cadt_flags": u32 {
            /// Bit number of [`IPSET_FLAG_BEFORE`].
            IPSET_FLAG_BIT_BEFORE = 0;
            /// Insert the member before [`IPSET_ATTR_NAMEREF`], not after it.
            IPSET_FLAG_BEFORE = 1 << 0;
            /// Bit number of [`IPSET_FLAG_PHYSDEV`].
            IPSET_FLAG_BIT_PHYSDEV = 1;
            /// The interface is the bridge's port.
            IPSET_FLAG_PHYSDEV = 1 << 1;
            /// Bit number of [`IPSET_FLAG_NOMATCH`].
            IPSET_FLAG_BIT_NOMATCH = 2;
            /// The element is an exception.
            IPSET_FLAG_NOMATCH = 1 << 2;
            /// Bit number of [`IPSET_FLAG_WITH_COUNTERS`].
            IPSET_FLAG_BIT_WITH_COUNTERS = 3;
            /// The set's elements have counters.
            IPSET_FLAG_WITH_COUNTERS = 1 << 3;
            /// Bit number of [`IPSET_FLAG_WITH_COMMENT`].
            IPSET_FLAG_BIT_WITH_COMMENT = 4;
            /// The set's elements may have comments.
            IPSET_FLAG_WITH_COMMENT = 1 << 4;
            /// Bit number of [`IPSET_FLAG_WITH_FORCEADD`].
            IPSET_FLAG_BIT_WITH_FORCEADD = 5;
            /// Adding to a full set replaces an element.
            IPSET_FLAG_WITH_FORCEADD = 1 << 5;
            /// Bit number of [`IPSET_FLAG_WITH_SKBINFO`].
            IPSET_FLAG_BIT_WITH_SKBINFO = 6;
            /// The set's elements have a mark, a class and a queue.
            IPSET_FLAG_WITH_SKBINFO = 1 << 6;
            /// Bit number of [`IPSET_FLAG_IFACE_WILDCARD`].
            IPSET_FLAG_BIT_IFACE_WILDCARD = 7;
            /// The interface is a prefix of names.
            IPSET_FLAG_IFACE_WILDCARD = 1 << 7;
            /// The highest bit number of these flags; does not change.
            IPSET_FLAG_CADT_MAX = 15;
        }

        /// The kernel's own flags of a set's parameters; `BIT` names are bit numbers.
        "enum ipset_create_flags": u8 {
            /// Bit number of [`IPSET_CREATE_FLAG_FORCEADD`].
            IPSET_CREATE_FLAG_BIT_FORCEADD = 0;
            /// The set type knows [`IPSET_FLAG_WITH_FORCEADD`].
            IPSET_CREATE_FLAG_FORCEADD = 1 << 0;
            /// Bit number of [`IPSET_CREATE_FLAG_BUCKETSIZE`].
            IPSET_CREATE_FLAG_BIT_BUCKETSIZE = 1;
            /// The set type knows [`IPSET_ATTR_BUCKETSIZE`].
            IPSET_CREATE_FLAG_BUCKETSIZE = 1 << 1;
            /// The highest bit number of these flags; does not change.
            IPSET_CREATE_FLAG_BIT_MAX = 7;
        }

        /// Commands with their own attributes in each set type.
        "enum ipset_adt": u32 {
            /// Add.
            IPSET_ADD = 0;
            /// Delete.
            IPSET_DEL = 1;
            /// Test.
            IPSET_TEST = 2;
            /// Create.
            IPSET_CREATE = 3;
        }

        /// The invalid index.
        "#define IPSET_INVALID_ID": u16 {
            IPSET_INVALID_ID = 65535;
        }

        /// Numbers of dimensions (parts) of an element, which are bit numbers in `ip_set_kopt` too.
        "enum ip_set_dim": u8 {
            /// None.
            IPSET_DIM_ZERO = 0;
            /// One, or the first.
            IPSET_DIM_ONE = 1;
            /// Two, or the second.
            IPSET_DIM_TWO = 2;
            /// Three, or the third.
            IPSET_DIM_THREE = 3;
            /// Maximum for revision 0 of the match and the target.
            IPSET_DIM_MAX = 6;
            /// Bit number of [`IPSET_RETURN_NOMATCH`].
            IPSET_BIT_RETURN_NOMATCH = 7;
        }

        /// Flags of a set in a rule: which parts are a packet's source; the others are its destination.
        "enum ip_set_kopt": u8 {
            /// Negates.
            IPSET_INV_MATCH = 1 << 0;
            /// The first part is the source.
            IPSET_DIM_ONE_SRC = 1 << 1;
            /// The second part is the source.
            IPSET_DIM_TWO_SRC = 1 << 2;
            /// The third part is the source.
            IPSET_DIM_THREE_SRC = 1 << 3;
            /// Match only elements that are marked as exceptions; revision 2 of the match.
            IPSET_RETURN_NOMATCH = 1 << 7;
        }

        /// Comparison of a counter.
        "enum IPSET_COUNTER_*": u8 {
            /// Not at all.
            IPSET_COUNTER_NONE = 0;
            /// Equal.
            IPSET_COUNTER_EQ = 1;
            /// Not equal.
            IPSET_COUNTER_NE = 2;
            /// Less.
            IPSET_COUNTER_LT = 3;
            /// Greater.
            IPSET_COUNTER_GT = 4;
        }

        /// Socket option for queries about sets (`getsockopt` on a raw IPv4 socket at level `IPPROTO_IP`).
        "#define SO_IP_SET": i32 {
            SO_IP_SET = 83;
        }

        /// Queries of [`SO_IP_SET`].
        "#define IP_SET_OP_*": u32 {
            /// A set's index by its name; takes an [`ip_set_req_get_set`].
            IP_SET_OP_GET_BYNAME = 6;
            /// A set's name by its index; takes an [`ip_set_req_get_set`].
            IP_SET_OP_GET_BYINDEX = 7;
            /// A set's index and family by its name; takes an [`ip_set_req_get_set_family`].
            IP_SET_OP_GET_FNAME = 8;
            /// The protocol version; takes an [`ip_set_req_version`].
            IP_SET_OP_VERSION = 0x100;
        }
    }

    structs {
        /// Condition for a counter, in revision 3 of the match `set`; its padding differs on 32-bit x86.
        struct ip_set_counter_match0 {
            /// `IPSET_COUNTER_*`.
            field op: u8,
            #[cfg(target_arch = "x86")]
            pad __pad: [u8; 3],
            #[cfg(not(target_arch = "x86"))]
            pad __pad: [u8; 7],
            /// The number, host byte order.
            field value: u64,
        }

        /// Condition for a counter, in revision 4 of the match `set`.
        #[repr(align(8))]
        struct ip_set_counter_match {
            /// The number, host byte order.
            field value: u64,
            /// `IPSET_COUNTER_*`.
            field op: u8,
            pad __pad: [u8; 7],
        }

        /// A set's name or its index; a union in C.
        #[repr(align(2))]
        struct ip_set_name_index = "union ip_set_name_index" {
            /// The name, NUL-terminated; or the index (in C: `index`) in the first two bytes, host byte order.
            field name: [u8; IPSET_MAXNAMELEN],
        }

        /// Argument of [`IP_SET_OP_GET_BYNAME`] and [`IP_SET_OP_GET_BYINDEX`].
        struct ip_set_req_get_set {
            /// `IP_SET_OP_*`.
            field op: u32,
            /// Version of the protocol.
            field version: u32,
            /// Name or index, in the request and in the reply.
            field set: ip_set_name_index,
        }

        /// Argument of [`IP_SET_OP_GET_FNAME`].
        struct ip_set_req_get_set_family {
            /// `IP_SET_OP_*`.
            field op: u32,
            /// Version of the protocol.
            field version: u32,
            /// The answer: `NFPROTO_*`.
            field family: u32,
            /// Name in the question, index in the answer.
            field set: ip_set_name_index,
        }

        /// Argument of [`IP_SET_OP_VERSION`].
        struct ip_set_req_version {
            /// `IP_SET_OP_*`.
            field op: u32,
            /// The answer: version of the protocol.
            field version: u32,
        }
    }
}
