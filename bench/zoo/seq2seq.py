"""Encoder and decoder in one graph: T5 with places relative to each other, Whisper with convolutions in front."""

from __future__ import annotations

import numpy as np

from .net import Built
from .towers import encoder_layer, norm
from .transformers import Transformer


class T5(Transformer):
    """T5 scales no scores and has no biases: its norms are RMS norms."""

    def rms_norm(self, x: str) -> str:
        square = self.op("ReduceMean", self.op("Pow", x, self.const(2.0)), axes=[-1])
        y = self.op("Mul", x, self.op("Div", self.const(1.0), self.op("Sqrt", self.op("Add", square, self.const(1e-6)))))
        return self.op("Mul", self.weight((1 + self.normal(self.values[x].shape[-1], std=0.2)).astype(np.float32)), y)

    def buckets(self, queries: str, keys: str, both: bool, heads: int, count: int = 32, most: int = 128) -> str:
        """The bias of each pair of places, [1, heads, queries, keys]: near ones exactly, far ones by logarithm."""
        zero, one = self.const(0, np.int64), self.const(1, np.int64)
        rows = self.op("Unsqueeze", self.op("Range", zero, queries, one), self.ints(1))
        columns = self.op("Unsqueeze", self.op("Range", zero, keys, one), self.ints(0))
        apart = self.op("Sub", columns, rows)
        if both:
            count //= 2
            base = self.op("Mul", self.op("Cast", self.op("Greater", apart, zero), to=7), self.const(count, np.int64))
            apart = self.op("Abs", apart)
        else:
            apart = self.op("Neg", self.op("Min", apart, self.op("ConstantOfShape", self.op("Shape", apart),
                                                                 value=self.tensor(np.zeros(1, np.int64)))))
        exact = count // 2
        far = self.op("Log", self.op("Div", self.op("Cast", apart, to=1), self.const(float(exact))))
        far = self.op("Mul", self.op("Div", far, self.const(np.log(most / exact))), self.const(float(count - exact)))
        far = self.op("Add", self.op("Cast", far, to=7), self.const(exact, np.int64))
        far = self.op("Min", far, self.op("ConstantOfShape", self.op("Shape", far),
                                          value=self.tensor(np.array([count - 1]))))
        place = self.op("Where", self.op("Less", apart, self.const(exact, np.int64)), apart, far)
        place = self.op("Add", place, base) if both else place
        bias = self.op("Gather", self.weight(self.normal(32, heads, std=0.5)), place)
        return self.op("Unsqueeze", self.op("Transpose", bias, perm=[2, 0, 1]), self.ints(0))

    def attend(self, x: str, memory: str, heads: int, bias: str) -> str:
        hidden = self.values[x].shape[-1]
        width = hidden // heads
        query = self.split_heads(self.matmul(x, hidden, 0.9 * width ** -0.5), heads, [0, 2, 1, 3])
        key = self.split_heads(self.matmul(memory, hidden, 0.9), heads, [0, 2, 3, 1])
        value = self.split_heads(self.matmul(memory, hidden, 2.0), heads, [0, 2, 1, 3])
        scores = self.op("Add", self.op("MatMul", query, key), bias)
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), value)
        return self.matmul(self.join_heads(y), hidden, 0.5)

    def feed_forward(self, x: str) -> str:
        hidden = self.values[x].shape[-1]
        return self.matmul(self.op("Relu", self.matmul(x, 4 * hidden)), hidden, 0.5)


def t5(layers: int = 4, hidden: int = 512, heads: int = 8, vocabulary: int = 32128, length: int = 64,
       target: int = 16, batch: int = 1) -> Built:
    """Reads a text and scores each next token of its answer."""
    net = T5("t5", opset=13, seed=5)
    ids = net.input("input_ids", net.random.integers(0, vocabulary, (batch, length)), ["batch", "sequence"])
    mask = net.input("attention_mask", np.ones((batch, length), np.int64), ["batch", "sequence"])
    answer = net.input("decoder_input_ids", net.random.integers(0, vocabulary, (batch, target)), ["batch", "answer"])
    table = net.weight(net.normal(vocabulary, hidden), "shared.weight")
    least = net.const(float(np.finfo(np.float32).min))
    hide = net.op("Sub", net.const(1.0), net.op("Cast", net.op("Unsqueeze", mask, net.ints(1, 2)), to=1))
    hide = net.op("Mul", hide, least)

    x, count = net.op("Gather", table, ids), net.scalar_size(ids, 1)
    bias = net.op("Add", net.buckets(count, count, True, heads), hide)
    for _ in range(layers):
        y = net.rms_norm(x)
        x = net.op("Add", x, net.attend(y, y, heads, bias))
        x = net.op("Add", x, net.feed_forward(net.rms_norm(x)))
    memory = net.rms_norm(x)

    x, count = net.op("Gather", table, answer), net.scalar_size(answer, 1)
    rows = net.op("Range", net.const(0, np.int64), count, net.const(1, np.int64))
    later = net.op("Greater", net.op("Unsqueeze", rows, net.ints(0)), net.op("Unsqueeze", rows, net.ints(1)))
    causal = net.op("Mul", net.op("Cast", later, to=1), least)
    bias = net.op("Add", net.buckets(count, count, False, heads), causal)
    for _ in range(layers):
        y = net.rms_norm(x)
        x = net.op("Add", x, net.attend(y, y, heads, bias))
        x = net.op("Add", x, net.attend(net.rms_norm(x), memory, heads, hide))
        x = net.op("Add", x, net.feed_forward(net.rms_norm(x)))
    logits = net.matmul(net.rms_norm(x), vocabulary, 2.0)
    return net.finish({logits: ["batch", "answer", vocabulary], memory: ["batch", "sequence", hidden]})


def cross_attention(net: Transformer, x: str, memory: str, heads: int) -> str:
    hidden = net.values[x].shape[-1]
    scaled = net.op("Mul", net.matmul_add(norm(net, x), hidden, 0.9), net.const((hidden // heads) ** -0.5))
    query = net.split_heads(scaled, heads, [0, 2, 1, 3])
    key = net.split_heads(net.matmul(memory, hidden, 0.9), heads, [0, 2, 3, 1])
    value = net.split_heads(net.matmul_add(memory, hidden, 2.0), heads, [0, 2, 1, 3])
    y = net.op("MatMul", net.op("Softmax", net.op("MatMul", query, key), axis=-1), value)
    return net.op("Add", x, net.matmul_add(net.join_heads(y), hidden, 0.5))


def whisper(layers: int = 4, hidden: int = 384, heads: int = 6, mels: int = 80, frames: int = 3000,
            vocabulary: int = 51864, positions: int = 448, target: int = 4, batch: int = 1) -> Built:
    """Whisper tiny: from a spectrogram and the tokens so far to the scores of each next one."""
    net = Transformer("whisper", opset=17, seed=57)
    x = net.input("input_features", net.normal(batch, mels, frames), ["batch", mels, frames])
    ids = net.input("decoder_input_ids", net.random.integers(0, vocabulary, (batch, target)), ["batch", "answer"])
    x = net.gelu_erf(net.conv(x, hidden, 3, 1, 1))
    x = net.gelu_erf(net.conv(x, hidden, 3, 2, 1))
    x = net.op("Transpose", x, perm=[0, 2, 1])
    x = net.op("Add", x, net.weight(net.normal(net.values[x].shape[1], hidden, std=0.5)))
    for _ in range(layers):
        x = encoder_layer(net, x, heads)
    memory = norm(net, x)

    count = net.scalar_size(ids, 1)
    place = net.op("Slice", net.weight(net.normal(positions, hidden, std=0.5)), net.ints(0),
                   net.op("Unsqueeze", count, net.ints(0)), net.ints(0), net.ints(1))
    x = net.op("Add", net.op("Gather", net.weight(net.normal(vocabulary, hidden)), ids), place)
    rows = net.op("Range", net.const(0, np.int64), count, net.const(1, np.int64))
    later = net.op("Greater", net.op("Unsqueeze", rows, net.ints(0)), net.op("Unsqueeze", rows, net.ints(1)))
    mask = net.op("Where", later, net.const(-np.inf), net.const(0.0))
    for _ in range(layers):
        y = encoder_layer(net, x, heads, mask)
        x = cross_attention(net, y, memory, heads)
    logits = net.matmul(norm(net, x), vocabulary, 2.0)
    return net.finish({logits: ["batch", "answer", vocabulary]})
