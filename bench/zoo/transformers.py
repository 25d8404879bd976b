"""Transformers, decomposed in small operators as framework exporters write them."""

from __future__ import annotations

import numpy as np

from .net import Built, Net


class Transformer(Net):
    """What the three models share."""

    def layer_norm(self, x: str, epsilon: float = 1e-5) -> str:
        size = self.values[x].shape[-1]
        mean = self.op("ReduceMean", x, axes=[-1])
        centred = self.op("Sub", x, mean)
        variance = self.op("ReduceMean", self.op("Pow", centred, self.const(2.0)), axes=[-1])
        deviation = self.op("Sqrt", self.op("Add", variance, self.const(epsilon)))
        y = self.op("Div", centred, deviation)
        y = self.op("Mul", y, self.weight((1 + self.normal(size, std=0.2)).astype(np.float32)))
        return self.op("Add", y, self.weight(self.normal(size, std=0.1)))

    def gelu_erf(self, x: str) -> str:
        y = self.op("Erf", self.op("Div", x, self.const(np.sqrt(2.0))))
        y = self.op("Mul", x, self.op("Add", y, self.const(1.0)))
        return self.op("Mul", y, self.const(0.5))

    def gelu_tanh(self, x: str) -> str:
        cube = self.op("Mul", self.op("Pow", x, self.const(3.0)), self.const(0.044715))
        inner = self.op("Mul", self.op("Add", x, cube), self.const(np.sqrt(2 / np.pi)))
        outer = self.op("Add", self.op("Tanh", inner), self.const(1.0))
        return self.op("Mul", self.op("Mul", x, self.const(0.5)), outer)

    def size(self, x: str, axis: int) -> str:
        """One dimension as a tensor of one element, the long way round that exporters take."""
        return self.op("Unsqueeze", self.scalar_size(x, axis), self.ints(0))

    def scalar_size(self, x: str, axis: int) -> str:
        return self.op("Gather", self.op("Shape", x), self.const(axis, np.int64), axis=0)

    def reshape(self, x: str, *parts: int | str) -> str:
        """parts: fixed sizes, or names of one-element tensors."""
        pieces = [self.ints(part) if isinstance(part, int) else part for part in parts]
        return self.op("Reshape", x, self.op("Concat", *pieces, axis=0))

    def split_heads(self, x: str, heads: int, perm: list[int]) -> str:
        width = self.values[x].shape[-1] // heads
        y = self.reshape(x, self.size(x, 0), self.size(x, 1), heads, width)
        return self.op("Transpose", y, perm=perm)

    def join_heads(self, x: str) -> str:
        heads, width = self.values[x].shape[1], self.values[x].shape[3]
        y = self.op("Transpose", x, perm=[0, 2, 1, 3])
        return self.reshape(y, self.size(y, 0), self.size(y, 1), heads * width)


def bert(layers: int = 12, hidden: int = 768, heads: int = 12, vocabulary: int = 30522, positions: int = 512,
         length: int = 128, batch: int = 1) -> Built:
    """Free batch and sequence; hidden states and pooled output."""
    net = Transformer("bert", seed=768)
    dims = ["batch", "sequence"]
    tokens = net.random.integers(0, vocabulary, (batch, length))
    ids = net.input("input_ids", tokens, dims)
    mask = net.input("attention_mask", np.ones((batch, length), np.int64), dims)
    types = net.input("token_type_ids", (np.arange(length) >= length // 2)[None].repeat(batch, 0).astype(np.int64),
                      dims)

    bias = net.op("Unsqueeze", net.op("Unsqueeze", mask, net.ints(1)), net.ints(2))
    bias = net.op("Sub", net.const(1.0), net.op("Cast", bias, to=1))
    bias = net.op("Mul", bias, net.const(-10000.0))

    end = net.size(ids, 1)
    numbers = net.weight(np.arange(positions, dtype=np.int64)[None], "embeddings.position_ids")
    place = net.op("Slice", numbers, net.ints(0), end, net.ints(1), net.ints(1))
    x = net.op("Add", net.op("Gather", net.weight(net.normal(vocabulary, hidden)), ids),
               net.op("Gather", net.weight(net.normal(2, hidden, std=0.5)), types))
    x = net.op("Add", x, net.op("Gather", net.weight(net.normal(positions, hidden, std=0.5)), place))
    x = net.layer_norm(x, 1e-12)
    for _ in range(layers):
        query = net.split_heads(net.matmul_add(x, hidden, 0.9), heads, [0, 2, 1, 3])
        key = net.split_heads(net.matmul_add(x, hidden, 0.9), heads, [0, 2, 3, 1])
        value = net.split_heads(net.matmul_add(x, hidden, 2.0), heads, [0, 2, 1, 3])
        scores = net.op("Div", net.op("MatMul", query, key), net.const(np.sqrt(hidden // heads)))
        weights = net.op("Softmax", net.op("Add", scores, bias), axis=-1)
        y = net.join_heads(net.op("MatMul", weights, value))
        x = net.layer_norm(net.op("Add", net.matmul_add(y, hidden), x), 1e-12)
        y = net.gelu_erf(net.matmul_add(x, 4 * hidden))
        x = net.layer_norm(net.op("Add", net.matmul_add(y, hidden), x), 1e-12)
    last = net.op("Identity", x, names=["last_hidden_state"])
    first = net.op("Gather", x, net.const(0, np.int64), axis=1)
    pooled = net.op("Tanh", net.gemm(first, hidden), names=["pooler_output"])
    return net.finish({last: [*dims, hidden], pooled: ["batch", hidden]})


def gpt2(layers: int = 12, hidden: int = 768, heads: int = 12, vocabulary: int = 50257, positions: int = 1024,
         past: int = 128, batch: int = 1) -> Built:
    """One decoding step: new tokens and the keys and values of all before them, all sizes free."""
    net = Transformer("gpt2", seed=124)
    width = hidden // heads
    ids = net.input("input_ids", net.random.integers(0, vocabulary, (batch, 1)), ["batch", "sequence"])
    mask = net.input("attention_mask", np.ones((batch, past + 1), np.int64), ["batch", "total_sequence"])
    cache_dims = ["batch", heads, "past_sequence", width]
    caches = [[net.input(f"past_key_values.{layer}.{kind}", net.normal(batch, heads, past, width, std=std), cache_dims)
               for kind, std in (("key", 1.0), ("value", 2.0))] for layer in range(layers)]

    count = net.scalar_size(ids, 1)
    before = net.scalar_size(caches[0][0], 2)
    total = net.op("Add", before, count)
    place = net.op("Unsqueeze", net.op("Range", before, total, net.const(1, np.int64)), net.ints(0))
    bias = net.op("Unsqueeze", net.op("Unsqueeze", mask, net.ints(1)), net.ints(2))
    bias = net.op("Sub", net.const(1.0), net.op("Cast", bias, to=1))
    bias = net.op("Mul", bias, net.const(float(np.finfo(np.float32).min)))
    triangle = net.weight(np.tril(np.ones((positions, positions), bool))[None, None], "causal")

    def add_projection(x: str, y: str, size: int) -> str:
        flat = net.gemm(net.op("Reshape", y, net.ints(-1, size)), hidden, 0.5, transposed=False)
        return net.op("Add", x, net.reshape(flat, net.size(x, 0), net.size(x, 1), hidden))

    x = net.op("Add", net.op("Gather", net.weight(net.normal(vocabulary, hidden)), ids),
               net.op("Gather", net.weight(net.normal(positions, hidden, std=0.3)), place))
    presents = {}
    for layer in range(layers):
        y = net.layer_norm(x)
        flat = net.gemm(net.op("Reshape", y, net.ints(-1, hidden)), 3 * hidden, 0.9, transposed=False)
        joint = net.reshape(flat, net.size(x, 0), net.size(x, 1), 3 * hidden)
        query, key, value = net.op("Split", joint, net.ints(hidden, hidden, hidden), outputs=3, axis=2)
        query, key, value = (net.split_heads(part, heads, [0, 2, 1, 3]) for part in (query, key, value))
        key = net.op("Concat", caches[layer][0], key, axis=2, names=[f"present.{layer}.key"])
        value = net.op("Concat", caches[layer][1], value, axis=2, names=[f"present.{layer}.value"])
        presents[key] = presents[value] = ["batch", heads, "total_sequence", width]
        scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 1, 3, 2]))
        scores = net.op("Div", scores, net.const(np.sqrt(width)))
        end, start = net.size(key, 2), net.op("Sub", net.size(key, 2), net.size(query, 2))
        allowed = net.op("Slice", triangle, start, end, net.ints(2), net.ints(1))
        allowed = net.op("Slice", allowed, net.ints(0), end, net.ints(3), net.ints(1))
        scores = net.op("Where", allowed, scores, net.const(float(np.finfo(np.float32).min)))
        weights = net.op("Softmax", net.op("Add", scores, bias), axis=-1)
        y = net.join_heads(net.op("MatMul", weights, value))
        x = add_projection(x, y, hidden)
        wide = net.gemm(net.op("Reshape", net.layer_norm(x), net.ints(-1, hidden)), 4 * hidden, transposed=False)
        wide = net.reshape(wide, net.size(x, 0), net.size(x, 1), 4 * hidden)
        x = add_projection(x, net.gelu_tanh(wide), 4 * hidden)
    logits = net.op("Identity", net.matmul(net.layer_norm(x), vocabulary, 2.0), names=["logits"])
    return net.finish({logits: ["batch", "sequence", vocabulary], **presents})


def vit(layers: int = 12, hidden: int = 768, heads: int = 12, side: int = 224, patch: int = 16) -> Built:
    """ViT-B/16 with LayerNormalization as one operator; free batch."""
    net = Transformer("vit_b16", opset=17, seed=16)
    x = net.conv(net.image("image", side, ["batch", 3, side, side]), hidden, patch, patch)
    batch = net.size(x, 0)
    x = net.op("Transpose", net.reshape(x, batch, hidden, -1), perm=[0, 2, 1])
    token = net.weight(net.normal(1, 1, hidden), "class_token")
    token = net.op("Expand", token, net.op("Concat", batch, net.ints(1), net.ints(hidden), axis=0))
    x = net.op("Concat", token, x, axis=1)
    count = net.values[x].shape[1]
    x = net.op("Add", x, net.weight(net.normal(1, count, hidden, std=0.5), "position_embedding"))

    def norm(value: str) -> str:
        scale = net.weight((1 + net.normal(hidden, std=0.2)).astype(np.float32))
        return net.op("LayerNormalization", value, scale, net.weight(net.normal(hidden, std=0.1)), axis=-1,
                      epsilon=1e-6)

    for _ in range(layers):
        y = norm(x)
        joint = net.matmul_add(y, 3 * hidden, 1.3)
        joint = net.reshape(joint, batch, count, 3, heads, hidden // heads)
        joint = net.op("Transpose", joint, perm=[2, 0, 3, 1, 4])
        query, key, value = (net.op("Gather", joint, net.const(i, np.int64), axis=0) for i in range(3))
        query = net.op("Mul", query, net.const(1 / np.sqrt(hidden // heads)))
        scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 1, 3, 2]))
        y = net.join_heads(net.op("MatMul", net.op("Softmax", scores, axis=-1), value))
        x = net.op("Add", x, net.matmul_add(y, hidden, 0.5))
        y = net.gelu_erf(net.matmul_add(norm(x), 4 * hidden))
        x = net.op("Add", x, net.matmul_add(y, hidden, 0.5))
    first = net.op("Gather", norm(x), net.const(0, np.int64), axis=1)
    return net.finish({net.gemm(first, 1000, 2.0): ["batch", 1000]})
