//! Which contestants are shown together: each source of time by itself, and tollgate beside other
//! people's limiters.

use crate::bench::contestants::{Entry, Source};

/// A picture of several panels, and the sentences above it.
pub(crate) struct View {
    /// Before the picture's id.
    pub(crate) id: &'static str,
    /// After its title.
    pub(crate) title: &'static str,
    pub(crate) panels: &'static [Part],
}

/// What a panel shows.
pub(crate) struct Part {
    pub(crate) title: &'static str,
    /// How a sentence about it begins.
    pub(crate) lead: &'static str,
    shown: Shown,
}

enum Shown {
    /// What has the time from there, and the floors.
    From(Source),
    /// These, if there is one of the peers among them.
    Beside(&'static [&'static str]),
}

/// All of them.
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
                lead: "With the coarse clock, which another thread keeps",
                shown: Shown::From(Source::Coarse),
            },
            Part {
                title: "given tick",
                lead: "With a given tick, and so no clock to read",
                shown: Shown::From(Source::Tick),
            },
        ],
    },
    View {
        id: "peers-",
        title: ", beside others",
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

    /// Whether something of what was measured makes it worth showing.
    fn is_used<'e>(&self, mut entries: impl Iterator<Item = &'e Entry>) -> bool {
        entries.any(|entry| match self.shown {
            Shown::From(source) => entry.source == source,
            Shown::Beside(_) => self.shows(entry) && is_peer(entry),
        })
    }
}

impl View {
    /// Its panels that show something of this.
    pub(crate) fn panels<'e>(
        &self,
        entries: impl Iterator<Item = &'e Entry> + Clone,
    ) -> Vec<&'static Part> {
        let parts = self.panels.iter();
        parts.filter(|part| part.is_used(entries.clone())).collect()
    }
}

/// Whether it is another crate's, or what people write themselves.
pub(crate) fn is_peer(entry: &Entry) -> bool {
    matches!(entry.source, Source::Own(_))
}
