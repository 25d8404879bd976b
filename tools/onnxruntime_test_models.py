"""Models that tests of onnxruntime open by name, made from what the tests say of them: Debian's source archive has no binary files."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, DOUBLE, INT64, STRING, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
ML = "ai.onnx.ml"


def tensor(name, element_type, shape):
    return helper.make_tensor_value_info(name, element_type, shape)


def value(name, type_proto):
    return helper.make_value_info(name, type_proto)


def sequence(element_type, shape=None):
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(element_type, shape))


def a_map(key, element_type):
    return helper.make_map_type_proto(key, helper.make_tensor_type_proto(element_type, None))


def weight(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, inputs, outputs, weights=(), opset=13, **imports):
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ML, imports.get("ml", 2)), helper.make_opsetid("com.microsoft", 1)]
    used = {node.domain for node in nodes}
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(weights))
    return helper.make_model(graph, opset_imports=[one for one in opsets if one.domain in used or not one.domain], ir_version=8)


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs, outputs, domain=domain, **attributes)


def arithmetic():
    w = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    yield "mul_1", model([node("Mul", ["X", "W"], ["Y"])], [tensor("X", FLOAT, [3, 2])], [tensor("Y", FLOAT, [3, 2])], [weight("W", w)])
    column = weight("W", np.array([[1], [2]], np.float32))
    for name, rows in (("matmul_1", 3), ("matmul_2", "None")):
        yield name, model([node("MatMul", ["X", "W"], ["Y"])], [tensor("X", FLOAT, [rows, 2])], [tensor("Y", FLOAT, [rows, 1])], [column])
    yield "logicaland", model([node("And", ["input1:0", "input:0"], ["output:0"])],
                              [tensor("input1:0", BOOL, [2, 2]), tensor("input:0", BOOL, [2, 2])], [tensor("output:0", BOOL, [2, 2])])
    yield "identity_string", model([node("Identity", ["input:0"], ["output:0"])], [tensor("input:0", STRING, [2, 2])],
                                   [tensor("output:0", STRING, [2, 2])])
    ten = [tensor(name, FLOAT, [10]) for name in ("inp0", "inp1", "outp0", "outp1")]
    yield "alloc_tensor_reuse", model(
        [node("Add", ["inp0", "inp1"], ["tsor0"]), node("Sub", ["inp0", "inp1"], ["tsor1"]), node("Neg", ["tsor0"], ["outp0"]),
         node("Neg", ["tsor1"], ["outp1"])], ten[:2], ten[2:])


def sizes_and_settings():
    free = helper.make_tensor_value_info("x", FLOAT, ["Dim1", "Dim2", 5], shape_denotation=["DATA_BATCH", "DATA_CHANNEL", ""])
    yield "abs_free_dimensions", model([node("Abs", ["x"], ["y"])], [free], [tensor("y", FLOAT, None)])
    with_settings = model([node("Abs", ["x"], ["y"])], [tensor("x", FLOAT, [2])], [tensor("y", FLOAT, [2])])
    helper.set_model_props(with_settings, {"ort_config": json.dumps({"session_options": {
        "inter_op_num_threads": 5, "intra_op_num_threads": 2, "graph_optimization_level": 99, "enable_profiling": 1}})})
    yield "model_with_valid_ort_config_json", with_settings


def weights_in_files():
    """Convolutions and a product, with weights of more than 100 bytes, in the model and in a file beside it."""
    rng = np.random.default_rng(0)
    kernel, matrix = rng.random((8, 1, 5, 5), dtype=np.float32), rng.random((8 * 24 * 24, 10), dtype=np.float32)
    yield "mnist", model([node("Conv", ["Input3", "kernel"], ["c"]), node("Flatten", ["c"], ["f"]),
                          node("MatMul", ["f", "matrix"], ["Plus214_Output_0"])], [tensor("Input3", FLOAT, [1, 1, 28, 28])],
                         [tensor("Plus214_Output_0", FLOAT, [1, 10])], [weight("kernel", kernel), weight("matrix", matrix)])
    pads = TensorProto(name="Pads_not_on_disk", data_type=INT64, dims=[4], data_location=TensorProto.EXTERNAL)
    pads.external_data.add(key="location", value="Pads_not_on_disk.bin")
    yield "model_with_external_initializer_come_from_user", model(
        [node("Pad", ["X", "Pads_not_on_disk"], ["Y"], mode="constant")],
        [tensor("X", FLOAT, [1, 2]), tensor("Pads_not_on_disk", INT64, [4])], [tensor("Y", FLOAT, [1, 4])], [pads])
    x, a, b = tensor("input_x", FLOAT, [4, 4]), tensor("lora_param_a", FLOAT, [4, "rank"]), tensor("lora_param_b", FLOAT, ["rank", 4])
    yield "lora/two_params_lora_model", model(
        [node("MatMul", ["input_x", "W"], ["base"]), node("MatMul", ["input_x", "lora_param_a"], ["xa"]),
         node("MatMul", ["xa", "lora_param_b"], ["xab"]), node("Add", ["base", "xab"], ["output"])], [x, a, b],
        [tensor("output", FLOAT, [4, 4])],
        [weight("W", np.arange(1, 17, dtype=np.float32).reshape(4, 4)), weight("lora_param_a", np.zeros((4, 0), np.float32)),
         weight("lora_param_b", np.zeros((0, 4), np.float32))])


def sequences():
    yield "identity_opt", model([node("Identity", ["opt_in"], ["opt_out"])],
                                [value("opt_in", helper.make_optional_type_proto(sequence(FLOAT, [5])))],
                                [value("opt_out", helper.make_optional_type_proto(sequence(FLOAT, [5])))], opset=16)
    yield "sequence_length", model([node("SequenceLength", ["X"], ["Y"])], [value("X", sequence(FLOAT))], [tensor("Y", INT64, [])])
    two = [tensor("tensor1", INT64, [2, 3]), tensor("tensor2", INT64, [2, 3])]
    yield "sequence_construct", model([node("SequenceConstruct", ["tensor1", "tensor2"], ["output_sequence"])], two,
                                      [value("output_sequence", sequence(INT64))])
    yield "sequence_insert", model([node("SequenceInsert", ["input_seq", "tensor"], ["output_sequence"])],
                                   [value("input_seq", sequence(INT64)), tensor("tensor", INT64, [2, 3])],
                                   [value("output_sequence", sequence(INT64))])


def classic():
    x = tensor("X", FLOAT, [2, 3])
    yield "zipmap_stringfloat", model([node("ZipMap", ["X"], ["Z"], ML, classlabels_strings=["class1", "class2", "class3"])], [x],
                                      [value("Z", helper.make_sequence_type_proto(a_map(STRING, FLOAT)))])
    yield "zipmap_int64float", model([node("ZipMap", ["X"], ["Z"], ML, classlabels_int64s=[10, 20, 30])], [x],
                                     [value("Z", helper.make_sequence_type_proto(a_map(INT64, FLOAT)))])
    # The answer that the tests want for {0: 25, 1: 5.13, 2: 0, 3: 0.453, 4: 5.966}, within 1e-5.
    yield "pipeline_vectorize", model(
        [node("DictVectorizer", ["float_input"], ["row"], ML, int64_vocabulary=[0, 1, 2, 3, 4]),
         node("LinearRegressor", ["row"], ["variable1"], ML, coefficients=[1.0, 2.0, 3.0, 4.0, 2.0], intercepts=[0.748754])],
        [value("float_input", a_map(INT64, FLOAT))], [tensor("variable1", FLOAT, [1, 1])])
    yield "LabelEncoder", model([node("LabelEncoder", ["input"], ["variable"], ML, keys_strings=["0", "2", "3", "4"],
                                      values_int64s=[0, 1, 2, 3])], [tensor("input", STRING, [1, 1])], [tensor("variable", INT64, [1, 1])])
    yield "mlnet_encoder", model(
        [node("Identity", ["C0"], ["C00"]), node("OneHotEncoder", ["C1"], ["C12"], ML, cats_strings=["B\0B\0", "D", "C\0C\0", "E"], zeros=1)],
        [tensor("C0", FLOAT, [1, 1]), tensor("C1", STRING, [1, 3])], [tensor("C00", FLOAT, [1, 1]), tensor("C12", FLOAT, None)])
    yield "tree_ensemble_as_tensor", model(
        [node("TreeEnsembleRegressor", ["X"], ["narrow"], ML, n_targets=1, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
              nodes_featureids=[2, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0],
              nodes_falsenodeids=[2, 0, 0], nodes_missing_value_tracks_true=[0, 0, 0],
              nodes_values_as_tensor=weight("values", np.array([1.7999999523162842, 0, 0])), target_treeids=[0, 0],
              target_nodeids=[1, 2], target_ids=[0, 0],
              target_weights_as_tensor=weight("weights", np.array([0.7284910678863525, 0.9134243130683899]))),
         node("Cast", ["narrow"], ["Y"], to=DOUBLE)],
        [tensor("X", DOUBLE, [None, 4])], [tensor("Y", DOUBLE, [None, 1])], ml=3)


def sparse():
    def of(name, shape):
        return value(name, helper.make_sparse_tensor_type_proto(FLOAT, shape))

    values = weight("values", np.array([1.764052391052246, 0.40015721321105957, 0.978738009929657], np.float32))
    indices = weight("indices", np.array([2, 3, 5]))
    constant = node("Constant", [], ["values"], sparse_value=helper.make_sparse_tensor(values, indices, [3, 3]))
    yield "sparse_initializer_as_output", model([constant], [], [of("values", [3, 3])])
    yield "sparse_to_dense_matmul", model(
        [node("SparseToDenseMatMul", ["sparse_A", "dense_B"], ["dense_Y"], "com.microsoft")],
        [of("sparse_A", [9, 9]), tensor("dense_B", FLOAT, [9, 9])], [tensor("dense_Y", FLOAT, [9, 9])])


def write(folder: pathlib.Path) -> None:
    """Writes all of them into the folder."""
    for family in (arithmetic, sizes_and_settings, weights_in_files, sequences, classic, sparse):
        for name, made in family():
            path = folder / f"{name}.onnx"
            path.parent.mkdir(parents=True, exist_ok=True)
            onnx.save(made, path)
    outside = folder / "model_with_orig_ext_data.onnx"
    matrix = np.random.default_rng(1).random((4, 20), dtype=np.float32)
    onnx.save(model([node("MatMul", ["X", "W"], ["Y"])], [tensor("X", FLOAT, [1, 4])], [tensor("Y", FLOAT, [1, 20])], [weight("W", matrix)]),
              outside, save_as_external_data=True, location="model_with_orig_ext_data.bin", size_threshold=0)
