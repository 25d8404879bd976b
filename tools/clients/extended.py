"""Checks of onnx-extended's binding in C++ and of its libraries of custom operators: extended.py MODELS DIGITS SCRATCH."""

from __future__ import annotations

import sys

import numpy as np
import onnx
from checks import check, numbers
from onnx import TensorProto, helper
from onnx_extended.ortcy.wrap import ortinf
from onnx_extended.ortops.optim.cpu import get_ort_ext_libs as optimized
from onnx_extended.ortops.tutorial.cpu import get_ort_ext_libs as tutorial

MODELS, DIGITS, SCRATCH = sys.argv[1:4]
IMAGES = ((np.arange(512) * 37) % 101 / 101).astype(np.float32).reshape(2, 1, 16, 16)
DTYPES = {"float": "float32", "double": "float64"}


def digits(**options) -> list:
    session = ortinf.OrtSession(DIGITS, **options)
    return [session.get_input_count(), session.get_output_count(), numbers(session.run([IMAGES]))]


def written() -> list:
    path = f"{SCRATCH}/optimized.onnx"
    digits(optimized_file_path=path, graph_optimization_level=1)
    return numbers(ortinf.OrtSession(path).run([IMAGES]))


def custom(op: str, libraries: list[str], arrays: list[np.ndarray], kinds: list[int] | None = None, **attributes) -> None:
    domain = f"onnx_extended.ortops.{'tutorial' if libraries == tutorial() else 'optim'}.cpu"
    names, types = [f"x{i}" for i in range(len(arrays))], [helper.np_dtype_to_tensor_dtype(one.dtype) for one in arrays]
    inputs = [helper.make_tensor_value_info(name, kind, [None] * one.ndim) for name, kind, one in zip(names, types, arrays)]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], domain=domain, **attributes)],
        "graph",
        inputs,
        [helper.make_tensor_value_info("y", (kinds or types)[0], None)],
    )
    path = f"{SCRATCH}/{op}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(domain, 1)], ir_version=8), path)
    check(f"the custom operator {op}", lambda: numbers(ortinf.OrtSession(path, custom_libs=libraries).run(arrays)))


check("the processor is a provider", lambda: "CPUExecutionProvider" in ortinf.ort_get_available_providers())
check("digits", digits)
check(
    "digits with options",
    lambda: digits(graph_optimization_level=0, set_denormal_as_zero=True, inter_op_num_threads=1, intra_op_num_threads=1),
)
check("digits from bytes", lambda: numbers(ortinf.OrtSession(open(DIGITS, "rb").read()).run([IMAGES])))
check("the optimised model is written", written)
for name in "float double int8 uint8 int16 uint16 int32 uint32 int64 uint64".split():
    check(
        f"identity of {name}",
        lambda: numbers(ortinf.OrtSession(f"{MODELS}/identity_{name}.onnx").run([np.array([[1, 0, 1]], DTYPES.get(name, name))])),
    )
floats = np.arange(6, dtype=np.float32).reshape(2, 3)
custom("MyCustomOp", tutorial(), [floats, floats * 2])
custom(
    "MyCustomOpWithAttributes",
    tutorial(),
    [floats.astype(np.float64), floats.astype(np.float64) * 2],
    att_float=2.5,
    att_int64=3,
    att_string="text",
    att_tensor=helper.make_tensor("t", TensorProto.DOUBLE, [2], [1.5, 2.5]),
)
custom("CustomGemmFloat", tutorial(), [floats, np.ascontiguousarray(floats.T)], transA=0, transB=0, alpha=1.0, beta=0.0)
custom(
    "TfIdfVectorizer",
    optimized(),
    [np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])],
    [TensorProto.FLOAT],
    mode="TF",
    min_gram_length=1,
    max_gram_length=1,
    max_skip_count=0,
    ngram_counts=[0],
    ngram_indexes=[0, 1, 2],
    pool_int64s=[1, 3, 7],
)
custom(
    "TreeEnsembleRegressor",
    optimized(),
    [np.array([[0, 1, 0], [5, 0, 3], [5, 4, 3]], np.float32)],
    nodes_treeids=[0] * 5,
    nodes_nodeids=list(range(5)),
    nodes_featureids=[0, 0, 1, 0, 0],
    nodes_values=[2.5, 0.0, 1.0, 0.0, 0.0],
    nodes_modes="BRANCH_LEQ,LEAF,BRANCH_LEQ,LEAF,LEAF",
    nodes_truenodeids=[1, 0, 3, 0, 0],
    nodes_falsenodeids=[2, 0, 4, 0, 0],
    nodes_missing_value_tracks_true=[0] * 5,
    nodes_hitrates=[1.0] * 5,
    target_treeids=[0] * 3,
    target_nodeids=[1, 3, 4],
    target_ids=[0] * 3,
    target_weights=[1.5, 2.5, 3.5],
    n_targets=1,
    aggregate_function="SUM",
    post_transform="NONE",
)
custom(
    "SVMRegressor",
    optimized(),
    [np.array([[0, 1, 0], [5, 0, 3]], np.float32)],
    coefficients=[0.5, -0.5],
    kernel_params=[0.1, 0.0, 3.0],
    kernel_type="RBF",
    n_supports=2,
    one_class=0,
    post_transform="NONE",
    rho=[0.25],
    support_vectors=[1.0, 2, 3, 4, 5, 6],
)
