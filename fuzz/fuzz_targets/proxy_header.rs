//! Any bytes at the start of a connection: a header, a number of bytes that are missing, or an
//! error. The address counts from a trusted peer only.
#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use tollgate_http::ClientAddress;
use tollgate_http::proxy::{self, MAX_LEN, Progress};

fn check(bytes: &[u8]) {
    match proxy::read(bytes) {
        Ok(Progress::Done(header)) => {
            let len = header.header_len();
            assert!((16..=MAX_LEN.min(bytes.len())).contains(&len));
            // What follows makes no difference, and no shorter start is a header.
            assert_eq!(proxy::read(&bytes[..len]), Ok(Progress::Done(header)));
            let Ok(Progress::Needs(more)) = proxy::read(&bytes[..len - 1]) else {
                panic!("a header is complete without its last byte");
            };
            assert_eq!(more, 1);
            assert_eq!(header.source().is_some(), header.destination().is_some());
            assert!(!(header.is_local() && header.source().is_some()));
            let peer = IpAddr::from([192, 0, 2, 7]);
            assert_eq!(ClientAddress::peer().proxied(peer, &header), peer);
            let client = ClientAddress::peer().trusted_hops(1).proxied(peer, &header);
            let source = header
                .source()
                .map_or(peer, |source| source.ip().to_canonical());
            assert_eq!(client, source);
        }
        Ok(Progress::Needs(more)) => assert!(more > 0 && bytes.len() + more <= MAX_LEN),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            // More bytes do not mend it.
            let longer = [bytes, &[0; MAX_LEN]].concat();
            assert!(proxy::read(&longer).is_err());
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&[&b"\r\n\r\n\0\r\nQUIT\n\x21"[..], bytes].concat());
    // With the length that it has.
    if let Some((family, payload)) = bytes.split_first() {
        let len = u16::try_from(payload.len())
            .unwrap_or(u16::MAX)
            .to_be_bytes();
        check(&[&b"\r\n\r\n\0\r\nQUIT\n\x21"[..], &[*family], &len, payload].concat());
    }
});
