//! Tunnel objects.

use chainwright::nft::stateful::{
    TunnelGeneve, TunnelIp, TunnelObject, TunnelOption, TunnelOptions,
};

use super::*;

/// Linux 6.18 supports tunnel keys in netdev tables only.
#[test]
fn tunnel_objects_round_trip() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let geneve = |option_type, data| {
        TunnelOption::Geneve(TunnelGeneve {
            class: Some(1),
            option_type: Some(option_type),
            data: Some(chainwright::nft::Bytes::borrowed(data)),
            ..TunnelGeneve::default()
        })
    };
    let tunnel = TunnelObject {
        id: Some(7),
        ip: Some(TunnelIp {
            source: Some(0x0a00_0001),
            destination: Some(0x0a00_0002),
            ..TunnelIp::default()
        }),
        dport: Some(4789),
        options: Some(TunnelOptions(vec![
            geneve(1, &[1, 2, 3, 4]),
            geneve(2, &[5, 6, 7, 8]),
        ])),
        ..TunnelObject::default()
    };
    let object = StatefulObject::new(Family::NETDEV, "t", "tunnel", tunnel.clone());
    committed(&mut nft, |tx| {
        tx.add(&Table::new(Family::NETDEV, "t")).unwrap();
        tx.add(&object).unwrap();
    });
    let found = nft.object(Family::NETDEV, "t", ObjectType::TUNNEL, "tunnel");
    let found = found.unwrap().unwrap();
    let Some(ObjectData::Tunnel(found)) = found.data() else {
        panic!("{found:?}");
    };
    assert_eq!((tunnel.id, &tunnel.ip), (found.id, &found.ip));
    assert_eq!(tunnel.dport, found.dport);
    let (sent, found_options) = (tunnel.options.unwrap().0, found.options.unwrap().0);
    if found_options.len() < sent.len() {
        // The kernel silently keeps only the last one, so the caller cannot be warned in time.
        println!(
            "this kernel lacks more than one Geneve option for a tunnel: it keeps only the last one"
        );
        assert_eq!(found_options, sent[1..]);
    } else {
        assert_eq!(found_options, sent);
    }
    assert!(found.unknown.is_empty());
}
