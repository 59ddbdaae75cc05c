"""Detects changes to the functions that the model transcribes.

The model is written by hand. If the text of a modeled function changes (comments and layout aside),
the check fails and names the function. Compare the model with the new text, then run
`scripts/prove --record`.
"""

import ast
import hashlib
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = pathlib.Path(__file__).with_name("source.json")

MODELED = {
    "src/algorithm/pace/mod.rs": [
        "from_quota", "from_interval", "fitted", "reaching", "starting_with", "gcd", "min",
    ],
    "src/algorithm/pace/accrual.rs": ["scale", "accrued", "tick_of", "is_short", "horizon", "with_idle_at"],
    "src/algorithm/pace/verbs.rs": [
        "accrued", "headroom", "step", "take_up_to", "free", "granted", "denied",
        "available", "is_idle", "initial_word", "due", "give_back", "undo", "refund", "charge",
        "carry_over", "rebase",
    ],
    "src/algorithm/pace/scaled.rs": ["carry_level"],
    "src/quota/mod.rs": ["valid_period_ns"],
    "src/outcome/granted.rs": ["reset_after", "tick_of", "with_idle_at_units"],
    "src/outcome/charged.rs": ["with_debt"],
    **{f"crates/tollgate-redis/src/lua/{script}.lua": ["(all)"]
       for script in ("bucket", "bucket_all", "bucket_denied", "bucket_life", "bucket_next", "bucket_one", "bucket_read", "bucket_seen", "bucket_used", "change", "span", "take", "time", "window")},
}

CONSTANTS = {
    "src/algorithm/pace/accrual.rs": ["SPEED_BITS"],
    "src/algorithm/pace/mod.rs": ["EXACT_N"],
    "src/quota/mod.rs": ["MIN_HORIZON_NS", "MAX_INTERVAL_NS", "MAX_PER_NS", "MAX_BURST"],
    "crates/tollgate-redis/src/lua/span.lua": ["SPAN"],
    "crates/tollgate-redis/src/lua/window.lua": ["LIMB", "MOST"],
    "crates/tollgate-redis/src/limit/bounds.rs": ["MAX_N"],
}


def text_of(path):
    text = (ROOT / path).read_text()
    comment = "--" if path.endswith(".lua") else "//"
    return re.sub(rf"{comment}[^\n]*", "", text.split("#[cfg(test)]")[0])


def functions(path):
    """Returns each function of the file by name, without comments and white space.

    A script is one function, since its parts are joined into one text.
    """
    text = text_of(path)
    if path.endswith(".lua"):
        return {"(all)": re.sub(r"\s+", " ", text)}
    found = {}
    for match in re.finditer(r"\bfn (\w+)", text):
        start = depth = text.index("{", match.end())
        depth = 0
        for end in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                break
        found[match[1]] = re.sub(r"\s+", "", text[match.start() : end + 1])
    return found


def fingerprints():
    prints = {}
    for path, names in MODELED.items():
        found = functions(path)
        for name in names:
            code = found.get(name, "(gone)")
            prints[f"{path} {name}"] = hashlib.sha256(code.encode()).hexdigest()[:16]
    return prints


def record():
    RECORD.write_text(json.dumps(fingerprints(), indent=1) + "\n")


def changed():
    """Returns the names of the functions whose text has changed since it was recorded."""
    known = json.loads(RECORD.read_text())
    return [name for name, seen in fingerprints().items() if known.get(name) != seen]


def constants():
    """Returns the constants' values, read from the source."""
    values = {}
    for path, names in CONSTANTS.items():
        for name in names:
            formula = re.search(rf"(?:const|local) {name}(?:: \w+)? = ([^;\n]+)", text_of(path))[1]
            values[name] = evaluate(ast.parse(formula, mode="eval").body)
    return values


def evaluate(node):
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return evaluate(left) * evaluate(right)
        case ast.BinOp(left=left, op=ast.LShift(), right=right):
            return evaluate(left) << evaluate(right)
    raise ValueError(f"no plain constant: {ast.dump(node)}")
