"""How nodes of ai.onnx are drawn that sample, transform, recur or attend."""

from __future__ import annotations

import numpy as np
from drawing import Draw, Hints, Invalid, Node, ints, listed

HINTS = Hints()
of = HINTS.of


# --- sampling --------------------------------------------------------------------------------------------


@of("Upsample")
def upsample(d: Draw) -> Node:
    shape = d.shape(2, 4, 1, 4)
    scales = [1.0] * (len(shape) - 2) + [d.one_of(1.0, 2.0, 1.5, 3.0) for _ in range(2)]
    x = d.array(d.dtype("X", "float", "double", "float16"), shape, edges=0)
    made = d.attributes(mode="nearest" if d.maybe() else "linear")
    if made.get("mode") == "linear" and len(shape) not in (2, 4):
        made["mode"] = "nearest"
    return Node([x, np.array(scales, np.float32)], made) if d.version >= 9 else Node([x], {**made, "scales": scales})


@of("Resize")
def resize(d: Draw) -> Node:
    shape = [d.between(1, 2), d.between(1, 2), d.between(1, 6), d.between(1, 6)][d.between(0, 2):]
    rank = len(shape)
    mode = d.one_of("nearest", "linear", "cubic") if d.version >= 11 else d.one_of("nearest", "linear")
    if mode == "cubic" and rank != 4:
        mode = "linear"
    if mode == "linear" and rank == 3:
        mode = "nearest"
    scales = [1.0] * (rank - 2) + [d.one_of(0.5, 0.6, 1.0, 1.3, 2.0, 3.0) for _ in range(2)]
    types = ["float", "double", "float16"]  # interpolated integers are cut off, wherever rounding left them
    x = d.array(d.dtype(d.schema.inputs[0].name, *types, *["int32", "uint8", "int8"] * (mode == "nearest")), shape, edges=0)
    if any(int(size * scale) < 1 for size, scale in zip(shape, scales)):
        raise Invalid("nothing would be left")
    if d.version == 10:
        return Node([x, np.array(scales, np.float32)], {"mode": mode})
    transformations = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"]
    if d.version >= 19:
        transformations.append("half_pixel_symmetric")
    transformation = d.one_of(*transformations)
    made = {"mode": mode, "coordinate_transformation_mode": transformation}
    if mode == "nearest":
        made.update(d.attributes(nearest_mode=d.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")))
    if mode == "cubic":
        made.update(d.attributes(cubic_coeff_a=d.one_of(-0.5, -0.75), exclude_outside=d.between(0, 1)))
    if mode != "nearest" and d.version >= 18 and min(scales) < 1 and transformation != "tf_crop_and_resize":
        made.update(d.attributes(antialias=1))
    roi = None
    if transformation == "tf_crop_and_resize":
        roi = np.array([0.0] * (rank - 2) + [0.07, 0.19] + [1.0] * (rank - 2) + [0.93, 1.11], np.float32)
        made.update(d.attributes(extrapolation_value=float(d.between(0, 3))))
    elif d.version == 11:
        roi = np.array([], np.float32)
    if d.maybe(0.6) and roi is None or d.version == 11 and roi is not None and roi.size == 0:
        return Node([x, roi, np.array(scales, np.float32)], made)
    sizes = shape[:rank - 2] + [d.between(1, 9), d.between(1, 9)]
    return Node([x, roi, np.array([], np.float32) if d.version == 11 else None, listed(sizes)], made)


@of("GridSample")
def grid_sample(d: Draw) -> Node:
    spatial = 2 if d.version < 20 or d.maybe(0.7) else 3
    n = d.between(1, 2)
    mode = d.one_of("bilinear", "nearest", "bicubic") if d.version < 20 else d.one_of(*["linear", "nearest"] + ["cubic"] * (spatial == 2))
    grid = d.numpy.uniform(-1.3, 1.3, [n, *[d.between(1, 4) for _ in range(spatial)], spatial]).astype(d.dtype("grid", "float", "double"))
    return Node([d.array(d.dtype("X", "float", "double"), [n, d.between(1, 2), *[d.between(2, 5) for _ in range(spatial)]], edges=0), grid],
                {"mode": mode, **d.attributes(padding_mode=d.one_of("zeros", "border", "reflection"), align_corners=d.between(0, 1))})


@of("AffineGrid")
def affine_grid(d: Draw) -> Node:
    spatial, n = d.one_of(2, 3), d.between(1, 2)
    return Node([d.array(d.dtype("theta"), [n, spatial, spatial + 1], edges=0),
                 listed([n, d.between(1, 2), *[d.between(2, 4) for _ in range(spatial)]])], d.attributes(align_corners=d.between(0, 1)))


@of("NonMaxSuppression")
def nms(d: Draw) -> Node:
    n, boxes, classes = d.between(1, 2), d.between(1, 6), d.between(1, 2)
    corner = d.numpy.uniform(0, 3, (n, boxes, 2))
    made = d.attributes(center_point_box=d.between(0, 1))
    places = np.concatenate([corner, corner + d.numpy.uniform(0.5, 3, (n, boxes, 2))], axis=2).astype(np.float32)
    return Node([places, d.numpy.random((n, classes, boxes)).astype(np.float32), ints(d.between(0, 4)) if d.maybe(0.9) else None,
                 np.array([d.real(0, 1)], np.float32) if d.maybe() else None,
                 np.array([d.real(0, 0.7)], np.float32) if d.maybe() else None], made)


# --- signals ----------------------------------------------------------------------------------------------


@of("BlackmanWindow", "HammingWindow", "HannWindow")
def window(d: Draw) -> Node:
    made = d.attributes(periodic=d.between(0, 1))
    if d.maybe():
        made["output_datatype"] = d.element_attribute("float", "double")
    return Node([np.array(d.between(2, 12), d.dtype("size"))], made)


@of("MelWeightMatrix")
def mel(d: Draw) -> Node:
    integer = lambda value: np.array(value, np.int64)  # noqa: E731
    return Node([integer(d.between(1, 8)), integer(d.one_of(16, 32, 64)), integer(d.one_of(8000, 16000)),
                 np.array(d.real(0, 100), np.float32), np.array(d.real(1000, 4000), np.float32)])


@of("DFT")
def dft(d: Draw) -> Node:
    shape = [d.between(1, 2), d.between(1, 6), d.between(1, 6)]
    inverse = d.between(0, 1)
    onesided = d.between(0, 1) if not inverse else 0
    x = d.array(d.dtype("input", "float", "double"), [*shape, 1 if onesided or (d.maybe() and not inverse) else 2], edges=0)
    length = np.array(d.between(1, 8), np.int64) if d.maybe(0.4) else None
    made = {"inverse": inverse, "onesided": onesided}
    axis = d.one_of(1, 2, -2)
    return Node([x, length], {**made, "axis": axis % 4}) if d.version < 20 else Node([x, length, np.array(axis, np.int64)], made)


@of("STFT")
def stft(d: Draw) -> Node:
    length, frame = d.between(8, 16), d.between(2, 8)
    dtype = d.dtype("signal", "float", "double")
    use_window = d.maybe()
    return Node([d.array(dtype, [d.between(1, 2), length, 1], edges=0), np.array(d.between(1, 4), np.int64),
                 d.array(dtype, [frame], edges=0) if use_window else None,
                 np.array(frame, np.int64) if not use_window or d.maybe() else None], d.attributes(onesided=d.between(0, 1)))


# --- recurrent -----------------------------------------------------------------------------------------------


@of("RNN", "GRU", "LSTM")
def recurrent(d: Draw) -> Node:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.name]
    direction = d.one_of("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    steps, n, width, hidden = d.between(1, 4), d.between(1, 3), d.between(1, 4), d.between(1, 4)
    layout = d.between(0, 1) if d.version >= 14 and d.maybe(0.3) else 0
    dtype = d.dtype("X", "float", "double")
    real = lambda *shape: d.array(dtype, shape, -1, 1, edges=0)  # noqa: E731
    made = {"hidden_size": hidden, "direction": direction, **({"layout": 1} if layout else {}),
            **d.attributes(clip=d.real(0.2, 3), linear_before_reset=d.between(0, 1))}
    if d.name == "LSTM":
        made.update(d.attributes(input_forget=d.between(0, 1)) if d.maybe(0.3) else {})
    if d.maybe(0.4):
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[d.name] * ways
        made["activations"] = [d.one_of("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus") for _ in range(count)]
    lens = d.numpy.integers(1, steps + 1, n).astype(np.int32) if d.maybe() else None
    state = (lambda: real(n, ways, hidden) if layout else real(ways, n, hidden))
    inputs = [real(n, steps, width) if layout else real(steps, n, width), real(ways, gates * hidden, width),
              real(ways, gates * hidden, hidden), real(ways, 2 * gates * hidden) if d.maybe() else None, lens,
              state() if d.maybe() else None]
    if d.name == "LSTM":
        inputs += [state() if d.maybe() else None, real(ways, 3 * hidden) if d.maybe(0.3) else None]
    return Node(inputs, made, 3 if d.name == "LSTM" else 2)


# --- attention -------------------------------------------------------------------------------------------------


@of("Attention")
def attention(d: Draw) -> Node:
    n, kv_heads, size, value_size = d.between(1, 2), d.between(1, 2), d.between(1, 4), d.between(1, 4)
    heads = kv_heads * d.between(1, 2)
    queries, keys, past = d.between(1, 4), d.between(1, 4), d.between(1, 3)
    q, v = d.dtype("Q", "float", "double"), d.dtype("V", "float", "double")
    flat = d.maybe(0.3)
    real = lambda dtype, *shape: d.array(dtype, shape, -1, 1, edges=0)  # noqa: E731
    heads_of = lambda dtype, count, length, width: (  # noqa: E731
        real(dtype, n, length, count * width) if flat else real(dtype, n, count, length, width))
    made = d.attributes(is_causal=d.between(0, 1), scale=d.real(0.1, 1), softcap=d.real(0.5, 2))
    if flat:
        made.update(q_num_heads=heads, kv_num_heads=kv_heads)
    with_past = d.maybe(0.3)
    total = keys + (past if with_past else 0)
    mask = None
    if d.maybe():
        mask_shape = d.one_of([queries, total], [n, 1, queries, total], [1, heads, queries, total])
        kind = d.dtype("attn_mask", "bool", "float", "double")
        if np.dtype(kind) != np.bool_:
            kind = q
            d.types[next(f.type_str for f in d.schema.inputs if f.name == "attn_mask")] = "float"
        mask = d.array(kind, mask_shape, edges=0)
        if mask.dtype == np.bool_:
            mask[..., 0] = True
            if made.get("is_causal"):
                mask[...] = True
    inputs = [heads_of(q, heads, queries, size), heads_of(q, kv_heads, keys, size), heads_of(v, kv_heads, keys, value_size), mask]
    outputs = 1
    if with_past:
        inputs += [real(q, n, kv_heads, past, size), real(v, n, kv_heads, past, value_size)]
        outputs = 3
    return Node(inputs, made, outputs)


@of("RotaryEmbedding")
def rotary(d: Draw) -> Node:
    n, heads, length, half = d.between(1, 2), d.between(1, 3), d.between(1, 4), d.between(1, 3)
    dtype = d.dtype("X", "float", "float16")
    real = lambda *shape: d.array(dtype, shape, -1, 1, edges=0)  # noqa: E731
    made = d.attributes(interleaved=d.between(0, 1))
    rotated, size = half, 2 * half
    if d.maybe(0.3):
        size += 2 * d.between(1, 2)
        made["rotary_embedding_dim"] = 2 * half
    flat = d.maybe()
    if flat or d.maybe(0.2):
        made["num_heads"] = heads
    x = real(n, length, heads * size) if flat else real(n, heads, length, size)
    if d.maybe():
        return Node([x, real(8, rotated), real(8, rotated), d.indices(np.int64, [n, length], 8, False)], made)
    return Node([x, real(n, length, rotated), real(n, length, rotated)], made)
