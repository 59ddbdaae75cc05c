"""The scripts' windows: crates/tollgate-redis/src/lua/window.lua. redis.py says what a script is."""

import z3

from machine import larger, smaller
from redis import BAN, LONG, NOW, SPAN, Script, expires
import source

LIMB, MOST = (source.constants()[name] for name in ("LIMB", "MOST"))
A1, A0, B1, B0 = LIMBS = z3.Ints("a1 a0 b1 b0")
COUNT, BEFORE, ENDS, N, LIMIT, PERIOD, SHIFT, TICK, LEFT = z3.Ints("count before ends n limit period shift tick left")
X, Y = z3.Ints("x y")

# What the scripts get: a stored state, and the arguments that the client computes from a quota.
GIVEN = [NOW >= 0, NOW <= SPAN, COUNT >= 0, COUNT <= MOST, BEFORE >= 0, BEFORE <= MOST, ENDS >= 0, ENDS < 4 * SPAN,
         N >= 0, N <= MOST, LIMIT >= 1, LIMIT <= MOST, PERIOD >= 1, PERIOD <= SPAN, SHIFT >= 0, SHIFT < PERIOD]


def are_limbs(limb=LIMB):
    return [z3.And(part >= 0, part < limb) for part in LIMBS]


def multiply(m, limb=LIMB, carries=1):
    """The product of a1 * limb + a0 and b1 * limb + b0, as high and low."""
    low = m.fits(A0 * B0)
    low1, low0 = m.fmod(low, z3.IntVal(limb))
    m.fits(low - low0)
    middle = m.fits(m.fits(m.fits(A0 * B1) + m.fits(A1 * B0)) + carries * low1)
    middle1, middle0 = m.fmod(middle, z3.IntVal(limb))
    m.fits(middle - middle0)
    return m.fits(m.fits(A1 * B1) + middle1), m.fits(m.fits(middle0 * limb) + low0)


def products(prover):
    bounded = prover.theorem("limbs: a product of two is at most (2^26 - 1)^2", [X >= 0, X < LIMB, Y >= 0, Y < LIMB],
                             z3.And(X * Y >= 0, X * Y <= (LIMB - 1) ** 2), products=True)
    m = Script()
    high, low = multiply(m)
    known = [bounded.at((X, x), (Y, y)) for x in (A0, A1) for y in (B0, B1)]
    exact = A1 * B1 * LIMB * LIMB + (A0 * B1 + A1 * B0) * LIMB + A0 * B0
    prover.theorem("multiply: exact for all a, b < 2^52, each number below 2^53", [*are_limbs(), *m.facts],
                   z3.And(m.nothing_wraps(), high * LIMB * LIMB + low == exact, low >= 0, low < LIMB * LIMB, high >= 0), known)
    prover.theorem("multiply: the products of the limbs are the product", are_limbs(),
                   exact == (A1 * LIMB + A0) * (B1 * LIMB + B0), products=True)
    high, low, most, most_low = z3.Ints("high low most most_low")
    in_half = lambda number: z3.And(number >= 0, number < LIMB * LIMB)
    whole = lambda high, low: high * LIMB * LIMB + low
    fits = z3.Or(high < most, z3.And(high == most, low <= most_low))
    prover.theorem("sliding: high and low compare as the products do", [in_half(low), in_half(most_low), high >= 0, most >= 0],
                   fits == (whole(high, low) <= whole(most, most_low)))
    prover.refuted("fault: only the high parts are compared", [in_half(low), in_half(most_low), high >= 0, most >= 0],
                   (high <= most) == (whole(high, low) <= whole(most, most_low)))
    m = Script()
    high, low = multiply(m, carries=0)
    prover.refuted("fault: multiply forgets a carry", [*are_limbs(), A1 == 0, B1 == 0, B0 == LIMB - 1, *m.facts],
                   high * LIMB * LIMB + low == A0 * B0)
    m, limb = Script(), 1 << 27
    multiply(m, limb)
    prover.refuted("fault: multiply with limbs of 27 bits", [*(part == limb - 1 for part in LIMBS), *m.facts],
                   m.nothing_wraps())


def decide(prover):
    m = Script()
    left = smaller(m.fits(ENDS - NOW), PERIOD)
    total = m.fits(COUNT + N)
    room = m.fits(m.fits(LIMIT - COUNT) - N)
    prover.theorem("windows: count + n and what is multiplied are exact", [*GIVEN, NOW < ENDS],
                   z3.And(m.nothing_wraps(), left >= 1, left < 1 << 52,
                          z3.Implies(total <= LIMIT, z3.And(room >= 0, room < 1 << 52))))
    prover.theorem("sliding: granted exactly if before * left / period + count + n <= limit", [*GIVEN, LEFT >= 1, LEFT <= PERIOD],
                   z3.And(COUNT + N <= LIMIT, BEFORE * LEFT <= (LIMIT - COUNT - N) * PERIOD)
                   == (z3.ToReal(BEFORE * LEFT) / z3.ToReal(PERIOD) + z3.ToReal(COUNT + N) <= z3.ToReal(LIMIT)),
                   products=True)


def end_of(m, tick):
    quotient, rest = m.fmod(m.fits(tick + SHIFT), PERIOD)
    return quotient, m.fits(m.fits(tick - rest) + PERIOD)


def moves(prover):
    m = Script()
    quotient, ends = end_of(m, TICK)
    first = m.fits(TICK + PERIOD)
    m.fits(ends - ENDS)
    prover.theorem("windows: the end is the next multiple of the period since 1970, below 2^53",
                   [*GIVEN, TICK >= 0, TICK <= 2 * SPAN, *m.facts],
                   z3.And(m.nothing_wraps(), ends > TICK, ends <= TICK + PERIOD, ends <= 3 * SPAN, first <= 3 * SPAN,
                          ends + SHIFT == (quotient + 1) * PERIOD))
    stop = NOW + LONG
    prover.theorem("windows: a ban ends before its window does",
                   [*GIVEN, LONG > 0, LONG <= SPAN, z3.Or(BAN == 0, BAN < ENDS), TICK > stop, TICK <= stop + PERIOD],
                   larger(BAN, stop) < larger(ENDS, TICK))


def expiry(prover):
    m, slides = Script(), z3.Bool("slides")
    _, after = end_of(m, ENDS)
    last = z3.If(z3.And(slides, COUNT > 0), after, z3.If(COUNT + BEFORE > 0, ENDS, NOW))
    expired = expires(m, m.fits(last))
    # The end of the window in which the key expires. Ends differ by whole periods.
    ends = TICK
    aligned = z3.Implies(ends > after, ends >= after + PERIOD)
    before = z3.If(z3.And(slides, ends - ENDS <= PERIOD), COUNT, 0)
    nothing = z3.If(expired >= ENDS, before == 0, z3.And(COUNT == 0, BEFORE == 0))
    prover.theorem("windows: when the key expires, nothing is counted and its ban has ended",
                   [*GIVEN, NOW < ENDS, BAN < ENDS, z3.Or(BAN <= NOW, COUNT > 0), ends > expired, aligned, *m.facts],
                   z3.And(m.nothing_wraps(), nothing, expired > BAN, expired > NOW))


def bound(prover):
    """The weight is the count that slides, times the period. By induction over grants and over the
    latest clock reading `to`: the permits taken since `start`, times the period, are at most the
    weight and limit * (to - start)."""
    taken, a, b, to, later = z3.Ints("taken start end to later")
    weight = lambda at: BEFORE * (ENDS - at) + COUNT * PERIOD
    invariant = lambda taken, weight, to: taken * PERIOD <= weight + LIMIT * (to - a)
    given = [PERIOD >= 1, LIMIT >= 1, COUNT >= 0, COUNT <= LIMIT, BEFORE >= 0, BEFORE <= LIMIT, taken >= 0, a <= to,
             to <= ENDS, to >= ENDS - PERIOD, invariant(taken, weight(to), to)]
    prover.theorem("sliding, bound: the clock lowers the weight by at most the rate", [*given, later >= to, later <= ENDS],
                   invariant(taken, weight(later), later), products=True)
    prover.theorem("sliding, bound: at the end of a window its count weighs the same in the next one", [*given, to == ENDS],
                   invariant(taken, COUNT * PERIOD, to), products=True)
    prover.theorem("sliding, bound: after a window without permits nothing weighs", [*given, later >= ENDS + PERIOD],
                   invariant(taken, 0, later), products=True)
    read = smaller(to, TICK)
    left = smaller(ENDS - read, PERIOD)
    prover.theorem("sliding, bound: a grant adds its weight, by a clock that may be older",
                   [*given, N >= 1, BEFORE * left + (COUNT + N) * PERIOD <= LIMIT * PERIOD],
                   z3.And(invariant(taken + N, weight(to) + N * PERIOD, to),
                          BEFORE * (ENDS - to) + (COUNT + N) * PERIOD <= LIMIT * PERIOD), products=True)
    prover.theorem("sliding, bound: from `start` to `end` at most limit + rate * (end - start)",
                   [*given, weight(to) <= LIMIT * PERIOD, to <= b], taken * PERIOD <= LIMIT * PERIOD + LIMIT * (b - a),
                   products=True)


def windows(prover):
    products(prover)
    decide(prover)
    moves(prover)
    expiry(prover)
    bound(prover)
