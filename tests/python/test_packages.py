"""The Debian packages of the built tree: what is in them, what they depend on, and that they are the same each time.

`./dev package --test` installs them into a fresh system and builds programs there, which takes minutes.
"""

from __future__ import annotations

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest
from conftest import ROOT

NAMES = ("libsardonyx0", "libsardonyx-dev", "sardonyx", "libsardonyx-onnxruntime")


def run(*command, **options) -> str:
    made = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert made.returncode == 0, f"{command}\n{made.stdout}"
    return made.stdout


def make(build: pathlib.Path, folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Packages made by cpack, compressed quickly."""
    run("cpack", "-G", "DEB", "-B", folder, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", cwd=build,
        env=dict(os.environ, SOURCE_DATE_EPOCH="1764028800"))
    return {path.name.split("_")[0]: path for path in folder.glob("*.deb")}


@pytest.fixture(scope="module")
def build(sardonyx) -> pathlib.Path:
    build = pathlib.Path(sardonyx.path).resolve().parents[1]
    for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if not (build / "shared" / "sardonyx-shared").exists():
        pytest.skip("the shared library and a program with it are not built")
    return build


@pytest.fixture(scope="module")
def packages(build, tmp_path_factory) -> dict[str, pathlib.Path]:
    return make(build, tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory) -> dict[str, pathlib.Path]:
    folder = tmp_path_factory.mktemp("unpacked")
    for name, path in packages.items():
        run("dpkg-deb", "--raw-extract", path, folder / name)
    return {name: folder / name for name in packages}


def fields(path: pathlib.Path) -> dict[str, str]:
    found = {}
    for line in run("dpkg-deb", "--field", path).splitlines():
        if line[:1] in " \t":
            found[last] += "\n" + line.strip()
        else:
            last, _, value = line.partition(": ")
            found[last] = value
    return found


def depends(path: pathlib.Path, field: str = "Depends") -> dict[str, str]:
    """Package: what is asked of its version."""
    listed = [one.strip().partition(" ") for one in fields(path).get(field, "").split(",")]
    return {name: version.strip("()") for name, _, version in listed if name}


def contents(folder: pathlib.Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")
            if "DEBIAN" not in path.parts and (path.is_symlink() or not path.is_dir())}


def test_all_are_of_one_version(packages):
    assert set(packages) == set(NAMES)
    versions = {fields(path)["Version"] for path in packages.values()}
    assert len(versions) == 1
    version = versions.pop()
    text = (ROOT / "CMakeLists.txt").read_text()
    assert version.rsplit("-", 1)[0] == re.search(r"project\(sardonyx VERSION ([0-9.]+)", text)[1]
    changelog = (ROOT / "packaging" / "debian" / "changelog").read_text()
    assert changelog.startswith(f"sardonyx ({version}) ")
    for name, path in packages.items():
        assert path.name == f"{name}_{version}_{fields(path)['Architecture']}.deb"


def test_dependencies(packages):
    version = fields(packages["sardonyx"])["Version"]
    library = depends(packages["libsardonyx0"])
    assert {"libc6", "libstdc++6", "libgcc-s1"} <= set(library)
    assert any(name.startswith("libfmt") for name in library) and any(name.startswith("libre2-") for name in library)
    assert not any(name.endswith("-dev") for name in library), "a shared library needs no development package"
    images = ("libpng", "libjpeg", "libwebp", "libtiff", "libopenjp2")
    assert not any(name.startswith(images) for name in library), "these are loaded when they are wanted"
    assert {name[:6] for name in depends(packages["libsardonyx0"], "Recommends")} == {"libpng", "libjpe"}
    assert all(name.startswith(images[2:]) for name in depends(packages["libsardonyx0"], "Suggests"))
    program = depends(packages["sardonyx"])
    assert program["libsardonyx0"] == f"= {version}" and "libc6" in program and "libsardonyx-dev" not in program
    development = depends(packages["libsardonyx-dev"])
    assert development == {"libsardonyx0": f"= {version}"}, "the shared library needs no more"
    recommended = depends(packages["libsardonyx-dev"], "Recommends")
    assert {"libfmt-dev", "libre2-dev", "zlib1g-dev"} <= set(recommended)
    assert all(re.search(r"[<>=]", version) for version in (library["libc6"], library["libstdc++6"]))


def test_what_they_say_of_themselves(packages):
    for name, path in packages.items():
        said = fields(path)
        assert re.fullmatch(r"[^<>]+ <\S+@\S+>", said["Maintainer"]), name
        assert said["Section"] and said["Priority"] == "optional" and int(said["Installed-Size"]) > 50, name
        synopsis, *text = said["Description"].splitlines()
        assert 10 < len(synopsis) <= 80 and not synopsis.endswith(".") and not synopsis.lower().startswith(("a ", "the ")), synopsis
        assert len(" ".join(text)) > 80 and all(len(line) <= 80 or " " not in line for line in text), text


def test_no_file_is_in_two(unpacked):
    owner = {}
    for name, folder in unpacked.items():
        for file in contents(folder):
            assert file not in owner, f"{file} is in {owner[file]} and {name}"
            owner[file] = name
    assert len(owner) > 40


def test_files_are_where_they_belong(unpacked):
    library = {file for file in contents(unpacked["libsardonyx0"]) if not file.startswith("usr/share/doc/")}
    assert all(re.fullmatch(r"usr/lib/[\w-]+-linux-gnu/libsardonyx\.so\.0(\.[0-9.]+)?", file) for file in library) and len(library) == 2
    development = contents(unpacked["libsardonyx-dev"])
    headers = {path.name for path in (ROOT / "include" / "sardonyx").iterdir()}
    assert {pathlib.Path(file).name for file in development if file.startswith("usr/include/sardonyx/")} == headers
    for name in ("libsardonyx.so", "libsardonyx.a", "pkgconfig/sardonyx.pc", "pkgconfig/sardonyx-static.pc",
                 "cmake/sardonyx/sardonyx-config.cmake", "cmake/sardonyx/sardonyx-config-version.cmake"):
        assert any(re.fullmatch(rf"usr/lib/[\w-]+-linux-gnu/{re.escape(name)}", file) for file in development), name
    for_onnxruntime = {file for file in contents(unpacked["libsardonyx-onnxruntime"]) if not file.startswith("usr/share/doc/")}
    assert {re.sub(r"^usr/lib/[\w-]+-linux-gnu/", "", file) for file in for_onnxruntime} == {
        "sardonyx/onnxruntime/libonnxruntime.so", "sardonyx/onnxruntime/libonnxruntime.so.1",
        "cmake/sardonyx/sardonyx-onnxruntime-targets.cmake", "cmake/sardonyx/sardonyx-onnxruntime-targets-release.cmake"}
    program = contents(unpacked["sardonyx"])
    assert "usr/bin/sardonyx" in program
    assert all(file.startswith(("usr/bin/", "usr/share/man/", "usr/share/doc/", "usr/share/bash-completion/", "usr/share/zsh/",
                                "usr/share/fish/")) for file in program), program
    for name, folder in unpacked.items():
        doc = folder / "usr" / "share" / "doc" / name
        assert (doc / "copyright").read_text().startswith("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/")
        data = (doc / "changelog.Debian.gz").read_bytes()
        assert data[4:8] == bytes(4), f"{name}: the changelog has a date in its compression"
        assert gzip.decompress(data).decode() == (ROOT / "packaging" / "debian" / "changelog").read_text()


def test_owners_modes_and_checksums(packages, unpacked, tmp_path):
    for name, path in packages.items():
        archive = tmp_path / f"{name}.tar"
        with archive.open("wb") as stream:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", path], check=True, stdout=stream)
        with tarfile.open(archive) as tar:
            for member in tar:
                assert (member.uid, member.gid) == (0, 0), member.name
                if member.isdir():
                    assert member.mode & 0o7777 == 0o755, member.name
                elif member.isfile():
                    programs = member.name.lstrip("./").startswith("usr/bin/")
                    assert member.mode & 0o7777 in ((0o755,) if programs else (0o644, 0o755)), member.name
                    assert not (member.name.endswith((".a", ".h", ".cmake", ".pc", "copyright", ".gz")) and member.mode & 0o111), member.name
        run("md5sum", "--check", "--quiet", "DEBIAN/md5sums", cwd=unpacked[name])
        summed = {line.split("  ", 1)[1] for line in (unpacked[name] / "DEBIAN" / "md5sums").read_text().splitlines()}
        files = {file for file in contents(unpacked[name]) if not (unpacked[name] / file).is_symlink()}
        assert summed == files


def test_what_is_built_is_fit_for_a_package(unpacked):
    library = next((unpacked["libsardonyx0"] / "usr" / "lib").rglob("libsardonyx.so.0.*"))
    program = unpacked["sardonyx"] / "usr" / "bin" / "sardonyx"
    for file in (library, program):
        dynamic = run("readelf", "--dynamic", "--wide", file)
        assert not re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", dynamic), f"{file.name} names folders of libraries"
        assert ".debug_info" not in run("readelf", "--sections", "--wide", file) and ".symtab" not in run("readelf", "--sections", file)
        assert "GNU_STACK" in run("readelf", "--segments", file) and "RWE" not in run("readelf", "--segments", "--wide", file)
    assert "libsardonyx.so.0" in run("readelf", "--dynamic", program)
    said = (unpacked["libsardonyx0"] / "DEBIAN" / "shlibs").read_text()
    assert re.fullmatch(r"libsardonyx 0 libsardonyx0 \(>= [0-9.]+(-\w+)?\)\n", said), said
    triggers = unpacked["libsardonyx0"] / "DEBIAN" / "triggers"
    scripts = unpacked["libsardonyx0"] / "DEBIAN" / "postinst"
    assert triggers.exists() and "ldconfig" in triggers.read_text() or scripts.exists() and "ldconfig" in scripts.read_text()
    # It runs with the library beside it.
    assert "0." in run(program, "--version", env=dict(os.environ, LD_LIBRARY_PATH=str(library.parent)))


def test_nothing_names_the_folder_it_was_built_in(unpacked, build):
    places = [str(ROOT).encode(), str(build).encode()]
    for folder in unpacked.values():
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                assert not any(place in data for place in places), f"{path.relative_to(folder)} names the folder of the build"


def test_the_same_packages_come_out_again(build, packages, tmp_path):
    again = make(build, tmp_path / "somewhere" / "else")
    assert set(again) == set(packages)
    for name, path in packages.items():
        assert again[name].read_bytes() == path.read_bytes(), f"{name} differs from one run of cpack to the next"
