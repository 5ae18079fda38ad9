//! Chains and flowtables of devices.

use chainwright::nft::{Device, Devices};

use super::*;

/// Chains that see the packets of devices, by device names.
#[test]
fn chains_of_devices() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    Sandbox::connect(&sandbox, "v0", "10.0.0.1/24", &sandbox, "v1", "10.0.1.1/24").unwrap();
    /// `NF_NETDEV_INGRESS` of `linux/netfilter.h`.
    const INGRESS: u32 = 0;
    let chain = Chain::new(Family::NETDEV, "t", "c")
        .with_hook("filter", INGRESS, 10)
        .with_devices(Devices::new(["v0", "v1"]))
        .with_policy(Policy::ACCEPT);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(Family::NETDEV, "t")).unwrap();
        tx.add(&chain).unwrap();
    });
    let listed = nft.chain(Family::NETDEV, "t", "c").unwrap().unwrap();
    let hook = listed.hook().unwrap();
    let devices = hook.devices.unwrap();
    let mut names: Vec<_> = devices.names().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, ["v0", "v1"]);
    assert_eq!(hook.priority, Some(10));
    let text = tools.run("nft list ruleset");
    assert!(text.contains("devices = { v"), "{text}");
    assert!(text.contains("v0") && text.contains("v1"), "{text}");

    // A chain waits for a device that does not exist yet (Linux 6.16); earlier kernels return an
    // error.
    let mut tx = Transaction::new();
    let mut later = Chain::new(Family::NETDEV, "t", "d")
        .with_hook("filter", INGRESS, 10)
        .with_devices(Devices::new(["v7"]));
    tx.add(&later).unwrap();
    if let Err(error) = nft.commit(&tx) {
        assert!(error.to_string().contains("device"), "{error}");
    }
    // All devices with this prefix, if the kernel supports that.
    let mut prefix = Devices::default();
    prefix.push(Device::Prefix("v".into()));
    later.name = Some("e".into());
    let later = later.with_devices(prefix.clone());
    tx.clear();
    tx.add(&later).unwrap();
    match nft.commit(&tx) {
        Ok(()) => {
            let listed = nft.chain(Family::NETDEV, "t", "e").unwrap().unwrap();
            assert_eq!(listed.hook().unwrap().devices, Some(prefix));
        }
        Err(error) => {
            let errno = error.failures[0].errno.name();
            assert!(errno == "EINVAL" || errno == "EOPNOTSUPP", "{error}");
        }
    }
}
