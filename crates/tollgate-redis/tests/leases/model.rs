//! Nodes, a server and a network, for stateright.

use std::collections::BTreeSet;
use std::fmt;

use stateright::{Checker, HasDiscoveries, Property};

use super::server::{Kind, Server};
use super::word::Word;
use crate::lease::holder::{Answer, Ask, Holder};

/// A tick in nanoseconds: the unit of the time at which permits end.
const TICK_NS: u64 = 1 << 24;

/// A rule of the protocol that is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mistake {
    /// The server ends leases two ticks early.
    EndsEarly,
    /// The node counts the life from the answer on, and not from before it asked.
    CountsFromTheAnswer,
    /// The node's clock stands still while the node does.
    ClockStandsStill,
    /// The node has no margin for a clock that is slower than the server's.
    NoMargin,
    /// Permits that are out are refilled.
    OutIsRefilled,
    /// The server takes a message that comes again, or late, for a new one.
    NumbersAreIgnored,
    /// The node reads each answer, and also one that comes again or late.
    AnswersAreReadTwice,
    /// The server takes back permits of a lease that has ended.
    EndedLeaseIsReturned,
    /// The node spends what it has returned.
    ReturnedIsSpent,
    /// The node puts back a permit that was not used after all, although it has told the server
    /// that it is spent.
    PutBackLate,
    /// The node does not say that it keeps the slots that are in use.
    InUseIsNotKept,
}

impl Mistake {
    pub(super) const ALL: [Self; 11] = [
        Self::EndsEarly,
        Self::CountsFromTheAnswer,
        Self::ClockStandsStill,
        Self::NoMargin,
        Self::OutIsRefilled,
        Self::NumbersAreIgnored,
        Self::AnswersAreReadTwice,
        Self::EndedLeaseIsReturned,
        Self::ReturnedIsSpent,
        Self::PutBackLate,
        Self::InUseIsNotKept,
    ];

    /// Returns the models in which it is found.
    pub(super) fn models(self) -> Vec<Model> {
        let (bucket, window, slots) = (super::BUCKET, super::WINDOW, super::SLOTS);
        let models = match self {
            Self::PutBackLate => return vec![Model::of_undos(window)],
            Self::InUseIsNotKept => return vec![Model::of_messages(slots)],
            Self::EndsEarly | Self::NoMargin => [bucket, window, slots].map(Model::of_clocks),
            _ => [bucket, window, slots].map(Model::of_messages),
        };
        // A returned slot is free because it is not out any more.
        let is_found = |model: &Model| self != Self::EndedLeaseIsReturned || !model.is_slots();
        models.into_iter().filter(is_found).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    kind: Kind,
    nodes: u64,
    /// How many nodes have clocks that fall behind, give up, and restart.
    faulty: usize,
    /// How long a lease is, in the server's ticks.
    life: u64,
    /// By how many ticks a node's clock may fall behind.
    behind: u64,
    /// How many messages a node sends.
    messages: [u64; 2],
    /// How many ticks there are.
    ticks: u64,
    /// How many nodes restart.
    restarts: u64,
    /// Whether permits are put back that were not used after all.
    undoes: bool,
    mistake: Option<Mistake>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Node {
    /// Another one after a restart.
    name: u64,
    held: Word,
    holder: Holder,
    clock: u64,
    asked: u64,
    /// Permits that may be put back: of this window, and of earlier ones.
    recent: u64,
    earlier: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct State {
    now: u64,
    server: Server,
    nodes: Vec<Node>,
    /// Messages are never removed: each may come again, at any time. One that is never delivered is
    /// lost.
    asks: BTreeSet<(u64, Ask)>,
    answers: BTreeSet<(u64, Answer)>,
    restarts: u64,
    /// What is used of the limit, by all who spent.
    spent: u64,
    seen: Seen,
}

/// What has happened, for the properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Seen {
    returned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// A tick, in which the clock of one node may stand still.
    Tick {
        slow: Option<usize>,
    },
    Ask {
        node: usize,
        keep: u64,
        wants: u64,
    },
    GiveUp {
        node: usize,
    },
    /// The server gets a message.
    Hear {
        name: u64,
        ask: Ask,
    },
    /// A node gets an answer.
    Answer {
        node: usize,
        answer: Answer,
    },
    Spend {
        node: usize,
    },
    /// A slot is free again.
    Leave {
        node: usize,
    },
    /// A permit of this window, or of an earlier one, was not used after all.
    Undo {
        node: usize,
        is_recent: bool,
    },
    /// A caller takes a permit without a lease.
    Take,
    Restart {
        node: usize,
    },
}

impl Node {
    /// Slots that are lost make way for a key of which nothing is held.
    fn lose(&mut self) {
        if self.held.is_lost(self.clock * TICK_NS) {
            self.held = Word::of(true);
            self.holder = Holder::default();
        }
    }
}

impl Model {
    /// One node sends two messages, and one sends one.
    pub(super) fn of_messages(kind: Kind) -> Self {
        Self {
            kind,
            nodes: 2,
            faulty: 1,
            life: 2,
            behind: 1,
            messages: [2, 1],
            ticks: 4,
            restarts: 0,
            undoes: false,
            mistake: None,
        }
    }

    /// A clock falls behind by two ticks.
    pub(super) fn of_clocks(kind: Kind) -> Self {
        Self {
            life: 3,
            behind: 2,
            messages: [1, 1],
            ticks: 6,
            ..Self::of_messages(kind)
        }
    }

    /// A node restarts, and forgets all that it held and asked.
    pub(super) fn of_restarts(kind: Kind) -> Self {
        Self {
            messages: [1, 1],
            restarts: 1,
            ..Self::of_messages(kind)
        }
    }

    /// Permits of windows are put back.
    pub(super) fn of_undos(kind: Kind) -> Self {
        Self {
            undoes: true,
            ..Self::of_messages(kind)
        }
    }

    /// Both nodes have faults.
    pub(super) fn with_two_faulty(self) -> Self {
        Self { faulty: 2, ..self }
    }

    pub(super) fn with_ticks(self, ticks: u64) -> Self {
        Self { ticks, ..self }
    }

    /// Returns what happens in some order of events.
    fn reaches(&self) -> Vec<&'static str> {
        let mut reaches = vec!["all is spent", "a lease ends"];
        if self.messages.contains(&2) {
            reaches.push("permits are returned and spent again");
        }
        reaches
    }

    pub(super) fn with(self, mistake: Mistake) -> Self {
        Self {
            mistake: Some(mistake),
            ..self
        }
    }

    pub(super) fn check(self) -> Outcome {
        let checker = stateright::Model::checker(self)
            .threads(1)
            .finish_when(HasDiscoveries::AnyFailures)
            .spawn_bfs()
            .join();
        Outcome {
            states: checker.unique_state_count(),
            depth: checker.max_depth(),
            exceeded: checker.discovery("the limit is kept").map(|path| {
                let actions = path.into_actions();
                actions.iter().map(|action| format!("{action:?}")).collect()
            }),
            unreached: self
                .reaches()
                .into_iter()
                .filter(|name| checker.discovery(name).is_none())
                .collect(),
        }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn is_slots(&self) -> bool {
        matches!(self.kind, Kind::Slots { .. })
    }

    /// Returns how long permits may be spent, from when the message was sent.
    fn spendable_ns(&self) -> u64 {
        let margin = if self.is(Mistake::NoMargin) {
            0
        } else {
            self.behind
        };
        (self.life - margin) * TICK_NS
    }

    /// Counts the slots in use.
    fn count_slots(&self, state: &mut State) {
        if self.is_slots() {
            let in_use = |node: &Node| node.held.in_use(node.clock * TICK_NS);
            state.spent = state.nodes.iter().map(in_use).sum();
        }
    }

    fn tick(&self, state: &mut State, slow: Option<usize>) {
        state.now += 1;
        state.spent = self.kind.decayed(state.spent, state.now);
        state.server.tick(self.kind, state.now, self.mistake);
        for (i, node) in state.nodes.iter_mut().enumerate() {
            if slow != Some(i) {
                node.clock += 1;
            }
            if self.kind.begins(state.now) {
                node.earlier += std::mem::take(&mut node.recent);
            }
            node.lose();
        }
        self.count_slots(state);
    }
}

impl stateright::Model for Model {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let node = |name| Node {
            name,
            held: Word::of(self.is_slots()),
            ..Node::default()
        };
        vec![State {
            nodes: (0..self.nodes).map(node).collect(),
            ..State::default()
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.now < self.ticks {
            actions.push(Action::Tick { slow: None });
        }
        for (i, node) in state.nodes.iter().enumerate() {
            let may_be_slow =
                state.now - node.clock < self.behind || self.is(Mistake::ClockStandsStill);
            if state.now < self.ticks && may_be_slow && i < self.faulty {
                actions.push(Action::Tick { slow: Some(i) });
            }
            let now = node.clock * TICK_NS;
            let held = node.held.permits(now);
            match node.holder.unanswered() {
                None if node.asked < self.messages.get(i).copied().unwrap_or(0) => {
                    let most = self.kind.most();
                    let mut asks = vec![(0, most)];
                    if held > 0 {
                        asks.extend([(0, 0), (held, most)]);
                    }
                    actions.extend(asks.into_iter().map(|(keep, wants)| Action::Ask {
                        node: i,
                        keep,
                        wants,
                    }));
                }
                None => {}
                Some(_) if i < self.faulty => actions.push(Action::GiveUp { node: i }),
                Some(_) => {}
            }
            if node.held.spend(now).is_some() {
                actions.push(Action::Spend { node: i });
            }
            for (is_recent, count) in [(true, node.recent), (false, node.earlier)] {
                if count > 0 {
                    actions.push(Action::Undo { node: i, is_recent });
                }
            }
            if node.held.in_use(now) > 0 {
                actions.push(Action::Leave { node: i });
            }
            if state.restarts < self.restarts && i < self.faulty {
                actions.push(Action::Restart { node: i });
            }
            let answers = state.answers.iter().filter(|(name, _)| *name == node.name);
            actions.extend(answers.map(|(_, answer)| Action::Answer {
                node: i,
                answer: *answer,
            }));
        }
        actions.extend(state.asks.iter().map(|(name, ask)| Action::Hear {
            name: *name,
            ask: *ask,
        }));
        if !self.is_slots() {
            actions.push(Action::Take);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick { slow } => self.tick(&mut state, slow),
            Action::Ask { node, keep, wants } => {
                let node = state.nodes.get_mut(node)?;
                let now = node.clock * TICK_NS;
                let (held, keeps, returns) = node.held.withdraw(now, keep);
                if !self.is(Mistake::ReturnedIsSpent) {
                    node.held = held;
                }
                node.asked += 1;
                if !self.is(Mistake::PutBackLate) {
                    (node.recent, node.earlier) = (0, 0);
                }
                let keeps = match self.is(Mistake::InUseIsNotKept) {
                    true => held.permits(now),
                    false => keeps,
                };
                let ask = Ask {
                    number: node.asked,
                    keeps,
                    returns,
                    wants,
                };
                if !node.holder.ask(now, ask) {
                    return None;
                }
                state.asks.insert((node.name, ask));
            }
            Action::GiveUp { node } => {
                let node = state.nodes.get_mut(node)?;
                node.holder.give_up();
                self.forget(node.name, &mut state.answers);
            }
            Action::Hear { name, ask } => {
                let early = if self.is(Mistake::EndsEarly) { 2 } else { 0 };
                let ends = state.now + self.life - early;
                let before = state.server.used();
                let answer = state
                    .server
                    .asked(self.kind, name, ask, ends, self.mistake)?;
                state.seen.returned |= state.server.used() < before;
                let waits = |node: &Node| {
                    let waits = node.holder.unanswered();
                    node.name == name && waits.is_some_and(|(waits, _)| waits == ask)
                };
                if self.is(Mistake::AnswersAreReadTwice) || state.nodes.iter().any(waits) {
                    state.answers.insert((name, answer));
                }
            }
            Action::Answer { node, answer } => {
                let node = state.nodes.get_mut(node)?;
                self.answer(node, answer);
                node.lose();
                self.forget(node.name, &mut state.answers);
                self.count_slots(&mut state);
            }
            Action::Spend { node } => {
                let node = state.nodes.get_mut(node)?;
                node.held = node.held.spend(node.clock * TICK_NS)?;
                node.recent += u64::from(self.undoes);
                state.spent += 1;
            }
            Action::Leave { node } => {
                let node = state.nodes.get_mut(node)?;
                node.held = node.held.back(node.clock * TICK_NS);
                state.spent -= 1;
            }
            Action::Undo { node, is_recent } => {
                let node = state.nodes.get_mut(node)?;
                node.held = node.held.back(node.clock * TICK_NS);
                match is_recent {
                    true => (node.recent, state.spent) = (node.recent - 1, state.spent - 1),
                    false => node.earlier -= 1,
                }
            }
            Action::Take => {
                if !state.server.take(self.kind, 1) {
                    return None;
                }
                state.spent += 1;
            }
            Action::Restart { node } => {
                state.restarts += 1;
                let nodes = self.nodes;
                let node = state.nodes.get_mut(node)?;
                *node = Node {
                    name: node.name + nodes,
                    held: Word::of(self.is_slots()),
                    clock: node.clock,
                    ..Node::default()
                };
                self.count_slots(&mut state);
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the limit is kept", |model: &Self, state: &State| {
                state.spent <= model.kind.most()
            }),
            Property::sometimes("all is spent", |model: &Self, state: &State| {
                state.spent == model.kind.most()
            }),
            Property::sometimes("a lease ends", |_, state: &State| {
                let ended = |node: &Node| {
                    let held = node.held;
                    held.permits(0) > held.permits(node.clock * TICK_NS)
                };
                state.nodes.iter().any(ended)
            }),
            Property::sometimes(
                "permits are returned and spent again",
                |model: &Self, state: &State| {
                    state.seen.returned && state.spent == model.kind.most()
                },
            ),
        ]
    }
}

impl Model {
    /// Removes answers that are never read, so that fewer states differ.
    fn forget(&self, name: u64, answers: &mut BTreeSet<(u64, Answer)>) {
        if !self.is(Mistake::AnswersAreReadTwice) {
            answers.retain(|(node, _)| *node != name);
        }
    }

    fn answer(&self, node: &mut Node, answer: Answer) {
        let now = node.clock * TICK_NS;
        let before = node.held;
        if self.is(Mistake::AnswersAreReadTwice) && node.holder.unanswered().is_none() {
            node.held = before.answered(now, 0, answer.granted, before.until_ns());
            return;
        }
        let Some(brought) = node.holder.answered(answer) else {
            return;
        };
        let from = match self.is(Mistake::CountsFromTheAnswer) {
            true => now,
            false => brought.sent_ns,
        };
        let until = from + self.spendable_ns();
        node.held = before.answered(now, brought.lost, brought.granted, until);
    }
}

/// What was found.
#[derive(Debug)]
pub(super) struct Outcome {
    states: usize,
    depth: usize,
    /// The shortest way to exceed the limit.
    exceeded: Option<Vec<String>>,
    /// What never happened.
    unreached: Vec<&'static str>,
}

impl Outcome {
    pub(super) fn assert_kept(&self) {
        assert!(self.exceeded.is_none(), "the limit is exceeded: {self}");
        assert!(
            self.unreached.is_empty(),
            "not reached: {:?}",
            self.unreached
        );
    }

    pub(super) fn assert_exceeded(&self) {
        assert!(self.exceeded.is_some(), "the mistake was not found: {self}");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states, at most {} steps", self.states, self.depth)?;
        for action in self.exceeded.iter().flatten() {
            write!(f, "\n  {action}")?;
        }
        Ok(())
    }
}
