//! An address as proxies write it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str;

use tollgate::address::canonical;

/// Reads an address, with or without a port: `192.0.2.7`, `192.0.2.7:80`, `2001:db8::1`,
/// `[2001:db8::1]` or `[2001:db8::1]:443`. Other texts, such as `unknown`, are none.
pub(super) fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text.trim_ascii()).ok()?;
    if let Some(inside) = text.strip_prefix('[') {
        let (address, port) = inside.split_once(']')?;
        if !port.is_empty() && !is_port(port.strip_prefix(':')?) {
            return None;
        }
        let address = address.parse::<Ipv6Addr>().ok()?;
        return Some(canonical(address.into()));
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(canonical(address));
    }
    let (address, port) = text.rsplit_once(':')?;
    let address = address.parse::<Ipv4Addr>().ok()?;
    is_port(port).then_some(address.into())
}

/// A number, or a name that hides it, which begins with `_`.
fn is_port(text: &str) -> bool {
    if let Some(name) = text.strip_prefix('_') {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        return !name.is_empty() && name.bytes().all(allowed);
    }
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}
