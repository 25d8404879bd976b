"""Gates, branches, rotations and states of recent language models (com.microsoft) against ONNX Runtime, and that plain
evaluation gives what planned runs give."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from contrib_support import Case, agree, compare, drawing

RANDOM = np.random.default_rng(37)
numbers, integers = drawing(RANDOM)
F32, F16 = np.float32, np.float16
both = pytest.mark.parametrize("free", [False, True])
types = pytest.mark.parametrize("dtype", [F32, F16])
gates = pytest.mark.parametrize("gate", [F32, F16])


def refused(engine, case, words, outputs):
    with pytest.raises(RuntimeError, match=words):
        engine.run(case.typed(outputs), case.feeds)


# --- gates and normalisations ---


@both
@types
@gates
def test_scaled_silu(engine, dtype, gate, free):
    x = numbers(3, 5, scale=3, dtype=dtype)
    agree(engine, Case("ScaledSiLU", [x], alpha=1.7, free=free))
    agree(engine, Case("ScaledSiLU", [x, np.array(0.7, gate)], free=free))


@both
@types
def test_gated_add(engine, dtype, free):
    agree(engine, Case("GatedAdd", [numbers(2, 3, 4, dtype=dtype), numbers(2, 3, 4, dtype=dtype), numbers(2, 3, 1, dtype=dtype)],
                       free=free))


@both
@types
@pytest.mark.parametrize("activation", ["silu", "swish", "sigmoid", None])
@pytest.mark.parametrize("groups", [1, 3])
def test_gated_norm(engine, dtype, activation, groups, free):
    inputs = [numbers(2, 5, 8 * groups, dtype=dtype), numbers(8, dtype=dtype), numbers(2, 5, 8 * groups, dtype=dtype)]
    agree(engine, Case("GatedRMSNorm", inputs, activation=activation, epsilon=1e-3, free=free))


@both
@types
@gates
@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("scale", [None, (24,), (3, 8), (8,)])
def test_branchwise_norm(engine, dtype, gate, count, scale, free):
    x = numbers(2, 5, *((24,) if count else (3, 8)), dtype=dtype)
    agree(engine, Case("BranchwiseRMSNorm", [x] + ([] if scale is None else [numbers(*scale, dtype=gate)]),
                       num_branches=count or None, epsilon=1e-3, free=free))


@both
@types
@pytest.mark.parametrize("beta", [False, True])
def test_linear_attention_gate(engine, dtype, beta, free):
    inputs = [numbers(2, 5, 4, scale=3, dtype=dtype), numbers(4), numbers(4)] + ([numbers(2, 5, 4, dtype=dtype)] if beta else [])
    agree(engine, Case("LinearAttentionGate", inputs, outputs=(True, True) if beta else (True,), free=free))


@both
@types
@gates
@pytest.mark.parametrize("count, shape", [(0, (3,)), (0, (3, 1)), (0, (3, 8)), (3, (3,)), (3, (24,)), (3, (3, 1)), (3, (3, 8))])
def test_pre_mix(engine, dtype, gate, count, shape, free):
    x = numbers(2, 5, *((24,) if count else (3, 8)), dtype=dtype)
    agree(engine, Case("HyperConnectionPreMix", [x, numbers(2, 5, *shape, dtype=gate)], num_branches=count or None,
                       reduction_scale=0.7, free=free))


@both
@types
@gates
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("count, shape", [(0, (3,)), (0, (3, 1)), (0, (3, 8)), (3, (3,)), (3, (3, 1)), (3, (3, 8))])
def test_post_mix(engine, dtype, gate, count, shape, mixed, free):
    x = numbers(2, 5, *((24,) if count else (3, 8)), dtype=dtype)
    inputs = [x, numbers(2, 5, 8, dtype=dtype), numbers(2, 5, *shape, dtype=gate)]
    if mixed:
        inputs.append(numbers(2, 5, 3, 3, dtype=gate))
    agree(engine, Case("HyperConnectionPostMix", inputs, num_branches=count or None, free=free),
          tolerance=4e-3 if F16 in (dtype, gate) else None)


@both
@types
@pytest.mark.parametrize("normed", [False, True])
def test_engram_gate(engine, dtype, normed, free):
    inputs = [numbers(2, 5, 3, 8, dtype=dtype), numbers(2, 5, 3, 8, dtype=dtype), numbers(2, 5, 8, dtype=dtype),
              numbers(3, 8, dtype=dtype), numbers(3, 8, dtype=dtype)]
    inputs += [numbers(3, 8, dtype=dtype)] if normed else []
    agree(engine, Case("EngramGate", inputs, outputs=(True, True) if normed else (True,), epsilon=1e-3, free=free),
          tolerance=4e-3 if dtype == F16 else None)


# --- rotations ---


@both
@types
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank, rotated", [(3, 0), (3, 12), (4, 0)])
def test_multimodal_rotary(engine, dtype, layout, interleaved, rank, rotated, free):
    size, heads = (16 if rotated else 12), 4
    x = numbers(2, 5, heads * size, dtype=dtype) if rank == 3 else numbers(2, heads, 5, size, dtype=dtype)
    inputs = [x, integers(0, 9, 3, 2, 5, dtype=np.int64), numbers(9, 6, dtype=dtype), numbers(9, 6, dtype=dtype)]
    agree(engine, Case("MRotaryEmbedding", inputs, mrope_section=[2, 3, 1] if not layout else [2, 2, 2], mrope_layout=layout,
                       interleaved=interleaved, num_heads=heads if rank == 3 else None, rotary_embedding_dim=rotated or None,
                       free=free))


@pytest.mark.parametrize("scale", [None, 0.5])
def test_packed_rotary(engine, scale):
    # Sequences of 3, 4 and 2 tokens, one after the other: longer together than the table.
    ids = np.array([[0, 1, 2, 0, 1, 2, 3, 0, 1]], np.int64)
    inputs = [numbers(1, 9, 32), ids, numbers(4, 4), numbers(4, 4)]
    agree(engine, Case("RotaryEmbedding", inputs, is_packed_batching=1, scale=scale))


# --- embeddings ---


@pytest.mark.parametrize("kind", [None, 0, 1])
@pytest.mark.parametrize("mask", [False, True])
def test_mask_index_type(engine, kind, mask):
    inputs = [integers(0, 7, 2, 5), integers(0, 2, 2, 5), numbers(7, 8), numbers(6, 8), numbers(2, 8), numbers(8), numbers(8)]
    inputs += [integers(0, 2, 2, 5)] if mask else []
    agree(engine, Case("EmbedLayerNormalization", inputs, outputs=(True, True), mask_index_type=kind))


@both
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_quantised_embedding(engine, dtype, segments, mask, free):
    low = -128 if dtype == np.int8 else 0
    table = lambda *shape: integers(low, low + 256, *shape, dtype=dtype)
    scale = lambda: np.array(RANDOM.uniform(0.01, 0.1), F32)
    point = lambda: np.array(RANDOM.integers(low, low + 256), dtype)
    inputs = [integers(0, 7, 2, 5), integers(0, 2, 2, 5) if segments else None, table(7, 8), table(6, 8),
              table(2, 8) if segments else None, table(8), table(8), integers(0, 2, 2, 5) if mask else None,
              scale(), scale(), scale() if segments else None, scale(), scale(),
              point(), point(), point() if segments else None, point(), point()]
    # ONNX Runtime wants all sizes.
    expected = Case("QEmbedLayerNormalization", inputs, outputs=(True, True)).expected()
    agree(engine, Case("QEmbedLayerNormalization", inputs, outputs=(True, True), free=free), reference=expected)


# --- states ---


@both
@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_linear_attention(engine, rule, past, whole, free):
    inputs = [numbers(2, 5, 4 * 8, scale=0.3), numbers(2, 5, 2 * 8, scale=0.3), numbers(2, 5, 2 * 6),
              numbers(2, 2, 8, 6) if past else None,
              -np.abs(numbers(2, 5, 2 * (8 if whole else 1))) if "gated" in rule else None,
              RANDOM.uniform(0, 1, (2, 5, 2)).astype(F32) if "delta" in rule else None]
    agree(engine, Case("LinearAttention", inputs, outputs=(True, True), q_num_heads=4, kv_num_heads=2, update_rule=rule,
                       free=free))


@both
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("activation", [None, "silu"])
def test_causal_conv(engine, last, dilation, past, activation, free):
    kept = 3 * dilation
    for length in (1, 5, 14):
        x, state = numbers(2, 6, length), numbers(2, 6, kept) if past else None
        if last:
            x = np.ascontiguousarray(x.transpose(0, 2, 1)).reshape(2, length, 2, 3)
            state = np.ascontiguousarray(state.transpose(0, 2, 1)).reshape(2, kept, 2, 3) if past else None
        case = Case("CausalConvWithState", [x, numbers(6, 1, 4), numbers(6), state], outputs=(True, True), dilation=dilation,
                    channels_last=last, activation=activation, free=free, constant=(1,))
        agree(engine, case)


# --- sparse attention ---


def run_sharing_buffers(case, pasts=("x3", "x4")):
    """ONNX Runtime wants the present in the past's memory."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), options)
    binding = session.io_binding()
    memory = {name: x.copy() for name, x in case.feeds.items()}  # which the values only refer to
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in memory.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y0")
    for name, past in zip(("y1", "y2"), pasts):
        binding.bind_ortvalue_output(name, values[past])
    session.run_with_iobinding(binding)
    return [binding.get_outputs()[0].numpy(), *(memory[past] for past in pasts)]


LAYOUTS = np.array([[[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]], [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]]])


def compressed(layouts):
    columns = [np.nonzero(row)[0] for layout in layouts for row in layout]
    most = max(layout.sum() for layout in layouts)
    rows = np.array([[0, *np.cumsum(layout.sum(1))] for layout in layouts], np.int32)
    lines = [np.concatenate([np.nonzero(row)[0] for row in layout]) for layout in layouts]
    assert columns
    return rows, np.array([np.pad(line, (0, most - len(line)), constant_values=-1) for line in lines], np.int32)


@both
@types
@pytest.mark.parametrize("layouts", [1, 2])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotary", [None, 0, 1])
@pytest.mark.parametrize("length, lengths", [(61, (61, 61)), (1, (40, 62)), (1, (3, 17))])
def test_sparse_attention(engine, dtype, layouts, packed, rotary, length, lengths, free):
    rows, columns = compressed(LAYOUTS[:layouts])
    q, k, v = (numbers(2, length, heads * 16, dtype=dtype) for heads in (4, 2, 2))
    inputs = [np.concatenate([q, k, v], -1) if packed else q, None if packed else k, None if packed else v,
              numbers(2, 2, 64, 16, dtype=dtype), numbers(2, 2, 64, 16, dtype=dtype), rows, columns,
              np.array([max(lengths)], np.int32), np.array(lengths, np.int32)]
    if rotary is not None:
        inputs += [numbers(64, 8, dtype=dtype), numbers(64, 8, dtype=dtype)]
    def case_of(inputs):
        return Case("SparseAttention", inputs, outputs=(True, True, True), num_heads=4, kv_num_heads=2, sparse_block_size=16,
                    do_rotary=None if rotary is None else 1, rotary_interleaved=rotary, constant=(5, 6), free=free)

    # One batch after the other: ONNX Runtime mixes up the heads of batches of different lengths.
    def row(b, i, x):
        if x is None or i in (5, 6, 9, 10):
            return x
        return x[b:b + 1] if i not in (7, 8) else np.array([lengths[b]], np.int32)

    parts = [run_sharing_buffers(case_of([row(b, i, x) for i, x in enumerate(inputs)])) for b in range(2)]
    expected = [np.concatenate(both) for both in zip(*parts)]
    case = case_of(inputs)
    ours = engine.run(case.typed(expected), case.feeds)
    compare(ours[:1], expected[:1], tolerance=4e-3 if dtype == F16 else None)
    for mine, yours in zip(ours[1:], expected[1:]):
        for b, end in enumerate(lengths):
            np.testing.assert_allclose(mine[b, :, :end].astype(F32), yours[b, :, :end].astype(F32), atol=5e-3)


def test_sparse_attention_of_broken_block_lists(engine):
    """Lists that name no block, or blocks and rows that are not there, read nothing else."""
    rows, columns = compressed(LAYOUTS[:1])
    inputs = [numbers(1, 4, 64), numbers(1, 4, 32), numbers(1, 4, 32), numbers(1, 2, 64, 16), numbers(1, 2, 64, 16), rows,
              columns, np.array([4], np.int32), np.array([4], np.int32)]
    for place, value in ((5, -7), (5, 1 << 30), (6, -9), (6, 1 << 30)):
        broken = list(inputs)
        broken[place] = np.full_like(inputs[place], value)
        case = Case("SparseAttention", broken, outputs=(True, True, True), num_heads=4, kv_num_heads=2, sparse_block_size=16)
        results = engine.run(case.typed([numbers(1, 4, 64), inputs[3], inputs[4]]), case.feeds)
        assert np.isfinite(results[0]).all()
    far = list(inputs)
    far[5] = rows[:, :1]
    case = Case("SparseAttention", far, outputs=(True, True, True), num_heads=4, kv_num_heads=2, sparse_block_size=16)
    refused(engine, case, "", [numbers(1, 4, 64), inputs[3], inputs[4]])


# --- what is wrong, and plain runs ---

A = (2, 5, 24)


@pytest.mark.parametrize("op, shapes, attributes, words", [
    ("GatedAdd", [A, A, A], {}, "gate must be 1"), ("GatedAdd", [A, (5, 24), (2, 5, 1)], {}, "do not fit"),
    ("GatedRMSNorm", [A, (7,), A], {}, "as many elements"), ("GatedRMSNorm", [A, (8,), (2, 5, 8)], {}, "do not fit"),
    ("GatedRMSNorm", [A, (8,), A], {"activation": "tanh"}, "activation must be"),
    ("GatedRMSNorm", [A, (1, 8), A], {}, "one dimension"),
    ("BranchwiseRMSNorm", [A], {"num_branches": 5}, "as many elements"),
    ("BranchwiseRMSNorm", [A, (7,)], {"num_branches": 3}, "."), ("BranchwiseRMSNorm", [A], {"num_branches": -1}, "num_branches"),
    ("BranchwiseRMSNorm", [(24,)], {}, "one dimension"),
    ("HyperConnectionPreMix", [A, (5, 3)], {"num_branches": 3}, "dimensions"),
    ("HyperConnectionPostMix", [A, (2, 5, 8), (3,)], {"num_branches": 3}, "dimensions"),
    ("HyperConnectionPostMix", [A, (2, 5, 8), (2, 5, 3), (3, 3)], {"num_branches": 3}, "stream_mix"),
    ("EngramGate", [(2, 5, 3, 8), (2, 5, 3, 8), A, (3, 8), (3, 8)], {}, "."),
    ("EngramGate", [A, A, A, (3, 8), (3, 8)], {}, "must be"),
    ("LinearAttention", [(2, 5, 8), (2, 5, 16), (2, 5, 16)], {"q_num_heads": 1, "kv_num_heads": 2, "update_rule": "linear"},
     "query heads"),
    ("LinearAttention", [A, A, A],
     {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "linear", "state_window": 2}, "state_window"),
    ("CausalConvWithState", [(2, 6, 9), (6, 1, 4)], {"ndim": 2}, "ndim"),
    ("CausalConvWithState", [(2, 6, 9), (6, 1, 4)], {"dilation": 0}, "dilation"),
    ("CausalConvWithState", [(2, 6, 9), (5, 1, 4)], {"dilation": 2}, "."),
    ("CausalConvWithState", [(2, 6, 9), (6, 1, 4)], {"dilation": 2, "activation": "relu"}, "activation"),
])
def test_wrong_sizes(engine, op, shapes, attributes, words):
    outputs = (True, True) if op in ("LinearAttention", "CausalConvWithState") else (True,)
    case = Case(op, [numbers(*shape) for shape in shapes], outputs=outputs, **attributes)
    refused(engine, case, words, [numbers(*shapes[0]) for _ in outputs])


@pytest.mark.parametrize("attributes, words", [
    ({"mrope_section": [2, 2]}, "three numbers"), ({"mrope_section": [-1, 4, 3]}, "three numbers"),
    ({"mrope_section": [2, 2, 1]}, "columns of mrope_section"), ({"mrope_section": [2, 3, 1], "mrope_layout": 2}, "mrope_layout"),
    ({"mrope_section": [2, 3, 1], "rotary_embedding_dim": 8}, "rotary_embedding_dim"),
])
def test_wrong_rotations(engine, attributes, words):
    inputs = [numbers(2, 5, 48), integers(0, 9, 3, 2, 5, dtype=np.int64), numbers(9, 6), numbers(9, 6)]
    refused(engine, Case("MRotaryEmbedding", inputs, num_heads=4, **attributes), words, [inputs[0]])
    inputs[1] = inputs[1] + 9
    case = Case("MRotaryEmbedding", inputs, num_heads=4, mrope_section=[2, 3, 1])
    refused(engine, case, "9", [inputs[0]])


def experts(op):
    if op == "MoE":
        return Case(op, [numbers(7, 16), numbers(7, 4), numbers(4, 24, 16), None, numbers(4, 16, 24)], k=2, activation_type="silu")
    return Case(op, [numbers(7, 16), numbers(7, 4), integers(0, 256, 4, 24, 8, dtype=np.uint8), numbers(4, 24), None,
                     integers(0, 256, 4, 16, 12, dtype=np.uint8), numbers(4, 16)], k=2, activation_type="silu")


PLAIN = {
    "MoE": experts, "QMoE": experts,
    "ScaledSiLU": lambda op: Case(op, [numbers(3, 5)], alpha=2.0),
    "GatedAdd": lambda op: Case(op, [numbers(*A), numbers(*A), numbers(2, 5, 1)]),
    "GatedRMSNorm": lambda op: Case(op, [numbers(*A), numbers(8), numbers(*A)]),
    "BranchwiseRMSNorm": lambda op: Case(op, [numbers(*A), numbers(24)], num_branches=3),
    "HyperConnectionPreMix": lambda op: Case(op, [numbers(*A), numbers(2, 5, 3)], num_branches=3),
    "HyperConnectionPostMix": lambda op: Case(op, [numbers(*A), numbers(2, 5, 8), numbers(2, 5, 3)], num_branches=3),
    "EngramGate": lambda op: Case(op, [numbers(2, 5, 3, 8), numbers(2, 5, 3, 8), numbers(2, 5, 8), numbers(3, 8), numbers(3, 8)]),
    "LinearAttentionGate": lambda op: Case(op, [numbers(2, 5, 4), numbers(4), numbers(4)]),
    "CausalConvWithState": lambda op: Case(op, [numbers(2, 6, 9), numbers(6, 1, 4)], outputs=(True, True), dilation=2),
    "MRotaryEmbedding": lambda op: Case(op, [numbers(2, 5, 48), integers(0, 9, 3, 2, 5, dtype=np.int64), numbers(9, 6),
                                             numbers(9, 6)], num_heads=4, mrope_section=[2, 3, 1]),
}


@pytest.mark.parametrize("op", PLAIN)
def test_plain_runs_agree(sardonyx, tmp_path, op):
    case = PLAIN[op](op)
    onnx.save(case.typed(case.expected()), tmp_path / "model.onnx")
    np.savez(tmp_path / "in.npz", **case.feeds)
    made = []
    for way, more in (("planned", []), ("plain", ["--reference"])):
        sardonyx("run", tmp_path / "model.onnx", "--inputs", tmp_path / "in.npz", "--output", tmp_path / f"{way}.npz", *more)
        with np.load(tmp_path / f"{way}.npz") as arrays:
            made.append([arrays[name] for name in arrays.files])
    compare(*made, tolerance=1e-5)
