"""Processor time and memory of one run of drawn ONNX graphs, narrow and wide.

python benchmarks/onnx_graphs.py

Needs the extra `onnx`. Each graph has two layers of width d, a head of d/10 coordinates and a
network of d hidden units in each, in float32, and runs in a process of its own on one thread:
processor time of a run after the first, and the growth of the largest memory of the process.
"""

import resource
import subprocess
import sys
import time

import numpy as np

import transformist as tf
from transformist.hosts import onnx_graph

SIZES = ((20, 10), (20, 1000), (500, 10), (500, 1000))
"""Width and number of rows of each graph."""


def drawn(width):
    """A model whose weights are multiples of 1/64."""
    source = np.random.default_rng(width)

    def numbers(*shape):
        return source.integers(-8, 9, shape) / 64

    def layer(weighting):
        queries, outputs = (width // 10, width), (width, width // 10)
        head = tf.Attention(
            W_Q=numbers(*queries), W_K=numbers(*queries),
            W_V=numbers(*queries), W_O=numbers(*outputs), weighting=weighting,
        )  # fmt: skip
        network = tf.FeedForward(W_1=numbers(width, width), W_2=numbers(width, width))
        return tf.Layer((head,), network)

    return tf.Transformer(
        stream=tf.Stream(tuple(f"x{k}" for k in range(width))),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=numbers(2, width)),
        layers=(layer("softmax"), layer("average-hard")),
        read_out=tf.Binary(W_out=numbers(1, width), at="every"),
    )


def measure(width, rows):
    """Print the milliseconds and the megabytes of a run."""
    logits = onnx_graph.run(onnx_graph.write(drawn(width), "float32"))
    ids = np.arange(rows)[None] % 2
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    logits(ids, [rows])
    start, runs = time.process_time(), 2000 // rows
    for _ in range(runs):
        logits(ids, [rows])
    milliseconds = 1e3 * (time.process_time() - start) / runs
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    print(f"width {width:3}, {rows:4} rows: {milliseconds:6.1f} ms, {megabytes:4.0f} MB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(*map(int, sys.argv[1:]))
    for width, rows in SIZES if len(sys.argv) == 1 else ():
        subprocess.run([sys.executable, __file__, str(width), str(rows)], check=True)
