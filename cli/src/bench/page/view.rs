//! The groups of contestants that are shown together: one group for each time source, and tollgate
//! beside other limiters.

use crate::bench::contestants::{Entry, Source};

/// A picture of several panels, and the sentences above it.
pub(crate) struct View {
    /// The prefix of the picture's id.
    pub(crate) id: &'static str,
    /// The suffix of its title.
    pub(crate) title: &'static str,
    pub(crate) panels: &'static [Part],
}

/// The contents of a panel.
pub(crate) struct Part {
    pub(crate) title: &'static str,
    /// The beginning of a sentence about it.
    pub(crate) lead: &'static str,
    shown: Shown,
}

enum Shown {
    /// Contestants with this time source, and the floors.
    From(Source),
    /// These contestants, if a peer is among them.
    Beside(&'static [&'static str]),
}

/// All views.
pub(crate) const VIEWS: [View; 2] = [
    View {
        id: "",
        title: "",
        panels: &[
            Part {
                title: "system clock",
                lead: "With the system clock",
                shown: Shown::From(Source::System),
            },
            Part {
                title: "coarse clock",
                lead: "With the coarse clock, which another thread updates",
                shown: Shown::From(Source::Coarse),
            },
            Part {
                title: "given tick",
                lead: "With a tick that the caller passes, without a clock reading",
                shown: Shown::From(Source::Tick),
            },
        ],
    },
    View {
        id: "peers-",
        title: ", compared with others",
        panels: &[
            Part {
                title: "one limit, each with its own clock",
                lead: "One limit, each with its own clock",
                shown: Shown::Beside(&[
                    "floor",
                    "tollgate_system",
                    "sharded_system",
                    "lease_system",
                    "std_mutex_system",
                    "governor",
                    "ratelimit",
                    "leaky_bucket",
                    "counter_window",
                ]),
            },
            Part {
                title: "a limit for each of many keys",
                lead: "A limit for each of many keys",
                shown: Shown::Beside(&["keyed_system", "governor_keyed", "locked_map"]),
            },
        ],
    },
];

impl Part {
    pub(crate) fn shows(&self, entry: &Entry) -> bool {
        match self.shown {
            Shown::From(source) => [source, Source::Raw].contains(&entry.source),
            Shown::Beside(names) => names.contains(&entry.name),
        }
    }

    /// Returns whether a contestant was measured that makes this part worth showing.
    fn is_used<'e>(&self, mut entries: impl Iterator<Item = &'e Entry>) -> bool {
        entries.any(|entry| match self.shown {
            Shown::From(source) => entry.source == source,
            Shown::Beside(_) => self.shows(entry) && is_peer(entry),
        })
    }
}

impl View {
    /// Returns the parts that are worth showing for these entries.
    pub(crate) fn panels<'e>(
        &self,
        entries: impl Iterator<Item = &'e Entry> + Clone,
    ) -> Vec<&'static Part> {
        let parts = self.panels.iter();
        parts.filter(|part| part.is_used(entries.clone())).collect()
    }
}

/// Returns whether this is another crate's limiter or a hand-written one.
pub(crate) fn is_peer(entry: &Entry) -> bool {
    matches!(entry.source, Source::Own(_))
}
