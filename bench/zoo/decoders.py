"""Decoding steps of the Llama kind, with the operators of opset 23 and decomposed."""

from __future__ import annotations

import numpy as np

from .net import Built
from .transformers import Transformer


class Decoder(Transformer):
    """A step: new tokens, keys and values of all before them, and what both engines need of either spelling."""

    def begin(self, layers: int, hidden: int, groups: int, width: int, vocabulary: int, past: int, batch: int) -> str:
        self.layers, self.width, self.groups = layers, width, groups
        ids = self.input("input_ids", self.random.integers(0, vocabulary, (batch, 1)), ["batch", "sequence"])
        self.places = self.input("position_ids", np.full((batch, 1), past, np.int64), ["batch", "sequence"])
        self.caches = [[self.input(f"past.{layer}.{kind}", self.normal(batch, groups, past, width, std=std),
                                   ["batch", groups, "past_sequence", width])
                        for kind, std in (("key", 0.7), ("value", 2.0))] for layer in range(layers)]
        return self.op("Gather", self.weight(self.normal(vocabulary, hidden), "model.embed_tokens.weight"), ids)

    def angles(self, positions: int) -> np.ndarray:
        rates = 10000.0 ** -(np.arange(0, self.width, 2) / self.width)
        return np.outer(np.arange(positions), rates)

    def swiglu(self, x: str, inner: int) -> str:
        gate = self.matmul(x, inner)
        gate = self.op("Mul", gate, self.op("Sigmoid", gate))
        return self.matmul(self.op("Mul", gate, self.matmul(x, inner)), self.values[x].shape[-1], 0.5)

    def end(self, x: str, vocabulary: int, presents: dict, external: bool) -> Built:
        logits = self.op("Identity", self.matmul(x, vocabulary, 2.0), names=["logits"])
        return self.finish({logits: ["batch", "sequence", vocabulary], **presents}, external)


def llama(layers: int = 8, hidden: int = 512, heads: int = 8, groups: int = 4, inner: int = 1376,
          vocabulary: int = 32000, positions: int = 2048, past: int = 128, batch: int = 1) -> Built:
    """With RMSNormalization, RotaryEmbedding and Attention, which also appends to the past."""
    net = Decoder("llama", opset=23, seed=230)
    width = hidden // heads
    x = net.begin(layers, hidden, groups, width, vocabulary, past, batch)
    angles = net.angles(positions)
    cosines, sines = (net.weight(table.astype(np.float32)) for table in (np.cos(angles), np.sin(angles)))
    presents = {}

    def norm(value: str) -> str:
        return net.op("RMSNormalization", value, net.weight((1 + net.normal(hidden, std=0.2)).astype(np.float32)),
                      axis=-1, epsilon=1e-6)

    for layer in range(layers):
        y = norm(x)
        query = net.op("RotaryEmbedding", net.matmul(y, hidden, 0.9), cosines, sines, net.places, num_heads=heads)
        key = net.op("RotaryEmbedding", net.matmul(y, groups * width, 0.9), cosines, sines, net.places,
                     num_heads=groups)
        value = net.matmul(y, groups * width, 2.0)
        names = [f"attention.{layer}", f"present.{layer}.key", f"present.{layer}.value"]
        y, *now = net.op("Attention", query, key, value, "", *net.caches[layer], names=names, q_num_heads=heads,
                         kv_num_heads=groups, is_causal=1)
        presents.update(dict.fromkeys(now, ["batch", groups, "total_sequence", width]))
        x = net.op("Add", x, net.matmul(y, hidden, 0.5))
        x = net.op("Add", x, net.swiglu(norm(x), inner))
    return net.end(norm(x), vocabulary, presents, external=True)


def llama_spelled(layers: int = 8, hidden: int = 512, heads: int = 8, groups: int = 4, inner: int = 1376,
                  vocabulary: int = 32000, past: int = 128, batch: int = 1) -> Built:
    """The same in small operators of opset 14, as PyTorch's exporter writes it; a mask says what may be seen."""
    net = Decoder("llama_spelled", opset=14, seed=231)
    width = hidden // heads
    x = net.begin(layers, hidden, groups, width, vocabulary, past, batch)
    mask = net.input("attention_mask", np.ones((batch, past + 1), np.int64), ["batch", "total_sequence"])
    ends = np.iinfo(np.int64).max

    rates = net.weight((10000.0 ** -(np.arange(0, width, 2) / width)).astype(np.float32).reshape(1, -1, 1))
    angles = net.op("MatMul", rates, net.op("Cast", net.op("Unsqueeze", net.places, net.ints(1)), to=1))
    angles = net.op("Transpose", angles, perm=[0, 2, 1])
    angles = net.op("Concat", angles, angles, axis=-1)
    net.rms.clear()  # angles grow with the place
    cosine, sine = (net.op("Unsqueeze", net.op(kind, angles), net.ints(1)) for kind in ("Cos", "Sin"))

    total, count = net.scalar_size(mask, 1), net.scalar_size(net.places, 1)
    columns = net.op("Range", net.const(0, np.int64), total, net.const(1, np.int64))
    rows = net.op("Range", net.op("Sub", total, count), total, net.const(1, np.int64))
    seen = net.op("LessOrEqual", net.op("Unsqueeze", columns, net.ints(0)), net.op("Unsqueeze", rows, net.ints(1)))
    seen = net.op("And", net.op("Unsqueeze", seen, net.ints(0, 1)),
                  net.op("Unsqueeze", net.op("Cast", mask, to=9), net.ints(1, 2)))
    bias = net.op("Where", seen, net.const(0.0), net.const(float(np.finfo(np.float32).min)))

    def norm(value: str) -> str:
        square = net.op("ReduceMean", net.op("Pow", value, net.const(2.0)), axes=[-1])
        y = net.op("Mul", value, net.op("Reciprocal", net.op("Sqrt", net.op("Add", square, net.const(1e-6)))))
        return net.op("Mul", net.weight((1 + net.normal(hidden, std=0.2)).astype(np.float32)), y)

    def turned(value: str) -> str:
        half = net.ints(width // 2)
        first = net.op("Slice", value, net.ints(0), half, net.ints(3), net.ints(1))
        second = net.op("Slice", value, half, net.ints(ends), net.ints(3), net.ints(1))
        y = net.op("Concat", net.op("Neg", second), first, axis=-1)
        return net.op("Add", net.op("Mul", value, cosine), net.op("Mul", y, sine))

    def repeated(value: str) -> str:
        """Each group's keys for all of its heads."""
        y = net.op("Unsqueeze", value, net.ints(2))
        shape = net.op("Concat", net.size(value, 0), net.ints(groups, heads // groups), net.size(value, 2),
                       net.ints(width), axis=0)
        return net.reshape(net.op("Expand", y, shape), net.size(value, 0), heads, net.size(value, 2), width)

    presents = {}
    for layer in range(layers):
        y = norm(x)
        query = turned(net.split_heads(net.matmul(y, hidden, 0.9), heads, [0, 2, 1, 3]))
        key = turned(net.split_heads(net.matmul(y, groups * width, 0.9), groups, [0, 2, 1, 3]))
        value = net.split_heads(net.matmul(y, groups * width, 2.0), groups, [0, 2, 1, 3])
        key = net.op("Concat", net.caches[layer][0], key, axis=2, names=[f"present.{layer}.key"])
        value = net.op("Concat", net.caches[layer][1], value, axis=2, names=[f"present.{layer}.value"])
        presents[key] = presents[value] = ["batch", groups, "total_sequence", width]
        scores = net.op("MatMul", query, net.op("Transpose", repeated(key), perm=[0, 1, 3, 2]))
        scores = net.op("Add", net.op("Mul", scores, net.const(width ** -0.5)), bias)
        y = net.join_heads(net.op("MatMul", net.op("Softmax", scores, axis=-1), repeated(value)))
        x = net.op("Add", x, net.matmul(y, hidden, 0.5))
        x = net.op("Add", x, net.swiglu(norm(x), inner))
    return net.end(norm(x), vocabulary, presents, external=True)
