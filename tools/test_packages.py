#!/usr/bin/env python3
"""Installs the Debian packages into a fresh system and builds programs there, as docs/install.md says.

    tools/test_packages.py build/release/packages     # needs root, mmdebstrap and Debian's mirror; minutes

The system is made by mmdebstrap of this machine's release of Debian, once, and kept beside the packages' folder. What
apt must fetch for the packages comes from the mirror, so that their dependencies are tested too.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "install.md"
MIRROR = "http://deb.debian.org/debian"


def run(*command, **options) -> subprocess.CompletedProcess:
    print("$ " + " ".join(str(word) for word in command), flush=True)
    return subprocess.run([str(word) for word in command], check=True, **options)


def codename() -> str:
    found = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)
    if found is None:
        sys.exit("/etc/os-release names no release of Debian")
    return found[1]


class System:
    """A root folder with nothing but a minimal Debian."""

    def __init__(self, folder: pathlib.Path, archive: pathlib.Path):
        self.folder = folder
        if not archive.exists():
            made = archive.with_suffix(".part.tar")
            made.unlink(missing_ok=True)
            run("mmdebstrap", "--variant=apt", "--format=tar", "--aptopt=Acquire::Retries \"5\"", codename(), made, MIRROR)
            made.rename(archive)
        run("tar", "--extract", "--file", archive, "--directory", folder, "--exclude=./dev/*")
        (folder / "dev").mkdir(exist_ok=True)
        for device, numbers in (("null", "1 3"), ("zero", "1 5"), ("urandom", "1 9"), ("random", "1 8")):
            run("mknod", "-m", "666", folder / "dev" / device, "c", *numbers.split())
        shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")
        (folder / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (folder / "usr/sbin/policy-rc.d").chmod(0o755)

    def __call__(self, script: str) -> str:
        """Runs a script in it that has to succeed; returns what it wrote."""
        print("".join(f"(root) $ {line}\n" for line in script.strip().splitlines()), end="", flush=True)
        made = subprocess.run(["chroot", self.folder, "/bin/bash", "-euo", "pipefail", "-c", script], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
                                   "LC_ALL": "C.UTF-8", "HOME": "/root"})
        if made.returncode:
            sys.exit(f"exit code {made.returncode}\n{made.stdout}")
        return made.stdout

    def install(self, *packages: str, recommends: bool) -> str:
        option = "" if recommends else "--no-install-recommends "
        return self(f"apt-get install -y -q -o Acquire::Retries=5 {option}{' '.join(packages)}")

    def installed(self) -> set[str]:
        return set(self("dpkg-query -W -f '${Package}\\n'").split())


def require(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"failed: {message}")


def test(system: System, packages: dict[str, str]) -> None:
    before = system.installed()
    files_before = set(system("find / -xdev -name '*sardonyx*' -not -path '/packages/*' -not -path '/sources/*'").split())
    system("apt-get update -q -o Acquire::Retries=5")

    # The program: its package, the library's, and what these depend on.
    system.install(packages["libsardonyx0"], packages["sardonyx"], recommends=False)
    require("0." in system("sardonyx --version"), "the program does not say its version")
    said = system("cd /sources/digits && ! sardonyx run digits.onnx --input image=seven.png --labels labels.txt")
    require("libpng16.so.16" in said, f"what is missing for a PNG image is not named:\n{said}")
    recommended = system("dpkg-query -W -f '${Recommends}' libsardonyx0").replace(",", " ").split()
    system.install(*recommended, recommends=False)
    said = system("cd /sources/digits && sardonyx run digits.onnx --input image=seven.png --labels labels.txt")
    require(re.search(r"\bseven\b|\b7\b", said) is not None, f"the program does not recognise the digit:\n{said}")
    require("libfmt-dev" not in system.installed(), "the program wants development packages")

    # The shared library: a compiler, the development package, and nothing that it recommends.
    system.install("g++", "cmake", "make", "pkg-config", recommends=False)
    system.install(packages["libsardonyx-dev"], recommends=False)
    require(not {"libfmt-dev", "libre2-dev"} & system.installed(), "the development package wants what only the static library needs")
    system("cmake -S /sources/install -B /build/shared -D KINDS=shared -D RUN_C=/sources/run.c && cmake --build /build/shared"
           " && /build/shared/shared_cxx /sources/digits/digits.onnx && /build/shared/shared_c /sources/digits/digits.onnx"
           " && /build/shared/default_cxx /sources/digits/digits.onnx")
    system("g++ -std=c++20 /sources/install/main.cc -o /build/pc $(pkg-config --cflags --libs sardonyx)"
           " && /build/pc /sources/digits/digits.onnx")
    system("gcc -std=c99 /sources/run.c -o /build/pc_c $(pkg-config --cflags --libs sardonyx)"
           " && /build/pc_c /sources/digits/digits.onnx")
    said = system("! cmake -S /sources/install -B /build/refused -D KINDS=static -D RUN_C=/sources/run.c 2>&1")
    require("libfmt-dev" in said and "libre2-dev" in said, f"CMake does not name the missing packages:\n{said}")

    # The static library: what the development package recommends is what it needs.
    recommended = system("dpkg-query -W -f '${Recommends}' libsardonyx-dev").replace(",", " ").split()
    system.install(*recommended, recommends=False)
    system("cmake -S /sources/install -B /build/static -D 'KINDS=static;shared' -D RUN_C=/sources/run.c && cmake --build /build/static"
           " && /build/static/static_cxx /sources/digits/digits.onnx && /build/static/static_c /sources/digits/digits.onnx")
    system("g++ -std=c++20 /sources/install/main.cc -o /build/pc_static $(pkg-config --cflags --libs sardonyx-static)"
           " && ! readelf -d /build/pc_static | grep libsardonyx && /build/pc_static /sources/digits/digits.onnx")
    system("gcc -std=c99 /sources/run.c -o /build/pc_static_c $(pkg-config --cflags --libs sardonyx-static)"
           " && /build/pc_static_c /sources/digits/digits.onnx")

    # Removed, they leave nothing.
    system("apt-get purge -y -q libsardonyx0 libsardonyx-dev sardonyx && rm -rf /build")
    files = set(system("find / -xdev -name '*sardonyx*' -not -path '/packages/*' -not -path '/sources/*'").split())
    require(files <= files_before, f"left behind: {sorted(files - files_before)}")
    require(before <= system.installed(), "a package of the system went away")


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    made = pathlib.Path(sys.argv[1]).resolve()
    packages = {file.name.split("_")[0]: f"/packages/{file.name}" for file in sorted(made.glob("*.deb"))}
    require(set(packages) == {"libsardonyx0", "libsardonyx-dev", "sardonyx", "libsardonyx-onnxruntime"}, f"{made} holds {sorted(packages)}")
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        pathlib.Path(folder).chmod(0o755)
        system = System(pathlib.Path(folder), made.parent / f"debian-{codename()}.tar")
        shutil.copytree(made, system.folder / "packages", ignore=lambda _, names: [n for n in names if not n.endswith(".deb")])
        sources = system.folder / "sources"
        shutil.copytree(ROOT / "tests" / "install", sources / "install")
        shutil.copytree(ROOT / "examples" / "digits", sources / "digits")
        shutil.copy(ROOT / "examples" / "c" / "run.c", sources)
        test(system, packages)
    print("packages: installed, used and removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
