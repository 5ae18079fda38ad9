//! Sends packets during another operation.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chainwright_testing::Sandbox;

use super::OnDrop;
use super::tools::Tools;

/// Sends UDP datagrams to port 9 of a sandbox's loopback device, one after the other, while `work` runs.
/// `work` starts when the first hundred are sent, and can read their number. Returns the total number.
#[track_caller]
pub(crate) fn while_sending(sandbox: &Sandbox, work: impl FnOnce(&AtomicU64)) -> u64 {
    Tools::new(sandbox).run("ip link set lo up");
    let sent = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        scope.spawn(|| {
            let run = sandbox.run(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                while !stop.load(Ordering::Relaxed) {
                    socket.send_to(b"x", "127.0.0.1:9").unwrap();
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
            run.unwrap();
        });
        while sent.load(Ordering::Relaxed) < 100 {
            thread::yield_now();
        }
        work(&sent);
    });
    sent.into_inner()
}
