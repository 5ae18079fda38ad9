//! Audit records of changes to legacy tables.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice};
use chainwright_sys::audit::{AUDIT_GET, AUDIT_NETFILTER_CFG, AUDIT_NLGRP_READLOG};
use chainwright_sys::netlink::NLM_F_REQUEST;

use chainwright::iptables::Family;
use chainwright::netlink::{Error, Message, MessageWriter, RECEIVE_BUFFER, Socket};

/// The operations that replace a table and that remove it.
const OPERATIONS: [&[u8]; 2] = [b"xt_replace", b"xt_unregister"];

/// The audit log, reduced to records about legacy tables.
///
/// If auditing is on ([`is_on`](Self::is_on); `auditctl -e 1`), the kernel reports every legacy table that is replaced
/// in any network namespace, with the table's name, the process ID and the process's name. A record does not contain
/// the namespace. For a running process the namespace is looked up; a process that has ended is assumed to belong to
/// this namespace.
///
/// The log must be opened in the initial network namespace, because only its sockets receive records, and with
/// `CAP_AUDIT_READ` in the initial user namespace. Sources: `linux/audit.h`, [audit
/// records](https://github.com/linux-audit/audit-documentation/wiki/SPEC-Audit-Event-Definitions) (`NETFILTER_CFG`).
#[derive(Debug)]
pub struct AuditLog {
    socket: Socket,
    buffer: Vec<u8>,
}

/// A record of a replaced table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) family: Family,
    pub(super) table: BString,
    pub(super) process: u32,
    /// The process's name, at most 15 bytes.
    pub(super) name: BString,
}

impl AuditLog {
    /// Opens the log and starts listening.
    ///
    /// # Errors
    /// [`Error::Open`] if the kernel has no auditing; [`Error::Option`] with `EPERM` if the process lacks the
    /// capability.
    pub fn open() -> Result<Self, Error> {
        let socket = Socket::audit()?;
        // Filters out other records, which would wake the reader needlessly on a node that audits much.
        socket.filter_message_type(AUDIT_NETFILTER_CFG)?;
        socket.join(AUDIT_NLGRP_READLOG)?;
        Ok(Self {
            socket,
            buffer: vec![0; RECEIVE_BUFFER],
        })
    }

    /// Returns whether auditing is on. `None` if that is unknown: the query requires `CAP_AUDIT_CONTROL`.
    #[must_use]
    pub fn is_on() -> Option<bool> {
        let socket = Socket::audit().ok()?;
        let mut request = Vec::new();
        let message = MessageWriter::new(&mut request, AUDIT_GET, NLM_F_REQUEST, 0);
        message.finish().ok()?;
        socket.send(&request).ok()?;
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut buffer = [0; 1024];
        while socket.wait(Some(deadline)).ok()? {
            let length = socket.try_receive(&mut buffer).ok()??;
            let message = Message::first(buffer.get(..length)?).ok()?;
            if message.kind == AUDIT_GET {
                // struct audit_status: mask, enabled, …
                let enabled = message.payload.get(4..8)?;
                return Some(enabled != [0; 4]);
            }
        }
        None
    }

    /// Returns the next queued record of a table that another process replaced in the network namespace `own_namespace` (the
    /// target of a `/proc` link), as far as the namespace is known. Lost records are not reported.
    pub(super) fn try_receive(
        &mut self,
        own_namespace: Option<&Path>,
    ) -> Result<Option<Record>, Error> {
        loop {
            let length = match self.socket.try_receive(&mut self.buffer) {
                Ok(None) => return Ok(None),
                Ok(Some(length)) => length,
                // Later records follow.
                Err(Error::Lost(_) | Error::Truncated { .. }) => continue,
                Err(error) => return Err(error),
            };
            let datagram = self.buffer.get(..length).unwrap_or_default();
            let Ok(message) = Message::first(datagram) else {
                continue;
            };
            if message.kind != AUDIT_NETFILTER_CFG {
                continue;
            }
            let record = Record::read(message.payload);
            if let Some(record) =
                record.filter(|record| record.is_of_another_namespace(own_namespace))
            {
                return Ok(Some(record));
            }
        }
    }
}

impl AsFd for AuditLog {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Record {
    /// Parses a record's text. `None` for a record of another table type, or in another form.
    fn read(text: &[u8]) -> Option<Self> {
        let (mut table, mut family, mut operation, mut process, mut name) = Default::default();
        for field in text.trim_end_with(|end| end == '\0').split_str(" ") {
            let Some((key, value)) = field.split_once_str("=") else {
                continue;
            };
            let known = match key {
                b"table" => &mut table,
                b"family" => &mut family,
                b"op" => &mut operation,
                b"pid" => &mut process,
                b"comm" => &mut name,
                _ => continue,
            };
            *known = Some(value);
        }
        let number = |value: Option<&[u8]>| value?.to_str().ok()?.parse::<u32>().ok();
        let family = match number(family)? {
            2 => Family::Ipv4,
            10 => Family::Ipv6,
            _ => return None,
        };
        operation.filter(|operation| OPERATIONS.contains(operation))?;
        Some(Self {
            family,
            table: table?.into(),
            process: number(process)?,
            name: decode_string(name?)?,
        })
    }

    /// Returns `true` if another process replaced the table, in this network namespace as far as is known.
    fn is_of_another_namespace(&self, own_namespace: Option<&Path>) -> bool {
        let process_namespace = fs::read_link(format!("/proc/{}/ns/net", self.process));
        let is_elsewhere = match (process_namespace, own_namespace) {
            (Ok(process_namespace), Some(own_namespace)) => process_namespace != own_namespace,
            _ => false,
        };
        self.process != std::process::id() && !is_elsewhere
    }
}

/// Decodes text chosen by a user: in quotation marks, or in hexadecimal if it contains unusual bytes.
fn decode_string(text: &[u8]) -> Option<BString> {
    let quoted = text.strip_prefix(b"\"");
    if let Some(text) = quoted.and_then(|text| text.strip_suffix(b"\"")) {
        return Some(text.into());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes = text.chunks(2).map(|pair| match *pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    });
    bytes.collect::<Option<Vec<u8>>>().map(BString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(family: Family, table: &str, process: u32, name: &str) -> Option<Record> {
        Some(Record {
            family,
            table: table.into(),
            process,
            name: name.into(),
        })
    }

    /// Records that Linux 6.18 wrote when iptables-legacy 1.8.9 did these operations.
    #[test]
    fn records_of_replaced_tables_are_read() {
        for (text, read) in [
            (
                r#"audit(1795544056.230:3): table=filter family=2 entries=4 op=xt_replace pid=4499 comm="iptables-legacy""#,
                record(Family::Ipv4, "filter", 4499, "iptables-legacy"),
            ),
            (
                r#"audit(1795544056.238:5): table=nat family=10 entries=5 op=xt_replace pid=4500 comm="ip6tables-legac""#,
                record(Family::Ipv6, "nat", 4500, "ip6tables-legac"),
            ),
            (
                r#"audit(1795544056.302:9): table=filter family=2 entries=4 op=xt_unregister pid=1516 comm="kworker/u8:0""#,
                record(Family::Ipv4, "filter", 1516, "kworker/u8:0"),
            ),
            (
                r#"audit(1795544056.230:2): table=filter family=2 entries=0 op=xt_register pid=4499 comm="iptables-legacy""#,
                None,
            ),
            (
                r#"audit(1795544056.262:7): table=filter:2 family=2 entries=2 op=nft_register_chain pid=4502 comm="iptables-nft""#,
                None,
            ),
        ] {
            assert_eq!(Record::read(text.as_bytes()), read, "{text}");
        }
    }

    #[test]
    fn names_with_odd_bytes_and_labels_are_read() {
        // A name with a space as the kernel's audit_log_untrustedstring writes it, with a security label.
        let text = b"audit(1.2:3): table=nat family=2 entries=4 op=xt_replace pid=7 subj=system_u:system_r:init_t:s0 \
                     comm=6120622209\0";
        assert_eq!(
            Record::read(text),
            record(Family::Ipv4, "nat", 7, "a b\"\t")
        );
    }

    #[test]
    fn unrelated_records_are_ignored() {
        for text in [
            "",
            "audit(1.2:3): ",
            "table=nat family=2 op=xt_replace pid=7",
            "table=nat family=2 op=xt_replace pid=7 comm=abc",
            "table=nat family=2 op=xt_replace pid=7 comm=zz",
            "table=nat family=2 op=xt_replace pid=-7 comm=\"a\"",
            "table=nat family=7 op=xt_replace pid=7 comm=\"a\"",
            "family=2 op=xt_replace pid=7 comm=\"a\"",
        ] {
            assert_eq!(Record::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Record::read(&[0xff; 64]), None);
    }
}
