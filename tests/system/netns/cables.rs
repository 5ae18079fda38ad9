//! Cables between sandboxes, and packets through them.

use super::*;

#[test]
fn cables_carry_udp_and_tcp() {
    let cases = [
        ("10.0.0.1/24", "10.0.0.1:0", "10.0.0.2/24", "10.0.0.2:0"),
        ("fd00::1/64", "[fd00::1]:0", "fd00::2/64", "[fd00::2]:0"),
    ];
    for (a_address, a_socket, b_address, b_socket) in cases {
        let (a, b) = (sandbox(), sandbox());
        Sandbox::connect(&a, "eth0", a_address, &b, "eth0", b_address).unwrap();

        // One datagram, at once: this would show a loss of the first packets.
        let sender = a.run(|| UdpSocket::bind(a_socket).unwrap()).unwrap();
        let receiver = b.run(|| UdpSocket::bind(b_socket).unwrap()).unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        sender
            .send_to(b"datagram", receiver.local_addr().unwrap())
            .unwrap();
        let mut received = [0; 16];
        let (length, from) = receiver.recv_from(&mut received).unwrap();
        assert_eq!(&received[..length], b"datagram");
        assert_eq!(from, sender.local_addr().unwrap());

        let listener = b.run(|| TcpListener::bind(b_socket).unwrap()).unwrap();
        let mut client = a
            .run(|| TcpStream::connect(listener.local_addr().unwrap()).unwrap())
            .unwrap();
        let (mut server, peer) = listener.accept().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        client.write_all(b"stream").unwrap();
        let mut received = [0; 6];
        server.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"stream");
    }
}

#[test]
fn more_addresses_on_one_cable() {
    let (a, b) = (sandbox(), sandbox());
    Sandbox::connect(&a, "left", "10.0.0.1/24", &b, "right", "10.0.0.2/24").unwrap();
    b.add_address("right", "10.0.0.3/24").unwrap();
    b.add_address("right", "fd00::2/64").unwrap();
    a.add_address("left", "fd00::1/64").unwrap();
    for address in ["10.0.0.2:80", "10.0.0.3:81", "[fd00::2]:82"] {
        let _listener = b.run(|| TcpListener::bind(address).unwrap()).unwrap();
        a.run(|| TcpStream::connect(address).unwrap()).unwrap();
    }
}

#[test]
fn both_ends_in_one_sandbox() {
    let a = sandbox();
    Sandbox::connect(&a, "v0", "10.0.0.1/24", &a, "v1", "10.0.1.1/24").unwrap();
    assert!(has_interface(&a, "v0") && has_interface(&a, "v1"));
}

#[test]
fn a_router_between_two_sandboxes() {
    let (client, router, server) = (sandbox(), sandbox(), sandbox());
    let connect = |end: &Sandbox, address, interface, gateway| {
        Sandbox::connect(end, "eth0", address, &router, interface, gateway).unwrap();
    };
    connect(&client, "10.0.1.2/24", "eth0", "10.0.1.1/24");
    connect(&server, "10.0.2.2/24", "eth1", "10.0.2.1/24");
    client.add_address("eth0", "fd00:1::2/64").unwrap();
    router.add_address("eth0", "fd00:1::1/64").unwrap();
    server.add_address("eth0", "fd00:2::2/64").unwrap();
    router.add_address("eth1", "fd00:2::1/64").unwrap();
    client.add_route("0.0.0.0/0", "10.0.1.1").unwrap();
    client.add_route("fd00:2::/64", "fd00:1::1").unwrap();
    server.add_route("10.0.1.0/24", "10.0.2.1").unwrap();
    server.add_route("::/0", "fd00:2::1").unwrap();
    router.enable_forwarding().unwrap();

    for address in ["10.0.2.2:80", "[fd00:2::2]:80"] {
        let listener = server.run(|| TcpListener::bind(address).unwrap()).unwrap();
        let stream = client.run(|| TcpStream::connect(address).unwrap()).unwrap();
        let (_stream, peer) = listener.accept().unwrap();
        assert_eq!(peer, stream.local_addr().unwrap());
    }
}

#[test]
fn a_failed_connect_leaves_no_interfaces() {
    let (a, b) = (sandbox(), sandbox());
    Sandbox::connect(&a, "eth0", "10.0.0.1/24", &b, "eth0", "10.0.0.2/24").unwrap();

    let taken = Sandbox::connect(&a, "eth1", "10.1.0.1/24", &b, "eth0", "10.1.0.2/24").unwrap_err();
    assert!(
        matches!(&taken, chainwright_testing::Error::Network { source, .. } if source.kind() == ErrorKind::AlreadyExists),
        "{taken:?}"
    );
    assert!(!has_interface(&a, "eth1"));

    // A multicast address is invalid for an interface; setting the second address is the last step.
    let wrong = Sandbox::connect(&a, "eth1", "fd00::1/64", &b, "eth1", "ff02::1/64").unwrap_err();
    let text = report(&wrong);
    assert!(
        matches!(wrong, chainwright_testing::Error::Network { .. }),
        "{wrong:?}"
    );
    assert!(
        text.contains("add the address ff02::1/64 to eth1"),
        "{text}"
    );
    assert!(!has_interface(&a, "eth1") && !has_interface(&b, "eth1"));
}

#[test]
fn rejects_invalid_names_and_addresses() {
    let (a, b) = (sandbox(), sandbox());
    for name in ["", "a%d", "a b", "a/b", "a:b", "sixteen-bytes-xx"] {
        for (first, second) in [(name, "eth0"), ("eth0", name)] {
            let error =
                Sandbox::connect(&a, first, "10.1.0.1/24", &b, second, "10.1.0.2/24").unwrap_err();
            assert!(
                matches!(&error, chainwright_testing::Error::InvalidInterfaceName { name: n } if n == name),
                "{error:?}"
            );
        }
        let error = a.add_address(name, "10.1.0.1/24").unwrap_err();
        assert!(
            matches!(
                error,
                chainwright_testing::Error::InvalidInterfaceName { .. }
            ),
            "{error:?}"
        );
    }
    for address in [
        "",
        "10.0.0.1",
        "10.0.0.1/",
        "10.0.0.1/33",
        "10.0.0.1/-1",
        "10.0.0/8",
        "fd00::1/129",
        "name/8",
    ] {
        for error in [
            a.add_address("lo", address),
            a.add_route(address, "127.0.0.1"),
        ] {
            let error = error.unwrap_err();
            assert!(
                matches!(&error, chainwright_testing::Error::InvalidAddress { text, .. } if text == address),
                "{error:?}"
            );
            assert!(error.to_string().contains("10.0.0.1/24"), "{error}");
        }
    }
    let error = a.add_route("10.0.0.0/8", "10.0.0.1/24").unwrap_err();
    assert!(
        matches!(error, chainwright_testing::Error::InvalidAddress { .. }),
        "{error:?}"
    );
}
