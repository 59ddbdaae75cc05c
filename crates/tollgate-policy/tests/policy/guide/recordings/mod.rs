//! The recorded calls of Spring Cloud Gateway and ShenYu, decided by policies that say the same.
//!
//! The core's replay of the recordings judges each difference. Here a policy gets the calls of that
//! replay, and the states that it takes over, at the same times. It must decide each call as the
//! core does, so its differences from the recordings are the core's.

mod buckets;
mod concurrency;
mod gate;
mod logs;

#[path = "../../../../../../tests/traces/sources/classes.rs"]
#[allow(dead_code, unexpected_cfgs, reason = "for other recordings")]
mod classes;
#[path = "../../../../../../tests/traces/sources/log_limiter.rs"]
#[allow(dead_code, reason = "for other recordings")]
mod log_limiter;
#[path = "../../../../../../tests/traces/sources/redis_bucket.rs"]
mod redis_bucket;
#[path = "../../../../../../tests/traces/sources/shenyu_concurrent.rs"]
mod shenyu_concurrent;
#[path = "../../../../../../tests/traces/sources/shenyu_leaky.rs"]
mod shenyu_leaky;
#[path = "../../../../../../tests/traces/sources/shenyu_log.rs"]
mod shenyu_log;

use std::path::Path;

use tollgate_replay::{Malformed, Replay, Source, read_text, run_text};

// What the adapters take from their parent.
type Begun = Result<Box<dyn Replay>, Malformed>;
const SECOND: u64 = 1_000_000_000;

/// Replays a file, and checks that the differences are those of the core's replay.
fn replay(file: &str, source: &dyn Source) {
    let expected = include_str!("../../../../../../tests/traces/expected.txt");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let text = read_text(&folder.join(file)).expect("a recording");
    let report = run_text(file, &text, &[source]);
    assert!(expected.contains(&format!("\n{report}\n")), "{report}");
}
