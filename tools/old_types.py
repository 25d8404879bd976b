"""Cases of one node for each element type of each older version of each operator: tools/check_types.py --old.

A model of tools/type_models.py where that version can say it, else a node drawn from the version's signature
(tools/differential/) with the type in question. Expected outputs come from the reference evaluator or ONNX Runtime
where one of them runs the node and the other does not disagree; elsewhere it has to run, planned and plain.
"""

from __future__ import annotations

import multiprocessing
import pathlib
import re
import shutil
import sys
import warnings
import zlib

import ml_dtypes
import numpy as np
import onnx
from onnx import defs

import type_models

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "differential"))
import differential  # noqa: E402
import drawing  # noqa: E402
import oracles  # noqa: E402
from hints import HINTS, LEFT_OUT, generic  # noqa: E402
from hints_ml import HINTS as ML_HINTS  # noqa: E402
from wrong import Case, is_wrong  # noqa: E402

ATTEMPTS = 60  # at drawing one valid node
SHELLS = {"": "tensor({})", "seq": "seq(tensor({}))", "optional": "optional(tensor({}))",
          "optional_seq": "optional(seq(tensor({})))"}
# Of the first six versions of ai.onnx: what they say of a node that has shapes of its own.
LEGACY = {"consumed_inputs", "broadcast", "is_test", "spatial"}
DTYPES = drawing.DTYPES | {"float8e8m0": ml_dtypes.float8_e8m0fnu, "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2}
# Types that ONNX Runtime hands over as others.
HIDDEN = re.compile(r"float[468].+|bfloat16|u?int[24]")
# Where the evaluators answer otherwise with reason; beside tools/differential/wrong.py.
NOT_COMPARED = [
    (r"Erf|Resize|Upsample", r"u?int\d+"),  # a fraction next to an integer
    (r"Resize|Upsample", r"complex\d+"),  # the reference drops what is imaginary
    (r"QuantizeLinear", r"int32"),  # a scale of 0
    (r"Cast|CastLike", r"float8e8m0"),  # negative numbers, which the type does not have
    (r"Unsqueeze", r"complex\d+"),  # the reference inserts one axis after the other, as they are listed
]
# Of one version: what its signature alone says.
MODELS = {
    ("Scan", 8, "V"): "g ({T}[1,2] z, {T}[1,3,2] x) => ({T}[1,2] y, {T}[1,3,2] s) {{ y, s = Scan <num_scan_inputs = 1, "
                      "body = b ({T}[2] v, {T}[2] a) => ({T}[2] w, {T}[2] each) {{ w = Identity (v) each = Identity (a) }}> (, z, x) }}",
    ("Scan", 8, "I"): "g (float[1,2] z, float[1,3,2] x) => (float[1,2] y, float[1,3,2] s) {{ n = Constant <value = {T}[1] {{2}}> () "
                      "y, s = Scan <num_scan_inputs = 1, body = b (float[2] v, float[2] a) => (float[2] w, float[2] each) "
                      "{{ w = Identity (v) each = Identity (a) }}> (n, z, x) }}",
    ("ScatterND", 16, "T"): "g ({T}[3] x, {T}[2] u) => ({T}[3] y) {{ i = Constant <value = int64[2,1] {{2, 0}}> () y = ScatterND (x, i, u) }}",
    ("Upsample", 1, "T"): 'g ({T}[1,1,2,2] x) => ({T}[1,1,4,4] y) {{ y = Upsample <height_scale = 2.0, width_scale = 2.0> (x) }}',
    ("Upsample", 7, "T"): 'g ({T}[1,1,2,2] x) => ({T}[1,1,4,4] y) {{ y = Upsample <scales = [1.0, 1.0, 2.0, 2.0]> (x) }}',
    ("Resize", 10, "T"): 'g ({T}[1,1,2,2] x) => ({T}[1,1,4,4] y) {{ s = Constant <value = float[4] {{1.0, 1.0, 2.0, 2.0}}> () y = Resize (x, s) }}',
} | {("Resize", version, "T1"): 'g ({T}[1,1,2,2] x) => ({T}[1,1,4,4] y) {{ r = Constant <value = float[0] {{}}> () '
     's = Constant <value = float[4] {{1.0, 1.0, 2.0, 2.0}}> () y = Resize (x, r, s) }}' for version in (11, 13, 18)
} | {("Resize", 11, "T2"): 'g (float[1,1,2,2] x) => (y) {{ f = Constant <value = float[8] {{0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0}}> () '
     'r = Cast <to = {N}> (f) s = Constant <value = float[4] {{1.0, 1.0, 2.0, 2.0}}> () '
     'y = Resize <coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, s) }}'}

# The same where nothing can be drawn: types that numpy's files do not hold, and an output of one type.
OTHERWISE = {("Cast", 24, "T1"): "g ({T}[4] x) => (float[4] y) {{ y = Cast <to = 1> (x) }}",
             ("Cast", 25, "T1"): "g ({T}[4] x) => (float[4] y) {{ y = Cast <to = 1> (x) }}",
             ("CastLike", 24, "T1"): "g ({T}[4] x, float z) => (float[4] y) {{ y = CastLike (x, z) }}",
             ("CastLike", 24, "T2"): "g (float[4] x, {T}[1] z) => ({T}[4] y) {{ y = CastLike (x, z) }}",
             ("OptionalHasElement", 15, "B"): "g (optional(float[2]) x) => (bool y) {{ y = OptionalHasElement (x) }}",
             ("Pad", 24, "Tind"): "g (float[2] x) => (float[4] y) {{ p = Constant <value = int64[2] {{1, 1}}> () "
             "a = Constant <value = {T}[1] {{0}}> () y = Pad (x, p, , a) }}"}


class Forced(drawing.Draw):
    """Draws with one constraint's type given, which may be one that is not drawn."""

    def dtype(self, name: str, *only: str):
        formal = next(formal for formal in self.schema.inputs if formal.name == name)
        return DTYPES[self.type_of(formal.type_str, *only)]


def old_schemas() -> list:
    """Every definition that a later one of the same operator replaced."""
    history, newest = defs.get_all_schemas_with_history(), {}
    for schema in history:
        key = schema.domain, schema.name
        newest[key] = max(newest.get(key, 0), schema.since_version)
    old = [s for s in history if not s.deprecated and s.since_version < newest[s.domain, s.name]]
    return sorted(old, key=lambda s: (s.domain, s.name, s.since_version))


def types_of(constraint) -> list[tuple[str, str]]:
    """(kind, element type) of all that a constraint allows, but for maps."""
    found = []
    for text in sorted(constraint.allowed_type_strs):
        for kind, shell in SHELLS.items():
            if match := re.fullmatch(re.escape(shell.format("@")).replace("@", r"(\w+)"), text):
                found.append((kind, match[1]))
    return found


def everything(pattern: str = ".*", part: int = 1):
    """(schema, constraint, kind, element type) of all cases whose operator matches; every `part`th of them."""
    for schema in old_schemas():
        if not re.search(pattern, schema.name):
            continue
        for constraint in schema.type_constraints:
            for kind, name in types_of(constraint):
                key = f"{schema.domain} {schema.name} {schema.since_version} {constraint.type_param_str} {kind} {name}"
                if zlib.crc32(key.encode()) % part == 0:
                    yield schema, constraint.type_param_str, kind, name


def fitting_opset(schema) -> int:
    """The opset of ai.onnx in whose time the definition was the valid one."""
    if not schema.domain:
        return schema.since_version
    return {1: 8, 2: 11, 3: 15, 4: 19}.get(schema.since_version, defs.onnx_opset_version())


def without_new_attributes(text: str) -> str:
    """Constants as all versions write them."""
    text = re.sub(r"value_int = (\d+)", r"value = int64 {\1}", text)
    return re.sub(r"value_ints = \[([^\]]*)\]",
                  lambda m: f"value = int64[{m[1].count(',') + 1}] {{{m[1]}}}", text)


def from_model(schema, constraint: str, kind: str, name: str, table: dict):
    """(model, inputs) of tools/type_models.py; None where there is none or this version cannot say it."""
    import check_types

    own = table.get((schema.name, schema.since_version, constraint)) if kind == "" else None
    models = {"": own} if own else {} if table is OTHERWISE else type_models.MODELS.get((schema.domain, schema.name, constraint), {})
    if kind not in models:
        return None
    opset = fitting_opset(schema)
    ml = schema.since_version if schema.domain else 1
    text = without_new_attributes(type_models.text_of(models[kind], "float" if schema.name == "Constant" else name,
                                                      check_types.number_of(name)))
    try:
        model = onnx.parser.parse_model(f'<ir_version: 14, opset_import: ["" : {opset}, "ai.onnx.ml" : {ml}]>\n{text}')
    except Exception:  # noqa: BLE001: the parser does not know every type
        return None
    for node in model.graph.node:
        if node.op_type == schema.name:
            if len(node.input) > schema.max_input or len(node.output) > schema.max_output:
                return None
            if any(attribute.name not in schema.attributes for attribute in node.attribute):
                return None
            if any(a.required and a.name not in {b.name for b in node.attribute} for a in schema.attributes.values()):
                return None
        elif not defs.has(node.op_type, opset, "") or defs.get_schema(node.op_type, opset, "").deprecated:
            return None
    if schema.name == "Constant":
        check_types.give_constant(model.graph, name)
    return model, [check_types.input_of(info, name) for info in model.graph.input]


def bound_by_age(node, schema) -> None:
    """What the first versions ask for; raises where they cannot say such shapes."""
    attributes = schema.attributes
    arrays = [value for value in node.inputs if isinstance(value, np.ndarray)]
    if "broadcast" in attributes and len({array.shape for array in arrays}) > 1:
        a, b = arrays[0].shape, arrays[1].shape
        if len(b) > len(a) or (len(b) > 0 and a[len(a) - len(b):] != b):
            raise drawing.Invalid("the second operand is no end of the first")
        node.attributes["broadcast"] = 1
    if "broadcast" not in attributes and schema.since_version < 7 and not schema.domain and len(
            {array.shape for array in arrays}) > 1 and schema.name in ("Max", "Min", "Sum", "Mean"):
        raise drawing.Invalid("all operands have one shape")
    if "is_test" in attributes:
        node.attributes["is_test"] = 1
    if "consumed_inputs" in attributes and attributes["consumed_inputs"].required:
        node.attributes["consumed_inputs"] = [0] * len(node.inputs)


def ask_for(node, schema, constraint: str, name: str) -> None:
    """An output of that type, where only an attribute says so."""
    import check_types

    if any(formal.type_str == constraint for formal in schema.inputs):
        return
    if schema.outputs and schema.outputs[0].type_str == constraint:
        for attribute in check_types.TYPE_ATTRIBUTES:
            if attribute in schema.attributes:
                number = check_types.number_of(name)
                text = schema.attributes[attribute].type.name == "STRING"
                node.attributes[attribute] = onnx.TensorProto.DataType.Name(number) if text else number
                return


def drawn(schema, constraint: str, name: str, seed: str):
    """(model, feeds, node) with values of the constraint of that type; None where none can be drawn."""
    function = (ML_HINTS if schema.domain else HINTS).get(schema.name, generic)
    if any(attribute.type.name.startswith("GRAPH") for attribute in schema.attributes.values()):
        return None
    for attempt in range(ATTEMPTS):
        try:
            draw = Forced(schema, f"{seed} {attempt}")
            draw.types[constraint] = name
            node = function(draw)
            bound_by_age(node, schema)
            ask_for(node, schema, constraint, name)
            model, feeds = differential.build_model(draw, node)
            for input_name, value in feeds.items():
                differential.value_bytes(value, input_name)  # raises where no file holds it
        except Exception:  # noqa: BLE001: hints raise what numpy raises on types that they never draw
            continue
        dtypes = {value.dtype for value in node.inputs if isinstance(value, np.ndarray)}
        under = [formal for formal in schema.inputs if formal.type_str == constraint]
        if under and np.dtype(DTYPES[name]) not in dtypes:
            continue
        return model, feeds, node
    return None


def with_newer_meaning(model, schema):
    """For the evaluators, which know no attribute of the first versions: the node without them."""
    if schema.domain or not LEGACY & set(schema.attributes):
        return model
    newer = onnx.ModelProto()
    newer.CopyFrom(model)
    node = newer.graph.node[0]
    kept = [attribute for attribute in node.attribute if attribute.name not in LEGACY]
    del node.attribute[:]
    node.attribute.extend(kept)
    newer.opset_import[0].version = max(7, schema.since_version)
    return newer


def expected(model, feeds, node, schema, name: str):
    """What the evaluators that run the node agree on; None where none does."""
    if any(re.fullmatch(ops, schema.name) and re.fullmatch(types, name) for ops, types in NOT_COMPARED):
        return None
    import check_types

    if schema.name == "Cast" and not all(np.isfinite(v.astype(np.float64)).all() for v in feeds.values() if drawing.is_float(v.dtype)):
        return None  # what an integer makes of infinity is nowhere said
    hidden = {check_types.number_of(text) for text in DTYPES if HIDDEN.fullmatch(text)}
    asked_for = {node.attributes.get(attribute) for attribute in check_types.TYPE_ATTRIBUTES}
    asked = with_newer_meaning(model, schema)
    found = []
    for oracle, run in (("reference", oracles.by_reference), ("runtime", oracles.by_runtime)):
        if oracle == "runtime" and (HIDDEN.fullmatch(name) or hidden & asked_for):
            continue
        if is_wrong(oracle, Case(schema.name, schema.since_version, node.inputs, node.attributes)):
            continue
        try:
            found.append(run(asked, feeds))
        except oracles.Refused:
            continue
    try:
        if len(found) == 2 and oracles.differ(*found):
            return None
    except Exception:  # noqa: BLE001: types that numpy does not compare
        return None
    return found[0] if found else None


def write_drawn(target: pathlib.Path, schema, constraint: str, name: str) -> bool:
    seed = f"{schema.name} {schema.since_version} {constraint} {name}"
    made = drawn(schema, constraint, name, seed)
    if made is None:
        return False
    model, feeds, node = made
    outputs = None if schema.name in LEFT_OUT else expected(model, feeds, node, schema, name)
    if outputs is not None:
        try:
            differential.write_case(target, model, feeds, outputs)
            return True
        except Exception:  # noqa: BLE001: a value of the evaluator that no file holds
            shutil.rmtree(target, ignore_errors=True)
    data = target / "test_data_set_0"
    data.mkdir(parents=True)
    (target / "model.onnx").write_bytes(model.SerializeToString())
    for number, (input_name, value) in enumerate(feeds.items()):
        (data / f"input_{number}.pb").write_bytes(differential.value_bytes(value, input_name))
    return True


def write_one(task) -> tuple[str, tuple, str]:
    """(label, key, what was written: model, drawn or nothing)."""
    domain, op, version, constraint, kind, name, folder = task
    import check_types

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    schema = defs.get_schema(op, version, domain)
    shown = "_".join(filter(None, (kind, name)))
    label = f"old_{op}_{version}_{constraint}_{shown}"
    key = (domain, op, version, constraint, f"{kind.replace('_', ' ')} {name}".strip())
    target = pathlib.Path(folder) / label
    for table in (MODELS, OTHERWISE):
        built = from_model(schema, constraint, kind, name, table)
        if built is not None:
            model, inputs = built
            check_types.write_variant(target, model, inputs, name, op)
            return label, key, "model"
        if table is MODELS and kind == "" and name in DTYPES and write_drawn(target, schema, constraint, name):
            return label, key, "drawn"
    return label, key, "nothing"


def write_cases(pattern: str, part: int, folder: pathlib.Path) -> dict:
    """{case name: (domain, operator, version, constraint, type)} of all that a case could be made of."""
    tasks = [(s.domain, s.name, s.since_version, constraint, kind, name, str(folder))
             for s, constraint, kind, name in everything(pattern, part)]
    folder.mkdir(parents=True, exist_ok=True)
    with multiprocessing.Pool() as pool:
        made = pool.map(write_one, tasks, chunksize=16)
    return {label: key for label, key, how in made if how != "nothing"}


__all__ = ["old_schemas", "types_of", "write_cases"]
