//! The policy that decides, its versions, and files with errors.

/// A rule that well-behaved clients ask.
pub(super) struct Rule {
    /// Its name, and its path without the first character.
    pub(super) name: &'static str,
    /// How many clients ask it.
    pub(super) keys: u32,
    /// What a key is granted at most, by each of its limits.
    pub(super) bounds: &'static [Bound],
}

/// No key is granted more than `burst`, and `rate` for each second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) burst: f64,
    pub(super) rate: f64,
}

const fn bound(burst: f64, rate: f64) -> Bound {
    Bound { burst, rate }
}

pub(super) const RULES: [Rule; 6] = [
    Rule {
        name: "pages",
        keys: 10_000,
        bounds: &[bound(5.0, 0.5)],
    },
    // The largest burst and the highest rate of all versions.
    Rule {
        name: "small",
        keys: 1,
        bounds: &[bound(20.0, 50.0)],
    },
    // So little accrues that a key's permits are its burst.
    Rule {
        name: "yearly",
        keys: 1,
        bounds: &[bound(YEARLY as f64, YEARLY as f64 / (365.0 * 86_400.0))],
    },
    Rule {
        name: "several",
        keys: 100,
        bounds: &[bound(5.0, 5.0), bound(40.0, 100.0 / 60.0)],
    },
    // The limit is not on time: see `Inside`.
    Rule {
        name: "jobs",
        keys: 1,
        bounds: &[],
    },
    // A server that is killed forgets what it granted, and a fallback grants as much again.
    Rule {
        name: "shared",
        keys: 50,
        bounds: &[bound(150.0, 200.0)],
    },
];

/// Places of rules in [`RULES`].
pub(super) const PAGES: usize = 0;
pub(super) const SMALL: usize = 1;
pub(super) const YEARLY_RULE: usize = 2;
pub(super) const SEVERAL: usize = 3;
pub(super) const JOBS: usize = 4;
pub(super) const SHARED: usize = 5;

/// How many permits a key of `yearly` has.
pub(super) const YEARLY: u32 = 300;
/// How many requests of `jobs` are there at once.
pub(super) const AT_ONCE: usize = 5;

/// Returns the burst of `small` in a version.
pub(super) const fn small_burst(version: u64) -> u64 {
    match version % 2 {
        0 => 10,
        _ => 20,
    }
}

/// Returns a version of the policy. `store` is the address of a server for two of its rules.
///
/// From version to version, the quota of `small` changes, and a rule comes or goes.
pub(super) fn version(version: u64, store: Option<&str>) -> String {
    let mut text = format!("# Version {version}.\n");
    if let Some(url) = store {
        // A busy machine alone begins no outage.
        text += &format!(
            "store = {{ redis = '{url}', budget = '500ms', \
             fallback = {{ local = {{ processes = 1, keys = 1000 }} }} }}\n"
        );
    }
    let mut rule = |name: &str, limit: &str, on_server: bool| {
        text += &format!("\n[[rule]]\nname = '{name}'\nwhen = {{ path = '/{name}' }}\n");
        text += &format!("key = 'client-ip'\nlimit = {limit}\n");
        let keys = if name == "pages" { "40k" } else { "4k" };
        let capacity = format!("capacity = '{keys}'\n");
        match (on_server, store) {
            (true, _) => {}
            // The large table of a rule that comes and goes would look like growth.
            (false, None) => text += &capacity,
            (false, Some(_)) => text += &(capacity + "store = 'memory'\n"),
        }
    };
    rule("pages", "'30/min burst 5'", false);
    let small = match version % 2 {
        0 => "'50/s burst 10'",
        _ => "'20/s burst 20'",
    };
    rule("small", small, false);
    rule("yearly", &format!("'{YEARLY}/365d'"), false);
    rule("several", "['5/s', '100/min burst 40']", false);
    rule("jobs", &format!("'concurrency {AT_ONCE}'"), false);
    rule("shared", "'100/s burst 50'", true);
    // Clients that leave ask these.
    rule("left", "'concurrency 50'", false);
    rule("left-shared", "'1000/s'", true);
    if version % 2 == 1 {
        rule("odd", "'9/s'", false);
    }
    text
}

/// Returns a file with errors. What is right in it must not count either.
pub(super) fn bad(version: u64, store: Option<&str>) -> String {
    let broken = "\n[[rule]]\nname = 'broken'\nlimit = '5/fortnight'\n";
    match version % 4 {
        0 => String::new(),
        1 => self::version(version, store).replace("'300/365d'", "'300000/s'") + broken,
        2 => format!("# Version {version}.\n\u{0}"),
        _ => format!("# Version {version}.\n[[rule]]\n"),
    }
}
