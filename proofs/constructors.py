"""The constructors establish the relations of Pace.established, for all quotas that they accept."""

import z3

from machine import Machine, smaller
from pace import (EXACT_N, MAX_BURST, MAX_INTERVAL, MAX_PER_NS, MAX_WORD, MIN_HORIZON, ONE, SPEED_BITS, U64,
                  Pace, is_floor, is_u64)
from theorems import variables

N, PERIOD, DIVISOR, WHOLE, REST = z3.Ints("permits period divisor reduced_n reduced_period")
SPEED, PERMIT, BURST, REACH = z3.Ints("speed permit burst capacity")
INITIAL, EXCESS = z3.Ints("initial excess")

# The values that valid_period_ns accepts.
VALID = [is_u64(N, PERIOD), N >= 1, PERIOD >= 1, N <= PERIOD * MAX_PER_NS, PERIOD <= N * MAX_INTERVAL]
# The values that from_quota (both branches) and from_interval pass to `fitted` or `reaching`.
HANDED_ON = [is_u64(SPEED, PERMIT), SPEED >= ONE, SPEED <= EXACT_N * ONE, PERMIT >= 1]


def made_in_50_years(m):
    return m.fits(m.shr(m.mul(z3.IntVal(MIN_HORIZON), SPEED, 128), SPEED_BITS, "accrued"))


def from_quota(prover, q):
    reduced = [N == DIVISOR * WHOLE, PERIOD == DIVISOR * REST, DIVISOR >= 1, WHOLE >= 1, REST >= 1]
    m = Machine()
    m.fits(N), m.fits(PERIOD * MAX_PER_NS, 128), m.fits(N * MAX_INTERVAL, 128)
    speed = m.mul(WHOLE, z3.IntVal(ONE))
    prover.theorem(
        "from_quota, exact: nothing wraps, its values are valid, permit * n = period * speed",
        [*VALID, *reduced, WHOLE <= EXACT_N],
        z3.And(m.nothing_wraps(), *handed_on(speed, REST), REST <= PERIOD, REST * N == PERIOD * WHOLE),
        [q.grows(z3.IntVal(1), DIVISOR, REST), q.grows(N, DIVISOR * WHOLE, REST), q.grows(DIVISOR * WHOLE, N, REST),
         q.grows(PERIOD, DIVISOR * REST, WHOLE), q.grows(DIVISOR * REST, PERIOD, WHOLE)],
    )
    m = Machine()
    permit = m.div_ceil(m.mul(z3.IntVal(4), PERIOD, 128), N, 128, "permit")
    (floor,) = variables(m, "permit_")
    product = m.mul(permit, N, 128)
    speed = m.div(m.mul(product, z3.IntVal(ONE), 128), PERIOD, "speed")
    cast = z3.And(is_u64(permit), is_u64(speed))
    known = [
        q.grows(z3.IntVal(1), N, floor), q.grows(N, 4 * PERIOD, 1), q.grows(floor, 0, N), q.grows(floor + 1, 1, N),
        q.grows(permit, 0, N), q.grows(2, permit, N), q.grows(4 * MAX_INTERVAL + 1, permit, N),
        q.grows(speed, 4 * ONE - 1, PERIOD), q.grows(MAX_PER_NS * ONE + 1, speed, PERIOD),
    ]
    prover.theorem(
        "from_quota, inexact: nothing wraps, no cast truncates, 4 to 10 units a nanosecond",
        [*VALID, *m.facts],
        z3.And(m.nothing_wraps(), cast, permit >= 1, speed >= 4 * ONE, speed <= MAX_PER_NS * ONE,
               *handed_on(speed, permit)),
        known,
    )
    prover.theorem(
        "from_quota, inexact: permit * n >= 4 * period, speed = floor(permit * n / period)",
        [*VALID, *m.facts],
        z3.And(permit * N >= 4 * PERIOD, is_floor(speed, permit * N * ONE, PERIOD)),
        known,
    )


def handed_on(speed, permit):
    return [z3.substitute(part, (SPEED, speed), (PERMIT, permit)) for part in HANDED_ON]


def fitted(prover, q):
    m = Machine()
    accrued = made_in_50_years(m)
    room = m.sub(z3.IntVal(MAX_WORD), accrued)
    most = smaller(m.div(m.div(room, z3.IntVal(2), "half"), PERMIT, "most"), MAX_BURST)
    (floor,) = variables(m, "most_")
    accepted = m.when(BURST <= most, lambda: m.mul(BURST, PERMIT))
    given = [*HANDED_ON, is_u64(BURST), BURST >= 1, *m.facts]
    by = [q.grows(BURST, floor, PERMIT), q.grows(z3.IntVal(1), BURST, PERMIT), q.grows(z3.IntVal(1), PERMIT, BURST)]
    prover.theorem("fitted: nothing wraps", given, m.nothing_wraps(), by)
    prover.theorem(
        "fitted: an accepted burst leaves room for 50 years and two bursts",
        [*given, BURST <= most],
        z3.And(accepted >= PERMIT, accrued + 2 * accepted <= MAX_WORD, BURST <= MAX_BURST),
        by,
    )


def reaching(prover, q):
    """If 50 years and two bursts fit the word, `reaching` establishes everything."""
    m, before, p = Machine(), Machine(), Pace()
    fifty = made_in_50_years(before)
    burst = m.div(REACH, PERMIT, "burst")
    room = m.sub(z3.IntVal(MAX_WORD), m.mul(z3.IntVal(2), REACH))
    horizon = m.div(m.mul(room, z3.IntVal(ONE), 128), SPEED, "horizon")
    inverse = m.div(m.fits(z3.IntVal(1 << 124), 128), SPEED, "inverse")
    given = [*HANDED_ON, is_u64(REACH), REACH >= PERMIT, fifty + 2 * REACH <= MAX_WORD,
             *before.facts, *m.facts]
    top = z3.Int("top")
    fields = {"speed": SPEED, "permit": PERMIT, "capacity": REACH, "burst": burst,
              "horizon": smaller(horizon, U64), "inverse": smaller(inverse, U64), "deficit": z3.IntVal(0)}
    established = [z3.substitute(part, *[(getattr(p, name), term) for name, term in fields.items()])
                   for part in p.established()]
    tops = is_floor(top, smaller(horizon, U64) * SPEED, ONE)
    by = [q.grows(ONE, SPEED, burst), q.grows(z3.IntVal(1), PERMIT, burst), q.grows(burst, 0, PERMIT),
          q.grows(ONE, SPEED, horizon), q.grows(z3.IntVal(ONE), SPEED, inverse), q.grows(inverse, 0, SPEED),
          q.grows(ONE + 1, SPEED, inverse), q.grows(horizon + 1, MIN_HORIZON - 1, SPEED), q.grows(ONE, SPEED, U64),
          q.grows(0, horizon, SPEED), q.grows(U64 + 1, inverse, SPEED), q.grows(U64 + 1, horizon, SPEED)]
    prover.theorem("reaching: nothing wraps, and it is never None", given, z3.And(m.nothing_wraps(), burst >= 1), by)
    chosen = [*given, tops]
    prover.theorem("reaching: establishes the assumptions of the other theorems", chosen, z3.And(*established), by)
    exact = z3.Int("exact_burst")
    prover.theorem("reaching: from burst * permit it computes the burst; burst - initial fits",
                   [*given, REACH == exact * PERMIT, exact >= 1, is_u64(exact, INITIAL), INITIAL <= exact],
                   z3.And(burst == exact, burst - INITIAL >= 0, burst - INITIAL <= burst),
                   [q.grows(exact + 1, burst, PERMIT), q.grows(burst + 1, exact, PERMIT)])


def from_interval(prover, q):
    m = Machine()
    most = m.div(m.sub(z3.IntVal(MAX_WORD), z3.IntVal(MIN_HORIZON)), z3.IntVal(2), "most")
    cap = m.add(m.mul(z3.IntVal(MAX_BURST), PERMIT, 128), m.sub(PERMIT, z3.IntVal(1)), 128)
    reach_most = smaller(most, cap)
    excess_most = m.fits(m.sub(reach_most, PERMIT, 128))
    accepted = EXCESS <= excess_most
    capacity = m.when(accepted, lambda: m.add(PERMIT, EXCESS))
    given = [PERMIT >= 1, PERMIT <= MAX_INTERVAL, EXCESS >= 0, *m.facts]
    prover.theorem(
        "from_interval: nothing wraps, and its values are valid",
        given,
        z3.And(m.nothing_wraps(), *handed_on(z3.IntVal(ONE), PERMIT),
               z3.Implies(accepted, z3.And(capacity >= PERMIT, MIN_HORIZON + 2 * capacity <= MAX_WORD,
                                           capacity < (MAX_BURST + 1) * PERMIT))),
    )


def constructors(prover, products):
    from_quota(prover, products)
    fitted(prover, products)
    reaching(prover, products)
    from_interval(prover, products)
