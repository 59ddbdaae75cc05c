//! Tests of the `tollgate` program's output, pictures and pages, and of the claims in
//! docs/WHICH_LIMITER.md. No test depends on speed.
//!
//! | module | what |
//! |---|---|
//! | `bench` | `tollgate bench`: JSON with consistent figures, and tables |
//! | `report` | `tollgate bench --report`: a well-formed, accessible page |
//! | `scaling` | `tollgate bench --scaling`: the machine, and threads up to all processors |
//! | `figures`, `pictures` | `tollgate plot`: the figures behind the pictures, and the pictures |
//! | `policy` | `tollgate check`, `tollgate explain` and `tollgate key`: golden transcripts |
//! | `stored_keys` | `tollgate key` prints what decisions on Redis and Valkey write |
//! | `serve` | `tollgate serve`: decisions, signals and the end |
//! | `soak` | `tollgate serve` for a time, with clients that leave, reloads and outages |
//! | `guide` | the guide's examples, largest limits and pictures |
//! | `stated_bounds` | the guide's bounds: no interval exceeds them, and the tight ones are reached |

mod bench;
#[path = "../../../tests/support/deadline.rs"]
mod deadline;
mod figures;
mod guide;
mod pictures;
mod policy;
mod report;
mod scaling;
#[cfg(feature = "serve")]
mod serve;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../../crates/tollgate-redis/tests/support/server.rs"]
mod server;
#[cfg(all(feature = "serve", target_os = "linux"))]
mod soak;
mod stated_bounds;
mod stored_keys;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// The contestants with each time source, as named in the JSON and in the tables.
static CONTESTANTS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| [&OWN[..], PEERS].concat());

const OWN: [(&str, &str); 21] = [
    ("floor", "floor"),
    ("private", "private words"),
    ("tollgate_system", "token bucket, system"),
    ("tollgate_coarse", "token bucket, coarse"),
    ("tollgate_tick", "token bucket, given tick"),
    ("sharded_system", "sharded, system"),
    ("sharded_tick", "sharded, given tick"),
    ("lease_system", "lease, system"),
    ("lease_coarse", "lease, coarse"),
    ("slots_system", "60 slots, system"),
    ("slots_tick", "60 slots, given tick"),
    ("log_system", "log of 1000, system"),
    ("log_tick", "log of 1000, given tick"),
    ("keyed_system", "keyed, system"),
    ("keyed_tick", "keyed, given tick"),
    ("std_mutex_system", "std mutex, system"),
    ("std_mutex_coarse", "std mutex, coarse"),
    ("std_mutex_tick", "std mutex, given tick"),
    ("parking_lot_system", "parking_lot, system"),
    ("parking_lot_coarse", "parking_lot, coarse"),
    ("parking_lot_tick", "parking_lot, given tick"),
];

/// Other limiters, if the program is built with them.
const PEERS: &[(&str, &str)] = if cfg!(feature = "peers") {
    &[
        ("governor", "governor, quanta"),
        ("ratelimit", "ratelimit, std"),
        ("leaky_bucket", "leaky-bucket, tokio"),
        ("counter_window", "counter window, system"),
        ("governor_keyed", "governor keyed, quanta"),
        ("locked_map", "locked map, system"),
    ]
} else {
    &[]
};

/// Runs the program.
fn tollgate(arguments: &[&str]) -> Output {
    with_stdout(Stdio::piped(), arguments)
}

/// Runs the program with this standard output.
fn with_stdout(stdout: Stdio, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command
        .args(arguments)
        .stdout(stdout)
        .stderr(Stdio::piped());
    let output = deadline::deadline("the program", move || command.output());
    output.expect("the program runs")
}

/// Returns what the program prints. It must succeed and write nothing to its error output.
fn printed(arguments: &[&str]) -> String {
    let output = tollgate(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert_eq!(said, "", "progress without a terminal");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the exit status and the error output. The program must print nothing else.
fn failure(arguments: &[&str]) -> (Option<i32>, String) {
    let output = tollgate(arguments);
    assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
    let said = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), said)
}

/// Returns a folder for this test that does not exist yet.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
    folder
}

/// Returns a path at which no folder can be created.
fn no_folder(name: &str) -> String {
    format!("{}/Cargo.toml/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns the text after `start`.
#[track_caller]
fn after<'t>(text: &'t str, start: &str) -> &'t str {
    let parts = text.split_once(start);
    parts.unwrap_or_else(|| panic!("no {start} in {text}")).1
}

/// Returns the text between `start` and the `end` that follows it.
#[track_caller]
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let parts = after(text, start).split_once(end);
    parts.unwrap_or_else(|| panic!("no {end} after {start}")).0
}

/// Returns the replacement of a color in a style sheet, which is the same for fills and strokes.
fn replacement<'s>(sheet: &'s str, color: &str) -> &'s str {
    let [fill, stroke] = ["fill", "stroke"].map(|attribute| {
        let rule = format!("[{attribute}=\"{color}\"]{{{attribute}:");
        &after(sheet, &rule)[..7]
    });
    assert_eq!(fill, stroke);
    fill
}

/// Returns the WCAG 2 contrast ratio of two colors, given as `#RRGGBB`.
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |color: &str| {
        let part = |i: usize| {
            let part = u8::from_str_radix(&color[i..i + 2], 16).expect("two digits");
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}
