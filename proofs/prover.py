"""Named and timed theorems, and refutations of seeded faults.

To prove a theorem, z3 searches for a counterexample and finds none; "unknown" is a failure. Products
of two unknowns are hard for a solver, so most theorems treat such products as opaque numbers. What
they need to know about a product comes from earlier theorems, applied to given terms. `by` accepts
only such instances, so a theorem assumes nothing except `given`.
"""

import time

import z3

TIMEOUT_MS = 60_000
OUTCOMES = {"unsat": "proved", "sat": "refuted", "unknown": "unknown"}


class Instance:
    """A theorem applied to given terms. Only Theorem.at creates one."""

    def __init__(self, formula):
        self.formula = formula


class Theorem:
    def __init__(self, given, goal, shown):
        self.statement, self.shown = z3.Implies(z3.And(*given), goal), shown

    def at(self, *pairs):
        """Applies the theorem to these terms. If it was not proved, the result says nothing."""
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
        """Proves: for all values of the variables, `given` implies `goal`."""
        started = time.monotonic()
        assert all(isinstance(instance, Instance) for instance in by)
        known = [*given, *(instance.formula for instance in by)]
        found, solver = self.solve([*known, z3.Not(goal)], products)
        outcome = OUTCOMES[str(found)]
        # A contradiction would prove anything, so the assumptions must be satisfiable.
        if found == z3.unsat and self.solve(known, products)[0] == z3.unsat:
            found, outcome = z3.unknown, "vacuous"
        self.report(name, found == z3.unsat, outcome, started)
        if found == z3.sat:
            print_model(solver.model())
        return Theorem(given, goal, found == z3.unsat)

    def refuted(self, name, given, goal, products=True, show=None):
        """Refutes a seeded fault: prints values that satisfy `given` and break `goal`."""
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
