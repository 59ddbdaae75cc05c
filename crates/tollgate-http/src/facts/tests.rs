//! How much of a request is looked at.

use std::cell::Cell;

use http::{HeaderMap, Method, Uri};

use super::RequestFacts;

thread_local! {
    /// How many parameters and cookies were looked at.
    static LOOKED: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn looked_at<T>(_: &T) {
    LOOKED.with(|looked| looked.set(looked.get() + 1));
}

/// Parts with different names, of this many bytes.
fn parts(bytes: usize, end: char) -> String {
    let mut parts = String::new();
    for number in 0.. {
        if parts.len() >= bytes {
            break;
        }
        parts += &format!("p{number}=x{end}");
    }
    parts
}

#[test]
fn a_long_request_is_read_once_for_all_names() {
    let uri: Uri = format!("/?{}", parts(60_000, '&')).parse().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("cookie", parts(60_000, ';').parse().unwrap());
    let method = Method::GET;
    let facts = RequestFacts::of(&method, &uri, &headers);
    LOOKED.set(0);
    for name in 0..200 {
        let _ = facts.query(&format!("name-{name}"));
        let _ = facts.cookie(&format!("name-{name}"));
    }
    assert!(LOOKED.get() <= 1000, "{} parts", LOOKED.get());
    // A short one is read again for each name.
    let uri: Uri = format!("/?{}", parts(400, '&')).parse().unwrap();
    let facts = RequestFacts::of(&method, &uri, &headers);
    LOOKED.set(0);
    for name in 0..200 {
        let _ = facts.query(&format!("name-{name}"));
    }
    assert!(LOOKED.get() <= 200 * 80, "{} parts", LOOKED.get());
}
