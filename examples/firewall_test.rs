//! Tests a firewall with real packets, without root: a template for a test file.
//!
//! Run it with `cargo test --example firewall_test`. In another crate:
//!
//! ```toml
//! [dev-dependencies]
//! chainwright-testing = "…"
//! ```

chainwright_testing::sandbox_tests!();

fn main() {
    println!("cargo test --example firewall_test");
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::time::Duration;

    use chainwright::iptables::text::RestoreOptions;
    use chainwright::iptables::{Family, Iptables};
    use chainwright_testing::Sandbox;

    type Error = Box<dyn std::error::Error + Send + Sync>;

    /// The firewall to test: connections to port 80 go to port 8080, and nothing else is accepted.
    const FIREWALL: &str = "\
*nat
-A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.0.0.2:8080
COMMIT
*filter
:INPUT DROP [0:0]
-A INPUT -p tcp -m conntrack --ctstate DNAT -j ACCEPT
COMMIT
";

    /// Two namespaces with a cable between them: a client, 10.0.0.1, and a server, 10.0.0.2.
    struct Network {
        client: Sandbox,
        server: Sandbox,
    }

    impl Network {
        fn new() -> Result<Self, Error> {
            let (client, server) = (Sandbox::new()?, Sandbox::new()?);
            Sandbox::connect(
                &client,
                "eth0",
                "10.0.0.1/24",
                &server,
                "eth0",
                "10.0.0.2/24",
            )?;
            Ok(Self { client, server })
        }

        /// Connects to the server and returns what a listener on the port `listening` sends; `None` if the
        /// client gets no answer.
        fn request(&self, port: u16, listening: u16) -> Result<Option<String>, Error> {
            let address = |port| SocketAddr::from(([10, 0, 0, 2], port));
            let listener = self
                .server
                .run(|| TcpListener::bind(address(listening)))??;
            let wait = Duration::from_millis(500);
            let Ok(mut stream) = self
                .client
                .run(|| TcpStream::connect_timeout(&address(port), wait))?
            else {
                return Ok(None);
            };
            let (mut accepted, _) = listener.accept()?;
            accepted.write_all(b"hello")?;
            drop(accepted);
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(Some(text))
        }
    }

    #[test]
    fn only_port_80_is_answered() -> Result<(), Error> {
        let network = Network::new()?;
        assert_eq!(network.request(8080, 8080)?.as_deref(), Some("hello"));

        let mut iptables = network.server.run(Iptables::nft)??;
        iptables.restore(Family::Ipv4, FIREWALL, &RestoreOptions::default())?;

        assert_eq!(network.request(80, 8080)?.as_deref(), Some("hello"));
        assert_eq!(network.request(8080, 8080)?, None);
        Ok(())
    }
}
