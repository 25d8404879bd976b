"""`sardonyx pack`, `--packed` and `--cache-folder`: the same answers, and no file is trusted."""

from __future__ import annotations

import json
import os
import re
import resource
import signal

import numpy as np
import pytest
from conftest import BAD_INPUT, DIGITS, FINDINGS, UNREADABLE, USAGE, parse_json

MODEL = DIGITS / "digits.onnx"
IMAGE = np.random.default_rng(0).standard_normal((2, 1, 16, 16)).astype(np.float32)


@pytest.fixture
def packed(sardonyx, tmp_path):
    path = tmp_path / "digits.sdx"
    sardonyx("pack", MODEL, "-o", path)
    return path


def answer(sardonyx, tmp_path, *options, model=MODEL, **more) -> bytes:
    np.save(tmp_path / "image.npy", IMAGE)
    sardonyx("run", model, "--input", f"image={tmp_path / 'image.npy'}", "--output", tmp_path / "y.npz", *options, **more)
    with np.load(tmp_path / "y.npz") as arrays:
        return b"".join(arrays[name].tobytes() for name in arrays.files)


def first_digit_file(folder) -> os.PathLike:
    (file,) = folder.iterdir()
    return file


def test_answers_are_the_same(sardonyx, tmp_path, packed):
    expected = answer(sardonyx, tmp_path)
    assert answer(sardonyx, tmp_path, "--packed", packed) == expected
    for _ in range(2):
        assert answer(sardonyx, tmp_path, "--cache-folder", tmp_path / "new" / "folder") == expected
    name = first_digit_file(tmp_path / "new" / "folder").name
    assert re.fullmatch(r"digits-[0-9a-f]{16}\.sdx", name)
    assert first_digit_file(tmp_path / "new" / "folder").read_bytes() == packed.read_bytes()


def test_what_it_says(sardonyx, tmp_path):
    path = tmp_path / "d.sdx"
    said = sardonyx("pack", MODEL, "-o", path).stdout
    assert re.fullmatch(rf"{path}: [1-9][0-9]* packed weights, {path.stat().st_size} bytes\n", said)
    report = parse_json(sardonyx("pack", MODEL, "-o", path, "--json"))
    assert report["bytes"] == path.stat().st_size and report["forms"] > 0
    said = sardonyx("pack", MODEL, "-o", path, "--verify").stdout
    assert said == f"{path}: {report['forms']} packed weights and the optimised graph compared, all as packing gives them\n"


def test_verify_finds_a_changed_byte(sardonyx, tmp_path, packed):
    data = bytearray(packed.read_bytes())
    begin = int.from_bytes(data[48:56], "little")
    place = next(at for at in range(len(data) - 1, begin, -1) if data[at])  # constants of the graph come first
    data[place] ^= 1
    packed.write_bytes(data)
    report = parse_json(sardonyx("pack", MODEL, "-o", packed, "--verify", "--json", expect=FINDINGS))
    assert len(report["differences"]) == 1 and "packing gives" in report["differences"][0]["what"]
    assert "of part 0 is" in sardonyx("pack", MODEL, "-o", packed, "--verify", expect=FINDINGS).stdout


def test_files_of_no_use_are_named(sardonyx, tmp_path, packed, affine):
    image = ("--input", f"image={tmp_path / 'image.npy'}")
    np.save(tmp_path / "image.npy", IMAGE)
    sardonyx.fails(UNREADABLE, "run", MODEL, *image, "--packed", tmp_path / "none.sdx", mentions=("none.sdx", "cannot open"))
    whole = packed.read_bytes()
    for content, words in ((b"", "no file of packed weights"), (whole[:200], "ends within its header"),
                           (whole[:-1], "the file says it has"), (whole[:8] + b"\7" + whole[9:], "of format 7")):
        packed.write_bytes(content)
        sardonyx.fails(UNREADABLE, "run", MODEL, *image, "--packed", packed, mentions=("digits.sdx", words))
    packed.write_bytes(whole)
    sardonyx.fails(BAD_INPUT, "run", affine, "--packed", packed, mentions=("another model", "sardonyx pack"))
    if (lower := lowest_set(sardonyx)) != sardonyx.instruction_set:
        level = {**os.environ, "SARDONYX_CPU": lower}
        sardonyx.fails(BAD_INPUT, "run", MODEL, *image, "--packed", packed, env=level, mentions=("was packed for", lower))
    sardonyx.fails(USAGE, "pack", MODEL, "-o", tmp_path / "digits.onnx", mentions=(".sdx",))
    sardonyx.fails(USAGE, "pack", MODEL, mentions=("--output",))
    sardonyx.fails(UNREADABLE, "pack", MODEL, "-o", tmp_path / "none" / "d.sdx", mentions=("no folder",))


def lowest_set(sardonyx) -> str:
    return "neon" if sardonyx.instruction_set.startswith("neon") else "baseline"


def test_levels_of_the_processor_have_files_of_their_own(sardonyx, tmp_path):
    folder = tmp_path / "cache"
    levels = {lowest_set(sardonyx), sardonyx.instruction_set}
    for level in levels:
        env = {**os.environ, "SARDONYX_CPU": level}
        expected = answer(sardonyx, tmp_path, env=env)
        for _ in range(2):
            assert answer(sardonyx, tmp_path, "--cache-folder", folder, env=env) == expected
    assert len(list(folder.iterdir())) == len(levels)


@pytest.mark.parametrize("level", ["avx512", "avx2", "baseline"])
def test_nothing_of_what_memory_held_before_comes_in(sardonyx, tmp_path, level):
    """Weights that do not fill their last 64 bytes are followed by zeros."""
    model, files = tmp_path / "conv.onnxtxt", []
    weights = ", ".join(str(i % 7) for i in range(216))
    model.write_text(f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[n, 3, 8, 8] x) => (float[n, 8, 6, 6] y) <float[8, 3, 3, 3] w = {{{weights}}}> {{ c = Conv(x, w) y = Relu(c) }}""")
    for byte in ("40", "80"):
        files.append(tmp_path / f"{byte}.sdx")
        sardonyx("pack", model, "-o", files[-1], env={**os.environ, "SARDONYX_CPU": level, "MALLOC_PERTURB_": byte})
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_model_that_changes_is_packed_anew(sardonyx, tmp_path, save):
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n,64] x) => (float[n,64] y) { y = MatMul (x, w) }'
    ones = np.ones((64, 64), np.float32)
    feeds = {"x": ones[:1]}
    folder = tmp_path / "cache"
    for factor in (1, 2, 3):
        model = save(text, w=ones * factor)
        (y,) = sardonyx.outputs(model, feeds, tmp_path, "--cache-folder", folder)
        np.testing.assert_array_equal(y, 64 * factor * feeds["x"])
    assert len(list(folder.iterdir())) == 1


def test_a_disk_that_is_full_leaves_nothing(sardonyx, tmp_path):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    sardonyx.fails(UNREADABLE, "pack", MODEL, "-o", tmp_path / "d.sdx", preexec_fn=small_files, mentions=("d.sdx", "cannot write"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["bench", "profile", "explain"])
def test_other_commands_take_them(sardonyx, tmp_path, packed, command):
    for option in (("--packed", packed), ("--cache-folder", tmp_path / "cache")):
        sardonyx(command, MODEL, *option, *(("--dim", "N=1") if command != "explain" else ()))
    assert len(list((tmp_path / "cache").iterdir())) == 1


@pytest.mark.parametrize("command", ["run", "bench"])
def test_reference_execution_packs_nothing(sardonyx, tmp_path, command):
    start = [command, MODEL, "--input", "image=random", "--reference"]
    for option in (["--packed", tmp_path / "absent.sdx"], ["--cache-folder", tmp_path / "cache"], ["--prepack"]):
        sardonyx.fails(USAGE, *start, *option, mentions=["reference execution packs nothing"])
    assert not (tmp_path / "cache").exists()


def test_bench_takes_what_is_packed(sardonyx, tmp_path, packed):
    report = json.loads(sardonyx("bench", MODEL, "--dim", "N=1", "--packed", packed, "--json").stdout)
    assert report
