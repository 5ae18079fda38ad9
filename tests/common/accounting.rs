//! Counters of nfnetlink_acct, which the match `nfacct` refers to.

use chainwright::netlink::{
    Acknowledgement, MessageWriter, Messages, NfGenMsg, RECEIVE_BUFFER, Socket,
};
use chainwright_sys::netlink::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_ACCT;
use chainwright_sys::nfnetlink_acct::{NFACCT_NAME, NFNL_MSG_ACCT_NEW};
use chainwright_testing::Sandbox;

use super::sandbox;

/// The counters in kube-proxy's rules.
pub(crate) const OF_KUBE_PROXY: [&str; 2] = [
    "ct_state_invalid_dropped_pkts",
    "localhost_nps_accepted_pkts",
];

/// Creates a counter in a sandbox (`NFNL_MSG_ACCT_NEW`); the tool for that is rare.
#[track_caller]
pub(crate) fn add(sandbox: &Sandbox, name: &str) {
    sandbox.run(|| make_counter(name)).unwrap();
}

fn make_counter(name: &str) {
    let kind = u16::from(NFNL_SUBSYS_ACCT) << 8 | u16::from(NFNL_MSG_ACCT_NEW);
    let flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
    let mut request = Vec::new();
    let mut message = MessageWriter::nfnetlink(
        &mut request,
        kind,
        flags,
        1,
        NfGenMsg {
            family: 0,
            resource: 0,
        },
    );
    message.string(NFACCT_NAME, name.as_bytes());
    message.finish().unwrap();
    let socket = Socket::netfilter().unwrap();
    socket.send(&request).unwrap();
    let mut reply = vec![0; RECEIVE_BUFFER];
    let length = socket.receive(&mut reply).unwrap();
    let message = Messages::new(&reply[..length]).next().unwrap().unwrap();
    let acknowledgement = Acknowledgement::parse(&message).unwrap().unwrap();
    assert_eq!(acknowledgement.errno, None, "counter {name}");
}

/// Creates a sandbox with kube-proxy's counters.
#[track_caller]
pub(crate) fn prepared() -> Sandbox {
    let sandbox = sandbox();
    for name in OF_KUBE_PROXY {
        add(&sandbox, name);
    }
    sandbox
}
