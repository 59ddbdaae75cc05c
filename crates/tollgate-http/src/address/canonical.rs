//! One form for each address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns `::ffff:192.0.2.7` as `192.0.2.7`, and every other address as it is: the same as
/// [`IpAddr::to_canonical`].
///
/// That one reads single bytes. This one reads whole numbers, which stay in registers.
#[inline]
pub(crate) const fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits())),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            if bits >> 32 == 0xffff {
                IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
            } else {
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            }
        }
    }
}
