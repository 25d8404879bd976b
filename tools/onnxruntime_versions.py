#!/usr/bin/env python3
"""Makes what gives the functions of libonnxruntime.so.1 the versions of all releases: `onnxruntime_versions.py MAP SOURCE`.

A program that was linked to release 1.22.0 of ONNX Runtime asks for OrtGetApiBase@VERS_1.22.0, and is not started where the library
has no such version. MAP is the linker's script, SOURCE a C++ file with a function for each version. Releases to come are in it, too.
"""

from __future__ import annotations

import pathlib
import sys

FUNCTIONS = {"OrtGetApiBase": ("void", ""), "OrtSessionOptionsAppendExecutionProvider_CPU": ("void* options, int arena", "options, arena")}
CURRENT = "1.31.1"  # what the functions are to who asks for no version; `release` in src/ort_api/types.h
MINORS, PATCHES = range(60), range(6)


def versions() -> list[str]:
    return [f"1.{minor}.{patch}" for minor in MINORS for patch in PATCHES]


def version_map() -> str:
    lines = ["# Made by tools/onnxruntime_versions.py."]
    for version in versions():
        body = " global: " + " ".join(f"{name};" for name in FUNCTIONS) + " local: *; " if version == CURRENT else " "
        lines.append(f"VERS_{version} {{{body}}};")
    return "\n".join(lines) + "\n"


def source() -> str:
    lines = ["// Made by tools/onnxruntime_versions.py."]
    lines += [f'extern "C" void* {name}({parameters});' for name, (parameters, _) in FUNCTIONS.items()]
    for version in versions():
        if version == CURRENT:
            continue
        for name, (parameters, arguments) in FUNCTIONS.items():
            alias = f"{name}_{version.replace('.', '_')}"
            lines.append(f'extern "C" void* {alias}({parameters}) {{ return {name}({arguments}); }}')
            lines.append(f'__asm__(".symver {alias}, {name}@VERS_{version}");')
    return "\n".join(lines) + "\n"


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    pathlib.Path(sys.argv[1]).write_text(version_map())
    pathlib.Path(sys.argv[2]).write_text(source())
    return 0


if __name__ == "__main__":
    sys.exit(main())
