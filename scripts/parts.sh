# Sourced by .ci/run and scripts/deep. Runs parts, continues after a failure, and prints a summary.
#
#   part NAME COMMAND...    runs a command and records its status, time and counts
#   summary                 prints a table of the parts, then 'N passed, N failed, N skipped'
#
# Exit status 77 means that the command could not run here. A part's counts come from its 'test
# result:' lines, or from its last 'N passed, N failed' line. Any other command counts as one.

set -uo pipefail
export CARGO_TERM_COLOR=never
# Nothing is built twice, so incremental builds would cost more than they save.
export CARGO_INCREMENTAL=0
# A failure names its line without it, and half of the links take less time.
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
# A part that runs longer than this is stopped and fails.
limit_s=${LIMIT_S:-1800}
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT

# Installs a Debian package if a command is missing.
need() { # a command, and the package that provides it
    command -v "$1" >/dev/null 2>&1 && return
    command -v apt-get >/dev/null 2>&1 || return
    echo "installing $2"
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2") >/dev/null 2>&1
}

part() { # a name, and a command
    local name=$1 started=$SECONDS log=$parts/$1.log status
    shift
    echo "=== $name: $*"
    timeout "$limit_s" "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    [ "$status" = 124 ] && echo "$name did not end within $limit_s s"
    note "$name" "$status" $((SECONDS - started)) "$log"
}

note() { # a part's name, status, seconds, and log file
    local counts
    counts=$(awk -v status="$2" '
        /^test result: / { tests = 1; passed += $4; failed += $6; skipped += $8 }
        /^[0-9]+ passed, [0-9]+ failed/ { last[1] = $1; last[2] = $3; last[3] = $5 + 0; counted = 1 }
        END {
            if (!tests && counted) { passed = last[1]; failed = last[2]; skipped = last[3] }
            if (!tests && !counted && status == 0) passed = 1
            if (status == 77) skipped += 1
            else if (status != 0 && failed == 0) failed = 1
            print passed + 0, failed + 0, skipped + 0
        }' "$4")
    echo "=== $1: status $2 after $3 s"
    echo "$1 $2 $3 $counts" >>"$parts/all"
}

summary() {
    echo
    awk '
        BEGIN {
            printf "%-16s %8s %8s %8s %8s  %s\n", "part", "time", "passed", "failed", "skipped", ""
        }
        {
            verdict = $2 == 0 ? "" : $2 == 77 ? "skipped" : "FAILED"
            printf "%-16s %6d s %8d %8d %8d  %s\n", $1, $3, $4, $5, $6, verdict
            passed += $4; failed += $5; skipped += $6
        }
        END { printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }
    ' "$parts/all"
}
