#!/usr/bin/env python3
"""Compiles for Windows what Sardonyx is built from: tools/windows_libraries.py [--with-tests]

Debian has its libraries for Windows in source form only, but for zlib. The sources of its packages are fetched by apt,
which checks their signatures, patched as Debian patches them, and compiled by cmake/toolchains/windows.cmake into
build/windows-libraries/installed. What is there already stays. Needs apt, dpkg-dev and the packages of the group [windows] of
tools/apt-packages.txt.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "windows-libraries"
INSTALLED = WORK / "installed"

# Debian's source package: options of its CMake.
LIBRARIES = {
    "fmtlib": ["-DFMT_TEST=OFF", "-DFMT_DOC=OFF"],
    "highway": ["-DHWY_ENABLE_TESTS=OFF", "-DHWY_ENABLE_EXAMPLES=OFF", "-DHWY_ENABLE_CONTRIB=OFF", "-DBUILD_TESTING=OFF"],
    "re2": ["-DRE2_BUILD_TESTING=OFF"],
    "nlohmann-json3": ["-DJSON_BuildTests=OFF"],
    "cli11": ["-DCLI11_BUILD_TESTS=OFF", "-DCLI11_BUILD_EXAMPLES=OFF", "-DCLI11_BUILD_DOCS=OFF"],
    "libpng1.6": ["-DPNG_SHARED=OFF", "-DPNG_TESTS=OFF"],
    "libjpeg-turbo": ["-DENABLE_SHARED=OFF", "-DWITH_TURBOJPEG=OFF", "-DWITH_SIMD=OFF"],
}
# Files that Debian's package makes anew before it compiles.
MADE_FIRST = {"re2": ["make", "REBUILD_TABLES=1", "re2/perl_groups.cc", "re2/unicode_groups.cc", "re2/unicode_casefold.cc"]}
TESTS = {"googletest": ["-DBUILD_GMOCK=OFF", "-Dgtest_disable_pthreads=OFF"]}


def tried(*command: str | pathlib.Path, folder: pathlib.Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def run(*command: str | pathlib.Path, folder: pathlib.Path = ROOT) -> str:
    done = tried(*command, folder=folder)
    if done.returncode != 0:
        sys.exit(f"windows_libraries: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def apt_with(archives: list[str]) -> list[str]:
    """apt-get, which then sees the sources of these archives alone, and writes nothing outside of WORK."""
    apt = WORK / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text("".join(f"deb-src {archive}\n" for archive in archives))
    apt_get = ["apt-get", "-o", f"Dir::Etc::SourceList={apt}/sources.list", "-o", "Dir::Etc::SourceParts=-",
               "-o", f"Dir::State::Lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache", "-o", "APT::Sandbox::User="]
    run(*apt_get, "update", "-q")
    return apt_get


def fetch(packages: list[str]) -> None:
    """The sources of the archives that this system's packages come from."""
    listed = run("apt-get", "indextargets", "Created-By: Packages", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)")
    archives = sorted({line for line in listed.splitlines() if line.strip()})
    source = ["source", "-q", "--only-source", *packages]
    if tried(*apt_with(archives), *source, folder=WORK / "sources").returncode == 0:
        return
    print("windows_libraries: the sources of the newest packages can't be fetched; trying those of the release", file=sys.stderr)
    release = [archive for archive in archives if "-security" not in archive and "-updates" not in archive]
    run(*apt_with(release), *source, folder=WORK / "sources")


def source_of(package: str) -> pathlib.Path:
    """The folder that a package's sources were unpacked to: that of its .dsc file, by name and version."""
    descriptions = sorted((WORK / "sources").glob(f"{package}_*.dsc"))
    if not descriptions:
        sys.exit(f"windows_libraries: apt brought no sources of {package}")
    version = descriptions[-1].name.removeprefix(package + "_").removesuffix(".dsc").rsplit("-", 1)[0]
    return WORK / "sources" / f"{package}-{version}"


def install(package: str, options: list[str]) -> None:
    build, source = WORK / "build" / package, source_of(package)
    if package in MADE_FIRST:
        run(*MADE_FIRST[package], folder=source)
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF",
        "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/toolchains/windows.cmake", f"-DCMAKE_INSTALL_PREFIX={INSTALLED}", *options)
    run("cmake", "--build", build, "--parallel", str(os.cpu_count() or 1))
    run("cmake", "--install", build)
    if package == "re2":  # its CMake tells pkg-config nothing
        (INSTALLED / "lib/pkgconfig/re2.pc").write_text(
            f"Name: re2\nDescription: regular expressions\nVersion: 0\nCflags: -I{INSTALLED}/include\nLibs: -L{INSTALLED}/lib -lre2\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--with-tests", action="store_true", help="also what the tests are built from")
    wanted = LIBRARIES | (TESTS if parser.parse_args().with_tests else {})
    stamps = WORK / "stamps"
    for folder in (stamps, WORK / "sources", INSTALLED):
        folder.mkdir(parents=True, exist_ok=True)
    missing = [package for package in wanted if not (stamps / package).exists()]
    if not missing:
        return
    print(f"compiling for Windows: {' '.join(missing)}", file=sys.stderr)
    fetch(missing)
    for package in missing:
        install(package, wanted[package])
        (stamps / package).touch()
    for folder in ("sources", "build", "apt"):
        shutil.rmtree(WORK / folder)


if __name__ == "__main__":
    main()
