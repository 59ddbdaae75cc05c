//! The compared services.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use tollgate_http::Fields;
use tollgate_versus::http::{
    ADDRESSES, Empty, Limit, by_address, by_policy, governor, governor_with_fields, peer, request,
    send,
};
use tower_layer::Layer;
use tower_service::Service;

use super::timing::{Handle, Handled, Kind, PerThread, Runner};

/// The conditions of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) has_fields: bool,
    /// From how many addresses requests come.
    pub(crate) addresses: u32,
    pub(crate) threads: usize,
}

impl Case {
    pub(crate) fn all(threads: &[usize]) -> Vec<Self> {
        let mut all = Vec::new();
        for &threads in threads {
            for has_fields in [false, true] {
                for addresses in [1, ADDRESSES] {
                    all.extend(Kind::BOTH.map(|kind| Self {
                        kind,
                        has_fields,
                        addresses,
                        threads,
                    }));
                }
            }
        }
        all
    }

    pub(crate) fn label(self) -> String {
        let fields = if self.has_fields {
            "fields"
        } else {
            "no fields"
        };
        let plural = |n, one, many| if n == 1 { one } else { many };
        let addresses = plural(self.addresses as usize, "address", "addresses");
        let threads = plural(self.threads, "thread", "threads");
        let (kind, n) = (self.kind.name(), self.threads);
        format!(
            "{kind}, {fields}, {} {addresses}, {n} {threads}",
            self.addresses
        )
    }

    /// Returns a limit that grants all requests or none.
    const fn limit(self) -> Limit {
        match self.kind {
            Kind::Allowed => Limit::WIDE,
            Kind::Denied => Limit::TWO,
        }
    }
}

/// A service, by its name.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    pub(crate) runner: Box<dyn Runner>,
}

/// Their order in the results.
pub(crate) const NONE: usize = 0;
pub(crate) const TOLLGATE: usize = 1;
pub(crate) const POLICY: usize = 2;
pub(crate) const GOVERNOR: usize = 3;

/// Returns the services for a comparison.
pub(crate) fn lanes(case: Case) -> Result<[Lane; 4], String> {
    let fields = match case.has_fields {
        true => Fields::LIST,
        false => Fields::OFF,
    };
    let by_address = by_address(case.limit()).map_err(|error| error.to_string())?;
    let by_policy = by_policy(case.limit()).map_err(|error| error.to_string())?;
    let governor = match case.has_fields {
        true => of(
            "governor",
            governor_with_fields(case.limit()).layer(Empty),
            case,
        ),
        false => of("governor", governor(case.limit()).layer(Empty), case),
    };
    Ok([
        Lane {
            name: "none",
            runner: Box::new(PerThread(Limited {
                service: Empty,
                case,
                // The service alone grants each request.
                granted: case.kind == Kind::Allowed,
            })),
        },
        of("tollgate", by_address.fields(fields).layer(Empty), case),
        of("policy", by_policy.fields(fields).layer(Empty), case),
        governor,
    ])
}

/// Returns a limited service. Each address has spent its permits if requests are to be denied.
fn of<S, B>(name: &'static str, mut service: S, case: Case) -> Lane
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    B: http_body::Body<Error: std::fmt::Debug>,
{
    for number in 0..case.addresses {
        for _ in 0..2 {
            send(&mut service, request(peer(number)));
        }
    }
    let limited = Limited {
        service,
        case,
        granted: true,
    };
    let runner = Box::new(PerThread(limited));
    Lane { name, runner }
}

/// A service. Each thread has a clone of its own, as each connection of a server has.
struct Limited<S> {
    service: S,
    case: Case,
    /// Whether an answer of 200 means that the request was granted.
    granted: bool,
}

impl<S, B> Handled for Limited<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Sync,
    B: http_body::Body<Error: std::fmt::Debug>,
{
    type Handle<'a>
        = Connection<S>
    where
        S: 'a;

    fn handle(&self, _threads: usize) -> Connection<S> {
        Connection {
            service: self.service.clone(),
            addresses: self.case.addresses,
            granted: self.granted,
        }
    }
}

struct Connection<S> {
    service: S,
    addresses: u32,
    granted: bool,
}

impl<S, B> Handle for Connection<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Error: std::fmt::Debug>,
{
    #[inline(always)]
    fn decide(&mut self, turn: u64) -> bool {
        let number = turn as u32 % self.addresses;
        let answer = send(&mut self.service, request(peer(number)));
        answer.status() == StatusCode::OK && self.granted
    }
}
