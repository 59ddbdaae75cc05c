"""The arithmetic of the scripts that run inside Redis: crates/tollgate-redis/src/lua.

Lua has only doubles. A double holds each integer of less than 2^53 exactly, and sums, differences,
products, fmod, and quotients that are integers are exact as long as their results are such integers.
So the model computes with integers, and proves of each number that it is below 2^53.

A tick is a pair: whole microseconds, and a part in units of 1/n. `units` is its value in these
units, an exact rational number of microseconds. The theorems hold for all quotas that Rate accepts.
"""

import z3

import source
from machine import Machine, larger, smaller

SPAN, MAX_N = (source.constants()[name] for name in ("SPAN", "MAX_N"))
READABLE = 3 * SPAN
assert f"idle <= {READABLE} " in source.text_of("crates/tollgate-redis/src/lua/bucket_read.lua")
ORIGIN = 1_767_225_600

N, OLD, D, OLD_D, NOW, BAN, LONG = z3.Ints("n old d old_d now ban long")
STATE, COST, REACH, MARK = (tuple(z3.Ints(f"{name} {name}_part")) for name in ("state", "cost", "capacity", "mark"))


class Script(Machine):
    """Lua's operations. Each obligation says that a number is an integer that a double holds."""

    def fits(self, value, bits=53):
        self.must(z3.And(value > -(1 << bits), value < 1 << bits))
        return value

    def add(self, a, b, n, carries=True):
        whole, part = self.fits(a[0] + b[0]), self.fits(a[1] + b[1])
        carry = z3.And(part >= n, carries)
        return self.fits(z3.If(carry, whole + 1, whole)), self.fits(z3.If(carry, part - n, part))

    def subtract(self, a, b, n, borrows=True):
        whole, part = self.fits(a[0] - b[0]), self.fits(a[1] - b[1])
        borrow = z3.And(part < 0, borrows)
        return self.fits(z3.If(borrow, whole - 1, whole)), self.fits(z3.If(borrow, part + n, part))

    def fmod(self, a, b):
        """The quotient, rounded down, and the rest."""
        quotient = self.div(a, b)
        return quotient, a - quotient * b

    def rescale(self, tick, old, n, up=1, carries=True):
        product = self.fits(tick[1] * n)
        quotient, rest = self.fmod(product, old)
        self.fits(product - rest)
        part = self.fits(quotient + z3.If(rest > 0, up, 0))
        return self.add((tick[0], part), (z3.IntVal(0), z3.IntVal(0)), n, carries)


def is_later(a, b):
    return z3.Or(a[0] > b[0], z3.And(a[0] == b[0], a[1] > b[1]))


def either(condition, a, b):
    return z3.If(condition, a[0], b[0]), z3.If(condition, a[1], b[1])


def read():
    """The stored tick, or now if that is later."""
    return either(STATE[0] < NOW, CLOCK, STATE)


def earlier(a, b):
    return either(is_later(a, b), b, a)


def units(tick, n=N):
    return tick[0] * n + tick[1]


def is_tick(tick, most, n=N):
    return z3.And(tick[0] >= 0, tick[0] <= most, tick[1] >= 0, tick[1] < n)


def is_within(tick, most, n=N):
    """A tick that is exactly at most `most` microseconds."""
    return z3.And(is_tick(tick, most, n), z3.Implies(tick[0] == most, tick[1] == 0))


A_RATE = [N >= 1, N <= MAX_N]
CLOCK = (NOW, z3.IntVal(0))
# What the scripts get: a stored state, and the arguments that the client computes from a quota.
# The reach may include a wait.
STORED = [*A_RATE, NOW >= 0, NOW <= SPAN, is_within(STATE, READABLE)]
GIVEN = [*STORED, is_within(COST, SPAN), is_within(REACH, SPAN)]


def primitives(prover):
    a, b = tuple(z3.Ints("a a_part")), tuple(z3.Ints("b b_part"))
    given = [*A_RATE, is_tick(a, 5 * SPAN + 1), is_tick(b, 5 * SPAN + 1)]
    compared = prover.theorem("is_later: compares the exact values", given,
                              is_later(a, b) == (units(a) > units(b)), products=True)
    m = Script()
    total = m.add(a, b, N)
    added = prover.theorem("add: exact, each number below 2^53", [*given, a[0] + b[0] <= 5 * SPAN + 1],
                           z3.And(m.nothing_wraps(), units(total) == units(a) + units(b), is_tick(total, 5 * SPAN + 2)), products=True)
    m = Script()
    rest = m.subtract(a, b, N)
    subtracted = prover.theorem("subtract: exact, each number below 2^53", [*given, z3.Not(is_later(b, a))],
                                z3.And(m.nothing_wraps(), units(rest) == units(a) - units(b), is_tick(rest, a[0])), products=True)
    return lambda theorem, x, y: {"is_later": compared, "add": added, "subtract": subtracted}[theorem].at(
        *zip((*a, *b), (*x, *y)))


def rescale(prover):
    tick = tuple(z3.Ints("whole part"))
    given = [*A_RATE, OLD >= 1, OLD <= MAX_N, is_within(tick, READABLE, OLD)]
    m = Script()
    after = m.rescale(tick, OLD, N)
    # The difference of the two values, in units of 1 / (old * n).
    difference = (after[0] - tick[0]) * N * OLD + after[1] * OLD - tick[1] * N
    prover.theorem("rescale: each number below 2^53, rounded up by less than a unit",
                   [*given, *m.facts], z3.And(m.nothing_wraps(), is_within(after, READABLE),
                                              difference >= 0, difference < OLD), products=True)


def span_units(span):
    """A span of three numbers, in units of 1 / (n * old_d)."""
    return (span[0] * N + span[1]) * OLD_D + span[2]


def is_span(span):
    """Digits in their ranges. A span ends at SPAN."""
    return z3.And(is_tick(span[:2], SPAN), span[2] >= 0, span[2] < OLD_D,
                  z3.Implies(span[0] == SPAN, z3.And(span[1] == 0, span[2] == 0)))


def sum_of(m, a, b, carries=True):
    whole, part, rest = (m.fits(x + y) for x, y in zip(a, b))
    carry = z3.And(rest >= OLD_D, carries)
    part, rest = m.fits(z3.If(carry, part + 1, part)), m.fits(z3.If(carry, rest - OLD_D, rest))
    carry = part >= N
    whole, part = m.fits(z3.If(carry, whole + 1, whole)), m.fits(z3.If(carry, part - N, part))
    return tuple(z3.If(whole >= SPAN, end, digit) for end, digit in ((SPAN, whole), (0, part), (0, rest)))


def used(prover):
    """A change of the rate keeps what was used: units of 1 / old of old_d become units of 1/n of d."""
    rates = [*A_RATE, OLD >= 1, OLD <= MAX_N, D >= 1, D <= SPAN, OLD_D >= 1, OLD_D <= SPAN]
    m = Script()
    parts, rest = m.fmod(D, OLD_D)
    whole, part = m.fmod(parts, N)
    unit = whole, part, rest
    prover.theorem("used: an old part is d / old_d parts", [*rates, *m.facts],
                   z3.And(m.nothing_wraps(), is_span(unit), span_units(unit) == D), products=True)
    a, b = tuple(z3.Ints("a a_part a_rest")), tuple(z3.Ints("b b_part b_rest"))
    m = Script()
    both = sum_of(m, a, b)
    most = SPAN * N * OLD_D
    prover.theorem("used: sums are exact up to SPAN, each number below 2^53", [*rates, is_span(a), is_span(b)],
                   z3.And(m.nothing_wraps(), is_span(both), span_units(both) == smaller(span_units(a) + span_units(b), most)),
                   products=True)
    # A step of `times`, by the values of its spans. COUNT is 2 * HALF + BIT.
    total, each, half, bit, most = z3.Ints("total each half bit most")
    after = smaller(total + bit * each, most) + half * smaller(2 * each, most)
    prover.theorem("used: a step of `times` keeps all + count * span, up to SPAN",
                   [total >= 0, each >= 0, half >= 0, z3.Or(bit == 0, bit == 1), most >= 1],
                   smaller(after, most) == smaller(total + (2 * half + bit) * each, most), products=True)
    m = Script()
    one = z3.IntVal(0), z3.IntVal(1), z3.IntVal(0)
    up = either(a[2] > 0, sum_of(m, (a[0], a[1], z3.IntVal(0)), one), a)
    excess = units(up) * OLD_D - span_units(a)
    prover.theorem("used: rounded up by less than a part", [*rates, is_span(a)],
                   z3.And(m.nothing_wraps(), is_within(up, SPAN), excess >= 0, excess < OLD_D), products=True)
    m = Script()
    small = [N == 2, OLD_D == 3, is_span(a), is_span(b), a[0] < 5, b[0] < 5]
    prover.refuted("fault: a sum of spans forgets a carry", small, is_span(sum_of(m, a, b, carries=False)))


def clock(prover):
    seconds, micros = z3.Ints("seconds micros")
    m = Script()
    now = m.fits(m.fits(m.fits(seconds - ORIGIN) * 10**6) + micros)
    clamped = smaller(larger(now, 0), SPAN)
    exact = seconds * 10**6 + micros - ORIGIN * 10**6
    prover.theorem("now: exact from 2026 for 50 years, and within them before and after",
                   [seconds >= 0, seconds < 1 << 33, micros >= 0, micros < 10**6],
                   z3.And(m.nothing_wraps(), clamped >= 0, clamped <= SPAN,
                          z3.Implies(z3.And(exact >= 0, exact <= SPAN), clamped == exact)))


def take(prover, at):
    m = Script()
    base = read()
    after = m.add(base, COST, N)
    last = m.fits(NOW + REACH[0]), REACH[1]
    granted = z3.Not(is_later(after, last))
    exact = larger(units(STATE), units(CLOCK)) + units(COST)
    known = [at("is_later", STATE, CLOCK), at("add", base, COST), at("is_later", after, last)]
    prover.theorem("take: each number below 2^53", GIVEN, m.nothing_wraps(), known)
    prover.theorem("take: granted exactly if max(state, now) + cost <= now + capacity, and adds the cost", GIVEN,
                   z3.And(granted == (exact <= units(CLOCK) + units(REACH)), units(after) == exact,
                          z3.Implies(granted, is_within(after, 2 * SPAN))), known, products=True)
    prover.theorem("take: writes exactly if the request costs something", GIVEN,
                   z3.Or(after[0] > base[0], after[1] > base[1]) == (units(COST) > 0), known, products=True)


def bound(prover):
    """For all sequences of grants, with clock readings in any order, in units of 1/n."""
    state, cost, capacity, now, a, b, taken, first = z3.Ints("state cost capacity now start end taken first")
    after = larger(state, now) + cost

    def invariant(state, taken, first):
        return z3.Or(taken == 0, z3.And(first >= a, taken <= state - first, taken <= capacity + b - a))

    counts = z3.And(a <= now, now <= b)
    prover.theorem("bound: grants from `start` to `end` take at most capacity + end - start",
                   [state >= 0, cost >= 1, capacity >= 0, a >= 0, a <= b, taken >= 0, after <= now + capacity,
                    invariant(state, taken, first)],
                   z3.And(z3.Implies(counts, invariant(after, taken + cost, z3.If(taken == 0, larger(state, now), first))),
                          z3.Implies(z3.Not(counts), invariant(after, taken, first))))


def wait(prover):
    """The client computes retry_after from the state that a denial returns."""
    state, cost, capacity, micros = z3.Ints("state cost capacity wait")
    granted = lambda now: larger(state, now * N) + cost <= now * N + capacity
    prover.theorem("retry_after: granted after it, and denied a microsecond earlier",
                   [*A_RATE, NOW >= 0, cost >= 1, cost <= capacity, z3.Not(granted(NOW)),
                    (micros - 1) * N < state + cost - capacity - NOW * N, state + cost - capacity - NOW * N <= micros * N],
                   z3.And(granted(NOW + micros), z3.Not(granted(NOW + micros - 1))), products=True)


def give(prover, at):
    """A refund has no mark, so the client sends a tick after all that are stored. The client caps the
    cost at 2 * SPAN. That is not less than what can be ahead of the clock when no ban is in the way."""
    m = Script()
    asked = z3.Ints("asked asked_part")
    given = [*STORED, is_within(STATE, 2 * SPAN), is_tick(asked, 1 << 80), is_tick(MARK, 5 * SPAN)]
    most = z3.IntVal(2 * SPAN), z3.IntVal(0)
    given += [part == capped for part, capped in zip(COST, earlier(asked, most))]
    base = read()
    top = earlier(base, MARK)
    ahead = m.fits(top[0] - NOW), top[1]
    back = earlier(COST, ahead)
    after = m.subtract(base, back, N)
    exact = smaller(units(asked), smaller(units(STATE), units(MARK)) - units(CLOCK))
    known = [at("is_later", STATE, CLOCK), at("is_later", base, MARK), at("is_later", top, CLOCK), at("is_later", COST, ahead),
             at("is_later", back, base), at("subtract", base, back)]
    prover.theorem("give: gives back min(cost, mark - now) exactly, each number below 2^53",
                   [*given, is_later(top, CLOCK)],
                   z3.And(m.nothing_wraps(), units(after) == units(STATE) - exact, is_within(after, 2 * SPAN),
                          exact >= 0, units(after) >= units(CLOCK)), known, products=True)


def unbanned(prover):
    """A state that is above 2 * SPAN is banned: none is above its ban by more than SPAN. In microseconds."""
    state, ban, now, capacity, cost, long = z3.Ints("state ban now capacity cost long")
    invariant = lambda state, ban: state <= larger(2 * SPAN, ban + SPAN)
    given = [invariant(state, ban), state >= 0, ban >= 0, now >= 0, now <= SPAN, capacity >= 0, capacity <= SPAN, cost >= 0]
    base, is_banned = larger(state, now), ban > now
    charged = larger(base, smaller(base + cost, now + SPAN))
    stop = larger(ban, now + long)
    prover.theorem("ahead: a bucket that is not banned is idle within 2 * SPAN",
                   [*given, long > 0, long <= SPAN],
                   z3.And(z3.Implies(z3.Not(is_banned), state <= 2 * SPAN),
                          z3.Implies(base + cost <= now + capacity, invariant(base + cost, 0)),
                          invariant(charged, z3.If(is_banned, ban, 0)),
                          invariant(larger(base, now + capacity + long), stop)))


LOW, HIGH, OTHER_LOW, OTHER_HIGH, NEXT, GIVEN_BACK, IDLE = z3.Ints("low high other_low other_high next given idle")


def reservation(prover):
    """A grant has the places from `low` to `high`, which is its mark, and waits if they end after the
    latest tick. While a grant waits, the state is not below it, so later grants have later places."""
    is_last, waits = IDLE == HIGH, z3.Or(IDLE > LATEST, HIGH > LATEST)
    may = z3.Or(is_last, z3.Not(waits))
    apart = lambda low, high: z3.Or(OTHER_HIGH <= low, high <= OTHER_LOW)
    given = [LOW >= 0, LOW < HIGH, OTHER_LOW >= 0, OTHER_LOW < OTHER_HIGH, apart(LOW, HIGH), OTHER_HIGH > LATEST,
             OTHER_HIGH <= IDLE, z3.Implies(HIGH > LATEST, HIGH <= IDLE), GIVEN_BACK >= 0, GIVEN_BACK <= HIGH - LOW,
             NEXT == IDLE - GIVEN_BACK]
    prover.theorem("give: a reservation that comes back leaves the place of each waiting grant",
                   [*given, z3.Or(may, GIVEN_BACK == 0)], OTHER_HIGH <= NEXT)
    prover.theorem("take: a later grant gets no place of a waiting one",
                   [OTHER_HIGH <= IDLE, OTHER_LOW < OTHER_HIGH, LOW >= IDLE, HIGH > LOW], apart(LOW, HIGH))
    prover.refuted("fault: a reservation comes back while others wait behind it", given, OTHER_HIGH <= NEXT)


def due_later(prover, at):
    """A reservation is due at the first microsecond at which it is within the capacity, and counts from no
    earlier tick."""
    m = Script()
    base = read()
    after = m.add(base, COST, N)
    latest = m.fits(NOW + REACH[0])
    later = is_later(after, (latest, REACH[1]))
    due = m.fits(m.fits(after[0] - latest) + NOW) + z3.If(after[1] > REACH[1], 1, 0)
    ahead = units(after) - units(REACH)
    known = [at("is_later", STATE, CLOCK), at("add", base, COST), at("is_later", after, (latest, REACH[1]))]
    prover.theorem("reserve: due at the first microsecond at which it is within the capacity, each number below 2^53",
                   [*GIVEN, later], z3.And(m.nothing_wraps(), m.fits(due) == due, due > NOW,
                                           ahead <= due * N, ahead > (due - 1) * N), known, products=True)
    state, cost, capacity, now, due, a, b, taken, first = z3.Ints("state cost capacity now due start end taken first")
    base = larger(state, due * N)
    after = base + cost

    def invariant(state, taken, first):
        return z3.Or(taken == 0, z3.And(first >= a * N, taken <= state - first, taken <= capacity + (b - a) * N))

    counts = z3.And(a <= due, due <= b)
    is_due = z3.And(due >= now, larger(state, now * N) + cost <= due * N + capacity)
    step = lambda after, base: z3.And(
        z3.Implies(counts, invariant(after, taken + cost, z3.If(taken == 0, base, first))),
        z3.Implies(z3.Not(counts), invariant(after, taken, first)))
    given = [*A_RATE, state >= 0, cost >= 1, cost <= capacity, now >= 0, a >= 0, a <= b, taken >= 0, is_due,
             invariant(state, taken, first)]
    prover.theorem("bound: permits due from `start` to `end` take at most capacity + end - start", given,
                   step(after, base), products=True)
    early = larger(state, now * N)
    prover.refuted("fault: a reservation counts from a tick before its due one", given, step(early + cost, early))


WITH, WITHOUT, TAKEN, TO, LATEST, THEN, OTHER = z3.Ints("with without taken mark latest now other")


def still_taken(state, without, latest):
    """After a grant of TAKEN with mark TO: how much longer it makes others wait."""
    return z3.And(state >= without, z3.Or(TO <= latest, z3.And(
        state >= TO, state - larger(without, latest) >= smaller(TAKEN, TO - latest))))


def undo(prover):
    """By induction over other grants, the latest of which saw the clock at `latest`."""
    granted = larger(WITHOUT, THEN) + TAKEN
    prover.theorem("undo: right after the grant, it gives back all", [WITHOUT >= 0, THEN >= 0, TAKEN >= 1],
                   z3.And(granted - smaller(TAKEN, granted - THEN) == larger(WITHOUT, THEN),
                          z3.Implies(TO == granted, still_taken(granted, WITHOUT, THEN))))
    known = [WITH >= 0, WITHOUT >= 0, TAKEN >= 1, OTHER >= 1, THEN >= LATEST, LATEST >= 0,
             still_taken(WITH, WITHOUT, LATEST)]
    prover.theorem("undo: after any other grants, it gives back no more than the grant still takes", known,
                   z3.And(still_taken(larger(WITH, THEN) + OTHER, larger(WITHOUT, THEN) + OTHER, THEN),
                          z3.Implies(TO > THEN, WITH - smaller(TAKEN, TO - THEN) >= larger(WITHOUT, THEN))))


def debts(prover, at):
    m = Script()
    base = read()
    top = m.fits(NOW + SPAN), z3.IntVal(0)
    total = m.add(base, COST, N)
    capped = earlier(total, top)
    after = either(is_later(capped, base), capped, base)
    known = [at("is_later", STATE, CLOCK), at("add", base, COST), at("is_later", total, top),
             at("is_later", capped, base)]
    exact = larger(units(base), smaller(units(base) + units(COST), units(top)))
    prover.theorem("charge: adds the cost exactly, up to 50 years from now", GIVEN,
                   z3.And(m.nothing_wraps(), units(after) == exact,
                          z3.Or(is_within(after, 2 * SPAN), units(after) == units(base))), known, products=True)
    m = Script()
    base, end = read(), (m.fits(m.fits(NOW + LONG) + REACH[0]), REACH[1])
    prover.theorem("ban: below 2^53, can be read again, and the limit is idle after it",
                   [*GIVEN, LONG >= 0, LONG <= SPAN, BAN >= 0, BAN <= STATE[0]],
                   z3.And(m.nothing_wraps(), is_within(end, READABLE),
                          larger(BAN, NOW + LONG) <= either(is_later(end, base), end, base)[0]))


def expires(m, last):
    """The tick at which a key expires. The quotient and the sum are rounded to doubles, and the result
    is truncated. No rounding passes an integer, so the result is at most 1 above the exact one."""
    left = m.fits(last - NOW)
    millis = z3.Int("millis")
    floor, _ = m.fmod(left, z3.IntVal(1000))
    m.facts.append(z3.And(millis >= floor + 1001, millis <= floor + 1002))
    return NOW + 1000 * m.fits(millis)


def expiry(prover):
    m = Script()
    long, expired = STATE[0] - NOW, expires(m, STATE[0])
    for most, life in (64_000_000, 65_001), (8_000_000, 9001), (1_000_000, 2001):
        expired = z3.If(long <= most, NOW + 1000 * life, expired)
    prover.theorem("save: when the key expires, the limit is idle and its ban has ended",
                   [*STORED, STATE[0] >= NOW, BAN >= 0, BAN <= STATE[0], *m.facts],
                   z3.And(m.nothing_wraps(), units((expired, 0)) > units(STATE), expired > BAN, expired > NOW),
                   products=True)


def faults(prover):
    a, b = tuple(z3.Ints("a a_part")), tuple(z3.Ints("b b_part"))
    small = [N == 3, is_tick(a, 10), is_tick(b, 10)]
    total = Script().add(a, b, N, carries=False)
    prover.refuted("fault: add forgets the carry", small, is_tick(total, 20))
    rest = Script().subtract(a, b, N, borrows=False)
    prover.refuted("fault: subtract forgets the borrow", [*small, units(a) >= units(b)], is_tick(rest, 10))
    prover.refuted("fault: is_later compares only the parts", small, (a[1] > b[1]) == (units(a) > units(b)))
    m = Script()
    bits = 1 << 27
    m.rescale(a, OLD, N)
    prover.refuted("fault: rescale with n of 27 bits", [N == bits, OLD == bits, is_tick(a, 10, OLD), *m.facts],
                   m.nothing_wraps())
    for fault, options in (("forgets the carry", {"carries": False}), ("rounds down", {"up": 0})):
        m = Script()
        after = m.rescale(a, OLD, N, **options)
        prover.refuted(f"fault: rescale {fault}", [N == 2, OLD == 3, is_tick(a, 10, OLD), *m.facts],
                       z3.And(is_tick(after, 11), units(after) * OLD >= units(a, OLD) * N))
    prover.refuted("fault: undo gives back the whole cost, whatever the clock has refilled",
                   [WITH >= 0, WITHOUT >= 0, TAKEN >= 1, THEN >= LATEST, LATEST >= 0, TO > THEN,
                    still_taken(WITH, WITHOUT, LATEST)], WITH - TAKEN >= larger(WITHOUT, THEN))
    expired, left = z3.Int("expired"), STATE[0] - NOW
    prover.refuted("fault: a key expires a whole number of microseconds after now, without margin",
                   [*STORED, N == 3, left >= 1, expired >= NOW + left, expired < NOW + left + 1000],
                   units((expired, 0)) >= units(STATE))


def scripts(prover):
    at = primitives(prover)
    rescale(prover)
    used(prover)
    clock(prover)
    take(prover, at)
    bound(prover)
    wait(prover)
    give(prover, at)
    unbanned(prover)
    reservation(prover)
    due_later(prover, at)
    undo(prover)
    debts(prover, at)
    expiry(prover)
    faults(prover)
