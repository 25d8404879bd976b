"""`sardonyx run`: inputs and outputs in every form."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, DIGITS, FINDINGS, parse_json
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = 2 * X + np.array([10, 20, 30], np.float32)


def one_output(sardonyx, model, tmp_path, *arguments) -> np.ndarray:
    sardonyx("run", model, *arguments, "--output", tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as arrays:
        return arrays[arrays.files[0]]


def write_input(kind: str, folder) -> str:
    file = folder / f"x.{kind}"
    if kind == "npy":
        np.save(file, X)
    elif kind == "npz":
        np.savez(file, x=X, other=np.zeros(3))
    elif kind == "pb":
        file.write_bytes(numpy_helper.from_array(X, "x").SerializeToString())
    elif kind == "json":
        file.write_text(json.dumps(X.tolist()))
    return str(file)


@pytest.mark.parametrize("kind", ["npy", "npz", "pb", "json"])
def test_input_file(sardonyx, affine, tmp_path, kind):
    y = one_output(sardonyx, affine, tmp_path, "--input", f"x={write_input(kind, tmp_path)}")
    np.testing.assert_array_equal(y, Y)


def test_fortran_order_and_other_byte_order(sardonyx, affine, tmp_path):
    for index, array in enumerate((np.asfortranarray(X), X.astype(">f4"))):
        np.save(tmp_path / f"{index}.npy", array)
        y = one_output(sardonyx, affine, tmp_path, "--input", f"x={tmp_path}/{index}.npy")
        np.testing.assert_array_equal(y, Y)


def test_ones_and_a_free_dimension(sardonyx, affine, tmp_path):
    y = one_output(sardonyx, affine, tmp_path, "--input", "x=ones", "--set", "rows=4")
    np.testing.assert_array_equal(y, np.tile([12, 22, 32], (4, 1)).astype(np.float32))


def test_random_input_is_the_same_each_time(sardonyx, affine, tmp_path):
    first = one_output(sardonyx, affine, tmp_path, "--input", "x=random", "--set", "rows=50")
    again = one_output(sardonyx, affine, tmp_path, "--input", "x=random", "--set", "rows=50")
    assert first.shape == (50, 3)
    assert np.unique(first).size > 100
    np.testing.assert_array_equal(first, again)


def test_scalar_values(sardonyx, save, tmp_path):
    model = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float f, int64 i, bool b) => (float y)
        { c = Cast <to = 1> (i)  s = Add (f, c)  n = Neg (s)  y = Where (b, s, n) }""")
    for flag, sign in (("true", 1), ("false", -1)):
        y = one_output(sardonyx, model, tmp_path, "--input", "f=0.5", "--input", "i=-7", "--input", f"b={flag}")
        assert y == np.float32(sign * -6.5)


def test_the_caller_may_replace_an_initializer(sardonyx, affine, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "bias.npy", np.zeros(3, np.float32))
    y = one_output(sardonyx, affine, tmp_path, "--input", f"x={tmp_path}/x.npy", "--input", f"bias={tmp_path}/bias.npy")
    np.testing.assert_array_equal(y, 2 * X)


def test_outputs_in_a_folder_are_numbered_in_graph_order(sardonyx, save, tmp_path):
    model = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y, int64[1] z) { y = Neg (x)  z = Shape (x) }""")
    proto = onnx.load(model)
    proto.graph.node[0].output[0] = proto.graph.output[0].name = "../../outside"
    onnx.save(proto, model)
    sardonyx("run", model, "--input", "x=ones", "--output", tmp_path / "results")
    files = sorted((tmp_path / "results").iterdir())
    assert len(files) == 2
    assert ["0" in files[0].stem, "1" in files[1].stem] == [True, True]
    np.testing.assert_array_equal(np.load(files[0]), [-1, -1])
    np.testing.assert_array_equal(np.load(files[1]), [2])
    assert not list(tmp_path.parent.glob("outside*"))


def test_npz_holds_every_output_in_graph_order(sardonyx, affine, tmp_path):
    y, twice = sardonyx.outputs(affine, {"x": X}, tmp_path)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(twice, 2 * X)


def test_files_that_begin_with_a_byte_order_mark(sardonyx, save, tmp_path):
    model = save("""<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) { y = Identity (x) }""")
    for name, text in (("x.csv", "0.25,0.75"), ("x.txt", "0.25 0.75"), ("x.json", "[0.25, 0.75]")):
        (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
        (tmp_path / "labels.txt").write_text("\ufeffone\ntwo\n", encoding="utf-8")
        found = parse_json(sardonyx("run", model, "--input", f"x={tmp_path / name}", "--labels", tmp_path / "labels.txt", "--json"))
        assert found["outputs"][0]["value"] == [0.25, 0.75]
        assert [answer["label"] for answer in found["outputs"][0]["answers"][0]] == ["two", "one"]


def test_names_of_an_npz_are_there_once(sardonyx, save, tmp_path):
    """An output that is listed twice, and one whose name would lead out of a folder."""
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.float32))
    twice = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n] x) => (float[n] y, float[n] y, float[n] output_1) { y = Neg (x)  output_1 = Abs (x) }""")
    for place in ("o.npz", "folder"):
        for option in ("--output", "--expect"):
            sardonyx("run", twice, "--input", f"x={tmp_path / 'x.npy'}", option, tmp_path / place)
    assert zipfile.ZipFile(tmp_path / "o.npz").namelist() == ["y.npy", "output_1.npy"]
    model = onnx.load(twice)
    del model.graph.output[0]
    model.graph.output[0].name = model.graph.node[0].output[0] = "../y"
    model.graph.output.insert(0, model.graph.output.pop(1))
    model.graph.output[0].name = model.graph.node[1].output[0] = "output_1"
    onnx.save(model, tmp_path / "odd.onnx")
    sardonyx("run", tmp_path / "odd.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "odd.npz")
    assert zipfile.ZipFile(tmp_path / "odd.npz").namelist() == ["output_1.npy", "output_1_.npy"]


def test_sequences_are_written_as_protobuf(sardonyx, save, tmp_path):
    model = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (seq(float[2]) s) { y = Neg (x)  s = SequenceConstruct (x, y) }""")
    sardonyx("run", model, "--input", "x=ones", "--output", tmp_path / "results")
    (file,) = (tmp_path / "results").iterdir()
    assert file.suffix == ".pb"
    sequence = onnx.SequenceProto()
    sequence.ParseFromString(file.read_bytes())
    np.testing.assert_array_equal(numpy_helper.to_list(sequence), [[1, 1], [-1, -1]])


def write_expected(folder, *arrays) -> None:
    folder.mkdir()
    for index, array in enumerate(arrays):
        (folder / f"output_{index}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def test_expect(sardonyx, affine, tmp_path):
    np.save(tmp_path / "x.npy", X)
    write_expected(tmp_path / "right", Y, 2 * X)
    sardonyx("run", affine, "--input", f"x={tmp_path}/x.npy", "--expect", tmp_path / "right")
    write_expected(tmp_path / "wrong", Y + 1, 2 * X)
    result = sardonyx("run", affine, "--input", f"x={tmp_path}/x.npy", "--expect", tmp_path / "wrong", expect=FINDINGS)
    assert "y" in result.stdout + result.stderr
    write_expected(tmp_path / "shape", Y[:1], 2 * X)
    sardonyx("run", affine, "--input", f"x={tmp_path}/x.npy", "--expect", tmp_path / "shape", expect=FINDINGS)


def test_json_is_one_object(sardonyx, affine):
    found = parse_json(sardonyx("run", affine, "--input", "x=ones", "--set", "rows=2", "--json"))
    assert "y" in json.dumps(found)


def test_repeat_and_threads_change_nothing(sardonyx, tmp_path):
    results = []
    for more in ((), ("--threads", "1"), ("--threads", "2"), ("--repeat", "5")):
        results.append(one_output(sardonyx, DIGITS / "digits.onnx", tmp_path, "--input",
                                  f"image={DIGITS / 'two.png'}", *more))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_all_outputs_shows_what_lies_between(sardonyx, affine, tmp_path):
    sardonyx("run", affine, "--input", "x=ones", "--set", "rows=1", "--all-outputs", "--output", tmp_path / "all.npz")
    with np.load(tmp_path / "all.npz") as arrays:
        values = [arrays[name] for name in arrays.files]
    assert len(values) >= 2
    assert any(np.array_equal(value, [[2, 2, 2]]) for value in values)


@pytest.mark.parametrize("word", "zero one two three four five six seven eight nine".split())
def test_digits(sardonyx, word):
    result = sardonyx("run", DIGITS / "digits.onnx", "--input", f"image={DIGITS / word}.png",
                      "--labels", DIGITS / "labels.txt")
    labels = (DIGITS / "labels.txt").read_text().split()
    seen = [label for line in result.stdout.splitlines() for label in labels if label in line.split()]
    assert seen[0] == word


def test_colour_jpeg_becomes_what_the_model_takes(sardonyx, tmp_path):
    seven = Image.open(DIGITS / "seven.png").resize((200, 200)).convert("RGB")
    seven.save(tmp_path / "seven.jpg", quality=95)
    y = one_output(sardonyx, DIGITS / "digits.onnx", tmp_path, "--input", f"image={tmp_path / 'seven.jpg'}")
    assert y.argmax() == 7


@pytest.mark.parametrize("form", ["bmp", "ppm"])
def test_images_of_other_formats(sardonyx, save, tmp_path, form):
    seven = Image.open(DIGITS / "seven.png").convert("RGB")
    seven.save(tmp_path / f"seven.{form}")
    y = one_output(sardonyx, DIGITS / "digits.onnx", tmp_path, "--input", f"image=@{tmp_path / f'seven.{form}'}")
    assert y.argmax() == 7
    decoder = save("""<ir_version: 10, opset_import: ["" : 20]>
        g (uint8[n] file) => (uint8[h,w,c] y) { y = ImageDecoder <pixel_format = "RGB"> (file) }""")
    y = one_output(sardonyx, decoder, tmp_path, "--input", f"file={tmp_path / f'seven.{form}'}")
    np.testing.assert_array_equal(y, np.asarray(seven))


def test_a_text_that_begins_like_an_image_is_a_text(sardonyx, save, tmp_path):
    model = save("""<ir_version: 10, opset_import: ["" : 20]>
        g (string[n] x) => (string[n] y) { y = Identity (x) }""")
    (tmp_path / "x.txt").write_text("BM,P5 2 2")
    y = one_output(sardonyx, model, tmp_path, "--input", f"x={tmp_path / 'x.txt'}")
    assert y.tolist() == ["BM", "P5 2 2"]


@pytest.mark.parametrize("option", [["--std", "0"], ["--std", "1,0,1"], ["--scale", "nan"], ["--mean", "inf"]])
def test_numbers_that_make_no_image(sardonyx, option):
    sardonyx.fails(BAD_INPUT, "run", DIGITS / "digits.onnx", "--input", f"image={DIGITS / 'seven.png'}", *option,
                   mentions=["seven.png", "std"])


def test_image_scale_mean_and_layout(sardonyx, save, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    planes = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,3,4,6] x) => (float[1,3,4,6] y) { y = Identity (x) }""", "nchw.onnx")
    rows = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,4,6,3] x) => (float[1,4,6,3] y) { y = Identity (x) }""", "nhwc.onnx")
    image = f"x={tmp_path / 'p.png'}"
    y = one_output(sardonyx, planes, tmp_path, "--input", image)
    np.testing.assert_allclose(y[0], pixels.transpose(2, 0, 1) / 255, atol=1e-6)
    y = one_output(sardonyx, planes, tmp_path, "--input", image, "--scale", "1")
    np.testing.assert_allclose(y[0], pixels.transpose(2, 0, 1), atol=1e-4)
    y = one_output(sardonyx, planes, tmp_path, "--input", image, "--mean", "0.5,0.4,0.3", "--std", "0.2,0.3,0.4")
    want = (pixels / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.4]
    np.testing.assert_allclose(y[0], want.transpose(2, 0, 1), atol=1e-5)
    y = one_output(sardonyx, rows, tmp_path, "--input", image, "--image-layout", "NHWC")
    np.testing.assert_allclose(y[0], pixels / 255, atol=1e-6)


@pytest.mark.parametrize("kind", ["initializer", "Constant"])
@pytest.mark.parametrize("padding", range(4))
def test_large_constants_lie_anywhere_in_a_file(sardonyx, tmp_path, kind, padding):
    """Whatever address the elements come to: packed, added, gathered and handed out as they are."""
    weights = np.random.default_rng(padding).standard_normal((160, 128)).astype(np.float32)
    tensor = numpy_helper.from_array(weights, "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Add", ["y", "w"], ["sum"]),
             helper.make_node("Gather", ["w", "at"], ["rows"]), helper.make_node("Identity", ["w"], ["copy"])]
    if kind == "Constant":
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=tensor))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 160]),
              helper.make_tensor_value_info("y", TensorProto.FLOAT, [160, 128]),
              helper.make_tensor_value_info("at", TensorProto.INT64, ["k"])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("product", "sum", "rows", "copy")]
    graph = helper.make_graph(nodes, "g" * (padding + 1), inputs, outputs, [] if kind == "Constant" else [tensor])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    feeds = {"x": np.ones((3, 160), np.float32), "y": np.full((160, 128), 2, np.float32), "at": np.array([5, 159, 0])}
    for mode in ([], ["--reference"]):
        product, total, rows, copy = sardonyx.outputs(path, feeds, tmp_path, *mode)
        np.testing.assert_allclose(product, feeds["x"] @ weights, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(total, feeds["y"] + weights)
        np.testing.assert_array_equal(rows, weights[feeds["at"]])
        np.testing.assert_array_equal(copy, weights)
