"""GroupQueryAttention whose past is int8, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import Case, compare

RANDOM = np.random.default_rng(41)
F32, F16 = np.float32, np.float16


def numbers(*shape, dtype=F32):
    return RANDOM.standard_normal(shape).astype(dtype)


def case_of(kind, length, past, total, dtype=F32, packed=False, free=False, wide=2, size=72, heads=4, ends=None, **more):
    scale = lambda: np.array([0.02], F32) if kind == "PER_TENSOR" else RANDOM.uniform(0.01, 0.03, (1, 2, 1, size)).astype(F32)
    ends = ends or [total] * wide
    q, k, v = (numbers(wide, length, count * size, dtype=dtype) for count in (heads, 2, 2))
    inputs = [np.concatenate([q, k, v], -1) if packed else q, None if packed else k, None if packed else v,
              *(RANDOM.integers(-128, 128, (wide, 2, past, size)).astype(np.int8) for _ in range(2)),
              np.array(ends, np.int32) - 1, np.array([total], np.int32), None, None, None, None, None, scale(), scale()]
    attributes = {"num_heads": heads, "kv_num_heads": 2, "k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": 8}
    return Case("GroupQueryAttention", inputs, outputs=(True, True, True), free=free, **{**attributes, **more})


@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("length, past, total, wide, ends", [
    (1, 5, 6, 2, None), (6, 0, 6, 2, None), (3, 4, 7, 1, None), (1, 9, 9, 2, [9, 5]), (1, 16, 6, 2, None)])
def test_past_of_bytes(engine, kind, dtype, packed, free, length, past, total, wide, ends):
    case = case_of(kind, length, past, total, dtype, packed, free, wide, ends=ends)
    expected = case.expected()
    ours = engine.run(case.typed(expected), case.feeds)
    assert [x.dtype for x in ours] == [dtype, np.int8, np.int8] and [x.shape for x in ours] == [x.shape for x in expected]
    compare(ours[:1], expected[:1])
    for mine, yours in zip(ours[1:], expected[1:]):
        for b, end in enumerate(ends or [total] * wide):
            np.testing.assert_array_equal(mine[b, :, :end], yours[b, :, :end])


@pytest.mark.parametrize("attributes, words", [
    ({"v_quant_type": "NONE"}, "only one of"), ({"k_quant_type": "PER_ROW"}, "PER_TENSOR or PER_CHANNEL"),
    ({"kv_cache_bit_width": 4}, "4 bits"), ({"k_quant_type": "NONE", "v_quant_type": "NONE"}, "a past of int8"),
])
@pytest.mark.parametrize("kind", ["PER_TENSOR"])
def test_what_is_wrong(engine, kind, attributes, words):
    case = case_of(kind, 1, 5, 6, **attributes)
    like = [numbers(2, 1, 288), np.zeros((2, 2, 6, 72), np.int8), np.zeros((2, 2, 6, 72), np.int8)]
    with pytest.raises(RuntimeError, match=words):
        engine.run(case.typed(like), case.feeds)


def test_scales_of_a_wrong_size(engine):
    case = case_of("PER_CHANNEL", 1, 5, 6, free=True)
    case.feeds["x12"] = case.feeds["x12"][..., :-1]
    case.model.graph.input[-2].type.tensor_type.shape.dim[3].dim_param = "other"
    like = [numbers(2, 1, 288), np.zeros((2, 2, 6, 72), np.int8), np.zeros((2, 2, 6, 72), np.int8)]
    with pytest.raises(RuntimeError, match="k_scale and v_scale"):
        engine.run(case.typed(like), case.feeds)
