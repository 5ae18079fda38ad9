//! Encodes a rule with the expressions that iptables-nft writes for it.

use std::net::IpAddr;

use bstr::{BString, ByteSlice};
use chainwright_sys::nf_tables::NFT_RULE_COMPAT_F_INV;

use super::{FRAGMENT_OFFSET, Header, header, ports};
use crate::iptables::{Address, Counters, Interface, KnownDifference, Protocol, Rule, Target};
use crate::nft::UnknownAttributes;
use crate::nft::expr::{
    self, Bitwise, Cmp, CmpOp, Counter, Immediate, Meta, MetaKey, Payload, PayloadBase, Register,
};
use crate::nft::{self, Compat};
use crate::xt::{self, Family};

/// The version of iptables whose encoding to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
#[allow(non_camel_case_types)]
pub enum Profile {
    /// The encoding of iptables 1.8.7: marks, ports and flags by xtables matches. Every version since 1.8.7
    /// reads it correctly.
    #[default]
    V1_8_7,
    /// The encoding of iptables 1.8.8 and 1.8.9: marks, ports and flags by nf_tables' own expressions,
    /// which older versions silently ignore.
    V1_8_8,
    /// The encoding of iptables 1.8.10 and newer: addresses come before interfaces, and the IPv4 protocol
    /// is compared in the header; 1.8.8 mistakes one for the other.
    V1_8_10,
}

impl Profile {
    /// Returns the profile of the given version of iptables, by its number after `1.8.`.
    #[must_use]
    pub const fn of_1_8(patch: u32) -> Self {
        match patch {
            ..=7 => Self::V1_8_7,
            8 | 9 => Self::V1_8_8,
            _ => Self::V1_8_10,
        }
    }
}

/// Differences from the encoding of the profile's iptables.
pub(in crate::iptables) const DIFFERENCES: &[KnownDifference] = &[
    KnownDifference {
        subject: "the form of rules",
        iptables: "that of its own version",
        chainwright: "by default that of 1.8.7",
        reason: "Every later version reads it completely; older ones ignore parts of the newer form.",
    },
    KnownDifference {
        subject: "`-i +`",
        iptables: "loads the name but compares nothing",
        chainwright: "writes nothing",
        reason: "It means the same.",
    },
    KnownDifference {
        subject: "`-j NFLOG --nflog-prefix` of more than 63 bytes",
        iptables: "keeps 127 from 1.8.8 on, 63 before",
        chainwright: "63 in the form of 1.8.7, 127 in the newer ones",
        reason: "The older form has no room for more.",
    },
];

/// The reason why a rule cannot be encoded.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unwritable {
    /// It compares an address of another family than its own.
    #[error("the rule compares {address}, which is not an address of its family")]
    Family {
        /// The address.
        address: IpAddr,
    },
    /// It compares with a name that no interface can have.
    #[error("invalid interface name {name:?}: it must have 1 to 15 bytes and no NUL")]
    Interface {
        /// The name.
        name: BString,
    },
    /// It matches no address: the negation of a mask of no bits.
    #[error("the rule matches no address: negated zero mask")]
    NoAddress,
    /// It matches fragments, which the IPv6 header does not have.
    #[error("only IPv4 headers have fragments; use the match frag for IPv6")]
    Fragment,
    /// An extension names a set that was not looked up (see [`Rule::resolve_sets`]), or has values that
    /// do not fit its data.
    #[error(transparent)]
    Extension(#[from] xt::EncodeError),
    /// It hands packets to queue 0 in the way that only the legacy tables have.
    #[error("nf_tables has no target QUEUE; use -j NFQUEUE")]
    Queue,
}

crate::debug_as_message!(Unwritable);

/// Encodes rules in a profile's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoder {
    /// The family of the rules.
    pub family: Family,
    /// The profile.
    pub profile: Profile,
}

/// Encodes a rule in the form of iptables 1.8.7, with counters at 0, like `Encoder` with the default
/// profile.
///
/// # Errors
/// [`Unwritable`]
pub fn encode<'a>(
    family: Family,
    table: &'a str,
    chain: &'a str,
    rule: &Rule,
) -> Result<nft::Rule<'a>, Unwritable> {
    let encoder = Encoder {
        family,
        profile: Profile::default(),
    };
    let mut encoded = nft::Rule::new(family.into(), table, chain);
    encoder.fill(&mut encoded, rule, Counters::default())?;
    Ok(encoded)
}

impl Encoder {
    /// Replaces the expressions of `encoded` by those of the rule with these counters; its
    /// table and chain are unchanged.
    ///
    /// # Errors
    /// [`Unwritable`]; the content of `encoded` is then undefined.
    pub fn fill(
        &self,
        encoded: &mut nft::Rule<'_>,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Unwritable> {
        encoded.clear();
        if self.profile < Profile::V1_8_10 {
            self.interfaces(encoded, rule)?;
            self.protocol(encoded, rule);
            self.addresses(encoded, rule)?;
        } else {
            self.addresses(encoded, rule)?;
            self.interfaces(encoded, rule)?;
            self.protocol(encoded, rule);
        }
        self.fragment(encoded, rule)?;
        let mut compat = false;
        let mut info = Vec::new();
        for extension in &rule.matches {
            if !self.native_match(encoded, extension) {
                let (name, revision) = extension.encode_into(self.family, &mut info)?;
                encoded.push(&expr::Match::new(name, revision.into(), &info[..]));
                compat = true;
            }
        }
        encoded.push(&Counter::from(counters));
        match &rule.target {
            Target::None => {}
            Target::Accept => drop(encoded.push(&Immediate::accept())),
            Target::Drop => drop(encoded.push(&Immediate::drop())),
            Target::Return => drop(encoded.push(&Immediate::return_())),
            Target::Queue => return Err(Unwritable::Queue),
            Target::Jump(chain) => drop(encoded.push(&Immediate::jump(chain.as_bstr()))),
            Target::Goto(chain) => drop(encoded.push(&Immediate::goto(chain.as_bstr()))),
            Target::Extension(target) => {
                if !self.native_target(encoded, target) {
                    let (name, revision) = target.encode_into(self.family, &mut info)?;
                    encoded.push(&expr::Target::new(name, revision.into(), &info[..]));
                    compat = true;
                }
            }
        }
        encoded.compat = compat.then(|| Compat {
            protocol: Some(rule.protocol.map_or(0, |protocol| protocol.number.into())),
            flags: Some(match rule.protocol {
                Some(Protocol { invert: true, .. }) => NFT_RULE_COMPAT_F_INV,
                _ => 0,
            }),
            unknown: UnknownAttributes::NONE,
        });
        Ok(())
    }

    fn interfaces(self, encoded: &mut nft::Rule<'_>, rule: &Rule) -> Result<(), Unwritable> {
        for (key, interface) in [
            (MetaKey::IIFNAME, &rule.in_interface),
            (MetaKey::OIFNAME, &rule.out_interface),
        ] {
            if let Some(interface) = interface {
                if interface.prefix && interface.name.is_empty() {
                    if interface.invert {
                        encoded
                            .push(&Meta::load(key, Register::R1))
                            .push(&compare(false, NO_INTERFACE));
                    }
                    continue; // every interface
                }
                let mut name = [0; 16];
                let length = interface_bytes(interface, &mut name)?;
                encoded
                    .push(&Meta::load(key, Register::R1))
                    .push(&compare(interface.invert, &name[..length]));
            }
        }
        Ok(())
    }

    fn protocol(self, encoded: &mut nft::Rule<'_>, rule: &Rule) {
        let Some(protocol) = rule.protocol else {
            return;
        };
        match header(self.family).protocol {
            Some(offset) if self.profile >= Profile::V1_8_10 => {
                encoded.push(&network(offset, 1));
            }
            _ => {
                encoded.push(&Meta::load(MetaKey::L4PROTO, Register::R1));
            }
        }
        encoded.push(&compare(protocol.invert, &[protocol.number]));
    }

    fn addresses(self, encoded: &mut nft::Rule<'_>, rule: &Rule) -> Result<(), Unwritable> {
        let Header {
            source,
            destination,
            ..
        } = header(self.family);
        for (offset, address) in [(source, &rule.source), (destination, &rule.destination)] {
            let Some(address) = address else { continue };
            if address.family() != self.family {
                return Err(Unwritable::Family {
                    address: address.address,
                });
            }
            if address.is_nothing() {
                return Err(Unwritable::NoAddress);
            }
            encode_address(encoded, offset, address);
        }
        Ok(())
    }

    fn fragment(self, encoded: &mut nft::Rule<'_>, rule: &Rule) -> Result<(), Unwritable> {
        let Some(fragment) = rule.fragment else {
            return Ok(());
        };
        let offset = header(self.family).fragment.ok_or(Unwritable::Fragment)?;
        encoded
            .push(&network(offset, 2))
            .push(&Bitwise::mask_xor(Register::R1, &FRAGMENT_OFFSET, &[0; 2]))
            .push(&compare(fragment, &[0; 2]));
        Ok(())
    }

    /// Encodes a match as nf_tables' own expressions, if the profile does.
    fn native_match(self, encoded: &mut nft::Rule<'_>, extension: &xt::Match) -> bool {
        let newer = self.profile >= Profile::V1_8_8;
        match extension {
            xt::Match::Mark(mark) if newer => {
                encoded.push(&Meta::load(MetaKey::MARK, Register::R1));
                if mark.mask != u32::MAX {
                    let mask = mark.mask.to_ne_bytes();
                    encoded.push(&Bitwise::mask_xor(Register::R1, &mask, &[0; 4]));
                }
                encoded.push(&compare(mark.invert, &mark.value.to_ne_bytes()));
                true
            }
            xt::Match::Limit(limit) => {
                let (packets, seconds) = limit.rate();
                encoded.push(&expr::Limit::packets(packets, seconds.into(), limit.burst));
                true
            }
            xt::Match::Tcp(tcp) if newer => ports::encode_tcp(encoded, tcp),
            xt::Match::Udp(udp) if newer => ports::encode_udp(encoded, udp),
            _ => false,
        }
    }

    /// Encodes a target as nf_tables' own expressions, if the profile does.
    fn native_target(self, encoded: &mut nft::Rule<'_>, target: &xt::Target) -> bool {
        match target {
            xt::Target::Trace(_) => {
                encoded
                    .push(&Immediate::value(Register::word(1), &[1]))
                    .push(&Meta::set(MetaKey::NFTRACE, Register::word(1)));
                true
            }
            xt::Target::Nflog(nflog) if self.profile >= Profile::V1_8_8 => {
                let prefix = (!nflog.prefix.is_empty()).then(|| nflog.prefix.as_bstr().into());
                encoded.push(&expr::Log {
                    prefix,
                    group: Some(nflog.group),
                    snaplen: nflog.cut.then_some(nflog.length),
                    queue_threshold: (nflog.threshold != 0).then_some(nflog.threshold),
                    ..expr::Log::default()
                });
                true
            }
            _ => false,
        }
    }
}

/// The name that `! -i +` compares with: no interface has it, so no packet matches.
pub(super) const NO_INTERFACE: &[u8] = b"INVAL/D\0";

/// Writes the name as it is compared: with its NUL, unless it is a prefix. Returns its length.
fn interface_bytes(interface: &Interface, bytes: &mut [u8; 16]) -> Result<usize, Unwritable> {
    let length = interface.name.len();
    if length == 0 || length > 15 || interface.name.contains(&0) {
        return Err(Unwritable::Interface {
            name: interface.name.clone(),
        });
    }
    bytes[..length].copy_from_slice(&interface.name);
    Ok(length + usize::from(!interface.prefix))
}

/// Loads bytes of the network header into register 1.
fn network(offset: u32, length: u32) -> Payload {
    Payload::load(PayloadBase::NETWORK, offset, length, Register::R1)
}

/// Compares register 1 with these bytes.
const fn compare(invert: bool, bytes: &[u8]) -> Cmp<'_> {
    Cmp::new(
        Register::R1,
        if invert { CmpOp::NEQ } else { CmpOp::EQ },
        bytes,
    )
}

/// Calls a function with the address and mask as bytes in network order.
fn with_octets<R>(address: &Address, use_them: impl FnOnce(&[u8], &[u8]) -> R) -> R {
    match (address.address, address.mask) {
        (IpAddr::V4(a), IpAddr::V4(m)) => use_them(&a.octets(), &m.octets()),
        (IpAddr::V6(a), IpAddr::V6(m)) => use_them(&a.octets(), &m.octets()),
        (IpAddr::V4(a), IpAddr::V6(_)) => use_them(&a.octets(), &[0xff; 4]),
        (IpAddr::V6(a), IpAddr::V4(_)) => use_them(&a.octets(), &[0xff; 16]),
    }
}

fn encode_address(encoded: &mut nft::Rule<'_>, offset: u32, address: &Address) {
    with_octets(address, |bytes, mask| {
        // A prefix of whole bytes is a shorter load; otherwise load all bytes and mask them.
        let (length, masked) = match address.prefix() {
            Some(0) => return, // every address
            Some(prefix) if prefix % 8 == 0 => ((prefix / 8) as usize, false),
            _ => (bytes.len(), true),
        };
        encoded.push(&network(offset, length as u32));
        if masked {
            encoded.push(&Bitwise::mask_xor(
                Register::R1,
                mask,
                &[0; 16][..mask.len()],
            ));
        }
        encoded.push(&compare(address.invert, &bytes[..length]));
    });
}
