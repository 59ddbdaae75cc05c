"""Rust's integer operations on z3's integers.

Each operation returns the mathematical value, and records the obligation that this value fits the
type. If all obligations hold, nothing wraps, truncates or panics, and the machine computes the
mathematical value.
"""

import itertools

import z3

fresh_numbers = itertools.count()


def fresh(name):
    return z3.Int(f"{name}_{next(fresh_numbers)}")


def smaller(a, b):
    return z3.If(a < b, a, b)


def larger(a, b):
    return z3.If(a > b, a, b)


class Machine:
    def __init__(self):
        self.obligations = []
        self.facts = []
        self.path = z3.BoolVal(True)

    def when(self, condition, run):
        """Runs `run`; its obligations apply only if the condition holds."""
        before, self.path = self.path, z3.And(self.path, condition)
        value = run()
        self.path = before
        return value

    def must(self, condition):
        self.obligations.append(z3.Implies(self.path, condition))

    def fits(self, value, bits=64):
        self.must(z3.And(value >= 0, value < 1 << bits))
        return value

    def add(self, a, b, bits=64):
        return self.fits(a + b, bits)

    def sub(self, a, b, bits=64):
        return self.fits(a - b, bits)

    def mul(self, a, b, bits=64):
        return self.fits(a * b, bits)

    def div(self, a, b, name="quotient"):
        self.must(b >= 1)
        quotient = fresh(name)
        divides = z3.And(quotient * b <= a, a < quotient * b + b, quotient >= 0)
        self.facts.append(z3.Implies(z3.And(a >= 0, b >= 1), divides))
        return quotient

    def div_ceil(self, a, b, bits=64, name="ceiling"):
        floor = self.div(a, b, name)
        return self.fits(floor + z3.If(floor * b < a, 1, 0), bits)

    def shr(self, a, bits, name="shifted"):
        return self.div(a, 1 << bits, name)

    @staticmethod
    def saturating_sub(a, b):
        return z3.If(a >= b, a - b, 0)

    @staticmethod
    def saturating(value, bits=64):
        return smaller(value, (1 << bits) - 1)

    def nothing_wraps(self):
        return z3.And(*self.obligations)
