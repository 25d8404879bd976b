"""Writes the .ort fixtures of tests/wire, and beside them nothing. Needs onnx and onnxruntime 1.31.1; run it in this folder.

Sizes and values are small: the tests damage each file at every byte.
"""
import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, parser


def save(name, model, level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = name
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def array(values, name, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), name)


def mlp():
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17], producer_name: "fixtures", producer_version: "2", domain: "org.example",
         model_version: 7, doc_string: "two layers", metadata_props: ["author": "nobody"]>
        net (float[batch,2] x) => (float[batch,3] y) {
          h = Gemm <alpha = 0.5> (x, w, b)
          r = Relu (h)
          y = Softmax <axis = -1> (r)
        }""")
    model.graph.doc_string = "the graph"
    model.graph.node[0].name = "first"
    model.graph.node[0].doc_string = "a product"
    model.graph.initializer.extend([array([[1, 2, 3], [4, 5, 6]], "w"), array([0, 1, -1], "b")])
    model.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [3]))  # a default
    return model


def bodies():
    """Graphs in attributes that read values around them; nodes that the file has in another order."""
    return parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17]>
        net (float[n] x, bool c, int64 trips) => (float[n] y, float[m,n] all) {
          chosen = If (c) <
            then_branch = yes () => (float[n] a) { a = Mul (doubled, x) },
            else_branch = no () => (float[n] b) { b = Neg (doubled) }>
          y, all = Loop (trips, , chosen) <
            body = step (int64 i, bool go, float[n] s) => (bool on, float[n] t, float[n] out) {
              on = Identity (go)
              t = Add (s, doubled)
              out = Identity (t) }>
          doubled = Add (x, x)
        }""")


def types():
    """Elements of many types, texts, sequences and maps."""
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", None]))
    table = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    constants = [numpy_helper.from_array(np.arange(3).astype(dtype), str(dtype.__name__))
                 for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64, np.float16, np.float64, np.uint32,
                               np.uint64, np.bool_)]
    constants.append(helper.make_tensor("text", TensorProto.STRING, [3], [b"one", b"a text that is long enough", b"\xff\xfe"]))
    nodes = [helper.make_node("Cast", [constant.name], [f"f{i}"], to=TensorProto.FLOAT)
             for i, constant in enumerate(constants[:-1])]
    nodes += [helper.make_node("Sum", [f"f{i}" for i in range(len(nodes))], ["sum"]),
              helper.make_node("Identity", ["text"], ["words"]),
              helper.make_node("SequenceLength", ["list"], ["length"]),
              helper.make_node("DictVectorizer", ["table"], ["vector"], domain="ai.onnx.ml", string_vocabulary=["a", "b"]),
              helper.make_node("Constant", [], ["fixed"], value=array([1.5], "")),
              helper.make_node("ConstantOfShape", ["int64"], ["filled"], value=array([2], "", np.int32))]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_value_info("list", sequence), helper.make_value_info("table", table)],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, [3]), helper.make_tensor_value_info("words", TensorProto.STRING, [3]),
         helper.make_tensor_value_info("length", TensorProto.INT64, []), helper.make_tensor_value_info("vector", TensorProto.FLOAT, None),
         helper.make_tensor_value_info("fixed", TensorProto.FLOAT, [1]),
         helper.make_tensor_value_info("filled", TensorProto.INT32, [0, 1, 2])], constants)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])


def sparse():
    value = helper.make_sparse_tensor(array([2, 3], "s"), array([1, 5], "s_indices", np.int64), [2, 3])
    nodes = [helper.make_node("Constant", [], ["s"], sparse_value=value), helper.make_node("MatMul", ["x", "s"], ["y"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def convolution():
    """Fused by ONNX Runtime's optimiser, which adds what it makes at the end."""
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17]>
        net (float[1,1,3,3] x) => (float[1,1,2,2] y) {
          c = Conv (x, w)
          r = Relu (c)
          y = Neg (r)
        }""")
    model.graph.initializer.append(array(np.ones((1, 1, 2, 2)), "w"))
    return model


if __name__ == "__main__":
    save("mlp.ort", mlp())
    save("bodies.ort", bodies())
    save("types.ort", types())
    save("sparse.ort", sparse())
    save("optimized.ort", convolution(), onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED)
