//! The part of the page that changes. It begins with the rules that deny, the keys that they deny
//! most, and since when.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tollgate_page::{Chart, Html, Series};

use super::keys::{self, MOST_KEYS};
use super::rules::{self, Rule};
use super::tables;
use super::words::{ago, bounds, count, long, percent, rate, within};
use crate::admin::Admin;
use crate::admin::alerts::Alert;
use crate::admin::sample::now_ms;
use crate::counters::PROTOCOLS;
use crate::heaviest::Heavy;
use crate::history::Did;
use crate::state::unix_seconds;

pub(super) async fn html(admin: &Arc<Admin>, with_keys: bool) -> Html {
    let stats = admin.stats().await;
    let _one = admin.pages.lock().await;
    let policy = admin.service.policy.load();
    let counters = &admin.service.counters;
    let now_s = now_ms() / 1000;
    let values = admin.values(&policy);
    let mut counted = Vec::new();
    counters.each_rule(|name, counts| counted.push((name.to_owned(), counts)));
    let rules = rules::all(&policy, &counted, admin);
    let heaviest = counters.heaviest.as_ref().filter(|_| with_keys);
    let heavy = heaviest.map(|heaviest| heaviest.list(MOST_KEYS));
    // A rule that denies little has its key too, beside one that denies much.
    let all_keys = heaviest.map(|heaviest| heaviest.list(usize::MAX));

    let mut html = Html::new();
    // The script asks for the policy again when this changes. Times alone do not: a file can be
    // refused again, for other errors, and two policies can come in one second.
    let (since, reloads) = (unix_seconds(admin.since), &admin.reloader);
    let (done, failed) = (reloads.done.load(Relaxed), reloads.failed.load(Relaxed));
    html.raw("<div data-policy=\"")
        .text(format_args!("{since}-{done}-{failed}"))
        .raw("\"></div>\n");
    now(
        &mut html,
        &rules,
        &admin.alerts(&values, now_s),
        all_keys.as_ref(),
        now_s,
    );
    tiles(&mut html, admin, now_s);
    chart(&mut html, admin);
    if let Some(heavy) = &heavy {
        keys::lists(&mut html, heavy, now_s);
    }
    html.push(tables::rules(&rules, now_s));
    html.push(tables::latency(admin));
    html.push(tables::keys(&stats));
    html.push(tables::leases(&stats));
    html.push(tables::service(&values));
    html
}

/// Says what an operator asks first.
fn now(html: &mut Html, rules: &[Rule<'_>], alerts: &[Alert], heavy: Option<&Heavy>, now_s: u64) {
    html.raw("<h2>Now</h2>\n<ul class=\"alerts\">\n");
    for Alert { what, since } in alerts {
        html.raw("<li class=\"wrong\">").text(what);
        if let Some(since) = since {
            html.raw(", since ").push(ago(*since, now_s));
        }
        html.raw(".</li>\n");
    }
    let denying = rules
        .iter()
        .filter_map(|rule| Some((rule, rule.history.denies?)));
    let denying: Vec<_> = denying.take(10).collect();
    for (rule, denies) in &denying {
        let (denied, all) = (
            rule.history.denied_per_s,
            rule.history.denied_per_s + rule.history.allowed_per_s,
        );
        html.raw("<li class=\"denies\">")
            .text(rule.kind)
            .raw(" <strong>")
            .text(rule.name)
            .raw("</strong>");
        match denied > 0.0 {
            true => {
                html.raw(" denies ")
                    .text(rate(denied))
                    .raw(" of ")
                    .text(rate(all));
                html.raw(" requests a second, since ")
                    .push(ago(denies.since, now_s));
            }
            false => {
                html.raw(" denied requests until ")
                    .push(ago(denies.last, now_s));
            }
        }
        let mut keys = heavy.iter().flat_map(|heavy| &heavy.denied.keys);
        if let Some(key) = keys.find(|key| key.rule == rule.name) {
            html.raw(". Denied most: <strong>").text(keys::values(key));
            html.raw("</strong>, ").text(bounds(key.denied));
            html.raw(" of ").text(bounds(key.asked));
            html.raw(" requests since ");
            html.push(ago(heavy.map_or(0, |it| it.since), now_s));
        }
        html.raw(".</li>\n");
    }
    if denying.is_empty() {
        html.raw("<li class=\"quiet\">No request was denied in the last minute.</li>\n");
    }
    html.raw("</ul>\n");
    if heavy.is_none() && !denying.is_empty() {
        html.raw("<p>With the <a href=\"#token\">token</a>, the page also shows which keys they deny.</p>\n");
    }
}

fn tiles(html: &mut Html, admin: &Admin, now_s: u64) {
    let (allowed, denied) = admin.history.rates();
    let slowest = (0..PROTOCOLS.len()).map(|protocol| admin.history.latency(protocol));
    let slowest = slowest.filter(|latency| latency.per_s > 0.0);
    let slowest = slowest
        .map(|latency| latency.p99_us.map_or(u64::MAX, |us| us))
        .max();
    let up = now_s.saturating_sub(unix_seconds(admin.since));
    let tiles = [
        ("allowed a second", rate(allowed)),
        ("denied a second", rate(denied)),
        ("share denied", percent(denied, allowed + denied)),
        (
            "99 % decided within",
            slowest.map_or("-".to_owned(), within),
        ),
        (
            "connections",
            count(admin.connections.open.load(Relaxed) as u64),
        ),
        ("running for", long(up)),
    ];
    html.raw("<dl class=\"tiles\">\n");
    for (name, value) in tiles {
        html.raw("<div><dt>")
            .text(name)
            .raw("</dt><dd>")
            .text(value)
            .raw("</dd></div>\n");
    }
    html.raw("</dl>\n");
}

fn chart(html: &mut Html, admin: &Admin) {
    let samples = admin.history.all();
    let points = |of: fn(&Did) -> u64| -> Vec<(f64, f64)> {
        let pairs = samples.windows(2).filter_map(|pair| match pair {
            [(before, _), (at, did)] if at > before => {
                let s = (at - before) as f64 / 1000.0;
                Some((*at as f64 / 1000.0, of(did) as f64 / s))
            }
            _ => None,
        });
        pairs.collect()
    };
    let (allowed, denied) = (points(|did| did.allowed), points(|did| did.denied));
    let most = |points: &[(f64, f64)]| rate(points.iter().map(|(_, n)| *n).fold(0.0, f64::max));
    let about = format!(
        "At most {} allowed and {} denied requests a second.",
        most(&allowed),
        most(&denied)
    );
    let first = samples.first().map_or(0, |(at, _)| *at);
    let last = samples.last().map_or(0, |(at, _)| *at);
    let chart = Chart {
        id: "requests",
        title: "Requests a second",
        about: &about,
        series: &[
            Series {
                name: "allowed",
                points: &allowed,
            },
            Series {
                name: "denied",
                points: &denied,
            },
        ],
        from: &format!("{} ago", long(last.saturating_sub(first) / 1000)),
        to: "now",
    };
    html.push(chart.svg());
}
