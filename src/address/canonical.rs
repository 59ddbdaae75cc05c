//! IPv4 addresses that are written as IPv6.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns an IPv4 address that is written as one of IPv6 in its own form, and any other address
/// unchanged.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::address::canonical;
///
/// let address = |text: &str| text.parse::<IpAddr>().unwrap();
/// assert_eq!(canonical(address("::ffff:192.0.2.7")), address("192.0.2.7"));
/// assert_eq!(canonical(address("64:ff9b::192.0.2.7")), address("192.0.2.7"));
/// for other in ["192.0.2.7", "2001:db8::1", "64:ff9b:1::192.0.2.7", "::192.0.2.7"] {
///     assert_eq!(canonical(address(other)), address(other));
/// }
/// ```
#[must_use]
#[inline]
pub const fn canonical(address: IpAddr) -> IpAddr {
    canonical_network(address, 128).0
}

/// Returns the [`canonical`] form of a network, which is given by an address and the number of its
/// first bits that count.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::address::canonical_network;
///
/// let address = |text: &str| text.parse::<IpAddr>().unwrap();
/// assert_eq!(canonical_network(address("::ffff:10.0.0.0"), 104), (address("10.0.0.0"), 8));
/// // This network also has addresses that are not of version 4.
/// assert_eq!(canonical_network(address("::"), 64), (address("::"), 64));
/// ```
#[must_use]
#[inline]
pub const fn canonical_network(address: IpAddr, bits: u8) -> (IpAddr, u8) {
    const MAPPED: u128 = 0xffff;
    const TRANSLATED: u128 = 0x0064_ff9b << 64;
    // Whole numbers stay in registers.
    match address {
        IpAddr::V4(address) => (IpAddr::V4(Ipv4Addr::from_bits(address.to_bits())), bits),
        IpAddr::V6(address) => {
            let number = address.to_bits();
            match (number >> 32, bits.checked_sub(96)) {
                (MAPPED | TRANSLATED, Some(bits)) => {
                    (IpAddr::V4(Ipv4Addr::from_bits(number as u32)), bits)
                }
                _ => (IpAddr::V6(Ipv6Addr::from_bits(number)), bits),
            }
        }
    }
}
