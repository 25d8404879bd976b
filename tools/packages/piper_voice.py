"""The voice of piper, with a small model that the case makes: three inputs and the audio."""

REQUIRES = "piper-tts onnx"
WHAT = "PiperVoice on a model that the case makes"


def prepare():
    import json
    import pathlib

    import onnx
    from piper import PiperVoice

    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 15]>
      voice (int64[b,n] input, int64[b] input_lengths, float[3] scales) => (float[b,1,1,t] output) {
        f = Cast <to = 1> (input)
        k = Constant <value = float {0.05}> ()
        g = Mul (f, k)
        s = Sin (g)
        i = Constant <value = int64 {1}> ()
        one = Gather (scales, i)
        w = Mul (s, one)
        axes = Constant <value = int64[2] {1, 2}> ()
        output = Unsqueeze (w, axes)
      }''')
    onnx.save(model, "voice.onnx")
    config = {"audio": {"sample_rate": 22050}, "espeak": {"voice": "en-us"}, "num_symbols": 256, "num_speakers": 1,
              "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8},
              "phoneme_id_map": {**{chr(c): [c] for c in range(97, 123)}, "_": [0], "^": [1], "$": [2], " ": [3]}, "phoneme_type": "text"}
    pathlib.Path("voice.onnx.json").write_text(json.dumps(config))
    voice = PiperVoice.load("voice.onnx")

    def run():
        made = [chunk.audio_float_array for chunk in voice.synthesize("hello world")]
        assert made and made[0].size > 10
        return made

    return run
