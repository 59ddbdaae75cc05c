//! Making a key allocates once, whether its user is hashed or readable.

#[path = "../../../tests/support/allocations.rs"]
mod allocations;

use tollgate_redis::Keys;

use allocations::allocated;

#[test]
fn a_key_is_one_allocation() {
    let keys = Keys::new("api").unwrap();
    let secret = keys.clone().with_secret("0123456789abcdef").unwrap();
    let tagged = keys.clone().with_tag("eu").unwrap();
    let readable = keys.clone().with_readable_users();
    for keys in [keys, secret, tagged, readable] {
        for user in [
            "alice",
            "",
            "an address that does not fit one block of the hash any more",
        ] {
            let before = allocated();
            let key = keys.key("login", user.as_bytes());
            assert_eq!(allocated() - before, 1, "{}", key.len());
        }
    }
}
