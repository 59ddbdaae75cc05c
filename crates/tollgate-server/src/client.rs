//! Which client a proxy asks about.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use tollgate_http::ClientAddress;
use tollgate_policy::Policy;

/// How many proxies are warned of that do not name their clients.
const MOST_WARNED: usize = 16;

/// Finds the client of a proxy's question.
#[derive(Debug)]
pub(crate) struct Clients {
    /// How a proxy says who its client is, unless the policy's file says it: the last entry of
    /// `X-Forwarded-For`, which the proxy wrote itself.
    unless_said: ClientAddress,
    /// The proxies that were warned of.
    warned: Mutex<Vec<IpAddr>>,
    count: AtomicUsize,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            unless_said: ClientAddress::peer().trusted_hops(1).x_forwarded_for(),
            warned: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }
}

impl Clients {
    /// Returns the client's address, and logs once for each proxy that it does not name its client.
    pub(crate) fn of(&self, policy: &Policy, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let of_policy;
        let address = match policy.client_as(ClientAddress::of_policy) {
            Some(address) => address.as_ref(),
            None => {
                // Another part of the program made something else of the settings. They still hold.
                of_policy = ClientAddress::of_policy(policy.client());
                of_policy.as_ref()
            }
        };
        let address = address.unwrap_or(&self.unless_said);
        let client = address.of(peer, headers);
        // A question comes from a proxy, so the peer itself is rarely the client.
        if client == peer.to_canonical() && self.count.load(Relaxed) < MOST_WARNED {
            self.warn(policy, address.trusts(peer), client, headers);
        }
        client
    }

    #[cold]
    fn warn(&self, policy: &Policy, trusted: bool, proxy: IpAddr, headers: &HeaderMap) {
        let header = policy.client().header.as_ref();
        let header = header.map_or("x-forwarded-for", |header| header.as_str());
        let text = proxy.to_string();
        let names = |line: &http::HeaderValue| line.to_str().is_ok_and(|line| line.contains(&text));
        if trusted && headers.get_all(header).iter().any(names) {
            // The client runs beside the proxy.
            return;
        }
        // No step leaves it half done.
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() >= MOST_WARNED || warned.contains(&proxy) {
            return;
        }
        warned.push(proxy);
        self.count.store(warned.len(), Relaxed);
        drop(warned);
        match trusted {
            true => tracing::warn!(
                %proxy,
                "a proxy asks without an address in {header}: all its clients share one limit"
            ),
            false => tracing::warn!(
                %proxy,
                "a proxy asks that [client] of the policy does not trust: all its clients share \
                 one limit"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_hold_if_something_else_was_made_of_them() {
        let policy = Policy::from_toml("[client]\nhops = 2\nheader = 'x-forwarded-for'").unwrap();
        assert_eq!(policy.client_as(|_| 0_u8), Some(&0));
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "192.0.2.1, 192.0.2.2".parse().unwrap());
        let client = Clients::default().of(&policy, [127, 0, 0, 1].into(), &headers);
        assert_eq!(client, IpAddr::from([192, 0, 2, 1]));
    }

    #[test]
    fn a_flood_of_proxies_is_warned_of_a_few_times() {
        let policy = Policy::from_toml("").unwrap();
        let clients = Clients::default();
        let headers = HeaderMap::new();
        for last in 0..=u8::MAX {
            let peer = IpAddr::from([192, 0, 2, last]);
            assert_eq!(clients.of(&policy, peer, &headers), peer);
            assert_eq!(clients.of(&policy, peer, &headers), peer);
        }
        assert_eq!(clients.warned.into_inner().unwrap().len(), MOST_WARNED);
    }
}
