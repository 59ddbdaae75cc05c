//! A model of a policy, as simple as possible: it looks at all rules in order, and has a limiter of
//! its own for each limit and key. It reads the TOML itself.

mod conditions;
mod limits;

use std::collections::HashMap;
use std::time::Duration;

use tollgate::clock::Clock;
use tollgate::{Granted, ManualClock, Tick};
use toml::{Table, Value};

use crate::guide::decided::{Decided, Decider};
use crate::guide::lines::{End, Pairs};
use conditions::{Captures, Facts, holds, single};
use limits::Limit;

/// The name of a limit: its rule, its key, and its text.
type LimitName = (String, Vec<String>, String);

pub(crate) struct Model {
    policy: Table,
    clock: ManualClock,
    limits: HashMap<LimitName, Limit>,
    bans: HashMap<(String, Vec<String>), Bans>,
    is_store_down: bool,
}

/// The denials and the ban of a key.
#[derive(Default)]
struct Bans {
    denials: Vec<Tick>,
    until: Option<Tick>,
}

/// A rule that applies to a request.
struct Applied {
    rule: Table,
    /// `None` if a fact is missing, which denies the request.
    key: Option<Vec<String>>,
}

impl Applied {
    /// Returns whether it asks a limit that is not `unlimited`, or denies without.
    fn has_limit(&self, facts: &Facts) -> bool {
        let key = self.key.as_ref();
        let texts = key.and_then(|key| limits::texts(&self.rule, key, facts));
        let is_unlimited = |texts: Vec<_>| texts.iter().all(|text| text == "unlimited");
        let attempts = limits::attempts(&self.rule).filter(|_| !flag(&self.rule, "shadow"));
        attempts.is_some() || !texts.is_some_and(is_unlimited)
    }
}

/// What a request takes of a limit.
pub(crate) struct Part {
    /// Whether the limit is that of the requests that may fail before they ban their key.
    is_attempt: bool,
    limit: LimitName,
    rule: Table,
    n: u64,
    granted: Option<Granted>,
}

/// What a request takes.
pub(crate) type Taken = Vec<Part>;

impl Model {
    pub(crate) fn new(policy: &str) -> Self {
        Self {
            policy: policy.parse().expect("TOML"),
            clock: ManualClock::new(),
            limits: HashMap::new(),
            bans: HashMap::new(),
            is_store_down: false,
        }
    }

    /// Returns the entries of a list, such as `rule`.
    fn list(&self, name: &str) -> Vec<Table> {
        let list = self.policy.get(name).and_then(Value::as_array);
        let entries = list.into_iter().flatten().filter_map(Value::as_table);
        entries.cloned().collect()
    }

    /// Returns the names of all entries and rules that match, with what their paths capture.
    pub(crate) fn matching(&self, facts: &Pairs) -> Vec<(String, Captures)> {
        let facts = values(facts);
        let lists = ["deny", "allow", "rule"].map(|name| self.list(name));
        let matching = lists.iter().flatten().filter_map(|entry| {
            let captures = holds(entry.get("when"), &facts, false)?;
            Some((text(entry, "name"), captures))
        });
        matching.collect()
    }

    fn listed(&self, name: &str, facts: &Facts) -> Option<Table> {
        let list = self.list(name);
        let is_exemption = name == "allow";
        let mut found = list
            .iter()
            .filter(|it| holds(it.get("when"), facts, is_exemption).is_some());
        found.next().cloned()
    }

    /// Returns the rules that apply to a request, and those in the shadow.
    fn applied(&self, facts: &Facts) -> (Vec<Applied>, Vec<Applied>) {
        let (mut applied, mut shadows) = (Vec::new(), Vec::new());
        let all = self.policy.get("apply").and_then(Value::as_str) == Some("all");
        let mut is_over = false;
        for rule in self.list("rule") {
            let Some(captures) = holds(rule.get("when"), facts, false) else {
                continue;
            };
            if is_over {
                break;
            }
            let for_each = holds(rule.get("when"), facts, true).is_some();
            let mut facts = facts.clone();
            facts.extend(captures.into_iter().map(|(name, it)| (name, vec![it])));
            let is_known = applied
                .iter()
                .any(|known: &Applied| text(&known.rule, "name") == text(&rule, "name"));
            let before = applied.len();
            self.apply(rule, &facts, &mut applied, &mut shadows);
            is_over = !all && for_each && (is_known || applied.len() > before);
        }
        (applied, shadows)
    }

    /// Adds a rule, and those that go with it unless it is in the shadow.
    fn apply(
        &self,
        rule: Table,
        facts: &Facts,
        applied: &mut Vec<Applied>,
        shadows: &mut Vec<Applied>,
    ) {
        let repeated = rule.get("repeated").and_then(Value::as_str);
        let part_of = |name: &String| {
            let values = facts.get(name)?;
            match repeated {
                Some("first") => values.first(),
                Some("last") => values.last(),
                _ => single(facts, name),
            }
        };
        let parts = strings(rule.get("key"));
        let parts: Vec<_> = parts.iter().map(|name| fact_name(name)).collect();
        let is_ambiguous = |name| facts.contains_key(name) && part_of(name).is_none();
        let is_ambiguous = parts.iter().any(is_ambiguous);
        let mut key = (!is_ambiguous).then(Vec::new);
        for part in parts.iter().filter(|_| !is_ambiguous) {
            let value = match part_of(part) {
                Some(value) => conditions::network(value, &rule, self.policy.get("client")),
                None => match rule.get("missing").and_then(Value::as_str) {
                    Some("skip") => return,
                    Some("shared") => "(shared)".into(),
                    _ => {
                        key = None;
                        break;
                    }
                },
            };
            key.as_mut().expect("no part is missing yet").push(value);
        }
        let name = text(&rule, "name");
        let mut before = applied.iter().chain(shadows.iter());
        if before.any(|known| text(&known.rule, "name") == name) {
            return;
        }
        if flag(&rule, "shadow") {
            shadows.push(Applied { rule, key });
            return;
        }
        let also = strings(rule.get("also"));
        applied.push(Applied { rule, key });
        for other in [self.list("rule"), self.list("limit")].concat() {
            if also.contains(&text(&other, "name")) {
                self.apply(other, facts, applied, shadows);
            }
        }
    }

    /// Asks a rule. Returns what it would take, or the wait.
    fn ask(&mut self, asked: &Applied, facts: &Facts) -> Result<Taken, Option<Duration>> {
        let rule = &asked.rule;
        let name = text(rule, "name");
        let key = asked.key.clone().ok_or(None)?;
        let now = self.clock_now();
        let bans = self.bans.get(&(name.clone(), key.clone()));
        let until = bans.and_then(|bans| bans.until);
        let banned = until.filter(|until| *until > now);
        let mut waits: Vec<_> = banned
            .map(|until| Some(until.saturating_since(now)))
            .into_iter()
            .collect();
        let cost = limits::cost(rule, facts);
        let mut taken = Taken::new();
        let server = self.policy.get("store");
        let texts = if self.is_store_down && limits::is_on_store(rule, server) {
            limits::fallback(rule, server).map(|text| vec![text])
        } else {
            limits::texts(rule, &key, facts)
        };
        let texts = texts.ok_or(None)?;
        if texts.iter().any(|text| text == "0") {
            return Err(None);
        }
        for text in texts.into_iter().filter(|text| text != "unlimited") {
            let name = (name.clone(), key.clone(), text);
            let clock = &self.clock;
            let limit = self.limits.entry(name.clone());
            let limit = limit.or_insert_with_key(|name| Limit::new(&name.2, clock));
            let n = if limit.counts_requests() { 1 } else { cost };
            waits.extend(limit.wait(n));
            taken.push(Part {
                is_attempt: false,
                limit: name,
                rule: rule.clone(),
                n,
                granted: None,
            });
        }
        if let Some(text) = limits::attempts(rule).filter(|_| !flag(rule, "shadow")) {
            let name = (format!("attempts of {name}"), key, text);
            let clock = &self.clock;
            let limit = self.limits.entry(name.clone());
            let limit = limit.or_insert_with_key(|name| Limit::new(&name.2, clock));
            waits.extend(limit.wait(1));
            taken.push(Part {
                is_attempt: true,
                limit: name,
                rule: rule.clone(),
                n: 1,
                granted: None,
            });
        }
        // The longest wait. `None`, if no wait helps, is longer than all.
        match waits
            .into_iter()
            .max_by_key(|wait| wait.unwrap_or(Duration::MAX))
        {
            Some(wait) => Err(wait),
            None => Ok(taken),
        }
    }

    /// Takes the permits, and returns how many are left of the tightest limit.
    fn take(&mut self, taken: &mut Taken) -> Option<u64> {
        let left = taken.iter_mut().map(|part| {
            let limit = self.limits.get_mut(&part.limit).expect("asked before");
            part.granted = limit.take(part.n);
            limit.available()
        });
        // All of them, even if the first is the tightest.
        left.reduce(u64::min)
    }

    /// Counts a denial. Returns how long the key is banned, if it was one too many.
    fn count_denial(&mut self, asked: &Applied) -> Option<Duration> {
        match limits::attempts(&asked.rule) {
            Some(_) => None,
            None => self.count(&asked.rule, asked.key.as_ref()?),
        }
    }

    /// Counts a denial or a failure. Returns how long the key is banned, if it was one too many.
    fn count(&mut self, rule: &Table, key: &[String]) -> Option<Duration> {
        let ban = rule.get("ban")?;
        let now = self.clock_now();
        let bans = self.bans.entry((text(rule, "name"), key.to_vec()));
        let bans = bans.or_default();
        if bans.until.is_some_and(|until| until > now) {
            return None;
        }
        let within = limits::time(ban, "within").unwrap_or_else(|| limits::period(rule));
        // The first denial begins a period.
        let first = bans.denials.first().copied();
        if first.is_some_and(|first| now.saturating_since(first) >= within) {
            bans.denials.clear();
        }
        bans.denials.push(now);
        let after = ban
            .get("after")
            .and_then(Value::as_integer)
            .expect("a number");
        if (bans.denials.len() as i64) < after {
            return None;
        }
        let time = limits::time(ban, "for").expect("a time");
        bans.until = Some(now.saturating_add(time));
        bans.denials.clear();
        Some(time)
    }

    fn clock_now(&self) -> Tick {
        self.clock.now()
    }
}

impl Decider for Model {
    type Held = Taken;

    fn decide(&mut self, facts: &Pairs) -> (Decided, Taken) {
        let mut facts = values(facts);
        // A resolver that the tests register.
        let first = single(&facts, "user").and_then(|user| user.get(..1));
        if let Some(first) = first.map(str::to_owned) {
            facts.insert("first-letter-of-user".into(), vec![first]);
        }
        if let Some(entry) = self.listed("deny", &facts) {
            let denied = Decided::denied(text(&entry, "name"), None);
            return (denied.with_status(status(&entry)), Taken::new());
        }
        if let Some(entry) = self.listed("allow", &facts) {
            let name = text(&entry, "name");
            return (Decided::allowed(vec![name], None), Taken::new());
        }
        let (applied, shadows) = self.applied(&facts);
        // Without a key or a plan, no limit is asked.
        let refuses = |asked: &&Applied| match &asked.key {
            Some(key) => match limits::texts(&asked.rule, key, &facts) {
                Some(texts) => texts.iter().any(|text| text == "0"),
                None => true,
            },
            None => true,
        };
        if let Some(asked) = applied.iter().find(refuses) {
            let denied = Decided::denied(text(&asked.rule, "name"), None);
            return (denied.with_status(status(&asked.rule)), Taken::new());
        }
        let mut denied: Option<(Option<Duration>, &Table)> = None;
        let mut taken = Taken::new();
        for asked in &applied {
            match self.ask(asked, &facts) {
                Ok(takes) => taken.extend(takes),
                Err(wait) => {
                    // The denial that bans the key waits for the end of the ban.
                    let ban = self.count_denial(asked).unwrap_or_default();
                    let wait = wait.map(|wait| wait.max(ban));
                    let longer = denied.as_ref().is_none_or(|(known, _)| {
                        wait.unwrap_or(Duration::MAX) > known.unwrap_or(Duration::MAX)
                    });
                    if longer {
                        denied = Some((wait, &asked.rule));
                    }
                }
            }
        }
        let mut decided = if let Some((wait, rule)) = denied {
            taken.clear();
            Decided::denied(text(rule, "name"), wait).with_status(status(rule))
        } else {
            let names = applied.iter().filter(|asked| asked.has_limit(&facts));
            let names = names.map(|asked| text(&asked.rule, "name"));
            let left = self.take(&mut taken);
            Decided::allowed(names.collect(), left)
        };
        for asked in shadows.iter().filter(|asked| asked.has_limit(&facts)) {
            let takes = self.ask(asked, &facts);
            decided
                .shadows
                .push((text(&asked.rule, "name"), takes.is_ok()));
            // A denied request takes nothing.
            if let (true, Ok(mut takes)) = (decided.is_allowed, takes) {
                self.take(&mut takes);
                taken.extend(takes);
            }
        }
        (decided, taken)
    }

    fn end(&mut self, held: Taken, end: &End) {
        for part in held {
            let outcome = limits::outcome(&part.rule, end);
            if part.is_attempt && outcome == Some(false) {
                let _ = self.count(&part.rule, &part.limit.1);
            }
            let limit = self.limits.get_mut(&part.limit).expect("taken before");
            let count = part.rule.get("count").and_then(Value::as_str);
            let gives_back = match count {
                _ if part.is_attempt => outcome != Some(false),
                Some("failures") => outcome != Some(false),
                Some("successes") => outcome != Some(true),
                _ => false,
            };
            let most = limits::max(&part.rule).unwrap_or(limit.most_settled());
            let settled = limits::settled(&part.rule, &end.answer);
            let settled = settled.filter(|_| !part.is_attempt);
            let settled = settled.map(|actual| actual.min(most.max(part.n)));
            let actual = if gives_back {
                0
            } else {
                settled.unwrap_or(part.n)
            };
            limit.end(part.n, part.granted, actual);
        }
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn store_down(&mut self) {
        self.is_store_down = true;
    }
}

/// Returns the values of each fact, those that differ.
fn values(pairs: &Pairs) -> Facts {
    let mut facts = Facts::new();
    for (name, value) in pairs {
        facts.entry(name.clone()).or_default().push(value.clone());
    }
    for values in facts.values_mut() {
        if values.iter().all(|value| *value == values[0]) {
            values.truncate(1);
        }
    }
    facts
}

/// Returns the name of a fact with a colon.
fn fact_name(name: &str) -> String {
    let groups = ["header.", "query.", "cookie.", "path.", "response-header."];
    match groups.iter().any(|group| name.starts_with(group)) {
        true => name.replacen('.', ":", 1),
        false => name.to_owned(),
    }
}

/// Returns a field that is a text.
fn text(table: &Table, field: &str) -> String {
    let text = table.get(field).and_then(Value::as_str);
    text.expect("a text").to_owned()
}

fn status(table: &Table) -> Option<u16> {
    let status = table.get("status").and_then(Value::as_integer)?;
    Some(status.try_into().expect("a status"))
}

fn flag(table: &Table, field: &str) -> bool {
    table.get(field).and_then(Value::as_bool) == Some(true)
}

/// Returns one text, or a list of texts.
fn strings(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list.iter().flat_map(|one| strings(Some(one))).collect(),
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Integer(one)) => vec![one.to_string()],
        _ => Vec::new(),
    }
}
