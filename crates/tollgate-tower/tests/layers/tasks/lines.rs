//! How many lines each task takes, formatted, without blank lines and with imports.

/// The most lines of each program. They only fall.
const MOST: [(&str, &str, usize); 10] = [
    ("by address", include_str!("programs/by_address.rs"), 9),
    (
        "by key with tiers",
        include_str!("programs/key_with_tiers.rs"),
        16,
    ),
    (
        "fields and problem",
        include_str!("programs/fields_and_problem.rs"),
        11,
    ),
    (
        "policy with reload",
        include_str!("programs/policy_with_reload.rs"),
        14,
    ),
    ("shadow", include_str!("programs/shadow.rs"), 14),
    (
        "Redis",
        include_str!("programs/redis_for_ten_machines.rs"),
        18,
    ),
    ("client", include_str!("programs/client_with_reqwest.rs"), 9),
    ("login bans", include_str!("programs/login_bans.rs"), 20),
    ("shedding", include_str!("programs/shedding.rs"), 10),
    ("gRPC", include_str!("programs/grpc.rs"), 10),
];

#[test]
fn no_task_takes_more_lines_than_it_did() {
    for (task, program, most) in MOST {
        let lines = program.lines().filter(|line| !line.trim().is_empty());
        let lines = lines.count();
        println!("{task}: {lines} lines");
        assert!(
            lines <= most && most <= 40,
            "{task}: {lines} lines, {most} at most"
        );
    }
}
