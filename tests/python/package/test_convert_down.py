"""Conversion to older opsets: what comes out is valid and gives the outputs of the model it is of, for every case of the standard's suite."""

import copy
import warnings

import numpy
import onnx
import pytest
import sardonyx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

OPSETS = (23, 21, 18, 17, 13, 12, 11, 10, 9, 8, 7)
# onnx infers another shape by the older text, which every engine reads as the newer one says it: no window starts in the padding behind.
OTHER_SHAPES = {"test_averagepool_2d_ceil_last_window_starts_on_pad", "test_maxpool_2d_ceil_output_size_reduce_by_one"}


def same(made, expected):
    if isinstance(expected, (list, tuple)):
        return len(made) == len(expected) and all(map(same, made, expected))
    if expected is None or made is None:
        return made is expected
    made, expected = numpy.asarray(made), numpy.asarray(expected)
    if made.shape != expected.shape or made.dtype != expected.dtype:
        return False
    if made.dtype.kind in "OUSbiu":
        return bool((made == expected).all())
    # The nodes that stand for one of bfloat16 round what they pass on.
    tolerance = 2e-2 if made.dtype.name == "bfloat16" else 1e-3
    if made.dtype.kind != "c":
        made, expected = made.astype(numpy.float64), expected.astype(numpy.float64)
    return numpy.allclose(made, expected, rtol=tolerance, atol=tolerance / 10, equal_nan=True)


def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [case for case in found if case.data_sets and all(entry.domain in ("", "ai.onnx") for entry in case.model.opset_import)]


def with_constants(model, feeds):
    """All inputs but the first are constants, as exporters write axes, pads and the like."""
    model = copy.deepcopy(model)
    held = {info.name for info in model.graph.input[1:] if isinstance(feeds.get(info.name), numpy.ndarray)}
    model.graph.initializer.extend(numpy_helper.from_array(feeds[name], name) for name in held)
    left = [info for info in model.graph.input if info.name not in held]
    del model.graph.input[:]
    model.graph.input.extend(left)
    return model, {name: value for name, value in feeds.items() if name not in held}


@pytest.mark.parametrize("constants", [False, True], ids=["as they are", "with constants"])
def test_every_case_of_the_suite(constants):
    wrong, converted, refused = [], 0, []
    for case in cases():
        model = case.model
        own = next(entry.version for entry in model.opset_import)
        feeds = dict(zip((info.name for info in model.graph.input), case.data_sets[0][0]))
        if constants:
            model, feeds = with_constants(model, feeds)
        try:
            expected = sardonyx.Session(model).run(feeds)
        except sardonyx.Error:
            continue  # conformance.md says of which
        for opset in (opset for opset in OPSETS if opset < own):
            try:
                older = sardonyx.convert_version(model, opset)
            except sardonyx.BadInputError as error:
                refused.append((case.name, opset))
                if "opset can" not in str(error) and "is the least that can" not in str(error):
                    wrong.append((case.name, opset, str(error)))
                continue
            converted += 1
            try:
                onnx.checker.check_model(older, full_check=True)
            except Exception as error:
                if case.name not in OTHER_SHAPES:
                    wrong.append((case.name, opset, str(error)[:300]))
            made = sardonyx.Session(older).run(feeds)
            if not all(same(made[name], value) for name, value in expected.items()):
                wrong.append((case.name, opset, "differs"))
    assert not wrong
    assert converted > (7000 if constants else 6000)
    # What an older opset says in other words, or by the nodes that do its work.
    carried = {"test_attention_4d_gqa_with_past_and_present", "test_batchnorm_example", "test_castlike_FLOAT_to_DOUBLE", "test_gelu_tanh_1", "test_group_normalization_example",
               "test_hardswish", "test_layer_normalization_4d_axis1", "test_mish", "test_rotary_embedding", "test_softmax_axis_0", "test_swish", "test_tril"}
    assert carried <= {case.name for case in cases()}
    assert not carried & {name for name, opset in refused if opset >= 13}
