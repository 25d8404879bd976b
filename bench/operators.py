#!/usr/bin/env python3
"""Times Sardonyx and ONNX Runtime side by side on single operators of the standard, some 400 of them.

Each is a model of one node on seeded inputs of a size that networks have. Both engines take turns in one process, called
through their libraries, and their outputs are compared, as `./dev bench` does with the models of bench/zoo. Names tell the
operator, then what is special: an element type, an axis, a mode.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import report
import run
import values

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- operators:begin -->", "<!-- operators:end -->"
DRAWN = {"Bernoulli", "RandomNormalLike"}  # whose outputs cannot agree


@dataclasses.dataclass(frozen=True)
class Case:
    op: str
    inputs: list[np.ndarray]
    constants: set[int]
    outputs: int
    opset: int
    attributes: dict


random = np.random.default_rng(0)
CASES: dict[str, Case] = {}


def add(name: str, inputs: list[np.ndarray], constants=(), outputs: int = 1, opset: int = 21, **attributes) -> None:
    """The operator is what stands before the first underscore; `constants` are the inputs that are initializers."""
    CASES[name] = Case(name.split("_")[0], inputs, set(constants), outputs, opset, attributes)


def f32(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def f64(*shape: int) -> np.ndarray:
    return random.standard_normal(shape)


def positive(*shape: int) -> np.ndarray:
    return np.abs(f32(*shape)) + np.float32(0.1)


def whole(most: int, *shape: int) -> np.ndarray:
    return random.integers(0, most, shape)


def i64(*shape: int) -> np.ndarray:
    return whole(50, *shape) + 1


def i32(*shape: int) -> np.ndarray:
    return i64(*shape).astype(np.int32)


def truths(*shape: int) -> np.ndarray:
    return random.integers(0, 2, shape).astype(bool)


def octets(*shape: int) -> np.ndarray:
    return random.integers(0, 255, shape).astype(np.uint8)


def weights(*shape: int) -> np.ndarray:
    return f32(*shape) / np.float32(np.sqrt(np.prod(shape[1:])))


def numbers(*values, kind=np.int64) -> np.ndarray:
    return np.array(values, kind)


def number(value, kind=np.int64) -> np.ndarray:
    return np.array(value, kind)


TYPES = {"f32": f32, "f64": f64, "i64": i64, "i32": i32}


def elementwise() -> None:
    inside = {"Asin", "Acos", "Atanh"}
    for op in """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsNaN
                 LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan
                 Tanh ThresholdedRelu""".split():
        x = truths(512, 512) if op == "Not" else np.tanh(f32(512, 512)) * np.float32(0.9) if op in inside else \
            positive(512, 512) + np.float32(op == "Acosh") if op in {"Log", "Sqrt", "Acosh"} else f32(512, 512)
        add(op, [x])
    for op in "Abs Exp Floor Log Relu Sigmoid Sqrt Tanh".split():
        add(f"{op}_f64", [np.abs(f64(256, 512)) + 0.1])
    for op in "Add Div Mul Sub".split():
        for kind, make in TYPES.items():
            for what, shape in {"": (256, 512), "_row": (512,), "_column": (256, 1), "_scalar": (1,)}.items():
                add(f"{op}_{kind}{what}", [make(256, 512), make(*shape)])
    for op in "Equal Greater GreaterOrEqual Less".split():
        for kind, make in TYPES.items():
            add(f"{op}_{kind}", [make(256, 512), make(256, 512)])
            add(f"{op}_{kind}_row", [make(256, 512), make(512)])
    for op in "And Or Xor".split():
        add(op, [truths(256, 512), truths(256, 512)])
        add(f"{op}_column", [truths(256, 512), truths(256, 1)])
    for op in "Max Min".split():
        add(op, [f32(256, 512), f32(256, 512)])
        add(f"{op}_i64", [i64(256, 512), i64(256, 512)])
    for op in "Mean Sum".split():
        add(op, [f32(256, 512), f32(256, 512), f32(256, 512)])
    add("Mod_i64", [i64(256, 512), i64(256, 512)])
    add("Mod_i32", [i32(256, 512), i32(256, 512)])
    add("Mod_f32", [f32(256, 512), positive(256, 512)], fmod=1)
    add("Pow", [positive(256, 512), f32(256, 512)])
    add("Pow_half", [positive(256, 512), number(0.5, np.float32)], {1})
    add("Pow_square", [f32(256, 512), number(2, np.float32)], {1})
    add("BitShift", [whole(99, 256, 512).astype(np.uint32), whole(9, 256, 512).astype(np.uint32)], direction="LEFT")
    add("PRelu", [f32(4, 64, 56, 56), f32(64, 1, 1)], {1})
    add("Clip", [f32(256, 512), number(-1, np.float32), number(1, np.float32)], {1, 2})
    add("Clip_i64", [i64(256, 512), number(5), number(20)], {1, 2})
    add("Where", [truths(256, 512), f32(256, 512), f32(256, 512)])
    add("Where_column", [truths(256, 1), f32(256, 512), f32(1)])
    add("Where_i64", [truths(256, 512), i64(256, 512), i64(256, 512)])
    add("Where_mask", [truths(1, 1, 128, 128), f32(4, 8, 128, 128), number(-1e9, np.float32)])


def casts() -> None:
    targets = {"f16": TensorProto.FLOAT16, "i64": TensorProto.INT64, "i32": TensorProto.INT32, "f64": TensorProto.DOUBLE,
               "bool": TensorProto.BOOL, "u8": TensorProto.UINT8}
    for kind, target in targets.items():
        add(f"Cast_f32_{kind}", [50 * np.abs(f32(512, 512))], to=target)
    sources = {"i64": i64(512, 512), "i32": i32(512, 512), "bool": truths(512, 512), "u8": octets(512, 512),
               "f64": f64(512, 512), "f16": f32(512, 512).astype(np.float16)}
    for kind, x in sources.items():
        add(f"Cast_{kind}_f32", [x], to=TensorProto.FLOAT)
    add("Cast_i64_i32", [i64(512, 512)], to=TensorProto.INT32)
    add("Cast_i32_i64", [i32(512, 512)], to=TensorProto.INT64)
    add("Cast_bool_i64", [truths(512, 512)], to=TensorProto.INT64)
    add("QuantizeLinear", [f32(64, 1000), number(0.02, np.float32), number(128, np.uint8)], {1, 2})
    add("QuantizeLinear_axis", [f32(64, 1000), positive(64), octets(64)], {1, 2}, axis=0)
    add("DequantizeLinear", [octets(64, 1000), number(0.02, np.float32), number(128, np.uint8)], {1, 2})
    add("DynamicQuantizeLinear", [f32(64, 1000)], outputs=3)


def reductions() -> None:
    axes = {"last": [-1], "first": [0], "second": [1], "plane": [2, 3], "all": [0, 1, 2, 3]}
    for op in """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
                 ReduceSumSquare""".split():
        for what, over in axes.items():
            add(f"{op}_{what}", [positive(8, 32, 28, 28), numbers(*over)], {1}, keepdims=1)
    for op in "ReduceMax ReduceMean ReduceSum".split():
        for kind in ("f64", "i64", "i32"):
            for what, axis in {"last": -1, "first": 0}.items():
                add(f"{op}_{kind}_{what}", [TYPES[kind](512, 256), numbers(axis)], {1})
    for what, axis in {"last": -1, "first": 0, "middle": 1}.items():
        for op in "ArgMax ArgMin Hardmax LogSoftmax LpNormalization Softmax".split():
            add(f"{op}_{what}", [f32(64, 80, 64)], axis=axis)
        add(f"CumSum_{what}", [f32(64, 80, 64), number(axis)], {1})
        add(f"TopK_{what}", [f32(64, 80, 64), numbers(5)], {1}, outputs=2, axis=axis)
    add("ArgMax_i64", [i64(256, 512)], axis=1)
    add("ArgMax_classes", [f32(1, 21, 256, 256)], axis=1)
    for op in ("LogSoftmax", "Softmax"):
        add(f"{op}_1000", [f32(16, 1000)], axis=-1)
        add(f"{op}_words", [f32(1, 50257)], axis=-1)
    for what, shape, k in (("boxes", (1, 8400), 300), ("many", (1, 100000), 300), ("words", (1, 50257), 50), ("sort", (64, 1000), 1000)):
        add(f"TopK_{what}", [f32(*shape), numbers(k)], {1}, outputs=2)
    add("TopK_i64", [whole(9999, 16, 1000), numbers(10)], {1}, outputs=2)
    add("SoftmaxCrossEntropyLoss", [f32(64, 1000), whole(1000, 64)])
    add("NegativeLogLikelihoodLoss", [f32(64, 1000), whole(1000, 64)])


def movement() -> None:
    for what, order, shape in (("rows", [0, 1, 3, 2], (8, 16, 64, 48)), ("last", [0, 2, 3, 1], (4, 64, 56, 56)),
                               ("first", [0, 3, 1, 2], (4, 56, 56, 64)), ("heads", [0, 2, 1, 3], (4, 128, 12, 64)),
                               ("matrix", [1, 0], (1000, 700)), ("reversed", [3, 2, 1, 0], (12, 20, 24, 28)),
                               ("cube", [2, 0, 1], (64, 80, 96))):
        add(f"Transpose_{what}", [f32(*shape)], perm=order)
    add("Transpose_i64", [i64(300, 400)], perm=[1, 0])
    add("Transpose_picture", [octets(1, 480, 640, 3)], perm=[0, 3, 1, 2])
    add("Transpose_f16", [f32(4, 128, 12, 64).astype(np.float16)], perm=[0, 2, 1, 3])
    add("Gather_rows", [f32(5000, 256), whole(5000, 512)], axis=0)
    add("Gather_columns", [f32(512, 1000), whole(1000, 64)], axis=1)
    add("Gather_i64", [i64(100000), whole(100000, 20000)], axis=0)
    add("GatherElements_last", [f32(256, 512), whole(512, 256, 512)], axis=1)
    add("GatherElements_first", [f32(256, 512), whole(256, 256, 512)], axis=0)
    add("GatherND", [f32(64, 64, 64), whole(64, 5000, 2)])
    add("ScatterElements", [f32(256, 512), whole(512, 256, 64), f32(256, 64)], axis=1)
    add("ScatterElements_add", [f32(256, 512), whole(256, 256, 512), f32(256, 512)], axis=0, reduction="add")
    add("ScatterND_rows", [f32(512, 256), whole(512, 100, 1), f32(100, 256)])
    add("ScatterND_elements", [f32(512, 256), whole(256, 5000, 2), f32(5000)])
    add("ScatterND_add", [f32(512, 256), whole(256, 5000, 2), f32(5000)], reduction="add")
    for what, shape, parts in (("strides", (8, 64, 56, 56), ((0, 56, 2, 2), (0, 56, 3, 2))), ("middle", (8, 64, 56, 56), ((8, 40, 1, 1),)),
                               ("last", (512, 768), ((0, 256, 1, 1),)), ("reversed", (512, 768), ((-1, -10000, 1, -1),))):
        add(f"Slice_{what}", [f32(*shape), *(numbers(*column) for column in zip(*parts))], {1, 2, 3, 4})
    add("Split_last", [f32(512, 768)], outputs=3, axis=1, num_outputs=3)
    add("Split_second", [f32(8, 64, 28, 28)], outputs=2, axis=1, num_outputs=2)
    add("Concat_first", [f32(256, 512), f32(256, 512)], axis=0)
    add("Concat_second", [f32(4, 32, 28, 28), f32(4, 32, 28, 28)], axis=1)
    add("Concat_last", [f32(512, 256), f32(512, 256)], axis=-1)
    add("Concat_pieces", [i64(2000, 3), i64(2000, 2)], axis=1)
    for mode in "constant edge reflect wrap".split():
        add(f"Pad_{mode}", [f32(4, 16, 56, 56), numbers(0, 0, 3, 3, 0, 0, 3, 3)], {1}, mode=mode)
    add("Pad_audio", [f32(1, 1, 80000), numbers(0, 0, 200, 0, 0, 200)], {1}, mode="reflect")
    add("Tile", [f32(64, 100), numbers(8, 4)], {1})
    add("Tile_middle", [f32(512, 1, 64), numbers(1, 16, 1)], {1})
    add("Expand", [f32(64, 1, 100), numbers(64, 50, 100)], {1})
    add("Expand_column", [f32(512, 1), numbers(512, 512)], {1})
    add("Expand_mask", [truths(1, 1, 128, 128), numbers(8, 12, 128, 128)], {1})
    add("OneHot", [whole(100, 2000), numbers(100), numbers(0, 1, kind=np.float32)], {1, 2})
    add("NonZero", [truths(512, 512)])
    add("NonZero_f32", [(f32(256, 256) > 1).astype(np.float32)])
    add("Unique", [whole(500, 20000)], outputs=4)
    add("Unique_unsorted", [whole(500, 20000)], sorted=0)
    add("Compress", [f32(512, 256), truths(512)], axis=0)
    add("Trilu", [f32(8, 256, 256)])
    add("EyeLike", [f32(512, 512)])
    add("Range", [number(0), number(100000), number(1)])
    add("Range_f32", [number(0, np.float32), number(100000, np.float32), number(1, np.float32)])
    add("ReverseSequence", [f32(100, 64, 32), whole(99, 64) + 1], batch_axis=1, time_axis=0)
    add("DepthToSpace", [f32(1, 64, 64, 64)], blocksize=2)
    add("DepthToSpace_CRD", [f32(1, 64, 64, 64)], blocksize=2, mode="CRD")
    add("SpaceToDepth", [f32(1, 16, 128, 128)], blocksize=2)
    add("Col2Im", [f32(1, 27, 900), numbers(32, 32), numbers(3, 3)], {1, 2})
    add("CenterCropPad", [f32(3, 100, 100), numbers(80, 120)], {1}, axes=[1, 2])


def products() -> None:
    for kind, make in TYPES.items():
        add(f"MatMul_{kind}", [make(128, 256), make(256, 192)])
        add(f"MatMul_{kind}_vector", [make(512, 512), make(512)])
        add(f"MatMul_{kind}_batch", [make(16, 64, 32), make(16, 32, 64)])
        add(f"MatMul_{kind}_row", [make(1, 512), make(512, 512)])
    add("MatMul_3x3", [f32(2000, 3, 3), f32(2000, 3, 3)])
    add("MatMul_4x4", [f32(5000, 4, 4), f32(5000, 4, 1)])
    add("MatMul_shared", [f32(64, 100, 16), f32(16, 4)])
    add("MatMul_outer", [f32(500, 1), f32(1, 500)])
    add("MatMul_two", [f32(10000, 12), f32(12, 2)], {1})
    add("MatMul_one", [f32(10000, 64), f32(64, 1)])
    add("Gemm_transposed", [f32(64, 512), f32(256, 512), f32(256)], {1, 2}, transB=1)
    add("Gemm_f64", [f64(64, 512), f64(512, 256), f64(256)], alpha=0.5)
    add("Gemm_columns", [f32(512, 64), f32(512, 256)], transA=1)
    add("MatMulInteger", [octets(64, 256), octets(256, 128)], {1})
    for what, equation, shapes in (("scores", "bhqd,bhkd->bhqk", ((2, 8, 64, 64), (2, 8, 64, 64))), ("matrix", "ij,jk->ik", ((300, 400), (400, 200))),
                                   ("outer", "i,j->ij", ((300,), (400,))), ("sum", "ijk->ik", ((64, 80, 90),)),
                                   ("three", "bij,bjk,bkl->bil", ((4, 32, 16), (4, 16, 48), (4, 48, 8))),
                                   ("elements", "ijk,ijk->ij", ((64, 80, 90), (64, 80, 90)))):
        add(f"Einsum_{what}", [f32(*shape) for shape in shapes], equation=equation)
    add("Det", [f32(500, 4, 4)])


def windows() -> None:
    def conv(what: str, x: tuple, w: tuple, **attributes) -> None:
        add(f"Conv_{what}", [f32(*x), weights(*w)], {1}, **attributes)

    conv("line", (1, 64, 1000), (64, 64, 3), pads=[1, 1])
    conv("audio", (1, 1, 16000), (128, 1, 400), strides=[160])
    conv("volume", (1, 16, 16, 32, 32), (16, 16, 3, 3, 3), pads=[1] * 6)
    conv("dilated", (1, 32, 64, 64), (32, 32, 3, 3), dilations=[2, 2], pads=[2] * 4)
    conv("to_picture", (1, 32, 96, 96), (3, 32, 9, 9), pads=[4] * 4)
    conv("to_samples", (1, 64, 4000), (1, 64, 7), pads=[3, 3])
    conv("depthwise", (1, 96, 56, 56), (96, 1, 5, 5), group=96, pads=[2] * 4)
    conv("depthwise_9x9", (1, 64, 28, 28), (64, 1, 9, 9), group=64, pads=[4] * 4)
    conv("depthwise_dilated", (1, 96, 56, 56), (96, 1, 3, 3), group=96, pads=[2] * 4, dilations=[2, 2])
    conv("depthwise_column", (1, 64, 56, 56), (64, 1, 11, 1), group=64, pads=[5, 0, 5, 0])
    conv("depthwise_line", (1, 256, 500), (256, 1, 31), group=256, pads=[15, 15])
    conv("groups", (1, 64, 56, 56), (64, 16, 3, 3), group=4, pads=[1] * 4)
    conv("1x7", (1, 32, 56, 56), (32, 32, 1, 7), pads=[0, 3, 0, 3])
    conv("one", (1, 64, 128, 128), (1, 64, 3, 3), pads=[1] * 4)
    add("Conv_dynamic", [f32(1, 32, 32, 32), weights(32, 32, 3, 3)], pads=[1] * 4)

    def of_bytes(what: str, x: tuple, w: tuple, **attributes) -> None:
        scale = positive(w[0]) / np.float32(np.sqrt(np.prod(w[1:])) * 1000)
        small = (octets(*w).astype(np.int16) - 127).astype(np.int8)
        zero = number(121, np.uint8)
        add(f"QLinearConv_{what}", [octets(*x), number(0.02, np.float32), zero, small, scale, np.zeros(w[0], np.int8),
                                    number(0.03, np.float32), zero, whole(1000, w[0]).astype(np.int32)],
            set(range(1, 9)), **attributes)

    of_bytes("3x3", (1, 64, 28, 28), (64, 64, 3, 3), pads=[1] * 4)
    of_bytes("pointwise", (1, 96, 28, 28), (96, 96, 1, 1))
    of_bytes("depthwise", (1, 96, 56, 56), (96, 1, 3, 3), group=96, pads=[1] * 4)
    of_bytes("depthwise_halved", (1, 96, 56, 56), (96, 1, 3, 3), group=96, pads=[1] * 4, strides=[2, 2])
    of_bytes("depthwise_7x7", (1, 40, 56, 56), (40, 1, 7, 7), group=40, pads=[3] * 4)
    of_bytes("groups", (1, 64, 28, 28), (64, 16, 3, 3), group=4, pads=[1] * 4)

    def turned(what: str, x: tuple, w: tuple, **attributes) -> None:
        add(f"ConvTranspose_{what}", [f32(*x), weights(*w)], {1}, **attributes)

    turned("2x2", (1, 64, 32, 32), (64, 32, 2, 2), strides=[2, 2])
    turned("4x4", (1, 32, 32, 32), (32, 16, 4, 4), strides=[2, 2], pads=[1] * 4)
    turned("3x3", (1, 32, 32, 32), (32, 32, 3, 3), strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])
    turned("line", (1, 128, 200), (128, 64, 16), strides=[8], pads=[4, 4])
    turned("volume", (1, 16, 8, 16, 16), (16, 8, 2, 2, 2), strides=[2, 2, 2])
    turned("depthwise", (1, 64, 32, 32), (64, 1, 4, 4), strides=[2, 2], pads=[1] * 4, group=64)
    for op in "AveragePool MaxPool".split():
        for what, shape, attributes in (("2x2", (1, 64, 112, 112), dict(kernel_shape=[2, 2], strides=[2, 2])),
                                        ("halved", (1, 64, 112, 112), dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)),
                                        ("3x3", (1, 64, 56, 56), dict(kernel_shape=[3, 3], pads=[1] * 4)),
                                        ("5x5", (1, 128, 20, 20), dict(kernel_shape=[5, 5], pads=[2] * 4)),
                                        ("line", (1, 64, 2000), dict(kernel_shape=[4], strides=[4])),
                                        ("volume", (1, 16, 16, 32, 32), dict(kernel_shape=[2, 2, 2], strides=[2, 2, 2]))):
            add(f"{op}_{what}", [f32(*shape)], **attributes)
    add("MaxPool_indices", [f32(1, 64, 112, 112)], outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    add("MaxUnpool", [f32(1, 1, 64, 64), 4 * np.arange(4096).reshape(1, 1, 64, 64)], kernel_shape=[2, 2], strides=[2, 2])
    add("LpPool", [f32(1, 64, 56, 56)], kernel_shape=[2, 2], strides=[2, 2])
    add("GlobalAveragePool", [f32(8, 512, 7, 7)])
    add("GlobalMaxPool", [f32(8, 512, 7, 7)])
    add("BatchNormalization", [f32(4, 64, 56, 56), f32(64), f32(64), f32(64), positive(64)], {1, 2, 3, 4})
    add("InstanceNormalization", [f32(4, 64, 56, 56), f32(64), f32(64)], {1, 2})
    add("GroupNormalization", [f32(4, 64, 56, 56), f32(64), f32(64)], {1, 2}, num_groups=8)
    add("LayerNormalization", [f32(4, 128, 768), f32(768), f32(768)], {1, 2})
    add("MeanVarianceNormalization", [f32(4, 16, 56, 56)])
    add("LRN", [f32(1, 64, 56, 56)], size=5)


def pictures() -> None:
    nothing, floats = np.zeros(0, np.float32), np.float32
    for mode in "nearest linear cubic".split():
        add(f"Resize_up_{mode}", [f32(1, 16, 64, 64), nothing, numbers(1, 1, 2, 2, kind=floats)], {1, 2}, mode=mode)
        add(f"Resize_down_{mode}", [f32(1, 16, 128, 128), nothing, numbers(1, 1, 0.5, 0.5, kind=floats)], {1, 2}, mode=mode)
    add("Resize_corners", [f32(1, 16, 64, 64), nothing, nothing, numbers(1, 16, 150, 150)], {1, 2, 3}, mode="linear",
        coordinate_transformation_mode="align_corners")
    add("Resize_u8", [octets(1, 3, 240, 320), nothing, nothing, numbers(1, 3, 480, 640)], {1, 2, 3}, mode="linear")
    add("Resize_antialias", [f32(1, 3, 480, 640), nothing, nothing, numbers(1, 3, 224, 224)], {1, 2, 3}, mode="linear", antialias=1)
    for mode in "nearest linear cubic".split():
        add(f"GridSample_{mode}", [f32(1, 16, 64, 64), np.tanh(f32(1, 64, 64, 2))], mode=mode)
    corners = np.abs(f32(50, 2)) * 5
    boxes = np.concatenate([corners, corners + 20 + np.abs(f32(50, 2)) * 5], axis=1)
    add("RoiAlign", [f32(1, 64, 50, 50), boxes, np.zeros(50, np.int64)], output_height=7, output_width=7, sampling_ratio=2)
    boxes = np.abs(f32(1, 1000, 4)) * 50
    boxes[..., 2:] += boxes[..., :2]
    add("NonMaxSuppression", [boxes, np.abs(f32(1, 20, 1000)) % 1, numbers(100), numbers(0.5, kind=floats), numbers(0.3, kind=floats)], {2, 3, 4})


def sequences() -> None:
    for op, gates in {"RNN": 1, "GRU": 3, "LSTM": 4}.items():
        for hidden, batch, steps in ((64, 1, 50), (256, 8, 30)):
            add(f"{op}_{hidden}", [f32(steps, batch, hidden), weights(1, gates * hidden, hidden), weights(1, gates * hidden, hidden),
                                   f32(1, 2 * gates * hidden)], {1, 2, 3}, outputs=2, hidden_size=hidden)
    add("DFT_512", [f32(4, 512, 1)], opset=19, axis=1, onesided=1)
    add("DFT_480", [f32(4, 480, 1)], opset=19, axis=1, onesided=1)
    add("STFT", [f32(1, 16000, 1), number(160), np.hanning(400).astype(np.float32), number(400)], {1, 2, 3})
    add("HannWindow", [number(4000)])
    add("RandomNormalLike", [f32(256, 512)])
    add("Bernoulli", [np.abs(np.tanh(f32(256, 512)))])


for family in (elementwise, casts, reductions, movement, products, windows, pictures, sequences):
    family()


def model_of(case: Case) -> onnx.ModelProto:
    names = ["" if array.size == 0 else f"x{index}" for index, array in enumerate(case.inputs)]
    results = [f"y{index}" for index in range(case.outputs)]
    node = helper.make_node(case.op, names, results, **case.attributes)
    graph = helper.make_graph(
        [node], "operator",
        [helper.make_tensor_value_info(names[index], helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
         for index, array in enumerate(case.inputs) if index not in case.constants],
        [helper.make_empty_tensor_value_info(name) for name in results],
        [numpy_helper.from_array(case.inputs[index], names[index]) for index in sorted(case.constants) if names[index]])
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10))


def prepare(name: str, folder: pathlib.Path) -> dict:
    case = CASES[name]
    onnx.save(model_of(case), folder / f"{name}.onnx")
    np.savez(folder / f"{name}.npz", **{f"x{index}": array for index, array in enumerate(case.inputs) if index not in case.constants})
    return {"gflop": 0, "weights_mb": 0, "nodes": 1, "outputs": case.outputs, "opset": case.opset}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench --operators", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="beginnings of names with commas between them (default: all)")
    run.add_options(parser, "single_operators.md", "bench-operators", 0.15)
    options = parser.parse_args()
    options.cases = [name for name in CASES if name.startswith(tuple(options.cases.split(",")))]
    if not options.cases:
        parser.error("no case begins so; names are operators, like MatMul or Cast_f32")
    return options


def main() -> int:
    options = parse_arguments()
    peak = run.probe(options.program)
    options.models_folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in options.cases:
        known = prepare(name, options.models_folder)
        for threads in options.threads:
            rows.append(run.measure(name, known, threads, peak, options))
    text = report.slowest_first(rows, "case", "µs", 1e3)
    print(text)
    if options.write_docs:
        report.put_between(ROOT / "docs" / "single_operators.md", BEGIN, END,
                           f"Made by `{report.command_line('--operators')}`: "
                           f"{report.provenance(peak, run.versions(options.program))}.\n\n{text}")
    return run.finish(rows, options, lambda row: np.inf if CASES[row["model"]].op in DRAWN else values.TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
