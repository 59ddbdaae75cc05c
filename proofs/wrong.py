"""Seeded faults. Each must be refuted, with values that show it."""

import z3

from exact import bit_step, bits_given, specification
from machine import Machine
from pace import MAX_WORD, MIN_HORIZON, ONE, SPEED_BITS, U64, Pace, is_floor, is_u64
from theorems import (AT, LATER, MADE_AT, MADE_LATER, MADE_THEN, MADE_TO, REBASED, SLACK, TO,
                      WORD)


def from_quota(n, period, burst):
    """Returns a concrete inexact pace, computed as the constructors do."""
    permit = -(-4 * period // n)
    speed = permit * n * ONE // period
    return concrete(speed, permit, burst * permit)


def concrete(speed, permit, capacity):
    pace = Pace()
    horizon = min(((MAX_WORD - 2 * capacity) << SPEED_BITS) // speed, U64)
    values = {
        "speed": speed, "permit": permit, "capacity": capacity, "burst": capacity // permit,
        "horizon": horizon, "inverse": min((1 << 124) // speed, U64), "deficit": 0,
        "top": horizon * speed >> SPEED_BITS, "whole_speed": speed >> SPEED_BITS,
    }
    for name, value in values.items():
        setattr(pace, name, z3.IntVal(value))
    return pace


def an_example(prover):
    """Checks before the refutations that real quotas satisfy the theorems' assumptions."""
    for name, pace in (("13 every 1000 ns, burst 5", from_quota(13, 1000, 5)),
                       ("10 a nanosecond, burst 2^40", from_quota(10, 1, 1 << 40)),
                       ("one a year", concrete(ONE, 365 * 86_400 * 10**9, 365 * 86_400 * 10**9))):
        prover.theorem(f"example: {name} satisfies the assumptions", [], z3.And(*pace.established()))


def faults(prover):
    word, accrued, capacity, cost = z3.BitVecs("word accrued capacity cost", 64)
    none = z3.Bool("n_is_0")
    bits = (word, accrued, capacity, cost, none)
    wide = lambda x: z3.ZeroExt(64, x)
    given = bits_given(*bits)
    wrapping = z3.If(none, bit_step(*bits)[0], z3.ULE(word + cost, accrued + capacity))
    prover.refuted("fault: word + n * permit <= accrued + capacity, in 64 bits that wrap", given,
                   wrapping == specification(*bits)[0], products="bits")
    strict = z3.ULT(word, accrued + (capacity - cost))
    prover.refuted("fault: < instead of <=", given, strict == specification(*bits)[0], products="bits")
    forgets = z3.If(none, word, word + cost)
    prover.refuted("fault: an idle bucket counts from its old word",
                   [*given, bit_step(*bits)[0]], wide(forgets) == specification(*bits)[1], products="bits")
    missing_correction(prover)
    rounded_up(prover)
    never_early(prover)
    no_horizon(prover)
    refund_below_the_clock(prover)
    exact_rebase(prover)


def missing_correction(prover):
    pace, m, units, up = from_quota(13, 1000, 5), Machine(), z3.Int("units"), z3.Int("first_tick")
    for corrections in (1, 0):
        m = Machine()
        tick = pace.tick_of(m, units, corrections)
        given = [*m.facts, is_u64(units), up * pace.speed >= units * ONE, (up - 1) * pace.speed < units * ONE]
        prover.refuted(f"fault: tick_of with {corrections} corrections, at 13 every 1000 ns", given, tick == up,
                       show={"units": units, "tick_of": tick, "first tick": up})


def rounded_up(prover):
    """If the base of an idle bucket is one unit above the clock, so that no permit is early by a
    fraction of it, the last permit of a burst is denied."""
    pace, accrued, k = from_quota(13, 1000, 5), z3.Int("accrued"), z3.Int("k")
    after = accrued + 1 + k * pace.permit
    prover.refuted("fault: an idle bucket counts from accrued + 1, at 13 every 1000 ns",
                   [is_u64(accrued), k >= 1, k < pace.burst], after <= accrued + pace.capacity - pace.permit,
                   show={"accrued": accrued, "denied after": k})


def never_early(prover):
    """The bucket is empty at `dry`. At `dry + d` it grants permit k before `k * period / n`, so the
    bound needs its unit."""
    n, period = 13, 1000
    pace = from_quota(n, period, 5)
    dry, d, k, made_dry, accrued = z3.Ints("dry d k made_dry accrued")
    given = [dry >= 0, d >= 0, k >= 1, dry + d <= MIN_HORIZON, is_floor(made_dry, dry * pace.speed, ONE),
             is_floor(accrued, (dry + d) * pace.speed, ONE), made_dry + k * pace.permit <= accrued]
    prover.refuted("fault: no permit is early by any fraction, at 13 every 1000 ns", given, d * n >= k * period, show={"dry at": dry, "k": k, "granted after": d, "due after / 13": k * period})


def no_horizon(prover):
    pace, m, now = from_quota(10, 1, 1), Machine(), z3.Int("now")
    accrued = pace.accrued(m, now, clamped=False)
    prover.refuted("fault: accrued without the horizon, at 10 a nanosecond", [is_u64(now), *m.facts],
                   m.nothing_wraps(), show={"now": now, "accrued": accrued})


def refund_below_the_clock(prover):
    pace = from_quota(13, 1000, 5)
    word, accrued, n = z3.Ints("word accrued n")
    after = z3.If(word >= n * pace.permit, word - n * pace.permit, 0)
    prover.refuted("fault: a refund that goes below the clock", [is_u64(word, accrued, n), accrued <= word], after >= accrued,
                   show={"word": word, "accrued": accrued, "n": n, "next": after})


def exact_rebase(prover):
    """The fractions of a unit that the two clocks have accrued differ."""
    pace = from_quota(13, 1000, 5)
    after = MADE_TO + WORD - MADE_AT
    sooner = z3.Implies(after <= MADE_LATER + SLACK, WORD <= MADE_THEN + SLACK)
    prover.refuted("fault: a rebased word is due no fraction of a unit sooner",
                   [*REBASED, MADE_LATER <= pace.top, SLACK <= pace.capacity], sooner,
                   show={"at": AT, "to": TO, "later": LATER, "word": WORD, "headroom": SLACK})
