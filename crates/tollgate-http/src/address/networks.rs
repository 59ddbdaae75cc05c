//! A set of networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::error::{AddressError, Kind};

/// A set of networks. Finding an address takes logarithmic time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Networks {
    v4: Vec<(Ipv4Addr, Ipv4Addr)>,
    v6: Vec<(Ipv6Addr, Ipv6Addr)>,
}

impl Networks {
    /// Adds networks. A network of addresses such as `::ffff:10.0.0.0` is one of version 4.
    pub(super) fn add(&mut self, networks: impl IntoIterator<Item = IpNet>) {
        for network in networks {
            let (first, last) = (network.network(), network.broadcast());
            let canonical = (first.to_canonical(), last.to_canonical());
            if let (IpAddr::V4(first), IpAddr::V4(last)) = canonical {
                self.v4.push((first, last));
            } else if let (IpAddr::V6(first), IpAddr::V6(last)) = (first, last) {
                self.v6.push((first, last));
            }
        }
        without_inner(&mut self.v4);
        without_inner(&mut self.v6);
    }

    /// Whether a network contains the address, which is canonical.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => contains(&self.v4, address),
            IpAddr::V6(address) => contains(&self.v6, address),
        }
    }
}

/// Sorts networks, and leaves out those that are inside others. Two networks are either disjoint or
/// one contains the other.
fn without_inner<T: Copy + Ord>(networks: &mut Vec<(T, T)>) {
    networks.sort_unstable_by(|(first, last), (other, other_last)| {
        first.cmp(other).then(other_last.cmp(last))
    });
    networks.dedup_by(|(_, inner), (_, outer)| inner <= outer);
}

fn contains<T: Copy + Ord>(networks: &[(T, T)], address: T) -> bool {
    let after = networks.partition_point(|(first, _)| *first <= address);
    let before = after.checked_sub(1).and_then(|at| networks.get(at));
    before.is_some_and(|(_, last)| address <= *last)
}

/// Reads an address or a network.
pub(super) fn parse(text: &str) -> Result<IpNet, AddressError> {
    let network = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text
            .parse::<IpNet>()
            .map_err(|_| AddressError::new(Kind::Network(text.into())))?,
    };
    if network.addr() != network.network() {
        return Err(AddressError::new(Kind::HostBits(
            text.into(),
            network.trunc(),
        )));
    }
    Ok(network)
}
