//! The functions that netfilter calls at its hooks: those of chains and flowtables of nf_tables, of legacy tables,
//! connection tracking, NAT and BPF programs.
//!
//! ```text
//! NFNLA_HOOK_HOOKNUM         be32
//! NFNLA_HOOK_PRIORITY        be32, of an int
//! NFNLA_HOOK_FUNCTION_NAME   string
//! NFNLA_HOOK_MODULE_NAME     string
//! NFNLA_HOOK_CHAIN_INFO      nested
//!   NFNLA_HOOK_INFO_TYPE     be32
//!   NFNLA_HOOK_INFO_DESC     nested: of a chain or a flowtable
//!     NFNLA_CHAIN_TABLE      string
//!     NFNLA_CHAIN_NAME       string
//!     NFNLA_CHAIN_FAMILY     u8
//! ```
//!
//! Source: `linux/netfilter/nfnetlink_hook.h` (since Linux 5.14); observed on Linux 6.12.

use bstr::{BString, ByteSlice};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_HOOK;
use chainwright_sys::nfnetlink_hook::{
    NFNL_HOOK_TYPE_BPF, NFNL_HOOK_TYPE_NFT_FLOWTABLE, NFNL_HOOK_TYPE_NFTABLES, NFNL_MSG_HOOK_GET,
    NFNLA_CHAIN_FAMILY, NFNLA_CHAIN_NAME, NFNLA_CHAIN_TABLE, NFNLA_HOOK_BPF_ID,
    NFNLA_HOOK_CHAIN_INFO, NFNLA_HOOK_DEV, NFNLA_HOOK_FUNCTION_NAME, NFNLA_HOOK_HOOKNUM,
    NFNLA_HOOK_INFO_DESC, NFNLA_HOOK_INFO_TYPE, NFNLA_HOOK_MODULE_NAME, NFNLA_HOOK_PRIORITY,
};

use super::connection::Connection;
use super::{Family, Hook};
use crate::netlink::{Attributes, Dump, Error, Malformed, NfGenMsg, Request};

/// The request for the functions of a hook.
const REQUEST: Request = Request::new(
    "list the functions of a hook",
    (NFNL_SUBSYS_HOOK as u16) << 8 | NFNL_MSG_HOOK_GET as u16,
);

/// A function that netfilter calls at a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookFunction {
    /// The family of the packets for which it is called.
    pub family: Family,
    /// Hook number; [`hook_name`](super::hook_name) returns its name.
    pub hook: u32,
    /// Priority at the hook: lower ones are called first.
    pub priority: i32,
    /// Name of the function in the kernel, if the kernel was built with names (`CONFIG_KALLSYMS`).
    pub function: Option<BString>,
    /// Module that contains it; `None` if built in.
    pub module: Option<BString>,
    /// The object that registered it, if the kernel reports that.
    pub owner: Option<HookOwner>,
}

/// The object that registered a hook function.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookOwner {
    /// A base chain.
    Chain {
        /// Family of the table.
        family: Family,
        /// Name of the table.
        table: BString,
        /// Name of the chain.
        name: BString,
    },
    /// A flowtable; since Linux 6.17.
    Flowtable {
        /// Family of the table.
        family: Family,
        /// Name of the table.
        table: BString,
        /// Name of the flowtable.
        name: BString,
    },
    /// The BPF program with this id; since Linux 6.4.
    Program(u32),
}

impl HookFunction {
    /// Parses a message's payload.
    fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let (header, attributes) = NfGenMsg::split(payload)?;
        let mut found = Self {
            family: Family(header.family),
            hook: 0,
            priority: 0,
            function: None,
            module: None,
            owner: None,
        };
        let mut info = None;
        for attribute in Attributes::new(attributes) {
            let attribute = attribute?;
            match attribute.kind {
                NFNLA_HOOK_HOOKNUM => {
                    found.hook = number(attribute.payload).unwrap_or_default();
                }
                NFNLA_HOOK_PRIORITY => {
                    let number = number(attribute.payload).unwrap_or_default();
                    found.priority = number.cast_signed();
                }
                NFNLA_HOOK_FUNCTION_NAME => found.function = Some(text(attribute.payload)),
                NFNLA_HOOK_MODULE_NAME => found.module = Some(text(attribute.payload)),
                NFNLA_HOOK_CHAIN_INFO => info = Some(attribute.payload),
                _ => {}
            }
        }
        found.owner = info.and_then(HookOwner::parse);
        Ok(found)
    }
}

impl HookOwner {
    /// Parses `NFNLA_HOOK_CHAIN_INFO`; returns `None` for types unknown to this version of the crate.
    fn parse(info: &[u8]) -> Option<Self> {
        let kind = number(Attributes::new(info).find(NFNLA_HOOK_INFO_TYPE)?)?;
        let description = Attributes::new(Attributes::new(info).find(NFNLA_HOOK_INFO_DESC)?);
        if kind == NFNL_HOOK_TYPE_BPF {
            return Some(Self::Program(number(description.find(NFNLA_HOOK_BPF_ID)?)?));
        }
        let family = *description.clone().find(NFNLA_CHAIN_FAMILY)?.first()?;
        let family = Family(family);
        let table = text(description.clone().find(NFNLA_CHAIN_TABLE)?);
        let name = text(description.find(NFNLA_CHAIN_NAME)?);
        match kind {
            NFNL_HOOK_TYPE_NFTABLES => Some(Self::Chain {
                family,
                table,
                name,
            }),
            NFNL_HOOK_TYPE_NFT_FLOWTABLE => Some(Self::Flowtable {
                family,
                table,
                name,
            }),
            _ => None,
        }
    }
}

fn number(payload: &[u8]) -> Option<u32> {
    payload.try_into().ok().map(u32::from_be_bytes)
}

/// Returns a string without its trailing NUL.
fn text(payload: &[u8]) -> BString {
    payload.trim_end_with(|c| c == '\0').into()
}

/// The kernel's errors for missing hooks, families, devices and subsystems.
const ABSENT: [i32; 5] = [
    libc::EINVAL,
    libc::EOPNOTSUPP,
    libc::EPROTONOSUPPORT,
    libc::ENODEV,
    libc::ENOENT,
];

impl Connection {
    /// Lists the functions called at a hook, in the order of the calls.
    ///
    /// For the netdev family, `device` names the device with the hooks. Functions of [`Family::INET`] are called at the
    /// hooks of IPv4 and IPv6. The list is empty if this kernel has no such hook or device.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright::Error> {
    /// use chainwright::netlink::Error;
    /// use chainwright::nft::{Chain, Connection, Family, Hook, Table, Transaction};
    ///
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::INET, "t"))?;
    /// tx.add(&Chain::new(Family::INET, "t", "in").with_hook("filter", Hook::INPUT, -5))?;
    /// let mut nft = Connection::open()?;
    /// nft.commit(&tx)?;
    /// match nft.hook_functions(Family::IP, Hook::INPUT, None) {
    ///     Ok(functions) => assert_eq!(functions[0].priority, -5),
    ///     Err(Error::Lacks { .. }) => {} // a kernel that is built without
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Lacks`] if the kernel lacks `nfnetlink_hook` (not built, or older than 5.14); [`Error::Interrupted`] if
    /// the functions changed during the listing; the errors of a request: [`Error::Refused`] with `EPERM` without
    /// `CAP_NET_ADMIN`.
    pub fn hook_functions(
        &mut self,
        family: Family,
        hook: u32,
        device: Option<&str>,
    ) -> Result<Vec<HookFunction>, Error> {
        let mut attempts = self.retry().begin();
        loop {
            match self.functions_once(family, hook, device) {
                Err(error) if error.allows(&mut attempts) => {}
                Err(Error::Refused { errno, .. }) if ABSENT.contains(&errno.number()) => {
                    // The kernel returns only an error number for a missing subsystem, an invalid hook or a missing
                    // device. The first hook of IPv4 always exists.
                    let is_first = (family, hook) == (Family::IP, Hook::PREROUTING);
                    if !is_first {
                        self.hook_functions(Family::IP, Hook::PREROUTING, None)?;
                    } else if errno.number() == libc::EINVAL {
                        return Err(Error::Lacks {
                            request: REQUEST.name,
                            what: "nfnetlink_hook (a build option)",
                            since: (5, 14),
                            errno,
                        });
                    }
                    return Ok(Vec::new());
                }
                functions => return functions,
            }
        }
    }

    fn functions_once(
        &mut self,
        family: Family,
        hook: u32,
        device: Option<&str>,
    ) -> Result<Vec<HookFunction>, Error> {
        let mut dump = self.session.dump(&REQUEST, family.0, |writer| {
            if let Some(device) = device {
                writer.string(NFNLA_HOOK_DEV, device.as_bytes());
            }
            writer.be32(NFNLA_HOOK_HOOKNUM, hook);
        })?;
        let mut functions = Vec::new();
        dump.for_each(Dump::selects, |payload| {
            functions.push(HookFunction::parse(payload)?);
            Ok(())
        })?;
        Ok(functions)
    }
}

#[cfg(any(test, feature = "testing"))]
#[cfg_attr(
    not(test),
    allow(
        dead_code,
        unused_imports,
        reason = "most of it is for unit tests alone"
    )
)]
pub(crate) mod tests {
    use chainwright_sys::netlink::{NLMSG_DONE, NLMSG_ERROR};

    use super::*;
    use crate::netlink::replay::{Replay, Reply};
    use crate::netlink::{Message, Socket};

    // Replies of Linux 6.12.111 (Debian) to `nft list hooks ip device lo`, with chains of ip, inet and netdev, a
    // flowtable and a legacy table.

    /// The ingress hook of the device `lo`.
    const NETDEV_INGRESS_OF_LO: &[&str] = &[
        "74000000000c02000100000000000000050000000e0005006e665f7461626c6573000000180004006e66745f646f5f636861696e5f6e657464657600080001000000000008000200800000002800068008000200000000011c000180060001006400000006000300620000000500020005000000",
        "74000000000c02000100000000000000050000000e0005006e665f7461626c6573000000180004006e66745f646f5f636861696e5f6e657464657600080001000000000008000200000000002800068008000200000000011c000180060001006400000006000300610000000500020005000000",
        "5c000000000c0200010000000000000005000000170005006e665f666c6f775f7461626c655f696e657400001e0004006e665f666c6f775f6f66666c6f61645f696e65745f686f6f6b00000008000100000000000800020000000005",
        "7c000000000c02000100000000000000050000000e0005006e665f7461626c65730000001e0004006e66745f646f5f636861696e5f696e65745f696e6772657373000000080001000000000008000200000000072800068008000200000000011c000180060001007500000006000300670000000500020001000000",
    ];
    /// The input hook of IPv4.
    const IPV4_INPUT: &[&str] = &[
        "74000000000c02000100000000000000020000000e0005006e665f7461626c6573000000160004006e66745f646f5f636861696e5f696e6574000000080001000000000108000200fffffffb2800068008000200000000011c000180060001007500000006000300690000000500020001000000",
        "48000000000c02000100000000000000020000000e00050069705f7461626c6573000000110004006970745f646f5f7461626c650000000008000100000000010800020000000000",
        "74000000000c02000100000000000000020000000e0005006e665f7461626c6573000000160004006e66745f646f5f636861696e5f69707634000000080001000000000108000200000000002800068008000200000000011c000180060001007400000007000300693200000500020002000000",
        "74000000000c02000100000000000000020000000e0005006e665f7461626c6573000000160004006e66745f646f5f636861696e5f69707634000000080001000000000108000200000000002800068008000200000000011c000180060001007400000006000300690000000500020002000000",
        "4c000000000c02000100000000000000020000000b0005006e665f6e61740000190004006e665f6e61745f697076345f6c6f63616c5f696e0000000008000100000000010800020000000064",
        "48000000000c0200010000000000000002000000110005006e665f636f6e6e747261636b000000000f0004006e665f636f6e6669726d00000800010000000001080002007fffffff",
    ];

    /// Returns a connection to that kernel, which has no functions at the other hooks, and no other families. With
    /// `lacks`, the kernel lacks the subsystem.
    #[must_use]
    pub fn recorded_kernel(lacks: bool) -> Connection {
        let replay = Replay::new(move |request: &[u8]| {
            let message = Message::first(request).unwrap();
            assert_eq!(message.kind, u16::from(NFNL_SUBSYS_HOOK) << 8);
            let (header, attributes) = NfGenMsg::split(message.payload).unwrap();
            let attributes = Attributes::new(attributes);
            let hook = number(attributes.clone().find(NFNLA_HOOK_HOOKNUM).unwrap());
            let device = attributes.find(NFNLA_HOOK_DEV);
            let messages = match (Family(header.family), hook, device) {
                _ if lacks => None,
                (Family::NETDEV, Some(Hook::INGRESS), Some(b"lo\0")) => Some(NETDEV_INGRESS_OF_LO),
                (Family::IP, Some(Hook::INPUT), None) => Some(IPV4_INPUT),
                (Family::IP | Family::IP6, Some(Hook::PREROUTING..=Hook::POSTROUTING), None) => {
                    Some(&[][..])
                }
                _ => None,
            };
            let mut datagram = Vec::new();
            let end = |kind: u16, payload: &[u8]| {
                let mut message = (16 + payload.len() as u32).to_ne_bytes().to_vec();
                message.extend(kind.to_ne_bytes());
                message.extend([0; 2]);
                message.extend(request[8..12].iter());
                message.extend([0; 4]);
                message.extend(payload);
                message
            };
            match messages {
                Some(messages) => {
                    for message in messages {
                        let mut bytes = bytes(message);
                        bytes[8..12].copy_from_slice(&request[8..12]);
                        datagram.extend(bytes);
                    }
                    datagram.extend(end(NLMSG_DONE, &[0; 4]));
                }
                None => {
                    let mut error = (-libc::EINVAL).to_ne_bytes().to_vec();
                    error.extend(&request[..16]);
                    datagram.extend(end(NLMSG_ERROR, &error));
                }
            }
            vec![Reply::Datagram(datagram)]
        });
        Connection::over(Socket::with_transport(Box::new(replay))).unwrap()
    }

    fn bytes(digits: &str) -> Vec<u8> {
        let digits = digits.as_bytes().chunks(2);
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        digits.map(byte).collect()
    }

    fn chain(family: Family, table: &str, name: &str) -> Option<HookOwner> {
        Some(HookOwner::Chain {
            family,
            table: table.into(),
            name: name.into(),
        })
    }

    #[test]
    fn hook_functions_are_decoded() {
        let mut nft = recorded_kernel(false);
        let functions = nft.hook_functions(Family::IP, Hook::INPUT, None).unwrap();
        let priorities: Vec<i32> = functions.iter().map(|each| each.priority).collect();
        assert_eq!(priorities, [-5, 0, 0, 0, 100, i32::MAX]);
        assert_eq!(functions[0].owner, chain(Family::INET, "u", "i"));
        assert_eq!(
            functions[1],
            HookFunction {
                family: Family::IP,
                hook: Hook::INPUT,
                priority: 0,
                function: Some("ipt_do_table".into()),
                module: Some("ip_tables".into()),
                owner: None,
            }
        );
        assert_eq!(functions[2].owner, chain(Family::IP, "t", "i2"));
        let functions = nft
            .hook_functions(Family::NETDEV, Hook::INGRESS, Some("lo"))
            .unwrap();
        assert_eq!(functions[0].priority, i32::MIN);
        assert_eq!(functions[3].owner, chain(Family::INET, "u", "g"));
        // No such hook, or no such device.
        let none = [
            nft.hook_functions(Family::IP, 9, None),
            nft.hook_functions(Family::NETDEV, Hook::INGRESS, Some("eth7")),
            nft.hook_functions(Family::ARP, 0, None),
        ];
        for none in none {
            assert_eq!(none.unwrap(), []);
        }
        for (family, hook) in [(Family::IP, Hook::PREROUTING), (Family::ARP, 0)] {
            let error = recorded_kernel(true).hook_functions(family, hook, None);
            assert!(matches!(error, Err(Error::Lacks { .. })), "{error:?}");
        }
    }

    /// Returns a connection that receives these replies in order, and after the last an empty listing; also records the
    /// types of the requests.
    fn replying(
        replies: Vec<fn(u32) -> Vec<Reply>>,
    ) -> (Connection, std::sync::Arc<std::sync::Mutex<Vec<u16>>>) {
        let requests = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = std::sync::Arc::clone(&requests);
        let mut replies = replies.into_iter();
        let replay = Replay::new(move |request: &[u8]| {
            let message = Message::first(request).unwrap();
            noted.lock().unwrap().push(message.kind);
            match replies.next() {
                Some(reply) => reply(message.sequence),
                None => vec![Reply::Datagram(control(NLMSG_DONE, 0, message.sequence))],
            }
        });
        let nft = Connection::over(Socket::with_transport(Box::new(replay))).unwrap();
        (nft, requests)
    }

    fn control(kind: u16, number: i32, sequence: u32) -> Vec<u8> {
        let mut bytes = 36_u32.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend((-number).to_ne_bytes());
        bytes.extend([0; 16]);
        bytes
    }

    fn refused<const NUMBER: i32>(sequence: u32) -> Vec<Reply> {
        vec![Reply::Datagram(control(NLMSG_ERROR, NUMBER, sequence))]
    }

    /// An error is not mistaken for an old kernel, nor for an empty list.
    #[test]
    fn a_rejection_is_returned_unchanged() {
        type Refusal = (fn(u32) -> Vec<Reply>, i32);
        let refusals: [Refusal; 4] = [
            (refused::<{ libc::EPERM }>, libc::EPERM),
            (refused::<{ libc::ENOMEM }>, libc::ENOMEM),
            (refused::<{ libc::EBUSY }>, libc::EBUSY),
            (refused::<{ libc::EINTR }>, libc::EINTR),
        ];
        for (refusal, number) in refusals {
            for hook in [Hook::PREROUTING, Hook::INPUT] {
                let (mut nft, requests) = replying(vec![refusal]);
                let error = nft.hook_functions(Family::IP, hook, None).unwrap_err();
                let is_same =
                    matches!(&error, Error::Refused { errno, .. } if errno.number() == number);
                assert!(is_same, "{error:?}");
                assert!(!error.is_retryable());
                assert_eq!(requests.lock().unwrap().len(), 1);
            }
            // After a missing hook, the request for another hook handles errors in the same way.
            let (mut nft, _) = replying(vec![refused::<{ libc::EINVAL }>, refusal]);
            let error = nft.hook_functions(Family::IP, 9, None).unwrap_err();
            assert_eq!(error.errno().map(crate::errno::Errno::number), Some(number));
        }
        // These errors mean that the hook, family or device does not exist.
        let absent: [fn(u32) -> Vec<Reply>; 5] = [
            refused::<{ libc::EINVAL }>,
            refused::<{ libc::EOPNOTSUPP }>,
            refused::<{ libc::EPROTONOSUPPORT }>,
            refused::<{ libc::ENODEV }>,
            refused::<{ libc::ENOENT }>,
        ];
        for refusal in absent {
            let (mut nft, _) = replying(vec![refusal]);
            assert_eq!(nft.hook_functions(Family::BRIDGE, 1, None).unwrap(), []);
        }
    }

    /// Truncated messages and flipped bits cause results or errors, no panics.
    #[test]
    fn damaged_messages_are_answers_or_errors() {
        for message in NETDEV_INGRESS_OF_LO.iter().chain(IPV4_INPUT) {
            let message = bytes(message);
            for end in 16..message.len() {
                let _ = HookFunction::parse(&message[16..end]);
            }
            for at in 16..message.len() {
                for bit in 0..8 {
                    let mut turned = message.clone();
                    turned[at] ^= 1 << bit;
                    let _ = HookFunction::parse(&turned[16..]);
                }
            }
        }
    }
}
