//! A set of networks.

use std::net::IpAddr;

use ipnet::IpNet;
use tollgate::address::canonical_network;

use super::error::{AddressError, Kind};

/// A set of networks. Finding an address takes logarithmic time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Networks {
    /// Sorted, and disjoint.
    disjoint: Vec<IpNet>,
}

impl Networks {
    /// Adds networks. A network of IPv4 addresses written as IPv6 becomes one of IPv4.
    pub(super) fn add(&mut self, networks: impl IntoIterator<Item = IpNet>) {
        self.disjoint.extend(networks.into_iter().map(|network| {
            let (address, bits) = canonical_network(network.addr(), network.prefix_len());
            IpNet::new(address, bits).unwrap_or(network)
        }));
        self.disjoint = IpNet::aggregate(&self.disjoint);
    }

    /// Whether a network contains the address, which is canonical.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let begins_before = |network: &IpNet| network.network() <= address;
        let after = self.disjoint.partition_point(begins_before);
        let before = after.checked_sub(1).and_then(|at| self.disjoint.get(at));
        before.is_some_and(|network| network.contains(&address))
    }
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
