//! `-j AUDIT`: writes an audit record. The packet continues.
//!
//! Data of revision 0 (`struct xt_audit_info`, `linux/netfilter/xt_AUDIT.h`): type of the record.

use chainwright_sys::xt_audit_target::{
    XT_AUDIT_TYPE_ACCEPT, XT_AUDIT_TYPE_DROP, XT_AUDIT_TYPE_REJECT, xt_audit_info,
};

use crate::xt::value::one_of;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-j AUDIT`: writes an audit record. The packet continues.
///
/// The type of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Audit {
    /// The packet is accepted.
    Accept,
    /// The packet is dropped.
    Drop,
    /// The packet is rejected.
    Reject,
}

const TYPES: [(&str, Audit); 3] = [
    ("accept", Audit::Accept),
    ("drop", Audit::Drop),
    ("reject", Audit::Reject),
];

impl Audit {
    const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Drop => "drop",
            Self::Reject => "reject",
        }
    }
}

impl Extension for Audit {
    const NAME: &'static str = "AUDIT";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("type").required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        match read_struct::<xt_audit_info>(info)?.r#type {
            XT_AUDIT_TYPE_ACCEPT => Some(Self::Accept),
            XT_AUDIT_TYPE_DROP => Some(Self::Drop),
            XT_AUDIT_TYPE_REJECT => Some(Self::Reject),
            _ => None,
        }
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_audit_info {
            r#type: match self {
                Self::Accept => XT_AUDIT_TYPE_ACCEPT,
                Self::Drop => XT_AUDIT_TYPE_DROP,
                Self::Reject => XT_AUDIT_TYPE_REJECT,
            },
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let what = GivenOption::find_required(given, "type")?;
        // Ignoring case.
        what.parse(|value| one_of(value.to_ascii_lowercase().as_slice().into(), &TYPES))
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "type").word(self.name());
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" AUDIT ").push(self.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    fn round_trips_data_of_iptables() {
        check(Family::Ipv4, "02", &Audit::Reject, " --type reject");
        assert_eq!(Audit::read(Family::Ipv4, 0, &[3]), None);
    }

    #[test]
    fn reports_errors() {
        assert_eq!(
            refused::<Audit>(Family::Ipv4, None, &[("type", "log")]),
            "--type: `log` is not one of accept, drop, reject"
        );
    }
}
