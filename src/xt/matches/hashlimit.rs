//! `-m hashlimit`: compares the rate of packets or bytes per host, network, port or connection.
//!
//! Data of revision 3 (`struct xt_hashlimit_mtinfo3`, `linux/netfilter/xt_hashlimit.h`), of revision 2,
//! which has no interval, and of revision 1, which also has narrower fields.

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_hashlimit::{
    XT_HASHLIMIT_BYTE_SHIFT, XT_HASHLIMIT_BYTES, XT_HASHLIMIT_HASH_DIP, XT_HASHLIMIT_HASH_DPT,
    XT_HASHLIMIT_HASH_SIP, XT_HASHLIMIT_HASH_SPT, XT_HASHLIMIT_INVERT, XT_HASHLIMIT_RATE_MATCH,
    XT_HASHLIMIT_SCALE, hashlimit_cfg3, xt_hashlimit_mtinfo1, xt_hashlimit_mtinfo2,
    xt_hashlimit_mtinfo3,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, network, number, number_within, one_of, prefix_length, width};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, Name, OptionError, OptionGroup,
    OptionSpec, Text, rate, read_struct, write_struct,
};

/// The name of a table of rates: 1 to 254 bytes, used as a file name in `/proc/net/ipt_hashlimit`. Rules
/// with the same name share the table.
pub type HashlimitName = Name<254>;

/// Units per second of the time between two packets, since revision 2 (`XT_HASHLIMIT_SCALE_v2`).
const SCALE: u32 = 1_000_000;
/// Default and maximum of the burst in packets.
const BURST: (u64, u64) = (5, 1_000_000);
/// Default interval of the garbage collection, in milliseconds.
const GC_INTERVAL: u32 = 1000;
/// Default lifetime of entries that count bytes, in milliseconds: without and with a burst.
const BYTES_EXPIRE: (u32, u32) = (15_000, 60_000);

bitflags::bitflags! {
    /// The packet fields that form the key of a rate.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct HashlimitKeys: u32 {
        /// The destination address.
        const DESTINATION_IP = XT_HASHLIMIT_HASH_DIP;
        /// The destination port.
        const DESTINATION_PORT = XT_HASHLIMIT_HASH_DPT;
        /// The source address.
        const SOURCE_IP = XT_HASHLIMIT_HASH_SIP;
        /// The source port.
        const SOURCE_PORT = XT_HASHLIMIT_HASH_SPT;
    }
}

/// In the order of iptables-save.
const KEYS: [(&str, HashlimitKeys); 4] = [
    ("srcip", HashlimitKeys::SOURCE_IP),
    ("srcport", HashlimitKeys::SOURCE_PORT),
    ("dstip", HashlimitKeys::DESTINATION_IP),
    ("dstport", HashlimitKeys::DESTINATION_PORT),
];

/// A rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashlimitRate {
    /// In packets.
    Packets {
        /// Time between two packets, in microseconds; not 0.
        period: u64,
        /// Number of packets in a burst.
        burst: u64,
    },
    /// In bytes.
    Bytes {
        /// The cost of 16 bytes: (2³² − 1) / (bytes per second / 16 + 1); from 1 to 2³² − 1.
        cost: u32,
        /// Burst in seconds of the rate; 0 if not given.
        burst: u64,
    },
}

/// `-m hashlimit`: compares the rate of packets or bytes per host, network, port or connection.
///
/// Compares the rate of all packets with the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hashlimit {
    /// The table that stores the rates.
    pub name: HashlimitName,
    /// The rate.
    pub rate: HashlimitRate,
    /// Whether packets above the rate match, instead of packets up to the rate.
    pub above: bool,
    /// The fields of the key; if empty, all packets share one rate.
    pub keys: HashlimitKeys,
    /// Prefix length for the source address; `None` for the full address.
    pub source_prefix: Option<u8>,
    /// Prefix length for the destination address; `None` for the full address.
    pub destination_prefix: Option<u8>,
    /// Number of buckets of the table; 0 for the kernel's default.
    pub buckets: u32,
    /// Maximum number of entries of the table; 0 for the kernel's default.
    pub max: u32,
    /// Interval of the garbage collection, in milliseconds.
    pub gc_interval: u32,
    /// Milliseconds after which an unused entry expires.
    pub expire: u32,
    /// Interval for measuring the rate without limiting it, in seconds (`--hashlimit-rate-match`); `None`
    /// to limit.
    pub interval: Option<u32>,
}

/// Returns the bytes per second for a cost.
fn bytes_of(cost: u32) -> u64 {
    let sixteenths = u32::MAX.checked_div(cost).unwrap_or(u32::MAX);
    u64::from(sixteenths.saturating_sub(1)) << XT_HASHLIMIT_BYTE_SHIFT
}

/// Returns the cost for a rate in bytes per second; `None` if it is less than 1.
fn cost_of(bytes: u64) -> Option<u32> {
    let cost = u64::from(u32::MAX) / ((bytes >> XT_HASHLIMIT_BYTE_SHIFT) + 1);
    u32::try_from(cost).ok().filter(|cost| *cost > 0)
}

impl Extension for Hashlimit {
    const NAME: &'static str = "hashlimit";
    const REVISION: u8 = 3;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("hashlimit-upto").inverts(),
        OptionSpec::one("hashlimit-above").inverts(),
        OptionSpec::one("hashlimit-upto").inverts().or("hashlimit"),
        OptionSpec::one("hashlimit-srcmask"),
        OptionSpec::one("hashlimit-dstmask"),
        OptionSpec::one("hashlimit-burst"),
        OptionSpec::one("hashlimit-htable-size"),
        OptionSpec::one("hashlimit-htable-max"),
        OptionSpec::one("hashlimit-htable-gcinterval"),
        OptionSpec::one("hashlimit-htable-expire"),
        OptionSpec::one("hashlimit-mode"),
        OptionSpec::one("hashlimit-name").required(),
        OptionSpec::switch("hashlimit-rate-match"),
        OptionSpec::one("hashlimit-rate-interval"),
    ];
    const GROUPS: &'static [OptionGroup] =
        &[OptionGroup::one_of(&["hashlimit-upto", "hashlimit-above"])];
    const DIFFERENCES: &'static [Difference] = &[Difference::refused(
        "-m hashlimit --hashlimit-upto 4b --hashlimit-name a",
        "-m hashlimit --hashlimit-upto 4/sec --hashlimit-burst 5 --hashlimit-name a",
        "iptables misreads bytes without a unit of time as packets.",
    )];
    const HAS_EFFECTS: bool = true;

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        // The parameters in revision 3's form.
        let mut cfg = hashlimit_cfg3::new_zeroed();
        macro_rules! take {
            ($old:expr) => {{
                let old = $old;
                (cfg.avg, cfg.burst) = (old.avg.into(), old.burst.into());
                (cfg.mode, cfg.size, cfg.max) = (old.mode, old.size, old.max);
                (cfg.gc_interval, cfg.expire) = (old.gc_interval, old.expire);
                (cfg.srcmask, cfg.dstmask) = (old.srcmask, old.dstmask);
            }};
        }
        let mut scale = SCALE;
        let name = match revision {
            1 => {
                let info: xt_hashlimit_mtinfo1 = read_struct(info)?;
                take!(info.cfg);
                scale = XT_HASHLIMIT_SCALE;
                Name::from_field(&info.name)?
            }
            2 => {
                let info: xt_hashlimit_mtinfo2 = read_struct(info)?;
                take!(info.cfg);
                Name::from_field(&info.name)?
            }
            3 => {
                let info: xt_hashlimit_mtinfo3 = read_struct(info)?;
                take!(info.cfg);
                cfg.interval = info.cfg.interval;
                Name::from_field(&info.name)?
            }
            _ => return None,
        };
        let flags = XT_HASHLIMIT_INVERT
            | XT_HASHLIMIT_BYTES
            | if revision == 3 {
                XT_HASHLIMIT_RATE_MATCH
            } else {
                0
            };
        let prefix = |length: u8| match u32::from(length).cmp(&width(family)) {
            std::cmp::Ordering::Less => Some(Some(length)),
            std::cmp::Ordering::Equal => Some(None),
            std::cmp::Ordering::Greater => None,
        };
        let rate = if cfg.mode & XT_HASHLIMIT_BYTES == 0 {
            HashlimitRate::Packets {
                // The text cannot express another time between packets.
                period: rate::rescale(cfg.avg, scale, SCALE)?,
                burst: cfg.burst,
            }
        } else {
            let cost = u32::try_from(cfg.avg).ok().filter(|cost| *cost != 0)?;
            // The text cannot express a burst for less than 16 bytes per second, a burst of more bytes than
            // fit into a u64, or another cost.
            let bytes = bytes_of(cost);
            let all = bytes.saturating_mul(cfg.burst);
            let has_text = cfg.burst == 0 || in_seconds(all, cost) == Ok(cfg.burst);
            if !has_text || cost_of(bytes.max(1)) != Some(cost) {
                return None;
            }
            HashlimitRate::Bytes {
                cost,
                burst: cfg.burst,
            }
        };
        let measures = cfg.mode & flags & XT_HASHLIMIT_RATE_MATCH != 0;
        if measures {
            // A measured rate is printed per second, for any interval.
            let in_a_second = match rate {
                HashlimitRate::Packets { period, .. } => rate::of(period, SCALE).1 == 1,
                HashlimitRate::Bytes { .. } => true,
            };
            if cfg.interval == 0 || !in_a_second {
                return None;
            }
        }
        Some(Self {
            name,
            rate,
            above: cfg.mode & XT_HASHLIMIT_INVERT != 0,
            keys: HashlimitKeys::from_bits(cfg.mode & !flags)?,
            source_prefix: prefix(cfg.srcmask)?,
            destination_prefix: prefix(cfg.dstmask)?,
            buckets: cfg.size,
            max: cfg.max,
            gc_interval: cfg.gc_interval,
            expire: cfg.expire,
            interval: measures.then_some(cfg.interval),
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_hashlimit_mtinfo3::new_zeroed();
        info.name = pack::text("hashlimit-name", self.name.as_bytes())?;
        let cfg = &mut info.cfg;
        let bytes;
        (bytes, cfg.avg, cfg.burst) = match self.rate {
            HashlimitRate::Packets { period, burst } => (false, period, burst),
            HashlimitRate::Bytes { cost, burst } => (true, cost.into(), burst),
        };
        cfg.mode = pack::flags("hashlimit-mode", self.keys)?;
        for (set, flag) in [
            (self.above, XT_HASHLIMIT_INVERT),
            (bytes, XT_HASHLIMIT_BYTES),
            (self.interval.is_some(), XT_HASHLIMIT_RATE_MATCH),
        ] {
            cfg.mode |= if set { flag } else { 0 };
        }
        let whole = if family == Family::Ipv4 { 32 } else { 128 };
        cfg.srcmask = self.source_prefix.unwrap_or(whole);
        cfg.dstmask = self.destination_prefix.unwrap_or(whole);
        (cfg.size, cfg.max) = (self.buckets, self.max);
        (cfg.gc_interval, cfg.expire) = (self.gc_interval, self.expire);
        cfg.interval = self.interval.unwrap_or_default();
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find = |option| GivenOption::find(given, option);
        let limit = Self::GROUPS[0].find(given)?;
        let above = limit.invert != (limit.option == "hashlimit-above");
        let name = GivenOption::find_required(given, "hashlimit-name")?;
        let table: HashlimitName = name.parse(Name::parse)?;
        if matches!(table.as_bytes(), b"." | b"..") || table.as_bytes().contains(&b'/') {
            return Err(name.error("a table name must be a valid name of a file in /proc"));
        }
        let burst = find("hashlimit-burst");
        let (rate, unit, expire) = match limit.parse(Amount::parse)? {
            Amount::Packets(period, unit) => {
                let burst = match burst {
                    None => BURST.0,
                    Some(burst) => burst
                        .parse(|value| size(value).and_then(|burst| in_packets(value, burst)))?,
                };
                (HashlimitRate::Packets { period, burst }, unit, unit * 1000)
            }
            Amount::Bytes(cost) => {
                let burst = burst.map(|burst| {
                    burst.parse(|value| size(value).and_then(|burst| in_seconds(burst, cost)))
                });
                let burst = burst.transpose()?;
                let expire = match burst {
                    None => BYTES_EXPIRE.0,
                    Some(_) => BYTES_EXPIRE.1,
                };
                let burst = burst.unwrap_or_default();
                (HashlimitRate::Bytes { cost, burst }, 1, expire)
            }
        };
        let mut hashlimit = Self {
            name: table,
            rate,
            above,
            keys: HashlimitKeys::empty(),
            source_prefix: None,
            destination_prefix: None,
            buckets: 0,
            max: 0,
            gc_interval: GC_INTERVAL,
            expire,
            interval: None,
        };
        let prefix = |value: &BStr| prefix(value, context.family);
        let mut interval = None;
        for one in given {
            match one.option {
                "hashlimit-mode" => hashlimit.keys = one.parse(keys)?,
                "hashlimit-srcmask" => hashlimit.source_prefix = one.parse(prefix)?,
                "hashlimit-dstmask" => hashlimit.destination_prefix = one.parse(prefix)?,
                "hashlimit-htable-size" => hashlimit.buckets = one.parse(number)?,
                "hashlimit-htable-max" => hashlimit.max = one.parse(number)?,
                "hashlimit-htable-gcinterval" => hashlimit.gc_interval = one.parse(number)?,
                "hashlimit-htable-expire" => hashlimit.expire = one.parse(number)?,
                "hashlimit-rate-interval" => {
                    interval = Some(one.parse(|v| number_within(v, 1..=i32::MAX as u32))?);
                }
                _ => {}
            }
        }
        // Without --hashlimit-rate-match the interval has no effect.
        if find("hashlimit-rate-match").is_some() {
            hashlimit.interval = Some(interval.unwrap_or(unit));
            if let HashlimitRate::Packets { period, .. } = &mut hashlimit.rate {
                // The kernel compares the rate with the packets of an interval.
                *period /= u64::from(unit);
                if *period == 0 {
                    return Err(limit.error("the rate is too high to be measured"));
                }
            }
        }
        Ok(hashlimit)
    }

    fn print(&self, text: &mut Text) {
        text.push(if self.above {
            " --hashlimit-above"
        } else {
            " --hashlimit-upto"
        });
        let expire = self.print_rate(text, " --hashlimit-burst ");
        if !self.keys.is_empty() {
            text.push(" --hashlimit-mode");
            self.print_keys(text, ",");
        }
        text.push(" --hashlimit-name").name(&self.name);
        self.print_rest(text, "hashlimit-", expire);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" limit:")
            .push(if self.above { " above" } else { " up to" });
        let expire = self.print_rate(text, " burst ");
        if !self.keys.is_empty() {
            text.push(" mode");
            self.print_keys(text, "-");
        }
        text.bare(|text| self.print_rest(text, "", expire));
    }
}

impl Hashlimit {
    /// Appends the rate, and the burst with this option. Returns the default lifetime of entries for it.
    fn print_rate(&self, text: &mut Text, burst_option: &str) -> u32 {
        match self.rate {
            HashlimitRate::Packets { period, burst } => {
                let unit = rate::print(period, SCALE, text);
                text.push(burst_option).number(burst);
                unit * 1000
            }
            HashlimitRate::Bytes { cost, burst } => {
                let bytes = bytes_of(cost);
                text.push(" ");
                print_size(bytes.max(1), |less| cost_of(less) == Some(cost), text);
                text.push("/s");
                if burst == 0 {
                    BYTES_EXPIRE.0
                } else {
                    text.push(burst_option);
                    let all = bytes.saturating_mul(burst);
                    print_size(all, |less| in_seconds(less, cost) == Ok(burst), text);
                    BYTES_EXPIRE.1
                }
            }
        }
    }

    /// Appends the fields of the key.
    fn print_keys(&self, text: &mut Text, between: &str) {
        let mut separator = " ";
        for (name, key) in KEYS {
            if self.keys.contains(key) {
                text.push(separator).push(name);
                separator = between;
            }
        }
    }

    /// Appends the options with values other than the default.
    fn print_rest(&self, text: &mut Text, prefix: &str, expire: u32) {
        let mut option = |name: &str, value: Option<u32>| {
            text.option(false, prefix).push(name);
            if let Some(value) = value {
                text.push(" ").number(value);
            }
        };
        for (name, value, default) in [
            ("htable-size", self.buckets, 0),
            ("htable-max", self.max, 0),
            ("htable-gcinterval", self.gc_interval, GC_INTERVAL),
            ("htable-expire", self.expire, expire),
        ] {
            if value != default {
                option(name, Some(value));
            }
        }
        for (name, bits) in [
            ("srcmask", self.source_prefix),
            ("dstmask", self.destination_prefix),
        ] {
            if let Some(bits) = bits {
                option(name, Some(bits.into()));
            }
        }
        if let Some(interval) = self.interval {
            option("rate-match", None);
            if interval != 1 {
                option("rate-interval", Some(interval));
            }
        }
    }
}

/// The value of `--hashlimit-upto` and `--hashlimit-above`.
enum Amount {
    /// Time between two packets in microseconds, and the unit of the rate in seconds.
    Packets(u64, u32),
    /// The cost of 16 bytes.
    Bytes(u32),
}

impl Amount {
    fn parse(value: &BStr) -> Parsed<Self> {
        let bytes = value
            .split_once_str("/")
            .filter(|(amount, unit)| amount.ends_with(b"b") && b"second".starts_with(unit))
            .filter(|(_, unit)| !unit.is_empty());
        let Some((amount, _)) = bytes else {
            return match rate::parse(value, SCALE) {
                Ok((period, unit)) => Ok(Self::Packets(period, unit)),
                Err(reason) => Err(format!("{reason}; of bytes, like 512b/s, 20kb/s or 3mb/s")),
            };
        };
        let bytes = size(amount.as_bstr())?;
        cost_of(bytes)
            .map(Self::Bytes)
            .ok_or_else(|| format!("`{value}` is more than the maximum of 65535mb/s"))
    }
}

/// Parses a number of at least 1, in units of 1024 with the suffix `k`, of 1024² with `m`; optionally
/// followed by a `b`.
fn size(value: &BStr) -> Parsed<u64> {
    if let Ok(number) = number::<u64>(value)
        && number > 0
    {
        return Ok(number);
    }
    let digits = value.strip_suffix(b"b").unwrap_or(value);
    let (digits, unit) = match digits {
        [digits @ .., b'k'] => (digits, 1024),
        [digits @ .., b'm'] => (digits, 1024 * 1024),
        digits => (digits, 1),
    };
    let number = number::<u64>(digits.as_bstr()).ok().filter(|n| *n > 0);
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| format!("`{value}` is not a number like 20, 512b, 20kb or 3mb"))
}

/// Parses a burst in packets.
fn in_packets(value: &BStr, burst: u64) -> Parsed<u64> {
    if burst > BURST.1 {
        return Err(format!("`{value}` is not a number from 1 to {}", BURST.1));
    }
    Ok(burst)
}

/// Converts a burst in bytes to seconds of the rate.
fn in_seconds(burst: u64, cost: u32) -> Parsed<u64> {
    let rate = bytes_of(cost);
    if burst < rate {
        return Err(format!("it is less than the rate: at least {rate}b"));
    }
    match burst.checked_div(rate) {
        None => Err("a rate below 16b/s cannot have a burst".to_owned()),
        Some(_) => Ok(burst.div_ceil(rate)),
    }
}

/// Appends a number of bytes in the largest unit, rounded down, for which `same` returns `true`.
fn print_size(bytes: u64, same: impl Fn(u64) -> bool, text: &mut Text) {
    let units = [(1024 * 1024, "mb"), (1024, "kb")];
    let fits = |unit: &&(u64, &str)| bytes >= unit.0 && same(bytes - bytes % unit.0);
    let (unit, name) = units.iter().find(fits).unwrap_or(&(1, "b"));
    text.number(bytes / unit).push(*name);
}

/// Parses keys separated by commas or `|`.
fn keys(value: &BStr) -> Parsed<HashlimitKeys> {
    let words = value.split(|byte| matches!(byte, b',' | b'|'));
    let words = words.filter(|word| !word.is_empty());
    words.map(|word| one_of(word.as_bstr(), &KEYS)).collect()
}

/// Parses a prefix length or a mask without gaps; `None` for all bits.
fn prefix(value: &BStr, family: Family) -> Parsed<Option<u8>> {
    let any = match family {
        Family::Ipv4 => "0.0.0.0/",
        Family::Ipv6 => "::/",
    };
    let most = width(family);
    let mask = network([any.as_bytes(), value].concat().as_slice().into(), family);
    let length = mask.ok().and_then(|(_, mask)| prefix_length(mask));
    let length = length.ok_or_else(|| {
        format!("`{value}` is neither a prefix length from 0 to {most} nor a mask of one")
    })?;
    Ok(u8::try_from(length).ok().filter(|_| length != most))
}

#[cfg(test)]
mod tests;
