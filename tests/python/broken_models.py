"""Models that are broken in one place, made systematically, and what Sardonyx and the reference checker say of them.

`field_mutants` damages every field of every message of a model; `operator_mutants` damages a node and its inputs:
attributes, counts, types, shapes and known elements. What is made depends on nothing but the model.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import os
import pathlib
import re
import subprocess
import warnings
from collections.abc import Iterator

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor as Field
from onnx import AttributeProto, TensorProto, helper, numpy_helper, parser

# --- models that are valid ----------------------------------------------------------------------

GRAPHS = {
    "plain": """g (float[2, n] x, float[3, n] w) => (float[2, n] z) <float[1] one = {1.0}, int64[2] shape = {3, -1}>
        { y = Add <x_unused = 0> (x, one)  r = Reshape (w, shape)  s = Shape (r)  t = Concat <axis = 0> (y, r)
          z = Softmax <axis = 1> (y) }""".replace(" <x_unused = 0>", ""),
    "branches": """g (float[2] x, bool c) => (float[2] y) {
        a = Neg (x)
        y = If (c) <then_branch = t () => (float[2] u) { u = Relu (a) }, else_branch = e () => (float[2] v) { v = Abs (x) }> }""",
    "loop": """g (float[2] x, int64 n, bool c) => (float[2] y, float[m, 2] all) {
        y, all = Loop (n, c, x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] d, float[2] o)
          { on = Identity (go)  d = Add (s, x)  o = Neg (d) }> }""",
    "sequences": """g (float[2] x, int64 at) => (float[2] y, seq(float[2]) s) {
        s = SequenceConstruct (x, x)  y = SequenceAt (s, at) }""",
    "optionals": """g (float[2] x) => (float[2] y, bool b) {
        o = Optional (x)  y = OptionalGetElement (o)  b = OptionalHasElement (o) }""",
    "constants": """g (float[2] x) => (float[2] y, int64[3] k) {
        v = Constant <value = float[2] {1, 2}> ()  k = Constant <value_ints = [1, 2, 3]> ()  y = Mul (x, v) }""",
}
FUNCTIONS = """<ir_version: 10, opset_import: ["": 18, "own": 1]>
    g (float[2, 4] x) => (float[2, 4] y) { a = own.twice <scale = 2.0> (x)  y = own.f (a, x) }
    <domain: "own", opset_import: ["": 18]> twice <scale> (p) => (q)
    { s = Constant <value_float: float = @scale> ()  q = Mul (p, s) }
    <domain: "own", opset_import: ["": 18, "own": 1]> f (p, r) => (q) { t = Add (p, r)  q = Relu (t) }"""
ML = """<ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": 3]>
    g (float[2, 3] x, int64[2] k) => (float[2, 3] y, string[2] names) {
      y = ai.onnx.ml.Scaler <offset = [0.5, 0.5, 0.5], scale = [2.0, 2.0, 2.0]> (x)
      names = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2], values_strings = ["a", "b"]> (k) }"""


def with_sparse(model: onnx.ModelProto) -> None:
    values = helper.make_tensor("sp", TensorProto.FLOAT, [2], [1.0, 2.0])
    indices = helper.make_tensor("", TensorProto.INT64, [2], [1, 4])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))


def with_quantization(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "x_scale"))
    annotation = model.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="x_scale")


def with_training(model: onnx.ModelProto) -> None:
    algorithm = parser.parse_graph("train (float[1] rate) => (float[1] new) { new = Sub (one, rate) }")
    info = model.training_info.add()
    info.algorithm.CopyFrom(algorithm)
    info.update_binding.add(key="one", value="new")
    info.initialization.CopyFrom(parser.parse_graph("start () => (float[1] first) { first = Constant <value = float[1] {1}> () }"))
    info.initialization_binding.add(key="one", value="first")


def with_external(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer.add(name="far", data_type=TensorProto.FLOAT, dims=[2],
                                         data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "data.bin"), ("offset", "0"), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    model.graph.node.append(helper.make_node("Neg", ["far"], ["farther"]))


def with_tensors(model: onnx.ModelProto) -> None:
    """One tensor for each field that holds elements."""
    for kind, numbers in ((TensorProto.DOUBLE, [1.0, 2.0]), (TensorProto.INT64, [1, 2]), (TensorProto.UINT64, [1, 2]),
                          (TensorProto.INT8, [1, 2]), (TensorProto.BOOL, [0, 1]), (TensorProto.FLOAT16, [1.0, 2.0]),
                          (TensorProto.COMPLEX64, [1j, 2.0]), (TensorProto.STRING, ["a", "b"])):
        model.graph.initializer.append(helper.make_tensor(f"t{kind}", kind, [2], numbers))
    model.graph.initializer.append(numpy_helper.from_array(np.arange(3, dtype=np.int32), "raw"))


def with_header(model: onnx.ModelProto) -> None:
    model.producer_name, model.producer_version, model.domain = "maker", "1", "com.example"
    model.doc_string, model.model_version = "what it does", 3
    model.metadata_props.add(key="com.example.k", value="v")
    model.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, None]))


EXTRAS = {"sparse": (with_sparse, 6), "quantization": (with_quantization, 5), "training": (with_training, 7),
          "external": (with_external, 4), "tensors": (with_tensors, 4), "header": (with_header, 4)}
OPSETS = {3: 9, 4: 9, 5: 10, 6: 11, 7: 14, 8: 17, 9: 20, 10: 21, 11: 23, 12: 24, 13: 25, 14: 26}
FIRST_OPSET = {"sequences": 11, "optionals": 18, "constants": 12, "branches": 11, "loop": 11, "plain": 13}


def structural_bases(ir_versions=tuple(OPSETS)) -> dict[str, onnx.ModelProto]:
    """Valid models by name; those that the version of the standard cannot hold are left out."""
    bases = {}
    for ir_version in ir_versions:
        opset = OPSETS[ir_version]
        header = f'<ir_version: {ir_version}, opset_import: ["": {opset}]>\n'
        for name, text in GRAPHS.items():
            if opset >= FIRST_OPSET[name]:
                bases[f"{name}@{ir_version}"] = parser.parse_model(header + text)
        for name, (extend, since) in EXTRAS.items():
            if ir_version < since:
                continue
            model = parser.parse_model(header + "g (float[2, n] x) => (float[2, n] y) <float[1] one = {1.0}> { y = Add (x, one) }")
            if ir_version < 4:
                continue
            extend(model)
            bases[f"{name}@{ir_version}"] = model
    bases["functions@10"] = parser.parse_model(FUNCTIONS)
    bases["ml@8"] = parser.parse_model(ML)
    old = parser.parse_model('<ir_version: 3, opset_import: ["": 8]> g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }')
    bases["old@3"] = old
    return bases


# --- one field after the other ------------------------------------------------------------------

WRONG_STRINGS = ("", "wrong", "x")
WRONG_INTS = (-1, 0, 1, 7, 99, 2**40)


def wrong_values(field: Field, now):
    if field.type == Field.TYPE_STRING:
        return [v for v in WRONG_STRINGS if v != now]
    if field.type == Field.TYPE_BYTES:
        return [v for v in (b"", b"wrong", b"\x00" * 3) if v != now]
    if field.type in (Field.TYPE_FLOAT, Field.TYPE_DOUBLE):
        return [v for v in (0.0, -1.5) if v != now]
    if field.type == Field.TYPE_BOOL:
        return [not now]
    return [v for v in WRONG_INTS if v != now]


def walk_messages(message, path: tuple = ()) -> Iterator[tuple]:
    """Paths of all messages below one: names of fields, with an index where there are several."""
    yield path
    for field, value in message.ListFields():
        if field.type != Field.TYPE_MESSAGE:
            continue
        if field.is_repeated:
            for index, inner in enumerate(value):
                yield from walk_messages(inner, (*path, (field.name, index)))
        else:
            yield from walk_messages(value, (*path, (field.name, None)))


def at(message, path: tuple):
    for name, index in path:
        message = getattr(message, name)
        if index is not None:
            message = message[index]
    return message


def changes(message) -> Iterator[tuple[str, str, object]]:
    """What can be done to the fields of a message: the field, what is done, and a function that does it."""
    for field in message.DESCRIPTOR.fields:
        name = field.name
        value = getattr(message, name)
        if field.is_repeated:
            yield from list_changes(field, name, value)
        elif field.type == Field.TYPE_MESSAGE:
            if message.HasField(name):
                yield name, "removed", lambda m, n=name: m.ClearField(n)
                yield name, "emptied", lambda m, n=name: getattr(m, n).Clear()
            else:
                yield name, "added", lambda m, n=name: getattr(m, n).SetInParent()
        else:
            if message.HasField(name):
                yield name, "removed", lambda m, n=name: m.ClearField(n)
            for wrong in wrong_values(field, value if message.HasField(name) else None):
                yield name, f"={wrong!r}", lambda m, n=name, w=wrong: setattr(m, n, w)


def list_changes(field: Field, name: str, values) -> Iterator[tuple[str, str, object]]:
    is_message = field.type == Field.TYPE_MESSAGE
    if len(values):
        yield name, "cleared", lambda m: m.ClearField(name)
    for index in range(min(len(values), 4)):
        def remove(m, i=index):
            del getattr(m, name)[i]
        def repeat(m, i=index):
            getattr(m, name).append(copy.deepcopy(getattr(m, name)[i]))
        yield name, f"[{index}] removed", remove
        yield name, f"[{index}] repeated", repeat
        if is_message:
            yield name, f"[{index}] emptied", lambda m, i=index: getattr(m, name)[i].Clear()
        else:
            for wrong in wrong_values(field, values[index]):
                def change(m, i=index, w=wrong):
                    getattr(m, name)[i] = w
                yield name, f"[{index}]={wrong!r}", change
    if len(values) > 1:
        def turn(m):
            turned = list(reversed([copy.deepcopy(v) for v in getattr(m, name)]))
            m.ClearField(name)
            getattr(m, name).extend(turned)
        yield name, "reversed", turn
    if len(values) == 0:
        if is_message:
            yield name, "added", lambda m: getattr(m, name).add()
        else:
            yield name, "added", lambda m: getattr(m, name).append(wrong_values(field, None)[1])


def field_mutants(model: onnx.ModelProto) -> Iterator[tuple[str, bytes]]:
    for path in list(walk_messages(model)):
        for name, what, change in changes(at(model, path)):
            mutant = copy.deepcopy(model)
            try:
                change(at(mutant, path))
                made = mutant.SerializeToString()
            except (ValueError, TypeError):  # the message cannot hold it
                continue
            place = "".join(f".{part}" for part, _ in path) + f".{name}"
            yield f"{place[1:]} {what}", made


# --- one node and what it is given --------------------------------------------------------------


def operator_bases(most: int = 2) -> dict[str, onnx.ModelProto]:
    """The standard's own cases of single nodes, at most so many of an operator. Small inputs of integers are constants,
    and outputs are declared without shapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        cases = collect_testcases("")
    bases, counts = {}, {}
    for case in cases:
        model = case.model
        if len(model.graph.node) != 1 or model.functions:
            continue
        operator = model.graph.node[0].op_type
        if counts.get(operator, 0) >= most:
            continue
        model = copy.deepcopy(model)
        given = case.data_sets[0][0]
        for info, value in list(zip(model.graph.input, given)):
            if isinstance(value, np.ndarray) and value.dtype in (np.int64, np.int32) and value.size <= 16 and value.ndim <= 2:
                model.graph.initializer.append(numpy_helper.from_array(value, info.name))
                model.graph.input.remove(info)
        for output in model.graph.output:
            if output.type.HasField("tensor_type"):
                for dim in output.type.tensor_type.shape.dim:
                    dim.Clear()
        if reference_refuses(model.SerializeToString(), infer_only=True):
            continue
        counts[operator] = counts.get(operator, 0) + 1
        bases[f"{operator}/{case.name}"] = model
    return bases


def change_attribute(attribute: onnx.AttributeProto) -> Iterator[tuple[str, onnx.AttributeProto]]:
    def made(value):
        return helper.make_attribute(attribute.name, value)

    kind = attribute.type
    if kind == AttributeProto.INT:
        for number in (-1000, -3, -1, 0, 1, 2, 3, 7, 1000, 2**62):
            if number != attribute.i:
                yield f"={number}", made(number)
        yield "wrong kind", made(1.5)
    elif kind == AttributeProto.FLOAT:
        yield "=-1.5", made(-1.5)
        yield "wrong kind", made(3)
    elif kind == AttributeProto.STRING:
        yield "=nonsense", made("nonsense")
        yield "wrong kind", made(3)
    elif kind == AttributeProto.INTS:
        numbers = list(attribute.ints)
        yield "longer", made([*numbers, 1])
        if len(numbers) > 1:
            yield "shorter", made(numbers[:-1])
            yield "alike", made([numbers[0]] * len(numbers))
        for wrong in (-1000, -1, 0, 1000, 2**62):
            if numbers:
                yield f"[0]={wrong}", made([wrong, *numbers[1:]])
                yield f"[-1]={wrong}", made([*numbers[:-1], wrong])
        yield "wrong kind", made(3)
    elif kind == AttributeProto.FLOATS:
        yield "longer", made([*attribute.floats, 1.0])
        if len(attribute.floats) > 1:
            yield "shorter", made(list(attribute.floats)[:-1])


def attribute_mutants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    node = model.graph.node[0]
    schema = schema_of(model)
    for index, attribute in enumerate(node.attribute):
        mutant = copy.deepcopy(model)
        del mutant.graph.node[0].attribute[index]
        yield f"{attribute.name} missing", mutant
        for what, changed in change_attribute(attribute):
            mutant = copy.deepcopy(model)
            mutant.graph.node[0].attribute[index].CopyFrom(changed)
            yield f"{attribute.name} {what}", mutant
    here = {attribute.name for attribute in node.attribute}
    for name, formal in schema.attributes.items():  # those that the case does not give
        if name in here:
            continue
        for value in {"INT": (-1000, -1, 0, 1, 2, 1000), "STRING": ("nonsense",), "FLOAT": (-1.5,),
                      "INTS": ([], [0], [1, 1], [-1, 1000])}.get(formal.type.name, ()):
            mutant = copy.deepcopy(model)
            if value == []:
                mutant.graph.node[0].attribute.add(name=name, type=AttributeProto.INTS)
            else:
                mutant.graph.node[0].attribute.append(helper.make_attribute(name, value))
            yield f"{name} added {value}", mutant
    mutant = copy.deepcopy(model)
    mutant.graph.node[0].attribute.append(helper.make_attribute("no_such_attribute", 1))
    yield "unknown attribute", mutant


def schema_of(model: onnx.ModelProto) -> onnx.defs.OpSchema:
    node = model.graph.node[0]
    version = {entry.domain: entry.version for entry in model.opset_import}[node.domain]
    return onnx.defs.get_schema(node.op_type, version, node.domain)


def count_mutants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    node = model.graph.node[0]
    for side in ("input", "output"):
        names = list(getattr(node, side))
        for index in range(len(names)):
            mutant = copy.deepcopy(model)
            getattr(mutant.graph.node[0], side)[index] = ""
            if side == "output":
                keep = [o for o in mutant.graph.output if o.name != names[index]]
                del mutant.graph.output[:]
                mutant.graph.output.extend(keep)
            yield f"{side} {index} left out", mutant
        mutant = copy.deepcopy(model)
        extra = names[-1:] if side == "input" else ["one_more"]
        getattr(mutant.graph.node[0], side).extend(extra)
        yield f"one more {side}", mutant
        mutant = copy.deepcopy(model)
        many = [names[-1] if side == "input" else f"more{i}" for i in range(12)] if names else []
        getattr(mutant.graph.node[0], side).extend(many)
        yield f"many more {side}s", mutant


def input_mutants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    for index, info in enumerate(model.graph.input):
        if not info.type.HasField("tensor_type"):
            continue
        for what, change in shape_changes(info.type.tensor_type):
            mutant = copy.deepcopy(model)
            change(mutant.graph.input[index].type.tensor_type)
            yield f"input {index} {what}", mutant
    for index, tensor in enumerate(model.graph.initializer):
        array = numpy_helper.to_array(tensor)
        for what, changed in array_changes(array):
            mutant = copy.deepcopy(model)
            mutant.graph.initializer[index].CopyFrom(numpy_helper.from_array(changed, tensor.name))
            yield f"constant {index} {what}", mutant


def shape_changes(tensor: onnx.TypeProto.Tensor):
    for kind in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL, TensorProto.UINT8):
        if kind != tensor.elem_type:
            yield f"is {TensorProto.DataType.Name(kind)}", lambda t, k=kind: setattr(t, "elem_type", k)
    dims = len(tensor.shape.dim)

    def fewer(t):
        del t.shape.dim[-1]

    def more(t):
        t.shape.dim.add(dim_value=2)

    def scalar(t):
        del t.shape.dim[:]

    if dims:
        yield "rank - 1", fewer
    if dims > 1:
        yield "rank 0", scalar
    yield "rank + 1", more
    for axis in range(dims):
        for size in (7, 1, 0, 2**62):
            def change(t, a=axis, s=size):
                t.shape.dim[a].dim_value = s
            yield f"dim {axis} = {size}", change


def array_changes(array: np.ndarray):
    if array.ndim == 1 and array.size:
        yield "longer", np.concatenate([array, array[-1:]])
        yield "shorter", array[:-1]
        yield "empty", array[:0]
        yield "alike", np.full_like(array, array[0])
    yield "rank + 1", array.reshape(1, *array.shape)
    if array.size:
        highest = np.iinfo(array.dtype).max
        for value in (-1000, -1, 0, 1, 3, 1000, highest, -highest):
            changed = array.copy()
            changed.reshape(-1)[0] = value
            if not np.array_equal(changed, array):
                yield f"[0]={value}", changed
            changed = array.copy()
            changed.reshape(-1)[-1] = value
            if array.size > 1:
                yield f"[-1]={value}", changed


def operator_mutants(model: onnx.ModelProto) -> Iterator[tuple[str, bytes]]:
    for what, mutant in itertools.chain(attribute_mutants(model), count_mutants(model), input_mutants(model)):
        yield what, mutant.SerializeToString()


# --- types that came with a later version -----------------------------------------------------


def attribute_of(attribute: onnx.defs.OpSchema.Attribute) -> onnx.AttributeProto | None:
    kinds = onnx.defs.OpSchema.AttrType
    values = {kinds.INT: 1, kinds.FLOAT: 1.0, kinds.STRING: "a", kinds.INTS: [1], kinds.FLOATS: [1.0], kinds.STRINGS: ["a"],
              kinds.TENSOR: helper.make_tensor("", TensorProto.FLOAT, [1], [1.0])}
    return helper.make_attribute(attribute.name, values[attribute.type]) if attribute.type in values else None


def type_of(text: str) -> onnx.TypeProto | None:
    found = re.fullmatch(r"tensor\((\w+)\)", text)
    names = {"float": "FLOAT", "double": "DOUBLE"}
    kind = getattr(TensorProto, names.get(found[1], found[1].upper()), None) if found else None
    return None if kind is None else helper.make_tensor_type_proto(kind, None)


def version_models() -> Iterator[tuple[str, bytes]]:
    """Single nodes of all but the newest versions, with an input of each type that only a later one allows."""
    newest = {(s.domain, s.name): s for s in onnx.defs.get_all_schemas()}
    for schema in onnx.defs.get_all_schemas_with_history():
        last = newest.get((schema.domain, schema.name))
        if schema.domain not in ("", "ai.onnx.ml") or schema.deprecated or last is None or last.since_version == schema.since_version:
            continue
        required = [attribute_of(a) for a in schema.attributes.values() if a.required]
        if None in required:
            continue
        allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        later = {c.type_param_str: c.allowed_type_strs for c in last.type_constraints}
        for parameter, types in later.items():
            for new in sorted(set(types) - set(allowed.get(parameter, types))):
                inputs = [i for i in schema.inputs if i.option != onnx.defs.OpSchema.FormalParameterOption.Optional]
                if not any(i.type_str == parameter for i in inputs):
                    continue
                texts = [new if i.type_str == parameter else sorted(allowed.get(i.type_str, {i.type_str}))[0] for i in inputs]
                given = [type_of(text) for text in texts]
                if None in given:
                    continue
                names = [f"i{k}" for k in range(len(inputs))]
                node = onnx.NodeProto(op_type=schema.name, domain=schema.domain, input=names,
                                      output=[f"o{k}" for k in range(max(1, schema.min_output))], attribute=required)
                values = [onnx.ValueInfoProto(name=name, type=kind) for name, kind in zip(names, given)]
                # What the node makes is of a type that only inference knows; outputs of graphs declare theirs.
                other = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("own", "negative")]
                graph = helper.make_graph([node, helper.make_node("Neg", ["own"], ["negative"])], "g", [*values, other[0]], other[1:])
                imports = [helper.make_opsetid(schema.domain, schema.since_version)]
                if schema.domain:
                    imports.append(helper.make_opsetid("", 12))
                model = helper.make_model(graph, opset_imports=imports, ir_version=10, producer_name="tests")
                yield f"{schema.domain}.{schema.name} {schema.since_version}: {new}", model.SerializeToString()


# --- what both say ------------------------------------------------------------------------------


def reference_refuses(model: bytes, infer_only: bool = False) -> str | None:
    """The message with which the reference refuses a model; None where it does not. `infer_only`: as inference with data
    propagation says, not the checker."""
    try:
        if infer_only:
            onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        else:
            onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        return str(error) or type(error).__name__
    return None


def sardonyx_errors(runner: pathlib.Path, models: list[bytes], folder: pathlib.Path, *options: str) -> list[list[str]]:
    """The errors of each model, "RULE place: message"."""
    stream = io.BytesIO()
    for model in models:
        stream.write(len(model).to_bytes(8, "little"))
        stream.write(model)
    result = subprocess.run([runner, "--folder", folder, *options], input=stream.getvalue(), capture_output=True)
    assert result.returncode == 0, f"check_runner: {result.returncode}: {result.stderr.decode()[-500:]}"
    lines = result.stdout.decode(errors="replace").split("\n")
    assert len(lines) == len(models) + 1, f"{len(lines) - 1} answers of {len(models)}"
    errors = []
    for line in lines[:-1]:
        parts = line.split("\t")[2:]
        errors.append([f"{parts[i]} {parts[i + 1]}: {parts[i + 2]}" for i in range(0, len(parts), 3)])
    return errors


def message_class(message: str) -> str:
    """A message of the reference without what differs from model to model."""
    text = message.split("\n==> Context")[0].strip()
    text = re.sub(r"\[[A-Za-z]+Error\] ", "", text)
    text = re.sub(r"\(op_type:[^)]*\)|'[^']*'|\"[^\"]*\"|\([^()]*\)", "_", text)
    text = re.sub(r"-?\d[\d.e+]*", "N", text)
    return " ".join(text.split())[:160]


@contextlib.contextmanager
def working_in(folder):
    """The reference looks for external data of a model from memory in the folder it works in."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def deviation_class(name: str, what: str, message: str, by_fields: bool) -> tuple[str, str]:
    """What is damaged, in short, and what the reference says."""
    if by_fields:
        return re.sub(r"\[\d+\]|=.*", "", what).split(" ")[0], message_class(message)
    return name.split("/")[0], message_class(message)


def reference_answers(models: list[bytes], infer_only: bool = False) -> list[str | None]:
    """What the reference says of each. It works in processes of its own: some models end it, which is no answer."""
    answers: list[str | None] = []
    while len(answers) < len(models):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as stream:
                for model in models[len(answers):]:
                    stream.write(json.dumps(reference_refuses(model, infer_only)) + "\n")
                    stream.flush()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as stream:
            answers += [json.loads(line) for line in stream]
        os.waitpid(child, 0)
        if len(answers) < len(models):
            answers.append(None)
    return answers
