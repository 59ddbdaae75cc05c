//! The part of the page that changes: who is denied, by which rule, since when.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tollgate_page::{Cell, Chart, Column, Html, Series, spark, table};
use tollgate_policy::Policy;
use tollgate_policy::operate::PolicyStats;

use super::words::{ago, bounds, count, long, most_times, percent, plural, rate, time_us};
use crate::admin::Admin;
use crate::admin::alerts::Alert;
use crate::admin::sample::now_ms;
use crate::counters::{OfRuleNow, PROTOCOLS};
use crate::heaviest::{Heavy, HeavyKey, List};
use crate::history::{Did, RuleHistory};
use crate::state::unix_seconds;

/// How many keys are listed. `/keys` has more.
const MOST_KEYS: usize = 10;
/// The most rules that are listed: those with most denials, and then with most requests.
const MOST_RULES: usize = 100;

/// A rule, or an entry of the list `deny`.
struct Rule<'a> {
    /// What it is, before its name.
    kind: &'static str,
    name: &'a str,
    is_shadow: bool,
    counts: OfRuleNow,
    history: RuleHistory,
}

pub(super) async fn html(admin: &Arc<Admin>, with_keys: bool) -> Html {
    let stats = admin.stats().await;
    let _one = admin.pages.lock().await;
    let policy = admin.service.policy.load();
    let counters = &admin.service.counters;
    let now_s = now_ms() / 1000;
    let values = admin.values(&policy);
    let mut counted = Vec::new();
    counters.each_rule(|name, counts| counted.push((name.to_owned(), counts)));
    let rules = rules(&policy, &counted, admin);
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
        keys(&mut html, heavy, now_s);
    }
    html.push(rules_table(&rules, now_s));
    html.push(latency(admin));
    html.push(tables(&stats));
    html.push(service(&values));
    html
}

fn rules<'a>(
    policy: &'a Policy,
    counted: &'a [(String, OfRuleNow)],
    admin: &Admin,
) -> Vec<Rule<'a>> {
    let rule = |kind, name, is_shadow, counts| Rule {
        kind,
        name,
        is_shadow,
        counts,
        history: admin.history.rule(name),
    };
    let mut counts: HashMap<&str, OfRuleNow> = HashMap::new();
    counts.extend(
        counted
            .iter()
            .map(|(name, counts)| (name.as_str(), *counts)),
    );
    let in_policy = policy.rules().map(|it| {
        let name = it.name.as_str();
        let counts = counts.remove(name).unwrap_or_default();
        rule("Rule", name, it.shadow, counts)
    });
    let mut rules: Vec<_> = in_policy.collect();
    // Entries of the list `deny`, and rules that are gone but whose numbers are not.
    let others = counted
        .iter()
        .filter(|(name, _)| counts.contains_key(name.as_str()));
    let entries: HashSet<_> = policy
        .file()
        .deny
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let kind = |name: &str| match entries.contains(name) {
        true => "Entry of the list deny:",
        false => "Former rule",
    };
    rules.extend(others.map(|(name, counts)| rule(kind(name), name, false, *counts)));
    rules.sort_by(|one, other| {
        let (one, other) = (&one.history, &other.history);
        let denied = other.denied_per_s.total_cmp(&one.denied_per_s);
        denied.then_with(|| other.allowed_per_s.total_cmp(&one.allowed_per_s))
    });
    rules
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
            html.raw(". Denied most: <strong>").text(values(key));
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

/// Says within which bound of the histogram decisions were made.
fn within(us: u64) -> String {
    match us {
        u64::MAX => "over 1 s".to_owned(),
        us => time_us(us),
    }
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

fn keys(html: &mut Html, heavy: &Heavy, now_s: u64) {
    html.raw("<h2>Heaviest keys</h2>\n<p>Counted since ")
        .push(ago(heavy.since, now_s));
    html.raw(". A count such as 20 to 23 is not exact: it is at least 20, and at most 23.</p>\n");
    html.raw("<div class=\"pair\">\n");
    let denied = |key: &HeavyKey| key.denied;
    list(
        html,
        ["Keys that are denied most", "denied", "was denied"],
        &heavy.denied,
        denied,
    );
    list(
        html,
        ["Keys with most requests", "denied", "came"],
        &heavy.asked,
        denied,
    );
    if !heavy.would_be_denied.keys.is_empty() {
        let words = [
            "Keys that shadow rules would deny",
            "would be denied",
            "would have been denied",
        ];
        list(html, words, &heavy.would_be_denied, |key| {
            key.would_be_denied
        });
    }
    html.raw("</div>\n");
}

/// Writes a list of keys: its caption, the column of denials, and what happened to each key.
fn list(
    html: &mut Html,
    [caption, denials, happened]: [&str; 3],
    list: &List,
    denied: fn(&HeavyKey) -> (u64, u64),
) {
    html.raw("<div>\n");
    if list.keys.is_empty() && list.others_at_most == 0 {
        html.raw("<p>").text(caption).raw(": none.</p>\n</div>\n");
        return;
    }
    let columns = [
        Column::text("key"),
        Column::text("rule"),
        Column::number(denials),
        Column::number("requests"),
    ];
    let row = |key: &HeavyKey| {
        vec![
            Cell::from(values(key)),
            Cell::from(&key.rule),
            Cell::from(bounds(denied(key))),
            Cell::from(bounds(key.asked)),
        ]
    };
    let rows: Vec<_> = list.keys.iter().map(row).collect();
    html.push(table(caption, &columns, &rows));
    html.raw("<p>No other key ").text(happened);
    html.text(most_times(list.others_at_most))
        .raw(".</p>\n</div>\n");
}

/// Writes the parts of a key. One that requests lack is an empty text, which would show nothing.
fn values(key: &HeavyKey) -> String {
    let shown = |value: &String| match value.is_empty() {
        true => "-".to_owned(),
        false => value.clone(),
    };
    let shown: Vec<_> = key.values.iter().map(shown).collect();
    shown.join(", ")
}

fn rules_table(rules: &[Rule<'_>], now_s: u64) -> Html {
    let columns = [
        Column::text("rule"),
        Column::number("allowed/s"),
        Column::number("denied/s"),
        Column::text("last minute"),
        Column::text("denies since"),
        Column::number("allowed"),
        Column::number("denied"),
        Column::number("would be denied"),
    ];
    let row = |rule: &Rule<'_>| {
        let did = rule.history.did.iter().zip(0_u32..);
        let points = |of: fn(&Did) -> u64| -> Vec<(f64, f64)> {
            did.clone()
                .map(|(did, at)| (at.into(), of(did) as f64))
                .collect()
        };
        let (allowed, denied) = (points(|did| did.allowed), points(|did| did.denied));
        let spark = spark(&[
            Series {
                name: "allowed",
                points: &allowed,
            },
            Series {
                name: "denied",
                points: &denied,
            },
        ]);
        let since = rule.history.denies.map(|denies| ago(denies.since, now_s));
        let shadow = match rule.is_shadow {
            true => count(rule.counts.shadow),
            false => "-".to_owned(),
        };
        vec![
            Cell::from(rule.name),
            Cell::from(rate(rule.history.allowed_per_s)),
            Cell::from(rate(rule.history.denied_per_s)),
            Cell::html(spark),
            Cell::html(since.unwrap_or_else(|| Html::of("-"))),
            Cell::from(count(rule.counts.allowed)),
            Cell::from(count(rule.counts.denied)),
            Cell::from(shadow),
        ]
    };
    let rows: Vec<_> = rules.iter().take(MOST_RULES).map(row).collect();
    let mut html = Html::new();
    html.raw("<h2>Rules</h2>\n");
    if rows.is_empty() {
        html.raw("<p class=\"note\">The policy has no rules: every request is allowed that no entry of the list deny names.</p>\n");
        return html;
    }
    html.push(table("Requests by rule", &columns, &rows));
    let left_out = rules.len().saturating_sub(MOST_RULES);
    if left_out > 0 {
        let words = [
            "rule with fewer requests is",
            "rules with fewer requests are",
        ];
        html.raw("<p>")
            .text(plural(left_out as u64, words))
            .raw(" not shown.</p>\n");
    }
    html
}

fn latency(admin: &Admin) -> Html {
    let columns = [
        Column::text("asked by"),
        Column::number("questions/s"),
        Column::number("half within"),
        Column::number("99 % within"),
    ];
    let names = ["programs (/decide)", "proxies (/nginx, /forward)", "Envoy"];
    let rows = names.iter().enumerate().map(|(protocol, name)| {
        let latency = admin.history.latency(protocol);
        let within = |us: Option<u64>| match latency.per_s > 0.0 {
            true => within(us.unwrap_or(u64::MAX)),
            false => "-".to_owned(),
        };
        vec![
            Cell::from(name),
            Cell::from(rate(latency.per_s)),
            Cell::from(within(latency.p50_us)),
            Cell::from(within(latency.p99_us)),
        ]
    });
    let mut html = Html::new();
    html.raw("<h2>Latency</h2>\n");
    html.push(table(
        "The last ten seconds",
        &columns,
        &rows.collect::<Vec<_>>(),
    ));
    html
}

fn tables(stats: &PolicyStats) -> Html {
    let columns = [
        Column::text("rule"),
        Column::text("limit"),
        Column::text("filled"),
        Column::number("keys"),
        Column::number("slots"),
        Column::number("evicted"),
        Column::number("no room"),
    ];
    let tables = stats.rules.iter().flat_map(|rule| {
        let tables = rule.tables.iter();
        tables.map(|table| {
            let keys = &table.keys;
            let busy = keys.tracked.saturating_sub(keys.idle);
            vec![
                Cell::from(&rule.rule),
                Cell::from(&table.table),
                Cell::bar(busy, keys.slots),
                Cell::from(count(keys.tracked)),
                Cell::from(count(keys.slots)),
                Cell::from(count(keys.evicted)),
                Cell::from(count(keys.no_room)),
            ]
        })
    });
    let mut rows: Vec<_> = tables.collect();
    let left_out = rows.len().saturating_sub(MOST_RULES);
    rows.truncate(MOST_RULES);
    let mut html = Html::new();
    if rows.is_empty() {
        return html;
    }
    html.raw(
        "<h2>Tables of keys</h2>\n<p>A slot is filled while its key has less than its whole \
              limit. Other slots are free for new keys. A new key that finds none \
              takes the slot of another key, which is evicted and may have one more burst, or there \
              is no room for it.</p>\n",
    );
    html.push(table("In memory", &columns, &rows));
    if left_out > 0 {
        html.raw("<p>")
            .text(plural(left_out as u64, ["table is", "tables are"]))
            .raw(" not shown.</p>\n");
    }
    let lacking = stats.rules.iter().filter(|rule| rule.missing_key > 0);
    for rule in lacking.take(10) {
        html.raw("<p class=\"note\">")
            .text(plural(rule.missing_key, ["request", "requests"]))
            .raw(" lacked a part of the key of <strong>");
        html.text(&rule.rule).raw("</strong>.</p>\n");
    }
    html
}

/// Writes the numbers that no rule has.
fn service(values: &[(&'static str, &'static str, u64)]) -> Html {
    let columns = [Column::text("what"), Column::number("number")];
    // Times say little as numbers, and the page says them elsewhere.
    let shown = values
        .iter()
        .filter(|(name, _, _)| !name.contains("timestamp"));
    let row = |(name, help, value): &(&str, &str, u64)| {
        let mut cell = Html::new();
        cell.raw("<span class=\"long\" title=\"tollgate_")
            .text(name)
            .raw("\">")
            .text(help)
            .raw("</span>");
        vec![Cell::html(cell), Cell::from(count(*value))]
    };
    let rows: Vec<_> = shown.map(row).collect();
    let mut html = Html::new();
    html.raw("<h2>Service</h2>\n")
        .push(table("Numbers of the service", &columns, &rows));
    html
}
