"""The analysis of faces of insightface, on small models that the case makes: a detector, landmarks, age, and an embedding."""

REQUIRES = "insightface onnx onnxruntime"
WHAT = "FaceAnalysis on models that the case makes, and a session that pickles"


def detector(draws):
    """For each stride two anchors a place: scores, boxes and landmarks, in the order in which insightface tells them by."""
    import numpy
    import onnx

    lines, outputs, weights = [], {"s": [], "b": [], "k": []}, []
    for stride in (8, 16, 32):
        lines.append(f"p{stride} = AveragePool <kernel_shape = [{stride}, {stride}], strides = [{stride}, {stride}]> (image)")
        for kind, size, end in (("s", 1, "Sigmoid"), ("b", 4, "Softplus"), ("k", 10, "Identity")):
            name = f"{kind}{stride}"
            lines.append(f"c{name} = Conv (p{stride}, w{name})")
            lines.append(f"t{name} = Transpose <perm = [0, 2, 3, 1]> (c{name})")
            lines.append(f"shape{name} = Constant <value = int64[2] {{-1, {size}}}> ()")
            lines.append(f"r{name} = Reshape (t{name}, shape{name})")
            lines.append(f"o{name} = {end} (r{name})")
            outputs[kind].append(f"float[n{name},{size}] o{name}")
            weights.append((f"w{name}", (0.7 * draws.standard_normal((2 * size, 3, 1, 1)) + (2 if kind == "b" else 0))))
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,3,h,w] image) => ('
        + ", ".join(outputs["s"] + outputs["b"] + outputs["k"]) + ") { " + "\n".join(lines) + " }")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(one.astype(numpy.float32), name) for name, one in weights)
    return model


def head(draws, size, outputs):
    """A network that pools an image of size x size and makes so many numbers of it."""
    import numpy
    import onnx

    model = onnx.parser.parse_model(f'''<ir_version: 8, opset_import: ["" : 17]>
      g (float[n,3,{size},{size}] data) => (float[n,{outputs}] out) {{
        c = Conv <strides = [4, 4]> (data, w)
        r = Relu (c)
        p = AveragePool <kernel_shape = [4, 4], strides = [4, 4]> (r)
        f = Flatten (p)
        out = MatMul (f, m) }}''')
    place = size // 16
    for name, shape in (("w", (8, 3, 4, 4)), ("m", (8 * place * place, outputs))):
        model.graph.initializer.append(onnx.numpy_helper.from_array((0.2 * draws.standard_normal(shape)).astype(numpy.float32), name))
    return model


def prepare():
    import pathlib
    import pickle

    import numpy
    import onnx
    from insightface.app import FaceAnalysis
    from insightface.data import get_image

    folder = pathlib.Path("models") / "made"
    folder.mkdir(parents=True)
    draws = numpy.random.default_rng(0)
    for name, model in (("det", detector(draws)), ("2d106det", head(draws, 192, 212)), ("genderage", head(draws, 96, 3)),
                        ("w600k", head(draws, 112, 128))):
        onnx.save(model, folder / f"{name}.onnx")
    analysis = FaceAnalysis(name="made", root=".", providers=["CPUExecutionProvider"])
    analysis.prepare(ctx_id=-1, det_size=(320, 320), det_thresh=0.5)
    assert set(analysis.models) == {"detection", "landmark_2d_106", "genderage", "recognition"}, analysis.models
    image = get_image("t1")
    recognition = analysis.models["recognition"]
    again = pickle.loads(pickle.dumps(recognition.session))

    def run():
        faces = analysis.get(image, max_num=5)
        assert len(faces) == 5
        feed = {recognition.input_name: draws.random((2, 3, 112, 112), numpy.float32)}
        numpy.testing.assert_array_equal(again.run(None, feed)[0], recognition.session.run(recognition.output_names, feed)[0])
        return [[face.bbox, face.kps, face.landmark_2d_106, face.embedding, int(face.gender), int(face.age)] for face in faces]

    return run
