#!/usr/bin/env python3
"""Turns spec/ into the constant tables of src/schema (docs/spec_format.md). Runs in the build.

    spec_to_cc.py SPEC_FOLDER OUTPUT.cc
"""

import re
import sys
from pathlib import Path

import spec_format as spec

KINDS = {"tensor": 1, "sparse_tensor": 2, "seq": 3, "optional": 4, "map": 5}  # schema::TypeKind
ELEMENT_SHIFT, KEY_SHIFT = 18, 25  # schema::TypeId
OPTIONS = {"single": "single", "optional": "optional", "variadic": "variadic"}
ATTRIBUTE_NAMES = {"float": "float_", "int": "int_"}
LITERAL = 8000  # characters of one string literal


def type_bits(text):
    """schema::TypeId's number of a canonical type."""
    constructor, inner = re.fullmatch(r"(\w+)\((.+)\)", text).groups()
    if constructor in ("tensor", "sparse_tensor"):
        return KINDS[constructor] | spec.ELEMENTS[inner] << ELEMENT_SHIFT
    key = 0
    if constructor == "map":
        key, inner = inner.split(", ", 1)
        inner = inner if "(" in inner else f"tensor({inner})"
        key = spec.ELEMENTS[key] << KEY_SHIFT
    bits = type_bits(inner)
    layers = bits & ((1 << ELEMENT_SHIFT) - 1)
    return bits - layers | layers << 3 | KINDS[constructor] | key


def quoted(text):
    """A C++ string literal; bytes beyond ASCII as octal escapes."""
    escape = lambda byte: f"\\{byte:03o}" if byte < 32 or byte > 126 else chr(byte)
    body = "".join("\\" + chr(b) if chr(b) in '"\\' else escape(b) for b in text.encode())
    return f'"{body}"'


def float_literal(value):
    return f"{value!r}f" if abs(value) != float("inf") else ("-" if value < 0 else "") + "__builtin_inff()"


class Tables:
    """Constant arrays, each distinct list once."""

    def __init__(self):
        self.arrays = {}  # (type, items) -> name
        self.lines = []

    def span(self, type_, items):
        """An initialiser of a span over the items."""
        items = tuple(items)
        if not items:
            return "{}"
        if (type_, items) not in self.arrays:
            name = f"list_{len(self.arrays)}"
            self.arrays[type_, items] = name
            separator = ", " if len(items[0]) < 16 else ",\n  "
            self.lines.append(f"constexpr {type_} {name}[] = {{{separator.join(items)}}};")
        return f"{{{self.arrays[type_, items]}, {len(items)}}}"

    def types(self, types):
        return self.span("TypeId", [f"V({bits}u)" for bits in sorted(map(type_bits, types))])

    def attribute(self, attribute):
        kind = ATTRIBUTE_NAMES.get(attribute.kind, attribute.kind)
        fields = [quoted(attribute.name), f"AttributeKind::{kind}", *flags(attribute.required)]
        default = attribute.default
        fields += flags(default is not None)
        return "{" + ", ".join(fields + self.default(attribute.kind, default)) + "}"

    def default(self, kind, value):
        """Attribute's default fields, of which only the one of its kind is filled."""
        fields = {"float": "0", "int": "0", "string": "{}", "ints": "{}", "floats": "{}", "strings": "{}"}
        if value is None:
            pass
        elif kind == "float":
            fields[kind] = float_literal(value)
        elif kind == "int":
            fields[kind] = str(value)
        elif kind == "string":
            fields[kind] = quoted(value)
        elif kind == "ints":
            fields[kind] = self.span("int64_t", map(str, value))
        elif kind == "floats":
            fields[kind] = self.span("float", map(float_literal, value))
        else:
            fields[kind] = self.span("std::string_view", map(quoted, value))
        return list(fields.values())

    def formals(self, formals, version, side):
        order = list(version.constraints)
        items = []
        for formal in formals:
            known = formal.type in version.constraints
            types = self.types(version.constraints[formal.type] if known else [formal.type])
            tag = "not_said"
            if formal.name in version.differentiable[side]:
                tag = "differentiable"
            elif formal.name in version.not_differentiable[side]:
                tag = "not_differentiable"
            fields = [quoted(formal.name), quoted(formal.type), types, str(order.index(formal.type) if known else -1)]
            fields += [f"FormalOption::{OPTIONS[formal.option]}", *flags(not formal.mixed), str(formal.min_arity)]
            items.append("{" + ", ".join([*fields, f"Differentiability::{tag}"]) + "}")
        return self.span("Formal", items)

    def signature(self, domain, name, version, extra):
        ranges = [
            given or spec.arity(formals)
            for given, formals in ((version.input_range, version.inputs), (version.output_range, version.outputs))
        ]
        function = "fixed" if version.body else "contextual" if version.builder else "none"
        fields = [quoted(domain), quoted(name), str(version.since), str(version.until)]
        fields += flags(version.deprecated, version.experimental, version.nondeterministic, extra)
        fields.append(f"FunctionKind::{function}")
        fields.append(self.span("int32_t", map(str, version.body or version.builder)))
        fields += [self.formals(version.inputs, version, 0), self.formals(version.outputs, version, 1)]
        fields += [str(bound) for bounds in ranges for bound in bounds]
        fields.append(self.span("Attribute", map(self.attribute, version.attributes.values())))
        constraints = [f"{{{quoted(n)}, {self.types(types)}}}" for n, types in version.constraints.items()]
        fields.append(self.span("TypeConstraint", constraints))
        return "{" + ", ".join(fields) + "}"


def flags(*values):
    return ["true" if value else "false" for value in values]


def read_signatures(folder):
    """[(domain, name, Version, is extra)] in the order of the table."""
    sets = spec.TypeSets(folder / "type_sets.txt")
    found = {}
    for sub_folder, extra in (("ops", False), ("extra", True)):
        for (domain, name), versions in spec.read_folder(folder / sub_folder, sets).items():
            for version in versions:
                key = domain, name, version.since
                if key in found:
                    raise spec.SpecError(f"{sub_folder}: {domain}.{name} since {version.since} is defined twice")
                found[key] = (domain, name, version, extra)
    return [found[key] for key in sorted(found)]


def operator_hash(domain, name):
    """schema::tables::operator_hash."""
    value = 2166136261
    for byte in f"{name}.{domain}".encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def operator_slots(signatures):
    """The hash table of operators: [(first row, number of rows)], (0, 0) where a slot is empty."""
    groups = {}
    for row, (domain, name, _, _) in enumerate(signatures):
        groups.setdefault((domain, name), []).append(row)
    slots = [(0, 0)] * (1 << (2 * len(groups)).bit_length())
    for (domain, name), rows in groups.items():
        slot = operator_hash(domain, name) % len(slots)
        while slots[slot][1]:
            slot = (slot + 1) % len(slots)
        slots[slot] = rows[0], len(rows)
    return slots


def read_releases(path):
    """[(release, IR version, {domain: opset})]."""
    releases = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = spec.strip_comment(line).split()
        if words:
            pairs = dict(zip(words[1::2], map(int, words[2::2])))
            releases.append((words[0], pairs.pop("ir"), pairs))
    return releases


def latest_opsets(signatures, releases):
    """{domain: its newest opset version}, "" for ai.onnx."""
    latest = {}
    with_releases = {domain for domain, _, _, extra in signatures if not extra}
    for domain, _, version, extra in signatures:
        if not extra or domain not in with_releases:
            latest[domain] = max(latest.get(domain, 0), version.since)
    for _, _, pairs in releases:
        for domain, opset in pairs.items():
            domain = "" if domain == spec.STANDARD_DOMAIN else domain
            latest[domain] = max(latest.get(domain, 0), opset)
    return dict(sorted(latest.items()))


def read_functions(folder):
    """[(domain, name, text)]; a file is named as its operator, sub-folders are domains."""
    texts = []
    for path in folder.rglob("*.onnxtxt"):
        parts = path.relative_to(folder).parts
        texts.append(("/".join(parts[:-1]), path.stem, path.read_text(encoding="utf-8")))
    return sorted(texts)


def long_literal(text):
    pieces = [text[i : i + LITERAL] for i in range(0, len(text), LITERAL)]
    return "\n   ".join(quoted(line) for piece in pieces for line in piece.splitlines(keepends=True)) or '""'


def generate(folder):
    tables = Tables()
    signatures = read_signatures(folder)
    rows = [tables.signature(*entry) for entry in signatures]
    releases = read_releases(folder / "releases.txt")
    functions = read_functions(folder / "functions")
    gradients = read_functions(folder / "gradients")
    sets = spec.TypeSets(folder / "type_sets.txt").sets
    set_rows = [f"{{{quoted(n)}, {tables.types(f'tensor({e})' for e in elements)}}}" for n, elements in sets.items()]
    out = ["// Generated from spec/ by tools/spec_to_cc.py.", '#include "schema/tables.h"', ""]
    out += ["namespace sardonyx::schema::tables {", "namespace {"]
    out += ["constexpr TypeId V(uint32_t bits) { return TypeId::from_bits(bits); }"]
    out += tables.lines
    out += array("Signature", "signature_rows", rows)
    slots = operator_slots(signatures)
    out += array("OperatorRows", "operator_rows", [f"{{{first}, {count}}}" for first, count in slots])
    columns = ("ai.onnx", "ai.onnx.ml", "ai.onnx.training")
    out += array(
        "Release",
        "release_rows",
        [", ".join([f"{{{quoted(n)}, {ir}", *(str(p.get(c, 0)) for c in columns)]) + "}" for n, ir, p in releases],
    )
    latest = latest_opsets(signatures, releases)
    out += array("DomainOpset", "latest_rows", [f"{{{quoted(domain)}, {opset}}}" for domain, opset in latest.items()])
    for name, texts in (("function", functions), ("gradient", gradients)):
        bodies = [f"{{{quoted(d)}, {quoted(n)},\n   {long_literal(text)}}}" for d, n, text in texts]
        out += array("FunctionText", f"{name}_rows", bodies)
    out += array("TypeSet", "type_set_rows", set_rows)
    out += ["}  // namespace", ""]
    for type_, name, filled in (
        ("Signature", "signature", signatures),
        ("OperatorRows", "operator", slots),
        ("Release", "release", releases),
        ("DomainOpset", "latest", latest),
        ("FunctionText", "function", functions),
        ("FunctionText", "gradient", gradients),
        ("TypeSet", "type_set", sets),
    ):
        rows_or_none = f"{name}_rows" if filled else ""
        out.append(f"constinit const std::span<const {type_}> {name}s{{{rows_or_none}}};")
    return "\n".join([*out, "", "}  // namespace sardonyx::schema::tables", ""])


def array(type_, name, rows):
    return [f"constexpr {type_} {name}[] = {{", *(f"  {row}," for row in rows), "};"] if rows else []


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        text = generate(Path(sys.argv[1]))
    except spec.SpecError as error:
        sys.exit(str(error))
    Path(sys.argv[2]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
