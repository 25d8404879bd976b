"""The function bodies of spec/functions against the standard's reference evaluator and its own expansions."""

from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import onnx.parser
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parents[2] / "spec/functions"
BODIES = {path.stem: onnx.parser.parse_function(path.read_text(encoding="utf-8")) for path in ROOT.glob("*.onnxtxt")}
OPSET = 28
random = np.random.default_rng(7)


def numbers(*shape, scale=3.0, dtype=np.float32):
    return (random.standard_normal(shape) * scale).astype(dtype)


EDGES = np.array([0.0, -0.0, 1e-30, -1e-30, 0.5, -0.5, 1, -1, 3, -3], np.float32)
# Within 10: the standard's own expansions overflow in float16 beyond it.
ACTIVATION_INPUT = np.concatenate([EDGES, numbers(300).clip(-10, 10)])
INTEGERS = np.arange(-6, 7)
REDUCTIONS = [
    ({"keepdims": keepdims, "noop_with_empty_axes": noop}, axes)
    for keepdims in (0, 1)
    for noop in (0, 1)
    for axes in (None, [], [1], [0, -1])
]


def activation_cases(*attribute_sets, integers=()):
    for attributes in ({}, *attribute_sets):
        for dtype in (np.float32, np.float64, np.float16):
            yield attributes, [ACTIVATION_INPUT.astype(dtype)]
        for dtype in integers:
            yield attributes, [INTEGERS.astype(dtype)]


def reduction_cases(positive=False, integers=()):
    for attributes, axes in REDUCTIONS:
        axes = [] if axes is None else [np.array(axes, np.int64)]
        for dtype in (np.float32, np.float64, *integers):
            data = numbers(2, 3, 4).astype(dtype)
            yield attributes, [np.abs(data) + dtype(1) if positive else data, *axes]


def window_cases():
    for periodic in (0, 1):
        for size in (2, 7, 64):
            for kind in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
                yield {"periodic": periodic, "output_datatype": kind}, [np.array(size, np.int64)]
    yield {}, [np.array(10, np.int32)]


def comparison_cases():
    a, b = numbers(4, 5), numbers(5)
    a[0] = b
    a[1, 2] = np.nan
    yield {}, [a, b]
    yield {}, [random.integers(-3, 3, (4, 5)), random.integers(-3, 3, (4, 1))]


def grid_cases():
    for aligned in (0, 1):
        for kind in (np.float32, np.float64):
            yield {"align_corners": aligned}, [numbers(2, 2, 3, dtype=kind), np.array([2, 1, 5, 4])]
            yield {"align_corners": aligned}, [numbers(3, 3, 4, dtype=kind), np.array([3, 2, 2, 5, 4])]


CASES = {
    "AffineGrid": grid_cases(),
    "BlackmanWindow": window_cases(),
    "Celu": activation_cases({"alpha": 0.5}),
    "DynamicQuantizeLinear": [({}, [numbers(3, 4)]), ({}, [np.abs(numbers(9)) + 1]), ({}, [-np.abs(numbers(9)) - 1])],
    "Elu": activation_cases({"alpha": 2.0}),
    "GreaterOrEqual": comparison_cases(),
    "HammingWindow": window_cases(),
    "HannWindow": window_cases(),
    "HardSigmoid": activation_cases({"alpha": 0.5, "beta": 0.6}),
    "HardSwish": activation_cases(),
    "LeakyRelu": activation_cases({"alpha": 0.1}),
    "LessOrEqual": comparison_cases(),
    "MeanVarianceNormalization": [({}, [numbers(2, 3, 4, 5)]), ({"axes": [1, -1]}, [numbers(2, 3, 4)])],
    "Mish": activation_cases(),
    "PRelu": [({}, [numbers(2, 3, 4), numbers(3, 1)]), ({}, [INTEGERS.astype(np.int32), np.array([2], np.int32)])],
    "ReduceL1": reduction_cases(integers=(np.int32, np.int64)),
    "ReduceL2": reduction_cases(integers=(np.int32,)),
    "ReduceLogSum": reduction_cases(positive=True),
    "ReduceLogSumExp": reduction_cases(),
    "ReduceSumSquare": reduction_cases(integers=(np.int32, np.int64)),
    "Relu": activation_cases(integers=(np.int8, np.int32)),
    "Selu": activation_cases({"alpha": 2.0, "gamma": 3.0}),
    "Shrink": activation_cases({"lambd": 1.5, "bias": 1.0}, integers=(np.int32, np.int8)),
    "Softplus": activation_cases(),
    "Softsign": activation_cases(),
    "SwiGLU": [({}, [numbers(3, 4), numbers(3, 4)]), ({"alpha": 1.7}, [numbers(9), numbers(9)])],
    "Swish": activation_cases({"alpha": 1.7}),
    "ThresholdedRelu": activation_cases({"alpha": 2.0}),
}
CASES = {name: list(cases) for name, cases in CASES.items()}


def as_model(node, functions=()):
    """A model around a node, its types left to the evaluator."""
    infos = [[onnx.ValueInfoProto(name=name) for name in names if name] for names in (node.input, node.output)]
    graph = helper.make_graph([node], "g", *infos)
    opsets = [helper.make_opsetid("", OPSET)] + [helper.make_opsetid("ours", 1)] * bool(functions)
    return helper.make_model(graph, opset_imports=opsets, functions=functions)


def node_for(name, attributes, inputs, domain=""):
    schema = onnx.defs.get_schema(name)
    defaults = {n: helper.get_attribute_value(a.default_value) for n, a in schema.attributes.items()}
    attributes = {**defaults, **attributes}  # the inliner does not fill them in
    names = [formal.name if i < len(inputs) else "" for i, formal in enumerate(schema.inputs)]
    return helper.make_node(name, names, [formal.name for formal in schema.outputs], domain=domain, **attributes)


def run_ours(name, attributes, inputs):
    body = onnx.FunctionProto()
    body.CopyFrom(BODIES[name])
    body.domain = "ours"
    node = node_for(name, attributes, inputs, "ours")
    return run_inlined(node, body, inputs)


def run_inlined(node, body, inputs):
    """Inlined first: the evaluator cannot pass attributes on to every operator."""
    model = onnx.inliner.inline_local_functions(as_model(node, [body]))
    return ReferenceEvaluator(model).run(None, dict(zip(node.input, inputs)))


def run_reference(name, attributes, inputs):
    node = node_for(name, attributes, inputs)
    return ReferenceEvaluator(as_model(node)).run(None, dict(zip(node.input, inputs)))


def run_standard_body(name, attributes, inputs):
    schema = onnx.defs.get_schema(name)
    version = max(schema.function_opset_versions)
    body = onnx.FunctionProto.FromString(schema.get_function_with_opset_version(version))
    body.domain = "ours"
    for opset in body.opset_import:  # an evaluator of one model knows one version of a domain
        opset.version = OPSET
    node = node_for(name, attributes, inputs, "ours")
    return run_inlined(node, body, inputs)


def tolerance(*dtypes):
    dtype = min(dtypes, key=lambda dtype: dtype.itemsize)
    return {2: 5e-3, 4: 3e-5, 8: 1e-6}.get(dtype.itemsize, 0) if dtype.kind == "f" else 0


# The evaluator's own kernels give float32 and int64 whatever the input is.
WRONG_TYPE_IN_EVALUATOR = {"AffineGrid", "ReduceSumSquare"}


def assert_same(ours, theirs, what, same_types=True):
    assert len(ours) == len(theirs)
    for mine, expected in zip(ours, theirs):
        assert mine.shape == expected.shape, what
        assert mine.dtype == expected.dtype or not same_types, what
        close = tolerance(mine.dtype, expected.dtype)
        np.testing.assert_allclose(mine, expected, rtol=close, atol=close, err_msg=str(what))


@pytest.mark.parametrize("name", sorted(BODIES))
def test_against_the_reference_evaluator(name):
    for attributes, inputs in CASES[name]:
        ours, theirs = run_ours(name, attributes, inputs), run_reference(name, attributes, inputs)
        assert_same(ours, theirs, (name, attributes, inputs), name not in WRONG_TYPE_IN_EVALUATOR)


@pytest.mark.parametrize("name", sorted(BODIES))
def test_against_the_standards_expansion(name):
    for attributes, inputs in CASES[name]:
        ours, theirs = run_ours(name, attributes, inputs), run_standard_body(name, attributes, inputs)
        assert_same(ours, theirs, (name, attributes, inputs))


def test_every_fixed_body_of_the_standard_is_here():
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        known = newest.setdefault((schema.domain, schema.name), schema)
        if schema.since_version > known.since_version:
            newest[schema.domain, schema.name] = schema
    assert sorted(BODIES) == sorted(schema.name for schema in newest.values() if schema.has_function)


@pytest.mark.parametrize("name", sorted(BODIES))
def test_signature(name):
    """Names, order and attribute defaults are those of the operator."""
    body, schema = BODIES[name], onnx.defs.get_schema(name)
    assert list(body.input) == [formal.name for formal in schema.inputs]
    assert list(body.output) == [formal.name for formal in schema.outputs]
    assert not body.attribute
    defaults = {a.name: helper.get_attribute_value(a) for a in body.attribute_proto}
    assert defaults == {n: helper.get_attribute_value(a.default_value) for n, a in schema.attributes.items()}


def test_extremes():
    big = np.array([-1e4, -200, 200, 1e4], np.float32)
    assert run_ours("Softplus", {}, [big])[0] == pytest.approx([0, 0, 200, 1e4])
    assert run_ours("ReduceLogSumExp", {"keepdims": 0}, [big])[0] == pytest.approx(1e4)
    assert run_ours("ReduceLogSumExp", {"keepdims": 0}, [np.full(3, -np.inf, np.float32)])[0] == -np.inf
    assert run_ours("ReduceLogSumExp", {"keepdims": 0}, [np.array([1, np.inf], np.float32)])[0] == np.inf
    assert run_ours("Shrink", {"lambd": 0.5}, [np.array([0, 1, 200], np.uint8)])[0].tolist() == [0, 1, 200]
    assert run_ours("ReduceL2", {"keepdims": 0}, [np.array([3e4, 4e4], np.int32)])[0] == 50000
    assert run_ours("ReduceL2", {"keepdims": 0}, [np.array([300, 400], np.float16)])[0] == 500
    assert [o.tolist() for o in run_ours("DynamicQuantizeLinear", {}, [np.zeros(2, np.float32)])][::2] == [[0, 0], 0]
    one_wide = run_ours("AffineGrid", {"align_corners": 1}, [np.ones((1, 2, 3)), np.array([1, 1, 1, 2])])[0]
    assert one_wide[0, 0].tolist() == [[0, 0], [2, 2]]


# How the suite calls the cases of two operators.
CASE_NAMES = {"NegativeLogLikelihoodLoss": "nllloss", "SoftmaxCrossEntropyLoss": "sce"}


def test_every_function_is_held_against_the_expansion():
    """Fixed bodies are those above; those that depend on context are compared by the suite's expanded cases."""
    cases = ROOT.parents[1] / "build/conformance" / onnx.__version__ / "node"
    assert cases.is_dir(), "the standard's cases are not unpacked: ./dev conformance does it"
    expanded = [case.name.replace("_", "") for case in cases.glob("*_expanded*")]
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        known = newest.setdefault((schema.domain, schema.name), schema)
        if known.since_version < schema.since_version:
            newest[schema.domain, schema.name] = schema
    functions = [s.name for s in newest.values() if s.has_function or s.has_context_dependent_function]
    assert len(functions) > 40
    prefixes = {name: f"test{CASE_NAMES.get(name, name).lower()}" for name in functions if name not in BODIES}
    assert [name for name, prefix in prefixes.items() if not any(case.startswith(prefix) for case in expanded)] == []
