"""Models with one construct repeated, for test_scaling.py: each function makes one that holds it `size` times."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
IMPORTS = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]


def value(name, kind=FLOAT, shape=(1,)):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def array(name, values, kind=np.float32):
    return numpy_helper.from_array(np.array(values, kind), name)


def model(nodes, inputs, outputs, initializers=(), functions=(), imports=None, sparse=(), declared=()) -> ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), value_info=list(declared),
                              sparse_initializer=list(sparse))
    return helper.make_model(graph, opset_imports=imports or IMPORTS, ir_version=10, functions=list(functions))


def around(nodes=(), inputs=(), outputs=(), initializers=(), **more) -> ModelProto:
    """Of what stands beside one node that the model consists of."""
    return model([node("Relu", ["x"], ["y"]), *nodes], [value("x"), *inputs], [value("y"), *outputs], initializers, **more)


def chain(size, make, inputs=None, shape=(1,), more=(), initializers=()) -> ModelProto:
    """make(i, what it reads, what it makes): nodes, one after the other."""
    nodes = [n for i in range(size) for n in make(i, f"v{i}", f"v{i + 1}")]
    return model(nodes, inputs or [value("v0", FLOAT, shape), *more], [value(f"v{size}", FLOAT, None)], initializers)


def body(name, nodes, outputs, inputs=()):
    return helper.make_graph(list(nodes), name, list(inputs), list(outputs))


def branch(name, op, read):
    return body(name, [node(op, [read], [name])], [value(name)])


def choice(i, read, made):
    return node("If", ["c"], [made], then_branch=branch(f"a{i}", "Relu", read), else_branch=branch(f"b{i}", "Neg", read))


def loop(read, made, nodes, inputs, outputs, mark=""):
    steps = [node("Identity", [f"k{mark}"], [f"o{mark}"]), *nodes]
    inner = body(f"b{mark}", steps, [value(f"o{mark}", BOOL, ()), *outputs],
                 [value(f"i{mark}", INT64, ()), value(f"k{mark}", BOOL, ()), *inputs])
    return node("Loop", ["n", "", *read], made, body=inner)


def function(name, nodes, inputs=("a",), outputs=("b",), attributes=()):
    return helper.make_function("own", name, list(inputs), list(outputs), nodes, IMPORTS, list(attributes))


FLAG, TRIPS = value("c", BOOL, ()), value("n", INT64, ())

# --- nodes, branches, loops, functions


def nodes(size):
    return chain(size, lambda i, a, b: [node("Relu" if i % 2 else "Tanh", [a], [b])])


def branches(size):
    return chain(size, lambda i, a, b: [choice(i, a, b)], more=[FLAG])


def branches_in_branches(size):
    made, last = [node("Relu", ["x"], ["y"])], "y"
    for level in range(size):
        other = branch(f"z{level}", "Neg", "x")
        made = [node("If", ["c"], [f"y{level}"], then_branch=body(f"b{level}", made, [value(last)]), else_branch=other)]
        last = f"y{level}"
    return model(made, [value("x"), FLAG], [value(last)])


def loops(size):
    def make(i, a, b):
        return [loop([a], [b], [node("Relu", [f"s{i}"], [f"t{i}"])], [value(f"s{i}")], [value(f"t{i}")], i)]
    return chain(size, make, more=[TRIPS])


def sequences_that_grow(size):
    grown = [node("SequenceInsert", [f"s{i}", "v0"], [f"s{i + 1}"]) for i in range(size)]
    return model([node("SequenceConstruct", ["v0"], ["s0"]), *grown, node("SequenceLength", [f"s{size}"], ["n"])],
                 [value("v0")], [value("n", INT64, ())])


def loops_that_grow(size):
    def make(i, a, b):
        grow = node("Concat", [f"s{i}", "v0"], [f"t{i}"], axis=0)
        return [loop([a], [b], [grow], [value(f"s{i}", FLOAT, None)], [value(f"t{i}", FLOAT, None)], i)]
    return chain(size, make, more=[TRIPS])


def states(size):
    made = [node("Relu", [f"s{i}"], [f"t{i}"]) for i in range(size)]
    looped = loop(["x"] * size, [f"y{i}" for i in range(size)], made, [value(f"s{i}") for i in range(size)],
                  [value(f"t{i}") for i in range(size)])
    return model([looped], [value("x"), TRIPS], [value("y0")])


def state_that_grows(size):
    looped = loop(["x"], ["y", "z"], [node("Relu", ["s"], ["t"]), node("Identity", ["s"], ["u"])], [value("s")],
                  [value("t"), value("u")])
    return model([looped], [value("x")], [value("z", FLOAT, None)], [numpy_helper.from_array(np.int64(size), "n")])


def captured(size):
    read = [node("Relu", ["x"], [f"v{i}"]) for i in range(size)]
    total = body("t", [node("Sum", [f"v{i}" for i in range(size)], ["a"])], [value("a")])
    return model([*read, node("If", ["c"], ["y"], then_branch=total, else_branch=branch("b", "Neg", "x"))],
                 [value("x"), FLAG], [value("y")])


def functions(size):
    made = [function(f"f{i}", [node("Relu", ["a"], ["b"])]) for i in range(size)]
    calls = [node(f"f{i}", [f"v{i}"], [f"v{i + 1}"], domain="own") for i in range(size)]
    return model(calls, [value("v0")], [value(f"v{size}")], functions=made)


def calls(size):
    called = function("f", [node("Relu", ["a"], ["t"]), node("Tanh", ["t"], ["b"])])
    made = [node("f", [f"v{i}"], [f"v{i + 1}"], domain="own") for i in range(size)]
    return model(made, [value("v0")], [value(f"v{size}")], functions=[called])


def calls_in_calls(size):
    made = [function("f0", [node("Relu", ["a"], ["b"])])]
    made += [function(f"f{i}", [node(f"f{i - 1}", ["a"], ["b"], domain="own")]) for i in range(1, size)]
    return model([node(f"f{max(size, 1) - 1}", ["x"], ["y"], domain="own")], [value("x")], [value("y")], functions=made)


def attributes(size):
    called = function("f", [node("Relu", ["a"], ["b"])], attributes=[f"p{i}" for i in range(size)])
    call = node("f", ["x"], ["y"], domain="own", **{f"p{i}": i for i in range(size)})
    return model([call], [value("x")], [value("y")], functions=[called])


# --- values


def initializers(size):
    return around(initializers=[array(f"w{i}", [i]) for i in range(size)])


def string_initializers(size):
    return around(initializers=[helper.make_tensor(f"w{i}", STRING, [1], [b"a"]) for i in range(size)])


def strings(size):
    texts = helper.make_tensor("w", STRING, [size], [b"a"] * size)
    return model([node("Equal", ["x", "w"], ["y"])], [value("x", STRING)], [value("y", BOOL, None)], [texts])


def inputs(size):
    return around(inputs=[value(f"x{i}") for i in range(size)])


def inputs_of_a_node(size):
    names = [f"x{i}" for i in range(size)]
    return model([node("Sum", names, ["y"])], [value(name) for name in names], [value("y")])


def outputs(size):
    return around([node("Relu", ["x"], [f"v{i}"]) for i in range(size)], outputs=[value(f"v{i}") for i in range(size)])


def outputs_of_a_node(size):
    split = node("Split", ["x"], [f"y{i}" for i in range(size)], axis=0, num_outputs=size)
    return model([split], [value("x", FLOAT, (size,))], [value("y0")])


def sizes(size):
    return around(inputs=[value(f"x{i}", FLOAT, (f"n{i}",)) for i in range(size)])


def sizes_that_are_equal(size):
    return chain(size, lambda i, a, b: [node("Add", [a, f"x{i}"], [b])], shape=("m",),
                 more=[value(f"x{i}", FLOAT, (f"n{i}",)) for i in range(size)])


def sizes_of_products(size):
    return chain(size, lambda i, a, b: [node("MatMul", [a, f"x{i}"], [b])], shape=("a", "b"),
                 more=[value(f"x{i}", FLOAT, (f"m{i}", f"n{i}")) for i in range(size)])


def sizes_added_up(size):
    return chain(size, lambda i, a, b: [node("Concat", [a, f"x{i}"], [b], axis=0)], shape=("a",),
                 more=[value(f"x{i}", FLOAT, (f"n{i}",)) for i in range(size)])


def shapes(size):
    return chain(size, lambda i, a, b: [node("Shape", [a], [f"s{i}"]), node("Reshape", [a, f"s{i}"], [b])], shape=("a", "b"))


def arithmetic_of_shapes(size):
    made = [node("Shape", ["x"], ["s0"])]
    made += [node("Add" if i % 2 else "Mul", [f"s{i}", "two"], [f"s{i + 1}"]) for i in range(size)]
    return model(made, [value("x", FLOAT, ("a", "b"))], [value(f"s{size}", INT64, None)], [array("two", [2], np.int64)])


def sizes_of_runs(size):
    def make(i, a, b):
        return [node("NonZero", [a], [f"n{i}"]), node("Cast", [f"n{i}"], [f"f{i}"], to=FLOAT),
                node("ReduceSum", [f"f{i}"], [b])]
    return chain(size, make)


def value_infos(size):
    made = nodes(size)
    made.graph.value_info.extend(value(f"v{i + 1}") for i in range(size - 1))
    return made


def dimensions(size):
    return around(inputs=[value(f"x{i}", FLOAT, ["n", 1, None] * 100) for i in range(size)])


def constants(size):
    forms = [{"value_float": 1.0}, {"value_floats": [1.0]}, {"value": array("", [1])}]
    return chain(size, lambda i, a, b: [node("Constant", [], [f"c{i}"], **forms[i % 3]), node("Add", [a, f"c{i}"], [b])])


def constants_of_numbers(size):
    many = [node("Constant", [], ["c"], value_ints=list(range(size))), node("Gather", ["c", "x"], ["y"])]
    return model(many, [value("x", INT64)], [value("y", INT64)])


def constants_of_texts(size):
    many = [node("Constant", [], ["c"], value_strings=["a"] * size), node("Gather", ["c", "x"], ["y"])]
    return model(many, [value("x", INT64)], [value("y", STRING)])


def sparse_initializers(size):
    sparse = [helper.make_sparse_tensor(array(f"w{i}", [1]), array(f"i{i}", [0], np.int64), [1]) for i in range(size)]
    made = [node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(size)]
    return model(made, [value("v0")], [value(f"v{size}")], sparse=sparse)


# --- layers


def convolutions(size):
    return chain(size, lambda i, a, b: [node("Conv", [a, f"w{i}"], [b])], shape=(1, 1, 4, 4),
                 initializers=[array(f"w{i}", [[[[1]]]]) for i in range(size)])


def products(size):
    return chain(size, lambda i, a, b: [node("MatMul", [a, f"w{i}"], [b])], shape=(1, 2),
                 initializers=[array(f"w{i}", [[1, 0], [0, 1]]) for i in range(size)])


def normalizations(size):
    return chain(size, lambda i, a, b: [node("BatchNormalization", [a, "w", "w", "w", "w"], [b])], shape=(1, 1, 2, 2),
                 initializers=[array("w", [1])])


def quantized(size):
    def make(i, a, b):
        return [node("QuantizeLinear", [a, "s", "z"], [f"q{i}"]), node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"]),
                node("Relu", [f"d{i}"], [b])]
    scalars = [numpy_helper.from_array(np.float32(0.1), "s"), numpy_helper.from_array(np.uint8(3), "z")]
    return chain(size, make, shape=("a",), initializers=scalars)


def bodies(size):
    return chain(size, lambda i, a, b: [node("Celu" if i % 2 else "HardSwish", [a], [b])], shape=("a",))


# --- other kinds of values


def optionals(size):
    handed = [node("Identity", [f"o{i}"], [f"o{i + 1}"]) for i in range(size)]
    return model([node("Optional", ["x"], ["o0"]), *handed, node("OptionalGetElement", [f"o{size}"], ["y"])],
                 [value("x")], [value("y")])


def types(size):
    kind = helper.make_tensor_type_proto(FLOAT, [1])
    for _ in range(10):
        kind = helper.make_sequence_type_proto(kind)
    return around([node("Identity", ["s"], [f"t{i}"]) for i in range(size)], inputs=[helper.make_value_info("s", kind)])


def items(size):
    return model([node("SequenceConstruct", ["x"] * size, ["s"]), node("SequenceLength", ["s"], ["y"])], [value("x")],
                 [value("y", INT64, ())])


# --- annotations


def names(size):
    long = "y" * size
    return model([node("Relu", ["x"], [long], name="n" * size), node("Relu", [long], ["z"])], [value("x", FLOAT, ("d" * size,))],
                 [value("z", FLOAT, None)])


def imports(size):
    return around(imports=[*IMPORTS, *(helper.make_opsetid(f"d{i}", 1) for i in range(size))])


def imports_of_nodes(size):
    made = [node("f", [f"v{i}"], [f"v{i + 1}"], domain=f"d{i}") for i in range(size)]
    more = [helper.make_opsetid(f"d{i}", 1) for i in range(size)]
    return model(made, [value("v0")], [value(f"v{size}")], imports=[*IMPORTS, *more])


def metadata(size):
    made = around()
    for properties in (made.metadata_props, made.graph.metadata_props, made.graph.node[0].metadata_props):
        for i in range(size):
            entry = properties.add()
            entry.key, entry.value = f"k{i}", "v"
    return made


def annotations(size):
    made = around(initializers=[array(f"w{i}", [1]) for i in range(size)])
    for i in range(size):
        entry = made.graph.quantization_annotation.add(tensor_name=f"w{i}").quant_parameter_tensor_names.add()
        entry.key, entry.value = "SCALE_TENSOR", f"w{i}"
    return made


# --- what is wrong


def unknown_names(size):
    return around([node("Relu", [f"missing{i}"], [f"w{i}"]) for i in range(size)])


def unsorted(size):
    made = nodes(size)
    made.graph.node.sort(key=lambda n: -int(n.output[0][1:]))
    return made
