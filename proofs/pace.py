"""A transcription of src/algorithm/pace, function by function, onto machine.Machine."""

import z3

import source
from machine import fresh, larger, smaller

CONSTANTS = source.constants()
SPEED_BITS = CONSTANTS["SPEED_BITS"]
ONE = 1 << SPEED_BITS
EXACT_N = CONSTANTS["EXACT_N"]
MIN_HORIZON = CONSTANTS["MIN_HORIZON_NS"]
MAX_INTERVAL = CONSTANTS["MAX_INTERVAL_NS"]
MAX_PER_NS = CONSTANTS["MAX_PER_NS"]
MAX_BURST = CONSTANTS["MAX_BURST"]
U64 = (1 << 64) - 1
MAX_WORD = U64 - 1


def is_u64(*values):
    return z3.And(*[z3.And(value >= 0, value <= U64) for value in values])


def is_floor(quotient, a, b):
    return z3.And(quotient * b <= a, a < quotient * b + b)


class Pace:
    """The fields as unknowns, and what the constructors establish about them.

    constructors.py proves that they do.
    """

    def __init__(self, name=""):
        fields = "speed inverse permit capacity burst horizon deficit"
        for field in fields.split():
            setattr(self, field, z3.Int(name + field))
        # made(horizon), and the whole speed of an exact pace.
        self.top = z3.Int(name + "top")
        self.whole_speed = z3.Int(name + "whole_speed")

    def established(self):
        p = self
        return [
            is_u64(p.speed, p.inverse, p.permit, p.capacity, p.burst, p.horizon, p.deficit),
            p.speed >= ONE,
            p.permit >= 1,
            p.burst >= 1,
            is_floor(p.burst, p.capacity, p.permit),
            p.deficit <= p.burst,
            p.inverse * p.speed <= 1 << 124,
            (p.inverse + 1) * p.speed >= 1 << 124,
            is_floor(p.top, p.horizon * p.speed, ONE),
            p.top >= 0,
            p.top + 2 * p.capacity <= MAX_WORD,
            p.horizon >= MIN_HORIZON - 1,
        ]

    def is_exact(self):
        """Whole units accrue each nanosecond."""
        return self.speed == self.whole_speed * ONE

    def accrued(self, m, now, clamped=True):
        ticks = smaller(now, self.horizon) if clamped else now
        return m.fits(m.shr(m.mul(ticks, self.speed, 128), SPEED_BITS, "accrued"))

    def is_short(self, m, tick, units):
        return m.mul(tick, self.speed, 128) < m.mul(units, ONE, 128)

    def tick_of(self, m, units, corrections=2):
        tick = m.fits(m.shr(m.mul(units, self.inverse, 128), 64, "estimate"))
        for _ in range(corrections):
            tick = m.add(tick, z3.If(self.is_short(m, tick, units), 1, 0))
        return tick

    def headroom(self, m, n):
        return m.sub(self.capacity, m.mul(n, self.permit))

    def taken(self, m, word, accrued, n):
        """The next word of step and take_up_to."""
        run = lambda: m.add(larger(word, accrued), m.mul(n, self.permit))
        return z3.If(n == 0, word, m.when(n != 0, run))

    def step(self, m, word, now, n):
        """For a request of at most the burst: whether it is granted, the next word, and, if it is
        denied, the units that the clock must have accrued first."""
        accrued = self.accrued(m, now)
        headroom = self.headroom(m, n)
        denied = word > m.add(accrued, headroom)
        units = m.when(denied, lambda: m.sub(word, headroom))
        after = m.when(z3.Not(denied), lambda: self.taken(m, word, accrued, n))
        return z3.Not(denied), after, units, accrued

    def free(self, m, word, accrued):
        return m.saturating_sub(self.capacity, m.saturating_sub(word, accrued))

    def available(self, m, word, accrued):
        return m.div(self.free(m, word, accrued), self.permit, "available")

    def take_up_to(self, m, word, now, n):
        accrued = self.accrued(m, now)
        available = self.available(m, word, accrued)
        n = smaller(n, available)
        return self.taken(m, word, accrued, n), n, available, accrued

    def initial_word(self, m, now):
        deficit = self.deficit
        accrued = self.accrued(m, now)
        run = lambda: m.add(accrued, m.mul(deficit, self.permit))
        return z3.If(deficit == 0, 0, m.when(deficit != 0, run)), accrued

    def give_back(self, m, word, accrued, units):
        units = smaller(units, m.saturating_sub(word, accrued))
        return m.sub(word, units), m.div_ceil(units, self.permit, name="back"), units

    def undo(self, m, word, now, n, mark):
        accrued = self.accrued(m, now)
        units = m.saturating(n * self.permit)
        ahead = m.saturating_sub(mark, accrued)
        return *self.give_back(m, word, accrued, smaller(units, ahead)), accrued

    def refund(self, m, word, now, n):
        accrued = self.accrued(m, now)
        return *self.give_back(m, word, accrued, m.saturating(n * self.permit)), accrued

    def charge(self, m, word, now, n):
        accrued = self.accrued(m, now)
        base = smaller(larger(word, accrued), MAX_WORD)
        fit = m.div(m.sub(MAX_WORD, base), self.permit, "fit")
        n = z3.If(n == 0, 0, smaller(n, fit))
        run = lambda: m.add(base, m.mul(n, self.permit))
        after = z3.If(n == 0, word, m.when(n != 0, run))
        clear = m.saturating_sub(after, self.headroom(m, z3.IntVal(0)))
        debt = m.div_ceil(m.saturating_sub(clear, accrued), self.permit, name="debt")
        return after, n, clear, debt, base, fit, accrued

    def rebase(self, m, word, made_from, to):
        ahead = m.saturating_sub(word, made_from)
        made_to = self.accrued(m, to)
        return z3.If(ahead == 0, 0, smaller(m.saturating(made_to + ahead), MAX_WORD))

    def carry_over(self, m, word, now, other):
        accrued, then = self.accrued(m, now), other.accrued(m, now)
        have = self.free(m, word, accrued)
        owe = m.saturating_sub(m.saturating_sub(word, accrued), self.headroom(m, z3.IntVal(0)))
        converted = m.div(m.mul(have, other.permit, 128), self.permit, "have")
        owed = m.div_ceil(m.mul(owe, other.permit, 128), self.permit, 128, "owe")
        lack = m.add(m.saturating_sub(other.capacity, converted), owed, 128)
        place = m.saturating(then + lack, 128)
        after = z3.If(lack == 0, 0, smaller(place, MAX_WORD))
        reaches = m.mul(other.capacity, self.permit, 128) <= m.mul(self.capacity, other.permit, 128)
        fresh_one = z3.And(word <= accrued, reaches)
        return z3.If(fresh_one, 0, after), have, owe

    def carry_level(self, m, word, now, other):
        accrued, then = self.accrued(m, now), other.accrued(m, now)
        ahead = m.saturating_sub(word, accrued)
        units = m.div_ceil(m.mul(ahead, other.permit, 128), self.permit, 128, "level")
        place = m.saturating(then + units, 128)
        return z3.If(ahead == 0, 0, smaller(place, MAX_WORD)), ahead, then
