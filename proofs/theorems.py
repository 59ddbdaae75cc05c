"""Theorems about the step and the other verbs, for every representable quota, word and tick."""

import z3

from machine import Machine, larger, smaller
from pace import MAX_WORD, ONE, U64, Pace, is_floor, is_u64

A, B, C = z3.Ints("a b c")
WORD, NOW, N, MADE, UNITS, UP = z3.Ints("word now n accrued units up")


# A word moves from one clock to another. AT and TO are the clocks' readings, and LATER is how far
# both then advance, all in parts of 2^-60 of a unit. SLACK is how far the word may be ahead of the
# clock for a grant.
AT, TO, LATER, SLACK = z3.Ints("at to later headroom")
MADE_AT, MADE_TO, MADE_THEN, MADE_LATER = z3.Ints("made_at made_to made_then made_later")
REBASED = [
    is_u64(WORD), WORD > MADE_AT, AT >= 0, TO >= 0, LATER >= 0, SLACK >= 0,
    is_floor(MADE_AT, AT, ONE), is_floor(MADE_TO, TO, ONE),
    is_floor(MADE_THEN, AT + LATER, ONE), is_floor(MADE_LATER, TO + LATER, ONE),
]


def rebased(p):
    """Theorems about a busy word that moves to another clock."""
    after = smaller(MADE_TO + WORD - MADE_AT, MAX_WORD)
    # Both clocks stand still at the horizon: see `made`.
    here = z3.And(MADE_LATER <= p.top, SLACK <= p.capacity)
    was_due, is_due = WORD <= MADE_THEN + SLACK, after <= MADE_LATER + SLACK
    # What has accrued less than one unit of time later, by each clock.
    almost, almost_to = z3.Ints("almost almost_to")
    a_unit_later = [is_floor(almost, AT + LATER + ONE - 1, ONE), is_floor(almost_to, TO + LATER + ONE - 1, ONE)]
    yield "nothing becomes due a whole unit earlier", z3.Implies(
        z3.And(here, is_due, *a_unit_later), WORD <= almost + SLACK)
    yield "nothing becomes due a whole unit later", z3.Implies(
        z3.And(here, was_due, *a_unit_later), after <= almost_to + SLACK)
    whole = z3.And(*(x % ONE == 0 for x in (AT, TO, LATER)))
    yield "at an exact rate it is due exactly as before", z3.Implies(z3.And(here, whole), is_due == was_due)


class Products:
    """Facts about products of integers that the theorems use."""

    def __init__(self, prover):
        self._grows = prover.theorem(
            "a <= b and 0 <= c: a*c <= b*c", [A <= B, C >= 0], A * C <= B * C, products=True
        )
        self._strictly = prover.theorem(
            "a < b and 0 < c: a*c < b*c", [A < B, C > 0], A * C < B * C, products=True
        )

    def grows(self, a, b, c):
        """The theorem `a*c <= b*c` at these terms."""
        return self._grows.at((A, a), (B, b), (C, c))

    def strictly(self, a, b, c):
        """The theorem `a*c < b*c` at these terms."""
        return self._strictly.at((A, a), (B, b), (C, c))

    def fits(self, a, b, a_max=U64, b_max=U64):
        """Instances for: 0 <= a <= a_max and 0 <= b <= b_max imply 0 <= a*b <= a_max*b_max."""
        zero = z3.IntVal(0)
        return [self.grows(a, a_max, b), self.grows(b, b_max, z3.IntVal(a_max)), self.grows(zero, a, b)]


class Facts:
    """Theorems about one pace that other theorems use."""

    def __init__(self, prover, products, pace):
        self.prover, self.products, self.pace = prover, products, pace
        p, q = pace, products
        ticks = smaller(NOW, p.horizon)
        self.is_made = is_floor(MADE, ticks * p.speed, ONE)
        self.accrued = prover.theorem(
            "accrued: at most accrued(horizon), so with two bursts it fits a word",
            [*p.established(), is_u64(NOW), self.is_made],
            z3.And(MADE >= 0, MADE <= p.top, MADE + 2 * p.capacity <= MAX_WORD),
            [q.grows(ticks, p.horizon, p.speed), q.grows(z3.IntVal(0), ticks, p.speed)],
        )
        self._loss(ticks)
        self.burst = prover.theorem(
            "n <= burst: n * permit <= capacity",
            [*p.established(), N >= 0, N <= p.burst],
            z3.And(N * p.permit >= 0, N * p.permit <= p.capacity),
            [q.grows(N, p.burst, p.permit), q.grows(z3.IntVal(0), N, p.permit)],
        )
        self.ceiling = self._tick_of()

    def _loss(self, ticks):
        """Proves where the clock's rounding costs nothing. Few assumptions, which keeps the solver fast."""
        p, q, t, whole = self.pace, self.products, z3.Int("ticks"), z3.Int("whole")
        none = self.prover.theorem(
            "accrued: exact where the division is exact",
            [MADE * ONE <= whole * ONE, whole * ONE < MADE * ONE + ONE],
            MADE == whole,
        )
        self.loss = self.prover.theorem(
            "accrued: an exact rate loses no fraction",
            [t >= 0, is_floor(MADE, t * p.speed, ONE), p.is_exact()],
            z3.And(MADE * ONE == t * p.speed, MADE == t * p.whole_speed),
            [q.grows(p.speed, p.whole_speed * ONE, t), q.grows(p.whole_speed * ONE, p.speed, t),
             none.at((whole, t * p.whole_speed))],
        )

    def made_at(self, now, accrued):
        return self.accrued.at((NOW, now), (MADE, accrued))

    def burst_at(self, n):
        return self.burst.at((N, n))

    def is_up(self, units, up):
        """`up` is the first tick at which the clock, without the horizon, has accrued `units`."""
        speed = self.pace.speed
        return z3.And(up * speed >= units * ONE, (up - 1) * speed < units * ONE)

    def _tick_of(self):
        """Proves in five parts that tick_of is the ceiling of units * 2^60 / speed."""
        theorem, q, p = self.prover.theorem, self.products, self.pace
        estimate, tick = z3.Ints("estimate tick")
        given = [*p.established(), is_u64(UNITS), self.is_up(UNITS, UP)]
        guess = is_floor(estimate, UNITS * p.inverse, 1 << 64)
        small = theorem(
            "tick_of: the ceiling is at most the units",
            given,
            z3.And(UP >= 0, UP <= UNITS),
            [q.grows(ONE, p.speed, UP - 1), q.grows(UP, 0, p.speed), q.grows(UP + 1, 0, p.speed)],
        )
        above = theorem(
            "tick_of: the estimate is not above the ceiling",
            [*given, guess],
            estimate <= UP,
            [
                q.grows(p.inverse * p.speed, 1 << 124, UNITS),
                q.grows(estimate * (1 << 64), UNITS * p.inverse, p.speed),
                q.grows(UP + 1, estimate, p.speed),
            ],
        )
        below = theorem(
            "tick_of: the estimate is at most two below the ceiling",
            [*given, guess],
            UP - 2 <= estimate,
            [
                q.grows(1 << 124, (p.inverse + 1) * p.speed, UNITS),
                q.strictly(UNITS * p.inverse, (estimate + 1) * (1 << 64), p.speed),
                q.grows(UNITS, U64, p.speed),
                q.grows(estimate + 2, UP - 1, p.speed),
            ],
        )
        short = theorem(
            "tick_of: is_short holds for exactly the ticks below the ceiling",
            given,
            (tick * p.speed < UNITS * ONE) == (tick < UP),
            [q.grows(tick, UP - 1, p.speed), q.grows(UP, tick, p.speed)],
        )
        m = Machine()
        result = p.tick_of(m, UNITS)
        (first,) = variables(m, "estimate_")
        tries = [first, first + 1, first + 2]
        return theorem(
            "tick_of: with its two corrections it is the ceiling, and nothing wraps",
            [*given, *m.facts],
            z3.And(result == UP, result <= UNITS, m.nothing_wraps()),
            [
                small.at(),
                above.at((estimate, first)),
                below.at((estimate, first)),
                *(short.at((tick, t)) for t in tries),
                *q.fits(UNITS, p.inverse),
                *(fit for t in tries for fit in q.fits(t, p.speed)),
            ],
        )


def variables(m, prefix="accrued_"):
    """Returns the unknowns of the machine's divisions with this prefix, in order of creation."""
    found, todo = {}, [*m.facts]
    while todo:
        term = todo.pop()
        if z3.is_const(term) and term.decl().name().startswith(prefix):
            found[int(term.decl().name().rsplit("_", 1)[1])] = term
        todo.extend(term.children())
    return [found[number] for number in sorted(found)]


def decisions(facts):
    """The step: its decisions, and that they fit 64 bits."""
    prover, q, p = facts.prover, facts.products, facts.pace
    m = Machine()
    granted, after, units, accrued = p.step(m, WORD, NOW, N)
    ticks = smaller(NOW, p.horizon)
    given = [*p.established(), is_u64(WORD, NOW, N), N <= p.burst, *m.facts]
    by = [facts.made_at(NOW, accrued), facts.burst_at(N), *q.fits(ticks, p.speed)]
    specified = WORD + N * p.permit <= accrued + p.capacity
    base = larger(WORD, accrued)
    prover.theorem("step: nothing wraps", given, m.nothing_wraps(), by)
    prover.theorem("step: grants exactly what the specification grants", given, granted == specified, by)
    prover.theorem(
        "step: the next word is the specification's",
        [*given, granted],
        after == z3.If(N == 0, WORD, base + N * p.permit),
        by,
    )
    prover.theorem("step: an admission never lowers the word", [*given, granted], after >= WORD, by)
    prover.theorem("step: n = 0 leaves the word", [*given, granted, N == 0], after == WORD, by)
    prover.theorem("step: more than 0 raises the word", [*given, granted, N > 0], after > WORD,
                   [*by, q.grows(z3.IntVal(1), N, p.permit)])
    prover.theorem("step: the word of all ones is never written", [*given, granted], after <= MAX_WORD, by)
    prover.theorem("step: the word of all ones is always denied", [*given, WORD == U64], z3.Not(granted), by)
    prover.theorem("step: word 0 has a full burst at every tick", [*given, WORD == 0], granted, by)
    taken = z3.Int("taken")
    prover.theorem(
        "step: a bucket that granted some permits at this tick grants what is left of its burst",
        [*given, taken >= 0, taken <= p.burst, WORD == accrued + taken * p.permit],
        granted == (taken + N <= p.burst),
        [*by, q.grows(taken + N, p.burst, p.permit), q.grows(p.burst + 1, taken + N, p.permit)],
    )
    return given, granted, units, accrued, by


def waiting(facts, step):
    """retry_after and due: the first tick at which the request is granted."""
    prover, q, p = facts.prover, facts.products, facts.pace
    given, granted, units, accrued = step[:4]
    ticks, then, made_then = smaller(NOW, p.horizon), z3.Int("then"), z3.Int("made_then")
    denied = [*given, z3.Not(granted), facts.is_up(units, UP)]
    headroom = p.capacity - N * p.permit
    admits = WORD <= made_then + headroom
    later = smaller(then, p.horizon)
    at_then = [is_u64(then), is_floor(made_then, later * p.speed, ONE)]
    by = step[4]
    prover.theorem("denied: the due tick of a Later is after now", [*denied, UP <= p.horizon], UP > NOW,
                   [*by, q.grows(UP, ticks, p.speed)])
    prover.theorem("denied: granted at now + retry_after", [*denied, *at_then, UP <= p.horizon, then == UP],
                   admits, [*by, q.grows(UP, later, p.speed)])
    prover.theorem("denied: granted at every later tick", [*denied, *at_then, UP <= p.horizon, then >= UP],
                   admits, [*by, q.grows(UP, later, p.speed)])
    prover.theorem("denied: not granted one nanosecond earlier", [*denied, *at_then, UP <= p.horizon, then == UP - 1],
                   z3.Not(admits), [*by, q.grows(later, UP - 1, p.speed)])
    prover.theorem("denied: Stuck is granted at no tick", [*denied, *at_then, UP > p.horizon],
                   z3.Not(admits), [*by, q.grows(later, UP - 1, p.speed)])
    first = z3.If(WORD >= headroom, WORD - headroom, 0)
    due = [*given, *at_then, facts.is_up(first, UP)]
    prover.theorem("due: granted from the returned tick on", [*due, UP <= p.horizon, then >= UP, then >= NOW],
                   admits, [*by, q.grows(UP, later, p.speed)])
    prover.theorem("due: not granted before that tick, or ever if it returns none",
                   [*due, z3.Or(then < UP, UP > p.horizon), WORD > headroom],
                   z3.Not(admits), [*by, q.grows(later, UP - 1, p.speed)])


def verbs(facts):
    """The other verbs."""
    prover, q, p = facts.prover, facts.products, facts.pace
    ticks = smaller(NOW, p.horizon)
    given = [*p.established(), is_u64(WORD, NOW, N), WORD <= MAX_WORD]
    clock = [*q.fits(ticks, p.speed)]

    m = Machine()
    after, n, available, accrued = p.take_up_to(m, WORD, NOW, N)
    by = [*clock, facts.made_at(NOW, accrued), q.grows(n, available, p.permit), q.grows(z3.IntVal(0), n, p.permit),
          q.grows(z3.IntVal(1), n, p.permit), facts.burst_at(available), q.grows(p.burst + 1, available, p.permit)]
    here = [*given, *m.facts]
    prover.theorem("take_up_to, available: nothing wraps", here, m.nothing_wraps(), by)
    prover.theorem("available: at most the burst", here, available <= p.burst, by)
    one = z3.If(n == 0, WORD <= U64, WORD + n * p.permit <= accrued + p.capacity)
    prover.theorem("take_up_to: the step would grant what it takes", here, one, by)
    more = available + 1
    prover.theorem("available: the step would deny one more", here,
                   z3.Or(more > p.burst, WORD + more * p.permit > accrued + p.capacity),
                   [*by, q.grows(p.burst + 1, more, p.permit)])
    prover.theorem("take_up_to: never lowers the word, n = 0 leaves it, never writes all ones", here,
                   z3.And(after >= WORD, z3.Implies(n == 0, after == WORD), after <= MAX_WORD), by)

    m = Machine()
    after, accrued = p.initial_word(m, NOW)
    by = [*clock, facts.made_at(NOW, accrued), facts.burst_at(p.deficit)]
    prover.theorem("initial_word: nothing wraps, never all ones", [*given, *m.facts],
                   z3.And(m.nothing_wraps(), after <= MAX_WORD), by)

    mark = z3.Int("mark")
    for name, run in (("refund", lambda m: p.refund(m, WORD, NOW, N)),
                      ("undo", lambda m: p.undo(m, WORD, NOW, N, mark))):
        m = Machine()
        after, back, units, accrued = run(m)
        (floor,) = variables(m, "back_")
        by = [*clock, facts.made_at(NOW, accrued), q.grows(z3.IntVal(0), N, p.permit), q.grows(z3.IntVal(2), p.permit, floor),
              q.grows(z3.IntVal(1), p.permit, floor), q.grows(N, floor, p.permit)]
        here = [*given, is_u64(mark), *m.facts]
        prover.theorem(f"{name}: nothing wraps", here, m.nothing_wraps(), by)
        prover.theorem(f"{name}: never raises the word, or lowers it below the clock or by more than n", here,
                       z3.And(after <= WORD, after >= smaller(WORD, accrued), WORD - after <= N * p.permit), by)
        prover.theorem(f"{name}: never reports more than n as returned", here, back <= N, by)
        if name == "undo":
            prover.theorem("undo: returns nothing that the clock has passed", here,
                           z3.Implies(mark <= accrued, after == WORD), by)

    m = Machine()
    after, n, clear, debt, base, fit, accrued = p.charge(m, WORD, NOW, N)
    (owed,) = variables(m, "debt_")
    by = [*clock, facts.made_at(NOW, accrued), q.grows(n, fit, p.permit), q.grows(z3.IntVal(0), n, p.permit),
          q.grows(z3.IntVal(2), p.permit, owed), facts.burst_at(z3.IntVal(0))]
    here = [*given, *m.facts]
    prover.theorem("charge: nothing wraps", here, m.nothing_wraps(), by)
    prover.theorem("charge: never lowers the word, never writes all ones, records at most n", here,
                   z3.And(after >= WORD, after <= MAX_WORD, n <= N), by)
    prover.theorem("charge: without debt, it records all of n <= burst",
                   [*here, WORD <= accrued + p.capacity, N <= p.burst], n == N,
                   [*by, facts.burst_at(N), q.grows(fit + 1, N, p.permit), facts.burst_at(fit + 1)])

    m, reference = Machine(), z3.Int("from")
    accrued = p.accrued(m, reference)
    after = p.rebase(m, WORD, accrued, NOW)
    made_to = variables(m)[1]
    earlier = smaller(reference, p.horizon)
    by = [*clock, *q.fits(earlier, p.speed), facts.made_at(NOW, made_to), facts.made_at(reference, accrued)]
    prover.theorem("rebase: nothing wraps, never all ones", [*given, is_u64(reference), *m.facts],
                   z3.And(m.nothing_wraps(), after <= MAX_WORD, after >= 0), by)
    for name, goal in rebased(p):
        prover.theorem(f"rebase: {name}", [*p.established(), *REBASED], goal)

    m, other = Machine(), Pace("next_")
    after, have, owe = p.carry_over(m, WORD, NOW, other)
    accrued, then = variables(m)
    (had,), (owed,) = variables(m, "have_"), variables(m, "owe_")
    names = "speed inverse permit capacity burst horizon deficit top whole_speed".split()
    renamed = [(getattr(p, name), getattr(other, name)) for name in names]
    by = [*clock, *q.fits(smaller(NOW, other.horizon), other.speed), facts.made_at(NOW, accrued),
          facts.accrued.at(*renamed, (NOW, NOW), (MADE, then)), *q.fits(have, other.permit), *q.fits(owe, other.permit),
          *q.fits(other.capacity, p.permit), *q.fits(p.capacity, other.permit),
          q.grows(z3.IntVal(1), p.permit, had), q.grows(z3.IntVal(1), p.permit, owed), q.grows(z3.IntVal(2), p.permit, owed)]
    prover.theorem("carry_over: nothing wraps, never all ones", [*given, *other.established(), *m.facts],
                   z3.And(m.nothing_wraps(), after <= MAX_WORD, after >= 0), by)

    m = Machine()
    after, ahead, then = p.carry_level(m, WORD, NOW, other)
    accrued, then_made = variables(m)
    (level,) = variables(m, "level_")
    by = [*clock, *q.fits(smaller(NOW, other.horizon), other.speed), facts.made_at(NOW, accrued),
          facts.accrued.at(*renamed, (NOW, NOW), (MADE, then_made)), *q.fits(ahead, other.permit),
          q.grows(z3.IntVal(1), p.permit, level), q.grows(z3.IntVal(2), p.permit, level)]
    here = [*given, *other.established(), *m.facts]
    prover.theorem("carry_level: nothing wraps, never all ones", here,
                   z3.And(m.nothing_wraps(), after <= MAX_WORD, after >= 0), by)
    prover.theorem("carry_level: never counts fewer permits, unless the word can count no more", here,
                   z3.Or(after == MAX_WORD, ahead * other.permit <= m.saturating_sub(after, then) * p.permit), by)

    m = Machine()
    ceiling = m.fits(m.div_ceil(m.mul(WORD, ONE, 128), p.speed, 128, "reset"))
    (floor,) = variables(m, "reset_")
    prover.theorem("reset_after: nothing wraps", [*given, *m.facts], m.nothing_wraps(),
                   [q.grows(z3.IntVal(ONE), p.speed, floor), q.grows(WORD + 1, floor, p.speed),
                    q.grows(p.speed, z3.IntVal(ONE), floor)])
