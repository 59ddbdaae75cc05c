"""A limit's guarantees, compared with the quota as rational numbers.

No permit is early or more than a nanosecond late, and the bound holds over every interval.
"""

import z3

from machine import Machine, larger
from pace import MAX_WORD, ONE, is_floor, is_u64
from theorems import MADE, NOW

N, PERIOD, D, K, START, MADE_START, THEN, MADE_THEN = z3.Ints(
    "permits period d k start made_start then made_then"
)


def inexact_rate(p):
    """The pace of an inexact quota of N every PERIOD: a unit is at most 1/4 ns."""
    return [p.round == 1, N >= 1, PERIOD >= 1, p.unit * N >= 4 * PERIOD,
            is_floor(p.speed, p.unit * N * ONE, PERIOD)]


def after_running_dry(p):
    """An idle bucket is emptied at START; THEN is D nanoseconds later."""
    return [*p.established(), is_u64(START, THEN), THEN == START + D, D >= 0, K >= 1,
            START <= p.horizon, THEN <= p.horizon,
            is_floor(MADE_START, START * p.speed, ONE), is_floor(MADE_THEN, THEN * p.speed, ONE)]


def due(p):
    """Whether the step grants one more permit, after K - 1 since the bucket ran dry."""
    word = MADE_START + p.round + p.reach + (K - 1) * p.unit
    return word <= MADE_THEN + p.reach - p.unit


def punctual(prover, q, p):
    S = p.speed
    early = [q.grows(S * PERIOD, p.unit * N * ONE, D), q.grows(K * PERIOD, D * N, p.unit),
             q.strictly(K * p.unit * ONE, D * S, PERIOD), q.grows(D * N, K * PERIOD, p.unit * ONE),
             q.grows(z3.IntVal(1), p.unit, z3.IntVal(ONE))]
    prover.theorem(
        "inexact rate: permit k is never granted before k * period / n",
        [*inexact_rate(p), *after_running_dry(p), due(p)],
        D * N > K * PERIOD,
        early,
    )
    prover.theorem(
        "inexact rate: permit k is granted a ns after k * period / n, for 73 years",
        [*inexact_rate(p), *after_running_dry(p), D * N >= K * PERIOD + N, D <= 2 * ONE],
        due(p),
        [q.grows(K * PERIOD + N, D * N, p.unit), q.grows(0, D, 1), q.grows(p.unit * N * ONE, (S + 1) * PERIOD, D),
         q.grows(D * S + 1, ONE * p.unit * K + 4 * ONE - D, PERIOD), q.grows(D, 2 * ONE, PERIOD)],
    )
    whole = p.whole_speed
    exact = [p.round == 0, p.unit * N == PERIOD * whole, N >= 1, PERIOD >= 1]
    prover.theorem(
        "exact rate: permit k is granted exactly from k * period / n on",
        [*exact, *after_running_dry(p)],
        due(p) == (D * N >= K * PERIOD),
        [q.grows(K * PERIOD, D * N, whole), q.strictly(D * N, K * PERIOD, whole),
         q.grows(K * p.unit, D * whole, N), q.strictly(D * whole, K * p.unit, N),
         q.grows(ONE, p.speed, 1), q.grows(D * N, K * PERIOD, p.unit), q.strictly(D * N, K * PERIOD, p.unit),
         q.grows(K * PERIOD, D * N, p.unit), q.strictly(D * whole, K * p.unit, PERIOD),
         q.grows(K * p.unit, D * whole, PERIOD)],
    )


def bound(prover, facts):
    """Proves the bound for all intervals and all sequences of admissions, with ticks in any order.

    The proof is by induction over the admissions, in the order in which the word counted them.
    `taken` is the number of units taken in the interval, and `first` is the base of the first
    admission in it. The invariant: either nothing was taken yet, or taken <= word - first, `first`
    is above the clock at the interval's start, and taken <= reach + the units made in the interval.
    """
    p, q, prover = facts.pace, facts.products, facts.prover
    word, n, a, b, taken, first, made_a = z3.Ints("word n start end taken first made_start")
    m = Machine()
    granted, after, _, made = p.step(m, word, NOW, n)
    # Ticks are clamped to the horizon, as `made` does. This keeps their order.
    counted = [tick <= p.horizon for tick in (NOW, a, b)]

    def invariant(word, taken, first):
        return z3.Or(taken == 0, z3.And(
            taken <= word - first, first >= made_a + p.round,
            taken * ONE <= p.reach * ONE + (b - a) * p.speed))

    given = [*p.established(), is_u64(word, NOW, n, a, b), *counted, a <= b, taken >= 0, *m.facts, n >= 1,
             n <= p.burst, is_floor(made_a, a * p.speed, ONE), invariant(word, taken, first), granted]
    base = larger(word, made + p.round)
    inside = z3.And(a <= NOW, NOW <= b)
    taken_after = z3.If(inside, taken + n * p.unit, taken)
    first_after = z3.If(z3.And(inside, taken == 0), base, first)
    by = [facts.made_at(NOW, made), facts.loss.at((z3.Int("ticks"), a), (MADE, made_a)), facts.burst_at(n),
          q.grows(a, b, p.speed), q.grows(NOW, b, p.speed)]
    kept = invariant(after, taken_after, first_after)
    for case, when in (
        ("outside the interval", z3.Not(inside)),
        ("the first in the interval", z3.And(inside, taken == 0)),
        ("a later one, idle bucket", z3.And(inside, taken > 0, word <= made)),
        ("a later one, busy bucket", z3.And(inside, taken > 0, word > made)),
    ):
        prover.theorem(f"bound: an admission keeps the invariant, {case}", [*given, when], kept, by)
    count, burst = z3.Ints("count burst_size")
    d = z3.Int("d")
    quota = [p.speed * PERIOD <= p.unit * N * ONE, N >= 1, PERIOD >= 1, d >= 0, count >= 0]
    prover.theorem(
        "bound: in every interval at most burst + rate * (b - a) permits",
        [*p.established(), *quota, p.reach == p.burst * p.unit,
         count * p.unit * ONE <= p.reach * ONE + d * p.speed],
        count * PERIOD <= p.burst * PERIOD + d * N,
        [q.grows(p.speed * PERIOD, p.unit * N * ONE, d), q.grows(count * p.unit * ONE, p.reach * ONE + d * p.speed, PERIOD),
         q.strictly(p.burst * PERIOD + d * N, count * PERIOD, p.unit)],
    )
    prover.theorem(
        "bound: from_interval, at most 1 + (tolerance + (b - a)) / interval",
        [*p.established(), p.speed == ONE, count * p.unit * ONE <= p.reach * ONE + d * p.speed],
        count * p.unit <= p.unit + (p.reach - p.unit) + d,
    )


def in_64_bits(prover):
    """Checks the step over bit vectors, which do wrap, against its specification in 128 bits."""
    word, made, reach, cost, round_up = z3.BitVecs("word made reach cost round", 64)
    none = z3.Bool("n_is_0")
    wide = lambda x: z3.ZeroExt(64, x)
    bits = (word, made, reach, cost, round_up, none)
    given = bits_given(*bits)
    machine = bit_step(*bits)
    exact = specification(*bits)
    prover.theorem("step in 64 bits that wrap: decides as its 128-bit specification", given, machine[0] == exact[0], products="bits")
    prover.theorem("step in 64 bits that wrap: writes its 128-bit specification's word", [*given, exact[0]],
                   wide(machine[1]) == exact[1], products="bits")


def bits_given(word, made, reach, cost, round_up, none):
    """Restates the theorems "made: at most made(horizon) ..." and "n <= burst: n * unit <= reach"."""
    wide = lambda x: z3.ZeroExt(64, x)
    return [z3.ULE(wide(made) + wide(round_up) + 2 * wide(reach), MAX_WORD), z3.ULE(round_up, 1),
            z3.ULE(cost, reach), z3.Implies(none, cost == 0)]


def bit_step(word, made, reach, cost, round_up, none):
    slack = z3.If(none, reach + round_up, reach - cost)
    moved = made + round_up
    base = z3.If(z3.UGT(word, moved), word, moved)
    return z3.Not(z3.UGT(word, made + slack)), z3.If(none, word, base + cost)


def specification(word, made, reach, cost, round_up, none):
    word, made, reach, cost, round_up = (z3.ZeroExt(64, x) for x in (word, made, reach, cost, round_up))
    debt_free = z3.ULE(word, made + round_up + reach)
    there = z3.ULE(word + cost, made + reach)
    base = z3.If(z3.UGE(word, made + round_up), word, made + round_up)
    return z3.If(none, debt_free, there), z3.If(none, word, base + cost)
