"""The small models that the clients open: models.py FOLDER."""

from __future__ import annotations

import json
import pathlib
import sys

import decoder
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

OUT = pathlib.Path(sys.argv[1])
RANDOM = np.random.default_rng(3)


def value(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def weights(name: str, *shape: int, scale: float = 1.0) -> onnx.TensorProto:
    return numpy_helper.from_array((RANDOM.standard_normal(shape) * scale / np.sqrt(shape[0])).astype(np.float32), name)


def node(op: str, inputs: str, outputs: str, **attributes) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def save(
    name: str,
    nodes: list,
    inputs: list,
    outputs: list,
    initializers: list | None = None,
    metadata: dict | None = None,
    domain: str = "",
    **options,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, pathlib.Path(name).name, inputs, outputs, initializers or [])
    opsets = [helper.make_opsetid("", 17 if domain != "ai.onnx.ml" else 15)] + ([helper.make_opsetid(domain, 3)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="clients", domain="org.clients", model_version=7)
    helper.set_model_props(model, metadata or {})
    path = OUT / f"{name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path, **options)
    return model


def types_and_options() -> None:
    for kind in "FLOAT DOUBLE INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 BOOL STRING FLOAT16".split():
        type_ = getattr(T, kind)
        save(f"identity_{kind.lower()}", [node("Identity", "x", "y")], [value("x", type_, "n", "m")], [value("y", type_, "n", "m")])
    both = [value(name, T.FLOAT, "batch", "width") for name in "ab"]
    nodes = [
        node("Add", "a b", "sum"),
        node("Mul", "a b", "product"),
        node("ReduceSum", "sum", "total", keepdims=0),
        node("Greater", "a b", "greater"),
        node("Shape", "a", "shape"),
        node("Cast", "a", "ints", to=T.INT32),
    ]
    outputs = [
        value("sum", T.FLOAT, "batch", "width"),
        value("product", T.FLOAT, "batch", "width"),
        value("total", T.FLOAT),
        value("greater", T.BOOL, "batch", "width"),
        value("shape", T.INT64, 2),
        value("ints", T.INT32, "batch", "width"),
    ]
    save("multi", nodes, both, outputs)
    save("add", [node("Add", "A B", "C")], [value("A", T.FLOAT, 4), value("B", T.FLOAT, 4)], [value("C", T.FLOAT, 4)])
    (OUT / "external.bin").unlink(missing_ok=True)
    matrix = numpy_helper.from_array(np.arange(32, dtype=np.float32).reshape(4, 8) / 8, "w")
    save(
        "external",
        [node("MatMul", "x w", "y")],
        [value("x", T.FLOAT, "n", 4)],
        [value("y", T.FLOAT, "n", 8)],
        [matrix],
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location="external.bin",
        size_threshold=0,
    )
    three = numpy_helper.from_array(np.array([3], np.float32), "scale")
    save(
        "overridable",
        [node("Mul", "x scale", "y")],
        [value("x", T.FLOAT, "n"), value("scale", T.FLOAT, 1)],
        [value("y", T.FLOAT, "n")],
        [three],
    )
    parts = helper.make_tensor_sequence_value_info("parts", T.FLOAT, [None, 2])
    save(
        "split",
        [node("SplitToSequence", "x", "parts", axis=0), node("SequenceLength", "parts", "count")],
        [value("x", T.FLOAT, "n", 2)],
        [parts, value("count", T.INT64)],
    )
    save("gather", [node("Gather", "x i", "y")], [value("x", T.FLOAT, 4), value("i", T.INT64, "n")], [value("y", T.FLOAT, "n")])
    save("reshape", [node("Reshape", "x s", "y")], [value("x", T.FLOAT, "n"), value("s", T.INT64, "r")], [value("y", T.FLOAT, "k", "l")])
    save("zero", [node("Concat", "x x", "y", axis=0)], [value("x", T.FLOAT, "n", 2)], [value("y", T.FLOAT, "m", 2)])
    body = helper.make_graph(
        [node("Add", "c one", "c2"), node("Identity", "go", "go2")],
        "body",
        [value("i", T.INT64), value("go", T.BOOL), value("c", T.FLOAT)],
        [value("go2", T.BOOL), value("c2", T.FLOAT)],
    )
    save(
        "long_loop",
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
        [value("n", T.INT64), value("x", T.FLOAT)],
        [value("y", T.FLOAT)],
        [numpy_helper.from_array(np.array(1, np.float32), "one")],
    )
    save("unknown_op", [node("NoSuchOp", "x", "y")], [value("x", T.FLOAT, 1)], [value("y", T.FLOAT, 1)])
    save(
        "custom_domain",
        [node("Thing", "x", "y", domain="my.domain")],
        [value("x", T.FLOAT, 1)],
        [value("y", T.FLOAT, 1)],
        domain="my.domain",
    )
    (OUT / "garbage.onnx").write_bytes(b"this is no model at all" * 3)
    (OUT / "empty.onnx").write_bytes(b"")


def classifiers() -> None:
    labels, domain = ["ape", "bee", "cat"], "ai.onnx.ml"
    linear = node(
        "LinearClassifier",
        "x",
        "label scores",
        domain=domain,
        coefficients=[0.5, -0.25, 0.75, -0.5, 0.1, 0.2, 0.3, -0.7, 0.4],
        intercepts=[0.1, 0.2, 0.3],
        post_transform="SOFTMAX",
        multi_class=0,
        classlabels_strings=labels,
    )
    x, label = value("x", T.FLOAT, "n", 3), value("label", T.STRING, "n")
    save("classifier", [linear], [x], [label, value("scores", T.FLOAT, "n", 3)], domain=domain)
    maps = onnx.ValueInfoProto(name="probabilities")
    maps.type.sequence_type.elem_type.map_type.key_type = T.STRING
    maps.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = T.FLOAT
    zipped = node("ZipMap", "scores", "probabilities", domain=domain, classlabels_strings=labels)
    save("zipmap_strings", [linear, zipped], [x], [label, maps], domain=domain)


def for_sherpa() -> None:
    """A recogniser, an extractor of voices' embeddings, and a speaker, which know nothing."""
    filters = numpy_helper.from_array((RANDOM.standard_normal((64, 80, 5)) / 20).astype(np.float32), "w0")
    save(
        "sherpa/ctc",
        [
            node("Conv", "audio_signal w0", "a", strides=[4], pads=[2, 2], kernel_shape=[5]),
            node("Relu", "a", "b"),
            node("Transpose", "b", "t", perm=[0, 2, 1]),
            node("MatMul", "t w1", "m"),
            node("LogSoftmax", "m", "logprobs", axis=-1),
        ],
        [value("audio_signal", T.FLOAT, "N", 80, "T"), value("length", T.INT64, "N")],
        [value("logprobs", T.FLOAT, "N", "T4", 31)],
        [filters, weights("w1", 64, 31, scale=6)],
        {"model_type": "EncDecCTCModelBPE", "vocab_size": "30", "subsampling_factor": "4", "normalize_type": "per_feature"},
    )
    tokens = [f"{'▁' if i % 5 == 0 else ''}{chr(97 + i % 26)}{i // 26 or ''} {i}\n" for i in range(30)]
    (OUT / "sherpa" / "tokens.txt").write_text("".join(tokens) + "<blk> 30\n")
    save(
        "sherpa/speaker",
        [
            node("MatMul", "feats w0", "a"),
            node("Tanh", "a", "b"),
            node("ReduceMean", "b", "m", axes=[1], keepdims=0),
            node("MatMul", "m w1", "embs"),
        ],
        [value("feats", T.FLOAT, "B", "T", 80)],
        [value("embs", T.FLOAT, "B", 32)],
        [weights("w0", 80, 48), weights("w1", 48, 32)],
        {
            "framework": "wespeaker",
            "language": "English",
            "url": "none",
            "output_dim": "32",
            "sample_rate": "16000",
            "normalize_samples": "0",
            "feature_normalize_type": "global-mean",
        },
    )
    save(
        "sherpa/vits",
        [
            node("Gather", "table x", "e"),
            node("MatMul", "e w0", "f"),
            node("Div", "f length_scale", "g"),
            node("Tanh", "g", "t"),
            node("Reshape", "t flat", "y"),
            node("Identity", "noise_scale", "u0"),
            node("Identity", "noise_scale_w", "u1"),
            node("Identity", "x_length", "u2"),
        ],
        [
            value("x", T.INT64, "N", "L"),
            value("x_length", T.INT64, "N"),
            *(value(name, T.FLOAT, 1) for name in ("noise_scale", "length_scale", "noise_scale_w")),
        ],
        [value("y", T.FLOAT, "N", 1, "S")],
        [weights("table", 40, 16, scale=8), weights("w0", 16, 256), numpy_helper.from_array(np.array([1, 1, -1]), "flat")],
        {
            "model_type": "vits",
            "sample_rate": "16000",
            "add_blank": "1",
            "n_speakers": "0",
            "language": "English",
            "comment": "random",
            "punctuation": ", . ! ?",
            "speaker_id": "0",
        },
    )
    letters = [f"{letter} {i + 1}\n" for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz,.!?")]
    (OUT / "sherpa" / "tts_tokens.txt").write_text("_ 0\n" + "".join(letters) + "  31\n")
    (OUT / "sherpa" / "lexicon.txt").write_text(
        "".join(f"{word} {' '.join(word)}\n" for word in "hello world this is a test of speech".split())
    )


def for_transformers() -> None:
    """A decoder as on the hub, without a tokenizer."""
    folder = OUT / "transformers" / "decoder"
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(decoder.decoder("plain"), folder / "onnx" / "model.onnx")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": decoder.HIDDEN,
        "num_attention_heads": decoder.HEADS,
        "num_key_value_heads": decoder.GROUPS,
        "num_hidden_layers": decoder.LAYERS,
        "head_dim": decoder.HEAD,
        "vocab_size": decoder.VOCABULARY,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}))


types_and_options()
classifiers()
for_sherpa()
for_transformers()
