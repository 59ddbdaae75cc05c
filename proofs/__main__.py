"""Proves src/algorithm/pace and the scripts for Redis: see scripts/prove."""

import sys
import time

import constructors
import exact
import redis
import source
import theorems
import windows
import wrong
from pace import Pace
from prover import Prover


def same_source(prover):
    """Checks that the model transcribes the current source."""
    started = time.monotonic()
    changed = source.changed()
    for name in changed:
        print(f"     {name} has changed: compare the model with it, then run scripts/prove --record")
    outcome = "changed" if changed else "same"
    prover.report(f"source: the {len(source.fingerprints())} modeled functions are unchanged", not changed, outcome, started)


def main():
    if sys.argv[1:] == ["--record"]:
        return source.record()
    prover = Prover()
    same_source(prover)
    products = theorems.Products(prover)
    constructors.constructors(prover, products)
    facts = theorems.Facts(prover, products, Pace())
    step = theorems.decisions(facts)
    theorems.waiting(facts, step)
    theorems.verbs(facts)
    exact.in_64_bits(prover)
    exact.punctual(prover, products, facts.pace)
    exact.bound(prover, facts)
    wrong.an_example(prover)
    wrong.faults(prover)
    redis.scripts(prover)
    windows.windows(prover)
    print(f"{prover.passed} passed, {prover.failed} failed")
    return prover.failed > 0


sys.exit(main())
