"""Tiny decoders with random weights, in the forms that onnxruntime-genai's model builder writes, and their configurations."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HIDDEN, HEADS, GROUPS, HEAD, LAYERS, CONTEXT = 96, 64, 4, 2, 16, 2, 128


class Graph:
    def __init__(self, seed: int = 7) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(seed)

    def add(self, op: str, inputs: list[str], outputs: int = 1, domain: str = "", **attributes) -> str | list[str]:
        names = [f"{op.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, f"/{op}_{len(self.nodes)}", domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def tensor(self, value: np.ndarray | list | int) -> str:
        value = np.array(value, np.int64) if isinstance(value, (list, int)) else value
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def weights(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return (self.random.standard_normal(shape) * scale / np.sqrt(shape[0])).astype(np.float32)

    def dense(self, x: str, rows: int, columns: int, bits: int = 0) -> str:
        """x times a matrix; with `bits`, MatMulNBits in blocks of 32."""
        matrix = self.weights(rows, columns, scale=2.0)
        if not bits:
            return self.add("MatMul", [x, self.tensor(matrix)])
        blocks = matrix.T.reshape(columns, rows // 32, 32)
        scales = np.abs(blocks).max(axis=2, keepdims=True) / 7 + 1e-6
        levels = (np.round(blocks / scales) + 8).astype(np.uint8)
        packed = levels[..., 0::2] | levels[..., 1::2] << 4
        return self.add(
            "MatMulNBits",
            [x, self.tensor(packed), self.tensor(scales.reshape(columns, -1).astype(np.float32))],
            domain="com.microsoft",
            K=rows,
            N=columns,
            bits=bits,
            block_size=32,
        )

    def rms(self, x: str) -> str:
        """The root mean square norm by plain operators."""
        mean = self.add("ReduceMean", [self.add("Mul", [x, x])], axes=[-1], keepdims=1)
        root = self.add("Sqrt", [self.add("Add", [mean, self.tensor(np.array([1e-6], np.float32))])])
        return self.add("Mul", [self.add("Div", [x, root]), self.tensor(1 + self.weights(HIDDEN))])


def plain_attention(g: Graph, x: str, past: tuple[str, str], present: tuple[str, str], bias: str) -> str:
    def heads(name: str, count: int) -> str:
        return g.add("Transpose", [g.add("Reshape", [name, g.tensor([0, 0, count, HEAD])])], perm=[0, 2, 1, 3])

    q = heads(g.dense(x, HIDDEN, HEADS * HEAD), HEADS)
    kept = []
    for before, after in zip(past, present):
        g.nodes.append(helper.make_node("Concat", [before, heads(g.dense(x, HIDDEN, GROUPS * HEAD), GROUPS)], [after], axis=2))
        kept.append(g.add("Gather", [after, g.tensor([i * GROUPS // HEADS for i in range(HEADS)])], axis=1))
    scores = g.add(
        "Mul", [g.add("MatMul", [q, g.add("Transpose", [kept[0]], perm=[0, 1, 3, 2])]), g.tensor(np.array(HEAD**-0.5, np.float32))]
    )
    mixed = g.add("MatMul", [g.add("Softmax", [g.add("Add", [scores, bias])], axis=-1), kept[1]])
    return g.add("Reshape", [g.add("Transpose", [mixed], perm=[0, 2, 1, 3]), g.tensor([0, 0, HEADS * HEAD])])


def mask_bias(g: Graph) -> str:
    """Zero where a token may look, else a large negative number."""
    tokens = g.add("Gather", [g.add("Shape", ["input_ids"]), g.tensor(1)])
    total = g.add("Gather", [g.add("Shape", ["attention_mask"]), g.tensor(1)])
    rows = g.add("Unsqueeze", [g.add("Range", [g.add("Sub", [total, tokens]), total, g.tensor(1)]), g.tensor([1])])
    ahead = g.add("Greater", [g.add("Range", [g.tensor(0), total, g.tensor(1)]), rows])
    padded = g.add("Not", [g.add("Cast", [g.add("Unsqueeze", ["attention_mask", g.tensor([1, 2])])], to=TensorProto.BOOL)])
    hidden = g.add("Or", [ahead, padded])
    return g.add("Where", [hidden, g.tensor(np.array(-1e9, np.float32)), g.tensor(np.array(0, np.float32))])


def group_attention(g: Graph, x: str, past: tuple[str, str], present: tuple[str, str], shared: list[str], bits: int) -> str:
    q, k, v = (g.dense(x, HIDDEN, count * HEAD, bits) for count in (HEADS, GROUPS, GROUPS))
    out = f"attention_{len(g.nodes)}"
    g.nodes.append(
        helper.make_node(
            "GroupQueryAttention",
            [q, k, v, *past, *shared],
            [out, *present],
            f"/attention_{len(g.nodes)}",
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=GROUPS,
            do_rotary=1,
            rotary_interleaved=0,
        )
    )
    return out


def decoder(kind: str) -> onnx.ModelProto:
    """`kind`: plain (no operator but the standard's), gqa, or int4."""
    g, bits = Graph(), 4 if kind == "int4" else 0
    x = g.add("Gather", [g.tensor(g.weights(VOCABULARY, HIDDEN, scale=8)), "input_ids"])
    if kind == "plain":
        bias = mask_bias(g)
    else:
        lengths = g.add(
            "Cast", [g.add("Sub", [g.add("ReduceSum", ["attention_mask", g.tensor([1])], keepdims=0), g.tensor(1)])], to=TensorProto.INT32
        )
        total = g.add("Cast", [g.add("Gather", [g.add("Shape", ["attention_mask"]), g.tensor(1)])], to=TensorProto.INT32)
        angles = np.outer(np.arange(CONTEXT), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
        shared = [lengths, total, g.tensor(np.cos(angles).astype(np.float32)), g.tensor(np.sin(angles).astype(np.float32))]
    cache = [(f"{{}}.{layer}.key", f"{{}}.{layer}.value") for layer in range(LAYERS)]
    skip = None
    for names in cache:
        past, present = (tuple(name.format(where) for name in names) for where in ("past_key_values", "present"))
        if kind == "plain":
            x = g.add("Add", [x, g.dense(plain_attention(g, g.rms(x), past, present, bias), HEADS * HEAD, HIDDEN)])
            y = g.rms(x)
        else:
            y, x = (
                (g.add("SimplifiedLayerNormalization", [x, g.tensor(1 + g.weights(HIDDEN))], epsilon=1e-6, axis=-1, stash_type=1), x)
                if skip is None
                else skipped(g, x, skip)
            )
            y, x = skipped(g, x, g.dense(group_attention(g, y, past, present, shared, bits), HEADS * HEAD, HIDDEN, bits))
        gate = g.dense(y, HIDDEN, 2 * HIDDEN, bits)
        skip = g.dense(
            g.add("Mul", [g.add("Mul", [gate, g.add("Sigmoid", [gate])]), g.dense(y, HIDDEN, 2 * HIDDEN, bits)]), 2 * HIDDEN, HIDDEN, bits
        )
        if kind == "plain":
            x = g.add("Add", [x, skip])
    last = g.rms(x) if kind == "plain" else skipped(g, x, skip)[0]
    g.nodes.append(helper.make_node("MatMul", [last, g.tensor(g.weights(HIDDEN, VOCABULARY, scale=4))], ["logits"]))

    def value(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    kv = [name for names in cache for name in names]
    inputs = [
        value("input_ids", TensorProto.INT64, "batch_size", "sequence_length"),
        value("attention_mask", TensorProto.INT64, "batch_size", "total_sequence_length"),
        *(value(name.format("past_key_values"), TensorProto.FLOAT, "batch_size", GROUPS, "past_sequence_length", HEAD) for name in kv),
    ]
    outputs = [
        value("logits", TensorProto.FLOAT, "batch_size", "sequence_length", VOCABULARY),
        *(value(name.format("present"), TensorProto.FLOAT, "batch_size", GROUPS, "total_sequence_length", HEAD) for name in kv),
    ]
    graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, g.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)


def skipped(g: Graph, x: str, more: str) -> tuple[str, str]:
    """The norm of a sum, and the sum."""
    name = f"skip_{len(g.nodes)}"
    g.nodes.append(
        helper.make_node(
            "SkipSimplifiedLayerNormalization",
            [x, more, g.tensor(1 + g.weights(HIDDEN))],
            [name, "", "", f"{name}_sum"],
            f"/{name}",
            domain="com.microsoft",
            epsilon=1e-6,
        )
    )
    return name, f"{name}_sum"


def configuration(share: bool) -> dict:
    pattern = {"past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"}
    outputs = {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}
    model = {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "context_length": CONTEXT,
        "vocab_size": VOCABULARY,
        "type": "llama",
        "decoder": {
            "session_options": {"log_id": "onnxruntime-genai", "provider_options": [], "intra_op_num_threads": 1},
            "filename": "model.onnx",
            "head_size": HEAD,
            "hidden_size": HIDDEN,
            "num_attention_heads": HEADS,
            "num_key_value_heads": GROUPS,
            "num_hidden_layers": LAYERS,
            "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", **pattern},
            "outputs": outputs,
        },
    }
    search = {
        "do_sample": False,
        "early_stopping": True,
        "max_length": CONTEXT,
        "min_length": 0,
        "num_beams": 1,
        "num_return_sequences": 1,
        "past_present_share_buffer": share,
        "repetition_penalty": 1.0,
        "temperature": 1.0,
        "top_k": 1,
        "top_p": 1.0,
    }
    return {"model": model, "search": search}


def write(folder: pathlib.Path) -> list[pathlib.Path]:
    """The models' folders, which are made."""
    made = []
    for kind, share in (("plain", False), ("gqa", False), ("gqa", True), ("int4", True)):
        made.append(folder / f"{kind}{'_shared' if share else ''}")
        made[-1].mkdir(parents=True, exist_ok=True)
        onnx.save(decoder(kind), made[-1] / "model.onnx")
        (made[-1] / "genai_config.json").write_text(json.dumps(configuration(share), indent=1))
    return made
