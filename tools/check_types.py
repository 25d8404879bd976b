#!/usr/bin/env python3
"""Runs every operator with every element type its newest signature allows, and tells which do not work.

The cases are the standard's own node cases with their types exchanged: of each operator a few small
models, and for each type constraint of the signature one variant for each type of its set; and the models
of tools/type_models.py for what the suite has no such case of. Expected outputs come from the reference
evaluator, where it can; where it cannot, that the model runs is all that is asked. The conformance runner
runs them in bulk.

  tools/check_types.py [--filter RE] [--old [--part N]] [--docs] [--own]

--old runs each older version of each operator with the types that its own signature allowed as well
(tools/old_types.py). --docs writes docs/operators.md from the outcome of both. Exit code 0 when nothing failed and, of all
operators, no type is without a case.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import old_types
import type_models

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = 2  # models of each operator
# Attributes that say the type of an output.
TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype", "output_dtype")
# Of maps, whose cases are the suite's; and what a rewrite replaces before anything runs.
NO_TENSORS = {"CastMap", "DictVectorizer", "ZipMap", "Gradient", "GraphCall"}
# Whose attributes hold tensors of the inputs' types, or whose two types must have one width.
LEFT_OUT = {"LabelEncoder", "TfIdfVectorizer", "BitCast"}
# What signatures allow and nothing runs: strings have no sums.
WITHOUT = {("", "Col2Im", "T"): {"string"}}
# A scale of this type needs an output type of its own.
LEFT_OUT_TYPES = {("DequantizeLinear", "T2", "float8e8m0")}
# Where the reference and we may differ: its evaluator's own choices, and integers cut from fractions.
NOT_COMPARED = [
    (r"Bernoulli|Random\w*|Multinomial", r".*"),  # random numbers
    (r"(Blackman|Hann|Hamming)Window|Gemm", r"u?int\d+"),  # a fraction next to an integer
    (r"CenterCropPad", r"string"),  # it pads with the text of a number
    (r"QLinearMatMul", r"float8\w+|uint8"),  # it multiplies the bit patterns; a half rounded the other way
    (r"STFT", r"b?float16"),  # it rounds after every step
    (r"DequantizeLinear", r"float[468]\w+"),  # a zero point that is not zero
    (r"Cast|CastLike", r"float8e8m0"),  # negative numbers, which the type does not have
    (r"GridSample", r"u?int\d+"),  # it cuts the weights to integers, too
]
# How far the reference's own rounding may be away, by the coarsest type of a variant.
TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float8": 0.3, "float6": 0.5, "float4": 0.6, "other": 1e-3}


def element_of(type_text: str) -> str | None:
    """'tensor(float)' -> 'float'."""
    match = re.fullmatch(r"tensor\((\w+)\)", type_text)
    return match.group(1) if match else None


def number_of(name: str) -> int:
    names = {"float": "FLOAT", "double": "DOUBLE", "string": "STRING", "bool": "BOOL"}
    return getattr(TensorProto, names.get(name, name.upper()))


def converted(array: np.ndarray, name: str) -> np.ndarray:
    """The same numbers as another type, as far as it holds them."""
    kind = number_of(name)
    if name == "string":
        return np.vectorize(str, otypes=[object])(array)
    if array.dtype == object:
        array = np.arange(array.size).reshape(array.shape)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if name == "bool":
        return array.astype(np.float64) > 0 if array.dtype != bool else array
    if name.startswith("complex"):
        return array.astype(dtype)
    wide = np.real(array).astype(np.float64)
    if name.startswith(("int", "uint")):
        bits = int(re.sub(r"\D", "", name))
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if name[0] == "i" else (0, 2**bits - 1)
        return np.clip(np.nan_to_num(np.round(wide)), low, high).astype(np.int64 if bits < 64 else dtype).astype(dtype)
    if name in ("float8e4m3fnuz", "float8e5m2fnuz", "float8e8m0"):
        wide = np.abs(np.nan_to_num(wide)) + (name == "float8e8m0")
    return wide.astype(np.float32).astype(dtype) if name != "double" else wide


def as_proto(array: np.ndarray, name: str) -> TensorProto:
    if name == "string":
        return helper.make_tensor("", TensorProto.STRING, array.shape, [str(s).encode() for s in array.ravel()])
    return numpy_helper.from_array(np.asarray(array, order="C"))


class Case:
    """A model of one node, its inputs, and which constraint each of them is under."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.model = onnx.load(folder / "model.onnx")
        self.node = self.model.graph.node[0]
        self.schema = defs.get_schema(self.node.op_type, domain=self.node.domain)
        files = sorted((folder / "test_data_set_0").glob("input_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
        self.protos = [onnx.load_tensor(file) for file in files]
        self.size = sum(int(np.prod(proto.dims)) for proto in self.protos)

    @staticmethod
    def constraint(formals, position: int):
        if position >= len(formals):
            return formals[-1].type_str if formals and formals[-1].option == defs.OpSchema.FormalParameterOption.Variadic else None
        return formals[position].type_str

    def set_type_attribute(self, node, constraint: str, kind: int) -> bool:
        """Asks for an output of that type, where an attribute of the operator can."""
        found = [name for name in TYPE_ATTRIBUTES if name in self.schema.attributes]
        if not found or self.constraint(self.schema.outputs, 0) != constraint:
            return False
        kept = [attribute for attribute in node.attribute if attribute.name != found[0]]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(found[0], kind)])
        return True

    def variant(self, constraint: str, name: str):
        """(model, inputs) with all values of the constraint of that type; None where none has it."""
        inputs, touched = [], False
        values = {}
        for position, value in enumerate(self.node.input):
            under = self.constraint(self.schema.inputs, position)
            values[value] = under
        for proto, info in zip(self.protos, self.model.graph.input):
            if values.get(info.name) == constraint:
                array = numpy_helper.to_array(proto)
                inputs.append(as_proto(converted(array, name), name))
                touched = True
            else:
                inputs.append(proto)
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        kind = number_of(name)
        if not touched and not self.set_type_attribute(model.graph.node[0], constraint, kind):
            return None
        for info, proto in zip(model.graph.input, inputs):
            if info.type.HasField("tensor_type"):
                info.type.tensor_type.elem_type = proto.data_type
        for position, value in enumerate(self.node.output):
            if self.constraint(self.schema.outputs, position) == constraint:
                for info in model.graph.output:
                    if info.name == value and info.type.HasField("tensor_type"):
                        info.type.tensor_type.elem_type = kind
        model.ir_version = 14
        for opset in model.opset_import:
            if opset.domain in ("", "ai.onnx"):
                opset.version = defs.onnx_opset_version()
        return model, inputs


def expected_outputs(model, inputs):
    """What the reference evaluator gives; None where it cannot, or gives another type than declared."""
    try:
        feeds = {info.name: numpy_helper.to_array(proto) for info, proto in zip(model.graph.input, inputs)}
        outputs = ReferenceEvaluator(model).run(None, feeds)
    except Exception:  # noqa: BLE001: whatever it is, there is nothing to compare with
        return None
    protos = []
    for info, value in zip(model.graph.output, outputs):
        if not isinstance(value, np.ndarray) or not info.type.HasField("tensor_type"):
            return None
        declared = info.type.tensor_type.elem_type
        if declared == TensorProto.STRING:
            protos.append(as_proto(value, "string"))
            continue
        proto = as_proto(value, "")
        if proto.data_type != declared:
            return None
        protos.append(proto)
    return protos


def tolerance_of(inputs, outputs) -> float:
    names = {TensorProto.DataType.Name(proto.data_type).lower() for proto in [*inputs, *(outputs or [])]}
    found = [value for key, value in TOLERANCE.items() if any(name.startswith(key) for name in names)]
    return max(found, default=TOLERANCE["other"])


def is_compared(op: str, name: str, inputs) -> bool:
    """Not where the reference answers otherwise with reason, nor for what is not finite."""
    if any(re.fullmatch(ops, op) and re.fullmatch(types, name) for ops, types in NOT_COMPARED):
        return False
    kinds = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
    floats = [proto for proto in inputs if proto.data_type in kinds and not proto.HasField("segment")]
    return all(np.isfinite(numpy_helper.to_array(proto).astype(np.float64)).all() for proto in floats)


def write_variant(target: pathlib.Path, model, inputs, name: str, op: str | None = None) -> None:
    tensors = all(isinstance(proto, TensorProto) for proto in inputs)
    compared = tensors and is_compared(op or model.graph.node[0].op_type, name, inputs)
    outputs = expected_outputs(model, inputs) if compared else None
    data = target / "test_data_set_0"
    data.mkdir(parents=True)
    (target / "model.onnx").write_bytes(model.SerializeToString())
    relative = tolerance_of(inputs if tensors else [], outputs)
    (target / "tolerance.json").write_text(json.dumps({"rtol": relative, "atol": relative if relative > 1e-3 else 1e-5}))
    for prefix, protos in (("input", inputs), ("output", outputs or [])):
        for number, proto in enumerate(protos):
            (data / f"{prefix}_{number}.pb").write_bytes(proto.SerializeToString())


def node_cases(folder: pathlib.Path, pattern: str):
    """{operator: its smallest cases}; one case of each number of inputs first."""
    found = collections.defaultdict(list)
    for path in sorted((folder / "node").iterdir()):
        try:
            case = Case(path)
        except Exception:  # noqa: BLE001: sequences and maps as inputs, operators of one case only
            continue
        model = case.model
        opset = next((o.version for o in model.opset_import if o.domain == case.node.domain), 1)
        bound = defs.get_schema(case.node.op_type, opset, case.node.domain)
        has_graphs = any(attribute.HasField("g") for attribute in case.node.attribute)
        simple = len(model.graph.node) == 1 and case.protos and not model.functions and not has_graphs
        simple = simple and bound.since_version == case.schema.since_version
        if simple and case.node.op_type not in LEFT_OUT and re.search(pattern, case.node.op_type):
            found[case.node.domain, case.node.op_type].append(case)
    chosen = {}
    for key, cases in sorted(found.items()):
        cases.sort(key=lambda case: case.size)
        kinds = {}
        for case in cases:
            kinds.setdefault((len(case.node.input), len(case.node.attribute)), case)
        chosen[key] = list(kinds.values())[:CASES]
    return chosen


def write_all(cases, target: pathlib.Path):
    """{case name: (domain, operator, constraint, type)}."""
    written = {}
    for (domain, op), models in cases.items():
        schema = models[0].schema
        for constraint in schema.type_constraints:
            for allowed in sorted(constraint.allowed_type_strs):
                name = element_of(allowed)
                if name is None or (op, constraint.type_param_str, name) in LEFT_OUT_TYPES:
                    continue
                if name in WITHOUT.get((domain, op, constraint.type_param_str), ()):
                    continue
                for number, case in enumerate(models):
                    try:
                        variant = case.variant(constraint.type_param_str, name)
                    except Exception as error:  # noqa: BLE001
                        print(f"{op} {name}: no case: {error}", file=sys.stderr)
                        continue
                    if variant is None:
                        continue
                    label = f"types_{op}_{constraint.type_param_str}_{name}_{number}"
                    write_variant(target / label, *variant, name)
                    written[label] = (domain, op, constraint.type_param_str, name)
    return written


# ---- models of our own


KINDS = {"": "tensor({})", "seq": "seq(tensor({}))", "optional": "optional(tensor({}))", "optional_seq": "optional(seq(tensor({})))"}


def newest_schemas() -> dict:
    newest = {}
    for schema in defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        if key not in newest or newest[key].since_version < schema.since_version:
            newest[key] = schema
    return newest


def input_of(info, element: str):
    """0, 1, 2 … in the declared type; a sequence holds two such tensors."""
    type_ = info.type
    wrappers = []
    while not type_.HasField("tensor_type"):
        wrappers.append(type_.WhichOneof("value"))
        type_ = getattr(type_, wrappers[-1]).elem_type
    kind = type_.tensor_type.elem_type
    shape = [dim.dim_value for dim in type_.tensor_type.shape.dim]
    name = element if kind == number_of(element) else TensorProto.DataType.Name(kind).lower()
    array = converted(np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape), name)
    if not wrappers:
        return as_proto(array, name)
    value = as_proto(array, name)
    if "sequence_type" in wrappers:
        sequence = onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR)
        sequence.tensor_values.extend([value, value])
        value = sequence
    if wrappers[0] == "optional_type":
        is_sequence = len(wrappers) > 1
        optional = onnx.OptionalProto(elem_type=onnx.OptionalProto.SEQUENCE if is_sequence else onnx.OptionalProto.TENSOR)
        (optional.sequence_value if is_sequence else optional.tensor_value).CopyFrom(value)
        value = optional
    return value


def give_constant(graph: onnx.GraphProto, name: str) -> None:
    """The value of the graph's first node, a Constant, becomes one of that type."""
    tensor = graph.node[0].attribute[0].t
    numbers = np.arange(int(np.prod(tensor.dims))).reshape(tensor.dims)
    tensor.CopyFrom(as_proto(converted(numbers, name), name))
    graph.output[0].type.tensor_type.elem_type = number_of(name)


def write_own(pattern: str, target: pathlib.Path):
    written = {}
    for (domain, op, constraint), models in type_models.MODELS.items():
        if not re.search(pattern, op):
            continue
        opset, ml = int(models.get("opset", defs.onnx_opset_version())), int(models.get("ml", 5))
        schema = defs.get_schema(op, ml if domain else opset, domain)
        allowed = next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == constraint)
        for kind, shell in KINDS.items():
            if kind not in models:
                continue
            for name in sorted(found[1] for text in allowed if (found := re.fullmatch(re.escape(shell.format("@")).replace("@", r"(\w+)"), text))):
                written_as = "float" if op == "Constant" else name  # the parser does not know all types
                text = type_models.text_of(models[kind], written_as, number_of(name))
                header = f'<ir_version: 14, opset_import: ["" : {opset}, "ai.onnx.ml" : {ml}]>'
                label = f"types_own_{op}_{constraint}_{kind}_{name}"
                try:
                    model = onnx.parser.parse_model(f"{header}\n{text}")
                    if op == "Constant":
                        give_constant(model.graph, name)
                    inputs = [input_of(info, name) for info in model.graph.input]
                    write_variant(target / label, model, inputs, name, op)
                except Exception as error:  # noqa: BLE001
                    print(f"{label}: no case: {error}", file=sys.stderr)
                    continue
                written[label] = (domain, op, constraint, f"{kind.replace('_', ' ')} {name}".strip())
    return written


def missing_types(table) -> list[str]:
    """Types of signatures that no case ran with. A constraint of one type is under every case of its operator."""
    operators = {(domain, op) for (domain, op, _), (good, _) in table.items() if good}
    missing = []
    for (domain, op), schema in sorted(newest_schemas().items()):
        for constraint in schema.type_constraints:
            tensors = {element_of(text) for text in constraint.allowed_type_strs} - {None}
            good = table.get((domain, op, constraint.type_param_str), (set(), set()))[0]
            if op in NO_TENSORS or (len(tensors) <= 1 and (domain, op) in operators):
                continue
            for name in sorted(tensors - good - WITHOUT.get((domain, op, constraint.type_param_str), set())):
                missing.append(f"{domain + '.' if domain else ''}{op}: {constraint.type_param_str} {name}")
    return missing


def table_of(written, outcomes):
    """{(domain, operator, constraint): (types that run, types that do not)}."""
    # Refusing some forms of an operator (a largest string) is no gap; refusing all is.
    states = collections.defaultdict(set)
    for label, key in written.items():
        states[tuple(key)].add(outcomes[label]["state"])
    table = collections.defaultdict(lambda: (set(), set()))
    for (domain, op, constraint, name), found in states.items():
        table[domain, op, constraint]["passed" not in found or "failed" in found].add(name)
    return table


def missing_old_types(table) -> list[str]:
    """The same of older versions. Their constraints of one type are under every case of the version."""
    ran = {(domain, op, version) for (domain, op, version, _), (good, _) in table.items() if good}
    missing = []
    for schema in old_types.old_schemas():
        for constraint in schema.type_constraints:
            shown = {f"{kind.replace('_', ' ')} {name}".strip() for kind, name in old_types.types_of(constraint)}
            if schema.name in NO_TENSORS or not shown:
                continue
            if len(shown) == 1 and (schema.domain, schema.name, schema.since_version) in ran:
                continue
            key = schema.domain, schema.name, schema.since_version, constraint.type_param_str
            without = WITHOUT.get((schema.domain, schema.name, constraint.type_param_str), set())
            for name in sorted(shown - table.get(key, (set(), set()))[0] - without):
                missing.append(f"{schema.domain + '.' if schema.domain else ''}{schema.name}-{schema.since_version}: "
                               f"{constraint.type_param_str} {name}")
    return missing


def run_cases(runner: pathlib.Path, folder: pathlib.Path) -> dict:
    report = folder / "report.json"
    subprocess.run([runner, "--cases", folder, "--json", report, "--quiet"], stdout=subprocess.DEVNULL, check=False)
    rows = json.loads(report.read_text())
    outcomes = {row["name"]: row for row in (rows["cases"] if isinstance(rows, dict) else rows)}
    for label, row in sorted(outcomes.items()):
        if row["state"] != "passed":
            print(f"{row['state']:8} {label}: {row['reason']}")
    return outcomes


def old_table(written, outcomes):
    """{(domain, operator, version, constraint): (types that run, types that do not)}."""
    table = collections.defaultdict(lambda: (set(), set()))
    for label, (domain, op, version, constraint, name) in written.items():
        table[domain, op, version, constraint][outcomes[label]["state"] != "passed"].add(name)
    return table


def by_versions(table, old):
    """{(domain, operator, constraint): [(versions, types that run, types that do not)]}, newest first."""
    rows = collections.defaultdict(list)
    newest = newest_schemas()
    for (domain, op, constraint), (good, bad) in table.items():
        rows[domain, op, constraint].append(([newest[domain, op].since_version], good, bad))
    for (domain, op, version, constraint), (good, bad) in sorted(old.items(), key=lambda item: -item[0][2]):
        found = rows[domain, op, constraint]
        if found and found[-1][1:] == (good, bad):
            found[-1][0].append(version)
        else:
            found.append(([version], good, bad))
    return rows


def write_docs(table, old, path: pathlib.Path) -> None:
    lines = [
        "# Operators and element types", "",
        "Written by `tools/check_types.py --docs`: each version of each operator, run with each type its signature allows",
        "and compared with the reference evaluator or ONNX Runtime where they run it. A constraint that allows one type only",
        "is under every case of its version and may have no row of its own. `seq float` is a sequence of float tensors,",
        "`optional seq float` an optional one. `tests/python/test_operator_types.py` keeps the table whole. Col2Im leaves out",
        "strings, of which there are no sums; GridSample takes them in the mode nearest.", "", "| operator | constraint | versions | runs with | does not |", "|---|---|---|---|---|",
    ]
    for (domain, op, constraint), rows in sorted(by_versions(table, old).items()):
        shown = f"{domain}.{op}" if domain else op
        for versions, good, bad in rows:
            lines.append(f"| {shown} | {constraint} | {', '.join(map(str, versions))} | {', '.join(sorted(good))} | {', '.join(sorted(bad))} |")
    path.write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default=".*", help="operators whose name this matches")
    parser.add_argument("--cases", type=pathlib.Path, default=None, help="a folder of the standard's cases")
    parser.add_argument("--runner", type=pathlib.Path, default=ROOT / "build/release/bin/conformance_runner")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the cases in this folder")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--own", action="store_true", help="only the models of tools/type_models.py")
    parser.add_argument("--old", action="store_true", help="the older versions, too")
    parser.add_argument("--only-old", action="store_true", help="nothing but the older versions")
    parser.add_argument("--part", type=int, default=1, help="only every so manieth case of the older versions")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    source = options.cases or ROOT / "build/conformance" / onnx.__version__
    folder = options.keep or pathlib.Path(tempfile.mkdtemp())
    shutil.rmtree(folder, ignore_errors=True)
    whole = options.filter == ".*" and options.part == 1
    written, old_written = {}, {}
    if not options.only_old:
        written = {} if options.own else write_all(node_cases(source, options.filter), folder)
        written |= write_own(options.filter, folder)
    if options.old or options.only_old or options.docs:
        old_written = old_types.write_cases(options.filter, options.part, folder)
    outcomes = run_cases(options.runner, folder)
    counts = collections.Counter(row["state"] for row in outcomes.values())
    print(f"{len(written)} cases of newest versions, {len(old_written)} of older ones: " +
          ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    table, old = table_of(written, outcomes), old_table(old_written, outcomes)
    missing = missing_types(table) if written and whole and not options.own else []
    missing += missing_old_types(old) if old_written and whole else []
    for line in missing:
        print(f"missing  {line}")
    if options.docs:
        write_docs(table, old, ROOT / "docs/operators.md")
    if options.keep is None:
        shutil.rmtree(folder)
    return 1 if counts["failed"] or missing else 0


if __name__ == "__main__":
    sys.exit(main())
