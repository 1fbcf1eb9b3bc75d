"""How long the structured engine takes on long inputs, beside the same model dense in numpy.

python benchmarks/structured.py [--json] [--quick]

Each case runs in a process of its own, so that its peak memory is its own. The first call in the
process, on 2,048 symbols, compiles or loads the compiled code and is reported by itself; the time
is the best of three calls, by the clock and of the processor. The answer is compared with that of a
plain algorithm. The dense evaluation is attention by matrix products, in blocks of 1,024 rows.
"""

import json
import math
import platform
import random
import resource
import subprocess
import sys
import time

import numpy as np

import transformist as tf
from transformist.arithmetic import number_system
from transformist.model import MASKS
from transformist.programs import PROGRAMS

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LENGTHS = (10**5, 10**6)
DENSE = 16_384
ROUNDS = 3
BLOCK = 1024


@tf.program(alphabet=LETTERS)
def induction(x):
    """What followed the last earlier occurrence of each of 26 symbols."""
    previous = x.predecessor(default="none")
    return x.select(previous, mask="future").rightmost(x, default=x).next_token()


def brackets(n):
    model = tf.recipe("dyck-1").build(max_length=n)
    return model, "(" * (n // 2) + ")" * (n // 2), True


def following(n, model):
    x = "".join(random.Random(0).choices(LETTERS, k=n))
    last, answer = {}, []
    for i, symbol in enumerate(x):
        if i:
            last[x[i - 1]] = symbol
        answer.append(last.get(symbol, symbol))
    return model, x, "".join(answer)


def induction_recipe(n):
    return following(n, tf.recipe("induction-most-recent").build(alphabet=LETTERS))


def induction_program(n):
    return following(n, tf.compile(induction, max_length=n, arithmetic="float64"))


def backwards(n, weighting):
    model = tf.compile(PROGRAMS["reverse"], max_length=n, weighting=weighting, arithmetic="float64")
    x = "".join(random.Random(0).choices("abc", k=n))
    return model, x, x[::-1]


def nested(n):
    """Dyck-2-8: a well nested string, drawn."""
    rnd, stack, x = random.Random(0), [], []
    n -= n % 2
    while len(x) < n:
        full = len(stack) in (8, n - len(x))
        if stack and (full or rnd.random() < 0.5):
            x.append(stack.pop())
        else:
            opened = rnd.choice("([")
            x.append(opened)
            stack.append(")" if opened == "(" else "]")
    return tf.recipe("dyck-k-d").build(kinds=2, depth=8), "".join(x), True


CASES = {
    "dyck-1": brackets,
    "induction, 26 symbols": induction_recipe,
    "induction, 26 symbols, softmax": induction_program,
    "quadratic lookup": lambda n: backwards(n, "average-hard"),
    "quadratic lookup, softmax": lambda n: backwards(n, "softmax"),
    "dyck-2-8": nested,
}


def dense_head(head, z):
    """Attention by matrix products."""
    q, k, v = (z @ W.T + b for W, b in ((head.W_Q, head.b_Q), (head.W_K, head.b_K),
                                        (head.W_V, head.b_V)))  # fmt: skip
    c, j = np.empty_like(v), np.arange(len(z))
    for start in range(0, len(z), BLOCK):
        rows = slice(start, start + BLOCK)
        seen = MASKS[head.mask](j[rows, None], j[None, :])
        s = np.where(seen, q[rows] @ k.T / math.sqrt(k.shape[1]), -np.inf)
        top = s.max(axis=1, keepdims=True)
        top[np.isinf(top)] = 0
        if head.weighting == "softmax":
            weights = np.exp(s - top)
        else:
            weights = ((s == top) & seen).astype(float)
            if head.weighting == "rightmost-hard":
                last = weights.shape[1] - 1 - weights[:, ::-1].argmax(axis=1)
                weights = np.where(j[None, :] == last[:, None], weights, 0.0)
        total = weights.sum(axis=1, keepdims=True)
        c[rows] = weights @ v / np.where(total == 0, 1, total)
    return (c if head.W_O is None else c @ head.W_O.T) + head.b_O


def dense(model, z):
    """The final vectors; the models here have no norms, and ReLUs."""
    for layer in model.layers:
        if layer.heads:
            z = z + sum(dense_head(head, z) for head in layer.heads)
        if layer.feed_forward is not None:
            ff = layer.feed_forward
            z = z + np.maximum(z @ ff.W_1.T + ff.b_1, 0) @ ff.W_2.T + ff.b_2
    return z


def timed(call):
    """The result, with the best seconds of the clock and of the processor."""
    walls, processors = [], []
    for _ in range(ROUNDS):
        wall, processor = time.perf_counter(), time.process_time()
        result = call()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return result, min(walls), min(processors)


def case(name, n):
    from transformist.engines.structured import evaluate

    model, x, expected = CASES[name](n)
    start = time.perf_counter()
    evaluate(model, x[:2048])
    first = time.perf_counter() - start
    result, wall, processor = timed(lambda: evaluate(model, x).answer)
    found = {
        "case": name,
        "n": n,
        "first_call_seconds": round(first, 2),
        "seconds": round(wall, 3),
        "processor_seconds": round(processor, 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "ratio_to_torch": None,
        "ratio_to_numpy": None,
        "right": bool(result == expected),
    }
    if n == DENSE:
        z = model.embedding([x], number_system("float64"))[0]
        start = time.perf_counter()
        final = dense(model, z)
        found["ratio_to_numpy"] = round((time.perf_counter() - start) / wall, 1)
        found["right"] &= bool(np.allclose(final, evaluate(model, x).vectors, atol=1e-6))
    return found


def results(lengths):
    for name in CASES:
        rows = []
        for n in lengths:
            command = [sys.executable, __file__, "--case", name, str(n)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout))
        for before, row in zip([None, *rows], rows, strict=False):
            row["exponent"] = None
            if before is not None and before["n"] >= LENGTHS[0]:
                ratio = row["processor_seconds"] / before["processor_seconds"]
                row["exponent"] = round(math.log(ratio) / math.log(row["n"] / before["n"]), 2)
        yield from rows


def main():
    if "--case" in sys.argv:
        name, n = sys.argv[-2:]
        print(json.dumps(case(name, int(n))))
        return
    lengths = (1024, DENSE) if "--quick" in sys.argv else (DENSE, *LENGTHS)
    found = list(results(lengths))
    if "--json" in sys.argv:
        print(json.dumps({"machine": platform.platform(), "results": found}))
        return
    columns = ("case", "n", "seconds", "processor_seconds", "peak_mib", "exponent")
    columns += ("ratio_to_numpy", "first_call_seconds", "right")
    print(" | ".join(columns))
    for row in found:
        print(" | ".join("" if row[key] is None else str(row[key]) for key in columns))


if __name__ == "__main__":
    main()
