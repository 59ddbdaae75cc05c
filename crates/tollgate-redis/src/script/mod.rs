//! The scripts: parts written in Lua, joined into one text for each operation.
//!
//! ```text
//! time.lua, span.lua                       the clock; the same for all
//! bucket*.lua, window.lua, log.lua, ...    a kind of limits: a table of functions, with its state
//! take.lua, look.lua, change.lua, ...      a verb for keys of any kinds
//! ```
//!
//! A new kind is a file with these functions, a module in `limit::kind`, and a variant of
//! [`Kinds`].

pub(crate) mod packed;
mod run;

use std::fmt;
use std::sync::LazyLock;

/// A script that decides inside the server, as a client sends it: by its hash, or as text
/// to a server that does not know the hash.
pub(crate) struct Script {
    text: &'static str,
    sha: LazyLock<String, fn() -> String>,
}

/// What a script does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Takes permits of all keys, or of none.
    Take,
    /// Reads keys.
    Look,
    /// Gives permits back.
    Give,
    /// Takes permits unconditionally.
    Charge,
    /// Bans keys for a time.
    Ban,
    /// Forgets keys.
    Reset,
}

/// The kinds of limits that a script knows. Shorter scripts start faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    Bucket,
    Window,
    Log,
    Slots,
    /// All of them.
    All,
}

/// A script from its text.
macro_rules! script {
    ($($text:expr),+) => {{
        const TEXT: &str = concat!($($text),+);
        static SCRIPT: Script = Script {
            text: TEXT,
            sha: LazyLock::new(|| sha1_smol::Sha1::from(TEXT).digest().to_string()),
        };
        &SCRIPT
    }};
}

macro_rules! clock {
    () => {
        concat!(
            include_str!("../lua/time.lua"),
            include_str!("../lua/span.lua")
        )
    };
}

macro_rules! bucket_read {
    () => {
        concat!(
            include_str!("../lua/bucket_read.lua"),
            include_str!("../lua/bucket_used.lua"),
            include_str!("../lua/bucket_next.lua")
        )
    };
}

macro_rules! bucket {
    () => {
        concat!(
            include_str!("../lua/bucket_used.lua"),
            "local function life_of(next)\n",
            include_str!("../lua/bucket_life.lua"),
            "return life\nend\n",
            include_str!("../lua/bucket.lua"),
            "function bucket.see(key, arg)\n",
            bucket_read!(),
            include_str!("../lua/bucket_seen.lua"),
        )
    };
}

/// The kinds, and the table by which their letter finds them.
macro_rules! kinds {
    (Bucket) => {
        concat!(bucket!(), "local kinds = { [66] = bucket }\n")
    };
    (Window) => {
        concat!(
            include_str!("../lua/window.lua"),
            "local kinds = { [87] = window }\n"
        )
    };
    (Log) => {
        concat!(
            include_str!("../lua/log.lua"),
            "local kinds = { [76] = log }\n"
        )
    };
    (Slots) => {
        concat!(
            include_str!("../lua/slots.lua"),
            "local kinds = { [67] = slots }\n"
        )
    };
    // Each kind has a block of its own, so that its functions are local to it.
    (All) => {
        concat!(
            "local kinds = {}\ndo\n",
            bucket!(),
            "kinds[66] = bucket\nend\ndo\n",
            include_str!("../lua/window.lua"),
            "kinds[87] = window\nend\ndo\n",
            include_str!("../lua/log.lua"),
            "kinds[76] = log\nend\ndo\n",
            include_str!("../lua/slots.lua"),
            "kinds[67] = slots\nend\n",
        )
    };
}

macro_rules! of_each_kind {
    ($kinds:expr; $($text:expr),+) => {
        match $kinds {
            Kinds::Bucket => script!(clock!(), kinds!(Bucket), $($text),+),
            Kinds::Window => script!(clock!(), kinds!(Window), $($text),+),
            Kinds::Log => script!(clock!(), kinds!(Log), $($text),+),
            Kinds::Slots => script!(clock!(), kinds!(Slots), $($text),+),
            Kinds::All => script!(clock!(), kinds!(All), $($text),+),
        }
    };
}

macro_rules! change {
    ($verb:literal) => {
        concat!(
            "local verb = '",
            $verb,
            "'\n",
            include_str!("../lua/change.lua")
        )
    };
}

/// Returns the script for keys of these kinds.
pub(crate) fn script(verb: Verb, kinds: Kinds) -> &'static Script {
    match verb {
        Verb::Take => of_each_kind!(kinds; include_str!("../lua/take.lua")),
        Verb::Look => of_each_kind!(kinds; include_str!("../lua/look.lua")),
        Verb::Give => of_each_kind!(kinds; change!("give")),
        Verb::Charge => of_each_kind!(kinds; change!("charge")),
        Verb::Ban => of_each_kind!(kinds; change!("ban")),
        Verb::Reset => of_each_kind!(kinds; include_str!("../lua/reset.lua")),
    }
}

/// Takes permits of one bucket. It has no functions, because it runs most often.
pub(crate) fn take_one_bucket() -> &'static Script {
    script!(
        clock!(),
        "local key, arg = KEYS[1], ARGV[1]\n",
        bucket_read!(),
        include_str!("../lua/bucket_life.lua"),
        include_str!("../lua/bucket_one.lua")
    )
}

/// Takes permits of buckets, or of none, without functions.
pub(crate) fn take_buckets() -> &'static Script {
    script!(
        clock!(),
        "local values, lives, is_denied = {}, {}, false\n",
        "for i, key in ipairs(KEYS) do\nlocal arg = ARGV[i]\n",
        bucket_read!(),
        include_str!("../lua/bucket_life.lua"),
        include_str!("../lua/bucket_all.lua"),
        "local reply = { 0, now }\n",
        "for i, key in ipairs(KEYS) do\nlocal arg = ARGV[i]\n",
        bucket_read!(),
        include_str!("../lua/bucket_denied.lua")
    )
}

/// Takes permits of a bucket that are available later.
pub(crate) fn reserve() -> &'static Script {
    script!(clock!(), kinds!(Bucket), change!("reserve"))
}

/// Begins the leases of slots again.
pub(crate) fn renew() -> &'static Script {
    script!(clock!(), kinds!(Slots), change!("renew"))
}

/// A script for one key and its leases. There is none for logs.
macro_rules! leased {
    ($kinds:expr; $text:expr) => {
        match $kinds {
            Kinds::Bucket => Some(leased!(Bucket, "../lua/leases_bucket.lua", $text)),
            Kinds::Window => Some(leased!(Window, "../lua/leases_window.lua", $text)),
            Kinds::Slots => Some(leased!(Slots, "../lua/leases_slots.lua", $text)),
            Kinds::Log | Kinds::All => None,
        }
    };
    ($kinds:ident, $floor:literal, $text:expr) => {
        script!(
            clock!(),
            kinds!($kinds),
            include_str!($floor),
            include_str!("../lua/leases.lua"),
            $text
        )
    };
}

/// Answers a node's message about its lease.
pub(crate) fn ask(kinds: Kinds) -> Option<&'static Script> {
    leased!(kinds; include_str!("../lua/ask.lua"))
}

/// Takes permits beside leases.
pub(crate) fn take_beside(kinds: Kinds) -> Option<&'static Script> {
    leased!(kinds; include_str!("../lua/take_beside.lua"))
}

/// Takes permits beside leases unconditionally.
pub(crate) fn charge_beside(kinds: Kinds) -> Option<&'static Script> {
    leased!(kinds; include_str!("../lua/charge_beside.lua"))
}

impl Script {
    /// Returns the text, in Lua 5.1.
    pub(crate) fn text(&self) -> &str {
        self.text
    }

    /// Returns the SHA-1 of the text in hexadecimal, by which `EVALSHA` finds the script.
    pub(crate) fn sha(&self) -> &str {
        &self.sha
    }
}

#[cfg(test)]
pub(crate) fn all() -> Vec<&'static Script> {
    let mut all = vec![take_one_bucket(), take_buckets(), reserve(), renew()];
    for verb in [
        Verb::Take,
        Verb::Look,
        Verb::Give,
        Verb::Charge,
        Verb::Ban,
        Verb::Reset,
    ] {
        for kinds in [
            Kinds::Bucket,
            Kinds::Window,
            Kinds::Log,
            Kinds::Slots,
            Kinds::All,
        ] {
            all.push(script(verb, kinds));
        }
    }
    for kinds in [Kinds::Bucket, Kinds::Window, Kinds::Slots] {
        all.extend(ask(kinds));
        all.extend(take_beside(kinds));
        all.extend(charge_beside(kinds));
    }
    all
}

#[cfg(test)]
impl Script {
    /// Returns the same text, but with a clock that reads the last argument.
    pub(crate) fn controlled(&self) -> String {
        let clock = include_str!("../lua/time.lua");
        self.text
            .replacen(clock, "local now = tonumber(ARGV[#ARGV])\n", 1)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("sha", &self.sha()).finish()
    }
}

impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Script {}
