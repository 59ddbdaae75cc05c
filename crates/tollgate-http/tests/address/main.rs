//! The client's address, behind proxies of all kinds.

mod forged;
mod forwarded;
mod hostile;
mod no_allocation;
mod prefix;
mod random;
mod single;
mod x_forwarded_for;

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};
use tollgate_http::ClientAddress;

/// Headers with these lines of one name.
fn lines<L: AsRef<[u8]>>(name: &'static str, lines: impl IntoIterator<Item = L>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(name, HeaderValue::from_bytes(line.as_ref()).unwrap());
    }
    headers
}

#[track_caller]
fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Trusts the proxies in 10.0.0.0/8 and 2001:db8:aaaa::/48.
fn trusting() -> ClientAddress {
    let addresses = ClientAddress::peer().trust("10.0.0.0/8").unwrap();
    addresses.trust("2001:db8:aaaa::/48").unwrap()
}
