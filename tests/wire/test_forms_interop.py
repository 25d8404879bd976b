"""All forms of all models of the conformance suite beside the onnx package and protobuf: what one writes, the other reads,
to the same model."""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess

import onnx
import pytest
from google.protobuf import json_format, text_format
from onnx import parser, printer

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SARDONYX_PROGRAM", ROOT / "build" / "release" / "bin" / "sardonyx"))
RUNNER = PROGRAM.with_name("form_runner")
CASES = ROOT / "build" / "conformance" / onnx.__version__
PACKAGE = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
LARGEST = 2_000_000  # bytes; the few larger models say nothing more of forms


@functools.cache
def models() -> list[pathlib.Path]:
    """Those generated for this release, or the fewer ones that the package carries; each content once."""
    files = sorted((CASES if CASES.is_dir() else PACKAGE).rglob("*.onnx"))
    by_content = {file.read_bytes(): file for file in reversed(files) if file.stat().st_size < LARGEST}
    return sorted(by_content.values())


def converted(form: str, files: list[pathlib.Path]) -> list[bytes]:
    """The models of the files in another form, by our program."""
    names = "".join(f"{file}\n" for file in files)
    out = subprocess.run([RUNNER, form], input=names.encode(), capture_output=True, check=True).stdout
    answers, at = [], 0
    for file in files:
        end = out.index(b"\n", at)
        kind, size = out[at:end].split()
        content = out[end + 1:end + 1 + int(size)]
        assert kind == b"ok", f"{file}: {content.decode(errors='replace')}"
        answers.append(content)
        at = end + 1 + int(size)
    assert at == len(out)
    return answers


def plain(model: onnx.ModelProto) -> bytes:
    """Without header fields that say nothing."""
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if model.HasField(field) and not getattr(model, field):
            model.ClearField(field)
    return model.SerializeToString(deterministic=True)


def name_of(path: pathlib.Path) -> str:
    return f"{path.parent.name}/{path.name}"


def require_all(wrong: list[str]) -> None:
    assert not wrong, f"{len(wrong)} of {len(models())}: " + "; ".join(wrong[:10])


@functools.cache
def printed_by_onnx() -> list[tuple[pathlib.Path, str, onnx.ModelProto]]:
    """Models whose text by the package's printer its own parser reads, that text, and what it reads."""
    found = []
    for path in models():
        try:
            text = printer.to_text(onnx.load(path))
            found.append((path, text, parser.parse_model(text)))
        except (parser.ParseError, UnicodeDecodeError):
            continue  # its printer quotes less than its parser needs
    return found


def test_there_are_models():
    assert len(models()) > 100
    assert len(printed_by_onnx()) > 0.9 * len(models())


def test_onnx_parses_what_we_print():
    wrong = []
    theirs = {path: model for path, _, model in printed_by_onnx()}
    for path, text in zip(models(), converted("bare", models())):
        try:
            ours = parser.parse_model(text.decode())
        except (parser.ParseError, UnicodeDecodeError) as error:
            wrong.append(f"{name_of(path)}: {error}")
            continue
        if path not in theirs:
            continue
        other = onnx.ModelProto()
        other.CopyFrom(theirs[path])
        other.ClearField("doc_string")
        other.ClearField("metadata_props")
        if plain(ours) != plain(other):
            wrong.append(name_of(path))
    require_all(wrong)


def test_we_parse_what_onnx_prints(tmp_path):
    files = written([text.encode() for _, text, _ in printed_by_onnx()], tmp_path, "onnxtxt")
    wrong = []
    for (path, _, model), content in zip(printed_by_onnx(), converted("binary", files)):
        ours = onnx.ModelProto.FromString(content)
        if plain(parser.parse_model(printer.to_text(ours))) != plain(parser.parse_model(printer.to_text(model))):
            wrong.append(name_of(path))
    require_all(wrong)


def written(contents: list[bytes], folder: pathlib.Path, ending: str) -> list[pathlib.Path]:
    files = [folder / f"{number}.{ending}" for number in range(len(contents))]
    for file, content in zip(files, contents):
        file.write_bytes(content)
    return files


@pytest.mark.parametrize("form", ["binary", "json", "textproto"])
def test_forms_come_back_as_the_same_bytes(form, tmp_path):
    files = written(converted(form, models()), tmp_path, "onnx" if form == "binary" else form)
    require_all([name_of(path) for path, again in zip(models(), converted("binary", files))
                 if path.read_bytes() != again])


def test_text_comes_back_as_the_same_text(tmp_path):
    """Which field holds a tensor's elements is what text does not say."""
    texts = converted("text", models())
    binary = converted("binary", written(texts, tmp_path, "onnxtxt"))
    again = converted("text", written(binary, tmp_path, "onnx"))
    require_all([name_of(path) for path, one, two in zip(models(), texts, again) if one != two])


@pytest.mark.parametrize("form", ["json", "textproto"])
def test_protobuf_reads_what_we_write_and_we_what_it_writes(form, tmp_path):
    module = json_format if form == "json" else text_format
    write = module.MessageToJson if form == "json" else module.MessageToString
    theirs, wrong = [], []
    for path, content in zip(models(), converted(form, models())):
        model = onnx.load(path, load_external_data=False)
        if module.Parse(content.decode(), onnx.ModelProto()) != model:
            wrong.append(f"{name_of(path)} by protobuf")
        theirs.append(write(model).encode())
    files = written(theirs, tmp_path, form)
    for path, content in zip(models(), converted("binary", files)):
        if onnx.ModelProto.FromString(content) != onnx.load(path, load_external_data=False):
            wrong.append(f"{name_of(path)} by us")
    require_all(wrong)
