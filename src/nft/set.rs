//! Sets and maps: keys that rules look up, maps with a value, verdict or object for each.
//!
//! | set | built by |
//! |---|---|
//! | of addresses, ports, … | [`Set::new`] |
//! | of several values at once | [`Set::with_fields`] |
//! | of ranges | [`Set::with_interval`]; of several values at once [`Set::with_interval_fields`] |
//! | map to a value, verdict, object | [`Set::with_data`], [`Set::with_verdicts`], [`Set::with_objects`] |
//! | whose elements time out | [`Set::with_timeout`] |
//! | that rules add to | [`Set::with_updates`] |
//! | of one rule, without a name of its own | [`Set::anonymous`] |
//!
//! The elements are [`Element`](super::Element)s, in messages of their own.

use std::fmt;
use std::time::Duration;

use chainwright_sys::nf_tables::{
    NFT_DATA_VALUE, NFT_DATA_VERDICT, NFT_MSG_DELSET, NFT_MSG_DESTROYSET, NFT_MSG_GETSET,
    NFT_MSG_NEWSET, NFT_SET_ANONYMOUS, NFT_SET_CONCAT, NFT_SET_CONSTANT, NFT_SET_EVAL,
    NFT_SET_EXPR, NFT_SET_INTERVAL, NFT_SET_MAP, NFT_SET_OBJECT, NFT_SET_POL_MEMORY,
    NFT_SET_POL_PERFORMANCE, NFT_SET_TIMEOUT, NFTA_LIST_ELEM, NFTA_SET_COUNT, NFTA_SET_DATA_LEN,
    NFTA_SET_DATA_TYPE, NFTA_SET_DESC, NFTA_SET_DESC_CONCAT, NFTA_SET_DESC_SIZE, NFTA_SET_EXPR,
    NFTA_SET_EXPRESSIONS, NFTA_SET_FIELD_LEN, NFTA_SET_FLAGS, NFTA_SET_GC_INTERVAL,
    NFTA_SET_HANDLE, NFTA_SET_ID, NFTA_SET_KEY_LEN, NFTA_SET_KEY_TYPE, NFTA_SET_NAME,
    NFTA_SET_OBJ_TYPE, NFTA_SET_POLICY, NFTA_SET_TABLE, NFTA_SET_TIMEOUT, NFTA_SET_TYPE,
    NFTA_SET_USERDATA,
};

use super::Family;
use super::declare::{Field, attributes, flags, nested_field, object, values};
use super::element::SetId;
use super::expr::{Expression, Expressions, NestedExpression, ObjectType};
use super::name::{Bytes, Name};
use super::object::{listed, written};
use super::userdata::{self, commented};
use super::{Milliseconds, Milliseconds32};
use crate::netlink::{Attributes, MessageWriter};

flags! {
    /// Flags of a set (`enum nft_set_flags`).
    pub struct SetFlags: u32 {
        /// Has no name of its own and goes with the rule that uses it.
        const ANONYMOUS = NFT_SET_ANONYMOUS,
        /// Its elements do not change once a rule uses it.
        const CONSTANT = NFT_SET_CONSTANT,
        /// Its elements are ranges.
        const INTERVAL = NFT_SET_INTERVAL,
        /// A map to values or verdicts.
        const MAP = NFT_SET_MAP,
        /// Its elements time out.
        const TIMEOUT = NFT_SET_TIMEOUT,
        /// Rules add, change and delete its elements (`dynamic` in `nft`).
        const EVAL = NFT_SET_EVAL,
        /// A map to stateful objects.
        const OBJECT = NFT_SET_OBJECT,
        /// Its keys are ranges of several values at once.
        const CONCAT = NFT_SET_CONCAT,
        /// More than one expression is made with each element.
        const EXPR = NFT_SET_EXPR,
    }
}

values! {
    /// What the kernel chooses a set's implementation by (`enum nft_set_policies`).
    pub struct SetPolicy: u32 {
        /// Speed.
        PERFORMANCE = NFT_SET_POL_PERFORMANCE => "performance",
        /// Memory.
        MEMORY = NFT_SET_POL_MEMORY => "memory",
    }
}

values! {
    /// What a set's keys or a map's data are.
    ///
    /// To the kernel there are only values and verdicts (`enum nft_data_types`); all other numbers
    /// are those of `nft`, which it keeps for it. Of a concatenation they are six bits a field, see
    /// [`concatenation`](Self::concatenation). The numbers are those that nft 1.0.6 sends.
    pub struct DataType: u32 {
        /// A value of no type in particular.
        VALUE = NFT_DATA_VALUE => "value",
        /// A verdict; of a map's data only.
        VERDICT = NFT_DATA_VERDICT => "verdict",
        /// `NFPROTO_*`, 1 byte.
        NF_PROTO = 2 => "nf_proto",
        /// A number, whose length and byte order are the set's.
        INTEGER = 4 => "integer",
        /// Text.
        STRING = 5 => "string",
        /// An IPv4 address, 4 bytes in network order.
        IPV4_ADDR = 7 => "ipv4_addr",
        /// An IPv6 address, 16 bytes in network order.
        IPV6_ADDR = 8 => "ipv6_addr",
        /// An Ethernet address, 6 bytes.
        ETHER_ADDR = 9 => "ether_addr",
        /// An Ethernet type, 2 bytes in network order.
        ETHER_TYPE = 10 => "ether_type",
        /// An operation of ARP, 2 bytes in network order.
        ARP_OP = 11 => "arp_op",
        /// `IPPROTO_*`, 1 byte.
        INET_PROTO = 12 => "inet_proto",
        /// A port, 2 bytes in network order.
        INET_SERVICE = 13 => "inet_service",
        /// A type of ICMP, 1 byte.
        ICMP_TYPE = 14 => "icmp_type",
        /// Flags of TCP, 1 byte.
        TCP_FLAG = 15 => "tcp_flag",
        /// A type of DCCP packet, 1 byte.
        DCCP_PKTTYPE = 16 => "dccp_pkttype",
        /// A type of mobility header, 1 byte.
        MH_TYPE = 17 => "mh_type",
        /// A time in milliseconds, 4 bytes in host order.
        TIME = 18 => "time",
        /// A mark, 4 bytes in host order.
        MARK = 19 => "mark",
        /// Number of an interface, 4 bytes in host order.
        IFACE_INDEX = 20 => "iface_index",
        /// `ARPHRD_*`, 2 bytes in host order.
        IFACE_TYPE = 21 => "iface_type",
        /// A routing realm, 4 bytes in host order.
        REALM = 22 => "realm",
        /// A class of traffic control, 4 bytes in host order.
        CLASSID = 23 => "classid",
        /// A user, 4 bytes in host order.
        UID = 24 => "uid",
        /// A group of users, 4 bytes in host order.
        GID = 25 => "gid",
        /// States of a connection, 4 bytes in host order.
        CT_STATE = 26 => "ct_state",
        /// Direction of a connection, 1 byte.
        CT_DIR = 27 => "ct_dir",
        /// Status bits of a connection, 4 bytes in host order.
        CT_STATUS = 28 => "ct_status",
        /// A type of ICMPv6, 1 byte.
        ICMPV6_TYPE = 29 => "icmpv6_type",
        /// `PACKET_*` of `linux/if_packet.h`, 1 byte.
        PKT_TYPE = 31 => "pkt_type",
        /// A code of ICMP, 1 byte.
        ICMP_CODE = 32 => "icmp_code",
        /// A code of ICMPv6, 1 byte.
        ICMPV6_CODE = 33 => "icmpv6_code",
        /// `NFT_REJECT_ICMPX_*`, 1 byte.
        ICMPX_CODE = 34 => "icmpx_code",
        /// A group of interfaces, 4 bytes in host order.
        DEVGROUP = 35 => "devgroup",
        /// Differentiated services, 1 byte.
        DSCP = 36 => "dscp",
        /// Explicit congestion notification, 1 byte.
        ECN = 37 => "ecn",
        /// `RTN_*`, 4 bytes in host order.
        FIB_ADDRTYPE = 38 => "fib_addrtype",
        /// 0 or 1, 1 byte.
        BOOLEAN = 39 => "boolean",
        /// Name of an interface, 16 bytes filled up with NULs.
        IFNAME = 41 => "ifname",
        /// A type of IGMP, 1 byte.
        IGMP_TYPE = 42 => "igmp_type",
        /// A control group, 8 bytes in host order.
        CGROUPSV2 = 46 => "cgroupsv2",
    }
}

/// The bits of one field's type in a concatenation's.
const FIELD_TYPE_BITS: u32 = 6;

impl DataType {
    /// The type of these fields one behind the other, as `nft` numbers it; a number has room for the
    /// last five.
    #[must_use]
    pub fn concatenation(fields: impl IntoIterator<Item = Self>) -> Self {
        let number = fields
            .into_iter()
            .fold(0, |number: u32, field| number << FIELD_TYPE_BITS | field.0);
        Self(number)
    }

    /// Whether values of this type are in network byte order, as user data says for `nft`; `None` for
    /// those that have none, or of which it is not known.
    const fn byte_order(self) -> Option<u32> {
        match self {
            Self::IPV4_ADDR
            | Self::IPV6_ADDR
            | Self::ETHER_ADDR
            | Self::ETHER_TYPE
            | Self::ARP_OP
            | Self::INET_SERVICE
            | Self::ICMP_TYPE
            | Self::TCP_FLAG
            | Self::MH_TYPE
            | Self::ICMPV6_TYPE
            | Self::ICMP_CODE
            | Self::ICMPV6_CODE
            | Self::ICMPX_CODE
            | Self::DSCP
            | Self::ECN
            | Self::IGMP_TYPE => Some(userdata::BIG_ENDIAN),
            Self::TIME
            | Self::MARK
            | Self::IFACE_INDEX
            | Self::IFACE_TYPE
            | Self::REALM
            | Self::CLASSID
            | Self::UID
            | Self::GID
            | Self::CT_STATE
            | Self::CT_STATUS
            | Self::PKT_TYPE
            | Self::DEVGROUP
            | Self::FIB_ADDRTYPE
            | Self::IFNAME
            | Self::CGROUPSV2 => Some(userdata::HOST_ENDIAN),
            _ => None,
        }
    }
}

attributes! {
    /// One field of a concatenation: `enum nft_set_field_attributes`.
    pub struct SetField {
        /// Length in bytes, without the padding to four.
        NFTA_SET_FIELD_LEN => length: u32,
    }
}

/// The fields of a concatenation: a list of [`SetField`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct SetFields(pub Vec<SetField>);

impl SetFields {
    /// Fields of these lengths in bytes.
    #[must_use]
    pub fn of_lengths(lengths: impl IntoIterator<Item = u32>) -> Self {
        let field = |length| SetField {
            length: Some(length),
            ..SetField::default()
        };
        Self(lengths.into_iter().map(field).collect())
    }

    /// The fields' lengths in bytes; 0 for one that has none.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = u32> {
        self.0.iter().map(|field| field.length.unwrap_or_default())
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let mut fields = Vec::new();
        for attribute in Attributes::new(payload) {
            fields.push(SetField::decode(attribute.ok()?.payload)?);
        }
        Some(Self(fields))
    }
}

impl<'f> Field<'f> for SetFields {
    type Static = Self;
    nested_field!('f, Self::read);

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.nested(kind, |writer| {
            for field in &self.0 {
                field.encode(writer, NFTA_LIST_ELEM);
            }
        });
    }

    fn into_static(self) -> Self {
        self
    }
}

attributes! {
    /// What the kernel should know of a set: `enum nft_set_desc_attributes`.
    pub struct SetDesc {
        /// How many elements there may be.
        NFTA_SET_DESC_SIZE => size: u32,
        /// The fields of ranges of several values at once.
        NFTA_SET_DESC_CONCAT => fields: SetFields,
    }
}

object! {
    /// A set or map, to be written: `enum nft_set_attributes`.
    pub struct Set viewed as SetRef, "a set" {
        /// Name of the table that the set is in.
        NFTA_SET_TABLE => table: Name<'a> [required, table],
        /// Name of the set; of an anonymous one a pattern with `%d`, which the kernel numbers.
        NFTA_SET_NAME => name: Name<'a> [required, name],
        /// Handle, given by the kernel.
        NFTA_SET_HANDLE => handle: u64 [required, handle],
        /// Flags; the kernel leaves them out if there are none.
        NFTA_SET_FLAGS => flags: SetFlags,
        /// What the keys are.
        NFTA_SET_KEY_TYPE => key_type: DataType,
        /// Length of the keys in bytes, each field of a concatenation filled up to four.
        NFTA_SET_KEY_LEN => key_length: u32,
        /// What a map's data are.
        NFTA_SET_DATA_TYPE => data_type: DataType,
        /// Length of a map's data in bytes.
        NFTA_SET_DATA_LEN => data_length: u32,
        /// Type of the stateful objects that the keys lead to.
        NFTA_SET_OBJ_TYPE => object_type: ObjectType,
        /// After how long elements go that say nothing else.
        NFTA_SET_TIMEOUT => timeout: Milliseconds,
        /// How often elements that timed out are taken away.
        NFTA_SET_GC_INTERVAL => gc_interval: Milliseconds32,
        /// What the implementation is chosen by.
        NFTA_SET_POLICY => policy: SetPolicy,
        /// Data that user space keeps with the set, opaque to the kernel: see
        /// [`userdata`](crate::nft::userdata).
        NFTA_SET_USERDATA => userdata: Bytes<'a>,
        /// Number of elements that there may be, and fields of a concatenation.
        NFTA_SET_DESC => description: SetDesc,
        /// The kernel's name, or address, of the implementation (Linux 6.16), for information only.
        NFTA_SET_TYPE => implementation: Name<'a> [listed],
        /// Number of elements in the set (Linux 6.16), given by the kernel.
        NFTA_SET_COUNT => count: u32 [listed],
        /// The one expression that is made with each element.
        NFTA_SET_EXPR => expression: NestedExpression<'a>,
        /// The expressions, if there are more of them.
        NFTA_SET_EXPRESSIONS => expressions: Expressions<'a>,
        /// Number by which other operations of the same batch may refer to the set. The kernel wants
        /// one of every set that is added: 0 is written if there is none here.
        NFTA_SET_ID => id: u32 [written],
    }
}

commented!(Set as SetRef, SET_COMMENT);

impl<'a> Set<'a> {
    /// A set whose keys are of this type and this many bytes.
    pub fn new(
        family: Family,
        table: impl Into<Name<'a>>,
        name: impl Into<Name<'a>>,
        key_type: DataType,
        key_length: u32,
    ) -> Self {
        let mut this = Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            key_type: Some(key_type),
            key_length: Some(key_length),
            ..Self::default()
        };
        this.put_byte_order(userdata::SET_KEY_BYTE_ORDER, key_type);
        this
    }

    /// A set of one rule, which comes behind it in the same transaction, names it by this number
    /// ([`Lookup::set_id`](super::expr::Lookup)) and takes it along when it goes. It is constant.
    ///
    /// The pattern is what the kernel makes a name of: nft uses `__set%d` and `__map%d`.
    pub fn anonymous(
        family: Family,
        table: impl Into<Name<'a>>,
        pattern: impl Into<Name<'a>>,
        id: u32,
        key_type: DataType,
        key_length: u32,
    ) -> Self {
        Self {
            id: Some(id),
            ..Self::new(family, table, pattern, key_type, key_length)
                .with_flags(SetFlags::ANONYMOUS | SetFlags::CONSTANT)
        }
    }

    /// The set of this name, to be deleted.
    pub fn named(family: Family, table: impl Into<Name<'a>>, name: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            ..Self::default()
        }
    }

    fn put_byte_order(&mut self, kind: u8, data_type: DataType) {
        if let Some(order) = data_type.byte_order() {
            userdata::put(&mut self.userdata, kind, &order.to_ne_bytes());
        }
    }

    /// The same set with these flags added.
    #[must_use]
    pub fn with_flags(mut self, flags: SetFlags) -> Self {
        self.flags = Some(self.flags.unwrap_or_default() | flags);
        self
    }

    /// Makes the keys consist of these fields, given by type and length in bytes. In a key each field
    /// is filled up with zeros to four bytes: see [`concatenation`](super::concatenation).
    #[must_use]
    pub fn with_fields(mut self, fields: &[(DataType, u32)]) -> Self {
        let types = fields.iter().map(|(data_type, _)| *data_type);
        let lengths = fields.iter().map(|(_, length)| length.next_multiple_of(4));
        self.key_type = Some(DataType::concatenation(types));
        self.key_length = Some(lengths.sum());
        self
    }

    /// Makes the elements ranges of several values at once: each has a first and a last key of these
    /// fields, as [`Element::range`](super::Element::range) makes it.
    #[must_use]
    pub fn with_interval_fields(self, fields: &[(DataType, u32)]) -> Self {
        let lengths = fields.iter().map(|(_, length)| *length);
        let mut this = self
            .with_fields(fields)
            .with_flags(SetFlags::INTERVAL | SetFlags::CONCAT);
        this.description.get_or_insert_default().fields = Some(SetFields::of_lengths(lengths));
        this
    }

    /// Makes the elements ranges, as [`Element::interval`](super::Element::interval) makes them.
    #[must_use]
    pub fn with_interval(self) -> Self {
        self.with_flags(SetFlags::INTERVAL)
    }

    /// Makes it a map to values of this type and this many bytes.
    #[must_use]
    pub fn with_data(mut self, data_type: DataType, length: u32) -> Self {
        self.data_type = Some(data_type);
        self.data_length = Some(length);
        self.put_byte_order(userdata::SET_DATA_BYTE_ORDER, data_type);
        self.with_flags(SetFlags::MAP)
    }

    /// Makes it a map to verdicts.
    #[must_use]
    pub fn with_verdicts(mut self) -> Self {
        self.data_type = Some(DataType::VERDICT);
        self.data_length = Some(0); // the kernel knows
        self.with_flags(SetFlags::MAP)
    }

    /// Makes it a map to stateful objects of this type.
    #[must_use]
    pub fn with_objects(mut self, object_type: ObjectType) -> Self {
        self.object_type = Some(object_type);
        self.with_flags(SetFlags::OBJECT)
    }

    /// Lets elements time out: after this time, if they say nothing else; only those that say so for
    /// `None`. The kernel counts milliseconds.
    #[must_use]
    pub fn with_timeout(mut self, time: Option<Duration>) -> Self {
        self.timeout = time.map(Into::into);
        self.with_flags(SetFlags::TIMEOUT)
    }

    /// Lets rules add and change elements, up to this many.
    #[must_use]
    pub fn with_updates(self, size: u32) -> Self {
        self.with_size(size).with_flags(SetFlags::EVAL)
    }

    /// Makes its elements stay as they are once a rule uses it.
    #[must_use]
    pub fn constant(self) -> Self {
        self.with_flags(SetFlags::CONSTANT)
    }

    /// Limits the number of elements.
    #[must_use]
    pub fn with_size(mut self, size: u32) -> Self {
        self.description.get_or_insert_default().size = Some(size);
        self
    }

    /// Chooses the implementation by this.
    #[must_use]
    pub fn with_policy(mut self, policy: SetPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Makes one more expression with each element, a counter, say. Linux takes two at most.
    #[must_use]
    pub fn with_expression(mut self, expression: &impl Expression) -> Self {
        let nested = NestedExpression::new(expression);
        match (&mut self.expressions, self.expression.take()) {
            (None, None) => self.expression = Some(nested),
            (several, first) => {
                let several = several.get_or_insert_default();
                if let Some(first) = first.as_ref().and_then(|first| first.decode().ok()) {
                    several.push_decoded(&first);
                }
                several.push(expression);
                return self.with_flags(SetFlags::EXPR);
            }
        }
        self
    }

    /// What operations on its elements name it by.
    #[must_use]
    pub fn set_id(&self) -> SetId<'_> {
        SetId {
            family: self.family,
            table: self.table.as_ref().map(Name::from).unwrap_or_default(),
            set: self.name.as_ref().map(Name::from).unwrap_or_default(),
            id: self.id,
        }
    }
}

impl<'a> SetRef<'a> {
    /// What requests for its elements name it by.
    #[must_use]
    pub fn set_id(&self) -> SetId<'a> {
        SetId::new(self.family(), self.table(), self.name())
    }

    /// Whether it is a map, to values, verdicts or objects.
    #[must_use]
    pub fn is_map(&self) -> bool {
        self.flags
            .is_some_and(|flags| flags.intersects(SetFlags::MAP | SetFlags::OBJECT))
    }
}

written!(
    Set,
    "set",
    [NFT_MSG_NEWSET, NFT_MSG_GETSET, NFT_MSG_DELSET, NFT_MSG_DESTROYSET],
    more: |this, writer| {
        if this.id.is_none() {
            writer.be32(NFTA_SET_ID, 0);
        }
    }
);

listed!(
    Set as SetRef,
    "list sets",
    BY_KERNEL = true,
    REFUSES_ABSENT_TABLE = true
);

/// The line that `nft --debug=netlink list ruleset` prints above a set's elements (nft 1.0.6).
impl fmt::Display for SetRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} @{}", self.family(), self.table(), self.name())
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::captured::hex;
    use crate::nft::expr::{Counter, Decoded, Limit};
    use crate::nft::object::Written as _;

    const IP: Family = Family::IP;

    /// The attributes in these bytes by type, with the flags of nested ones taken off.
    fn sorted(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut all: Vec<_> = Attributes::new(bytes)
            .map(|attribute| attribute.unwrap())
            .map(|attribute| (attribute.kind, attribute.payload.to_vec()))
            .collect();
        all.sort();
        all
    }

    /// `sent` are the attributes of the `NFT_MSG_NEWSET` that nft sends, which are in another order.
    #[track_caller]
    fn assert_sent(set: &Set<'_>, sent: &str) {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes);
        set.write(&mut writer);
        writer.finish_bare().unwrap();
        assert_eq!(sorted(&bytes), sorted(&hex(sent)), "{set:?}");
    }

    /// `listed` is the payload of a listing's message.
    #[track_caller]
    fn assert_listed(set: &Set<'_>, listed: &str) {
        let listed = hex(listed);
        let view = SetRef::of_payload(&listed).unwrap();
        assert!(
            SetRef::in_order(Family(listed[0]), &listed[4..]).is_some(),
            "in one pass"
        );
        let built = view.to_builder();
        assert_eq!(&built, set);
        assert_eq!(&built.clone().into_owned(), set);
        assert_eq!(view.set_id(), SetId::new(IP, "t", view.name()));
        // In any other order it reads the same.
        let mut shuffled = listed[..4].to_vec();
        let attributes: Vec<_> = view.attributes().map(|a| a.unwrap().raw).collect();
        shuffled.extend(attributes.iter().rev().copied().flatten());
        let again = SetRef::of_payload(&shuffled).unwrap();
        assert_eq!(again.to_builder(), built);
        assert_eq!(again.count(), view.count());
        for end in 0..listed.len() {
            let _ = SetRef::of_payload(&listed[..end]).map(|view| format!("{view:?}"));
        }
        #[cfg(feature = "serde")]
        {
            let json = serde_json::to_string(&built).unwrap();
            assert_eq!(serde_json::from_str::<Set<'_>>(&json).unwrap(), built);
        }
    }

    /// nft 1.0.6: `add set ip t plain { type ipv4_addr; comment "a set"; size 100; }`, then two
    /// elements.
    #[test]
    fn plain() {
        let mut set = Set::new(IP, "t", "plain", DataType::IPV4_ADDR, 4)
            .with_size(100)
            .with_comment("a set")
            .unwrap();
        set.id = Some(1);
        set.flags = Some(SetFlags::empty());
        assert_sent(
            &set,
            "
                06000100 74000000                           ; NFTA_SET_TABLE
                0a000200 706c6169 6e000000                  ; NFTA_SET_NAME
                08000300 00000000                           ; NFTA_SET_FLAGS
                08000400 00000007                           ; NFTA_SET_KEY_TYPE
                08000500 00000004                           ; NFTA_SET_KEY_LEN
                08000a00 00000001                           ; NFTA_SET_ID
                0c000980 08000100 00000064                  ; NFTA_SET_DESC
                12000d00 00040200 00000706 61207365 74000000 ; NFTA_SET_USERDATA
            ",
        );
        (set.id, set.flags, set.handle) = (None, None, Some(2));
        let listed = "
            02000002 06000100 74000000 0a000200 706c6169 6e000000 0c001000 00000000
            00000002 08000400 00000007 08000500 00000004 12000d00 00040200 00000706
            61207365 74000000 0c000900 08000100 00000064 17001300 30786666 66666666
            66663832 35303764 63300000 08001400 00000002
        ";
        assert_listed(&set, listed);
        let listed = hex(listed);
        let view = SetRef::of_payload(&listed).unwrap();
        assert_eq!(view.comment(), Some("a set".into()));
        assert_eq!(view.count(), Some(2));
        assert_eq!(view.implementation(), Some("0xffffffff82507dc0".into()));
        assert_eq!(view.to_string(), "ip t @plain");
        assert!(!view.is_map());
    }

    /// The kernel wants a number of every set: 0 if there is none.
    #[test]
    fn a_set_without_a_number_gets_one() {
        let set = Set::new(IP, "t", "s", DataType::NF_PROTO, 1);
        assert_sent(
            &set,
            "
                06000100 74000000 06000200 73000000 08000400 00000002 08000500 00000001
                08000a00 00000000
            ",
        );
    }

    /// nft 1.0.6: `add map ip t m { type ipv4_addr : mark; }`, `… : verdict; }`, `… : counter; }`.
    #[test]
    fn maps() {
        let mut values =
            Set::new(IP, "t", "m", DataType::IPV4_ADDR, 4).with_data(DataType::MARK, 4);
        values.id = Some(2);
        // nft writes `typeof` entries that this does not.
        let userdata = hex("00040200 00000104 01000000 06040000 0000");
        assert_eq!(values.userdata.as_deref(), Some(&userdata[..12]));
        values.userdata = Some(userdata.clone().into());
        assert_sent(
            &values,
            "
                06000100 74000000 06000200 6d000000 08000300 00000008 08000400 00000007
                08000500 00000004 08000600 00000013 08000700 00000004 08000a00 00000002
                16000d00 00040200 00000104 01000000 06040000 00000000
            ",
        );
        (values.id, values.handle) = (None, Some(3));
        values.description = Some(SetDesc::default());
        assert_listed(
            &values,
            "
                02000002 06000100 74000000 06000200 6d000000 0c001000 00000000 00000003
                08000300 00000008 08000400 00000007 08000500 00000004 08000600 00000013
                08000700 00000004 16000d00 00040200 00000104 01000000 06040000 00000000
                04000900 17001300 30786666 66666666 66663832 35303766 34300000 08001400
                00000001
            ",
        );

        let mut verdicts = Set::new(IP, "t", "v", DataType::IPV4_ADDR, 4).with_verdicts();
        verdicts.id = Some(3);
        verdicts.userdata = Some(hex("00040200 00000104 00000000 06040000 0000").into());
        assert_sent(
            &verdicts,
            "
                06000100 74000000 06000200 76000000 08000300 00000008 08000400 00000007
                08000500 00000004 08000600 ffffff00 08000700 00000000 08000a00 00000003
                16000d00 00040200 00000104 00000000 06040000 00000000
            ",
        );

        let mut objects =
            Set::new(IP, "t", "o", DataType::IPV4_ADDR, 4).with_objects(ObjectType::COUNTER);
        objects.handle = Some(6);
        objects.userdata = Some(hex("00040200 00000604 00000000").into());
        objects.description = Some(SetDesc::default());
        assert_listed(
            &objects,
            "
                02000002 06000100 74000000 06000200 6f000000 0c001000 00000000 00000006
                08000300 00000040 08000400 00000007 08000500 00000004 08000f00 00000001
                10000d00 00040200 00000604 00000000 04000900 17001300 30786666 66666666
                66663832 35303766 34300000 08001400 00000001
            ",
        );
    }

    /// nft 1.0.6: `add set ip t cc { type ipv4_addr . inet_service; flags interval; }`.
    #[test]
    fn concatenations() {
        let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
        let mut ranges = Set::new(IP, "t", "cc", DataType::VALUE, 0).with_interval_fields(&fields);
        assert_eq!(ranges.key_type, Some(DataType(0x1cd)));
        ranges.id = Some(6);
        ranges.userdata = Some(hex("00040000 00000308 00040d00 00000100").into());
        assert_sent(
            &ranges,
            "
                06000100 74000000 07000200 63630000 08000300 00000084 08000400 000001cd
                08000500 00000008 08000a00 00000006
                20000900 1c000280 0c000180 08000100 00000004 0c000180 08000100 00000002
                14000d00 00040000 00000308 00040d00 00000100
            ",
        );
        (ranges.id, ranges.handle) = (None, Some(8));
        assert_listed(
            &ranges,
            "
                02000002 06000100 74000000 07000200 63630000 0c001000 00000000 00000008
                08000300 00000084 08000400 000001cd 08000500 00000008 14000d00 00040000
                00000308 00040d00 00000100 20000900 1c000200 0c000100 08000100 00000004
                0c000100 08000100 00000002 17001300 30786666 66666666 66663832 35303831
                61300000 08001400 00000001
            ",
        );
        let description = ranges.description.unwrap();
        let lengths: Vec<_> = description.fields.unwrap().lengths().collect();
        assert_eq!(lengths, [4, 2]);

        let plain = Set::new(IP, "t", "cp", DataType::VALUE, 0).with_fields(&fields);
        assert_eq!((plain.key_length, plain.flags), (Some(8), None));
        assert_eq!(plain.description, None);
    }

    /// nft 1.0.6: `add set ip t to { type ipv4_addr; flags timeout; timeout 30s; gc-interval 10s; }`
    /// and `add set ip t two { type ipv4_addr; flags dynamic,timeout; size 1000; counter; limit rate
    /// 5/second; policy memory; }`.
    #[test]
    fn timeouts_and_expressions() {
        let mut timeout = Set::new(IP, "t", "to", DataType::IPV4_ADDR, 4)
            .with_timeout(Some(Duration::from_secs(30)));
        timeout.gc_interval = Some(Milliseconds32(10_000));
        timeout.handle = Some(10);
        timeout.userdata = Some(hex("00040200 0000").into());
        timeout.description = Some(SetDesc::default());
        assert_listed(
            &timeout,
            "
                02000002 06000100 74000000 07000200 746f0000 0c001000 00000000 0000000a
                08000300 00000010 08000400 00000007 08000500 00000004 0c000b00 00000000
                00007530 08000c00 00002710 0a000d00 00040200 00000000 04000900 17001300
                30786666 66666666 66663832 35303766 34300000 08001400 00000001
            ",
        );

        let counter = Counter::default();
        let limit = Limit::packets(5, 1, 5);
        let mut two = Set::new(IP, "t", "two", DataType::IPV4_ADDR, 4)
            .with_updates(1000)
            .with_timeout(None)
            .with_policy(SetPolicy::MEMORY)
            .with_expression(&counter)
            .with_expression(&limit);
        assert_eq!(
            two.flags,
            Some(SetFlags::EVAL | SetFlags::TIMEOUT | SetFlags::EXPR)
        );
        two.id = Some(10);
        assert_sent(
            &two,
            "
                06000100 74000000 08000200 74776f00 08000300 00000130 08000400 00000007
                08000500 00000004 08000a00 0000000a 08000800 00000001 0c000980 08000100
                000003e8 0a000d00 00040200 00000000
                5c001280
                14000180 0c000100 636f756e 74657200 04000280
                44000180 0a000100 6c696d69 74000000 34000280 0c000100 00000000 00000005
                0c000200 00000000 00000001 08000300 00000005 08000400 00000000 08000500
                00000000
            ",
        );
        let listed = hex("
                02000002 06000100 74000000 08000200 64796e00 0c001000 00000000 0000000b
                08000300 00000020 08000400 00000007 08000500 00000004 0a000d00 00040200
                00000000 0c000900 08000100 000003e8 17001300 30786666 66666666 66663832
                35303766 34300000 08001400 00000001 2c001100 0c000100 636f756e 74657200
                1c000200 0c000100 00000000 00000000 0c000200 00000000 00000000
            ");
        let view = SetRef::of_payload(&listed).unwrap();
        let expression = view.expression().unwrap();
        assert_eq!(
            expression.decode().unwrap(),
            Decoded::Counter(Counter::new(0, 0))
        );
        assert_eq!(view.flags(), Some(SetFlags::EVAL));
    }

    /// nft 1.0.6: `add rule ip t c ip saddr { 1.1.1.1, 2.2.2.2 } …`.
    #[test]
    fn anonymous() {
        let mut set = Set::anonymous(IP, "t", "__set%d", 11, DataType::IPV4_ADDR, 4).with_size(2);
        set.userdata =
            Some(hex("00040200 00000314 00040700 0000010c 00040c00 00000104 0b000000").into());
        assert_sent(
            &set,
            "
                06000100 74000000 0c000200 5f5f7365 74256400 08000300 00000003 08000400
                00000007 08000500 00000004 08000a00 0000000b 0c000980 08000100 00000002
                20000d00 00040200 00000314 00040700 0000010c 00040c00 00000104 0b000000
            ",
        );
        assert_eq!(set.set_id().id, Some(11));
    }

    #[test]
    fn its_identity_is_its_name_and_handle() {
        let mut set = Set::new(IP, "t", "s", DataType::MARK, 4).with_size(5);
        set.handle = Some(9);
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes);
        set.write_identity(&mut writer);
        writer.finish_bare().unwrap();
        let expected = "06000100 74000000 06000200 73000000 0c001000 00000000 00000009";
        assert_eq!(bytes, hex(expected));
    }
}
