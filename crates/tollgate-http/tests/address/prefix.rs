//! Networks as keys.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

use tollgate_http::AddressPrefix;

use crate::ip;

#[test]
fn a_million_addresses_of_one_64_are_one_key() {
    let prefix = AddressPrefix::default();
    let first = u128::from_be_bytes(*b"\x20\x01\x0d\xb8\0\x01\0\x02\0\0\0\0\0\0\0\0");
    let networks: HashSet<_> = (0..1_000_000_u64)
        .map(|host| first | u128::from(host.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .map(|bits| prefix.network(Ipv6Addr::from_bits(bits).into()))
        .collect();
    assert_eq!(networks, HashSet::from([ip("2001:db8:1:2::")]));
    assert_ne!(prefix.network(ip("2001:db8:1:3::")), ip("2001:db8:1:2::"));
}

#[test]
fn each_length_keeps_that_many_bits() {
    for bits in 0..=128 {
        let prefix = AddressPrefix::new(bits.min(32), bits).unwrap();
        assert_eq!((prefix.v4(), prefix.v6()), (bits.min(32), bits));
        let of = |text| match prefix.network(ip(text)) {
            IpAddr::V4(address) => (
                address.to_bits().count_ones(),
                address.to_bits().leading_ones(),
            ),
            IpAddr::V6(address) => (
                address.to_bits().count_ones(),
                address.to_bits().leading_ones(),
            ),
        };
        let six = u32::from(bits);
        assert_eq!(of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), (six, six));
        let four = six.min(32);
        assert_eq!(of("255.255.255.255"), (four, four));
        assert_eq!(of("::ffff:255.255.255.255"), (four, four));
    }
}

#[test]
fn a_mapped_address_has_the_bits_of_version_4() {
    let prefix = AddressPrefix::new(24, 0).unwrap();
    assert_eq!(prefix.network(ip("::ffff:192.0.2.7")), ip("192.0.2.0"));
    assert_eq!(prefix.network(ip("2001:db8::7")), ip("::"));
}

/// All IPv4 clients of a server that has IPv6 only come from one /64.
#[test]
fn clients_behind_a_translator_have_keys_of_their_own() {
    let prefix = AddressPrefix::default();
    assert_eq!(prefix.network(ip("64:ff9b::192.0.2.7")), ip("192.0.2.7"));
    assert_ne!(
        prefix.network(ip("64:ff9b::192.0.2.7")),
        prefix.network(ip("64:ff9b::192.0.2.8"))
    );
    // Other networks of that block, whose lengths are not known.
    for other in [
        "64:ff9b:1::192.0.2.7",
        "64:ff9b::1:192.0.2.7",
        "64:ff9a::192.0.2.7",
    ] {
        assert!(prefix.network(ip(other)).is_ipv6(), "{other}");
    }
}

#[test]
fn too_many_bits_are_an_error_that_says_what_is_allowed() {
    let error = |v4, v6| AddressPrefix::new(v4, v6).unwrap_err().to_string();
    assert_eq!(error(33, 64), "v4 prefix of 33 bits: must be 0 to 32");
    assert_eq!(error(32, 129), "v6 prefix of 129 bits: must be 0 to 128");
}
