#!/usr/bin/env python3
"""Makes self-contained wheels and tries each: ./dev wheel [--python PYTHON]…

For every Python that is named (default: the one that runs this) build/wheels gets a wheel that carries the libraries it
needs and says by its tag (manylinux) which systems it runs on. One wheel of the stable interface serves every Python from
3.12 on. Each Python then installs its wheel into an environment of its own and runs a model with it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
TOOLS = ("auditwheel", "patchelf")
MOST_BYTES = 15 << 20
OUTER = ("libwebp", "libtiff", "libopenjp2")  # loaded from the system when an image needs them

PROBE = """
import json, platform, sysconfig
print(json.dumps({"version": list(map(int, platform.python_version_tuple()[:2])),
                  "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED"))}))
"""

# What an installed wheel must do, in a folder that is not the source tree.
TRIAL = """
import json, subprocess, sys, time
import numpy
start = time.perf_counter()
import sardonyx
seconds = time.perf_counter() - start
if hasattr(sys, "_is_gil_enabled") and {free_threaded}:
    assert not sys._is_gil_enabled(), "importing the package has turned the lock on"
assert "site-packages" in sardonyx.__file__, sardonyx.__file__
image = numpy.zeros((1, 1, 16, 16), numpy.float32)
out = sardonyx.Session({model!r}).run({{"image": image}})
assert abs(float(out["probabilities"].sum()) - 1) < 1e-4
try:
    sardonyx.Session({model!r}).run({{"image": image[0]}})
except sardonyx.BadInputError:
    pass
else:
    raise AssertionError("an image without a batch passes")
assert sardonyx.check({model!r}, full=True).ok
pixels = sardonyx.Session(sardonyx.parse({decoder!r})).run([numpy.frombuffer(open({image!r}, "rb").read(), numpy.uint8)])[0]
assert pixels.ndim == 3, pixels.shape
print(json.dumps({{"import_ms": round(seconds * 1000, 1), "version": sardonyx.__version__}}))
"""
DECODER = """<ir_version: 9, opset_import: ["": 20]>
decode (uint8[n] bytes) => (uint8[h,w,3] pixels) { pixels = ImageDecoder (bytes) }"""


@dataclasses.dataclass
class Python:
    path: str
    version: tuple[int, int]
    free_threaded: bool

    @property
    def tag(self) -> str:
        return f"cp{self.version[0]}{self.version[1]}{'t' if self.free_threaded else ''}"

    @property
    def wheel(self) -> str:
        """The first part of its wheel's tags: that of 3.12 serves later ones."""
        return self.tag if self.free_threaded or self.version < (3, 12) else "cp312-abi3"


def run(*command, **options) -> str:
    words = [str(word) for word in command]
    print("$ " + " ".join(words), file=sys.stderr, flush=True)
    made = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if made.returncode:
        sys.exit(f"exit code {made.returncode}\n{made.stdout}")
    return made.stdout


def probe(path: str) -> Python:
    try:
        made = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, check=True)
        found = json.loads(made.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        sys.exit(f"'{path}' is no Python that runs: {error}")
    version = tuple(found["version"])
    if version < (3, 10):
        sys.exit(f"'{path}' is Python {version[0]}.{version[1]}; wheels are for 3.10 and later")
    return Python(path, version, found["free_threaded"])


def environment(folder: pathlib.Path, python: str, *packages: str) -> pathlib.Path:
    """A virtual environment with packages, made once; returns its Python."""
    stamp = folder / "made-of.txt"
    wanted = "\n".join((python, *packages))
    inside = folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        run(python, "-m", "venv", folder)
        run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
        stamp.write_text(wanted)
    return inside


def requirements() -> list[str]:
    """What building takes, as pyproject.toml says."""
    text = (ROOT / "pyproject.toml").read_text()
    return re.findall(r'"([^"]+)"', re.search(r"^requires = \[(.*?)\]", text, re.M)[1])


def make(python: Python, raw: pathlib.Path) -> pathlib.Path:
    """The wheel as the build makes it."""
    inside = environment(BUILD / "wheel-env" / python.tag, python.path, *requirements(), "ninja", "wheel")
    raw.mkdir(parents=True)
    variables = dict(os.environ, SKBUILD_BUILD_DIR=str(BUILD / f"wheel-{python.tag}"),
                     PATH=f"{inside.parent}:{os.environ['PATH']}")
    if shutil.which("ccache"):
        variables.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
        variables.setdefault("CXX", "c++")  # as the other builds call it, so that they share what is in the cache
    run(inside, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
        "--wheel-dir", raw, "--config-settings=cmake.define.SARDONYX_WERROR=ON", env=variables)
    return next(raw.glob("*.whl"))


def repair(wheel: pathlib.Path, output: pathlib.Path) -> pathlib.Path:
    """The same with what it is linked to inside, and a tag that says which systems it runs on."""
    tools = environment(BUILD / "wheel-env" / "tools", sys.executable, *TOOLS).parent
    before = set(output.glob("*.whl"))
    run(tools / "auditwheel", "repair", "--wheel-dir", output, wheel, env=dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}"))
    made = set(output.glob("*.whl")) - before
    return made.pop() if made else max(output.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def problems(wheel: pathlib.Path, python: Python) -> list[str]:
    """What is wrong with a finished wheel."""
    found = []
    if "-manylinux_2_" not in wheel.name:
        found.append(f"its tag names no manylinux: {wheel.name}")
    expected = python.wheel if "abi3" in python.wheel else f"{python.tag.rstrip('t')}-{python.tag}"
    if f"-{expected}-" not in wheel.name:
        found.append(f"its tag is not {expected}: {wheel.name}")
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"it has {wheel.stat().st_size} bytes, more than {MOST_BYTES}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    package = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python" / "sardonyx").rglob("*")
               if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
    found += [f"{name} is not in it" for name in sorted(package - set(names))]
    licences = {pathlib.Path(name).name for name in names if "/licenses/" in name}
    found += [f"the licence {name} is not in it" for name in ("LICENSE", "nanobind.txt", "fmt.txt", "re2.txt") if name not in licences]
    strange = [name for name in names if not re.match(r"sardonyx(/|\.libs/|-[0-9.]+\.dist-info/)", name)]
    found += [f"{name} has no place in it" for name in strange[:5]]
    found += [f"{name} should not be in it" for name in names if any(outer in name for outer in OUTER)]
    return found


def attempt(python: Python, wheel: pathlib.Path) -> dict:
    """Installs the wheel into a new environment and runs a model."""
    folder = BUILD / "wheel-env" / f"trial-{python.tag}"
    shutil.rmtree(folder, ignore_errors=True)
    run(python.path, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    digits = ROOT / "examples" / "digits"
    script = TRIAL.format(free_threaded=python.free_threaded, model=str(digits / "digits.onnx"), decoder=DECODER,
                          image=str(digits / "seven.png"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    run(inside, "-c", script, cwd=folder, env=clean)  # once, so that files are in memory
    return min((json.loads(run(inside, "-c", script, cwd=folder, env=clean).splitlines()[-1]) for _ in range(3)),
               key=lambda told: told["import_ms"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", metavar="PYTHON", help="a Python to make a wheel for; repeatable")
    options = parser.parse_args()
    pythons = [probe(path) for path in options.python or [sys.executable]]
    output = BUILD / "wheels"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    wheels: dict[str, pathlib.Path] = {}
    status = 0
    for python in sorted(pythons, key=lambda one: one.version):
        if python.wheel not in wheels:
            raw = make(python, output / "raw" / python.tag)
            wheels[python.wheel] = repair(raw, output)
            found = problems(wheels[python.wheel], python)
            status |= bool(found)
            for problem in found:
                print(f"{wheels[python.wheel].name}: {problem}")
        told = attempt(python, wheels[python.wheel])
        wheel = wheels[python.wheel]
        print(f"Python {python.version[0]}.{python.version[1]}{'t' if python.free_threaded else ''}: {wheel.name}, "
              f"{wheel.stat().st_size / 1e6:.1f} MB, import after numpy's {told['import_ms']} ms", flush=True)
    shutil.rmtree(output / "raw", ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
