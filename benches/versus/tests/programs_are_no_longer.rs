//! The same programs with tollgate and with governor: those with tollgate are no longer.

/// Lines that are neither empty nor a comment.
fn lines(program: &str) -> usize {
    let code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    program.lines().filter(code).count()
}

macro_rules! programs {
    ($($name:literal)*) => {
        [$((
            $name,
            include_str!(concat!("../../../examples/", $name, ".rs")),
            include_str!(concat!("../examples/governor_", $name, ".rs")),
        )),*]
    };
}

#[test]
fn each_program_has_no_more_lines_than_with_governor() {
    for (name, ours, governors) in programs!("bandwidth" "crawler" "hot_path" "manual_clock") {
        let [ours, governors] = [ours, governors].map(lines);
        assert!(
            ours > 10 && ours <= governors,
            "{name}: {ours} lines, with governor {governors}"
        );
        println!("{name}: {ours} lines, with governor {governors}");
    }
}
