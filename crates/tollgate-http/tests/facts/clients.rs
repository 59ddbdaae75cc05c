//! What the table `[client]` of a policy says is what a program would say in Rust.

use http::HeaderName;
use tollgate_http::{ClientAddress, PathForm};
use tollgate_policy::file::PolicyFile;

fn of(client: &str) -> (Option<ClientAddress>, Option<PathForm>) {
    let file = PolicyFile::from_toml(&format!("[client]\n{client}")).expect("a policy");
    let path = file.client.path.map(PathForm::from);
    (ClientAddress::of_policy(&file.client), path)
}

#[test]
fn each_setting_of_a_policy_is_one_of_the_program() {
    let peer = ClientAddress::peer;
    let trust = |network| peer().trust(network).expect("a network");
    let cloudflare = HeaderName::from_static("cf-connecting-ip");
    for (client, address, path) in [
        ("", None, None),
        ("path = 'as-sent'", None, Some(PathForm::AsSent)),
        ("path = 'decoded'", None, Some(PathForm::Decoded)),
        ("path = 'normalized'", None, Some(PathForm::Normalized)),
        ("trust = []", Some(peer().trust_networks([])), None),
        (
            "trust = ['10.0.0.0/8', '::ffff:192.0.2.1']\nheader = 'X-Forwarded-For'",
            Some(
                trust("10.0.0.0/8")
                    .trust("192.0.2.1")
                    .expect("an address")
                    .x_forwarded_for(),
            ),
            None,
        ),
        (
            "hops = 255\nheader = 'forwarded'",
            Some(peer().trusted_hops(255).forwarded()),
            None,
        ),
        (
            "trust = '2001:db8::/32'\nhops = 1\nheader = 'x-real-ip'",
            Some(trust("2001:db8::/32").trusted_hops(1).x_real_ip()),
            None,
        ),
        (
            "trust = '192.0.2.0/24'\nheader = 'CF-Connecting-IP'",
            Some(trust("192.0.2.0/24").header(cloudflare)),
            None,
        ),
    ] {
        assert_eq!(of(client), (address, path), "{client}");
    }
}
