//! An HTTP service with axum: plans by API key, a ban for addresses that guess keys, and headers.
//!
//! ```text
//! cargo run -p tollgate-example-axum
//! curl -i -H 'x-api-key: bob' http://127.0.0.1:3000/
//! ```

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::{error::Error, sync::Arc, time::Duration};

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response, Result};
use axum::{Router, http::StatusCode, routing::get};
use tollgate::clock::{Clock, SystemClock};
use tollgate::{ConfigError, Denied, FixedWindow, Keyed, Quota, TokenBucket, outcome::ceil_secs};

/// API keys and their plans. A real service would ask its database.
const CUSTOMERS: [(&str, &str); 2] = [("alice", "paid"), ("bob", "free")];
const BAN: Duration = Duration::from_secs(900);

struct Limits<C> {
    /// Limits for each API key, with a plan for each tier.
    keys: Keyed<TokenBucket, C>,
    /// Limits for each address, over all of its keys. Requests denied by their key count too.
    addresses: Keyed<TokenBucket, C>,
    /// Wrong keys for each address: the third one within an hour bans it.
    strikes: Keyed<FixedWindow, C>,
}

fn router<C: Clock + Clone + Send + Sync + 'static>(clock: C) -> Result<Router, ConfigError> {
    let free = TokenBucket::new(Quota::per_minute(60).burst(5))?;
    let paid = TokenBucket::new(Quota::per_minute(600).burst(50))?;
    let plans = [("free", free), ("paid", paid)];
    let address = TokenBucket::new(Quota::per_second(100))?;
    let two = FixedWindow::new(Quota::per_hour(2))?.opened_by_first_hit()?;
    let limits = Limits {
        keys: Keyed::with_named_plans(plans, 100_000, clock.clone())?,
        addresses: Keyed::with_clock(address, 100_000, clock.clone())?,
        strikes: Keyed::with_clock(two, 10_000, clock)?,
    };
    let router = Router::new().route("/", get(async || "hello\n"));
    Ok(router.layer(from_fn_with_state(Arc::new(limits), limit)))
}

async fn limit<C: Clock>(
    State(limits): State<Arc<Limits<C>>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>, // behind a proxy: the address that it forwards
    request: Request,
    next: Next,
) -> Result<Response> {
    let address = match client.ip().to_canonical() {
        // A client may have a whole IPv6 network of 64 bits, so the network counts as one address.
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    };
    limits.addresses.try_acquire(&address).map_err(too_many)?;

    let key = request.headers().get("x-api-key");
    let mut customers = CUSTOMERS.iter();
    let customer = customers.find(|(own, _)| key.is_some_and(|key| key == own));
    let Some(plan) = customer.and_then(|(_, plan)| limits.keys.plan_named(plan)) else {
        if limits.strikes.try_acquire(&address).is_err() {
            limits.addresses.ban_for(&address, BAN).map_err(too_many)?;
        }
        return Err(StatusCode::UNAUTHORIZED.into());
    };

    let size = plan.quota().map_or(0, |quota| quota.burst_size());
    let key = plan.key(&key).at(limits.keys.clock().now());
    match key.try_acquire() {
        Ok(granted) => {
            let headers = headers(size, granted.remaining(), granted.reset_after());
            Ok((headers, next.run(request).await).into_response())
        }
        Err(denied) => {
            let reset = key.time_until(size).unwrap_or(Duration::MAX);
            Err((headers(size, key.available(), reset), too_many(denied)).into())
        }
    }
}

fn headers(limit: u64, remaining: u64, reset: Duration) -> [(&'static str, u64); 3] {
    let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let numbers = [limit, remaining, ceil_secs(reset)];
    std::array::from_fn(|n| (names[n], numbers[n]))
}

fn too_many(denied: Denied) -> impl IntoResponse {
    let wait = denied.retry_after_secs().map(|n| [("retry-after", n)]);
    (StatusCode::TOO_MANY_REQUESTS, wait, "too many requests\n")
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let service = router(SystemClock)?.into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}

#[cfg(test)]
mod tests;
