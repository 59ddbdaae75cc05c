"""Theorems, each named, timed and counted, and refutations of seeded faults.

A theorem is shown by asking z3 for a counterexample and being told that there is none; "unknown"
counts as a failure. Products of two unknowns are hard for a solver, so most theorems are shown with
such products taken as opaque numbers. What they need to know about them comes from theorems shown
before, at given terms: `by` takes nothing else, so nothing is assumed but what `given` says.
"""

import time

import z3

TIMEOUT_MS = 60_000
OUTCOMES = {"unsat": "proved", "sat": "refuted", "unknown": "unknown"}


class Instance:
    """A theorem at given terms. Only Theorem.at makes one."""

    def __init__(self, formula):
        self.formula = formula


class Theorem:
    def __init__(self, given, goal, shown):
        self.statement, self.shown = z3.Implies(z3.And(*given), goal), shown

    def at(self, *pairs):
        """The theorem with terms put for variables; nothing at all if it has not been shown."""
        if not self.shown:
            return Instance(z3.BoolVal(True))
        pairs = [(var, z3.IntVal(term) if isinstance(term, int) else term) for var, term in pairs]
        return Instance(z3.substitute(self.statement, *pairs))


class Prover:
    def __init__(self):
        self.passed = self.failed = 0

    def report(self, name, good, outcome, started):
        self.passed += good
        self.failed += not good
        seconds = time.monotonic() - started
        print(f"{'ok  ' if good else 'FAIL'} {name:<80} {outcome:<8} {seconds:6.2f} s", flush=True)

    @staticmethod
    def solve(formulas, products):
        solver = z3.SolverFor("QF_BV") if products == "bits" else z3.Solver()
        if products != "bits":
            solver.set("arith.nl", products)
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*formulas)
        return solver.check(), solver

    def theorem(self, name, given, goal, by=(), products=False):
        """For all values of its variables: if `given`, then `goal`."""
        started = time.monotonic()
        assert all(isinstance(instance, Instance) for instance in by)
        known = [*given, *(instance.formula for instance in by)]
        found, solver = self.solve([*known, z3.Not(goal)], products)
        outcome = OUTCOMES[str(found)]
        # What follows from a contradiction is worth nothing.
        if found == z3.unsat and self.solve(known, products)[0] == z3.unsat:
            found, outcome = z3.unknown, "vacuous"
        self.report(name, found == z3.unsat, outcome, started)
        if found == z3.sat:
            print_model(solver.model())
        return Theorem(given, goal, found == z3.unsat)

    def refuted(self, name, given, goal, products=True, show=None):
        """A seeded fault: some values satisfy `given` and break `goal`, and they are printed."""
        started = time.monotonic()
        found, solver = self.solve([*given, z3.Not(goal)], products)
        outcome = OUTCOMES[str(found)]
        self.report(name, found == z3.sat, outcome, started)
        if found == z3.sat:
            print_model(solver.model(), show)


def print_model(model, show=None):
    if show:
        values = [(name, model.eval(term, model_completion=True)) for name, term in show.items()]
    else:
        values = sorted((str(d), model[d]) for d in model.decls())
    print("       " + ", ".join(f"{name} = {value}" for name, value in values), flush=True)
