"""Reads the operator signatures of spec/ (docs/spec_format.md). Standard library only: the build uses it."""

import copy
import json
import math
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

# Numbered as TensorProto.DataType.
ELEMENTS = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22,
    "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26, "float6e2m3": 27, "float6e3m2": 28,
}  # fmt: skip
# Numbered as AttributeProto.AttributeType.
ATTRIBUTE_KINDS = {
    "float": 1, "int": 2, "string": 3, "tensor": 4, "graph": 5, "floats": 6, "ints": 7, "strings": 8, "tensors": 9,
    "graphs": 10, "sparse_tensor": 11, "sparse_tensors": 12, "type_proto": 13, "type_protos": 14,
}  # fmt: skip
CONSTRUCTORS = {"seq": "seq", "optional": "optional", "sparse": "sparse_tensor"}
FLAGS = ("deprecated", "experimental", "nondeterministic")
UNLIMITED = 0x7FFFFFFF
STANDARD_DOMAIN = "ai.onnx"
NAME = re.compile(r"[A-Za-z_]\w*")


class SpecError(Exception):
    """What is wrong in a spec file, with its place."""


@dataclass
class Formal:
    name: str
    type: str  # a constraint's name or a canonical type: tensor(float)
    option: str = "single"  # single, optional, variadic
    mixed: bool = False  # variadic of values of several types
    min_arity: int = 1


@dataclass
class Attribute:
    name: str
    kind: str
    required: bool = False
    default: object = None  # float, int, str or a list of them


@dataclass
class Version:
    since: int = 0
    until: int = 0
    deprecated: bool = False
    experimental: bool = False
    nondeterministic: bool = False
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    input_range: tuple = None  # None: follows from the formals
    output_range: tuple = None
    attributes: dict = field(default_factory=dict)
    constraints: dict = field(default_factory=dict)  # name -> frozenset of canonical types
    differentiable: tuple = ((), ())  # names of inputs, names of outputs
    not_differentiable: tuple = ((), ())
    body: tuple = ()  # opset versions with a fixed body
    builder: tuple = ()  # opset versions whose body depends on context


def float32(value):
    """The nearest float32; infinite beyond its range."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def strip_comment(line):
    quoted = False
    for index, char in enumerate(line):
        if char == '"' and (index == 0 or line[index - 1] != "\\"):
            quoted = not quoted
        elif char == "#" and not quoted:
            return line[:index].rstrip()
    return line.rstrip()


def split_statements(text):
    """Splits at the commas that stand outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for index, char in enumerate(text):
        if char == '"' and text[index - 1] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (char in "([") - (char in ")]")
            if char == "," and depth == 0:
                parts.append(text[start:index].strip())
                start = index + 1
    parts.append(text[start:].strip())
    return parts


def in_double_quotes(text):
    return json.dumps(text, ensure_ascii=False)


# ---- types ----


class TypeSets:
    """The named sets of spec/type_sets.txt: name -> frozenset of element names, in file order."""

    def __init__(self, path):
        self.sets = {}
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            line = strip_comment(line).strip()
            if not line:
                continue
            name, equals, members = line.partition("=")
            name = name.strip()
            if not equals or not NAME.fullmatch(name) or name in self.sets or name in ELEMENTS:
                raise SpecError(f"{path}:{number}: expected 'new_name = members', found '{line}'")
            elements = set()
            for member in members.split():
                if member in ELEMENTS:
                    elements.add(member)
                elif member in self.sets:
                    elements |= self.sets[member]
                else:
                    raise SpecError(f"{path}:{number}: '{member}' is no element type and no set defined above")
            self.sets[name] = frozenset(elements)

    def expand(self, text):
        """The canonical types that an expression such as 'number seq(any)' stands for."""
        tokens = re.findall(r"\w+|[(),]", text)
        if "".join(tokens) != re.sub(r"\s", "", text):
            raise SpecError(f"cannot read the types '{text}'")
        types, rest = self._terms(tokens)
        if rest or not types:
            raise SpecError(f"cannot read the types '{text}'")
        return frozenset(types)

    def _terms(self, tokens):
        types = set()
        while tokens and tokens[0] not in "),":
            word = tokens.pop(0)
            if word in CONSTRUCTORS or word == "map":
                if not tokens or tokens.pop(0) != "(":
                    raise SpecError(f"expected '(' after '{word}'")
                types |= self._constructed(word, tokens)
            elif word in ELEMENTS:
                types.add(f"tensor({word})")
            elif word in self.sets:
                types |= {f"tensor({element})" for element in self.sets[word]}
            else:
                raise SpecError(f"'{word}' is no element type, no set and no constructor")
        return types, tokens

    def _constructed(self, word, tokens):
        key = None
        if word == "map":
            if len(tokens) < 2 or tokens[0] not in ELEMENTS or tokens[1] != ",":
                raise SpecError("expected 'map(key, value)'")
            key = tokens[0]
            del tokens[:2]
        inner, rest = self._terms(tokens)
        if not inner or not rest or rest.pop(0) != ")":
            raise SpecError(f"expected types and ')' in '{word}(…)'")
        if key:
            return {f"map({key}, {scalar(value)})" for value in inner}
        if word == "sparse":
            return {f"sparse_tensor({scalar(value)})" for value in inner}
        return {f"{word}({value})" for value in inner}


def scalar(value):
    return value[len("tensor(") : -1] if value.startswith("tensor(") else value


# ---- statements ----


class Reader:
    def __init__(self, sets):
        self.sets = sets

    def read_file(self, path):
        """(operator name, [Version, …] in file order)."""
        name, versions, since = None, {}, None
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            line = strip_comment(line).strip()
            if not line:
                continue
            try:
                if name is None:
                    if not NAME.fullmatch(line):
                        raise SpecError(f"expected the operator's name, found '{line}'")
                    name = line
                elif line.startswith("since "):
                    since = self._begin_version(line, versions)
                elif since is None:
                    raise SpecError(f"expected 'since', found '{line}'")
                else:
                    self._apply(versions[since], line)
            except SpecError as error:
                raise SpecError(f"{path}:{number}: {error}") from None
        if not versions:
            raise SpecError(f"{path}: holds no version")
        for version in versions.values():
            try:
                finish(version)
            except SpecError as error:
                raise SpecError(f"{path}: since {version.since}: {error}") from None
        return name, list(versions.values())

    def _begin_version(self, line, versions):
        head, *statements = split_statements(line)
        match = re.fullmatch(r"since (\d+)(?: like (\d+))?", head)
        if not match:
            raise SpecError(f"expected 'since N' or 'since N like M', found '{head}'")
        since = int(match[1])
        if since in versions:
            raise SpecError(f"version {since} occurs twice")
        base = Version()
        if match[2]:
            if int(match[2]) not in versions:
                raise SpecError(f"version {match[2]} is not above")
            base = copy.deepcopy(versions[int(match[2])])
        base.since = since
        versions[since] = base
        for statement in statements:
            self._apply(base, statement)
        return since

    def _apply(self, version, statement):
        word, _, rest = statement.partition(" ")
        rest = rest.strip()
        if word == "no":
            remove(version, rest)
        elif word in ("in", "out"):
            put_formal(version.inputs if word == "in" else version.outputs, self._formal(rest))
        elif word == "attr":
            attribute = read_attribute(rest)
            version.attributes[attribute.name] = attribute
        elif word == "where":
            name, found, types = rest.partition(" in ")
            if not found or not NAME.fullmatch(name):
                raise SpecError(f"expected 'where T in types', found '{statement}'")
            version.constraints[name] = self.sets.expand(types)
        elif word == "differentiable":
            version.differentiable = read_arrow(rest)
        elif word == "not" and rest.startswith("differentiable"):
            version.not_differentiable = read_arrow(rest[len("differentiable") :])
        elif word in ("inputs", "outputs"):
            setattr(version, word[:-1] + "_range", read_range(rest))
        elif word in ("body", "builder"):
            version.body = version.builder = ()
            setattr(version, word, tuple(int(opset) for opset in rest.split()))
        elif word == "until":
            version.until = int(rest)
        elif word in FLAGS and not rest:
            setattr(version, word, True)
        else:
            raise SpecError(f"cannot read '{statement}'")

    def _formal(self, text):
        match = re.fullmatch(r"([\w.]+):\s*(.+?)(?:\s+(optional|variadic\((\d+)\)))?(\s+mixed)?", text)
        if not match:
            raise SpecError(f"expected 'name: type', found '{text}'")
        name, type_, option, least, mixed = match.groups()
        if not (NAME.fullmatch(type_) and type_ not in ELEMENTS):
            types = self.sets.expand(type_)
            if len(types) != 1:
                raise SpecError(f"'{type_}' is more than one type")
            (type_,) = types
        return Formal(name, type_, (option or "single").partition("(")[0], bool(mixed), int(least or 1))


def put_formal(formals, formal):
    for index, other in enumerate(formals):
        if other.name == formal.name:
            formals[index] = formal
            return
    formals.append(formal)


def read_attribute(text):
    match = re.fullmatch(r"(\w+):\s*(\w+)(?:\s+(required))?(?:\s*=\s*(.+))?", text)
    if not match or match[2] not in ATTRIBUTE_KINDS:
        raise SpecError(f"expected 'name: kind [required] [= default]', found '{text}'")
    name, kind, required, default = match.groups()
    value = None
    if default is not None:
        try:
            value = json.loads(default)
        except json.JSONDecodeError as error:
            raise SpecError(f"cannot read the default '{default}': {error}") from None
        value = as_kind(value, kind)
    return Attribute(name, kind, bool(required), value)


def as_kind(value, kind):
    if kind.endswith("s") and kind[:-1] in ("float", "int", "string"):
        if not isinstance(value, list):
            raise SpecError(f"a default of kind {kind} is a list")
        return [as_kind(item, kind[:-1]) for item in value]
    if kind == "float" and isinstance(value, (int, float)):
        return float32(float(value))
    if kind == "int" and isinstance(value, int) or kind == "string" and isinstance(value, str):
        return value
    raise SpecError(f"'{value}' is no default of kind {kind}")


def read_arrow(text):
    left, arrow, right = text.partition("->")
    if not arrow:
        raise SpecError(f"expected 'inputs -> outputs', found '{text}'")
    return tuple(left.split()), tuple(right.split())


def read_range(text):
    match = re.fullmatch(r"(\d+)\.\.(\d+|\*)", text)
    if not match:
        raise SpecError(f"expected 'least..most', found '{text}'")
    return int(match[1]), UNLIMITED if match[2] == "*" else int(match[2])


def remove(version, text):
    word, _, name = text.partition(" ")
    lists = {"in": version.inputs, "out": version.outputs}
    maps = {"attr": version.attributes, "where": version.constraints}
    found = True
    if word in lists:
        kept = [formal for formal in lists[word] if name and formal.name != name]
        found = len(kept) < len(lists[word])
        lists[word][:] = kept
    elif word in maps and name:
        found = maps[word].pop(name, None) is not None
    elif word in maps:
        maps[word].clear()
    elif word in FLAGS:
        setattr(version, word, False)
    elif text == "differentiable":
        version.differentiable = version.not_differentiable = ((), ())
    elif text in ("inputs", "outputs"):
        setattr(version, text[:-1] + "_range", None)
    elif text in ("body", "builder"):
        version.body = version.builder = ()
    else:
        raise SpecError(f"cannot remove '{text}'")
    if not found:
        raise SpecError(f"there is no '{text}' to remove")


def finish(version):
    """Orders the attributes, forgets tags of formals that were removed, and checks what is used."""
    version.attributes = dict(sorted(version.attributes.items()))
    for formal in version.inputs + version.outputs:
        if formal.type not in version.constraints and "(" not in formal.type:
            raise SpecError(f"'{formal.name}' has the type '{formal.type}', which no 'where' defines")
    names = [{formal.name for formal in formals} for formals in (version.inputs, version.outputs)]
    for tags in ("differentiable", "not_differentiable"):
        kept = tuple(tuple(n for n in tagged if n in have) for tagged, have in zip(getattr(version, tags), names))
        setattr(version, tags, kept)


def arity(formals):
    """(least, most) number of values that the formals take."""
    least = most = 0
    for position, formal in enumerate(formals):
        if formal.option == "single":
            least = most = position + 1
        elif formal.option == "optional":
            most = position + 1
        else:
            most = UNLIMITED
            if formal.min_arity > 0:
                least = max(least, position + formal.min_arity)
    return least, most


def read_folder(folder, sets):
    """{(domain, operator): [Version]} of spec/ops or spec/extra; sub-folders are domains."""
    operators = {}
    reader = Reader(sets)
    for path in sorted(Path(folder).rglob("*.txt")):
        relative = path.relative_to(folder)
        domain = relative.parent.as_posix() if len(relative.parts) > 1 else ""
        name, versions = reader.read_file(path)
        if name != path.stem:
            raise SpecError(f"{path}: holds the operator '{name}'; a file is named as its operator")
        operators[domain, name] = versions
    return operators
