//! Sentences that say which contestant wins, by how much and why. The figures decide the winner;
//! `about` has the reasons.

use super::view::is_peer;
use crate::bench::about::reason;
use crate::bench::contestants::{Entry, Source};
use crate::bench::rows::{TIE, short};

/// What a decision costs a contestant, in any unit.
#[derive(Clone, Copy)]
pub(crate) struct Standing<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) cost: f64,
}

/// What a lower cost means.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// More decisions in the same time.
    Throughput,
    /// A lower p99. `step` is the counter's resolution in nanoseconds.
    Latency { step: f64 },
}

impl Measure {
    /// Returns the smallest visible difference. A figure may be off by a hundredth of a step.
    fn step(self) -> f64 {
        match self {
            Self::Throughput => 0.0,
            Self::Latency { step } => 1.01 * step,
        }
    }

    /// Returns the words for a tie.
    fn tie(self) -> &'static str {
        match self {
            Self::Latency { step } if step > 0.0 => {
                "within 10 % of each other, or a step of the counter"
            }
            _ => "within 10 % of each other",
        }
    }
}

/// What was measured, and with how many threads.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    /// What the sentence compares.
    pub(crate) lead: &'a str,
    pub(crate) measure: Measure,
    pub(crate) threads: usize,
    /// Whether the threads do not have a core each.
    pub(crate) crowded: bool,
}

/// Returns the sentence that names the winner. The floors do not compete.
pub(crate) fn verdict(scene: Scene<'_>, standings: &[Standing<'_>]) -> String {
    let Scene {
        lead,
        threads,
        crowded,
        ..
    } = scene;
    let is_judged = |one: &&Standing<'_>| {
        one.entry.source != Source::Raw && one.cost.is_finite() && one.cost > 0.0
    };
    let mut order: Vec<_> = standings.iter().filter(is_judged).copied().collect();
    order.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let plural = if threads == 1 { "" } else { "s" };
    let mut text = format!("{lead}, on {threads} thread{plural}: ");
    text += &match &order[..] {
        [] => "nothing was measured.".to_owned(),
        [only] => format!("only {} was measured.", only.entry.subject),
        [best, ..] => {
            let near = (TIE * best.cost).max(best.cost + scene.measure.step());
            let tied = order.partition_point(|one| one.cost <= near);
            let (tied, others) = order.split_at(tied);
            said(scene, tied, others)
        }
    };
    if crowded {
        text += " These threads do not have a core each, so the figures mean little.";
    }
    text
}

/// Compares the contestants that tie for the best figure with all others.
fn said(scene: Scene<'_>, tied: &[Standing<'_>], others: &[Standing<'_>]) -> String {
    let compared = compared(scene, tied, others);
    if let [best] = tied {
        let (subject, kind) = (best.entry.subject, best.entry.kind);
        let reason = reason(subject, kind, scene.threads).unwrap_or("it does less");
        return format!("{subject} wins, because {reason}. {compared}.");
    }
    let names = listed(tied.iter().map(|one| one.entry.subject.to_owned()));
    let tie = scene.measure.tie();
    if others.is_empty() {
        return format!("{names} tie, {tie}.");
    }
    format!("{names} tie, {tie}. {compared}.")
}

/// Returns how far behind the next contestant, the mutex and the best peer are.
fn compared(scene: Scene<'_>, tied: &[Standing<'_>], others: &[Standing<'_>]) -> String {
    let has_peer = tied.iter().any(|one| is_peer(one.entry));
    let next = others.first();
    let is_mutex = |one: &&Standing<'_>| ["std mutex", "locked map"].contains(&one.entry.subject);
    let mutex = others.iter().find(is_mutex);
    let peer = others.iter().find(|one| !has_peer && is_peer(one.entry));
    let mut seen: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    for one in [next, mutex, peer].into_iter().flatten() {
        let subject = one.entry.subject;
        let best = tied.first().map_or(f64::NAN, |best| best.cost);
        if !seen.contains(&subject) {
            seen.push(subject);
            let times = short(one.cost / best);
            parts.push(match (scene.measure, parts.is_empty()) {
                (Measure::Throughput, true) => {
                    format!("{times} times as many decisions as {subject}")
                }
                (Measure::Throughput, false) => format!("{times} times as many as {subject}"),
                (Measure::Latency { .. }, true) => {
                    format!("The p99 of {subject} is {times} times as high")
                }
                (Measure::Latency { .. }, false) => format!("that of {subject} {times} times"),
            });
        }
    }
    let parts = listed(parts.into_iter());
    match (scene.measure, tied.len()) {
        (Measure::Throughput, 1) => format!("It makes {parts}"),
        (Measure::Throughput, _) => format!("The best of them makes {parts}"),
        (Measure::Latency { .. }, _) => parts,
    }
}

/// Joins names as in "one, two and three".
fn listed(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<_> = names.collect();
    match (names.pop(), names.is_empty()) {
        (Some(last), false) => format!("{} and {last}", names.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Measure, Scene, Standing, verdict};
    use crate::bench::contestants::sampling::Nothing;
    use crate::bench::contestants::timing::{Aligned, Kind};
    use crate::bench::contestants::{Entry, Source};

    fn entry(subject: &'static str, source: Source, kind: Kind) -> Entry {
        Entry {
            name: subject,
            subject,
            source,
            kind,
            runner: Box::new(Aligned(Nothing(true))),
        }
    }

    /// Returns the sentence for these costs, with the system clock or a named clock.
    fn said(measure: Measure, threads: usize, all: &[(&'static str, Source, f64)]) -> String {
        let of = |&(subject, source, _): &_| entry(subject, source, Kind::Allowed);
        let entries: Vec<_> = all.iter().map(of).collect();
        let pairs = entries.iter().zip(all);
        let standings: Vec<_> = pairs
            .map(|(entry, &(.., cost))| Standing { entry, cost })
            .collect();
        let scene = Scene {
            lead: "Here",
            measure,
            threads,
            crowded: threads > 4,
        };
        verdict(scene, &standings)
    }

    use Source::{Own, Raw, System};

    #[test]
    fn the_best_figure_wins_and_the_floors_do_not_compete() {
        let mut all = [
            ("floor", Raw, 0.1),
            ("std mutex", System, 30.0),
            ("sharded", System, 2.0),
            ("token bucket", System, 3.0),
            ("governor", Own("quanta"), 8.0),
        ];
        assert_eq!(
            said(Measure::Throughput, 2, &all),
            "Here, on 2 threads: sharded wins, because each core has its own word, and \
             threads seldom write what another thread reads. It makes 1.50 times as many decisions as \
             token bucket, 15.0 times as many as std mutex and 4.00 times as many as governor."
        );
        // A peer can win too.
        all[4].2 = 1.0;
        let text = said(Measure::Latency { step: 0.0 }, 1, &all);
        assert_eq!(
            text,
            "Here, on 1 thread: governor wins, because a decision is one load and one exchange, \
             without a lock. The p99 of sharded is 2.00 times as high and that of std mutex 30.0 \
             times."
        );
    }

    #[test]
    fn figures_within_a_tenth_are_a_tie() {
        let all = [
            ("sharded", System, 10.9),
            ("token bucket", System, 10.0),
            ("std mutex", System, 11.1),
        ];
        assert_eq!(
            said(Measure::Throughput, 2, &all),
            "Here, on 2 threads: token bucket and sharded tie, within 10 % of each other. \
             The best of them makes 1.11 times as many decisions as std mutex."
        );
        assert_eq!(
            said(Measure::Throughput, 2, &all[..2]),
            "Here, on 2 threads: token bucket and sharded tie, within 10 % of each other."
        );
    }

    #[test]
    fn latencies_within_a_step_of_the_counter_are_a_tie() {
        let all = [
            ("sharded", System, 20.0),
            ("token bucket", System, 29.8),
            ("std mutex", System, 40.0),
        ];
        assert_eq!(
            said(Measure::Latency { step: 9.8 }, 2, &all),
            "Here, on 2 threads: sharded and token bucket tie, within 10 % of each other, or \
             a step of the counter. The p99 of std mutex is 2.00 times as high."
        );
        let text = said(Measure::Latency { step: 1.0 }, 2, &all);
        assert!(text.contains("sharded wins"), "{text}");
    }

    #[test]
    fn crowded_threads_are_pointed_out() {
        let all = [("sharded", System, 1.0), ("token bucket", System, 2.0)];
        let text = said(Measure::Throughput, 8, &all);
        assert!(text.ends_with("so the figures mean little."), "{text}");
    }

    #[test]
    fn a_contestant_without_a_figure_does_not_win() {
        let all = [("sharded", System, f64::NAN), ("token bucket", System, 2.0)];
        let text = said(Measure::Throughput, 2, &all);
        assert_eq!(text, "Here, on 2 threads: only token bucket was measured.");
        assert!(said(Measure::Throughput, 1, &[]).contains("nothing"));
    }
}
