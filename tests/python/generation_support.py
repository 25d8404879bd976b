"""Small decoders and encoders with random weights, for the operators that generate sequences."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT32


class Builder:
    """A graph by calls: `op` adds a node and gives its output's name, `const` a weight."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def name(self, hint: str) -> str:
        self.count += 1
        return f"{hint}_{self.count}"

    def const(self, array, name: str | None = None) -> str:
        name = name or self.name("c")
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, scale: float = 1.0) -> str:
        return self.const((self.random.standard_normal(shape) * scale).astype(np.float32))

    def op(self, kind: str, *inputs: str, outputs: int = 1, to: list[str] | None = None, **attributes):
        made = to or [self.name(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, **attributes))
        return made[0] if len(made) == 1 else made

    def ints(self, *values: int) -> str:
        return self.const(np.array(values, np.int64))

    def linear(self, x: str, rows: int, columns: int) -> str:
        y = self.op("MatMul", x, self.weight(rows, columns, scale=1 / np.sqrt(rows)))
        return self.op("Add", y, self.weight(columns, scale=0.3))

    def norm(self, x: str, width: int) -> str:
        return self.op("LayerNormalization", x, self.weight(width), self.weight(width, scale=0.1))

    def heads(self, x: str, heads: int, size: int) -> str:
        return self.op("Transpose", self.op("Reshape", x, self.ints(0, 0, heads, size)), perm=[0, 2, 1, 3])

    def attend(self, q: str, k: str, v: str, heads: int, size: int, bias: str | None) -> str:
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.const(np.float32(1.5 / np.sqrt(size))))
        if bias:
            scores = self.op("Add", scores, bias)
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, 0, heads * size))

    def size_of(self, x: str, axis: int) -> str:
        return self.op("Gather", self.op("Shape", x), self.const(np.int64(axis)))

    def causal_bias(self, queries: str, keys: str) -> str:
        """[S, T]: key j is seen by query i where j <= T - S + i."""
        zero, one = self.const(np.int64(0)), self.const(np.int64(1))
        j = self.op("Range", zero, keys, one)
        i = self.op("Range", self.op("Sub", keys, queries), keys, one)
        seen = self.op("LessOrEqual", self.op("Unsqueeze", j, self.ints(0)), self.op("Unsqueeze", i, self.ints(1)))
        return self.op("Where", seen, self.const(np.float32(0)), self.const(np.float32(-10000)))

    def mask_bias(self, mask: str) -> str:
        closed = self.op("Sub", self.const(np.float32(1)), self.cast(mask, FLOAT))
        return self.op("Unsqueeze", self.op("Mul", closed, self.const(np.float32(-10000))), self.ints(1, 2))

    def cast(self, x: str, to: int) -> str:
        made = self.name("cast")
        self.nodes.append(helper.make_node("Cast", [x], [made], to=to))
        return made

    def mlp(self, x: str, width: int) -> str:
        h = self.op("Relu", self.linear(self.norm(x, width), width, 2 * width))
        return self.op("Add", x, self.linear(h, 2 * width, width))

    def rename(self, x: str, name: str):
        self.op("Identity", x, to=[name])

    def graph(self, name, inputs, outputs) -> onnx.GraphProto:
        infos = lambda values: [helper.make_tensor_value_info(n, t, s) for n, t, s in values]
        return helper.make_graph(self.nodes, name, infos(inputs), infos(outputs), self.weights)


VOCAB, WIDTH, HEADS, SIZE, LAYERS, POSITIONS = 37, 16, 2, 8, 2, 64


def gpt(seed: int = 0, vocab: int = VOCAB, layers: int = LAYERS, temper: float = 1.5, extra=None,
        rows="B") -> onnx.GraphProto:
    """GPT-2's form. `extra`: a value of the outer graph, added to the logits."""
    b = Builder(seed)
    x = b.op("Add", b.op("Gather", b.weight(vocab, WIDTH), "input_ids"),
             b.op("Gather", b.weight(POSITIONS, WIDTH, scale=0.5), "position_ids"))
    bias = b.op("Add", b.causal_bias(b.size_of("input_ids", 1), b.size_of("attention_mask", 1)),
                b.mask_bias("attention_mask"))
    for i in range(layers):
        q, k, v = b.op("Split", b.linear(b.norm(x, WIDTH), WIDTH, 3 * WIDTH), outputs=3, axis=-1)
        q, k, v = (b.heads(t, HEADS, SIZE) for t in (q, k, v))
        k = b.op("Concat", b.op("Gather", f"past_{i}", b.const(np.int64(0)), axis=0), k, axis=2)
        v = b.op("Concat", b.op("Gather", f"past_{i}", b.const(np.int64(1)), axis=0), v, axis=2)
        b.op("Concat", b.op("Unsqueeze", k, b.ints(0)), b.op("Unsqueeze", v, b.ints(0)), to=[f"present_{i}"], axis=0)
        x = b.op("Add", x, b.linear(b.attend(q, k, v, HEADS, SIZE, bias), WIDTH, WIDTH))
        x = b.mlp(x, WIDTH)
    logits = b.op("MatMul", b.norm(x, WIDTH), b.weight(WIDTH, vocab, scale=temper / np.sqrt(WIDTH)))
    if extra:
        logits = b.op("Add", logits, extra)
    b.rename(logits, "logits")
    ids = [("input_ids", INT, [rows, "S"]), ("position_ids", INT, [rows, "S"]), ("attention_mask", INT, [rows, "T"])]
    pasts = [(f"past_{i}", FLOAT, [2, rows, HEADS, "P", SIZE]) for i in range(layers)]
    presents = [(f"present_{i}", FLOAT, [2, rows, HEADS, "T", SIZE]) for i in range(layers)]
    return b.graph("decoder", ids + pasts, [("logits", FLOAT, [rows, "S", vocab])] + presents)


def cross_names(kind: str, layers: int) -> tuple[list[str], list[str]]:
    """Names of keys and values of the self-attentions, and of the cross attentions."""
    of = lambda which: [f"{kind}_{what}_{which}_{i}" for i in range(layers) for what in ("key", "value")]
    return of("self"), of("cross")


class Translator:
    """T5's and Whisper's form: weights shared by the graphs that start the decoder and continue it."""

    def __init__(self, seed: int = 0, vocab: int = VOCAB, layers: int = LAYERS, whisper: bool = False,
                 hidden_state: bool = False, starts_decoder: bool = True, temper: float = 2.5, features: int = 5,
                 whole_sequence: bool = False):
        self.seed, self.vocab, self.layers, self.whisper, self.temper = seed, vocab, layers, whisper, temper
        self.hidden_state, self.starts_decoder, self.features = hidden_state, starts_decoder, features
        self.tokens = "D" if whole_sequence else 1  # that the decoder takes in one call

    def decode(self, ids, past, cross, mask_bias):
        """The decoder of one call; gives logits and keys and values."""
        b = self.b
        b.random = np.random.default_rng(self.seed + 1000)
        x = b.op("Gather", b.weight(self.vocab, WIDTH), ids)
        count = b.size_of(ids, 1)
        total = b.op("Add", count, b.size_of(past[0], 2)) if past else count
        where = b.op("Range", b.op("Sub", total, count), total, b.const(np.int64(1)))
        x = b.op("Add", x, b.op("Gather", b.weight(POSITIONS, WIDTH, scale=0.5), where))
        causal = b.causal_bias(count, total)
        made = []
        for i in range(self.layers):
            q, k, v = b.op("Split", b.linear(b.norm(x, WIDTH), WIDTH, 3 * WIDTH), outputs=3, axis=-1)
            q, k, v = (b.heads(t, HEADS, SIZE) for t in (q, k, v))
            if past:
                k, v = (b.op("Concat", p, t, axis=2) for p, t in zip(past[2 * i:2 * i + 2], (k, v)))
            made += [k, v]
            x = b.op("Add", x, b.linear(b.attend(q, k, v, HEADS, SIZE, causal), WIDTH, WIDTH))
            q = b.heads(b.linear(b.norm(x, WIDTH), WIDTH, WIDTH), HEADS, SIZE)
            seen = b.attend(q, *cross[2 * i:2 * i + 2], HEADS, SIZE, mask_bias)
            x = b.op("Add", x, b.linear(seen, WIDTH, WIDTH))
            x = b.mlp(x, WIDTH)
        logits = b.op("MatMul", b.norm(x, WIDTH), b.weight(WIDTH, self.vocab, scale=self.temper / np.sqrt(WIDTH)))
        return logits, made

    def mask_inputs(self):
        return [] if self.whisper else [("encoder_attention_mask", INT, ["B", "E"])]

    def encoder(self) -> onnx.GraphProto:
        b = self.b = Builder(self.seed)
        if self.whisper:
            x = b.linear(b.op("Transpose", "encoder_input_ids", perm=[0, 2, 1]), self.features, WIDTH)
            bias, inputs = None, [("encoder_input_ids", FLOAT, ["B", self.features, "E"])]
        else:
            x = b.op("Gather", b.weight(self.vocab, WIDTH), "encoder_input_ids")
            bias, inputs = b.mask_bias("encoder_attention_mask"), [("encoder_input_ids", INT, ["B", "E"])]
        q = b.heads(b.linear(x, WIDTH, WIDTH), HEADS, SIZE)
        x = b.mlp(b.op("Add", x, b.attend(q, q, q, HEADS, SIZE, bias)), WIDTH)
        cross = [b.heads(b.linear(x, WIDTH, WIDTH), HEADS, SIZE) for _ in range(2 * self.layers)]
        names_self, names_cross = cross_names("present", self.layers)
        for value, name in zip(cross, names_cross):
            b.rename(value, name)
        outputs = [(n, FLOAT, ["B", HEADS, "E", SIZE]) for n in names_cross]
        inputs += self.mask_inputs()
        if self.starts_decoder:
            logits, made = self.decode("decoder_input_ids", None, cross, bias)
            for value, name in zip([logits, x] + made, ["logits", "encoder_hidden_states"] + names_self):
                b.rename(value, name)
            inputs += [("decoder_input_ids", INT, ["B", "D"])]
            outputs = ([("logits", FLOAT, ["B", "D", self.vocab]), ("encoder_hidden_states", FLOAT, ["B", "E", WIDTH])] +
                       [(n, FLOAT, ["B", HEADS, "D", SIZE]) for n in names_self] + outputs)
        return b.graph("encoder", inputs, outputs)

    def decoder(self) -> onnx.GraphProto:
        b = self.b = Builder(self.seed)
        bias = None if self.whisper else b.mask_bias("encoder_attention_mask")
        past_self, past_cross = cross_names("past", self.layers)
        logits, made = self.decode("input_ids", past_self, past_cross, bias)
        if self.hidden_state:  # read, and worth nothing
            zero = b.op("Mul", b.op("ReduceMean", "encoder_hidden_states", axes=[1, 2], keepdims=1),
                        b.const(np.float32(0)))
            logits = b.op("Add", logits, zero)
        names_self, _ = cross_names("present", self.layers)
        for value, name in zip([logits] + made, ["logits"] + names_self):
            b.rename(value, name)
        hidden = [("encoder_hidden_states", FLOAT, ["B", "E", WIDTH])] if self.hidden_state else []
        inputs = ([("input_ids", INT, ["B", self.tokens])] + self.mask_inputs() + hidden +
                  [(n, FLOAT, ["B", HEADS, "P", SIZE]) for n in past_self] +
                  [(n, FLOAT, ["B", HEADS, "E", SIZE]) for n in past_cross])
        outputs = ([("logits", FLOAT, ["B", self.tokens, self.vocab])] +
                   [(n, FLOAT, ["B", HEADS, "Q", SIZE]) for n in names_self])
        return b.graph("decoder", inputs, outputs)


def model_of(op: str, inputs: dict[str, np.ndarray | None], outputs: list[str], constant=(), **attributes) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """One node whose inputs are called as the operator calls them; None where one is absent."""
    node = helper.make_node(op, [n if v is not None else "" for n, v in inputs.items()], outputs,
                            domain="com.microsoft", name="node", **attributes)
    feeds = {n: v for n, v in inputs.items() if v is not None and n not in constant}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), [f"{n}.{d}" for d in range(v.ndim)])
             for n, v in feeds.items()]
    ends = [helper.make_tensor_value_info(n, INT if n == "sequences" else FLOAT, None) for n in outputs if n]
    initializers = [numpy_helper.from_array(inputs[n], n) for n in constant]
    graph = helper.make_graph([node], "generation", infos, ends, initializers)
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8), feeds


def fused_gpt(seed: int = 0, vocab: int = VOCAB, layers: int = LAYERS, temper: float = 2.5) -> onnx.GraphProto:
    """GPT-2's form as ONNX Runtime's tools write it: Attention, SkipLayerNormalization, FastGelu of com.microsoft."""
    b = Builder(seed)
    own = {"domain": "com.microsoft"}
    x = b.op("Add", b.op("Gather", b.weight(vocab, WIDTH), "input_ids"),
             b.op("Gather", b.weight(POSITIONS, WIDTH, scale=0.5), "position_ids"))
    for i in range(layers):
        y = b.op("Attention", b.norm(x, WIDTH), b.weight(WIDTH, 3 * WIDTH, scale=0.4), b.weight(3 * WIDTH, scale=0.2),
                 "attention_mask", f"past_{i}", to=[b.name("attention"), f"present_{i}"], num_heads=HEADS,
                 unidirectional=1, **own)[0]
        y = b.op("MatMul", y, b.weight(WIDTH, WIDTH, scale=0.3))
        normed, _, _, x = b.op("SkipLayerNormalization", x, y, b.weight(WIDTH), b.weight(WIDTH, scale=0.1),
                               b.weight(WIDTH, scale=0.1), to=[b.name("skip"), "", "", b.name("sum")], **own)
        h = b.op("FastGelu", b.op("MatMul", normed, b.weight(WIDTH, 2 * WIDTH, scale=0.3)),
                 b.weight(2 * WIDTH, scale=0.1), **own)
        x = b.op("Add", x, b.op("MatMul", h, b.weight(2 * WIDTH, WIDTH, scale=0.3)))
    b.rename(b.op("MatMul", b.norm(x, WIDTH), b.weight(WIDTH, vocab, scale=temper / np.sqrt(WIDTH))), "logits")
    ids = [(n, INT, ["B", "S" if n != "attention_mask" else "T"]) for n in ("input_ids", "position_ids", "attention_mask")]
    pasts = [(f"past_{i}", FLOAT, [2, "B", HEADS, "P", SIZE]) for i in range(layers)]
    presents = [(f"present_{i}", FLOAT, [2, "B", HEADS, "T", SIZE]) for i in range(layers)]
    return b.graph("decoder", ids + pasts, [("logits", FLOAT, ["B", "S", vocab])] + presents)
