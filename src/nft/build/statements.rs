//! Statements other than matches: counters, limits, logging, marks, rejections.

use super::sets::SetName;
use super::value::ByteOrder;
use super::{
    Build, BuildError, Generator, IcmpCode, Icmpv6Code, Jhash, Key, Protocol, Selector, Transport,
    Version, ct, meta,
};
use crate::nft::expr::{
    Bitwise, Connlimit, Counter, Ct, CtKey, Immediate, Limit, LimitFlags, LimitType, Log, Meta,
    MetaKey, Notrack, ObjectType, Objref, Quota, Register, Reject, RejectIcmpxCode,
};
use crate::nft::name::Name;
use crate::nft::{Family, Rule};

/// A rate: `10/minute burst 5 packets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    rate: u64,
    unit: u64,
    /// `None` is nft's default: 5 packets, or no bytes.
    burst: Option<u32>,
    bytes: bool,
    over: bool,
}

impl Rate {
    const fn new(rate: u64, unit: u64) -> Self {
        Self {
            rate,
            unit,
            burst: None,
            bytes: false,
            over: false,
        }
    }

    /// Creates a rate in packets per second.
    #[must_use]
    pub const fn per_second(rate: u64) -> Self {
        Self::new(rate, 1)
    }

    /// Creates a rate in packets per minute.
    #[must_use]
    pub const fn per_minute(rate: u64) -> Self {
        Self::new(rate, 60)
    }

    /// Creates a rate in packets per hour.
    #[must_use]
    pub const fn per_hour(rate: u64) -> Self {
        Self::new(rate, 3_600)
    }

    /// Creates a rate in packets per day.
    #[must_use]
    pub const fn per_day(rate: u64) -> Self {
        Self::new(rate, 86_400)
    }

    /// Creates a rate in packets per week.
    #[must_use]
    pub const fn per_week(rate: u64) -> Self {
        Self::new(rate, 604_800)
    }

    /// Counts bytes instead of packets.
    #[must_use]
    pub const fn bytes(mut self) -> Self {
        self.bytes = true;
        self
    }

    /// Sets the number of packets or bytes that may exceed the rate at once. The default is 5 packets, or no bytes.
    #[must_use]
    pub const fn burst(mut self, burst: u32) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Matches when the rate is exceeded: `over`.
    #[must_use]
    pub const fn over(mut self) -> Self {
        self.over = true;
        self
    }
}

impl From<Rate> for Limit {
    fn from(rate: Rate) -> Self {
        let burst = rate.burst.unwrap_or(if rate.bytes { 0 } else { 5 });
        Self {
            limit_type: Some(if rate.bytes {
                LimitType::BYTES
            } else {
                LimitType::PACKETS
            }),
            flags: Some(if rate.over {
                LimitFlags::INV
            } else {
                LimitFlags::empty()
            }),
            ..Self::packets(rate.rate, rate.unit, burst)
        }
    }
}

/// A bitwise operation on a number: see [`or`], [`and`], [`xor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitOp {
    mask: u32,
    xor: u32,
}

/// Sets these bits: `meta mark set meta mark | bits`.
#[must_use]
pub const fn or(bits: u32) -> BitOp {
    BitOp {
        mask: !bits,
        xor: bits,
    }
}

/// Clears all bits but these: `meta mark set meta mark & bits`.
#[must_use]
pub const fn and(bits: u32) -> BitOp {
    BitOp { mask: bits, xor: 0 }
}

/// Inverts these bits: `meta mark set meta mark ^ bits`.
#[must_use]
pub const fn xor(bits: u32) -> BitOp {
    BitOp {
        mask: u32::MAX,
        xor: bits,
    }
}

/// Applies [`and`], then [`xor`]: `meta mark set meta mark & mask ^ bits`. If the mask clears
/// `bits`, this sets them.
#[must_use]
pub const fn and_xor(mask: u32, bits: u32) -> BitOp {
    BitOp { mask, xor: bits }
}

/// The new value of a mark: a constant (`7`), a change of the mark's own bits ([`or`], [`and`],
/// [`xor`]), another field ([`copy`]), a generated number (such as [`jhash`](super::jhash)), or the
/// value that a map has for a key ([`map`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegerExpr<'a>(Kind<'a>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind<'a> {
    Constant(u32),
    Own(BitOp),
    Key(Key<'a>, Option<BitOp>),
    Map(Key<'a>, SetName<'a>, Option<BitOp>),
}

impl From<u32> for IntegerExpr<'_> {
    fn from(number: u32) -> Self {
        Self(Kind::Constant(number))
    }
}

impl From<BitOp> for IntegerExpr<'_> {
    fn from(bits: BitOp) -> Self {
        Self(Kind::Own(bits))
    }
}

impl From<Generator> for IntegerExpr<'_> {
    fn from(number: Generator) -> Self {
        Self(Kind::Key(number.into(), None))
    }
}

impl<'a> From<Jhash<'a>> for IntegerExpr<'a> {
    fn from(number: Jhash<'a>) -> Self {
        Self(Kind::Key(number.into(), None))
    }
}

/// Copies the value of a field, such as a mark: `meta mark set ct mark`.
#[must_use]
pub fn copy<'a>(field: Selector) -> IntegerExpr<'a> {
    IntegerExpr(Kind::Key(field.into(), None))
}

/// Looks up the value that a map has for a key: `meta mark set ip saddr map @marks`.
pub fn map<'a>(key: impl Into<Key<'a>>, map: impl Into<SetName<'a>>) -> IntegerExpr<'a> {
    IntegerExpr(Kind::Map(key.into(), map.into(), None))
}

impl BitOp {
    /// Combines two operations, this one first: `(x & mask ^ xor) & other.mask ^ other.xor`.
    const fn then(self, other: Self) -> Self {
        Self {
            mask: self.mask & other.mask,
            xor: self.xor & other.mask ^ other.xor,
        }
    }
}

impl IntegerExpr<'_> {
    /// Changes some bits, after the changes of earlier calls: `copy(ct::MARK).with(and(0xff))`.
    #[must_use]
    pub fn with(mut self, bits: BitOp) -> Self {
        match &mut self.0 {
            Kind::Key(_, with) | Kind::Map(_, _, with) => {
                *with = Some(with.map_or(bits, |first| first.then(bits)));
            }
            Kind::Own(own) => *own = own.then(bits),
            Kind::Constant(number) => *number = *number & bits.mask ^ bits.xor,
        }
        self
    }
}

/// The response to the sender of a rejected packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectWith {
    /// ICMP; only for IPv4 packets.
    Icmp(IcmpCode),
    /// ICMPv6; only for IPv6 packets.
    Icmpv6(Icmpv6Code),
    /// ICMP or ICMPv6, depending on the packet; only in tables of both versions.
    Icmpx(RejectIcmpxCode),
    /// A TCP reset; only for TCP packets.
    TcpReset,
}

impl<'a> Build<'a> {
    /// Counts packets and bytes.
    pub fn counter(self) -> Self {
        self.expression(&Counter::default())
    }

    /// Counts packets and bytes, starting from these numbers: `counter packets 5 bytes 420`.
    pub fn counter_from(self, packets: u64, bytes: u64) -> Self {
        self.expression(&Counter::new(packets, bytes))
    }

    /// Applies a stateful object of the table: `counter name "web"`, `quota name …`, `limit name …`.
    pub fn object<'n>(self, object_type: ObjectType, name: impl Into<Name<'n>>) -> Self {
        self.expression(&Objref::named(object_type, name))
    }

    /// Matches while a rate is not exceeded, or, with [`Rate::over`], when it is exceeded.
    pub fn limit(mut self, limit: impl Into<Limit>) -> Self {
        let limit = limit.into();
        if limit.rate == Some(0) || limit.unit == Some(0) {
            self.fail(BuildError::Rate);
        }
        self.push(&limit);
        self
    }

    /// Matches until a number of bytes has passed ([`Quota::until`]), or after that
    /// ([`Quota::over`]).
    pub fn quota(self, quota: &Quota) -> Self {
        self.expression(quota)
    }

    /// Matches when there are more connections than this: `ct count over`.
    pub fn ct_count_over(self, connections: u32) -> Self {
        self.expression(&Connlimit::over(connections))
    }

    /// Exempts the packet from connection tracking.
    pub fn notrack(self) -> Self {
        self.expression(&Notrack::new())
    }

    /// Logs the packet to the kernel log with this prefix.
    pub fn log_prefix(self, prefix: &str) -> Self {
        self.log(&Log::prefix(prefix))
    }

    /// Logs the packet to the kernel log, or passes it to a log group.
    ///
    /// ```
    /// use chainwright::nft::build::Build;
    /// use chainwright::nft::expr::{Log, LogLevel};
    /// use chainwright::nft::Family;
    ///
    /// // log prefix "web: " level debug
    /// let line = Log { level: Some(LogLevel::DEBUG), ..Log::prefix("web: ") };
    /// // log group 5 snaplen 128
    /// let group = Log { group: Some(5), snaplen: Some(128), ..Log::default() };
    /// let rule = Build::new(Family::IP, "filter", "input").log(&line).log(&group).finish()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    pub fn log(mut self, log: &Log<'_>) -> Self {
        let line = log.level.is_some() || log.flags.is_some();
        let group = log.group.is_some() || log.snaplen.is_some() || log.queue_threshold.is_some();
        if line && group {
            self.fail(BuildError::LogGroup);
        }
        if let Some(prefix) = &log.prefix
            && (prefix.len() > 127 || prefix.contains(&0))
        {
            self.fail(BuildError::LogPrefix);
        }
        self.push(log);
        self
    }

    /// Sets the packet's mark.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, and, copy, ct, masked, not, or, xor};
    /// use chainwright::nft::Family;
    ///
    /// let rule = || Build::new(Family::IP, "mangle", "output");
    /// // meta mark set 0x1
    /// rule().meta_mark_set(1).finish()?;
    /// // meta mark set meta mark | 0x4000
    /// rule().meta_mark_set(or(0x4000)).finish()?;
    /// // meta mark & 0x4000 != 0 meta mark set meta mark ^ 0x4000
    /// rule().meta_mark(not(masked(0, 0x4000))).meta_mark_set(xor(0x4000)).finish()?;
    /// // meta mark set ct mark & 0xff
    /// rule().meta_mark_set(copy(ct::MARK).with(and(0xff))).finish()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    pub fn meta_mark_set<'m>(mut self, number: impl Into<IntegerExpr<'m>>) -> Self {
        if self.number(&meta::MARK, number.into()) {
            self.push(&Meta::set(MetaKey::MARK, Register::R1));
        }
        self
    }

    /// Sets the packet's priority, a traffic control class: `0x1_0005` is `1:5`.
    pub fn meta_priority_set<'m>(mut self, number: impl Into<IntegerExpr<'m>>) -> Self {
        if self.number(&meta::PRIORITY, number.into()) {
            self.push(&Meta::set(MetaKey::PRIORITY, Register::R1));
        }
        self
    }

    /// Sets the connection's mark, like [`meta_mark_set`](Self::meta_mark_set) for the packet's
    /// mark.
    pub fn ct_mark_set<'m>(mut self, number: impl Into<IntegerExpr<'m>>) -> Self {
        if self.number(&ct::MARK, number.into()) {
            self.push(&Ct::set(CtKey::MARK, Register::R1));
        }
        self
    }

    /// Enables or disables tracing of the packet: `meta nftrace set 1`.
    pub fn meta_nftrace_set(mut self, traced: bool) -> Self {
        self.push(&Immediate::value(Register::R1, &[traced.into()]));
        self.push(&Meta::set(MetaKey::NFTRACE, Register::R1));
        self
    }

    /// Loads a number of four bytes into the first register; returns false on an error.
    fn number(&mut self, own: &Selector, number: IntegerExpr<'_>) -> bool {
        let (key, bits) = match number.0 {
            Kind::Constant(number) => {
                self.push(&Immediate::value(Register::R1, &number.to_ne_bytes()));
                return true;
            }
            Kind::Own(bits) => ((*own).into(), Some(bits)),
            Kind::Key(key, bits) => (key, bits),
            Kind::Map(key, map, bits) => {
                self.load_from_map(&key, &map, Register::R1);
                self.change(bits);
                return true;
            }
        };
        if !self.add_key_dependencies(&key) {
            return false;
        }
        let length = key.length();
        if length != 4 || key.order() != ByteOrder::Host {
            self.fail(BuildError::ValueLength {
                what: own.name(),
                length,
                expected: 4,
            });
            return false;
        }
        self.load_key(&key, 0);
        self.change(bits);
        true
    }

    /// Applies a bitwise operation to the first register.
    fn change(&mut self, bits: Option<BitOp>) {
        if let Some(BitOp { mask, xor }) = bits {
            let (mask, xor) = (mask.to_ne_bytes(), xor.to_ne_bytes());
            self.push(&Bitwise::mask_xor(Register::R1, &mask, &xor));
        }
    }

    /// Rejects the packet with port unreachable: by ICMP in an `ip` table or after a match of IPv4,
    /// by ICMPv6 in an `ip6` table or after a match of IPv6, otherwise by either, depending on the
    /// packet.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn reject(mut self) -> Result<Rule<'a>, BuildError> {
        let reject = match (self.rule.family, self.network) {
            (_, Some(Version::V4)) => Reject::icmp(IcmpCode::PORT_UNREACHABLE.0),
            (_, Some(Version::V6)) => Reject::icmp(Icmpv6Code::PORT_UNREACHABLE.0),
            (Family::INET | Family::BRIDGE | Family::NETDEV, None) => {
                Reject::icmpx(RejectIcmpxCode::PORT_UNREACH)
            }
            (_, None) => {
                self.no_family("reject");
                return self.finish();
            }
        };
        self.push(&reject);
        self.finish()
    }

    /// Rejects the packet.
    ///
    /// Like nft, this limits the whole rule to packets that this rejection applies to, by a match
    /// inserted before the rule's first one.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, Icmpv6Code, RejectWith};
    /// use chainwright::nft::Family;
    ///
    /// // tcp dport 22 reject with tcp reset
    /// Build::new(Family::INET, "filter", "input").tcp_dport(22).reject_with(RejectWith::TcpReset)?;
    /// // ICMPv6 cannot reject an IPv4 packet.
    /// let mistaken = Build::new(Family::IP, "filter", "input")
    ///     .reject_with(RejectWith::Icmpv6(Icmpv6Code::NO_ROUTE));
    /// assert!(mistaken.is_err());
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn reject_with(mut self, with: RejectWith) -> Result<Rule<'a>, BuildError> {
        let reject = match with {
            RejectWith::Icmp(code) => {
                self.reject_network(Version::V4, "reject with icmp");
                Reject::icmp(code.0)
            }
            RejectWith::Icmpv6(code) => {
                self.reject_network(Version::V6, "reject with icmpv6");
                Reject::icmp(code.0)
            }
            RejectWith::Icmpx(code) => {
                if !matches!(
                    self.rule.family,
                    Family::INET | Family::BRIDGE | Family::NETDEV
                ) {
                    self.no_family("reject with icmpx");
                }
                Reject::icmpx(code)
            }
            RejectWith::TcpReset => {
                const WHAT: &str = "reject with tcp reset";
                if self.rule.family == Family::ARP {
                    self.no_family(WHAT);
                } else if let Transport::One(_) = self.transport {
                    self.add_transport_dependency(Protocol::TCP.0, WHAT);
                } else {
                    self.prepend(|this| {
                        this.add_transport_dependency(Protocol::TCP.0, WHAT);
                    });
                }
                Reject {
                    icmp_code: Some(0), // without effect, but nft writes it
                    ..Reject::tcp_reset()
                }
            }
        };
        self.push(&reject);
        self.finish()
    }

    fn reject_network(&mut self, version: Version, what: &'static str) {
        match self.network {
            Some(_) => {
                self.add_network_dependency(version, what);
            }
            None => self.prepend(|this| {
                this.add_network_dependency(version, what);
            }),
        }
    }
}
