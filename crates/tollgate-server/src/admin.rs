//! What operators ask and do: metrics, readiness, keys, bans, reloads.

mod change;
mod metrics;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use subtle::ConstantTimeEq;
use tollgate_policy::Secret;

use crate::connections::Connections;
use crate::json::failure;
use crate::read::read;
use crate::reload::Reloader;
use crate::service::{Answer, Service, text};
use crate::state::Saver;
use crate::store::Store;

/// What the address of operators knows.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) service: Arc<Service>,
    /// The connections of those who ask for decisions.
    pub(crate) connections: Arc<Connections>,
    pub(crate) saver: Option<Arc<Saver>>,
    pub(crate) reloader: Arc<Reloader>,
    pub(crate) store: Option<Store>,
    pub(crate) token: Option<Secret>,
    /// Those who had no token, or a wrong one.
    pub(crate) strangers: AtomicU64,
}

/// Answers a request to the address of operators.
pub(crate) async fn answer(admin: Arc<Admin>, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let of = |method, path| (method, path);
    match of(&head.method, head.uri.path()) {
        (&Method::GET, "/metrics") => return metrics::answer(admin).await,
        (&Method::GET, "/healthz") => return text(StatusCode::OK, "ok"),
        (&Method::GET, "/readyz") => return admin.service.readiness(),
        (&Method::GET, "/rules" | "/key")
        | (&Method::POST, "/reload" | "/ban" | "/reset" | "/drain") => {}
        _ => return text(StatusCode::NOT_FOUND, KNOWN),
    }
    if let Err(answer) = admin.knows(&head.headers) {
        admin.strangers.fetch_add(1, Relaxed);
        return *answer;
    }
    let body = match read(&admin.service.limits, body).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    match head.uri.path() {
        "/rules" => change::rules(&admin.service),
        "/key" => change::key(&admin.service, head.uri.query().unwrap_or_default()).await,
        "/reload" => change::reload(Arc::clone(&admin.reloader)).await,
        "/ban" => change::ban(&admin.service, &body).await,
        "/reset" => change::reset(&admin.service, &body).await,
        _ => change::drain(&admin.service, &body),
    }
}

const KNOWN: &str = "there is GET /metrics, /healthz, /readyz, /rules and /key, and POST /reload, \
                     /ban, /reset and /drain";

impl Admin {
    /// Checks the token of a request that changes something, or asks about a client.
    fn knows(&self, headers: &HeaderMap) -> Result<(), Box<Answer>> {
        let Some(token) = &self.token else {
            let why = "there is no token, so nobody may do this: start the service with one";
            return Err(Box::new(failure(StatusCode::FORBIDDEN, why)));
        };
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|given| given.split_at_checked("Bearer ".len()));
        let is_known = given.is_some_and(|(scheme, given)| {
            let is_equal = token.reveal().as_bytes().ct_eq(given);
            scheme.eq_ignore_ascii_case(b"Bearer ") && is_equal.into()
        });
        if is_known {
            return Ok(());
        }
        let why = "the header Authorization must be `Bearer` and the token of this service";
        let mut answer = failure(StatusCode::UNAUTHORIZED, why);
        let scheme = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        Err(Box::new(answer))
    }
}
