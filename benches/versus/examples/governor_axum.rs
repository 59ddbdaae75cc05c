//! An HTTP service with governor: plans by API key, a ban for addresses that guess keys, and
//! headers. `docs/HTTP.md` has it with tollgate. governor has no plans and no bans, so there is a
//! limiter for each plan and a map for the bans. It has no windows either: a strike expires after
//! half an hour.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::{error::Error, num::NonZeroU32, time::Duration};

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response, Result};
use axum::{Router, http::StatusCode, routing::get};
use governor::clock::{Clock, DefaultClock, Reference};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore as States;
use governor::{Quota, RateLimiter};

type Keyed<K, C> = RateLimiter<K, States<K>, C, StateInformationMiddleware>;

/// API keys and their plans. A real service reads them from its database.
const CUSTOMERS: [(&str, &str); 2] = [("alice", "paid"), ("bob", "free")];
const BAN: Duration = Duration::from_secs(900);

struct Limits<C: Clock> {
    clock: C,
    /// A limiter for each tier, by API key.
    plans: [(&'static str, Keyed<String, C>); 2],
    /// A limit by address, with any API key. Requests that the key's limit denies count too.
    addresses: Keyed<IpAddr, C>,
    /// Wrong keys by address. The third one bans the address.
    strikes: Keyed<IpAddr, C>,
    /// When the ban of an address ends.
    bans: Mutex<HashMap<IpAddr, C::Instant>>,
}

fn limits<C: Clock + Clone>(clock: C) -> Limits<C> {
    let [n2, n5, n50, n60, n100, n600] =
        [2, 5, 50, 60, 100, 600].map(|n| NonZeroU32::new(n).expect("not zero"));
    let free = Quota::per_minute(n60).allow_burst(n5);
    let paid = Quota::per_minute(n600).allow_burst(n50);
    let [free, paid] = [free, paid].map(|quota| keyed(quota, &clock));
    Limits {
        plans: [("free", free), ("paid", paid)],
        addresses: keyed(Quota::per_second(n100), &clock),
        strikes: keyed(Quota::per_hour(n2), &clock),
        bans: Mutex::default(),
        clock,
    }
}

fn keyed<K: std::hash::Hash + Eq + Clone, C: Clock + Clone>(
    quota: Quota,
    clock: &C,
) -> Keyed<K, C> {
    RateLimiter::new(quota, States::default(), clock.clone())
}

fn router<C>(limits: Arc<Limits<C>>) -> Router
where
    C: Clock + Send + Sync + 'static,
{
    let router = Router::new().route("/", get(async || "hello\n"));
    router.layer(from_fn_with_state(limits, limit))
}

async fn limit<C: Clock>(
    State(limits): State<Arc<Limits<C>>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>, // behind a proxy: the address in its header
    request: Request,
    next: Next,
) -> Result<Response> {
    let address = match client.ip().to_canonical() {
        // A client may own a whole /64 network of IPv6, which counts as one address.
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    };
    let now = limits.clock.now();
    if let Some(until) = limits.bans.lock().expect("no panic").get(&address) {
        if *until > now {
            return Err(too_many(until.duration_since(now).into()).into());
        }
    }
    let granted = limits.addresses.check_key(&address);
    granted.map_err(|not_until| too_many(not_until.wait_time_from(now)))?;

    let key = request.headers().get("x-api-key");
    let mut customers = CUSTOMERS.iter();
    let Some((key, plan)) = customers.find(|(own, _)| key.is_some_and(|key| key == own)) else {
        if limits.strikes.check_key(&address).is_err() {
            let mut bans = limits.bans.lock().expect("no panic");
            bans.insert(address, now + BAN.into());
        }
        return Err(StatusCode::UNAUTHORIZED.into());
    };
    let mut plans = limits.plans.iter();
    let (_, plan) = plans.find(|(name, _)| name == plan).expect("a plan");
    match plan.check_key(&key.to_string()) {
        Ok(state) => {
            let left = state.remaining_burst_capacity();
            let headers = headers(state.quota(), left, Duration::ZERO);
            Ok((headers, next.run(request).await).into_response())
        }
        Err(not_until) => {
            let wait = not_until.wait_time_from(now);
            Err((headers(not_until.quota(), 0, wait), too_many(wait)).into())
        }
    }
}

/// `wait` is the time until a permit is available, if none is now.
fn headers(quota: Quota, remaining: u32, wait: Duration) -> [(&'static str, u64); 3] {
    let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let size = quota.burst_size().get();
    let missing = size - remaining - u32::from(!wait.is_zero());
    let reset = wait + missing * quota.replenish_interval();
    let numbers = [size.into(), remaining.into(), ceil_secs(reset)];
    std::array::from_fn(|n| (names[n], numbers[n]))
}

fn too_many(wait: Duration) -> impl IntoResponse {
    let wait = [("retry-after", ceil_secs(wait))];
    (StatusCode::TOO_MANY_REQUESTS, wait, "too many requests\n")
}

fn ceil_secs(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let limits = Arc::new(limits(DefaultClock::default()));
    let swept = Arc::clone(&limits);
    std::thread::spawn(move || {
        loop {
            // Otherwise the maps grow without bound.
            std::thread::sleep(Duration::from_secs(60));
            swept
                .plans
                .iter()
                .for_each(|(_, plan)| plan.retain_recent());
            swept.addresses.retain_recent();
            swept.strikes.retain_recent();
            let now = swept.clock.now();
            swept
                .bans
                .lock()
                .expect("no panic")
                .retain(|_, until| *until > now);
        }
    });
    let service = router(limits).into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}
