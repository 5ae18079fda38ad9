//! Common parts of `dst` and `hbh`: an options header.
//!
//! Data of revision 0 (`struct ip6t_opts`, `linux/netfilter_ipv6/ip6t_opts.h`).

use bstr::{BStr, ByteSlice};
use chainwright_sys::ip6t_opts::{
    IP6T_OPTS_INV_LEN, IP6T_OPTS_INV_MASK, IP6T_OPTS_LEN, IP6T_OPTS_OPTS, IP6T_OPTS_OPTSNR,
    ip6t_opts,
};
use zerocopy::FromZeros;

use crate::xt::Negatable;
use crate::xt::pack;
use crate::xt::value::{Parsed, number};
use crate::xt::{GivenOption, OptionError, Text, read_struct, write_struct};

/// Wildcard for the length of an option.
const ANY_LENGTH: u8 = 0xff;

/// The single-byte option.
const PAD1: u8 = 0;

/// An option of an IPv6 options header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeaderOption {
    /// Its type.
    pub kind: u8,
    /// Length of its data, in bytes, 0 to 254; `None` for any length.
    pub length: Option<u8>,
}

/// Conditions for an options header.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct HeaderOptions {
    /// Length of the header, in bytes.
    pub length: Option<Negatable<u32>>,
    /// Options at the start of the header, in this order: at most 16. Empty to allow any.
    pub options: Vec<HeaderOption>,
}

impl HeaderOptions {
    pub(super) fn read(info: &[u8]) -> Option<Self> {
        let info: ip6t_opts = read_struct(info)?;
        let compares_options = info.flags & IP6T_OPTS_OPTS != 0;
        if info.flags & !(IP6T_OPTS_LEN | IP6T_OPTS_OPTS) != 0
            || info.invflags & !IP6T_OPTS_INV_MASK != 0
            || compares_options != (info.optsnr != 0)
        {
            return None;
        }
        let option = |packed: &u16| {
            let [kind, length] = packed.to_be_bytes();
            HeaderOption {
                kind,
                // Pad1 has no length; the kernel ignores it.
                length: (kind != PAD1 && length != ANY_LENGTH).then_some(length),
            }
        };
        let options = info.opts.get(..usize::from(info.optsnr))?;
        Some(Self {
            length: (info.flags & IP6T_OPTS_LEN != 0).then_some(Negatable {
                value: info.hdrlen,
                invert: info.invflags & IP6T_OPTS_INV_LEN != 0,
            }),
            options: options.iter().map(option).collect(),
        })
    }

    pub(super) fn write(&self, option: &'static str) -> Result<Vec<u8>, OptionError> {
        let mut info = ip6t_opts::new_zeroed();
        if let Some(length) = self.length {
            info.hdrlen = length.value;
            info.flags |= IP6T_OPTS_LEN;
            info.invflags = if length.invert { IP6T_OPTS_INV_LEN } else { 0 };
        }
        let options = pack::at_most(option, &self.options, info.opts.len(), "options")?;
        for (packed, option) in info.opts.iter_mut().zip(options) {
            *packed = u16::from_be_bytes([option.kind, option.length.unwrap_or(ANY_LENGTH)]);
            info.optsnr += 1;
            info.flags |= IP6T_OPTS_OPTS;
        }
        Ok(write_struct(&info))
    }

    /// Parses options that end in `-len` and `-opts`.
    pub(super) fn parse(given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut header = Self::default();
        for one in given {
            if one.option.ends_with("-len") {
                header.length = Some(Negatable::parse(one)?);
            } else {
                header.options = one.parse(options)?;
            }
        }
        Ok(header)
    }

    pub(super) fn print(&self, text: &mut Text, length: &str, options: &str) {
        if let Some(compared) = self.length {
            compared.print(text, length);
        }
        if self.options.is_empty() {
            return;
        }
        text.option(false, options);
        let mut separator = " ";
        for option in &self.options {
            text.push(separator).number(option.kind);
            if let Some(length) = option.length {
                text.push(":").number(length);
            }
            separator = ",";
        }
    }
}

/// Parses `type` or `type:length`, separated by commas.
fn options(value: &BStr) -> Parsed<Vec<HeaderOption>> {
    let mut options = Vec::new();
    for one in value.split_str(",") {
        if options.len() == IP6T_OPTS_OPTSNR {
            return Err(format!("more than {IP6T_OPTS_OPTSNR} options"));
        }
        let (kind, length) = match one.split_once_str(":") {
            Some((kind, length)) => (kind, Some(number(length.as_bstr())?)),
            None => (one, None),
        };
        let kind = number(kind.as_bstr())?;
        if kind == PAD1 && length.is_some() {
            return Err("option 0 (Pad1) has no length".to_owned());
        }
        options.push(HeaderOption {
            kind,
            length: length.filter(|length| *length != ANY_LENGTH),
        });
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_header() {
        let option = |kind, length| HeaderOption { kind, length };
        assert_eq!(
            options("1:2,0x3,5:255,0".into()),
            Ok(vec![
                option(1, Some(2)),
                option(3, None),
                option(5, None),
                option(0, None)
            ])
        );
        for (wrong, message) in [
            ("", "`` is not a number from 0 to 255"),
            ("1,", "`` is not a number"),
            ("1:", "`` is not a number"),
            ("257:300", "`300` is not a number from 0 to 255"),
            ("0:0", "option 0 (Pad1) has no length"),
            (
                "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
                "more than 16 options",
            ),
        ] {
            let fault = options(wrong.into()).unwrap_err();
            assert!(fault.contains(message), "{fault}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn invalid_data_stays_opaque() {
        // `! --dst-len 16 --dst-opts 1:2,3` by ip6tables-legacy 1.8.9 (`strace -xx`).
        let mut info = [0; 40];
        info[..10].copy_from_slice(&[16, 0, 0, 0, 3, 1, 2, 1, 0xff, 3]);
        info[38] = 2;
        let header = HeaderOptions::read(&info).unwrap();
        assert_eq!(header.write("dst-opts").unwrap(), info);
        assert_eq!(header.length.map(|length| length.invert), Some(true));
        let mut padding = info;
        padding[7] = 0;
        let padding = HeaderOptions::read(&padding).unwrap();
        let first = HeaderOption {
            kind: 0,
            length: None,
        };
        assert_eq!(padding.options[0], first);
        assert_eq!(HeaderOptions::read(&info[..39]), None);
        for (at, byte) in [(4, 7), (4, 1), (5, 2), (38, 0), (38, 17)] {
            let mut invalid = info;
            invalid[at] = byte;
            assert_eq!(HeaderOptions::read(&invalid), None, "{at}");
        }
    }
}
