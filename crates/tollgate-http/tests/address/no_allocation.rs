//! Finding the client's address does not allocate.

#[path = "../../../../tests/support/allocations.rs"]
mod allocations;

use http::HeaderName;
use tollgate_http::AddressPrefix;

use self::allocations::allocated;
use crate::{ip, lines, trusting};

#[test]
fn the_clients_address_is_found_without_allocating() {
    let many = "10.0.0.9, ".repeat(100_000);
    let garbage = "\\\"".repeat(500_000);
    let long = HeaderName::from_bytes("x-long-".repeat(20).as_bytes()).unwrap();
    let settings = [
        ("x-forwarded-for", trusting().x_forwarded_for()),
        ("forwarded", trusting().forwarded()),
        ("x-real-ip", trusting().x_real_ip()),
        ("x-real-ip", trusting().header(long)),
        (
            "x-forwarded-for",
            trusting().x_forwarded_for().trusted_hops(3),
        ),
    ];
    for (name, addresses) in settings {
        let requests = [
            lines(name, [] as [&str; 0]),
            lines(name, ["192.0.2.7"]),
            lines(name, ["1.1.1.1, [2001:db8::7]:443", "10.0.0.3, 10.0.0.2"]),
            lines(
                name,
                [
                    "for=1.1.1.1",
                    "for=\"[2001:db8::\\7]:443\";host=\"a\\\"b\", for=10.0.0.2",
                ],
            ),
            lines(name, [&many]),
            lines(name, [&garbage]),
            lines(name, vec!["10.0.0.9"; 10_000]),
            lines(name, vec!["for=\"10.0.0\\.9\""; 10_000]),
        ];
        for headers in &requests {
            let before = allocated();
            for peer in [
                "10.0.0.1",
                "::ffff:10.0.0.1",
                "2001:db8:aaaa::1",
                "192.0.2.1",
            ] {
                let client = addresses.of(ip(peer), headers);
                let _ = AddressPrefix::default().network(client);
            }
            assert_eq!(allocated() - before, 0, "{name}");
        }
    }
}
