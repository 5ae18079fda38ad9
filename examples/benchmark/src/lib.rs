//! A crate's own code that uses chains, to be measured: see `benches/chains.rs`.

use chainwright::netlink::Error;
use chainwright::nft::{Connection, Family, Scope};

/// Counts the service chains in a kube-proxy's table.
///
/// # Errors
/// Those of the listing.
pub fn services(nft: &mut Connection) -> Result<usize, Error> {
    let mut count = 0;
    nft.chains(Scope::table(Family::IP, "nat"))?
        .for_each(|chain| count += usize::from(chain.name().starts_with(b"KUBE-SVC-")))?;
    Ok(count)
}
