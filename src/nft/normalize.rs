//! The normal form of objects and expressions, by which rulesets are compared.
//!
//! The kernel lists an object in another form than it was sent: it adds defaults and handles, leaves out what has no
//! effect, and orders the attributes in its own way; releases differ in this. [`Normal::normalize`] removes these
//! differences. Two objects are equal if their normal forms are.
//!
//! The normal form is the listing of a recent kernel (Linux 6.18), so that it usually equals a listing byte for byte:
//!
//! - attributes in the kernel's order (`listed as` in the declarations), without padding and without the flag for
//!   nested attributes;
//! - numbers of registers as the kernel lists them;
//! - with the defaults that a kernel adds, and without the empty values that it leaves out;
//! - unknown attributes, malformed expressions and expressions without a typed form unchanged.
//!
//! The normal form does not include values that depend on other objects of the ruleset: names for ids, and the values
//! that elements inherit from their set. [`Ruleset`](super::Ruleset) resolves these.

use bstr::{BString, ByteSlice};

use super::chain::Hook;
use super::declare::Field;
use super::device::Devices;
use super::expr::{
    BitwiseOp, ChecksumType, CtKey, Data, Decoded, DynsetFlags, Expressions, ExthdrOp, FibResult,
    HashType, LimitType, LogFlags, LogLevel, NatRangeFlags, NestedExpression, QuotaFlags, Register,
    RejectType, SocketKey, TunnelMode,
};
use super::{
    Chain, ChainFlags, DataType, Device, Element, ElementFlags, Family, Flowtable, Milliseconds,
    ObjectData, Policy, Rule, Set, SetFlags, SetPolicy, StatefulObject, Table,
};
use crate::netlink::MessageWriter;

/// Length of a verdict in a map's data. Kernels of 32 bits list 8.
const VERDICT_LENGTH: u32 = 16;
/// The kernel's burst of packet limits without one.
const BURST: u32 = 5;

/// An object with a normal form.
pub(in crate::nft) trait Normal: Sized {
    /// Brings the object into its normal form.
    fn normalize(&mut self);
    /// Writes the attributes in the kernel's order.
    fn write(&self, writer: &mut MessageWriter<'_>);

    /// Returns the attributes of the normal form.
    fn into_normal(mut self) -> Vec<u8> {
        self.normalize();
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes).without_nested_flag();
        self.write(&mut writer);
        // Objects that were received or sent fit.
        let _ = writer.finish_bare();
        bytes
    }
}

macro_rules! normal {
    ($($Name:ident: |$this:ident| $body:block)*) => {$(
        impl Normal for $Name<'_> {
            fn normalize(&mut self) {
                self.normalize_fields();
                let $this = self;
                $body
            }
            fn write(&self, writer: &mut MessageWriter<'_>) {
                self.write_listed(writer);
            }
        }
    )*};
}

normal! {
    Table: |table| {
        table.flags.get_or_insert_default();
    }
    Chain: |chain| {
        chain.id = None;
        without_empty(&mut chain.userdata);
        let mut flags = chain.flags.unwrap_or_default();
        if let Some(hook) = &mut chain.hook {
            flags |= ChainFlags::BASE;
            chain.policy.get_or_insert(Policy::ACCEPT);
            chain.chain_type.get_or_insert("filter".into());
            normalize_devices(chain.family, hook);
        }
        chain.flags = Some(flags).filter(|flags| !flags.is_empty());
    }
    Rule: |rule| {
        (rule.id, rule.position_id, rule.chain_id, rule.compat) = (None, None, None, None);
        rule.expressions.get_or_insert_default();
        without_empty(&mut rule.userdata);
    }
    Set: |set| {
        (set.id, set.count, set.implementation) = (None, None, None);
        without_empty(&mut set.userdata);
        let flags = set.flags.unwrap_or_default();
        set.flags.take_if(|flags| flags.is_empty());
        set.key_type.get_or_insert(DataType(0));
        if !flags.contains(SetFlags::MAP) {
            (set.data_type, set.data_length) = (None, None);
        } else if set.data_type == Some(DataType::VERDICT) {
            set.data_length = Some(VERDICT_LENGTH);
        }
        set.object_type.take_if(|_| !flags.contains(SetFlags::OBJECT));
        set.timeout.take_if(|timeout| timeout.0 == 0);
        set.gc_interval.take_if(|interval| interval.0 == 0);
        set.policy.take_if(|policy| *policy == SetPolicy::PERFORMANCE);
        let description = set.description.get_or_insert_default();
        description.size.take_if(|size| *size == 0);
        description.fields.take_if(|fields| fields.0.len() < 2);
        single(&mut set.expression, &mut set.expressions);
    }
    Element: |element| {
        without_empty(&mut element.userdata);
        element.flags.take_if(|flags| flags.is_empty());
        single(&mut element.expression, &mut element.expressions);
        if element.flags.is_some_and(|flags| flags.contains(ElementFlags::INTERVAL_END)) {
            // Some kernels list them, but none accepts them.
            (element.timeout, element.expiration) = (None, None);
            (element.expression, element.expressions) = (None, None);
        }
    }
    StatefulObject: |object| {
        without_empty(&mut object.userdata);
        if let Some(ObjectData::Opaque(bytes)) = &object.data {
            let data = ObjectData::read(object.object_type.unwrap_or_default(), bytes);
            let mut data = data.into_static();
            data.normalize();
            object.data = Some(data);
        }
        if let Some(ObjectData::CtHelper(helper)) = &mut object.data {
            helper.l3proto.get_or_insert(object.family.0.into());
        }
    }
    Flowtable: |flowtable| {
        flowtable.flags.get_or_insert_default();
    }
}

/// Normalizes the devices: a chain of one device lists it twice; one of several, or of none, once.
fn normalize_devices(family: Family, hook: &mut Hook<'_>) {
    let has_devices = match family {
        Family::NETDEV => true,
        Family::INET => hook.number == Some(Hook::INET_INGRESS),
        _ => false,
    };
    if !has_devices {
        return;
    }
    let devices = hook.devices.get_or_insert_with(|| {
        let device = hook.device.iter();
        Devices::new(device.map(|name| name.as_bytes()))
    });
    let mut entries = devices.iter();
    hook.device = match (entries.next(), entries.next()) {
        (Some(Device::Name(name)), None) => Some(name.to_owned().into()),
        _ => None,
    };
}

/// Removes user data without bytes.
fn without_empty(userdata: &mut Option<super::Bytes<'_>>) {
    userdata.take_if(|userdata| userdata.is_empty());
}

/// Moves the only expression of a list into its own attribute.
fn single(one: &mut Option<NestedExpression<'_>>, list: &mut Option<Expressions<'_>>) {
    let Some(several) = list else { return };
    let mut expressions = several.iter().map_while(Result::ok);
    if one.is_none()
        && let (Some(only), None) = (expressions.next(), expressions.next())
        && let Ok(decoded) = only.decode()
    {
        *one = Some(NestedExpression::listed(&decoded));
        *list = None;
    }
}

impl ObjectData<'_> {
    /// Brings the data of an object into its normal form. Counters, quotas and limits have that of their expressions.
    pub(in crate::nft) fn normalize(&mut self) {
        let mut expression = match self {
            Self::Counter(data) => Decoded::from(std::mem::take(data)),
            Self::Quota(data) => std::mem::take(data).into(),
            Self::Limit(data) => std::mem::take(data).into(),
            Self::Connlimit(data) => std::mem::take(data).into(),
            Self::Synproxy(data) => std::mem::take(data).into(),
            _ => return,
        };
        expression.normalize();
        match (self, expression) {
            (Self::Counter(data), Decoded::Counter(normal)) => *data = normal,
            (Self::Quota(data), Decoded::Quota(normal)) => *data = normal,
            (Self::Limit(data), Decoded::Limit(normal)) => *data = normal,
            (Self::Connlimit(data), Decoded::Connlimit(normal)) => *data = normal,
            (Self::Synproxy(data), Decoded::Synproxy(normal)) => *data = normal,
            _ => unreachable!("invariant: normalizing keeps the kind"),
        }
    }
}

impl Decoded<'_> {
    /// Brings an expression into its normal form.
    pub(in crate::nft) fn normalize(&mut self) {
        self.normalize_fields();
        match self {
            Self::Bitwise(bitwise) => {
                bitwise.op.get_or_insert(BitwiseOp::MASK_XOR);
            }
            Self::Connlimit(connlimit) => {
                connlimit.flags.take_if(|flags| flags.is_empty());
            }
            Self::Counter(counter) => {
                counter.packets.get_or_insert(0);
                counter.bytes.get_or_insert(0);
            }
            Self::Ct(ct) => {
                let has_none = matches!(ct.key, Some(CtKey::L3PROTOCOL | CtKey::PROTOCOL));
                ct.direction.take_if(|_| has_none && ct.dreg.is_some());
            }
            Self::Dynset(dynset) => {
                dynset.set_id = None;
                dynset.timeout.get_or_insert(Milliseconds(0));
                dynset.flags = Some(dynset.flags.unwrap_or_default() - DynsetFlags::EXPR);
                single(&mut dynset.expr, &mut dynset.expressions);
            }
            Self::Exthdr(exthdr) => {
                exthdr.offset.get_or_insert(0);
                exthdr.len.get_or_insert(0);
                exthdr.flags.get_or_insert_default();
                exthdr.op.get_or_insert(ExthdrOp::IPV6);
                exthdr.sreg.take_if(|_| exthdr.dreg.is_some());
            }
            Self::Fib(fib) => {
                // The kernel stores a byte.
                fib.result = fib.result.map(|result| FibResult(result.0 & 0xff));
            }
            Self::Fwd(fwd) => {
                fwd.nfproto.take_if(|_| fwd.sreg_addr.is_none());
            }
            Self::Hash(hash) => {
                (hash.set_name, hash.set_id) = (None, None);
                hash.offset.take_if(|offset| *offset == 0);
                if *hash.hash_type.get_or_insert(HashType::JENKINS) == HashType::SYM {
                    (hash.sreg, hash.len, hash.seed) = (None, None, None);
                }
            }
            Self::Inner(inner) => {
                inner.hdrsize = inner.hdrsize.map(|size| size & 0xff); // the kernel stores a byte
            }
            Self::Last(last) => {
                let is_set = *last.set.get_or_insert(0) != 0;
                last.msecs = Some(last.msecs.filter(|_| is_set).unwrap_or(0));
            }
            Self::Limit(limit) => {
                let of_packets = *limit.limit_type.get_or_insert(LimitType::PACKETS);
                let burst = limit.burst.get_or_insert(0);
                if of_packets == LimitType::PACKETS && *burst == 0 {
                    *burst = BURST;
                }
                limit.flags.get_or_insert_default();
            }
            Self::Log(log) => {
                if let Some(prefix) = &mut log.prefix
                    && let Some(end) = prefix.find_byte(0)
                {
                    *prefix = BString::from(&prefix[..end]).into();
                }
                if log.group.is_some() {
                    (log.level, log.flags) = (None, None);
                    log.queue_threshold.take_if(|threshold| *threshold == 0);
                } else {
                    (log.snaplen, log.queue_threshold) = (None, None);
                    let level = log.level.unwrap_or(LogLevel::WARNING);
                    log.level = Some(LogLevel(level.0 & 0xff));
                    let flags = log.flags.unwrap_or_default().bits() & 0xff;
                    let flags = LogFlags::from_bits_retain(flags);
                    log.flags = Some(flags).filter(|flags| !flags.is_empty());
                }
            }
            Self::Lookup(lookup) => {
                lookup.set_id = None;
                lookup.flags.get_or_insert_default();
            }
            Self::Masq(masq) => {
                pair(&mut masq.proto_min, &mut masq.proto_max);
                masq.flags.take_if(|flags| flags.is_empty());
            }
            Self::Nat(nat) => {
                nat.family = nat.family.map(|family| family & 0xff); // the kernel stores a byte
                let mut flags = nat.flags.unwrap_or_default();
                if pair(&mut nat.addr_min, &mut nat.addr_max) {
                    flags |= NatRangeFlags::MAP_IPS;
                }
                if pair(&mut nat.proto_min, &mut nat.proto_max) {
                    flags |= NatRangeFlags::PROTO_SPECIFIED;
                }
                nat.flags = Some(flags).filter(|flags| !flags.is_empty());
            }
            Self::Numgen(numgen) => {
                (numgen.set_name, numgen.set_id) = (None, None);
                numgen.offset.get_or_insert(0);
            }
            Self::Objref(objref) => {
                if objref.set_sreg.is_some() && objref.set_name.is_some() {
                    (objref.imm_name, objref.imm_type) = (None, None);
                } else {
                    (objref.set_sreg, objref.set_name) = (None, None);
                }
                objref.set_id = None;
            }
            Self::Osf(osf) => {
                osf.ttl.get_or_insert_default();
                osf.flags.get_or_insert_default();
            }
            Self::Payload(payload) if payload.sreg.is_some() => {
                payload.checksum_type.get_or_insert(ChecksumType::NONE);
                payload.checksum_offset.get_or_insert(0);
                payload.checksum_flags.get_or_insert_default();
            }
            Self::Payload(payload) => {
                (payload.checksum_type, payload.checksum_offset) = (None, None);
                payload.checksum_flags = None;
            }
            Self::Queue(queue) => {
                queue.flags.get_or_insert_default();
                match queue.sreg_qnum {
                    Some(_) => queue.total = None,
                    None => _ = queue.total.get_or_insert(1),
                }
            }
            Self::Quota(quota) => {
                let consumed = *quota.consumed.get_or_insert(0);
                let mut flags = quota.flags.unwrap_or_default();
                flags.set(
                    QuotaFlags::DEPLETED,
                    quota.bytes.is_some_and(|bytes| consumed >= bytes),
                );
                quota.flags = Some(flags);
            }
            Self::Redir(redir) => {
                let has_ports = pair(&mut redir.proto_min, &mut redir.proto_max);
                let flags = redir.flags.unwrap_or(match has_ports {
                    true => NatRangeFlags::PROTO_SPECIFIED,
                    false => NatRangeFlags::empty(),
                });
                redir.flags = Some(flags).filter(|flags| !flags.is_empty());
            }
            Self::Reject(reject) => {
                let has_code = reject.reject_type != Some(RejectType::TCP_RST);
                reject.icmp_code.take_if(|_| !has_code);
            }
            Self::Socket(socket) => {
                let has_level = socket.key == Some(SocketKey::CGROUPV2);
                socket.level.take_if(|_| !has_level);
            }
            Self::Synproxy(synproxy) => {
                synproxy.mss.get_or_insert(0);
                synproxy.wscale.get_or_insert(0);
                synproxy.flags.get_or_insert_default();
            }
            Self::Tunnel(tunnel) => {
                tunnel.mode.get_or_insert(TunnelMode::NONE);
            }
            Self::Xfrm(xfrm) => {
                xfrm.spnum.get_or_insert(0);
            }
            _ => {}
        }
    }

    /// Removes what the kernel never lists, from a normal form: two rules may differ in it, but no listing shows that.
    pub(in crate::nft) fn forget_unlisted(&mut self) {
        if let Self::Bitwise(bitwise) = self
            && !matches!(
                bitwise.op,
                Some(BitwiseOp::MASK_XOR | BitwiseOp::LSHIFT | BitwiseOp::RSHIFT)
            )
            && let Some(Data::Value(value)) = &mut bitwise.data
        {
            // Linux 6.18 lists 4 bytes of it, whatever its length is.
            value.to_mut().resize(4, 0);
        }
    }
}

/// Completes a range of registers: a missing end equals the start, and without a start there is no range. Returns
/// `true` if there is a range.
fn pair(min: &mut Option<Register>, max: &mut Option<Register>) -> bool {
    *max = match *min {
        None => None,
        Some(min) => max.or(Some(min)),
    };
    min.is_some()
}
