//! The policy that decides, and what is wrong with it.

use tollgate_page::{Cell, Column, Html, table};
use tollgate_policy::file::Applies;
use tollgate_policy::{Problem, warnings};

use super::words::ago;
use crate::admin::Admin;
use crate::admin::sample::now_ms;
use crate::ends::needs;
use crate::service::Answer;

/// Returns what the policy comes from.
pub(super) fn name(admin: &Admin) -> String {
    match &admin.reloader.path {
        Some(path) => path.display().to_string(),
        None => "the built-in policy".to_owned(),
    }
}

pub(in crate::admin) fn answer(admin: &Admin) -> Answer {
    let policy = admin.service.policy.load();
    let mut html = Html::new();
    if let Some(refused) = admin.reloader.refused() {
        html.raw("<p class=\"note\">The file was refused ");
        html.push(ago(refused.since, now_ms() / 1000));
        html.raw(". The rules below are those of an older policy. The errors:</p>\n<pre>");
        html.text(&refused.why).raw("</pre>\n");
    }
    let warnings = warnings(policy.file());
    let warnings = warnings.iter().map(Problem::to_string);
    let ends = policy.rules().flat_map(|rule| {
        let name = rule.name.as_str();
        needs(rule).map(move |needs| format!("rule {name:?}: {needs}"))
    });
    let warnings: Vec<_> = warnings.chain(ends).collect();
    if !warnings.is_empty() {
        html.raw("<h3>Warnings</h3>\n<ul>\n");
        for warning in warnings {
            html.raw("<li>").text(warning).raw("</li>\n");
        }
        html.raw("</ul>\n");
    }
    let columns = ["rule", "applies", "key", "limits", "store"].map(Column::text);
    let rows = policy.rules().map(|rule| {
        let applies = match &rule.when.value {
            Applies::Always => "always".to_owned(),
            Applies::Never => "with rules that name it".to_owned(),
            Applies::When(when) => when.to_string(),
        };
        let key: Vec<_> = rule.key.iter().map(|part| part.as_str()).collect();
        let limits = rule.limits.iter().map(|limit| limit.as_str().to_owned());
        let plans = rule.plan.iter().flat_map(|plan| &plan.value.limits);
        let plans = plans.map(|(name, limit)| format!("{} for {}", limit.as_str(), name.as_str()));
        let mut limits: Vec<_> = limits.chain(plans).collect();
        if rule.shadow {
            limits.push("(shadow)".to_owned());
        }
        let key = if key.is_empty() {
            "all requests".to_owned()
        } else {
            key.join(", ")
        };
        [
            rule.name.as_str(),
            &applies,
            &key,
            &limits.join(", "),
            &rule.store,
        ]
        .map(Cell::from)
        .into()
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    match rows.is_empty() {
        true => {
            html.raw("<p class=\"note\">The policy has no rules.</p>\n");
        }
        false => {
            html.push(table("Rules, in their order", &columns, &rows));
        }
    }
    super::part(html)
}
