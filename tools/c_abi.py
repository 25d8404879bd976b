#!/usr/bin/env python3
"""The binary interface of the C headers beside the committed description, tests/capi/abi.xml.

    tools/c_abi.py            says what has changed; exit code 1 where anything has
    tools/c_abi.py --write    brings the description up to date; refuses what breaks programs that are built already,
                              unless --break says that this is meant

Described is what the headers declare: a library is compiled from them whose functions do nothing, and read by
libabigail's abidw (Debian's abigail-tools). Functions that are added, and fields at the end of structs, which begin
with their size, break nothing.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

from c_interface import HEADERS, ROOT, declarations, headers

DESCRIPTION = ROOT / "tests" / "capi" / "abi.xml"
ABIDW = ["abidw", "--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--no-elf-needed", "--no-architecture",
         "--no-parameter-names", "--type-id-style", "hash"]
CHANGED, BROKEN = 1, 2


def stub(public: pathlib.Path) -> str:
    """Every function of the headers, doing nothing."""
    lines = [f'#include "sardonyx/{file.name}"' for file in headers(public)]
    for one in declarations(public):
        lines.append(f"{one.result} {one.name}({one.text}) {{ {'' if one.result == 'void' else 'return 0;'} }}")
    return "\n".join(lines) + "\n"


def library(folder: pathlib.Path, public: pathlib.Path) -> pathlib.Path:
    source, made = folder / "stub.c", folder / "libsardonyx.so"
    source.write_text(stub(public), encoding="utf-8")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-std=c99", "-g", "-gdwarf-4", "-w", "-fPIC", "-shared", "-Wl,-soname,libsardonyx.so",
                    f"-I{public.parent}", "stub.c", "-o", made], check=True, cwd=folder)
    return made


def describe(folder: pathlib.Path, public: pathlib.Path = HEADERS) -> str:
    """The description of the headers in `public`; `folder` takes files on the way."""
    text = subprocess.run([*ABIDW, library(folder, public)], check=True, capture_output=True, text=True).stdout
    lines = [line.lstrip() for line in text.splitlines()]
    lines[-1:-1] = [f"<!--{name} = {value}-->" for name, value in sorted(constants(public).items())]
    return "\n".join(lines) + "\n"


def constants(public: pathlib.Path) -> dict[str, int]:
    """The numbers of the enumerations, which are no types of anything."""
    found = {}
    for file in headers(public):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.S)
        for inside in re.findall(r"^enum \{(.*?)\}", text, flags=re.S | re.M):
            found.update((name, int(value)) for name, value in re.findall(r"(\w+) = (-?\d+)", inside))
    return found


class Interface:
    """What a description says, with types by their names."""

    def __init__(self, text: str):
        self.constants = {name: int(value) for name, value in re.findall(r"<!--(\w+) = (-?\d+)-->", text)}
        root = ElementTree.fromstring(text)
        self.types = {one.get("id"): one for one in root.iter() if one.get("id")}
        self.functions = {one.get("name"): self.signature(one) for one in root.iter("function-decl")}
        self.structs = {one.get("name"): self.fields(one) for one in root.iter("class-decl")
                        if one.get("is-declaration-only") != "yes"}
        self.names = {one.get("name"): self.called(one.get("type-id")) for one in root.iter("typedef-decl")}

    def signature(self, function) -> list[str]:
        return [self.called(function.find("return").get("type-id"))] + [
            self.called(one.get("type-id")) for one in function.findall("parameter")]

    def fields(self, struct) -> list[tuple[str, str, str]]:
        return [(one.get("layout-offset-in-bits"), one.find("var-decl").get("name"),
                 self.called(one.find("var-decl").get("type-id"))) for one in struct.findall("data-member")]

    def called(self, identity: str) -> str:
        kind = self.types[identity]
        if kind.tag == "pointer-type-def":
            return self.called(kind.get("type-id")) + "*"
        if kind.tag == "qualified-type-def":
            return "const " + self.called(kind.get("type-id"))
        if kind.tag == "function-type":
            return f"({', '.join(self.signature(kind))})"
        if kind.tag == "array-type-def":
            return f"{self.called(kind.get('type-id'))}[{kind.get('size-in-bits')}]"
        return kind.get("name")


def broken(old: Interface, new: Interface) -> list[str]:
    """What programs that are built with the old headers meet no more."""
    problems = []
    for what in ("functions", "names", "constants"):
        for name, meaning in getattr(old, what).items():
            now = getattr(new, what).get(name)
            if now != meaning:
                problems.append(f"{name} was {meaning}, and is {'gone' if now is None else now}")
    for name, fields in old.structs.items():
        if name not in old.names:  # not of this interface
            continue
        now = new.structs.get(name, [])
        if now[:len(fields)] != fields:
            problems.append(f"struct {name} began with {fields}, and is {now}")
        elif len(now) > len(fields) and fields[0][1] != "size":
            problems.append(f"struct {name} does not begin with its size, and has grown")
    return problems


def compare(folder: pathlib.Path, new: str, old: pathlib.Path = DESCRIPTION) -> tuple[int, str]:
    """0, CHANGED or BROKEN, and in which way."""
    (folder / "new.abi").write_text(new, encoding="utf-8")
    result = subprocess.run(["abidiff", old, folder / "new.abi"], capture_output=True, text=True)
    if result.returncode & 3:  # an error of the tool or of its use
        sys.exit(f"abidiff: {result.stdout}{result.stderr}")
    before, now = Interface(old.read_text(encoding="utf-8")), Interface(new)
    problems = broken(before, now)
    if problems:
        return BROKEN, "\n".join(problems) + "\n" + result.stdout
    is_other = result.returncode or before.constants != now.constants
    return (CHANGED if is_other else 0), result.stdout if result.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="bring tests/capi/abi.xml up to date")
    parser.add_argument("--break", action="store_true", dest="breaks", help="with --write: also what breaks programs")
    options = parser.parse_args()
    if shutil.which("abidw") is None:
        sys.exit("c_abi: abidw is not installed: apt-get install abigail-tools")
    with tempfile.TemporaryDirectory() as folder:
        new = describe(pathlib.Path(folder))
        code, words = compare(pathlib.Path(folder), new) if DESCRIPTION.exists() else (CHANGED, "")
    print(words, end="")
    if options.write and (code != BROKEN or options.breaks):
        DESCRIPTION.write_text(new, encoding="utf-8")
        return 0
    if code == BROKEN:
        print("c_abi: this breaks programs that are built already", file=sys.stderr)
    elif code:
        print("c_abi: the description is out of date; tools/c_abi.py --write renews it", file=sys.stderr)
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main())
