"""Peers as they run on a processor with AVX2, without AVX-512, on one that has more.

Engines ask the processor what it can do by its instruction `cpuid`. Copies of their libraries have an undefined instruction of
the same length in its place; bench_driver --avx2 catches it and answers without AVX-512, AVX-VNNI and what belongs to them,
bench_driver --avx-vnni with AVX-VNNI (bench/driver/avx2.cc). Sardonyx is told by its own SARDONYX_CPU, the C library, which
copies memory for all, by GLIBC_TUNABLES.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

CPUID, UNDEFINED = b"\x0f\xa2", b"\x0f\x04"
# Of OpenVINO's folder: what other devices and formats need stays where it is.
LEFT_OUT = re.compile(r"gpu|npu|paddle|tensorflow|pytorch|jax|gguf|auto|hetero|cmake|pkgconfig")
MASKED = ["AVX512F", "AVX512VL", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512_VNNI", "AVX512_VBMI", "AVX512_VBMI2",
          "AVX512_BITALG", "AVX512_BF16", "AVX512_FP16", "AVX_VNNI"]
PROCESSORS = {"avx2": "AVX2 alone, as many desktop processors have it",
              "avx_vnni": "AVX2 and AVX-VNNI, as most newer ones without AVX-512 have them"}


def environment(processor: str) -> dict[str, str]:
    return {"SARDONYX_CPU": processor, "GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in MASKED)}


def option(processor: str) -> str:
    """Of bench_driver."""
    return "--" + processor.replace("_", "-")


def places_of_cpuid(library: pathlib.Path) -> list[int]:
    """Where the file has the instruction: offsets."""
    sections = re.findall(r"^\s*\d+ \S+ +([0-9a-f]+) +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) ",
                          run("objdump", "-hw", library), re.MULTILINE)
    ranges = [(int(address, 16), int(size, 16), int(offset, 16)) for size, address, offset in sections]
    found = []
    for address in re.findall(r"^\s*([0-9a-f]+):\s+cpuid", run("objdump", "-d", "--no-show-raw-insn", library), re.MULTILINE):
        at = int(address, 16)
        found.append(next(offset + at - begin for begin, size, offset in ranges if begin <= at < begin + size))
    return found


def run(*command) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True,
                          env=dict(os.environ, LC_ALL="C")).stdout


def copy_asking_elsewhere(source: str, target: str) -> str:
    library = pathlib.Path(source)
    data = bytearray(library.read_bytes())
    for place in places_of_cpuid(library) if ".so" in library.name else []:
        if data[place:place + 2] != CPUID:
            raise ValueError(f"{library}: no cpuid at {place:#x}")
        data[place:place + 2] = UNDEFINED
    pathlib.Path(target).write_bytes(data)
    return target


def counterpart(library: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The copy of a peer's library in a folder of its own, with the libraries that lie beside it; made where it is missing."""
    target = folder / f"{library.name}-{library.stat().st_mtime_ns}"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(library.parent, unfinished, copy_function=copy_asking_elsewhere,
                        ignore=lambda _, names: [name for name in names if LEFT_OUT.search(name) or name.endswith(".py")])
        unfinished.rename(target)
    return target / library.name
