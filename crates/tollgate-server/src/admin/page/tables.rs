//! Tables of what changes: rules, latency, tables of keys, and the numbers of the service.

use tollgate::stats::{Metric, Metrics, Value};
use tollgate_page::{Cell, Column, Html, Series, spark, table};
use tollgate_policy::operate::PolicyStats;

use super::rules::Rule;
use super::words::{ago, count, plural, rate, within};
use crate::admin::Admin;
use crate::history::Did;

/// The most rules that are listed: those with most denials, and then with most requests.
const MOST_RULES: usize = 100;

pub(super) fn rules(rules: &[Rule<'_>], now_s: u64) -> Html {
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

pub(super) fn latency(admin: &Admin) -> Html {
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

pub(super) fn keys(stats: &PolicyStats) -> Html {
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

pub(super) fn leases(stats: &PolicyStats) -> Html {
    let columns = [
        Column::text("rule"),
        Column::text("limit"),
        Column::number("keys"),
        Column::number("held"),
        Column::number("drawn"),
        Column::number("a draw"),
        Column::number("returned"),
        Column::number("lapsed"),
        Column::number("messages"),
        Column::number("round trips"),
        Column::number("by allowance"),
    ];
    let leased = stats.rules.iter().flat_map(|rule| {
        let limits = rule.stored.iter();
        limits.filter_map(|limit| {
            let number = |metric| match limit.value(metric) {
                Some(Value::Whole(value)) => Some(value),
                _ => None,
            };
            let drawn = number(Metric::LeaseDrawn)?;
            let draws = number(Metric::LeaseDraws)?;
            let shown = |metric| Cell::from(number(metric).map_or("-".to_owned(), count));
            let mean = drawn.checked_div(draws);
            Some(vec![
                Cell::from(&rule.rule),
                Cell::from(&limit.table),
                shown(Metric::LeaseKeys),
                shown(Metric::LeaseHeld),
                Cell::from(count(drawn)),
                Cell::from(mean.map_or("-".to_owned(), count)),
                shown(Metric::LeaseReturned),
                shown(Metric::LeaseLapsed),
                shown(Metric::LeaseMessages),
                shown(Metric::LeaseTrips),
                shown(Metric::LeaseAllowed),
            ])
        })
    });
    let rows: Vec<_> = leased.take(MOST_RULES).collect();
    let mut html = Html::new();
    if rows.is_empty() {
        return html;
    }
    html.raw(
        "<h2>Leases</h2>\n<p>This process draws permits from the store ahead of need, and gives \
              back those that it does not need. Permits that it holds when their lease ends have \
              lapsed. Of an allowance, it grants permits without the store.</p>\n",
    );
    html.push(table("Permits from the store", &columns, &rows));
    html
}

/// Writes the numbers that no rule has.
pub(super) fn service(values: &[(&'static str, &'static str, u64)]) -> Html {
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
