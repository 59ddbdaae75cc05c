//! What proxies ask about a request that they hold: may it pass?

use std::net::IpAddr;
use std::str::FromStr;
use std::time::{Duration, Instant};

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body_util::Full;
use tollgate_http::{ClientAddress, LimitStates, PathForm, Refusal, RequestFacts};

use crate::counters::Protocol;
use crate::service::{Answer, Decided, Service, text};

/// Which proxy asks, and so how it tells of the request and understands the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// Traefik's forwardAuth, Caddy's forward_auth, HAProxy's script: the client gets the answer as
    /// it is, unless the request may pass.
    Forwarding,
    /// nginx's auth_request knows 403 and makes 500 of all others, so a refusal is a 403 that says
    /// its status in a header.
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
/// The status that the client should get.
const X_TOLLGATE_STATUS: HeaderName = HeaderName::from_static("x-tollgate-status");

/// Answers a proxy.
pub(crate) async fn answer(
    service: &Service,
    proxy: Proxy,
    peer: IpAddr,
    mut head: Parts,
) -> Answer {
    if let Err(message) = restore(proxy, &mut head) {
        return text(StatusCode::BAD_REQUEST, message);
    }
    let start = Instant::now();
    let decided = {
        let policy = service.policy.current();
        let settings = policy.client();
        let client = match policy.client_as(ClientAddress::of_policy) {
            Some(Some(client)) => client.of(peer, &head.headers),
            _ => service.address.of(peer, &head.headers),
        };
        let facts = RequestFacts::of_parts(&head)
            .client_ip(client)
            .path_form(settings.path.map(PathForm::from).unwrap_or_default());
        service.decide(&[facts])
    };
    let decided = decided.get().await;
    service.counters.count(&decided);
    service.counters.took(Protocol::Forwarded, start.elapsed());
    let (answer, delay) = said(service, proxy, &decided);
    // No proxy tells when its request ends, so a place is free at once, and all permits stay taken.
    drop(decided);
    if !delay.is_zero() {
        // If the proxy leaves, others may wait behind this request: its permits stay taken.
        tokio::time::sleep(delay).await;
    }
    answer
}

/// Says what was decided, and how long the request must wait.
fn said(service: &Service, proxy: Proxy, decided: &Decided) -> (Answer, Duration) {
    let states = LimitStates::of(decided);
    let Some(refusal) = Refusal::of_decision(decided) else {
        let mut answer = Answer::new(Full::default());
        let fields = service.answers.values(states.iter().copied());
        fields.write(answer.headers_mut());
        return (answer, decided.delay());
    };
    let answer = service
        .answers
        .refuse(&refusal.limits(&states))
        .map(Full::new);
    let answer = match proxy {
        Proxy::Forwarding => answer,
        Proxy::Nginx => for_nginx(answer),
    };
    (answer, Duration::ZERO)
}

/// Turns the proxy's question into the request that it is about.
fn restore(proxy: Proxy, head: &mut Parts) -> Result<(), String> {
    let [method, uri] = proxy.headers();
    let method: Method = read(&head.headers, &method, "a method, such as GET")?;
    let uri: Uri = read(&head.headers, &uri, "a path, such as /items?page=2")?;
    head.method = method;
    head.uri = uri;
    if proxy == Proxy::Forwarding {
        if let Some(host) = only(&head.headers, &X_FORWARDED_HOST)? {
            let host = host.clone();
            head.headers.insert(HOST, host);
        }
    }
    Ok(())
}

fn read<T: FromStr>(headers: &HeaderMap, name: &HeaderName, what: &str) -> Result<T, String> {
    let value = only(headers, name)?.ok_or_else(|| {
        format!("{name} is missing: the proxy must set it to that of the request it asks about")
    })?;
    let value = value.to_str().ok().and_then(|text| text.parse().ok());
    value.ok_or_else(|| format!("{name} must be {what}"))
}

/// Returns a header's value. Of several, one is the client's.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(format!(
            "{name} is there twice: the proxy must replace the one that a client sends"
        )),
    }
}

/// Says a refusal in the only way that nginx passes on.
fn for_nginx(mut answer: Answer) -> Answer {
    let status = HeaderValue::from(answer.status().as_u16());
    if !answer.status().is_server_error() || answer.status() == StatusCode::SERVICE_UNAVAILABLE {
        *answer.status_mut() = StatusCode::FORBIDDEN;
    }
    answer.headers_mut().insert(X_TOLLGATE_STATUS, status);
    answer
}
