//! Any headers from any peer: nothing that a client sends changes what a trusted proxy appends, and
//! nothing counts from a peer that is not trusted.
#![no_main]

use std::net::IpAddr;
use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use tollgate::address::canonical;
use tollgate_http::{AddressPrefix, ClientAddress};

const PROXY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: &str = "192.0.2.7";

/// A header, what a proxy appends to it, and the settings that read it.
type Case = (HeaderName, Option<String>, ClientAddress);

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let trusting = || {
        let addresses = ClientAddress::peer()
            .trust("10.0.0.0/8")
            .expect("a network");
        addresses.trust("2001:db8:aaaa::/48").expect("a network")
    };
    let counting = ClientAddress::peer().trusted_hops(1);
    let named = |name, appended: Option<String>, addresses| {
        (HeaderName::from_static(name), appended, addresses)
    };
    let (address, element) = (
        CLIENT.to_owned(),
        format!("by=_a;FOR=\"{CLIENT}:80\";host=\"a,\\\"\""),
    );
    vec![
        named(
            "x-forwarded-for",
            Some(address.clone()),
            trusting().x_forwarded_for(),
        ),
        named(
            "x-forwarded-for",
            Some(address),
            counting.clone().x_forwarded_for(),
        ),
        named("forwarded", Some(element.clone()), trusting().forwarded()),
        named("forwarded", Some(element), counting.forwarded()),
        named("x-real-ip", None, trusting().x_real_ip()),
    ]
});

fn headers(name: &HeaderName, lines: &[Vec<u8>]) -> HeaderMap {
    let values = lines
        .iter()
        .filter_map(|line| HeaderValue::from_bytes(line).ok());
    values.map(|value| (name.clone(), value)).collect()
}

fuzz_target!(|input: (IpAddr, bool, Vec<&[u8]>)| {
    let (peer, same_line, sent) = input;
    // Lines that can't be sent are not.
    let mut sent: Vec<Vec<u8>> = sent.into_iter().map(<[u8]>::to_vec).collect();
    sent.retain(|line| HeaderValue::from_bytes(line).is_ok());
    for (name, appended, addresses) in &*CASES {
        let found = addresses.of(peer, &headers(name, &sent));
        assert_eq!(found, canonical(found));
        if !addresses.trusts(peer) {
            assert_eq!(found, canonical(peer));
        }
        let prefix = AddressPrefix::default();
        let network = prefix.network(found);
        assert_eq!(prefix.network(network), network);
        let Some(appended) = appended else {
            continue;
        };
        let mut lines = sent.clone();
        match lines.last_mut() {
            Some(last) if same_line => last.extend(format!(", {appended}").bytes()),
            _ => lines.push(appended.clone().into_bytes()),
        }
        let found = addresses.of(PROXY, &headers(name, &lines));
        assert_eq!(found.to_string(), CLIENT);
    }
});
