//! The scripts: parts written in Lua, joined into one text for each operation.

use std::fmt;
use std::sync::LazyLock;

/// A script that decides inside the server, as a client sends it: by its hash, or as text
/// to a server that does not know the hash.
pub(crate) struct Script {
    text: &'static str,
    sha: LazyLock<String, fn() -> String>,
}

/// Joins the shared parts and the operation, and defines the function that returns the script.
macro_rules! scripts {
    ($($(#[$meta:meta])* $name:ident = $parts:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) fn $name() -> &'static Script {
            const TEXT: &str = $parts;
            static SCRIPT: Script = Script {
                text: TEXT,
                sha: LazyLock::new(|| sha1_smol::Sha1::from(TEXT).digest().to_string()),
            };
            &SCRIPT
        }
    )*};
}

macro_rules! with_state {
    ($operation:literal) => {
        concat!(
            include_str!("lua/time.lua"),
            include_str!("lua/arith.lua"),
            include_str!("lua/state.lua"),
            include_str!($operation),
        )
    };
}

scripts! {
    /// Takes permits of all keys, or of none.
    take = with_state!("lua/take.lua");
    /// Reads keys.
    look = with_state!("lua/look.lua");
    /// Gives permits back.
    give = with_state!("lua/give.lua");
    /// Takes permits unconditionally.
    charge = with_state!("lua/charge.lua");
    /// Bans keys for a time.
    ban = with_state!("lua/ban.lua");
    /// Forgets keys.
    reset = include_str!("lua/reset.lua");
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
pub(crate) fn all() -> [&'static Script; 6] {
    [take(), look(), give(), charge(), ban(), reset()]
}

#[cfg(test)]
impl Script {
    /// Returns the same text, but with a clock that reads the last argument.
    pub(crate) fn controlled(&self) -> String {
        let clock = include_str!("lua/time.lua");
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
