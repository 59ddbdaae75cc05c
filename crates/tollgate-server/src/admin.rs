//! What operators ask and do: metrics, readiness, keys, bans, reloads.

mod alerts;
mod change;
mod fields;
mod metrics;
mod page;
pub(crate) mod sample;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use http::header::{ALLOW, AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use subtle::ConstantTimeEq;
use tokio::sync::Mutex;
use tollgate_policy::Secret;

use self::fields::Refused;
use self::sample::Tables;
use crate::budget::Budget;
use crate::connections::Connections;
use crate::history::History;
use crate::json::json;
use crate::read::read;
use crate::reload::Reloader;
use crate::service::{Answer, Service, text};
use crate::settings::Limits;
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
    /// When the service began.
    pub(crate) since: SystemTime,
    /// The limits of this address.
    pub(crate) limits: Limits,
    pub(crate) budget: Arc<Budget>,
    /// Held while metrics are written: one reader at a time.
    pub(crate) scrapes: Mutex<()>,
    /// Held while a page is written, so pages take at most one core from decisions.
    pub(crate) pages: Mutex<()>,
    /// What happened in the last minutes.
    pub(crate) history: History,
    pub(crate) tables: Tables,
}

/// How many of the heaviest keys are listed.
const MOST_KEYS: usize = 20;

/// What there is, and whether it needs the token.
const ROUTES: [(&str, Method, bool); 16] = [
    ("/", Method::GET, false),
    ("/metrics", Method::GET, false),
    ("/healthz", Method::GET, false),
    ("/readyz", Method::GET, false),
    (page::STYLE, Method::GET, false),
    (page::SCRIPT, Method::GET, false),
    (page::LIVE, Method::GET, false),
    (page::POLICY, Method::GET, true),
    (page::EXPLAIN, Method::POST, true),
    ("/keys", Method::GET, true),
    ("/rules", Method::GET, true),
    ("/key", Method::GET, true),
    ("/reload", Method::POST, true),
    ("/ban", Method::POST, true),
    ("/reset", Method::POST, true),
    ("/drain", Method::POST, true),
];

/// Answers a request to the address of operators.
pub(crate) async fn answer(admin: Arc<Admin>, request: Request<Incoming>) -> Answer {
    match admin.try_answer(request).await {
        Ok(answer) => answer,
        Err(refused) => refused.answer(),
    }
}

impl Admin {
    async fn try_answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Refused> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let mut routes = ROUTES.iter();
        let Some((path, method, needs_token)) = routes.find(|(known, _, _)| *known == path) else {
            let known = ROUTES.iter().map(|(path, _, _)| *path);
            // The parts of the page are for its script.
            let known: Vec<_> = known.filter(|path| !path.starts_with("/page/")).collect();
            let refused = Refused::unknown("path", path, &known);
            return Err(refused.with_status(StatusCode::NOT_FOUND));
        };
        // HEAD asks for what GET says.
        if head.method != method && (head.method != Method::HEAD || method != Method::GET) {
            let error = format!("{path} needs the method {method}");
            let mut answer = Refused::new(StatusCode::METHOD_NOT_ALLOWED, error).answer();
            let allow = HeaderValue::from_str(method.as_str());
            answer
                .headers_mut()
                .extend(allow.map(|allow| (ALLOW, allow)));
            return Ok(answer);
        }
        // With the token, it says more. A proxy may ask its own users for something else.
        let gives_token = *path == page::LIVE && bearer(&head.headers).is_some();
        if *needs_token || gives_token {
            if let Err(answer) = self.knows(&head.headers) {
                self.strangers.fetch_add(1, Relaxed);
                return Ok(*answer);
            }
        }
        let body = match read(&self.limits, &self.budget, body).await {
            Ok(body) => body,
            Err(unread) => return Ok(unread.answer()),
        };
        match *path {
            "/metrics" => Ok(metrics::answer(self).await),
            "/healthz" => Ok(text(StatusCode::OK, "ok")),
            "/readyz" => Ok(self.service.readiness()),
            "/" => Ok(page::whole(&self).await),
            page::STYLE => Ok(page::style()),
            page::SCRIPT => Ok(page::script()),
            page::LIVE => Ok(page::live(&self, gives_token).await),
            page::POLICY => Ok(page::policy(&self)),
            page::EXPLAIN => page::explain(&self.service, &body),
            "/keys" => Ok(self.keys()),
            "/rules" => Ok(change::rules(&self.service)),
            "/key" => change::key(&self.service, head.uri.query().unwrap_or_default()).await,
            "/reload" => change::reload(Arc::clone(&self.reloader)).await,
            "/ban" => change::ban(&self.service, &body).await,
            "/reset" => change::reset(&self.service, &body).await,
            _ => change::drain(&self.service, &body),
        }
    }

    /// Answers `/keys`: the heaviest keys.
    fn keys(&self) -> Answer {
        let heaviest = self.service.counters.heaviest.as_ref();
        json(StatusCode::OK, &heaviest.map(|it| it.list(MOST_KEYS)))
    }

    /// Checks the token of a request that changes something, or asks about a client.
    fn knows(&self, headers: &HeaderMap) -> Result<(), Box<Answer>> {
        let Some(token) = &self.token else {
            return Err(Box::new(
                Refused::new(StatusCode::FORBIDDEN, NO_TOKEN).answer(),
            ));
        };
        let is_known =
            bearer(headers).is_some_and(|given| token.reveal().as_bytes().ct_eq(given).into());
        if is_known {
            return Ok(());
        }
        let why = "the header Authorization must be `Bearer` and the token of this service";
        let mut answer = Refused::new(StatusCode::UNAUTHORIZED, why).answer();
        let scheme = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        Err(Box::new(answer))
    }
}

/// Returns the token that a request gives, which may be wrong.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let given = headers.get(AUTHORIZATION)?.as_bytes();
    // The space at the end of a header is not sent.
    let (scheme, given) = given.split_at_checked("Bearer".len())?;
    let is_token = scheme.eq_ignore_ascii_case(b"Bearer");
    match given.split_first() {
        Some((b' ', given)) if is_token => Some(given),
        None if is_token => Some(given),
        _ => None,
    }
}

const NO_TOKEN: &str = "this needs a token, and the service has none: start it with \
                        --admin-token-file FILE, or with the variable TOLLGATE_ADMIN_TOKEN (in a \
                        program, Settings::admin_token)";
