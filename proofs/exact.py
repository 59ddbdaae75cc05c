"""A limit's guarantees, compared with the quota as rational numbers.

No permit is a unit early or more than a nanosecond late, and the bound holds over every interval.
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
    return [N >= 1, PERIOD >= 1, p.permit * N >= 4 * PERIOD, is_floor(p.speed, p.permit * N * ONE, PERIOD)]


def after_running_dry(p):
    """An idle bucket is emptied at START; THEN is D nanoseconds later."""
    return [*p.established(), is_u64(START, THEN), THEN == START + D, D >= 0, K >= 1,
            START <= p.horizon, THEN <= p.horizon,
            is_floor(MADE_START, START * p.speed, ONE), is_floor(MADE_THEN, THEN * p.speed, ONE)]


def due(p):
    """Whether the step grants one more permit, after K - 1 since the bucket ran dry."""
    word = MADE_START + p.capacity + (K - 1) * p.permit
    return word <= MADE_THEN + p.capacity - p.permit


def punctual(prover, q, p):
    S = p.speed
    # A unit lasts period / (permit * n) nanoseconds.
    early = [q.grows(S * PERIOD, p.permit * N * ONE, D), q.strictly(K * p.permit * ONE, D * S + ONE, PERIOD)]
    prover.theorem(
        "inexact rate: permit k is granted less than one unit before k * period / n",
        [*inexact_rate(p), *after_running_dry(p), due(p)],
        K * PERIOD * p.permit < D * N * p.permit + PERIOD,
        early,
    )
    prover.theorem(
        "inexact rate: permit k is granted a ns after k * period / n, for 73 years",
        [*inexact_rate(p), *after_running_dry(p), D * N >= K * PERIOD + N, D <= 2 * ONE],
        due(p),
        [q.grows(K * PERIOD + N, D * N, p.permit), q.grows(0, D, 1), q.grows(p.permit * N * ONE, (S + 1) * PERIOD, D),
         q.grows(D * S + 1, ONE * p.permit * K + 4 * ONE - D, PERIOD), q.grows(D, 2 * ONE, PERIOD)],
    )
    whole = p.whole_speed
    exact = [p.is_exact(), p.permit * N == PERIOD * whole, N >= 1, PERIOD >= 1]
    prover.theorem(
        "exact rate: permit k is granted exactly from k * period / n on",
        [*exact, *after_running_dry(p)],
        due(p) == (D * N >= K * PERIOD),
        [q.grows(K * PERIOD, D * N, whole), q.strictly(D * N, K * PERIOD, whole),
         q.grows(K * p.permit, D * whole, N), q.strictly(D * whole, K * p.permit, N),
         q.grows(ONE, p.speed, 1), q.grows(D * N, K * PERIOD, p.permit), q.strictly(D * N, K * PERIOD, p.permit),
         q.grows(K * PERIOD, D * N, p.permit), q.strictly(D * whole, K * p.permit, PERIOD),
         q.grows(K * p.permit, D * whole, PERIOD)],
    )


def bound(prover, facts):
    """Proves the bound for all intervals and all sequences of admissions, with ticks in any order.

    The proof is by induction over the admissions, in the order in which the word counted them.
    `taken` is the number of units taken in the interval, and `first` is the base of the first
    admission in it. The invariant: either nothing was taken yet, or taken <= word - first, `first`
    is not below the clock at the interval's start, and taken <= capacity + the whole units that the
    clock accrued in the interval.
    """
    p, q, prover = facts.pace, facts.products, facts.prover
    word, n, a, b, taken, first, made_a, made_b = z3.Ints("word n start end taken first made_start made_end")
    m = Machine()
    granted, after, _, accrued = p.step(m, word, NOW, n)
    # Ticks are clamped to the horizon, as `made` does. This keeps their order.
    counted = [tick <= p.horizon for tick in (NOW, a, b)]

    def invariant(word, taken, first):
        return z3.Or(taken == 0, z3.And(
            taken <= word - first, first >= made_a, taken <= p.capacity + made_b - made_a))

    given = [*p.established(), is_u64(word, NOW, n, a, b), *counted, a <= b, taken >= 0, *m.facts, n >= 1,
             n <= p.burst, is_floor(made_a, a * p.speed, ONE), is_floor(made_b, b * p.speed, ONE),
             invariant(word, taken, first), granted]
    base = larger(word, accrued)
    inside = z3.And(a <= NOW, NOW <= b)
    taken_after = z3.If(inside, taken + n * p.permit, taken)
    first_after = z3.If(z3.And(inside, taken == 0), base, first)
    by = [facts.made_at(NOW, accrued), facts.burst_at(n),
          q.grows(a, b, p.speed), q.grows(a, NOW, p.speed), q.grows(NOW, b, p.speed)]
    kept = invariant(after, taken_after, first_after)
    for case, when in (
        ("outside the interval", z3.Not(inside)),
        ("the first in the interval", z3.And(inside, taken == 0)),
        ("a later one, idle bucket", z3.And(inside, taken > 0, word <= accrued)),
        ("a later one, busy bucket", z3.And(inside, taken > 0, word > accrued)),
    ):
        prover.theorem(f"bound: an admission keeps the invariant, {case}", [*given, when], kept, by)
    count, d, units = z3.Ints("count d units")
    ticks = [a >= 0, b == a + d, d >= 0, is_floor(made_a, a * p.speed, ONE), is_floor(made_b, b * p.speed, ONE),
             units == made_b - made_a]
    less = prover.theorem(
        "bound: the clock makes less than one unit more than accrues in the interval",
        ticks,
        units * ONE < d * p.speed + ONE,
    )
    here = [*p.established(), *ticks, count >= 0, count * p.permit <= p.capacity + units]
    quota = [p.speed * PERIOD <= p.permit * N * ONE, N >= 1, PERIOD >= 1, p.capacity == p.burst * p.permit]
    prover.theorem(
        "bound: in every interval less than burst + rate * (b - a + one unit) permits",
        [*here, *quota],
        count * PERIOD * p.permit < p.burst * PERIOD * p.permit + d * N * p.permit + PERIOD,
        [less.at(), q.grows(p.speed * PERIOD, p.permit * N * ONE, d),
         q.strictly(units * ONE, d * p.speed + ONE, PERIOD), q.grows(count * p.permit, p.capacity + units, PERIOD)],
    )
    over, early = z3.Ints("over early")
    prover.theorem(
        "audit: so count * period <= burst * period + d * n + ceil(period / permit) - 1",
        [over * p.permit < PERIOD, (early - 1) * p.permit < PERIOD, PERIOD <= early * p.permit, p.permit >= 1],
        over <= early - 1,
        [q.grows(early, over, p.permit)],
    )
    loss = lambda tick, accrued: facts.loss.at((z3.Int("ticks"), tick), (MADE, accrued))
    prover.theorem(
        "bound: at an exact rate at most burst + rate * (b - a) permits",
        [*here, p.is_exact(), p.permit * N == PERIOD * p.whole_speed, N >= 1, PERIOD >= 1, p.capacity == p.burst * p.permit],
        count * PERIOD <= p.burst * PERIOD + d * N,
        [loss(a, made_a), loss(b, made_b), q.grows(count * p.permit, p.capacity + units, N),
         q.strictly(p.burst * PERIOD + d * N, count * PERIOD, p.whole_speed), q.grows(z3.IntVal(ONE), p.speed, z3.IntVal(1))],
    )
    prover.theorem(
        "bound: from_interval, at most 1 + (tolerance + (b - a)) / interval",
        [*here, p.speed == ONE],
        count * p.permit <= p.permit + (p.capacity - p.permit) + d,
    )
    moved, last, before, made_at, made_to = z3.Ints("moved last before made_at made_to")
    prover.theorem(
        "bound: after a change of clock, the units of both clocks add up",
        [p.capacity >= 0, before <= word - first, first >= made_a, word > made_at, moved == made_to + word - made_at,
         taken <= last - moved, last <= made_b + p.capacity],
        before + taken <= p.capacity + (made_at - made_a) + (made_b - made_to),
    )


def in_64_bits(prover):
    """Checks the step over bit vectors, which do wrap, against its specification in 128 bits."""
    word, accrued, capacity, cost = z3.BitVecs("word accrued capacity cost", 64)
    none = z3.Bool("n_is_0")
    wide = lambda x: z3.ZeroExt(64, x)
    bits = (word, accrued, capacity, cost, none)
    given = bits_given(*bits)
    machine = bit_step(*bits)
    exact = specification(*bits)
    prover.theorem("step in 64 bits that wrap: decides as its 128-bit specification", given, machine[0] == exact[0], products="bits")
    prover.theorem("step in 64 bits that wrap: writes its 128-bit specification's word", [*given, exact[0]],
                   wide(machine[1]) == exact[1], products="bits")


def bits_given(word, accrued, capacity, cost, none):
    """Restates the theorems "accrued: at most accrued(horizon) ..." and "n <= burst: n * permit <= capacity"."""
    wide = lambda x: z3.ZeroExt(64, x)
    return [z3.ULE(wide(accrued) + 2 * wide(capacity), MAX_WORD), z3.ULE(cost, capacity), z3.Implies(none, cost == 0)]


def bit_step(word, accrued, capacity, cost, none):
    base = z3.If(z3.UGT(word, accrued), word, accrued)
    return z3.Not(z3.UGT(word, accrued + (capacity - cost))), z3.If(none, word, base + cost)


def specification(word, accrued, capacity, cost, none):
    word, accrued, capacity, cost = (z3.ZeroExt(64, x) for x in (word, accrued, capacity, cost))
    there = z3.ULE(word + cost, accrued + capacity)
    base = z3.If(z3.UGE(word, accrued), word, accrued)
    return there, z3.If(none, word, base + cost)
