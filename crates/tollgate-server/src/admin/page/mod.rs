//! The page that operators look at.
//!
//! The service writes all of it. A script asks for the part that changes every two seconds, and
//! shows what needs the token.

mod explain;
mod keys;
mod live;
mod policy;
mod rules;
mod tables;
mod words;

use std::sync::Arc;

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use tollgate_page::{Html, SHEET, document};

use super::Admin;
use crate::service::{Answer, of_kind};

pub(super) use explain::answer as explain;
pub(super) use policy::answer as policy;

pub(super) const STYLE: &str = "/page/style.css";
pub(super) const SCRIPT: &str = "/page/script.js";
/// The part that changes.
pub(super) const LIVE: &str = "/page/live";
pub(super) const POLICY: &str = "/page/policy";
pub(super) const EXPLAIN: &str = "/page/explain";

const HTML: &str = "text/html; charset=utf-8";

/// A page takes nothing from elsewhere, and no other page shows it.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

fn said(kind: &'static str, body: String) -> Answer {
    let mut answer = of_kind(StatusCode::OK, kind, body);
    for (name, value) in HEADERS {
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn part(html: Html) -> Answer {
    said(HTML, html.into_string())
}

/// Answers `/`.
pub(super) async fn whole(admin: &Arc<Admin>) -> Answer {
    let mut head = Html::new();
    head.raw(include_str!("head.html"));
    let mut body = Html::new();
    body.raw("<header>\n<h1>tollgate</h1>\n<p>")
        .text(policy::name(admin));
    body.raw(", version ")
        .text(env!("CARGO_PKG_VERSION"))
        .raw("</p>\n</header>\n");
    body.raw(
        "<noscript><p class=\"note\">Without its script, this page does not follow the service. ",
    )
    .raw("Load it again to see what is new.</p></noscript>\n");
    body.raw("<div id=\"live\">\n")
        .push(live::html(admin, false).await)
        .raw("</div>\n");
    body.raw(match admin.token {
        Some(_) => include_str!("token.html"),
        None => include_str!("no_token.html"),
    });
    said(HTML, document("tollgate", &head, &body))
}

/// Answers with the part that changes.
pub(super) async fn live(admin: &Arc<Admin>, with_keys: bool) -> Answer {
    part(live::html(admin, with_keys).await)
}

pub(super) fn style() -> Answer {
    let sheet = format!("{SHEET}{}", include_str!("style.css"));
    said("text/css; charset=utf-8", sheet)
}

pub(super) fn script() -> Answer {
    let script = include_str!("script.js");
    said("text/javascript; charset=utf-8", script.to_owned())
}
