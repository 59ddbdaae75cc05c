//! What proxies ask about a request that they hold: may it pass?

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body_util::Full;
use tollgate_http::{LimitStates, Refusal, RequestFacts};

use crate::counters::Protocol;
use crate::service::{Answer, Answering, Decided, Deciding, Service, later, now, path_form, text};

/// Which proxy asks, and so how it tells of the request and understands the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// Traefik's forwardAuth, Caddy's forward_auth, HAProxy's script: the client gets the answer as
    /// it is, unless the request may pass.
    Forwarding,
    /// nginx's auth_request knows 403 and makes 500 of all others, so a refusal is a 403.
    Nginx,
}

impl Proxy {
    /// The headers that the proxy always sets itself: a client must not be able to choose one.
    const fn headers(self) -> [HeaderName; 2] {
        match self {
            Self::Forwarding => [X_FORWARDED_METHOD, X_FORWARDED_URI],
            Self::Nginx => [X_ORIGINAL_METHOD, X_ORIGINAL_URI],
        }
    }
}

const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const X_ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
const X_ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");
/// The status that the client should get. All refusals have it, so a proxy can tell them from other
/// answers with the same status.
const X_TOLLGATE_STATUS: HeaderName = HeaderName::from_static("x-tollgate-status");

/// Answers a proxy, at once unless stores are asked or the request must wait.
pub(crate) fn answer(
    service: &Arc<Service>,
    proxy: Proxy,
    peer: IpAddr,
    mut head: Parts,
) -> Answering {
    if let Err(wrong) = restore(proxy, &mut head) {
        return now(wrong.answer(proxy));
    }
    let start = Instant::now();
    let policy = service.policy.load();
    let client = service.clients.of(&policy, peer, &head.headers);
    let facts = RequestFacts::of_parts(&head)
        .client_ip(client)
        .path_form(path_form(&policy));
    // No proxy tells when its request really ends, so a place is free at once, and all permits stay
    // taken.
    match service.decide_by(policy, &[facts]) {
        Deciding::Here(decided) => {
            let (answer, delay) = said(service, proxy, start, &decided);
            match delay.is_zero() {
                true => now(answer),
                false => later(after(delay, answer)),
            }
        }
        Deciding::Elsewhere(deciding) => {
            let service = Arc::clone(service);
            later(async move {
                let decided = deciding.await;
                let (answer, delay) = said(&service, proxy, start, &decided);
                service.end(decided);
                after(delay, answer).await
            })
        }
    }
}

/// Waits as long as a queue says. If the proxy leaves, others may wait behind this request: its
/// permits stay taken.
async fn after(delay: Duration, answer: Answer) -> Answer {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    answer
}

/// Counts a decision and says it, with how long the request must wait.
fn said(service: &Service, proxy: Proxy, start: Instant, decided: &Decided) -> (Answer, Duration) {
    service.counters.count(decided);
    service.counters.took(Protocol::Forwarded, start.elapsed());
    let states = LimitStates::of(decided);
    let Some(refusal) = Refusal::of_decision(decided) else {
        let mut answer = Answer::new(Full::default());
        let fields = service.answers.values(states.iter().copied());
        fields.write(answer.headers_mut());
        return (answer, decided.delay());
    };
    let answer = service.answers.refuse(&refusal.limits(&states));
    (refused(proxy, answer.map(Full::new)), Duration::ZERO)
}

/// Says the status in a header, and refuses in the way that the proxy passes on.
fn refused(proxy: Proxy, mut answer: Answer) -> Answer {
    let status = HeaderValue::from(answer.status().as_u16());
    if proxy == Proxy::Nginx {
        *answer.status_mut() = StatusCode::FORBIDDEN;
    }
    answer.headers_mut().insert(X_TOLLGATE_STATUS, status);
    answer
}

/// Why a question can't be answered.
enum Wrong {
    /// The proxy's configuration is wrong. It is told, and its log says it.
    Proxy(String),
    /// The client's request is wrong.
    Client(String),
}

impl Wrong {
    fn answer(self, proxy: Proxy) -> Answer {
        match self {
            Self::Proxy(message) => text(StatusCode::BAD_REQUEST, message),
            Self::Client(message) => refused(proxy, text(StatusCode::BAD_REQUEST, message)),
        }
    }
}

/// Turns the proxy's question into the request that it is about.
fn restore(proxy: Proxy, head: &mut Parts) -> Result<(), Wrong> {
    let [method, uri] = proxy.headers();
    let method = Method::from_bytes(required(&head.headers, &method)?.as_bytes())
        .map_err(|_| Wrong::Client(format!("{method} must be a method, such as GET")))?;
    let target = required(&head.headers, &uri)?.as_bytes();
    let target = read_target(target)
        .ok_or_else(|| Wrong::Client(format!("{uri} must be a path, such as /items?page=2")))?;
    let question = std::mem::replace(&mut head.uri, target);
    head.method = method;
    match proxy {
        // The question's own host is that of the service.
        Proxy::Forwarding => {
            let host = required(&head.headers, &X_FORWARDED_HOST)?;
            let is_host = host.is_empty() || is_host(host.as_bytes());
            let host = host.clone();
            if !is_host {
                let message = format!("{X_FORWARDED_HOST} must be one host, such as example.com");
                return Err(Wrong::Client(message));
            }
            head.headers.insert(HOST, host);
        }
        // In HTTP/2 the host is not a header.
        Proxy::Nginx if !head.headers.contains_key(HOST) => {
            let host = question.authority().map(Authority::as_str);
            if let Some(Ok(host)) = host.map(HeaderValue::from_str) {
                head.headers.insert(HOST, host);
            }
        }
        Proxy::Nginx => {}
    }
    Ok(())
}

/// Reads the path and query that a client asked for, or `*`. A URI with a host is none: the proxy
/// says the host elsewhere, and a client must not be able to choose another one.
fn read_target(target: &[u8]) -> Option<Uri> {
    if target != b"*" && !target.starts_with(b"/") {
        return None;
    }
    let read = Uri::try_from(target);
    read.or_else(|_| Uri::try_from(escaped(target))).ok()
}

/// Escapes what a URI must not contain, but clients send and proxies pass on.
#[cold]
fn escaped(target: &[u8]) -> String {
    let mut out = String::with_capacity(target.len() * 2);
    for byte in target {
        match byte {
            b'!'..=b'~' if !b"\"<>\\^`{|}".contains(byte) => out.push(char::from(*byte)),
            // Writing to a string does not fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// Whether this is a host, with or without a port. A list of hosts is none, nor is a user's name.
fn is_host(text: &[u8]) -> bool {
    !text.contains(&b'@') && !text.contains(&b',') && Authority::try_from(text).is_ok()
}

/// Returns the value of a header that the proxy must set. Of several, one is the client's.
fn required<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<&'h HeaderValue, Wrong> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(Wrong::Proxy(format!(
            "{name} is missing: the proxy must set it to that of the request it asks about"
        ))),
        (_, Some(_)) => Err(Wrong::Proxy(format!(
            "{name} is there twice: the proxy must replace the one that a client sends"
        ))),
    }
}
