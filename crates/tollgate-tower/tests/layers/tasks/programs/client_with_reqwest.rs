use std::time::Duration;

use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tollgate_client::ClientLimitLayer;

pub(crate) fn client() -> ClientWithMiddleware {
    let layer = ClientLimitLayer::new().max_wait(Duration::from_secs(10));
    ClientBuilder::new(reqwest::Client::new())
        .with(layer)
        .build()
}
