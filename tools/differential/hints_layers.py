"""How nodes of ai.onnx are drawn that are layers of a network: products, windows, normalisation, quantisation."""

from __future__ import annotations

import numpy as np
from drawing import Draw, Hints, Node, is_float, listed

HINTS = Hints()
of = HINTS.of


# --- products ----------------------------------------------------------------------------------------


@of("MatMul", "MatMulInteger")
def matmul(d: Draw) -> Node:
    batch = d.shape(0, 2)
    m, k, n = d.size(), d.size(), d.size()
    left, right = d.to_broadcast(batch) + [m, k], d.to_broadcast(batch) + [k, n]
    if d.maybe(0.1):
        left = [k]
    if d.maybe(0.1):
        right = [k]
    if d.name == "MatMul":
        dtype = d.dtype("A")
        return Node([d.array(dtype, left, edges=0), d.array(dtype, right, edges=0)])
    a, b = d.dtype("A"), d.dtype("B")
    za = d.array(a, []) if d.maybe() else None
    zb = d.array(b, [] if d.maybe(0.6) or right == [k] else [right[-1]]) if d.maybe() else None
    return Node([d.array(a, left, -99, 200), d.array(b, right, -99, 200), za, zb])


@of("Gemm")
def gemm(d: Draw) -> Node:
    m, k, n = d.size(), d.size(), d.size()
    ta, tb = d.between(0, 1), d.between(0, 1)
    dtype = d.dtype("A")
    c = d.array(dtype, d.to_broadcast([m, n]), edges=0) if d.version < 11 or d.maybe(0.7) else None
    numbers = {} if not is_float(dtype) else d.attributes(alpha=d.real(), beta=d.real())
    return Node([d.array(dtype, [k, m] if ta else [m, k], edges=0), d.array(dtype, [n, k] if tb else [k, n], edges=0), c],
                {**({"transA": ta} if ta or d.maybe() else {}), **({"transB": tb} if tb or d.maybe() else {}), **numbers})


@of("Einsum")
def einsum(d: Draw) -> Node:
    sizes = {letter: d.between(1, 4) for letter in "bijk"}
    equation = d.one_of("ij,jk->ik", "ij,jk", "bij,bjk->bik", "ii->i", "ii", "ij->ji", "ij->", "i,j->ij", "ij,ij->i",
                        "...ij,...jk->...ik", "bij->b", "i,i->", "b...->...b", "ij,jk,ki->", " ij , jk -> k ")
    lead = d.shape(0, 2)
    inputs = []
    dtype = d.dtype("Inputs")
    for term in equation.replace(" ", "").split("->")[0].split(","):
        shape = []
        for letter in term.replace("...", "."):
            shape += lead if letter == "." else [sizes[letter]]
        inputs.append(d.array(dtype, shape, edges=0))
    return Node(inputs, {"equation": equation})


@of("Det")
def det(d: Draw) -> Node:
    n = d.between(1, 4)
    return Node([d.array(d.dtype("X"), d.shape(0, 2) + [n, n], edges=0)])


# --- windows ------------------------------------------------------------------------------------------


class Windows:
    """The attributes that convolutions and pooling share, for a kernel that fits its input."""

    def __init__(self, d: Draw, spatial: int | None = None):
        self.rank = spatial or d.one_of(1, 2, 2, 2, 3)
        self.kernel = [d.between(1, 3) for _ in range(self.rank)]
        self.strides = [d.between(1, 3) for _ in range(self.rank)]
        self.dilations = [d.between(1, 2) if d.has("dilations") else 1 for _ in range(self.rank)]
        reach = [(k - 1) * dil + 1 for k, dil in zip(self.kernel, self.dilations)]
        self.auto = d.one_of("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER") if d.has("auto_pad") else "NOTSET"
        self.pads = [d.between(0, min(2, self.kernel[i % self.rank] - 1)) for i in range(2 * self.rank)]
        self.size = [r + d.between(0, 6) for r in reach]
        self.attributes = {}
        if self.auto == "NOTSET" and d.maybe(0.7):
            self.attributes["pads"] = self.pads
        elif self.auto != "NOTSET":
            self.attributes["auto_pad"] = self.auto
            if self.auto.startswith("SAME"):
                self.dilations = [1] * self.rank
        if d.name == "ConvTranspose":  # which way SAME crops where windows leave gaps is not written down
            self.strides = [min(stride, k) for stride, k in zip(self.strides, self.kernel)]
        if d.maybe(0.7):
            self.attributes["strides"] = self.strides
        if any(x != 1 for x in self.dilations):
            self.attributes["dilations"] = self.dilations


@of("Conv", "ConvInteger", "QLinearConv")
def conv(d: Draw) -> Node:
    w = Windows(d)
    group = d.one_of(1, 1, 2, 3)
    channels, outputs = group * d.between(1, 3), group * d.between(1, 3)
    if d.maybe(0.15):
        channels = outputs = group
    made = dict(w.attributes)
    if d.maybe():
        made["kernel_shape"] = w.kernel
    if group != 1 or d.maybe():
        made["group"] = group
    x_shape = [d.between(1, 2), channels, *w.size]
    w_shape = [outputs, channels // group, *w.kernel]
    if d.name == "Conv":
        dtype = d.dtype("X")
        bias = d.array(dtype, [outputs], edges=0) if d.maybe() else None
        return Node([d.array(dtype, x_shape, edges=0), d.array(dtype, w_shape, edges=0), bias], made)
    tx, tw = d.dtype("x"), d.dtype("w")
    x, weights = d.array(tx, x_shape, -120, 250), d.array(tw, w_shape, -120, 250)
    if d.name == "ConvInteger":
        zx = d.array(tx, []) if d.maybe() else None
        zw = d.array(tw, [] if d.maybe() else [outputs]) if d.maybe() else None
        return Node([x, weights, zx, zw], made)
    many = [outputs] if d.maybe() else []
    scale = lambda shape: d.numpy.uniform(0.01, 0.1, shape).astype(np.float32)  # noqa: E731
    bias = d.array(np.int32, [outputs], -500, 500, edges=0) if d.maybe() else None
    return Node([x, scale([]), d.array(tx, []), weights, scale(many), d.array(tw, many), scale([]) * 10,
                 d.array(d.dtype("y_zero_point"), []), bias], made)


@of("ConvTranspose")
def conv_transpose(d: Draw) -> Node:
    w = Windows(d)
    group = d.one_of(1, 1, 2)
    channels, outputs = group * d.between(1, 3), d.between(1, 3)
    made = dict(w.attributes)
    if group != 1:
        made["group"] = group
    if d.maybe(0.3) and "strides" in made:
        made["output_padding"] = [d.between(0, stride - 1) for stride in made["strides"]]
    if d.maybe():
        made["kernel_shape"] = w.kernel
    dtype = d.dtype("X")
    bias = d.array(dtype, [outputs * group], edges=0) if d.maybe() else None
    return Node([d.array(dtype, [d.between(1, 2), channels, *w.size], edges=0),
                 d.array(dtype, [channels, outputs, *w.kernel], edges=0), bias], made)


@of("DeformConv")
def deform_conv(d: Draw) -> Node:
    w = Windows(d, 2)
    group, offsets = d.one_of(1, 2), d.one_of(1, 2)
    channels, outputs = 2 * d.between(1, 2), 2 * d.between(1, 2)
    made = dict(w.attributes)
    pads, strides, dil = made.get("pads", [0] * 4), made.get("strides", [1] * 2), made.get("dilations", [1] * 2)
    out = [(w.size[i] + pads[i] + pads[i + 2] - (w.kernel[i] - 1) * dil[i] - 1) // strides[i] + 1 for i in range(2)]
    n, taps = d.between(1, 2), w.kernel[0] * w.kernel[1]
    dtype = d.dtype("X")
    real = lambda shape: d.array(dtype, shape, -1.5, 1.5, edges=0)  # noqa: E731
    return Node([real([n, channels, *w.size]), real([outputs, channels // group, *w.kernel]),
                 real([n, offsets * taps * 2, *out]), real([outputs]) if d.maybe() else None,
                 real([n, offsets * taps, *out]) if d.maybe() else None],
                {**made, "group": group, "offset_group": offsets, **d.attributes(kernel_shape=w.kernel)})


@of("MaxPool", "AveragePool", "LpPool")
def pool(d: Draw) -> Node:
    w = Windows(d)
    made = {"kernel_shape": w.kernel, **w.attributes,
            **d.attributes(ceil_mode=d.between(0, 1), count_include_pad=d.between(0, 1), p=d.between(1, 3),
                           storage_order=d.between(0, 1))}
    if d.name == "LpPool" and d.version == 1:
        made["p"] = float(made.get("p", 2))
    x = d.array(d.dtype("X"), [d.between(1, 2), d.between(1, 3), *w.size], edges=0)
    outputs = 2 if d.name == "MaxPool" and d.version >= 8 and d.maybe() else 1
    return Node([x], made, outputs)


@of("MaxUnpool")
def max_unpool(d: Draw) -> Node:
    shape = [d.between(1, 2), d.between(1, 2), d.between(1, 3), d.between(1, 3)]
    kernel = [2, 2]
    out = [shape[2] * 2, shape[3] * 2]
    total = shape[0] * shape[1] * out[0] * out[1]
    where = d.numpy.permutation(total)[:int(np.prod(shape))].reshape(shape).astype(np.int64)
    return Node([d.array(d.dtype("X"), shape, edges=0), where], {"kernel_shape": kernel, "strides": kernel})


@of("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d: Draw) -> Node:
    return Node([d.array(d.dtype("X"), d.shape(3, 5, 1, 4), edges=0)],
                d.attributes(p=d.between(1, 3) if d.version > 1 else float(d.between(1, 3))))


@of("LRN")
def lrn(d: Draw) -> Node:
    return Node([d.array(d.dtype("X"), [d.between(1, 2), d.between(1, 7), *d.shape(1, 2)], edges=0)],
                {"size": d.between(1, 6), **d.attributes(alpha=d.real(0, 1), beta=d.real(0.1, 1), bias=d.real(0.5, 2))})


@of("Col2Im")
def col2im(d: Draw) -> Node:
    w = Windows(d, 2)
    pads, strides = w.attributes.get("pads", [0] * 4), w.attributes.get("strides", [1] * 2)
    dil = w.attributes.get("dilations", [1] * 2)
    blocks = np.prod([(w.size[i] + pads[i] + pads[i + 2] - (w.kernel[i] - 1) * dil[i] - 1) // strides[i] + 1 for i in range(2)])
    return Node([d.array(d.dtype("input", "float", "double"), [d.between(1, 2), d.between(1, 3) * int(np.prod(w.kernel)), int(blocks)], edges=0),
                 listed(w.size), listed(w.kernel)], w.attributes)


@of("MaxRoiPool")
def max_roi_pool(d: Draw) -> Node:
    n = d.between(1, 2)
    rois = [[d.between(0, n - 1), *sorted([d.between(0, 4), d.between(0, 4)])] for _ in range(d.between(1, 3))]
    boxes = [[r[0], r[1], d.between(0, 2), r[2], d.between(2, 5)] for r in rois]
    dtype = d.dtype("X")
    return Node([d.array(dtype, [n, d.between(1, 2), 6, 6], edges=0), np.array(boxes, dtype)],
                {"pooled_shape": [d.between(1, 3), d.between(1, 3)], **d.attributes(spatial_scale=1.0)})


@of("RoiAlign")
def roi_align(d: Draw) -> Node:
    n, count = d.between(1, 2), d.between(1, 3)
    dtype = d.dtype("X")
    corner = d.numpy.uniform(0, 3, (count, 2))
    boxes = np.concatenate([corner, corner + d.numpy.uniform(0.5, 4, (count, 2))], axis=1).astype(dtype)
    return Node([d.array(dtype, [n, d.between(1, 3), 6, 7], edges=0), boxes, d.indices(np.int64, [count], n, False)],
                d.attributes(mode=d.one_of("avg", "max"), output_height=d.between(1, 3), output_width=d.between(1, 3),
                             sampling_ratio=d.between(0, 3), spatial_scale=d.real(0.5, 1.5),
                             coordinate_transformation_mode=d.one_of("half_pixel", "output_half_pixel")))


# --- normalisation -------------------------------------------------------------------------------------


@of("BatchNormalization")
def batch_normalization(d: Draw) -> Node:
    shape = d.shape(2, 4)
    names = [formal.name for formal in d.schema.inputs]
    vector = lambda name, low: d.array(d.dtype(name), [shape[1]], low, 2, edges=0)  # noqa: E731
    made = d.attributes(epsilon=abs(d.real()) + 1e-3)
    training = d.version >= 14 and d.maybe(0.3) and np.prod(shape) > 0
    if training:
        made["training_mode"] = 1
        made.update(d.attributes(momentum=d.real(0, 1)))
    inputs = [d.array(d.dtype("X"), shape, edges=0), *(vector(name, -2) for name in names[1:4]), vector(names[4], 0.1)]
    return Node(inputs, made, 3 if training else 1)


@of("InstanceNormalization")
def instance_normalization(d: Draw) -> Node:
    shape = d.shape(3, 5)
    dtype = d.dtype("input")
    return Node([d.array(dtype, shape, edges=0), d.array(dtype, [shape[1]], edges=0), d.array(dtype, [shape[1]], edges=0)],
                d.attributes(epsilon=abs(d.real()) + 1e-3))


@of("GroupNormalization")
def group_normalization(d: Draw) -> Node:
    groups, each = d.between(1, 3), d.between(1, 3)
    shape = [d.between(1, 2), groups * each, *d.shape(1, 2)]
    dtype = d.dtype("X")
    vector = lambda: d.array(dtype, [shape[1]], edges=0)  # noqa: E731
    return Node([d.array(dtype, shape, edges=0), vector(), vector()],
                {"num_groups": groups, **d.attributes(epsilon=abs(d.real()) + 1e-3)})


@of("LayerNormalization", "RMSNormalization")
def layer_normalization(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    inner = shape[axis:] if d.maybe(0.7) else d.to_broadcast(shape[axis:])
    dtype = d.dtype("X")
    scale = d.array(dtype if d.name == "LayerNormalization" else d.dtype("scale"), inner, edges=0)
    made = {"axis": axis, **d.attributes(epsilon=abs(d.real()) + 1e-3)}
    if d.name == "RMSNormalization":
        return Node([d.array(dtype, shape, edges=0), scale], made)
    bias = d.array(dtype, inner, edges=0) if d.maybe() else None
    return Node([d.array(dtype, shape, edges=0), scale, bias], made, 3 if np.dtype(dtype) == np.float32 and d.maybe(0.4) else 1)


@of("MeanVarianceNormalization")
def mean_variance(d: Draw) -> Node:
    shape = d.shape(4, 4)
    return Node([d.array(d.dtype("X"), shape, edges=0)], d.attributes(axes=sorted(a % 4 for a in d.axes(4)) or [0]))


@of("LpNormalization")
def lp_normalization(d: Draw) -> Node:
    shape = d.shape(1, 4)
    return Node([d.array(d.dtype("input"), shape, edges=0)], d.attributes(axis=d.axis(len(shape)), p=d.between(1, 2)))


@of("Dropout")
def dropout(d: Draw) -> Node:
    x = d.array(d.dtype("data"), d.shape(0, 4))
    if d.version < 12:
        return Node([x], d.attributes(ratio=d.real(0, 0.9)), d.between(1, 2))
    ratio = np.array(d.real(0, 0.9), d.dtype("ratio")) if d.maybe() else None
    return Node([x, ratio, np.array(False) if d.maybe() else None], {}, d.between(1, 2))


@of("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d: Draw) -> Node:
    n, classes = d.between(1, 3), d.between(1, 5)
    rest = d.shape(0, 2)
    first, second, third = (formal.name for formal in d.schema.inputs[:3])
    dtype = d.dtype(first)
    made = d.attributes(reduction=d.one_of("none", "mean", "sum"))
    labels = d.numpy.integers(0, classes, [n, *rest]).astype(d.dtype(second))
    if d.maybe(0.4):
        made["ignore_index"] = d.between(-1, classes - 1)
        if made["ignore_index"] < 0 and labels.size:
            labels.reshape(-1)[0] = made["ignore_index"]
    weight = np.asarray(d.numpy.uniform(0.1, 2, classes)).astype(dtype) if d.maybe() else None
    outputs = d.between(1, 2) if d.name.startswith("Softmax") else 1
    return Node([d.array(dtype, [n, classes, *rest], edges=0), labels, weight], made, outputs)


# --- quantisation ----------------------------------------------------------------------------------------


def quantisation_shape(d: Draw):
    """(shape of x, shape of the scales, attributes): per tensor, per axis or in blocks."""
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    kind = d.between(0, 2)
    if kind == 0 or not d.has("axis"):
        return shape, [], {}
    if kind == 1 or not d.has("block_size"):
        return shape, [shape[axis]], {"axis": axis}
    block = d.between(1, 3)
    shape[axis] = block * d.between(1, 3)
    scales = list(shape)
    scales[axis] //= block
    return shape, scales, {"axis": axis, "block_size": block}


@of("QuantizeLinear")
def quantize(d: Draw) -> Node:
    shape, scales, made = quantisation_shape(d)
    names = [formal.name for formal in d.schema.inputs]
    x = d.array(d.dtype(names[0]), shape, -60, 60, edges=0)
    scale = np.asarray(d.numpy.uniform(0.1, 0.5, scales)).astype(d.dtype(names[1], "float", "float16", "bfloat16"))
    if x.dtype == np.int32 and d.dtype(names[1]) == np.int32:
        scale = d.array(np.int32, scales, 1, 3, edges=0)
    zero = d.array(d.dtype(names[2]), scales, -10, 10, edges=0.1)
    if is_float(zero.dtype):
        zero = np.zeros_like(zero)
    if zero.dtype == np.uint8 and d.maybe(0.3):
        zero = None
    return Node([x, scale, zero], {**made, **d.attributes(saturate=d.between(0, 1))})


@of("DequantizeLinear")
def dequantize(d: Draw) -> Node:
    shape, scales, made = quantisation_shape(d)
    x = d.array(d.dtype("x"), shape, -100, 200)
    scale = np.asarray(d.numpy.uniform(0.1, 0.5, scales)).astype(d.dtype("x_scale"))
    zero = d.array(x.dtype, scales, -10, 10) if d.maybe(0.7) else None
    if zero is not None and (x.dtype == np.int32 or is_float(x.dtype)):
        zero = np.zeros_like(zero)
    return Node([x, scale, zero], made)


@of("DynamicQuantizeLinear")
def dynamic_quantize(d: Draw) -> Node:
    return Node([d.array(np.float32, d.shape(1, 3), d.one_of(-4, 0.5), 9, edges=0)], {}, 3)


@of("QLinearMatMul")
def qlinear_matmul(d: Draw) -> Node:
    m, k, n = d.between(1, 4), d.between(1, 6), d.between(1, 4)
    batch = d.shape(0, 1)
    scale_type = d.dtype("a_scale") if d.version >= 21 else np.float32
    scale = lambda: np.asarray(d.numpy.uniform(0.02, 0.1, [])).astype(scale_type)  # noqa: E731
    a, b, y = (d.dtype(name, "int8", "uint8") for name in ("a", "b", "y_zero_point"))
    return Node([d.array(a, [*batch, m, k], -99, 200), scale(), d.array(a, [], -10, 10), d.array(b, [*batch, k, n], -99, 200),
                 scale(), d.array(b, [], -10, 10), (scale() * 8).astype(scale_type), d.array(y, [], -10, 10)])
