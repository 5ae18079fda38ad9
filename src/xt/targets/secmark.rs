//! `-j SECMARK`: sets the packet's security mark.
//!
//! Data of revision 1 (`struct xt_secmark_target_info_v1`, `linux/netfilter/xt_SECMARK.h`), or of
//! revision 0 (`struct xt_secmark_target_info`): the security module and the security context. The
//! kernel stores the context's number in it.

use bstr::BString;
use chainwright_sys::xt_secmark_target::{
    SECMARK_MODE_SEL, SECMARK_SECCTX_MAX, xt_secmark_target_info, xt_secmark_target_info_v1,
};
use zerocopy::FromZeros;

use super::quoting::bare;
use crate::xt::pack;
use crate::xt::value::{string, until_nul};
use crate::xt::{
    Context, Extension, Family, GivenOption, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-j SECMARK`: sets the packet's security mark.
///
/// Uses a security context of SELinux.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Secmark {
    /// The context: at most 255 bytes, without a NUL.
    pub context: BString,
}

impl Extension for Secmark {
    const NAME: &'static str = "SECMARK";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("selctx").required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let (mode, context) = match revision {
            0 => {
                let info: xt_secmark_target_info = read_struct(info)?;
                (info.mode, info.secctx)
            }
            1 => {
                let info: xt_secmark_target_info_v1 = read_struct(info)?;
                (info.mode, info.secctx)
            }
            _ => return None,
        };
        let context = until_nul(&context)?.to_owned();
        (mode == SECMARK_MODE_SEL).then_some(Self { context })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_secmark_target_info_v1::new_zeroed();
        info.mode = SECMARK_MODE_SEL;
        info.secctx = pack::text("selctx", &self.context)?;
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let context = GivenOption::find_required(given, "selctx")?;
        let context = context.parse(|value| string(value, 1..=SECMARK_SECCTX_MAX - 1))?;
        Ok(Self {
            context: context.to_owned(),
        })
    }

    fn print(&self, text: &mut Text) {
        bare(text.option(false, "selctx"), &self.context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    /// Returns the data of `--selctx system_u:object_r:httpd_packet_t:s0` from iptables-legacy
    /// 1.8.9 (`strace -xx`). A kernel without SELinux refuses it, so there is no file of rules.
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 264];
        info[0] = 1;
        info[1..40].copy_from_slice(b"system_u:object_r:httpd_packet_t:s0\0\0\0\0");
        info
    }

    #[test]
    fn round_trips_data_of_iptables() {
        let value = Target::read(Family::Ipv4, "SECMARK", 1, &captured());
        let text = "-j SECMARK --selctx system_u:object_r:httpd_packet_t:s0";
        assert_eq!(value.to_string(), text);
        assert_eq!(value.encode(Family::Ipv4).unwrap().info, captured());
        let rule = Rule::parse(Family::Ipv6, text).unwrap();
        assert_eq!(rule.to_string(), text);
        // Revision 0, built from the header, with a number from the kernel.
        let mut older = vec![0; 264];
        older[..11].copy_from_slice(&[1, 0, 0, 0, 9, 9, 9, 9, b'a', b' ', b'b']);
        let older = Secmark::read(Family::Ipv4, 0, &older).unwrap();
        assert_eq!(older.context, "a b");
        let older = Target::Secmark(older).to_string();
        assert_eq!(older, "-j SECMARK --selctx \"a b\"");
    }

    #[test]
    fn refuses() {
        assert_eq!(Secmark::read(Family::Ipv4, 1, &captured()[..263]), None);
        assert_eq!(Secmark::read(Family::Ipv4, 2, &captured()), None);
        assert_eq!(Secmark::read(Family::Ipv4, 1, &[1; 264]), None);
        let mut other_module = captured();
        other_module[0] = 2;
        assert_eq!(Secmark::read(Family::Ipv4, 1, &other_module), None);
        let long = "x".repeat(256);
        for (options, message) in [
            ("", "--selctx is required"),
            ("--selctx \"\"", "it has 0 bytes; 1 to 255 are allowed"),
            (&format!("--selctx {long}"), "it has 256 bytes; 1 to 255"),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-j SECMARK {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
