//! The legacy tables' reports about traced packets: nfnetlink_log packets of group 0.

use chainwright::netlink::{MessageWriter, Messages, NfGenMsg, Socket};

use crate::kernel::packet::Headers;

/// nfnetlink's subsystem of nfnetlink_log (linux/netfilter/nfnetlink.h).
const NFNL_SUBSYS_ULOG: u16 = 4;
/// Its messages and attributes (linux/netfilter/nfnetlink_log.h).
const NFULNL_MSG_PACKET: u16 = 0;
const NFULNL_MSG_CONFIG: u16 = 1;
const NFULA_CFG_CMD: u16 = 1;
const NFULA_CFG_MODE: u16 = 2;
const NFULNL_CFG_CMD_BIND: u8 = 1;
const NFULNL_COPY_PACKET: u8 = 2;
const NFULA_PACKET_HDR: u16 = 1;
const NFULA_MARK: u16 = 2;
const NFULA_PAYLOAD: u16 = 9;
const NFULA_PREFIX: u16 = 10;
/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST: u16 = 1 | 4;

/// A line of the trace: `TRACE: filter:INPUT:rule:3 `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) is_ipv4: bool,
    pub(crate) table: String,
    pub(crate) chain: String,
    /// `rule`, `return` or `policy`.
    pub(crate) kind: String,
    /// The rule's number in its chain, from 1.
    pub(crate) number: usize,
    pub(crate) mark: u32,
    pub(crate) headers: Option<Headers>,
}

pub(crate) struct Reader {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Reader {
    pub(crate) fn open() -> Self {
        let mut socket = Socket::netfilter().unwrap();
        socket.set_receive_buffer(16 << 20);
        let mut buffer = vec![0; 64 * 1024];
        let kind = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
        let mode = [0, 0, 0xff, 0xff, NFULNL_COPY_PACKET, 0];
        for (attribute, value) in [
            (NFULA_CFG_CMD, &[NFULNL_CFG_CMD_BIND][..]),
            (NFULA_CFG_MODE, &mode),
        ] {
            let mut request = Vec::new();
            let header = NfGenMsg {
                family: 0,
                resource: 0,
            };
            let mut message = MessageWriter::nfnetlink(&mut request, kind, REQUEST, 1, header);
            message.bytes(attribute, value);
            message.finish().unwrap();
            socket.send(&request).unwrap();
            let length = socket.receive(&mut buffer).unwrap();
            let code = &buffer[16..20];
            assert_eq!(
                (length >= 20, code),
                (true, &[0; 4][..]),
                "nfnetlink_log rejects the request"
            );
        }
        Self { socket, buffer }
    }

    /// The queued lines.
    pub(crate) fn take(&mut self) -> Vec<Logged> {
        let mut logged = Vec::new();
        while let Some(length) = self.socket.try_receive(&mut self.buffer).unwrap() {
            for message in Messages::new(&self.buffer[..length]) {
                let message = message.unwrap();
                if message.kind != NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET {
                    continue;
                }
                let (header, _) = message.nfgenmsg().unwrap();
                let attributes = message.attributes().unwrap();
                let prefix = attributes.clone().find(NFULA_PREFIX).unwrap_or_default();
                let prefix = String::from_utf8_lossy(prefix);
                let prefix = prefix.trim_end_matches('\0').trim_end();
                let Some(parts) = prefix.strip_prefix("TRACE: ") else {
                    continue;
                };
                let parts: Vec<_> = parts.split(':').collect();
                let [table, chain, kind, number] = parts[..] else {
                    panic!("{prefix}");
                };
                assert!(attributes.clone().find(NFULA_PACKET_HDR).is_some());
                let mark = attributes.clone().find(NFULA_MARK);
                let mark = mark.map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
                logged.push(Logged {
                    is_ipv4: header.family == 2,
                    table: table.to_owned(),
                    chain: chain.to_owned(),
                    kind: kind.to_owned(),
                    number: number.parse().unwrap(),
                    mark,
                    headers: attributes.find(NFULA_PAYLOAD).and_then(Headers::parse),
                });
            }
        }
        logged
    }
}
