//! Headers of the PROXY protocol, version 2.

use std::net::{Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use tollgate_http::proxy::{self, MAX_LEN, Progress, ProxyError, ProxyHeader};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header with these two bytes and this payload.
fn header(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &len, payload].concat()
}

/// From 192.0.2.7:40960 to 10.0.0.1:443.
const V4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0xA0, 0, 1, 0xBB];

fn v6() -> Vec<u8> {
    let addresses = ["2001:db8::7", "2001:db8::1"].map(|it| it.parse::<Ipv6Addr>().unwrap());
    [
        &addresses[0].octets()[..],
        &addresses[1].octets(),
        &[0xA0, 0, 1, 0xBB],
    ]
    .concat()
}

fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).unwrap().to_be_bytes();
    [&[kind], &len[..], value].concat()
}

#[track_caller]
fn done(bytes: &[u8]) -> ProxyHeader {
    match proxy::read(bytes) {
        Ok(Progress::Done(header)) => header,
        other => panic!("{other:?} for {bytes:?}"),
    }
}

#[track_caller]
fn error(bytes: &[u8]) -> ProxyError {
    proxy::read(bytes).unwrap_err()
}

#[test]
fn addresses_are_those_of_the_client_and_of_the_server() {
    for family in [0x11, 0x12] {
        let found = done(&header(0x21, family, &V4));
        assert_eq!(found.source(), "192.0.2.7:40960".parse().ok());
        assert_eq!(found.destination(), "10.0.0.1:443".parse().ok());
        assert!(!found.is_local());
        assert_eq!(found.header_len(), 28);
    }
    for family in [0x21, 0x22] {
        let found = done(&header(0x21, family, &v6()));
        assert_eq!(found.source(), "[2001:db8::7]:40960".parse().ok());
        assert_eq!(found.destination(), "[2001:db8::1]:443".parse().ok());
        assert_eq!(found.header_len(), 52);
    }
}

#[test]
fn some_headers_have_no_addresses() {
    let unix = [b'/'; 216];
    for (command, family, payload, is_local) in [
        (0x20, 0x00, &[][..], true),
        // The family of a local connection is ignored, and so is what follows.
        (0x20, 0x11, &V4, true),
        (0x20, 0xFF, b"any", true),
        (0x21, 0x00, &[], false),
        (0x21, 0x00, b"any", false),
        (0x21, 0x01, b"any", false),
        (0x21, 0x10, b"any", false),
        (0x21, 0x31, &unix, false),
        (0x21, 0x32, &unix, false),
    ] {
        let found = done(&header(command, family, payload));
        assert_eq!(found.is_local(), is_local, "{command:x} {family:x}");
        assert_eq!(
            (found.source(), found.destination()),
            (None, None),
            "{command:x} {family:x}"
        );
        assert_eq!(found.header_len(), 16 + payload.len());
    }
}

#[test]
fn what_follows_the_header_is_not_read() {
    let bytes = [&header(0x21, 0x11, &V4)[..], b"GET / HTTP/1.1\r\n"].concat();
    assert_eq!(&bytes[done(&bytes).header_len()..], b"GET / HTTP/1.1\r\n");
}

#[test]
fn each_piece_asks_for_what_the_header_needs_and_no_more() {
    let bytes = header(0x21, 0x21, &[&v6()[..], &tlv(4, &[0; 100])].concat());
    for len in 0..bytes.len() {
        let missing = if len < 16 {
            16 - len
        } else {
            bytes.len() - len
        };
        assert_eq!(proxy::read(&bytes[..len]), Ok(Progress::Needs(missing)));
    }
    assert_eq!(done(&bytes).header_len(), bytes.len());
}

#[test]
fn other_protocols_are_refused_at_the_first_wrong_byte() {
    for len in 0..SIGNATURE.len() {
        let mut bytes = SIGNATURE.to_vec();
        bytes[len] ^= 0x20;
        for end in len + 1..=bytes.len() {
            assert_eq!(error(&bytes[..end]), ProxyError::Signature);
        }
    }
    assert_eq!(
        error(b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n"),
        ProxyError::Signature
    );
    assert_eq!(
        error(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ProxyError::Signature
    );
    assert_eq!(error(b"\x16\x03\x01"), ProxyError::Signature);
}

#[test]
fn version_1_is_refused_with_an_error_that_names_it() {
    let text = b"PROXY TCP4 192.0.2.7 10.0.0.1 40960 443\r\nGET / HTTP/1.1\r\n";
    assert_eq!(error(text), ProxyError::Version1);
    assert_eq!(error(&text[..6]), ProxyError::Version1);
    let message = "PROXY header: version 1 is not supported; let the proxy send version 2";
    assert_eq!(ProxyError::Version1.to_string(), message);
}

#[test]
fn unknown_numbers_are_errors_that_say_what_is_allowed() {
    for (command, family, expected, message) in [
        (
            0x11,
            0x11,
            ProxyError::Version(1),
            "version 1 is unknown; must be 2",
        ),
        (
            0x31,
            0x11,
            ProxyError::Version(3),
            "version 3 is unknown; must be 2",
        ),
        (
            0x22,
            0x11,
            ProxyError::Command(2),
            "command 2 is unknown; must be 0 (local) or 1 (proxy)",
        ),
        (
            0x2F,
            0x11,
            ProxyError::Command(15),
            "command 15 is unknown; must be 0 (local) or 1 (proxy)",
        ),
        (
            0x21,
            0x41,
            ProxyError::Family(4),
            "address family 4 is unknown; must be 0 to 3",
        ),
        (
            0x21,
            0x13,
            ProxyError::Transport(3),
            "transport 3 is unknown; must be 0 to 2",
        ),
    ] {
        let found = error(&header(command, family, &V4));
        assert_eq!(found, expected);
        assert_eq!(found.to_string(), format!("PROXY header: {message}"));
        // It is refused before the rest is there.
        assert_eq!(error(&header(command, family, &V4)[..16]), expected);
    }
}

#[test]
fn a_length_that_is_too_short_for_the_addresses_is_an_error() {
    for (family, shortest) in [(0x11, 12), (0x22, 36), (0x31, 216)] {
        let length = u16::try_from(shortest - 1).unwrap();
        let found = error(&header(0x21, family, &vec![0; shortest - 1]));
        assert_eq!(found, ProxyError::TooShort { length, shortest });
        done(&header(0x21, family, &vec![0; shortest]));
    }
}

#[test]
fn a_header_has_a_maximum_length() {
    let longest = header(0x20, 0, &vec![0; MAX_LEN - 16]);
    assert_eq!(done(&longest).header_len(), MAX_LEN);
    let found = error(&header(0x20, 0, &vec![0; MAX_LEN - 15])[..16]);
    assert_eq!(found, ProxyError::TooLong(4097));
    let message = "PROXY header: a length of 4097 bytes is too long; the whole header can have \
                   4112 bytes";
    assert_eq!(found.to_string(), message);
}

#[test]
fn additions_are_skipped() {
    let additions = [
        tlv(1, b"h2"),
        tlv(2, b"example.com"),
        tlv(4, &[]),
        tlv(0x20, &[0; 300]),
    ];
    let found = done(&header(
        0x21,
        0x11,
        &[&V4[..], &additions.concat()].concat(),
    ));
    assert_eq!(found.source(), "192.0.2.7:40960".parse().ok());
}

#[test]
fn an_addition_that_is_not_whole_is_an_error() {
    for addition in [
        &[5][..],
        &[5, 0],
        &[5, 0, 1],
        &[5, 0xFF, 0xFF, 0],
        &[4, 0, 0, 5, 0, 3, 0, 0],
    ] {
        let found = error(&header(0x21, 0x11, &[&V4[..], addition].concat()));
        assert_eq!(found, ProxyError::Addition(5), "{addition:?}");
    }
    for sums in [
        tlv(3, &[0; 3]),
        tlv(3, &[0; 5]),
        [tlv(3, &[0; 4]), tlv(3, &[0; 4])].concat(),
    ] {
        let found = error(&header(0x21, 0x11, &[&V4[..], &sums].concat()));
        assert_eq!(found, ProxyError::Addition(3), "{sums:?}");
    }
    let message = "PROXY header: the TLV of type 0x05 is malformed";
    assert_eq!(ProxyError::Addition(5).to_string(), message);
}

/// The sum was made with another implementation.
#[test]
fn a_checksum_is_verified() {
    let with_sum = |sum: u32| {
        let additions = [
            tlv(2, b"example.com"),
            tlv(3, &sum.to_be_bytes()),
            tlv(4, &[0; 7]),
        ];
        header(0x21, 0x11, &[&V4[..], &additions.concat()].concat())
    };
    const SUM: u32 = 0x639E_BC86;
    assert_eq!(
        done(&with_sum(SUM)).source(),
        "192.0.2.7:40960".parse().ok()
    );
    let found = error(&with_sum(1));
    assert_eq!(
        found,
        ProxyError::Checksum {
            found: 1,
            expected: SUM
        }
    );
    let right = with_sum(SUM);
    // One bit after the length changes the sum, unless the addition is no longer a checksum.
    let sum_at = 16 + 12 + 14;
    assert_eq!(right[sum_at], 3);
    for at in (16..right.len()).filter(|at| *at != sum_at) {
        let mut bytes = right.clone();
        bytes[at] ^= 1;
        assert!(proxy::read(&bytes).is_err(), "{at}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_header_or_more_is_needed_or_an_error(
        starts in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = if starts { [SIGNATURE, &[0x21], &bytes].concat() } else { bytes };
        match proxy::read(&bytes) {
            Ok(Progress::Done(header)) => {
                prop_assert!((16..=bytes.len().min(MAX_LEN)).contains(&header.header_len()));
                // It does not depend on what follows it.
                prop_assert_eq!(done(&bytes[..header.header_len()]), header);
            }
            Ok(Progress::Needs(more)) => {
                prop_assert!(more > 0 && bytes.len() + more <= MAX_LEN);
            }
            // What begins wrong does not become right.
            Err(_) => prop_assert!(proxy::read(&[&bytes[..], &[0; 300]].concat()).is_err()),
        }
    }

    #[test]
    fn a_header_that_was_written_is_read(
        source in any::<SocketAddr>(),
        destination in any::<SocketAddr>(),
        noise in prop::collection::vec((4_u8..=255, prop::collection::vec(any::<u8>(), 0..50)), 0..4),
    ) {
        let (family, addresses) = match (source, destination) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => {
                (0x11, [from.ip().octets(), to.ip().octets()].concat())
            }
            (SocketAddr::V6(from), SocketAddr::V6(to)) => {
                (0x21, [from.ip().octets(), to.ip().octets()].concat())
            }
            _ => return Ok(()),
        };
        let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
        let additions: Vec<u8> = noise.iter().flat_map(|(kind, value)| tlv(*kind, value)).collect();
        let found = done(&header(0x21, family, &[addresses, ports, additions].concat()));
        let plain = |it: SocketAddr| SocketAddr::new(it.ip(), it.port());
        prop_assert_eq!(found.source(), Some(plain(source)));
        prop_assert_eq!(found.destination(), Some(plain(destination)));
    }
}
