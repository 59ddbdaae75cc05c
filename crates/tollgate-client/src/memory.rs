//! What the layer remembers of servers, in bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tollgate::{Concurrency, Tick};

use super::group::{Group, Link};
use super::line::{Stop, line};
use super::message::RequestHead;
use super::pace::Pace;
use super::retry::backoff;
use super::server_limits::{ServerLimit, ServerLimits};

/// The number of locks over which origins are spread.
const SHARDS: usize = 16;

/// After this number of granted requests in a row whose answers name a limit, the tried rate is
/// forgotten.
const ALL_NAMED: u32 = 3;

/// The largest number of limits that a group has.
const MOST_LIMITS: usize = 64;

/// What the layer remembers of servers.
#[derive(Debug)]
pub(super) struct Memory {
    shards: [Mutex<Shard>; SHARDS],
    /// How many groups there are. Its lock is taken while a shard's is held, and never before.
    groups: Mutex<usize>,
    hashes: RandomState,
}

/// The groups of some origins, and their limits.
#[derive(Debug, Default)]
struct Shard {
    groups: HashMap<u64, Group>,
    limits: HashMap<u64, Limit>,
}

/// A limit, and how many groups are linked to it.
#[derive(Debug)]
struct Limit {
    pace: Pace,
    groups: usize,
}

/// Which group a request belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupKey {
    origin: u64,
    group: u64,
}

/// What an answer means for its group.
#[derive(Debug)]
pub(super) struct Answered<'a> {
    pub(super) sent: Tick,
    pub(super) now: Tick,
    pub(super) said: &'a ServerLimits,
    /// The status is 429.
    pub(super) is_refused: bool,
    /// The status is 503.
    pub(super) is_unavailable: bool,
    /// The wait that the server names.
    pub(super) hold: Option<Duration>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            groups: Mutex::default(),
            hashes: RandomState::new(),
        }
    }

    /// Returns the group of a request: its origin and its credential.
    pub(super) fn key(
        &self,
        head: &RequestHead<'_>,
        credential: impl FnOnce(&mut dyn Hasher),
    ) -> GroupKey {
        let mut hasher = self.hashes.build_hasher();
        for name in [head.scheme(), head.host()] {
            for byte in name.unwrap_or_default().bytes() {
                hasher.write_u8(byte.to_ascii_lowercase());
            }
            hasher.write_u8(0xff);
        }
        head.port().hash(&mut hasher);
        let origin = hasher.finish();
        credential(&mut hasher);
        let group = hasher.finish();
        GroupKey { origin, group }
    }

    /// Returns a hash of a URL without its fragment, which is not sent.
    pub(super) fn url(&self, url: &str) -> u64 {
        let sent = url.split('#').next();
        self.hashes.hash_one(sent)
    }

    /// Returns the line of a group, and makes the group if there is none. If there are `most`
    /// groups already, the least recently used ones in its shard go first, but none whose requests
    /// wait.
    pub(super) fn turns(&self, key: GroupKey, now: Tick, most: usize) -> Arc<Concurrency> {
        let mut shard = self.shard(key);
        if !shard.groups.contains_key(&key.group) {
            let mut groups = lock(&self.groups);
            while *groups >= most && shard.forget_one() {
                *groups = groups.saturating_sub(1);
            }
            *groups = groups.saturating_add(1);
        }
        let group = shard.groups.entry(key.group);
        let group = group.or_insert_with(|| Group::new(line(), Pace::new(random()), now));
        Arc::clone(&group.turns)
    }

    /// Lets a request go if its group may send now, and if it gets its permit. Otherwise returns
    /// what the request waits for, and wakes this waker when that may have changed.
    pub(super) fn depart(
        &self,
        key: GroupKey,
        now: Tick,
        waited: bool,
        max_hold: Duration,
        waker: &Waker,
        permit: impl FnOnce() -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut guard = self.shard(key);
        let Shard { groups, limits } = &mut *guard;
        let Some(group) = groups.get_mut(&key.group) else {
            // The group was forgotten before this request stood in its line.
            return permit();
        };
        let next = next_send(group, limits, max_hold);
        if next > now {
            group.first = Some(waker.clone());
            return Err(match is_tried(group, limits, Pace::is_tried) {
                true => Stop::Answer(next),
                false => Stop::Pace(next),
            });
        }
        permit()?;
        group.first = None;
        group.sent(now, waited);
        for link in &group.limits {
            if let Some(limit) = limits.get_mut(&link.limit) {
                limit.pace.sent(now, waited);
            }
        }
        Ok(())
    }

    /// Notes what an answer says. Returns when the group's next request may go.
    pub(super) fn answered(&self, key: GroupKey, answer: &Answered<'_>) -> Tick {
        let mut guard = self.shard(key);
        let Shard { groups, limits } = &mut *guard;
        let Some(group) = groups.get_mut(&key.group) else {
            return Tick::ZERO;
        };
        group.opens();
        group.last_answer = answer.now;
        let has_tried = is_tried(group, limits, |pace| pace.is_tried_by(answer.sent));
        let names_no_wait = answer.is_refused || (answer.is_unavailable && has_tried);
        let hold = answer.hold.or_else(|| {
            names_no_wait.then(|| {
                group.row = group.row.saturating_add(1);
                backoff(group.row)
            })
        });
        let mut is_limit_held = false;
        let mut named = Vec::with_capacity(answer.said.limits.len());
        for said in answer.said.limits.iter().take(MOST_LIMITS) {
            let id = self.limit_id(key, said);
            if named.contains(&id) {
                continue;
            }
            named.push(id);
            let is_linked = group.limits.iter().any(|link| link.limit == id);
            if !is_linked && group.limits.len() >= MOST_LIMITS {
                continue;
            }
            let limit = limits.entry(id).or_insert_with(|| Limit {
                pace: Pace::new(random()),
                groups: 0,
            });
            if !is_linked {
                limit.groups += 1;
                group.limits.push(Link {
                    limit: id,
                    unnamed: 0,
                });
            }
            // Of several limits, those that have permits left did not refuse the request.
            let granted = !answer.is_refused || !may_have_refused(said, answer.said);
            limit.pace.answered(said, answer.sent, answer.now, granted);
            if let (false, Some(hold)) = (granted, hold) {
                limit.pace.hold(answer.now.saturating_add(hold));
                is_limit_held = true;
            }
        }
        if !named.is_empty() {
            if let Some(forgotten) = group.names(&named) {
                unlink(limits, forgotten);
            }
        }
        let unnamed = ServerLimit::default();
        let (sent, now) = (answer.sent, answer.now);
        match hold {
            // The limits that may have refused the request are held already.
            Some(_) if is_limit_held => group.pace.granted(sent),
            Some(hold) => {
                if answer.is_refused {
                    group.named = 0;
                    group.pace.answered(&unnamed, sent, now, false);
                }
                group.pace.hold_from(now.saturating_add(hold), now);
            }
            None => {
                group.row = 0;
                group.pace.answered(&unnamed, sent, now, true);
                group.named = match named.is_empty() {
                    true => 0,
                    false => group.named.saturating_add(1),
                };
                if group.named == ALL_NAMED {
                    // The group's limits say more than a rate that was found by trying.
                    group.pace.forgets_rate();
                }
            }
        }
        if !answer.is_refused {
            for link in &group.limits {
                if let Some(limit) = limits.get_mut(&link.limit) {
                    limit.pace.granted(sent);
                }
            }
        }
        // Other groups may wait for what this answer says of a limit that they share.
        let is_shared = |link: &Link| limits.get(&link.limit).is_some_and(|it| it.groups > 1);
        let shared: Vec<_> = group.limits.iter().copied().filter(is_shared).collect();
        let (first, next) = (group.first.take(), next_send(group, limits, Duration::MAX));
        let others = groups.values_mut().filter(|group| {
            let links = &group.limits;
            has_tried
                && links
                    .iter()
                    .any(|link| shared.iter().any(|it| it.limit == link.limit))
        });
        let wakers: Vec<_> = first
            .into_iter()
            .chain(others.filter_map(|it| it.first.take()))
            .collect();
        drop(guard);
        wakers.into_iter().for_each(Waker::wake);
        next
    }

    /// Notes that a request that went at `sent` gets no answer: it failed, or was dropped.
    pub(super) fn failed(&self, key: GroupKey, sent: Tick) {
        let mut guard = self.shard(key);
        let Shard { groups, limits } = &mut *guard;
        let Some(group) = groups.get_mut(&key.group) else {
            return;
        };
        group.opens();
        group.pace.failed(sent);
        for link in &group.limits {
            if let Some(limit) = limits.get_mut(&link.limit) {
                limit.pace.failed(sent);
            }
        }
        let first = group.first.take();
        drop(guard);
        if let Some(first) = first {
            first.wake();
        }
    }

    /// Returns how many groups and limits are remembered.
    pub(super) fn len(&self) -> (usize, usize) {
        let shards = self.shards.iter().map(lock);
        shards.fold((0, 0), |(groups, limits), shard| {
            (groups + shard.groups.len(), limits + shard.limits.len())
        })
    }

    /// Returns the number of a limit. A limit with a partition is shared by all groups of its
    /// origin whose answers name the partition.
    fn limit_id(&self, key: GroupKey, said: &ServerLimit) -> u64 {
        let mut hasher = self.hashes.build_hasher();
        (key.origin, &said.name, said.unit).hash(&mut hasher);
        match &said.partition {
            Some(partition) => (true, partition).hash(&mut hasher),
            None => (false, key.group).hash(&mut hasher),
        }
        // Limits without a name differ by their windows.
        if said.name.is_empty() {
            (said.quota, said.window).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn shard(&self, key: GroupKey) -> MutexGuard<'_, Shard> {
        let index = usize::try_from(key.origin % SHARDS as u64).unwrap_or(0);
        // The index is below the number of shards.
        lock(self.shards.get(index).unwrap_or(&self.shards[0]))
    }
}

impl Shard {
    /// Forgets the least recently used group whose requests don't wait. Returns whether there was
    /// one.
    fn forget_one(&mut self) -> bool {
        let idle = self
            .groups
            .iter()
            .filter(|(_, group)| group.turns.inside() == 0);
        let oldest = idle.min_by_key(|(_, group)| group.last_used);
        let oldest = oldest.map(|(id, _)| *id);
        let Some(group) = oldest.and_then(|oldest| self.groups.remove(&oldest)) else {
            return false;
        };
        for link in &group.limits {
            unlink(&mut self.limits, link.limit);
        }
        true
    }
}

/// Returns whether `test` holds for the pace of the group or of one of its limits.
fn is_tried(group: &Group, limits: &HashMap<u64, Limit>, test: impl Fn(&Pace) -> bool) -> bool {
    let links = group.limits.iter();
    let mut paces = links.filter_map(|link| limits.get(&link.limit));
    test(&group.pace) || paces.any(|limit| test(&limit.pace))
}

/// Returns when a group's next request may go.
fn next_send(group: &Group, limits: &HashMap<u64, Limit>, max_hold: Duration) -> Tick {
    let links = group.limits.iter();
    let paces = links.filter_map(|link| limits.get(&link.limit));
    let next = paces.map(|limit| limit.pace.next_send()).max();
    group.next_send(next.unwrap_or(Tick::ZERO), max_hold)
}

fn unlink(limits: &mut HashMap<u64, Limit>, id: u64) {
    if let Some(limit) = limits.get_mut(&id) {
        limit.groups = limit.groups.saturating_sub(1);
        if limit.groups == 0 {
            limits.remove(&id);
        }
    }
}

/// Returns whether this limit may be the one that refused a request: it has no permits left, or no
/// limit says that it has none.
fn may_have_refused(limit: &ServerLimit, said: &ServerLimits) -> bool {
    limit.remaining == Some(0) || said.limits.iter().all(|limit| limit.remaining != Some(0))
}

fn random() -> u64 {
    // Each hasher has random keys.
    RandomState::new().build_hasher().finish()
}

/// A panic while a lock is held leaves numbers that are at worst old.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
