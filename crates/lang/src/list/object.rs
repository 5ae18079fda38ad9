//! Lists stateful objects.

use std::fmt::{self, Write};

use crate::constant::{Plain, Quoted, quotable};
use crate::dialect::Form;
use crate::hooks;
use crate::print::Printer;
use crate::read::stateful;
use crate::types;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::stateful::{CtTimeout, Timeouts};
use chainwright::nft::{DataType, Family, ObjectData, StatefulObjectRef};

impl<W: Write> Printer<'_, W> {
    pub(crate) fn object(&mut self, object: &StatefulObjectRef<'_>) -> fmt::Result {
        let what = object_name(object.object_type());
        self.begin(what, object.name(), object.handle())?;
        self.comment(object.comment())?;
        if let Some(data) = object.data() {
            self.object_data(&data)?;
        }
        self.end()
    }

    fn object_data(&mut self, data: &ObjectData<'_>) -> fmt::Result {
        match data {
            ObjectData::Counter(counter) => match self.options.stateless {
                true => Ok(()),
                false => self.line(format_args!(
                    "packets {} bytes {}",
                    counter.packets.unwrap_or_default(),
                    counter.bytes.unwrap_or_default()
                )),
            },
            ObjectData::Quota(quota) => {
                self.indent()?;
                self.quota(&stateful::quota_statement(quota))?;
                self.out.write_char('\n')
            }
            ObjectData::Limit(limit) => {
                let Some(limit) = stateful::limit_statement(limit) else {
                    return self.print_opaque(data);
                };
                self.indent()?;
                self.rate(&limit, false)?;
                self.out.write_char('\n')
            }
            ObjectData::Synproxy(synproxy) => {
                use chainwright::nft::expr::SynproxyFlags;
                let flags = synproxy.flags.unwrap_or_default();
                if flags.contains(SynproxyFlags::MSS) {
                    self.line(format_args!("mss {}", synproxy.mss.unwrap_or_default()))?;
                }
                if flags.contains(SynproxyFlags::WSCALE) {
                    self.line(format_args!(
                        "wscale {}",
                        synproxy.wscale.unwrap_or_default()
                    ))?;
                }
                let timestamp = flags.contains(SynproxyFlags::TIMESTAMP);
                let sack = flags.contains(SynproxyFlags::SACK_PERM);
                match (timestamp, sack) {
                    (true, true) => self.line(format_args!("timestamp sack-perm")),
                    // The blanks are those of nft.
                    (true, false) => self.line(format_args!("timestamp ")),
                    (false, true) => self.line(format_args!(" sack-perm")),
                    (false, false) => Ok(()),
                }
            }
            ObjectData::CtHelper(helper) => {
                let name = helper.helper.clone().unwrap_or_default();
                let protocol = protocol_name(helper.l4proto);
                let (Some(family), true) = (family_name(helper.l3proto), quotable(&name).is_some())
                else {
                    return self.print_opaque(data);
                };
                self.line(format_args!("type {} protocol {protocol}", Quoted(&name)))?;
                self.line(format_args!("l3proto {family}"))
            }
            ObjectData::CtTimeout(timeout) => {
                let (Some(family), Some(times)) =
                    (family_name(timeout.l3proto), changed_timeouts(timeout))
                else {
                    return self.print_opaque(data);
                };
                self.line(format_args!("protocol {}", protocol_name(timeout.l4proto)))?;
                self.line(format_args!("l3proto {family}"))?;
                let has_units = self.options.has(Form::TimeoutUnits);
                let times = times.iter().map(|(state, seconds)| match has_units {
                    true => format!(
                        "{state} : {}",
                        self.options.time(u64::from(*seconds) * 1000)
                    ),
                    false => format!("{state} : {seconds}"),
                });
                let times: Vec<_> = times.collect();
                self.line(format_args!("policy = {{ {} }}", times.join(", ")))
            }
            ObjectData::CtExpect(expect) => {
                let Some(family) = family_name(expect.l3proto) else {
                    return self.print_opaque(data);
                };
                self.line(format_args!("protocol {}", protocol_name(expect.l4proto)))?;
                self.line(format_args!("dport {}", expect.dport.unwrap_or_default()))?;
                let time = self
                    .options
                    .time(u64::from(expect.timeout.unwrap_or_default().0));
                self.line(format_args!("timeout {time}"))?;
                self.line(format_args!("size {}", expect.size.unwrap_or_default()))?;
                self.line(format_args!("l3proto {family}"))
            }
            ObjectData::Secmark(secmark) => {
                let context = secmark.context.clone().unwrap_or_default();
                match quotable(&context) {
                    Some(_) => self.line(format_args!("{}", Quoted(&context))),
                    None => self.print_opaque(data),
                }
            }
            ObjectData::Tunnel(tunnel) => match super::tunnel::lines(tunnel) {
                Some(lines) => lines
                    .iter()
                    .try_for_each(|line| self.line(format_args!("{line}"))),
                None => self.print_opaque(data),
            },
            other => self.print_opaque(other),
        }
    }

    /// Prints a comment with the object's data, for data that nft's language cannot represent.
    fn print_opaque(&mut self, data: &ObjectData<'_>) -> fmt::Result {
        let data = data.to_string();
        self.line(format_args!("# {}", Plain(data.as_str().into())))
    }
}

/// Returns the timeouts in seconds that differ from the protocol's defaults, by state; `None` if nft has no name for
/// the protocol or a state.
pub(crate) fn changed_timeouts(timeout: &CtTimeout<'_>) -> Option<Vec<(&'static str, u32)>> {
    let states = hooks::states(timeout.l4proto?);
    (!states.is_empty()).then_some(())?;
    let mut changed = Vec::new();
    for (state, seconds) in timeout.timeouts.iter().flat_map(Timeouts::iter) {
        let (name, usual) = states.get(usize::from(state).checked_sub(1)?)?;
        if seconds != *usual {
            changed.push((*name, seconds));
        }
    }
    Some(changed)
}

/// Returns the name of a family in conntrack objects.
pub(crate) fn family_name(number: Option<u16>) -> Option<&'static str> {
    match Family(u8::try_from(number?).ok()?) {
        Family::UNSPEC => None,
        family => family.name(),
    }
}

pub(crate) fn protocol_name(number: Option<u8>) -> String {
    let number = number.unwrap_or_default();
    let mut names = types::symbols(DataType::INET_PROTO).iter();
    match names.find(|(_, value)| *value == u64::from(number)) {
        Some((name, _)) => (*name).to_owned(),
        None => number.to_string(),
    }
}

/// Returns nft's keyword for a kind of stateful object.
pub(crate) const fn object_name(object: ObjectType) -> &'static str {
    match object {
        ObjectType::COUNTER => "counter",
        ObjectType::QUOTA => "quota",
        ObjectType::LIMIT => "limit",
        ObjectType::CONNLIMIT => "ct count",
        ObjectType::SYNPROXY => "synproxy",
        ObjectType::CT_HELPER => "ct helper",
        ObjectType::CT_TIMEOUT => "ct timeout",
        ObjectType::CT_EXPECT => "ct expectation",
        ObjectType::SECMARK => "secmark",
        ObjectType::TUNNEL => "tunnel",
        _ => "unknown",
    }
}
