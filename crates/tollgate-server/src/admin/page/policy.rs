//! The policy that decides, and what is wrong with it.

use tollgate_page::{Cell, Column, Html, table};
use tollgate_policy::file::{Applies, Entry};
use tollgate_policy::{Problem, warnings};

use crate::admin::Admin;
use crate::ends::needs;
use crate::service::Answer;

/// Returns the name of the policy's file. Its folder is not for those who have no token.
pub(super) fn name(admin: &Admin) -> String {
    let name = admin
        .reloader
        .path
        .as_ref()
        .and_then(|path| path.file_name());
    match name {
        Some(name) => name.display().to_string(),
        None => "the built-in policy".to_owned(),
    }
}

pub(in crate::admin) fn answer(admin: &Admin) -> Answer {
    let policy = admin.service.policy.load();
    let mut html = Html::new();
    if let Some(refused) = admin.reloader.refused() {
        // The page does not ask for this part again while it is so, so it says no time.
        html.raw("<p class=\"note\">The file has errors:</p>\n<pre>");
        html.text(&refused.why).raw("</pre>\n");
        html.raw("<p>What follows is of the older policy that decides.</p>\n");
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
        let limits: Vec<_> = limits.chain(plans).collect();
        let mut limits = limits.join(", ");
        if rule.shadow {
            limits.push_str(" (shadow)");
        }
        let key = if key.is_empty() {
            "all requests".to_owned()
        } else {
            key.join(", ")
        };
        [rule.name.as_str(), &applies, &key, &limits, &rule.store]
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
    let file = policy.file();
    let entries = [("deny", &file.deny), ("allow", &file.allow)];
    let entries = entries.iter().flat_map(|(list, entries)| {
        let cells =
            |entry: &Entry| [entry.name.as_str(), list, &entry.when.to_string()].map(Cell::from);
        entries.iter().map(move |entry| cells(entry).into())
    });
    let entries: Vec<Vec<Cell>> = entries.collect();
    if !entries.is_empty() {
        let columns = ["entry", "list", "applies"].map(Column::text);
        html.push(table(
            "Lists, which go before the rules",
            &columns,
            &entries,
        ));
    }
    super::part(html)
}
