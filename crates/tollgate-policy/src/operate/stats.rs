//! The statistics of a policy's tables, and of its limits on stores.

use std::fmt::Write;

use tollgate::stats::KeyedStats;
use tollgate::stats::{Metric, Metrics, MetricsError, Value, write_prometheus};

use crate::limit::{PolicyClock, RuleLimit};
use crate::policy::Policy;
use crate::rule::CompiledRule;

/// The statistics of all rules of a policy, returned by [`Policy::stats`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PolicyStats {
    /// Those of each rule, in the order of the file.
    pub rules: Vec<RuleStats>,
}

/// The statistics of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleStats {
    /// The name of the rule.
    pub rule: String,
    /// How many requests the rule refused, or would have refused if it were not in shadow, because
    /// they lack a fact of its key. It counts from the last reload on. If the tables have no keys,
    /// the program probably does not supply the fact.
    pub missing_key: u64,
    /// The tables of its keys in memory.
    pub tables: Vec<TableStats>,
    /// What stores count about its limits in this process.
    pub stored: Vec<StoredStats>,
}

/// The statistics of a table of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableStats {
    /// What the table is: the position of a limit, as in `0`, with the plan for the concurrency of
    /// a plan, as in `0/free`; or one of the tables of `ban`: `bans`, `strikes` (the denials or
    /// failures that count) and `attempts` (the requests that may fail).
    pub table: String,
    /// The keys in it, and those that left.
    pub keys: KeyedStats,
}

/// What a store counts about a limit in this process, such as its leases.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredStats {
    /// The position of the limit, as in `0`, with the plan if it has plans, as in `0/free`. Keys
    /// with limits of their own (`override`) count with the first plan.
    pub table: String,
    /// The metrics that the store has, and their values.
    pub metrics: Vec<(Metric, u64)>,
}

impl Metrics for StoredStats {
    fn value(&self, metric: Metric) -> Option<Value> {
        let found = self.metrics.iter().find(|(known, _)| *known == metric);
        found.map(|(_, value)| (*value).into())
    }
}

impl Metrics for RuleStats {
    fn value(&self, metric: Metric) -> Option<Value> {
        (metric == Metric::MissingKey).then(|| self.missing_key.into())
    }
}

/// The labels and the values of one source of metrics.
type Labeled<'a> = (&'a [(&'a str, &'a str)], &'a dyn Metrics);

impl PolicyStats {
    /// Writes the statistics as Prometheus text, with the labels `rule` and `table`, after those of
    /// `others`: see [`write_prometheus`]. The number of series depends on the rules, not on the
    /// keys.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '5/h'")?;
    /// assert!(policy.decide(&[("user", "ann")]).is_allowed());
    /// assert!(!policy.decide(&()).is_allowed());
    ///
    /// let mut page = String::new();
    /// policy.stats().write_prometheus(&mut page, "tollgate", &[])?;
    /// assert!(page.contains("tollgate_tracked{rule=\"api\",table=\"0\"} 1\n"));
    /// assert!(page.contains("tollgate_missing_key_total{rule=\"api\"} 1\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MetricsError`] if the prefix or a label of the others is not valid, or if writing fails.
    pub fn write_prometheus<W: Write + ?Sized>(
        &self,
        out: &mut W,
        prefix: &str,
        others: &[Labeled<'_>],
    ) -> Result<(), MetricsError> {
        let of_tables = self.rules.iter().flat_map(|rule| {
            let label = ("rule", rule.rule.as_str());
            let tables = rule.tables.iter().map(move |it| {
                let keys: &dyn Metrics = &it.keys;
                ([label, ("table", it.table.as_str())], keys)
            });
            let stored = rule.stored.iter().map(move |it| {
                let stored: &dyn Metrics = it;
                ([label, ("table", it.table.as_str())], stored)
            });
            tables.chain(stored)
        });
        let of_tables: Vec<_> = of_tables.collect();
        let of_rules = self
            .rules
            .iter()
            .map(|rule| ([("rule", rule.rule.as_str())], rule));
        let of_rules: Vec<_> = of_rules.collect();
        let mut all = others.to_vec();
        all.extend(
            of_rules
                .iter()
                .map(|(labels, rule)| (&labels[..], *rule as &dyn Metrics)),
        );
        all.extend(
            of_tables
                .iter()
                .map(|(labels, metrics)| (&labels[..], *metrics)),
        );
        write_prometheus(out, prefix, &all)
    }
}

impl<C: PolicyClock> Policy<C> {
    /// Returns the statistics of all rules. It visits all slots of all tables.
    #[must_use]
    pub fn stats(&self) -> PolicyStats {
        let rules = self.rules.iter().map(|rule| RuleStats {
            rule: rule.name.to_string(),
            missing_key: rule.missing_keys.count(),
            tables: tables(rule),
            stored: stored(rule),
        });
        PolicyStats {
            rules: rules.collect(),
        }
    }
}

/// Returns the name of a limit under a plan.
fn name<C: PolicyClock>(rule: &CompiledRule<C>, index: usize, plan: usize) -> String {
    match rule.plan_name(plan) {
        Some(plan) => format!("{index}/{plan}"),
        None => index.to_string(),
    }
}

fn stored<C: PolicyClock>(rule: &CompiledRule<C>) -> Vec<StoredStats> {
    let plans = rule.reads.plans.as_ref().map_or(0, |it| it.names.len());
    let mut all = Vec::new();
    for (index, limit) in rule.limits.iter().enumerate() {
        let RuleLimit::Remote(remote) = &**limit else {
            continue;
        };
        let with_metrics = (0..plans.max(1)).map(|plan| (plan, remote.metrics(plan)));
        let with_metrics = with_metrics.filter(|(_, metrics)| !metrics.is_empty());
        all.extend(with_metrics.map(|(plan, metrics)| StoredStats {
            table: name(rule, index, plan),
            metrics,
        }));
    }
    all
}

fn tables<C: PolicyClock>(rule: &CompiledRule<C>) -> Vec<TableStats> {
    let mut all = Vec::new();
    let mut push = |table: String, keys| all.push(TableStats { table, keys });
    for (index, limit) in rule.limits.iter().enumerate() {
        match &**limit {
            RuleLimit::Table(table) => push(index.to_string(), table.stats()),
            RuleLimit::Slots(plans) => {
                for (plan, slots) in plans.iter().enumerate() {
                    push(name(rule, index, plan), slots.stats());
                }
            }
            _ => {}
        }
    }
    if let Some(ban) = &rule.ban {
        push("bans".to_owned(), ban.bans.stats());
        push("strikes".to_owned(), ban.strikes.stats());
        let attempts = ban.attempts.as_ref().and_then(|it| it.limit.table());
        if let Some(attempts) = attempts {
            push("attempts".to_owned(), attempts.stats());
        }
    }
    all
}
