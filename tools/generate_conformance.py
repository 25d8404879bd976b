#!/usr/bin/env python3
"""Writes the backend test cases of a release of onnx as folders that the conformance runner takes.

Each folder KIND/NAME holds model.onnx, test_data_set_N/input_M.pb and output_M.pb, and
tolerance.json {"rtol": ..., "atol": ...}. The folder of all of them is printed at the end.

Without --release the cases come from the installed package: the node cases are made by its own
generators, the others are copied from its data. With --release the archive of that release is
fetched and its data folder taken apart; nothing of it is built or run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYOUT = "3"  # raise it when what is written changes, so that old folders are made anew
DEFAULT_TOLERANCE = {"rtol": 1e-3, "atol": 1e-7}  # of the suite's own loader
LIGHT_FOLDER = "onnx/backend/test/data/light/"


def write_tolerance(folder: pathlib.Path, rtol: float, atol: float) -> None:
    (folder / "tolerance.json").write_text(json.dumps({"rtol": float(rtol), "atol": float(atol)}) + "\n")


# --- node cases -------------------------------------------------------------------------------


def value_bytes(value, info) -> bytes:
    """A value of a case as the protobuf message its declared type asks for."""
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return value.SerializeToString()
    makers = {
        "map_type": numpy_helper.from_dict,
        "sequence_type": numpy_helper.from_list,
        "optional_type": numpy_helper.from_optional,
        "tensor_type": numpy_helper.from_array,
    }
    kind = info.type.WhichOneof("value")
    return makers[kind](value, info.name).SerializeToString()


def write_case(case, target: pathlib.Path) -> None:
    folder = target / case.kind / case.name
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    write_tolerance(folder, case.rtol, case.atol)
    for index, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{index}"
        data.mkdir()
        for prefix, values, infos in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for number, (value, info) in enumerate(zip(values, infos)):
                (data / f"{prefix}_{number}.pb").write_bytes(value_bytes(value, info))


def write_node_cases(target: pathlib.Path) -> None:
    import numpy
    from onnx.backend.test.loader import load_model_tests

    numpy.random.seed(0)
    warnings.simplefilter("ignore")  # the generators divide by zero on purpose
    for case in load_model_tests(kind="node"):
        write_case(case, target)


# --- cases that lie in the package as data -----------------------------------------------------


def write_light_case(description: dict, name: str, data: pathlib.Path, target: pathlib.Path) -> None:
    """A real architecture with constant weights; its input is the ramp that the suite defines."""
    import numpy
    import onnx

    model_file = data / "light" / pathlib.PurePosixPath(description["url"]).name
    expected = sorted(model_file.parent.glob(model_file.stem + "_output_*.pb"))
    if not model_file.exists() or not expected:
        return
    folder = target / "light" / name
    (folder / "test_data_set_0").mkdir(parents=True)
    shutil.copyfile(model_file, folder / "model.onnx")
    write_tolerance(folder, description.get("rtol", DEFAULT_TOLERANCE["rtol"]),
                    description.get("atol", DEFAULT_TOLERANCE["atol"]))
    for number, file in enumerate(expected):
        shutil.copyfile(file, folder / "test_data_set_0" / f"output_{number}.pb")
    graph = onnx.load(model_file).graph
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in initialized]
    for number, info in enumerate(inputs):
        shape = [size.dim_value if size.HasField("dim_value") else 1
                 for size in info.type.tensor_type.shape.dim]
        count = int(numpy.prod(shape))
        ramp = (numpy.arange(count).reshape(shape) / count).astype(numpy.float32)
        (folder / "test_data_set_0" / f"input_{number}.pb").write_bytes(
            onnx.numpy_helper.from_array(ramp, info.name).SerializeToString())


def write_data_cases(data: pathlib.Path, target: pathlib.Path) -> None:
    for kind in sorted(entry for entry in data.iterdir() if entry.is_dir() and entry.name != "light"):
        for case in sorted(kind.iterdir()):
            description_file = case / "data.json"
            description = json.loads(description_file.read_text()) if description_file.exists() else {}
            if (case / "model.onnx").exists():
                folder = target / kind.name / case.name
                shutil.copytree(case, folder, ignore=shutil.ignore_patterns("data.json"))
                write_tolerance(folder, description.get("rtol", DEFAULT_TOLERANCE["rtol"]),
                                description.get("atol", DEFAULT_TOLERANCE["atol"]))
            elif description.get("url", "").startswith(LIGHT_FOLDER):
                write_light_case(description, case.name, data, target)


# --- releases ---------------------------------------------------------------------------------


def write_installed(target: pathlib.Path) -> None:
    import onnx

    write_node_cases(target)
    write_data_cases(pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data", target)


def fetch_archive(release: str, folder: pathlib.Path) -> pathlib.Path:
    """The wheel of a release, for whichever Python it was made: only its data is wanted."""
    platforms = ["manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64",
                 "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
    for python in ("3.12", "3.11", "3.10", "3.8", "3.7", "3.6", "3.5", "2.7"):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                   "--no-deps", "--only-binary=:all:", "--implementation", "cp",
                   "--python-version", python, "--dest", str(folder)]
        for platform in platforms:
            command += ["--platform", platform]
        if subprocess.run([*command, f"onnx=={release}"], stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL).returncode == 0:
            return next(folder.glob("*.whl"))
    sys.exit(f"generate_conformance: no wheel of onnx {release} could be fetched")


def write_historic(release: str, target: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = "onnx/backend/test/data/"
        with zipfile.ZipFile(fetch_archive(release, folder)) as archive:
            archive.extractall(folder / "taken", [n for n in archive.namelist() if n.startswith(prefix)])
        write_data_cases(folder / "taken" / prefix, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--release", help="a release of onnx; default: the installed one")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "conformance")
    options = parser.parse_args()

    import onnx

    release = options.release or onnx.__version__
    target = options.out / release
    stamp = target / "complete"
    if not (stamp.exists() and stamp.read_text() == LAYOUT):
        making = options.out / f"{release}.making"
        for old in (target, making):
            shutil.rmtree(old, ignore_errors=True)
        making.mkdir(parents=True)
        with contextlib.redirect_stdout(sys.stderr):
            if release == onnx.__version__:
                write_installed(making)
            else:
                write_historic(release, making)
        (making / "complete").write_text(LAYOUT)
        making.rename(target)
    print(target)


if __name__ == "__main__":
    main()
