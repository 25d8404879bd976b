"""Where an evaluator is known to be wrong, with the reason: it is not asked there.

Each entry is (who, operators, condition on a Case, reason). What Sardonyx is held against is then the
other one; a node that neither may judge does not count.
"""

from __future__ import annotations

import dataclasses

import numpy as np

import saturation

REFERENCE, RUNTIME = "reference", "runtime"


@dataclasses.dataclass
class Case:
    name: str
    version: int
    inputs: list
    attributes: dict

    def dtype(self, i: int = 0) -> str:
        value = self.inputs[i] if i < len(self.inputs) else None
        return value.dtype.name if isinstance(value, np.ndarray) else ""

    def attribute(self, name: str, default=None):
        return self.attributes.get(name, default)

    def has(self, i: int) -> bool:
        return i < len(self.inputs) and self.inputs[i] is not None


def always(_: Case) -> bool:
    return True


def before(version: int):
    return lambda case: case.version < version


def half(case: Case) -> bool:
    return case.dtype() in ("bfloat16", "float16")


def gaps(case: Case) -> bool:
    """Windows of SAME_UPPER or SAME_LOWER with strides beyond the kernel: what is cropped where is nowhere said, and neither
    evaluator does the same in Conv and in pools, or with 7 elements and with 8."""
    kernel = case.attribute("kernel_shape") or list(case.inputs[3 if case.name == "QLinearConv" else 1].shape[2:])
    return case.attribute("auto_pad", "").startswith("SAME") and any(
        k < s for k, s in zip(kernel, case.attribute("strides", [1] * len(kernel))))


def of_text(value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OSU"


def differs_from_text(case: Case) -> bool:
    """RNN, GRU and LSTM beyond one direction and three gates in their simplest form."""
    return (case.attribute("direction", "forward") != "forward" or "clip" in case.attributes or case.has(4)
            or "activations" in case.attributes or case.attribute("input_forget", 0) == 1
            or case.attribute("linear_before_reset", 0) == 1 or case.attribute("layout", 0) == 1)


def goes_back_from_before(case: Case) -> bool:
    """A Slice with a negative step whose start lies before the first element."""
    if case.version < 10 or not case.has(4):
        return False
    sizes, starts, steps = case.inputs[0].shape, case.inputs[1], case.inputs[4]
    axes = case.inputs[3] if case.has(3) else range(len(starts))
    return any(step < 0 and start < -sizes[axis] for axis, start, step in zip(axes, starts, steps))


WRONG = [
    (REFERENCE, "AffineGrid Det RMSNormalization", always, "the output has another element type than the signature says"),
    (REFERENCE, "BatchNormalization", lambda c: c.dtype(0) != c.dtype(3), "the running mean takes the type of X"),
    (REFERENCE, "ReduceSumSquare", lambda c: c.dtype().startswith("uint"), "the output has another element type"),
    (REFERENCE, "CastLike", lambda c: of_text(c.inputs[0]) and c.dtype(1) == "bool", "takes every text as true, 0 too"),
    (REFERENCE, "CastLike", lambda c: half(c) and of_text(c.inputs[1]), "writes half precision with the digits of float32"),
    (RUNTIME, "CastLike", lambda c: half(c) and of_text(c.inputs[1]), "the same"),
    (RUNTIME, "Hardmax", lambda c: bool(np.isnan(c.inputs[0].astype(np.float64)).any()), "passes over NaN, which is the largest elsewhere"),
    (REFERENCE, "SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss", lambda c: c.dtype() == "bfloat16", "adds up in bfloat16"),
    (REFERENCE, "Scaler", lambda c: c.dtype() != "float32", "gives integers or doubles where the signature says floats"),
    (RUNTIME, "Slice", lambda c: c.version >= 10 and c.has(4) and bool(((c.inputs[4] < 0) & (c.inputs[2] >= 2**31 - 1)).any()),
     "takes the largest end for the begin where steps are negative"),
    (RUNTIME, "Resize", lambda c: c.version == 10 and bool((np.floor(c.inputs[1] * c.inputs[0].shape) == c.inputs[0].shape).all()),
     "copies what keeps its size, whatever the scales"),
    (REFERENCE, "Resize", lambda c: c.attribute("coordinate_transformation_mode", "half_pixel") == "pytorch_half_pixel"
     and (c.attribute("mode", "nearest") == "cubic" or c.attribute("antialias", 0) == 1),
     "makes one element half a step before the first, where the text has the first"),
    (REFERENCE, "Slice", goes_back_from_before, "takes nothing where the text clamps the start to the first element"),
    (REFERENCE, "QLinearConv", lambda c: c.inputs[0].ndim != 4, "gives an output of rank 4"),
    (REFERENCE, "AveragePool", before(7), "averages what was padded"),
    (REFERENCE, "LRN", always, "sums over other channels than the text says"),
    (REFERENCE, "LpNormalization", lambda c: c.attribute("p", 2) == 1, "sums the elements without their absolute values"),
    (REFERENCE, "LpPool", always, "sizes of outputs are wrong with auto_pad and dilations"),
    (REFERENCE, "GlobalMaxPool", always, "takes other axes where the rank is not 4"),
    (REFERENCE, "Softmax LogSoftmax Hardmax", before(13), "has version 13 alone, which does not flatten"),
    (REFERENCE, "OneHot", before(11), "has version 11 alone, which wraps negative indices"),
    (REFERENCE, "PRelu", before(16), "has the newest version alone"),
    (REFERENCE, "RNN GRU LSTM", differs_from_text, "leaves out what this asks for"),
    (REFERENCE, "QLinearConv ConvInteger", lambda c: c.inputs[0].shape[0] > 1, "loses the batch"),
    (REFERENCE, "QLinearMatMul", lambda c: c.dtype(1) != "float32", "rounds every product to half precision"),
    (REFERENCE, "StringNormalizer", always, "takes accents away"),
    (REFERENCE, "TreeEnsemble", lambda c: c.attribute("post_transform", 0) != 0, "applies no transform"),
    (REFERENCE, "Dropout", before(10), "gives a mask of booleans, which came with version 10"),
    (RUNTIME, "Dropout", before(10), "fills the mask, which is not defined in inference, with zeros"),
    (RUNTIME, "TreeEnsemble", lambda c: c.attribute("post_transform", 0) != 0, "numbers the transforms in another order"),
    (RUNTIME, "TreeEnsembleRegressor LinearRegressor",
     lambda c: c.attribute("n_targets", c.attribute("targets", 1)) == 1 and c.attribute("post_transform", "NONE") != "NONE",
     "leaves the score of a single target as it is"),
    (RUNTIME, "TreeEnsembleRegressor TreeEnsembleClassifier", lambda c: "BRANCH_EQ" in c.attribute("nodes_modes", ()),
     "takes another way where equality is followed by more on the same feature"),
    (RUNTIME, "ReduceLogSum ReduceLogSumExp ReduceL2", lambda c: "int" in c.dtype(), "cuts off a sum that rounding left below an integer"),
    (RUNTIME, "LabelEncoder", lambda c: c.version == 2 and "keys_floats" in c.attributes and np.isnan(c.inputs[0]).any(),
     "does not find NaN, which the text says is found"),
    (REFERENCE, "ConvTranspose", lambda c: c.attribute("group", 1) != 1, "adds the groups up"),
    (REFERENCE, "MaxPool AveragePool LpPool", lambda c: c.attribute("auto_pad", "NOTSET") != "NOTSET" or c.attribute("ceil_mode", 0),
     "has other sizes than the text's formulas"),
    (REFERENCE, "Shape", lambda c: min(c.attribute("end", 0), c.attribute("start", 0)) < -c.inputs[0].ndim, "does not clamp what lies before the first axis"),
    (RUNTIME, "NonZero", lambda c: c.inputs[0].ndim == 0, "counts a scalar as one dimension, which the text excludes"),
    (RUNTIME, "QuantizeLinear", lambda c: "float16" in c.dtype(1), "does not divide in the precision of the scale"),
    (RUNTIME, "GridSample", lambda c: c.attribute("mode") in ("bicubic", "cubic") and c.attribute("padding_mode", "zeros") != "zeros",
     "takes each neighbour to the border by itself; the text speaks of the location"),
    (REFERENCE, "TreeEnsembleRegressor", lambda c: c.dtype() != "float32", "gives doubles"),
    (REFERENCE, "ConvInteger", lambda c: c.has(3) and c.inputs[3].ndim == 1, "leaves out zero points of channels"),
    (REFERENCE, "ReduceMean", lambda c: "int" in c.dtype() and c.inputs[0].size == 0, "no integer is the mean of nothing"),
    (REFERENCE, "Unique", lambda c: "axis" in c.attributes, "the other axes are lost"),
    (REFERENCE, "NonZero", lambda c: c.version < 13 and c.inputs[0].ndim == 0, "has version 13 alone, which made scalars an exception"),
    (REFERENCE, "QuantizeLinear", lambda c: "float16" in c.dtype(1), "does not divide in the precision of the scale"),
    (RUNTIME, "TreeEnsembleRegressor TreeEnsembleClassifier",
     lambda c: "BRANCH_NEQ" in c.attribute("nodes_modes", ()) and np.isnan(c.inputs[0]).any(),
     "takes the branch of what is true for NaN, which the text gives to nodes_missing_value_tracks_true alone"),
    (RUNTIME, "LSTM", lambda c: "clip" in c.attributes, "does not clip the input of the last activation"),
    (RUNTIME, "OneHot", lambda c: c.version < 11 and c.inputs[0].size and c.inputs[0].min() < 0, "wraps negative indices as version 11"),
    (RUNTIME, "CastMap", lambda c: c.attribute("cast_to") == "TO_STRING", "writes floats with six digits"),
    (REFERENCE, "DictVectorizer", always, "gives doubles"),
    (RUNTIME, "DictVectorizer", always, "gives a row where the text says a list"),
    (REFERENCE, "MaxPool AveragePool Conv QLinearConv ConvInteger", gaps, "crops nothing or more at the begin where windows leave gaps"),
    (RUNTIME, "LpPool MaxPool AveragePool Conv QLinearConv ConvInteger", gaps, "crops nothing at the begin where windows leave gaps"),
    (REFERENCE, "Clip", lambda c: c.version < 11, "the default bounds are what floats can hold; docs/upgrades.md says why they do not apply"),
    (RUNTIME, "Clip", lambda c: c.version < 11, "the same"),
    (REFERENCE, "LabelEncoder", lambda c: c.version == 2 and "keys_floats" in c.attributes and np.isnan(c.inputs[0]).any(),
     "the same"),
    (RUNTIME, "ConvInteger MatMulInteger QLinearConv QLinearMatMul", lambda c: saturation.runtime_saturates(), saturation.REASON),
]


def is_wrong(who: str, case: Case) -> bool:
    return any(who == oracle and case.name in operators.split() and condition(case)
               for oracle, operators, condition, _ in WRONG)
