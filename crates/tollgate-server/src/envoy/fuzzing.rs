//! What `scripts/fuzz` runs.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::FutureExt;
use prost::Message;
use tollgate_policy::{LivePolicy, Policy};

use super::decide::decide;
use super::frame;
use super::messages::{
    Code, Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, RateLimitResponse,
};
use crate::counters::Counters;
use crate::held::Held;
use crate::service::Service;
use crate::settings::Limits;

/// A descriptor: its entries, its limit, its hits, and whether they are given back.
pub type Descriptor = (Vec<(String, String)>, Option<(u32, i32)>, Option<u64>, bool);

/// The only limit of a small policy, which is made again for each request.
const BOUND: u64 = 7;

const BOUNDED: &str = "[[rule]]\nname = 'bounded'\nlimit = '7/365d'";

const POLICY: &str = "
    [[deny]]
    name = 'deny'
    when = { a = 'deny' }
    [[allow]]
    name = 'allow'
    when = { a = 'allow' }
    [[rule]]
    name = 'address'
    when = { client-ip = true, path = '/a/**' }
    key = ['client-ip', 'path']
    limit = ['5/min', 'sliding-window 9/h']
    also = ['queue']
    [[rule]]
    name = 'trial'
    when = { a = 'b*' }
    key = 'a'
    limit = '1/d'
    shadow = true
    [[rule]]
    name = 'any'
    key = 'a'
    limit = '10/s'
    [[limit]]
    name = 'queue'
    limit = 'leaky-queue 1/min burst 3'
";

static SERVICE: LazyLock<Service> = LazyLock::new(|| service(POLICY));

fn service(policy: &str) -> Service {
    let policy = Policy::from_toml(policy).expect("a policy");
    let live = Arc::new(LivePolicy::new(policy));
    let held = Held::new(Duration::from_secs(1), 1);
    Service::new(live, Counters::default(), held, Limits::default())
}

/// Any bytes of a call: they are a request that is decided, or an error.
pub fn bytes(frame: &[u8]) {
    if let Ok(request) = frame::decode::<RateLimitRequest>(frame) {
        check(&SERVICE, &request);
    }
    let mut framed = vec![0];
    framed.extend(
        u32::try_from(frame.len())
            .expect("it is short")
            .to_be_bytes(),
    );
    framed.extend(frame);
    if let Ok(request) = frame::decode::<RateLimitRequest>(&*framed) {
        check(&SERVICE, &request);
    }
}

/// Any request, which is also sent several times to a new service: it takes no more than its limit.
pub fn request(domain: String, descriptors: Vec<Descriptor>, hits_addend: u32) {
    let descriptors = descriptors
        .into_iter()
        .map(|(entries, limit, hits, negative)| {
            let entries = entries.into_iter().map(|(key, value)| Entry { key, value });
            RateLimitDescriptor {
                entries: entries.collect(),
                limit: limit.map(|(requests_per_unit, unit)| RateLimitOverride {
                    requests_per_unit,
                    unit,
                }),
                hits_addend: hits,
                is_negative_hits: negative,
            }
        });
    let mut request = RateLimitRequest {
        domain,
        descriptors: descriptors.collect(),
        hits_addend,
    };
    bytes(&request.encode_to_vec());
    // Nothing is given back or charged.
    request.descriptors.retain(|descriptor| {
        let mut entries = descriptor.entries.iter();
        entries.all(|it| it.key != "hits-mode") && !descriptor.is_negative_hits
    });
    let hits = request.descriptors.iter().map(|descriptor| {
        let of_request = u64::from(hits_addend.max(1));
        descriptor.hits_addend.unwrap_or(of_request)
    });
    let taken = hits.max().unwrap_or(0);
    let service = service(BOUNDED);
    let allowed = (0..10).filter(|_| check(&service, &request)).count();
    let allowed = u64::try_from(allowed).expect("ten");
    assert!(
        allowed.saturating_mul(taken) <= BOUND,
        "{allowed} of {taken}"
    );
}

/// Decides, and checks what is said. Returns whether the request is allowed.
fn check(service: &Service, request: &RateLimitRequest) -> bool {
    // Nothing waits: there is no time for it.
    let decided = decide(service, request, Some(Duration::ZERO)).now_or_never();
    let Ok((answer, _)) = decided.expect("no store is asked") else {
        return false;
    };
    assert_eq!(answer.statuses.len(), request.descriptors.len());
    let is_denied = answer.overall_code() == Code::OverLimit;
    let mut statuses = answer.statuses.iter();
    assert_eq!(is_denied, statuses.any(|it| it.code() == Code::OverLimit));
    let again = RateLimitResponse::decode(&*answer.encode_to_vec());
    assert_eq!(again, Ok(answer));
    !is_denied
}
