//! Facts of requests: paths in each form, hosts, headers, queries and cookies.

mod answer;
mod clients;
mod hostile;
mod many;
mod path;
mod policy;
mod random;
mod repeated;
mod request;

use http::Request;

/// A request to this URI with these headers.
#[track_caller]
fn request(uri: &str, headers: &[(&str, &[u8])]) -> Request<()> {
    let mut request = Request::builder().uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}
