"""Time of one forward pass, and of continuing a text, in other software and here.

python benchmarks/hosts.py [--json] [--no-compile]

Needs the extra `hosts`. Forward: PyTorch eager and compiled, ONNX Runtime, the reference and the
structured engine, on one drawn string. Each number is the median of several passes, in milliseconds
of the clock, on one thread; compilation and loading are outside. Every logit is first compared with
the reference. The structured engine answers where the others give logits.

Generation: an induction model continues a text in GPT-2 of transformers (`generate`, with a cache)
and by `tf.decoder`, in float32; the texts are first compared.

A ratio is the time beside that of PyTorch eager, or of `generate`. The passes of all kinds take
turns, so that other work on the machine slows all of them alike.
"""

import json
import platform
import random
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import transformers

import transformist as tf
from transformist.hosts import onnx_graph
from transformist.hosts.host import HOSTS
from transformist.hosts.named_arrays import token_ids
from transformist.programs import PROGRAMS

PROGRAM_NAMES = ("dyck-1", "histogram", "reverse")
LENGTHS = (64, 256, 1024)
GENERATED = (64, 256)
N = 1024
ROUNDS = 7
WITHIN = 1e-6


def milliseconds(calls):
    """The median time of each call, after one that is not counted; the calls take turns."""
    times = {kind: [] for kind in calls}
    for turn in range(ROUNDS + 1):
        for kind, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                times[kind].append(1e3 * (time.perf_counter() - start))
    return {kind: round(statistics.median(each), 2) for kind, each in times.items()}


def beside(times, kind):
    """The times, and the ratio of each to that of one kind."""
    return {"ms": times, "ratio": {each: round(ms / times[kind], 3) for each, ms in times.items()}}


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
            times = milliseconds(calls)
        yield {"task": f"forward {name}", "n": n, **beside(times, "torch eager")}


def generated():
    """Times of continuing a text of half the length N to N symbols."""
    name = "induction-most-recent"
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    for n in GENERATED:
        model = tf.compile(PROGRAMS[name], max_length=n, **HOSTS["gpt2"].options)
        text = "".join(random.Random(n).choices(model.alphabet, k=n // 2))
        with TemporaryDirectory() as held:
            tf.export(model, Path(held) / "made", "gpt2")
            tokenizer = transformers.AutoTokenizer.from_pretrained(Path(held) / "made")
            network = transformers.AutoModelForCausalLM.from_pretrained(Path(held) / "made")
        batch = tokenizer(text, return_tensors="pt")

        def in_gpt2(network=network, batch=batch, new=n - n // 2, tokenizer=tokenizer):
            made = network.generate(**batch, max_new_tokens=new)
            return tokenizer.decode(made[0], skip_special_tokens=True)

        def in_decoder(model=model, text=text, new=n - n // 2):
            reading = tf.decoder(model, arithmetic="float32")
            made = [reading.take_all(text)[-1]]
            while len(made) < new:
                made.append(reading.take(made[-1]))
            return text + "".join(made)

        if in_gpt2() != in_decoder():
            sys.exit(f"generate and the decoder continue the text differently: n = {n}")
        times = milliseconds({"generate": in_gpt2, "decoder": in_decoder})
        yield {"task": f"generate {name}", "n": n, **beside(times, "generate")}


def main():
    if not {*sys.argv[1:]} <= {"--json", "--no-compile"}:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    machine = f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}"
    with_compiled = "--no-compile" not in sys.argv[1:]
    found = [each for name in PROGRAM_NAMES for each in results(name, with_compiled)]
    found += generated()
    if "--json" in sys.argv[1:]:
        print(json.dumps({"machine": machine, "results": found}, indent=1))
        return
    print(f"{machine}; milliseconds, and beside each its ratio to the first kind")
    for each in found:
        times = ", ".join(f"{kind} {ms} ({each['ratio'][kind]})" for kind, ms in each["ms"].items())
        print(f"{each['task']}, n = {each['n']}: {times}")


if __name__ == "__main__":
    main()
