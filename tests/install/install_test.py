#!/usr/bin/env python3
"""Installs a built tree, moves it, and builds programs in C and C++ against it, as other people would.

    install_test.py --build build/release --work FOLDER --cmake cmake --generator Ninja --cc cc --cxx c++
                    [--linker-flags=FLAGS] [--inside]

With --inside the library is also compiled as a part of another project, which takes as long as compiling it takes;
without, such a project is configured and asked what it would build.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
MODEL = ROOT / "examples" / "digits" / "digits.onnx"
RUN_C = ROOT / "examples" / "c" / "run.c"
OPERATORS = ROOT / "examples" / "custom_operators"


class Failure(Exception):
    pass


def step(*command, fails: bool = False, environment: dict[str, str] | None = None) -> str:
    """Runs a command that has to succeed, or to fail; returns what it wrote."""
    words = [str(word) for word in command]
    print("$ " + shlex.join(words), flush=True)
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=dict(os.environ, **(environment or {})))
    if (result.returncode != 0) != fails:
        raise Failure(f"exit code {result.returncode}\n{result.stdout}")
    return result.stdout


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Failure(message)


class Test:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.work = options.work
        self.prefix = options.work / "prefix"
        self.linker = shlex.split(options.linker_flags)

    def configure(self, source: pathlib.Path, build: str, *more, fails: bool = False) -> str:
        return step(self.options.cmake, "-S", source, "-B", self.work / build, "-G", self.options.generator,
                    f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_C_COMPILER={self.options.cc}",
                    f"-DCMAKE_CXX_COMPILER={self.options.cxx}", f"-DCMAKE_EXE_LINKER_FLAGS={self.options.linker_flags}",
                    *more, fails=fails)

    def build(self, build: str, *more) -> str:
        return step(self.options.cmake, "--build", self.work / build, *more)

    # --- what is installed ---------------------------------------------------------------------

    def install(self) -> None:
        """Each component has what is its own, and all together are the whole."""
        files = {}
        for component in ("runtime", "development", "program", "onnxruntime", None):
            folder = self.work / (component or "first")
            chosen = ["--component", component] if component else []
            step(self.options.cmake, "--install", self.options.build, "--prefix", folder, *chosen)
            files[component] = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
        licences = {name for name in files["runtime"] if name.startswith("share/doc/")}
        require({"LICENSE", "README.md", "fmt.txt", "cli11.txt"} <= {pathlib.Path(name).name for name in licences},
                f"licences are missing: {sorted(licences)}")
        own = {name: files[name] - licences for name in ("runtime", "development", "program", "onnxruntime")}
        for name, found in own.items():
            require(licences <= files[name], f"component {name} has no licences")
            for other, others in own.items():
                require(name == other or not found & others, f"{name} and {other} both have {sorted(found & others)}")
        whole = licences.union(*own.values())
        require(files[None] == whole, f"of no component, or of none but that: {sorted(files[None] ^ whole)[:5]}")
        names = {name: {pathlib.Path(file).name for file in found} for name, found in own.items()}
        require({"libsardonyx.so.0"} <= names["runtime"] and len(names["runtime"]) == 2, f"runtime: {names['runtime']}")
        require({"libsardonyx.so", "libsardonyx.a", "sardonyx.h", "sardonyx.pc", "sardonyx-static.pc",
                 "sardonyx-config.cmake"} <= names["development"], f"development: {names['development']}")
        require("bin/sardonyx" in own["program"], f"program: {own['program']}")
        require({"libonnxruntime.so", "libonnxruntime.so.1"} <= names["onnxruntime"] and len(names["onnxruntime"]) == 4,
                f"onnxruntime: {names['onnxruntime']}")
        headers = {path.name for path in (ROOT / "include" / "sardonyx").iterdir()}
        require(headers == {pathlib.Path(name).name for name in files[None] if name.startswith("include/")},
                "the installed headers are not those of the sources")
        (self.work / "first").rename(self.prefix)
        require("0." in step(self.prefix / "bin" / "sardonyx", "--version"), "the program does not say its version")

    def names_no_folder(self) -> None:
        """Nothing installed knows where it was built or installed first."""
        places = [str(place).encode() for place in (ROOT, self.options.build, self.work)]
        if self.release():
            for path in sorted(self.prefix.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    data = path.read_bytes()
                    for place in places:
                        require(place not in data, f"{path.relative_to(self.prefix)} names the folder {place.decode()}")

    def release(self) -> bool:
        """Other build types have debug information, which names files."""
        cache = (self.options.build / "CMakeCache.txt").read_text()
        return bool(re.search(r"^CMAKE_BUILD_TYPE:\w+=Release$", cache, re.M))

    # --- who uses it ---------------------------------------------------------------------------

    def cmake_users(self) -> None:
        source = HERE
        run_c = f"-DRUN_C={RUN_C}"
        self.configure(source, "both", "-DKINDS=static;shared;onnxruntime", run_c)
        self.build("both")
        for name in ("static_cxx", "static_c", "shared_cxx", "shared_c", "default_cxx", "default_c"):
            step(self.work / "both" / name, MODEL)
            self.links(self.work / "both" / name, not name.startswith("shared_"))
        said = step(self.work / "both" / "table")
        require("+sardonyx." in said, f"the program found another table: {said}")
        self.configure(source, "shared", "-DBUILD_SHARED_LIBS=ON", run_c)
        self.build("shared", "--target", "default_c")
        self.links(self.work / "shared" / "default_c", False)
        # A machine that has nothing but a compiler: the shared library needs no more, the static one says what it needs.
        bare = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "PkgConfig", "ZLIB", "PNG", "JPEG")]
        self.configure(source, "bare", "-DKINDS=shared", run_c, *bare)
        said = self.configure(source, "bare_static", "-DKINDS=static", run_c, *bare, fails=True)
        said = re.sub(r"\s+", " ", said)
        for word in ("the static library needs what is not found", "libfmt-dev", "libre2-dev", "zlib1g-dev"):
            require(word in said, f"'{word}' is not in: {said}")
        self.configure(source, "bare_default", run_c, *bare)
        said = re.sub(r"\s+", " ", self.configure(source, "strange", "-DKINDS=headers;quick", run_c, fails=True))
        require("there is no component 'quick'" in said, said)

    def links(self, program: pathlib.Path, static: bool) -> None:
        needed = step("readelf", "--dynamic", "--wide", program)
        require(("libsardonyx.so.0" in needed) != static, f"{program} is linked to the wrong kind:\n{needed}")

    def pkg_config_users(self) -> None:
        folder = next(self.prefix.rglob("sardonyx.pc")).parent
        environment = {"PKG_CONFIG_PATH": str(folder)}
        for package, static in (("sardonyx", False), ("sardonyx-static", True)):
            flags = step("pkg-config", "--cflags", "--libs", package, environment=environment).split()
            require(str(self.prefix) in " ".join(flags), f"{package} was moved, and its flags name another place: {flags}")
            for language, compiler, source in (("cxx", [self.options.cxx, "-std=c++20"], HERE / "main.cc"),
                                               ("c", [self.options.cc, "-std=c99"], RUN_C)):
                program = self.work / f"pc_{package}_{language}"
                step(*compiler, source, "-o", program, *self.linker, *flags)
                step(program, MODEL, environment={"LD_LIBRARY_PATH": str(folder.parent)})
                self.links(program, static)
        # The shared library alone: nothing else has to be there.
        alone = self.work / "alone"
        alone.mkdir()
        shutil.copy(folder / "sardonyx.pc", alone)
        step("pkg-config", "--cflags", "--libs", "sardonyx", environment={"PKG_CONFIG_LIBDIR": str(alone)})
        private = step("pkg-config", "--static", "--libs", "sardonyx", environment={"PKG_CONFIG_LIBDIR": str(alone)})
        require("-lfmt" in private and "-lre2" in private and "-lz" in private, f"--static gives {private}")

    def operators(self) -> None:
        """A library of operators, which needs the headers alone, and a program with one of its own."""
        self.configure(OPERATORS, "operators")
        self.build("operators")
        library = self.work / "operators" / "example_operators.so"
        step(self.work / "operators" / "own_operator", library)
        step(self.prefix / "bin" / "sardonyx", "run", OPERATORS / "model.onnxtxt", "--input", "x=ones", "--library", library)

    def inside(self) -> None:
        """As a part of another project: its targets, and nothing that the project did not ask for."""
        for name, more in (("subdirectory", []), ("fetched", ["-DFETCH=ON", "-DBUILD_SHARED_LIBS=ON"])):
            self.configure(HERE / "inside", name, f"-DSARDONYX={ROOT}", "-DCMAKE_BUILD_TYPE=Release",
                           "-DSARDONYX_WERROR=ON", f"-DCMAKE_CXX_COMPILER_LAUNCHER={shutil.which('ccache') or ''}", *more)
            if self.options.generator == "Ninja":
                would = self.build(name, "--", "-t", "commands", "inside")
                wanted, other = ("libsardonyx.so", "libsardonyx.a") if more else ("libsardonyx.a", "libsardonyx.so")
                require(wanted in would and other not in would, f"{name}: builds another library than {wanted}")
                would = self.build(name, "--", "-t", "commands", "all")
                require("gtest" not in would and "/cli/" not in would, f"{name}: builds tests or the program unasked")
            script = (self.work / name / "cmake_install.cmake").read_text()
            require("libsardonyx" not in script, f"{name}: installs Sardonyx unasked")
        if self.options.inside:
            self.build("subdirectory", "--parallel", str(os.cpu_count()))
            for program in ("inside", "inside_static", "inside_shared"):
                step(self.work / "subdirectory" / program, MODEL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--generator", default="Ninja")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--linker-flags", default="")
    parser.add_argument("--inside", action="store_true")
    options = parser.parse_args()
    options.build, options.work = options.build.resolve(), options.work.resolve()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    test = Test(options)
    try:
        test.install()
        test.names_no_folder()
        test.cmake_users()
        test.pkg_config_users()
        test.operators()
        test.inside()
    except Failure as failure:
        print(f"failed: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
