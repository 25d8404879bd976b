"""Inference reports what the reference's reports: a catalogue of mistakes by operator, and a sample of nodes of the standard's
own cases with one thing wrong. tools/compare_checker.py --part operators holds all of those against each other."""

import pathlib

import broken_models
import numpy as np
import onnx
import pytest
import reference_deviations
from onnx import TensorProto, helper, numpy_helper, parser

FLOAT, INT64, STRING, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
EVERY = 24  # of the models that are made of each case


def f(*shape):
    return FLOAT, list(shape)


def ints(*values):
    return np.array(values, np.int64)


def one_node(operator, inputs, outputs=1, opset=21, domain="", **attributes):
    """A model of one node; inputs are (element type, shape) or an array, which is a constant, or None, which is absent."""
    names, infos, constants = [], [], []
    for index, given in enumerate(inputs):
        name = "" if given is None else f"x{index}"
        names.append(name)
        if isinstance(given, np.ndarray):
            constants.append(numpy_helper.from_array(given, name))
        elif given is not None:
            infos.append(helper.make_tensor_value_info(name, *given))
    made = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(operator, names, made, domain=domain, **attributes)
    graph = helper.make_graph([node], "g", infos, [], constants)
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 3))
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def nodes(text):
    """A model of nodes in the textual syntax that read a float `x` and an int64 `i`, of two elements each."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g (float[2] x, int64[2] i) => () {{ {text} }}').SerializeToString()


IMAGE, KERNEL = f(1, 4, 8, 8), f(6, 4, 3, 3)
MISTAKES = {
    "Conv: groups": one_node("Conv", [IMAGE, KERNEL], group=3),
    "Conv: channels": one_node("Conv", [IMAGE, f(6, 5, 3, 3)]),
    "Conv: rank of W": one_node("Conv", [IMAGE, f(6, 4, 3)]),
    "Conv: strides": one_node("Conv", [IMAGE, KERNEL], strides=[1]),
    "Conv: dilations": one_node("Conv", [IMAGE, KERNEL], dilations=[1, 1, 1]),
    "Conv: pads": one_node("Conv", [IMAGE, KERNEL], pads=[1, 1]),
    "Conv: negative pads": one_node("Conv", [IMAGE, KERNEL], pads=[-1, 0, 0, 0]),
    "Conv: kernel_shape": one_node("Conv", [IMAGE, KERNEL], kernel_shape=[3]),
    "Conv: stride 0": one_node("Conv", [IMAGE, KERNEL], strides=[0, 1]),
    "ConvTranspose: strides": one_node("ConvTranspose", [IMAGE, f(4, 6, 3, 3)], strides=[1]),
    "MaxPool: kernel_shape": one_node("MaxPool", [IMAGE], kernel_shape=[3]),
    "MaxPool: pads": one_node("MaxPool", [IMAGE], kernel_shape=[3, 3], pads=[1, 1]),
    "AveragePool: rank": one_node("AveragePool", [f(3)], kernel_shape=[3]),
    "Softmax: axis": one_node("Softmax", [f(2, 3)], axis=2),
    "Softmax: axis below": one_node("Softmax", [f(2, 3)], axis=-3),
    "Softmax: scalar": one_node("Softmax", [f()], axis=-1),
    "LogSoftmax: axis": one_node("LogSoftmax", [f(2, 3)], axis=5),
    "Hardmax: axis": one_node("Hardmax", [f(2, 3)], axis=5),
    "Flatten: axis": one_node("Flatten", [f(2, 3)], axis=4),
    "Flatten of opset 9: negative axis": one_node("Flatten", [f(2, 3)], opset=9, axis=-1),
    "Softmax of opset 11: axis": one_node("Softmax", [f(2, 3)], opset=11, axis=2),
    "TopK of opset 1: k": one_node("TopK", [f(2, 3)], 2, opset=1, k=0),
    "BatchNormalization of opset 6: outputs": one_node("BatchNormalization", [f(2, 3, 4), *[f(3)] * 4], 4, opset=6),
    "BatchNormalization of opset 9: outputs": one_node("BatchNormalization", [f(2, 3, 4), *[f(3)] * 4], 3, opset=9),
    "Flatten: overflow": one_node("Flatten", [f(2**40, 2**40)], axis=0),
    "Concat: axis": one_node("Concat", [f(2, 3), f(2, 3)], axis=2),
    "Concat: other axes": one_node("Concat", [f(2, 3), f(4, 3)], axis=1),
    "Concat: ranks": one_node("Concat", [f(2, 3), f(2)], axis=0),
    "Gather: axis": one_node("Gather", [f(2, 3), (INT64, [1])], axis=2),
    "Gather: rank": one_node("Gather", [f(), (INT64, [1])]),
    "GatherElements: axis": one_node("GatherElements", [f(2, 3), (INT64, [2, 3])], axis=4),
    "GatherND: last": one_node("GatherND", [f(2, 3), ints([[0, 0, 0]]).reshape(1, 3)]),
    "Reshape: count": one_node("Reshape", [f(2, 3), ints(4, -1)]),
    "Reshape: two open": one_node("Reshape", [f(2, 3), ints(-1, -1)]),
    "Reshape: below -1": one_node("Reshape", [f(2, 3), ints(-2, 3)]),
    "Reshape: zero beyond": one_node("Reshape", [f(2, 3), ints(2, 3, 0)]),
    "Reshape: rank of shape": one_node("Reshape", [f(2, 3), (INT64, [1, 2])]),
    "Reshape: scalar as shape": one_node("Reshape", [f(1), (INT64, [])]),
    "Expand: rank of shape": one_node("Expand", [f(2, 3), (INT64, [1, 2])]),
    "Expand: shape": one_node("Expand", [f(2, 3), ints(2, 4)]),
    "Tile: repeats": one_node("Tile", [f(2, 3), ints(2)]),
    "Einsum: letters": one_node("Einsum", [f(2, 3), f(3, 4)], equation="ijk,kl->ijl"),
    "Einsum: terms": one_node("Einsum", [f(2, 3)], equation="ij,jk->ik"),
    "Split: sum": one_node("Split", [f(6), ints(1, 2)], outputs=2),
    "Split: too many outputs": one_node("Split", [f(6), ints(3, 3)], outputs=3),
    "Split: neither": one_node("Split", [f(6)], outputs=2),
    "Split: axis": one_node("Split", [f(6)], axis=3, outputs=2, num_outputs=2),
    "Slice: lengths": one_node("Slice", [f(2, 3), ints(0, 0), ints(1)]),
    "Slice: axis": one_node("Slice", [f(2, 3), ints(0), ints(1), ints(4)]),
    "Slice: step 0": one_node("Slice", [f(2, 3), ints(0), ints(1), ints(0), ints(0)]),
    "Slice: axes twice": one_node("Slice", [f(2, 3), ints(0, 0), ints(1, 1), ints(0, 0)]),
    "TopK: too many": one_node("TopK", [f(2, 3), ints(5)], outputs=2),
    "TopK: negative": one_node("TopK", [f(2, 3), ints(-1)], outputs=2),
    "TopK: axis": one_node("TopK", [f(2, 3), ints(1)], outputs=2, axis=4),
    "TopK: K of rank 0": one_node("TopK", [f(2, 3), np.array(1, np.int64)], outputs=2),
    "Resize: scales": one_node("Resize", [f(1, 1, 4, 4), None, np.array([1, 1, 2], np.float32)]),
    "Resize: both": one_node("Resize", [f(1, 1, 4, 4), None, np.ones(4, np.float32), ints(1, 1, 4, 4)]),
    "Resize: sizes": one_node("Resize", [f(1, 1, 4, 4), None, None, ints(1, 1, 4)]),
    "Pad: pads": one_node("Pad", [f(2, 3), ints(1, 1)]),
    "Pad: pads of rank 2": one_node("Pad", [f(2, 3), ints(1, 1, 1, 1).reshape(1, 4)]),
    "Pad: overflow": one_node("Pad", [f(2, 3), ints(2**63 - 1, 0, 0, 0)]),
    "Transpose: twice": one_node("Transpose", [f(2, 3)], perm=[0, 0]),
    "Transpose: length": one_node("Transpose", [f(2, 3)], perm=[0, 1, 2]),
    "Squeeze: size": one_node("Squeeze", [f(2, 3), ints(0)]),
    "Squeeze: axis": one_node("Squeeze", [f(1, 3), ints(4)]),
    "Unsqueeze: axis": one_node("Unsqueeze", [f(2, 3), ints(7)]),
    "Unsqueeze: twice": one_node("Unsqueeze", [f(2, 3), ints(0, 0)]),
    "ReduceSum: axis": one_node("ReduceSum", [f(2, 3), ints(5)]),
    "ArgMax: axis of a scalar": one_node("ArgMax", [f()], axis=0),
    "ArgMax: axis": one_node("ArgMax", [f(2, 3)], axis=5),
    "MatMul: inner": one_node("MatMul", [f(2, 3), f(4, 2)]),
    "MatMul: scalar": one_node("MatMul", [f(), f(4, 2)]),
    "Gemm: inner": one_node("Gemm", [f(2, 3), f(4, 2)]),
    "Gemm: rank": one_node("Gemm", [f(2, 3, 1), f(3, 2)]),
    "Add: shapes": one_node("Add", [f(2, 3), f(4)]),
    "Where: shapes": one_node("Where", [(BOOL, [2]), f(3), f(3)]),
    "DepthToSpace: channels": one_node("DepthToSpace", [f(1, 3, 2, 2)], blocksize=2),
    "DepthToSpace: rank": one_node("DepthToSpace", [f(4, 2, 2)], blocksize=2),
    "SpaceToDepth: blocksize": one_node("SpaceToDepth", [f(1, 3, 2, 2)], blocksize=0),
    "DFT: one-sided complex": one_node("DFT", [f(1, 8, 2)], onesided=1, opset=20),
    "DFT: parts": one_node("DFT", [f(1, 8, 3)], opset=20),
    "STFT: rank": one_node("STFT", [f(8), np.array(2, np.int64), f(4)]),
    "BatchNormalization: outputs": one_node("BatchNormalization", [IMAGE, f(4), f(4), f(4), f(4)], outputs=3),
    "BatchNormalization: channels": one_node("BatchNormalization", [IMAGE, f(5), f(5), f(5), f(5)]),
    "LayerNormalization: axis": one_node("LayerNormalization", [f(2, 3), f(3)], axis=5),
    "OneHot: values": one_node("OneHot", [(INT64, [2]), ints(3).reshape(()), f(3)]),
    "ConstantOfShape: rank": one_node("ConstantOfShape", [(INT64, [1, 2])]),
    "ConstantOfShape: scalar": one_node("ConstantOfShape", [(INT64, [])]),
    "ConstantOfShape: negative": one_node("ConstantOfShape", [ints(-2, 3)]),
    "Cast: to": one_node("Cast", [f(2)], to=99),
    "EyeLike: rank": one_node("EyeLike", [f(2, 3, 4)]),
    "Range: types": one_node("Range", [f(), (INT64, []), f()]),
    "RoiAlign: rank": one_node("RoiAlign", [f(4, 8, 8), f(2, 4), (INT64, [2])]),
    "Compress: scalar": one_node("Compress", [f(), (BOOL, [2])]),
    "Compress: axis": one_node("Compress", [f(2, 3), (BOOL, [2])], axis=4),
    "Dropout: ratio": one_node("Dropout", [f(2), f(2)]),
    "CumSum: axis": one_node("CumSum", [f(2, 3), f(1)]),
    "SequenceInsert: item type": nodes("a = SequenceConstruct (x) s = SequenceInsert (a, i)"),
    "SequenceInsert: item type of an empty one": nodes("a = SequenceEmpty <dtype = 1> () s = SequenceInsert (a, i)"),
    "Scaler: type": one_node("Scaler", [(STRING, [2])], domain="ai.onnx.ml", offset=[0.0], scale=[1.0]),
}


@pytest.fixture
def runner(sardonyx):
    return pathlib.Path(sardonyx.path).resolve().with_name("check_runner")


def inference_errors(errors):
    """What inference and the signatures say, not the rules of models."""
    return [error for error in errors if error.split()[0] in ("D-10", "D-11", "D-13", "D-15", "D-22", "G-20", "SH-17", "X-07", "SH-07", "file")]


def test_the_catalogue(runner, tmp_path):
    models = list(MISTAKES.values())
    theirs = broken_models.reference_answers(models, infer_only=True)
    ours = broken_models.sardonyx_errors(runner, models, tmp_path)
    assert sum(their is not None for their in theirs) > len(models) * 3 // 4
    accepted = [f"{name}: {' '.join((their or '').split())[:200]}"
                for name, their, our in zip(MISTAKES, theirs, ours) if not inference_errors(our)]
    assert not accepted, "\n".join(accepted)


def test_nodes_with_one_thing_wrong(runner, tmp_path):
    made = []
    for offset, (name, base) in enumerate(broken_models.operator_bases(1).items()):
        made += [(name, *mutant) for mutant in list(broken_models.operator_mutants(base))[offset % EVERY::EVERY]]
    models = [data for _, _, data in made]
    theirs = broken_models.reference_answers(models, infer_only=True)
    ours = broken_models.sardonyx_errors(runner, models, tmp_path)
    assert sum(their is not None for their in theirs) > len(made) // 5
    accepted = []
    for (name, what, _), their, our in zip(made, theirs, ours):
        if reference_deviations.is_open_zero(what):
            continue
        operator, message = broken_models.deviation_class(name, what, their or "", False)
        if their is not None and not our and not reference_deviations.reason(reference_deviations.OPERATORS, operator, message):
            accepted.append(f"{name}: {what}: {' '.join(their.split())[:200]}")
    assert not accepted, "\n".join(accepted)
