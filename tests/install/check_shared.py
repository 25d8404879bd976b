#!/usr/bin/env python3
"""What a shared library shows to others: check_shared.py LIBRARY VERSION.

Its name holds the major version, it names no folders to look for libraries in, and its symbols are those that the public
headers declare.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import c_interface  # noqa: E402
DECLARED = re.compile(r"\b(?:class|struct|enum class)\s+(?:\[\[[^\]]*\]\]\s*)?(\w+)|\b(\w+)\s*[(=]")


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declared_names() -> set[str]:
    """All names that the headers could mean: of types, functions and constants."""
    names = set()
    for header in (ROOT / "include" / "sardonyx").glob("*.h"):
        for match in DECLARED.finditer(re.sub(r"//[^\n]*", "", header.read_text())):
            names.add(match[1] or match[2])
    return names


def inner_namespaces() -> set[str]:
    """Of the headers, without `sardonyx`: "dlpack"."""
    text = "".join(header.read_text() for header in (ROOT / "include" / "sardonyx").glob("*.h"))
    return set(re.findall(r"\bnamespace (?:sardonyx::)?(\w+) {", text)) - {"sardonyx"}


INNER = "|".join(sorted(inner_namespaces()))


def exported(library: str) -> list[str]:
    lines = output_of("nm", "--dynamic", "--demangle", "--defined-only", library).splitlines()
    return [line.split(" ", 2)[2] for line in lines]


def first_name(symbol: str) -> str | None:
    """X of sardonyx::X; of the type where the symbol is about one; a function of C itself; nothing for others."""
    if re.fullmatch(r"sardonyx_\w+", symbol):
        return symbol
    match = re.match(rf"(?:(?:vtable|typeinfo|typeinfo name) for )?sardonyx::(?:(?:{INNER})::)?(\w+)", symbol)
    return match[1] if match else None


def problems(library: str, version: str) -> list[str]:
    found = []
    dynamic = output_of("readelf", "--dynamic", "--wide", library)
    if f"Library soname: [libsardonyx.so.{version}]" not in dynamic:
        found.append(f"its soname is not libsardonyx.so.{version}")
    if re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", dynamic):
        found.append("it names folders of libraries, or changes its own code")
    names = declared_names()
    symbols = exported(library)
    strange = sorted({symbol for symbol in symbols if first_name(symbol) not in names})
    found += [f"it exports '{symbol}', which no public header declares" for symbol in strange[:20]]
    inner = sorted({symbol for symbol in symbols if "::Implementation" in symbol.split("(")[0]})
    found += [f"it exports '{symbol}' of its inside" for symbol in inner[:20]]
    functions = [one.name for one in c_interface.declarations()]
    found += [f"it does not export {name}" for name in functions if name not in symbols]
    for needed in ("Session::Session", "Model::from_text", "Error::within", "infer_types", "version"):
        if not any(symbol.startswith(f"sardonyx::{needed}(") for symbol in symbols):
            found.append(f"it does not export sardonyx::{needed}")
    print(f"{len(symbols)} symbols, {len(strange)} of them strange")
    return found


def main() -> int:
    found = problems(*sys.argv[1:3])
    for problem in found:
        print(f"{sys.argv[1]}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
