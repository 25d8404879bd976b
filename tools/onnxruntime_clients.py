#!/usr/bin/env python3
"""Runs programs that were built for ONNX Runtime's C interface with its own library and with Sardonyx's, and compares what they see.

    tools/onnxruntime_clients.py                    # all clients
    tools/onnxruntime_clients.py node genai -v      # some of them; the checks that pass, too
    tools/onnxruntime_clients.py --list
    tools/onnxruntime_clients.py --theirs           # ONNX Runtime's own library alone: is the client set up?
    tools/onnxruntime_clients.py --time             # the time of a run from Node, with the libraries taking turns

The clients are packages of PyPI and npm. They are set up in build/clients/ once. Each has a shared library of ONNX Runtime, whose place a
link takes: to the package's own library, then to ours. The programs of tools/clients/ then do the checks; each prints a line of JSON for a
check. A check fails where it passes with ONNX Runtime's library and not with ours, or where what it saw differs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tools" / "clients"
FOLDER = ROOT / "build" / "clients"
LIBRARY = ROOT / "build" / "release" / "onnxruntime" / "libonnxruntime.so.1"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

# moonshine-voice and onnx-extended name packages that their checks do not need (recording, plots): they come without any.
REQUIREMENTS = [
    "onnx==1.23.2",
    "numpy",
    "onnxruntime==1.31.1",
    "onnxruntime-genai==0.18.0",
    "sherpa-onnx==2.0.1",
    "platformdirs",
    "tqdm",
    "requests",
    "filelock",
]
WITHOUT_DEPENDENCIES = ["silero-vad==6.2.3", "moonshine-voice==0.1.5", "onnx-extended==0.5.0"]
PACKAGES = {
    "dependencies": {"onnxruntime-node": "1.30.0", "@gutenye/ocr-node": "1.4.8", "@huggingface/transformers": "4.3.2"},
    "overrides": {"onnxruntime-node": "1.30.0", "onnxruntime-common": "1.30.0"},
}
NODE_SLOT = "npm/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1"


@dataclasses.dataclass
class Client:
    about: str
    program: str
    # The library that is replaced, below FOLDER.
    slot: str
    # {models}, {digits}, {scratch}, {site} are replaced.
    arguments: str
    # How far numbers may be apart, of the larger one.
    tolerance: float = 1e-4


CLIENTS = {
    "node": Client("onnxruntime-node", "node.js", NODE_SLOT, "{models} {digits} {scratch}"),
    "ocr": Client("@gutenye/ocr-node: text recognition", "ocr.mjs", NODE_SLOT, "{scratch}", 1e-3),
    "transformers": Client("@huggingface/transformers: a decoder", "transformers.mjs", NODE_SLOT, "{models}/transformers"),
    "genai": Client(
        "onnxruntime-genai: decoders", "genai.py", f"python/{SITE}/onnxruntime/capi/libonnxruntime.so.1.31.1", "{scratch}", 1e-3
    ),
    "sherpa": Client(
        "sherpa-onnx: speech",
        "sherpa.py",
        f"python/{SITE}/sherpa_onnx/lib/libonnxruntime.so",
        "{models}/sherpa {site}/moonshine_voice/assets/beckett.wav {site}/silero_vad/data",
    ),
    "moonshine": Client(
        "moonshine-voice: voice activity", "moonshine.py", f"python/{SITE}/moonshine_voice.libs/libonnxruntime-13ab8084.so.1", ""
    ),
    "extended": Client(
        "onnx-extended: custom operators",
        "extended.py",
        f"python/{SITE}/onnx_extended.libs/libonnxruntime-13ab8084.so.1",
        "{models} {digits} {scratch}",
    ),
}


def call(command: list[str], **options) -> None:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"onnxruntime_clients: {' '.join(command[:6])} failed\n{done.stdout[-1000:]}{done.stderr[-2000:]}")


def set_up() -> None:
    """Installs the packages, unless they are there already."""
    plan = json.dumps([sys.version, REQUIREMENTS, WITHOUT_DEPENDENCIES, PACKAGES])
    done = FOLDER / "complete"
    if not done.exists() or done.read_text() != plan:
        shutil.rmtree(FOLDER, ignore_errors=True)
        (FOLDER / "npm").mkdir(parents=True)
        print("Installing the clients into build/clients/", file=sys.stderr)
        call([sys.executable, "-m", "venv", str(FOLDER / "python")])
        pip = [str(FOLDER / "python" / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        call([*pip, *REQUIREMENTS])
        call([*pip, "--no-deps", "--only-binary=:all:", *WITHOUT_DEPENDENCIES])
        (FOLDER / "npm" / "package.json").write_text(json.dumps({"private": True, **PACKAGES}))
        call(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=FOLDER / "npm")
        for client in CLIENTS.values():
            own = own_library(client)
            own.parent.mkdir(exist_ok=True)
            shutil.copy2(FOLDER / client.slot, own)
        done.write_text(plan)
    for program in (*PROGRAMS.glob("*.js"), *PROGRAMS.glob("*.mjs")):
        shutil.copy2(program, FOLDER / "npm")  # modules are found from where a program lies
    call([str(FOLDER / "python" / "bin" / "python"), str(PROGRAMS / "models.py"), str(FOLDER / "models")])


def own_library(client: Client) -> pathlib.Path:
    return FOLDER / "own" / client.slot.replace("/", "_")


def command(client: Client, scratch: str) -> list[str]:
    node = not client.program.endswith(".py")
    program = FOLDER / "npm" / client.program if node else PROGRAMS / client.program
    start = ["node"] if node else [str(FOLDER / "python" / "bin" / "python")]
    places = {"models": FOLDER / "models", "digits": DIGITS, "scratch": scratch, "site": FOLDER / "python" / SITE}
    return [*start, str(program), *client.arguments.format(**places).split()]


def link(client: Client, library: pathlib.Path) -> None:
    slot = FOLDER / client.slot
    slot.unlink(missing_ok=True)
    slot.symlink_to(library.resolve())


def run(client: Client, library: pathlib.Path) -> tuple[dict[str, dict], str]:
    """Each check, and how the program ended: empty where all is well."""
    link(client, library)
    environment = os.environ | {"ORT_DISABLE_TELEMETRY": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as scratch:
        try:
            done = subprocess.run(command(client, scratch), capture_output=True, text=True, env=environment, timeout=600, cwd=scratch)
            status, output, errors = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            status, output, errors = -signal.SIGALRM, (late.stdout or b"").decode(), "it did not end within 600 seconds"
    checks = {}
    for line in output.splitlines():
        if line.startswith('{"check"'):
            one = json.loads(line)
            checks[one["check"]] = one
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return checks, "" if status == 0 else f"{how}: {errors.strip()[-300:]}"


def difference(one: object, two: object, tolerance: float, where: str = "") -> str | None:
    """Where and how two values differ."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, two))
    if numbers and abs(one - two) <= 1e-6 + tolerance * max(abs(one), abs(two)):  # type: ignore[operator]
        return None
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        pairs = ((f"{where}[{i}]", *pair) for i, pair in enumerate(zip(one, two)))
    elif isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        pairs = ((f"{where}.{key}", one[key], two[key]) for key in one)
    else:
        return None if one == two else f"{where}: {json.dumps(one)[:120]} with ONNX Runtime, {json.dumps(two)[:120]} with ours"
    return next((found for place, *values in pairs if (found := difference(*values, tolerance, place))), None)


def failure(theirs: dict, ours: dict | None, ended: str, tolerance: float) -> str | None:
    if ours is None:
        return f"it did not run: {ended or 'the program ended before'}"
    if not ours["ok"]:
        return ours.get("note") or "it failed"
    return difference(theirs.get("value"), ours.get("value"), tolerance)


def compare(name: str, library: pathlib.Path | None, pattern: re.Pattern, verbose: bool) -> tuple[int, int, int]:
    """The numbers of checks that passed, failed, and do not pass with ONNX Runtime's own library."""
    client = CLIENTS[name]
    theirs, their_end = run(client, own_library(client))
    ours, our_end = run(client, library) if library else ({}, "")
    link(client, own_library(client))
    counts = [0, 0, 0]
    if their_end:
        counts[2] += 1
        print(f"unusable {name}: {their_end} (with ONNX Runtime's own library)")
    for check, one in theirs.items():
        if not pattern.search(check):
            continue
        if not one["ok"]:
            counts[2] += 1
            print(f"unusable {name}: {check}: {one.get('note', '')} (with ONNX Runtime's own library)")
            continue
        why = failure(one, ours.get(check), our_end, client.tolerance) if library else None
        counts[1 if why else 0] += 1
        if why:
            print(f"FAIL {name}: {check}: {why}")
        elif verbose:
            print(f"pass {name}: {check}")
    if our_end and all(check in ours for check in theirs):
        counts[1] += 1
        print(f"FAIL {name}: the end: {our_end}")
    return counts[0], counts[1], counts[2]


def time_runs(library: pathlib.Path, rounds: int = 5) -> None:
    """The medians of a run from Node, one thread."""
    client = dataclasses.replace(CLIENTS["node"], program="time.js")
    for model in ("digits", "add"):
        medians: dict[str, list[float]] = {"ONNX Runtime": [], "ours": []}
        for _ in range(rounds):
            for whose, file in (("ONNX Runtime", own_library(client)), ("ours", library)):
                link(client, file)
                path = DIGITS if model == "digits" else FOLDER / "models" / "add.onnx"
                done = subprocess.run(
                    ["node", str(FOLDER / "npm" / "time.js"), str(path), model],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=os.environ | {"ORT_DISABLE_TELEMETRY": "1"},
                )
                medians[whose].append(float(done.stdout))
        print(f"{model}: " + ", ".join(f"{whose} {statistics.median(values):.1f} us" for whose, values in medians.items()))
    link(client, own_library(client))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", metavar="client", help=f"of {', '.join(CLIENTS)}; default: all")
    parser.add_argument("--library", type=pathlib.Path, default=LIBRARY, help="Sardonyx's library (default: that of build/release)")
    parser.add_argument("--theirs", action="store_true", help="run with ONNX Runtime's own library alone")
    parser.add_argument("-k", type=re.compile, default=re.compile(""), metavar="RE", help="only checks whose name matches")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for checks that pass, too")
    parser.add_argument("--list", action="store_true", help="list the clients")
    parser.add_argument("--time", action="store_true", help="measure runs from Node, and check nothing")
    options = parser.parse_args()
    if options.list:
        for name, client in CLIENTS.items():
            print(f"{name:14}{client.about}")
        return 0
    if unknown := [name for name in options.clients if name not in CLIENTS]:
        parser.error(f"there is no client {unknown[0]!r}; --list tells which there are")
    if not options.theirs and not options.library.exists():
        parser.error(f"{options.library} is not there: build the target sardonyx_onnxruntime first")
    set_up()
    if options.time:
        time_runs(options.library)
        return 0
    counts = [compare(name, None if options.theirs else options.library, options.k, options.verbose) for name in options.clients or CLIENTS]
    passed, failed, unusable = (sum(column) for column in zip(*counts))
    if unusable:
        print(f"{unusable} checks are unusable: they fail with ONNX Runtime's own library")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or unusable else 0


if __name__ == "__main__":
    sys.exit(main())
