//! A simulation: clients share one limit of a server, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

use tollgate::algorithm::ChangeQuota;
use tollgate::clock::NoClock;
use tollgate::{AnyAlgorithm, Limiter, Tick};
use tollgate_client::{Pace, ServerLimit};
use tollgate_http::LimitState;

/// A generator of random numbers: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: Duration) -> Duration {
        let nanos = u64::try_from(end.as_nanos()).unwrap().max(1);
        Duration::from_nanos(self.draw() % nanos)
    }
}

/// What happened between the end of the warm-up and the end.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    /// What each client was granted.
    pub(crate) each: Vec<u64>,
    /// The seconds that were measured.
    pub(crate) seconds: f64,
    /// All decisions, also those of the warm-up, if the server is shut for some time.
    pub(crate) decisions: Vec<Decision>,
}

impl Outcome {
    /// The part of the answers that are 429.
    pub(crate) fn refused_part(&self) -> f64 {
        self.refused as f64 / (self.granted + self.refused).max(1) as f64
    }

    /// What was granted, as a part of this rate.
    pub(crate) fn used_part(&self, per_second: f64) -> f64 {
        self.granted as f64 / (per_second * self.seconds)
    }
}

/// A limit, its clients, and the network between them.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    pub(crate) limit: AnyAlgorithm,
    /// When clients come, and when they leave.
    pub(crate) clients: Vec<(Duration, Option<Duration>)>,
    /// The longest time from a request to its answer. The shortest is a millisecond.
    pub(crate) latency: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) end: Duration,
    /// Another client takes all permits between these times.
    pub(crate) shut: Range<Duration>,
    /// The server names no limits, only waits.
    pub(crate) is_terse: bool,
}

/// What the server decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision {
    pub(crate) at: Duration,
    pub(crate) client: usize,
    /// The wait that was named, if the request was refused.
    pub(crate) wait: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Joins,
    Leaves,
    Wakes { plan: u64 },
    Arrives { sent: Tick },
    Answered { sent: Tick, answer: Answer },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Answer {
    granted: bool,
    remaining: u64,
    /// The fields have whole seconds.
    reset: Duration,
}

/// A client that always has more to send.
struct Client {
    pace: Pace,
    /// The number of its plan: what woke for an older one is void.
    plan: u64,
    is_answered: bool,
    in_flight: usize,
}

/// A client has this many requests in flight at most.
const MOST_IN_FLIGHT: usize = 256;

struct Simulation<'f> {
    fleet: &'f Fleet,
    limiter: Limiter<AnyAlgorithm, NoClock>,
    said: ServerLimit,
    clients: Vec<Option<Client>>,
    events: BinaryHeap<Reverse<(Tick, u64, usize, Event)>>,
    count: u64,
    random: Random,
    outcome: Outcome,
}

impl Fleet {
    /// Eight clients that come within half a second.
    pub(crate) fn of_eight(limit: &str, end: u64) -> Self {
        Self {
            limit: limit.parse().unwrap(),
            clients: vec![(Duration::ZERO, None); 8],
            latency: Duration::from_millis(50),
            warm_up: Duration::from_secs(10),
            end: Duration::from_secs(end),
            shut: Duration::ZERO..Duration::ZERO,
            is_terse: false,
        }
    }

    /// Runs until the end.
    pub(crate) fn run(&self, seed: u64) -> Outcome {
        let state = LimitState::of_rate("", self.limit.quota());
        let mut said = ServerLimit::default();
        said.quota = Some(state.quota());
        said.window = state.window().map(ceil);
        let mut simulation = Simulation {
            fleet: self,
            limiter: Limiter::unstarted(self.limit, NoClock),
            said,
            clients: self.clients.iter().map(|_| None).collect(),
            events: BinaryHeap::new(),
            count: 0,
            random: Random(seed),
            outcome: Outcome {
                granted: 0,
                refused: 0,
                each: vec![0; self.clients.len()],
                seconds: (self.end - self.warm_up).as_secs_f64(),
                decisions: Vec::new(),
            },
        };
        for (client, (joins, leaves)) in self.clients.iter().enumerate() {
            let late = simulation.random.below(Duration::from_millis(500));
            simulation.plan(tick(*joins + late), client, Event::Joins);
            if let Some(leaves) = leaves {
                simulation.plan(tick(*leaves), client, Event::Leaves);
            }
        }
        simulation.run();
        simulation.outcome
    }
}

impl Simulation<'_> {
    fn plan(&mut self, at: Tick, client: usize, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, client, event)));
    }

    fn run(&mut self) {
        let end = tick(self.fleet.end);
        while let Some(Reverse((now, _, client, event))) = self.events.pop() {
            if now >= end {
                break;
            }
            match event {
                Event::Joins => {
                    self.clients[client] = Some(Client {
                        pace: Pace::new(self.random.draw()),
                        plan: 0,
                        is_answered: false,
                        in_flight: 0,
                    });
                    self.wake(now, client);
                }
                Event::Leaves => self.clients[client] = None,
                Event::Wakes { plan } => {
                    if self.clients[client]
                        .as_ref()
                        .is_some_and(|it| it.plan == plan)
                    {
                        self.wake(now, client);
                    }
                }
                Event::Arrives { sent } => self.arrives(now, client, sent),
                Event::Answered { sent, answer } => self.answered(now, client, sent, answer),
            }
        }
    }

    /// Sends if the pace allows it, and plans when to wake next.
    fn wake(&mut self, now: Tick, client: usize) {
        let way = self.way();
        let Some(it) = &mut self.clients[client] else {
            return;
        };
        if it.in_flight == MOST_IN_FLIGHT {
            return;
        }
        it.plan += 1;
        let plan = it.plan;
        let next = it.pace.next_send();
        if next > now {
            self.plan(next, client, Event::Wakes { plan });
            return;
        }
        it.in_flight += 1;
        it.pace.sent(now, it.is_answered);
        if !it.is_answered {
            // Before the first answer the layer sends little.
            it.pace.hold(now.saturating_add(Duration::from_millis(100)));
        }
        self.plan(
            now.saturating_add(way),
            client,
            Event::Arrives { sent: now },
        );
        self.plan(now, client, Event::Wakes { plan });
    }

    fn arrives(&mut self, now: Tick, client: usize, sent: Tick) {
        let at = now.saturating_since(Tick::ZERO);
        if self.fleet.shut.contains(&at) {
            _ = self
                .limiter
                .at(now)
                .try_acquire_n(self.limiter.at(now).available());
        }
        let decided = self.limiter.at(now).try_acquire();
        let answer = match &decided {
            Ok(granted) => Answer {
                granted: true,
                remaining: granted.remaining(),
                reset: ceil(granted.reset_after()),
            },
            Err(denied) => Answer {
                granted: false,
                remaining: self.limiter.at(now).available(),
                reset: ceil(denied.retry_after().unwrap()),
            },
        };
        let wait = (!answer.granted).then(|| wait(answer));
        let decision = Decision { at, client, wait };
        if !self.fleet.shut.is_empty() {
            self.outcome.decisions.push(decision);
        }
        if at >= self.fleet.warm_up {
            match decided {
                Ok(_) => {
                    self.outcome.granted += 1;
                    self.outcome.each[client] += 1;
                }
                Err(_) => self.outcome.refused += 1,
            }
        }
        let way = self.way();
        self.plan(
            now.saturating_add(way),
            client,
            Event::Answered { sent, answer },
        );
    }

    fn answered(&mut self, now: Tick, client: usize, sent: Tick, answer: Answer) {
        self.said.remaining = Some(answer.remaining);
        self.said.reset = Some(answer.reset);
        let Some(it) = &mut self.clients[client] else {
            return;
        };
        it.is_answered = true;
        it.in_flight -= 1;
        let unnamed = ServerLimit::default();
        let said = if self.fleet.is_terse {
            &unnamed
        } else {
            &self.said
        };
        it.pace.answered(said, sent, now, answer.granted);
        if !answer.granted {
            it.pace.hold(now.saturating_add(wait(answer)));
        }
        self.wake(now, client);
    }

    /// The time of a request to the server, or of an answer back.
    fn way(&mut self) -> Duration {
        let least = Duration::from_micros(500);
        least + self.random.below(self.fleet.latency / 2 - least)
    }
}

/// `Retry-After`: the wait in whole seconds.
fn wait(answer: Answer) -> Duration {
    answer.reset.max(Duration::from_secs(1))
}

fn ceil(time: Duration) -> Duration {
    Duration::from_secs(tollgate::outcome::ceil_secs(time))
}

fn tick(time: Duration) -> Tick {
    Tick::ZERO.saturating_add(time)
}
