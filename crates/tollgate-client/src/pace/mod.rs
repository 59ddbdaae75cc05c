//! When the next request may go, by what answers say of one limit.
//!
//! # The task
//!
//! Several clients share a limit and know nothing of each other. Each sees its own answers only.
//! An answer says how many permits are left (`r`), the quota (`q`) and its window (`w`). Together
//! the clients should use the whole limit, get almost no 429, and have equal shares.
//!
//! # The rule
//!
//! The limit refills `R = q / w` permits a second. `r` is what all clients see of each other: if it
//! stands still, they send as much together as is refilled. So each client steers `r` to a *margin*
//! `m`, and sends at the rate
//!
//! ```text
//! rate = s * (R + (r - m) / T)
//! ```
//!
//! - `s` is the client's *share*. If all shares add up to 1, then `dr/dt = R - (sum of rates) =
//!   -(r - m) / T`: `r` goes to `m` exponentially, with the time constant `T`, and does not
//!   overshoot as long as answers are much younger than `T`. So `T` is at least four times the
//!   latency. A client with a small share has few answers, so its `T` is also at least the time
//!   between its requests.
//! - The share is found by comparing two rates. Between two answers the clients took `r1 - r2 + R *
//!   (t2 - t1)` permits. They should have taken `R + (r - m) / T` a second. The logarithm of the
//!   share moves by a part of the logarithm of their quotient, so the shares' sum goes to 1. A
//!   refusal halves the share.
//! - The margin grows with the share: `m = M * s^(1/4)`. A client with a larger share sees less
//!   spare permits than one with a smaller share, and gives way. The differences of the shares
//!   decay exponentially, so the shares become equal. With equal margins they would stay as they
//!   are.
//!
//! The errors of requests do not add up: each request is planned from the time at which the
//! previous one should have gone, and is moved by what that request saw. So the clients' requests
//! spread over time evenly, although no client knows of another.
//!
//! # After a refusal
//!
//! A refusal halves the share, unless its request was the first one after a hold: then the others
//! took all permits while this client sent nothing, and its share is not to blame. See
//! [`Hold`](hold::Hold).
//!
//! # Which limit it is
//!
//! The fields do not say how a server counts. `reset` tells it: see [`Kind`](kind::Kind). In a
//! fixed window that ends in `left` seconds, `r` falls by plan. There the pace steers `r - R *
//! left`, which does not fall. In a sliding window less is refilled after a time with few requests.
//!
//! If a server names no limit, the pace finds a rate by trying: see [`Tried`](tried::Tried).

mod ends;
mod hold;
mod kind;
mod plan;
mod reading;
mod share;
mod tried;

use std::time::Duration;

use tollgate::Tick;

use self::ends::Ends;
use self::hold::Hold;
use self::kind::{Judge, Kind};
use self::plan::SLACK;
use self::reading::{Reading, Window};
use self::share::Share;
use self::tried::Tried;
use crate::server_limits::ServerLimit;

/// A timer may wake this late: the plan stays the same.
const LATE: f64 = 0.005;

/// After a hold, a client of unknown rate sends again within this many seconds.
const LONGEST_SPREAD: f64 = 5.0;

/// Plans requests to a server by what its answers say of one limit: for HTTP clients of your own.
///
/// [`ClientLimitLayer`](super::ClientLimitLayer) has one for each limit of a server. It reads no
/// clock and draws its random numbers from a seed, so it is the same in each run.
///
/// After a time in which others took all permits, however long, a client that has the limit for
/// itself uses four fifths of it two windows after the server has room. While the server refuses
/// all requests, the client sends one request after each wait that the server names. If the others
/// leave a permit now and then, the client's share falls, and it may take a minute or two to come
/// back.
///
/// Several clients that use it on one key share the key's limit and are hardly ever refused,
/// although they don't know of each other. With 10, 100 or 1000 permits a second, eight clients
/// that always have more to send use at least 95 % of the limit, and less than 1 % of the answers
/// are 429. This holds for token buckets, GCRA, sliding and fixed windows, with bursts or windows
/// of one second and of one minute. There are exceptions:
///
/// - If there are fewer than about five permits for each client in a window, a client learns too
///   late from its answers. Eight clients use about 85 % of a window of 10 permits a second, and 2
///   to 5 % of the answers are 429.
/// - A client alone uses a third to two thirds of a quota of one to three permits.
/// - If a burst lasts for less than a second, the server says a window of a second. Then the client
///   has to find the rate by trying.
/// - Windows that begin with the first request have no fixed times. Clients use 80 to 90 % of them,
///   and 2 to 3 % of the answers are 429.
///
/// Shares become equal within a minute, or within some windows if windows are long: each of 4 or of
/// 16 clients gets at least half of an equal share.
///
/// A server that names only waits says far less. Pass [`answered`](Self::answered) a limit without
/// numbers, [`ServerLimit::default`], and the rate is found by trying: at most about 5 % of the
/// answers to clients that share a limit are 429. The clients' shares become equal only after each
/// has sent hundreds of requests.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Tick;
/// use tollgate_client::ServerLimit;
/// use tollgate_client::Pace;
///
/// let mut pace = Pace::new(7);
/// let start = Tick::from_nanos(0);
/// assert!(pace.next_send() <= start); // nothing is known yet
/// pace.sent(start, false);
///
/// let mut limit = ServerLimit::default();
/// limit.quota = Some(100);
/// limit.window = Some(Duration::from_secs(10));
/// limit.remaining = Some(0);
/// limit.reset = Some(Duration::from_secs(10));
/// let now = start.saturating_add(Duration::from_millis(30));
/// pace.answered(&limit, start, now, true);
/// assert!(pace.next_send() > now); // no permit is left
/// ```
#[derive(Debug, Clone)]
pub struct Pace {
    limit: Option<Window>,
    judge: Judge,
    ends: Ends,
    share: Share,
    /// How many permits are left beyond the margin.
    spare: f64,
    /// The mean of the permits left, over about a window.
    mean: f64,
    /// The least permits left in this window, and in the one before.
    least: f64,
    least_before: f64,
    /// The mean time from a request to its answer.
    latency: f64,
    last_answer: Option<Answer>,
    /// When the last request should have gone.
    last: f64,
    /// Whether the last request waited for its turn.
    waited: bool,
    hold: Hold,
    /// The rate, while no answer has named a limit.
    tried: Tried,
    /// The time of the last call.
    now: Tick,
    random: u64,
}

/// What an answer said, and when.
#[derive(Debug, Clone, Copy)]
struct Answer {
    sent: f64,
    received: f64,
    remaining: f64,
}

impl Pace {
    /// Makes a pace that lets all requests go until an answer names a limit.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            limit: None,
            judge: Judge::new(),
            ends: Ends::new(),
            share: Share::new(),
            spare: 0.0,
            mean: 0.0,
            least: f64::INFINITY,
            least_before: f64::INFINITY,
            latency: 0.0,
            last_answer: None,
            last: 0.0,
            waited: false,
            hold: Hold::new(),
            tried: Tried::new(),
            now: Tick::ZERO,
            random: seed,
        }
    }

    /// Returns when the next request may go. It may lie in the past.
    #[must_use]
    pub fn next_send(&self) -> Tick {
        tick(self.next()).max(self.hold.until())
    }

    /// Returns the approximate time from one request to the next.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::try_from_secs_f64(self.spacing()).unwrap_or(Duration::MAX)
    }

    /// A request goes now. `waited` says whether it waited for [`next_send`](Self::next_send).
    pub fn sent(&mut self, now: Tick, waited: bool) {
        let next = seconds(self.next_send());
        self.hold.sent(now);
        self.now = now;
        let now = seconds(now);
        self.tried.sent(now, waited);
        let is_late = !waited || now - next > self.spacing().max(LATE);
        // A request may go sooner than planned, if the plan is a very long wait.
        self.last = if is_late { now } else { next.min(now) };
        self.waited = waited;
    }

    /// An answer came at `now` to a request that went at `sent`. `limit` is what it says.
    pub fn answered(&mut self, limit: &ServerLimit, sent: Tick, now: Tick, granted: bool) {
        self.now = now;
        let has_tried = !granted && self.hold.is_tried_by(sent);
        if granted {
            self.granted(sent);
        }
        let was_held = sent < self.hold.until();
        let (sent, received) = (seconds(sent), seconds(now));
        let before = self.last_answer;
        let rose =
            before.is_some_and(|it| limit.remaining.is_some_and(|r| r as f64 > it.remaining));
        let Some((window, said)) = Reading::of(limit, self.limit, rose) else {
            if granted {
                self.tried.granted(received, self.waited);
            } else {
                self.tried.refused(sent, received);
            }
            return;
        };
        let is_first = self.limit.replace(window).is_none();
        let late = (received - sent).max(0.0);
        self.latency = if is_first {
            late
        } else {
            self.latency * 0.9 + late * 0.1
        };
        let answer = Answer {
            sent,
            received,
            remaining: said.remaining,
        };
        let began = self
            .judge
            .sees(&window, &said, &answer, before, granted, &mut self.ends);

        if before.is_some_and(|it| said.remaining - it.remaining > SLACK * window.quota) {
            (self.least, self.least_before) = (f64::INFINITY, self.least);
        }
        self.least = self.least.min(said.remaining);
        let level = self.level(&window, &answer, began, granted);
        if is_first {
            self.mean = said.remaining;
            self.share.begins(&window, level, self.most_margin(&window));
        }
        self.spare = level - self.most_margin(&window) * self.share.root();
        if said.remaining >= window.quota - 1.0 {
            // Only the request's own permit is missing, so there may be room for more.
            self.spare = self.spare.max(1.0);
            // One such answer is not enough: in a short window, any client is first now and then.
            let was_full = before.is_some_and(|it| it.remaining >= window.quota - 1.0);
            if was_full && self.waited && granted && self.judge.kind() != Kind::Fixed {
                self.share.has_room(&window, sent, received);
            }
        }
        let is_late = before.is_some_and(|it| sent <= it.sent);
        if !granted {
            // The others took all permits while this client sent nothing.
            if !has_tried && self.share.refused(sent, received) {
                self.last_answer = None;
            }
        } else if is_late {
            self.share.counts_own();
        } else if !was_held {
            self.last_answer = Some(answer);
            if let Some(before) = before {
                self.learn(&window, before, answer);
            }
        }
        if said.remaining < 1.0 && self.judge.kind() == Kind::Fixed {
            if let Some(end) = self.ends.next_after(received, window.seconds) {
                // The server's own word counts, which it rounds to a second.
                let said = said.reset.map_or(end, |reset| received + reset + 1.0);
                self.hold(tick(end.min(said)));
            }
        }
    }

    /// Lets no request go before this time. The first one after it goes at a random time within the
    /// client's usual interval, so that clients don't come back together.
    pub fn hold(&mut self, until: Tick) {
        if self.hold.begin(until, self.now) {
            let wait = until.saturating_since(self.now).as_secs_f64();
            self.tried.waits(wait);
            let usual = match self.limit {
                Some(_) => self.usual_spacing().min(self.longest_spacing()),
                None => {
                    let most = (wait / 4.0 + 0.5).min(LONGEST_SPREAD);
                    self.tried.spread().map_or(most, |spread| spread.min(most))
                }
            };
            self.last = seconds(until) + usual * self.draw() - self.spacing();
        }
    }

    /// The same, from an answer that says nothing else.
    pub(super) fn hold_from(&mut self, until: Tick, now: Tick) {
        self.now = now;
        self.hold(until);
    }

    /// Forgets the rate that was found by trying, so that it delays no request.
    pub(super) fn forgets_rate(&mut self) {
        self.tried = Tried::new();
    }

    /// Returns whether a request has tried after a hold and has no answer yet.
    pub(super) const fn is_tried(&self) -> bool {
        self.hold.is_tried()
    }

    /// Returns whether a request that went at `sent` tries after a hold.
    pub(super) fn is_tried_by(&self, sent: Tick) -> bool {
        self.hold.is_tried_by(sent)
    }

    /// A request that went at this time gets no answer.
    pub(super) fn failed(&mut self, sent: Tick) {
        self.hold.failed(sent);
    }

    /// A request that went at this time was granted. If it went in spite of a hold, the server has
    /// changed its mind.
    pub(super) fn granted(&mut self, sent: Tick) {
        self.hold.granted(sent);
    }

    /// Returns a random number from 0 to 1: the generator is SplitMix64.
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn seconds(tick: Tick) -> f64 {
    tick.as_nanos() as f64 / 1e9
}

fn tick(seconds: f64) -> Tick {
    // A cast of a float saturates.
    Tick::from_nanos((seconds * 1e9) as u64)
}
