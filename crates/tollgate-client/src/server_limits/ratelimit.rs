//! Reads `RateLimit` and `RateLimit-Policy`, as lists or as in draft 07 (a dictionary, unnamed
//! policies).

use std::time::Duration;

use super::structured::{Item, Member, bytes, members, number, text};
use super::{ServerLimit, ServerLimits, Unit};

/// What the lists say.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// The limits of `RateLimit`.
    states: Vec<ServerLimit>,
    /// The limits of `RateLimit-Policy`.
    policies: Vec<ServerLimit>,
    /// What draft 07's dictionary says.
    dictionary: ServerLimit,
    /// How many members of each field were read.
    read: [usize; 2],
}

impl Lists {
    /// Reads a line of `RateLimit`.
    pub(super) fn read_state(&mut self, line: &[u8]) {
        for member in members(line) {
            if !self.may_read(0) {
                return;
            }
            match member {
                Some(member) if member.key.is_some() => self.read_entry(&member),
                Some(member) if matches!(member.item, Item::Integer(_)) => {}
                Some(member) => {
                    let limit = limit_of(&member).filter(|limit| !limit.is_empty());
                    self.states.extend(limit);
                }
                None => {}
            }
        }
    }

    /// Reads a line of `RateLimit-Policy`.
    pub(super) fn read_policy(&mut self, line: &[u8]) {
        for member in members(line) {
            if !self.may_read(1) {
                return;
            }
            let member = member.filter(|member| member.key.is_none());
            let limit = member.as_ref().and_then(limit_of);
            self.policies
                .extend(limit.filter(|limit| !limit.is_empty()));
        }
    }

    fn may_read(&mut self, field: usize) -> bool {
        let Some(read) = self.read.get_mut(field) else {
            return false;
        };
        *read = read.saturating_add(1);
        *read <= ServerLimits::MAX_LIMITS
    }

    /// Reads a member of draft 07's dictionary.
    fn read_entry(&mut self, member: &Member<'_>) {
        let Some(number) = number(&member.item) else {
            return;
        };
        let limit = &mut self.dictionary;
        match member.key {
            Some("limit") => limit.quota = Some(number),
            Some("remaining") => limit.remaining = Some(number),
            Some("reset") => limit.reset = Some(wait(number)),
            _ => {}
        }
    }

    /// Returns all limits: those of the lists, those without names, and policies without a limit.
    pub(super) fn merge(self, groups: impl Iterator<Item = ServerLimit>) -> Vec<ServerLimit> {
        let mut limits = Vec::new();
        let mut policies = Policies::new(self.policies);
        for mut state in self.states {
            policies.add_named(&mut state);
            add(state, &mut limits);
        }
        let dictionary = Some(self.dictionary).filter(|limit| !limit.is_empty());
        for mut limit in dictionary.into_iter().chain(groups) {
            policies.add_unnamed(&mut limit);
            add(limit, &mut limits);
        }
        for policy in policies.unused() {
            add(policy, &mut limits);
        }
        limits
    }

    /// Adds a policy without a name, as `RateLimit-Limit` has them in drafts 00 to 03.
    pub(super) fn add_window(&mut self, quota: u64, window: Duration) {
        if self.may_read(1) {
            self.policies.push(ServerLimit {
                quota: Some(quota.min(ServerLimits::MAX_PERMITS)),
                window: Some(window.min(ServerLimits::MAX_WINDOW)),
                ..ServerLimit::default()
            });
        }
    }
}

/// Policies, and whether a limit was found for each.
struct Policies(Vec<(ServerLimit, bool)>);

impl Policies {
    fn new(policies: Vec<ServerLimit>) -> Self {
        Self(policies.into_iter().map(|policy| (policy, false)).collect())
    }

    /// Adds the policy of a limit's name: that of its partition, or else one for all partitions.
    fn add_named(&mut self, limit: &mut ServerLimit) {
        let is_own =
            |policy: &ServerLimit| policy.name == limit.name && policy.partition == limit.partition;
        let is_common = |policy: &ServerLimit| {
            let covers = policy.partition.is_none() || limit.partition.is_none();
            policy.name == limit.name && covers
        };
        let found = self.find(is_own).or_else(|| self.find(is_common));
        self.add(found, limit);
    }

    /// Adds the policy without a name that has the limit's quota.
    fn add_unnamed(&mut self, limit: &mut ServerLimit) {
        let has_quota = |policy: &ServerLimit| {
            policy.name.is_empty() && policy.quota.is_some() && policy.quota == limit.quota
        };
        let found = self.find(has_quota);
        self.add(found, limit);
    }

    fn find(&self, is_wanted: impl Fn(&ServerLimit) -> bool) -> Option<usize> {
        self.0.iter().position(|(policy, _)| is_wanted(policy))
    }

    fn add(&mut self, found: Option<usize>, limit: &mut ServerLimit) {
        if let Some((policy, is_used)) = found.and_then(|found| self.0.get_mut(found)) {
            *is_used = true;
            limit.add_policy(policy);
        }
    }

    fn unused(self) -> impl Iterator<Item = ServerLimit> {
        let policies = self.0.into_iter();
        policies.filter_map(|(policy, is_used)| (!is_used).then_some(policy))
    }
}

/// Adds a limit, unless another one says the same.
fn add(limit: ServerLimit, limits: &mut Vec<ServerLimit>) {
    if limits.len() < ServerLimits::MAX_LIMITS
        && !limits.iter().any(|other| limit.is_said_by(other))
    {
        limits.push(limit);
    }
}

/// Reads a member of a list: a name with parameters, or a quota with its window.
fn limit_of(member: &Member<'_>) -> Option<ServerLimit> {
    let mut limit = ServerLimit::default();
    match &member.item {
        item @ Item::Integer(_) => limit.quota = Some(number(item)?),
        item => limit.name = text(item, ServerLimits::MAX_NAME)?,
    }
    for (key, value) in member.parameters() {
        match key {
            "q" => limit.quota = number(&value),
            "w" | "window" => limit.window = number(&value).map(window),
            "r" => limit.remaining = number(&value),
            "t" => limit.reset = number(&value).map(wait),
            "qu" => limit.unit = unit(&value),
            "pk" => limit.partition = bytes(value, ServerLimits::MAX_NAME),
            _ => {}
        }
    }
    Some(limit)
}

fn unit(value: &Item<'_>) -> Unit {
    match text(value, ServerLimits::MAX_NAME).as_deref() {
        Some("content-bytes" | "bytes") => Unit::ContentBytes,
        Some("concurrent-requests" | "concurrency") => Unit::ConcurrentRequests,
        _ => Unit::Requests,
    }
}

fn wait(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(ServerLimits::MAX_WAIT)
}

fn window(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(ServerLimits::MAX_WINDOW)
}
