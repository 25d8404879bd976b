"""The session code of kokoro-onnx, on a small model and voice that the case makes."""

REQUIRES = "kokoro-onnx onnx"
WHAT = "Kokoro on a model that the case makes"


def prepare():
    import numpy
    import onnx
    from kokoro_onnx import Kokoro

    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
      g (int64[1,n] tokens, float[1,256] style, float[1] speed) => (float[m] audio) {
        f = Cast <to = 1> (tokens)
        s = ReduceMean <axes = [1]> (style)
        a = Add (f, s)
        b = Sin (a)
        c = Mul (b, speed)
        flat = Constant <value = int64[1] {-1}> ()
        audio = Reshape (c, flat) }''')
    onnx.save(model, "kokoro.onnx")
    draws = numpy.random.default_rng(0)
    with open("voices.bin", "wb") as file:
        numpy.savez(file, made=draws.standard_normal((510, 1, 256)).astype(numpy.float32))
    kokoro = Kokoro("kokoro.onnx", "voices.bin")

    def run():
        audio, rate = kokoro.create("həlˈoʊ wˈɜːld", voice="made", speed=1.0, is_phonemes=True, trim=False)
        assert audio.size > 5
        return [audio, rate]

    return run
