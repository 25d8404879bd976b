#!/usr/bin/env python3
"""Checks that arrows between the folders point one way: docs/architecture.md, "Layers".

A folder may be built on the folders that ALLOWED gives it; its CMakeLists.txt may name only those,
and its #include lines only what its CMakeLists.txt names. A public header belongs to a folder too.
Libraries that only some folders may use are named in LIBRARIES.
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

ALLOWED = {
    "base": "",
    "kernels": "base",
    "image": "base",
    "ir": "base",
    "wire": "ir base",
    "formats": "wire ir image base",
    "schema": "ir base",
    "check": "schema ir base",
    "lenient": "check wire schema ir base",
    "ops": "schema ir kernels image base",
    "infer": "ops schema ir kernels image base",
    "eval": "infer ops schema ir kernels image base",
    "autodiff": "infer ops wire schema ir kernels image base",
    "lower": "autodiff infer ops wire schema ir kernels image base",
    "compose": "lower infer ops schema ir kernels image base",
    "passes": "eval infer ops schema ir kernels image base",
    "run": "eval infer ops schema ir kernels image base",
    "session": "run passes compose lower eval infer ops lenient check formats wire schema ir kernels image base",
    "tools": "session run passes compose lower eval infer ops lenient check formats wire schema ir kernels image base",
    "train": "tools session run passes compose lower eval infer ops lenient check formats wire schema ir kernels image base",
    "api": "tools session compose lower infer ops check wire schema ir base",
    "capi": "api train session base",
    "ort_api": "api session base",
}
# What is built on the public headers alone, as anybody's program.
FACES = ("cli", "tests/api", "tests/capi", "examples", "python/src")

# Which folder a public header speaks for; what is not listed speaks for session.
PUBLIC = {"allocator.h": "base", "element_type.h": "base", "error.h": "base", "value.h": "base", "custom.h": "ops", "diagnostic.h": "check",
          "training.h": "train", "trainable.h": "train", "training_artifacts.h": "train", "fit.h": "train"}

LIBRARIES = {
    "protozero": "wire",
    "hwy": "kernels base",
    "re2": "ops",
    "CLI": "cli",
    "gtest": "",
    "onnx": "",
    "google/protobuf": "",
}

# Headers of operating systems, and the sources that may see them: those for one system alone, and what asks for a processor's features.
SYSTEM = re.compile(r"(sys|linux|asm)/.*|(unistd|fcntl|dlfcn|sched|dirent|signal|poll|pthread|spawn|termios|malloc|io|windows|psapi|shellapi)\.h")
OF_A_SYSTEM = re.compile(r".*_(posix|windows)\.(cc|h)|cpu\.cc")

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def cmake_depends(folder: pathlib.Path) -> set[str] | None:
    file = folder / "CMakeLists.txt"
    if not file.exists():
        return None
    match = re.search(r"sardonyx_module\(\s*\w+([^)]*)\)", file.read_text())
    if match is None:
        return None
    words, depends, inside = match.group(1).split(), set(), False
    for word in words:
        if word in ("DEPENDS", "LIBRARIES", "OPTIMIZE", "GROWTH"):
            inside = word == "DEPENDS"
        elif inside:
            depends.add(word)
    return depends


def closure(direct: set[str], table: dict[str, set[str]]) -> set[str]:
    """What a folder sees: what it names, and what those name."""
    seen, waiting = set(), list(direct)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += table.get(name, ())
    return seen


def sources(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(file for ending in ("*.cc", "*.h", "*.inc") for file in folder.rglob(ending))


def check_file(file: pathlib.Path, room: str, visible: set[str], problems: list[str]) -> None:
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        target = match.group(1)
        place = f"{file.relative_to(ROOT)}:{number}"
        first = target.split("/")[0]
        if first == "sardonyx":
            owner = PUBLIC.get(target.split("/", 1)[1], "session")
            if owner not in visible | {room}:
                problems.append(f"{place}: '{room}' may not see {target}, which speaks for '{owner}'")
        elif "/" in target and (first in ALLOWED or first == "cli"):
            if first not in visible | {room}:
                problems.append(f"{place}: '{room}' may not see '{first}' ({target}); it may see: "
                                f"{' '.join(sorted(visible)) or 'nothing'}")
        for library, rooms in LIBRARIES.items():
            if (target + "/").startswith(library + "/") and room not in rooms.split():
                problems.append(f"{place}: {target} is for {rooms or 'nobody here'} only")


def check_system(file: pathlib.Path, problems: list[str]) -> None:
    if OF_A_SYSTEM.fullmatch(file.name):
        return
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match is not None and SYSTEM.fullmatch(match.group(1)):
            problems.append(f"{file.relative_to(ROOT)}:{number}: {match.group(1)} is for sources of one system (os.h has what others need)")


def check_face(file: pathlib.Path, room: str, problems: list[str]) -> None:
    """A program sees the public headers and its own files, by whatever path; a test also what all tests share."""
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match is None or match.group(1).startswith("sardonyx/"):
            continue
        target = match.group(1)
        place = f"{file.relative_to(ROOT)}:{number}"
        paths = [(folder / target).resolve() for folder in (file.parent, ROOT / "tests", ROOT / "src")]
        found = next((path for path in paths if path.is_file()), None)
        first = target.split("/")[0]
        shared = ROOT / "tests" if room.startswith("tests/") else ROOT / room
        if found is not None and (found.is_relative_to(ROOT / room) or found.parent == shared):
            continue
        if "/" in target and first in ALLOWED:
            problems.append(f"{place}: '{room}' may not see '{first}' ({target}), only the public headers")
        elif found is not None and found.is_relative_to(ROOT):
            problems.append(f"{place}: '{room}' may not see {target}, only the public headers")
        if (target + "/").startswith("CLI/") and room != "cli":
            problems.append(f"{place}: {target} is for cli only")


def check_public(problems: list[str]) -> None:
    """Public headers see each other and the standard library, nothing of ours or of others; that for C sees C's."""
    for file in sources(ROOT / "include"):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if file.name == "sardonyx.h" and match and match.group(1) in ("stddef.h", "stdint.h"):
                continue
            if match and not match.group(1).startswith("sardonyx/") and re.search(r"[./]", match.group(1)):
                problems.append(f"{file.relative_to(ROOT)}:{number}: a public header may not see {match.group(1)}")


def main() -> int:
    problems: list[str] = []
    named: dict[str, set[str]] = {}
    for room, allowed in ALLOWED.items():
        depends = cmake_depends(ROOT / "src" / room)
        if depends is None:
            continue
        named[room] = depends
        for extra in sorted(depends - set(allowed.split())):
            problems.append(f"src/{room}/CMakeLists.txt: '{room}' may not be built on '{extra}'")
    for folder in sorted((ROOT / "src").iterdir()):
        if folder.is_dir() and folder.name not in ALLOWED:
            problems.append(f"src/{folder.name}: not in the table of tools/lint_includes.py")
    for room in ALLOWED:
        visible = closure(named.get(room, set()), named)
        for file in sources(ROOT / "src" / room):
            check_file(file, room, visible, problems)
            check_system(file, problems)
    for room in FACES:
        for file in sources(ROOT / room):
            check_face(file, room, problems)
            if room == "cli":
                check_system(file, problems)
    for file in (ROOT / "tests").glob("*.h"):
        check_face(file, "tests", problems)
    check_public(problems)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} includes or dependencies that the table does not allow", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
