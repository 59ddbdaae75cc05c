//! Equivalent programs with tollgate and with governor. Those with tollgate are no longer than the
//! others.

/// Returns the number of lines that are neither empty nor comments.
fn lines(program: &str) -> usize {
    let code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    program.lines().filter(code).count()
}

macro_rules! programs {
    ($($name:literal: $ours:literal)*) => {
        [$((
            $name,
            include_str!(concat!("../../../examples/", $ours)),
            include_str!(concat!("../examples/governor_", $name, ".rs")),
        )),*]
    };
}

/// The other programs need features that governor lacks. `language_model` takes from three limits
/// at once and returns tokens that a call did not use (governor's version does less, and is not
/// counted), `reload` changes a quota in use, and `restart` keeps limits across a restart.
#[test]
fn each_program_has_no_more_lines_than_with_governor() {
    let programs = programs!(
        "bandwidth": "bandwidth.rs"
        "crawler": "crawler.rs"
        "hot_path": "hot_path.rs"
        "manual_clock": "manual_clock.rs"
    );
    for (name, ours, governors) in programs {
        let [ours, governors] = [ours, governors].map(lines);
        assert!(
            ours > 10 && ours <= governors,
            "{name}: {ours} lines, with governor {governors}"
        );
        println!("{name}: {ours} lines, with governor {governors}");
    }
}
