"""Time of one forward pass: PyTorch eager and compiled, ONNX Runtime, the reference, the engine.

python benchmarks/hosts.py [--json] [--no-compile]

Needs the extra `hosts`. Each number is the median of several passes over one drawn string, in
milliseconds of the clock, on one thread; compilation and loading are outside. Every logit is first
compared with the reference. The structured engine answers where the others give logits.
"""

import json
import platform
import random
import statistics
import sys
import time

import numpy as np
import torch

import transformist as tf
from transformist.hosts import onnx_graph
from transformist.hosts.named_arrays import token_ids
from transformist.programs import PROGRAMS

PROGRAM_NAMES = ("dyck-1", "histogram", "reverse")
LENGTHS = (64, 256, 1024)
N = 1024
ROUNDS = 7
WITHIN = 1e-6


def milliseconds(call):
    """The median time of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return round(statistics.median(times), 2)


def results(name, with_compiled):
    model = tf.compile(PROGRAMS[name], max_length=N, arithmetic="float64")
    module = tf.to_torch(model).eval()
    compiled = torch.compile(module, dynamic=True) if with_compiled else None
    logits = onnx_graph.run(onnx_graph.write(model, "float64"))
    for n in LENGTHS:
        x = "".join(random.Random(n).choices(model.alphabet, k=n))
        ids, lengths = module.encode_batch([x])
        rows, given = model.rows_read(n), ([token_ids(model, x)], [ids.shape[1]])
        expected = model.values([x])[0]
        calls = {
            "torch eager": lambda ids=ids, lengths=lengths: module(ids, lengths).logits,
            "ONNX Runtime": lambda given=given: logits(*given),
            "reference": lambda x=x: model.values([x]),
            "structured engine": lambda x=x: tf.run(model, x, engine="structured"),
        }
        if compiled is not None:
            calls["torch compiled"] = lambda ids=ids, lengths=lengths: compiled(ids, lengths).logits
        with torch.inference_mode():
            for kind in calls.keys() & {"torch eager", "torch compiled", "ONNX Runtime"}:
                found = np.asarray(calls[kind]())[0, rows]
                if not np.allclose(found, expected, rtol=0, atol=WITHIN):
                    sys.exit(f"{kind} gives other logits than the reference: {name}, n = {n}")
            times = {kind: milliseconds(call) for kind, call in calls.items()}
        yield {"program": name, "n": n, "ms": times}


def main():
    if not {*sys.argv[1:]} <= {"--json", "--no-compile"}:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    machine = f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}"
    with_compiled = "--no-compile" not in sys.argv[1:]
    found = [each for name in PROGRAM_NAMES for each in results(name, with_compiled)]
    if "--json" in sys.argv[1:]:
        print(json.dumps({"machine": machine, "results": found}, indent=1))
        return
    print(f"{machine}; float64, milliseconds of one forward pass")
    for each in found:
        times = ", ".join(f"{kind} {ms}" for kind, ms in each["ms"].items())
        print(f"{each['program']:10} n = {each['n']:4}: {times}")


if __name__ == "__main__":
    main()
