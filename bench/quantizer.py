#!/usr/bin/env python3
"""Times Sardonyx, ONNX Runtime and OpenVINO side by side on what ONNX Runtime's quantiser makes of models of bench/zoo.

Each model is quantised as a user would do it, with one set of inputs to calibrate with: `static` by quantize_static with
nothing said (activations and weights in int8, a scale for each tensor), `static_uint8` as its documentation advises for
x86-64 (activations in uint8), with scales for each channel of weights, `dynamic` by quantize_dynamic, `dynamic_uint8` with
weights in uint8, without which ONNX Runtime's convolutions are slow. Outputs of quantised
models that round elsewhere differ by steps, which grow from layer to layer: the last column says by how much.
"""

from __future__ import annotations

import logging
import os
import pathlib
import sys

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

import build_models
import report
import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- quantizer:begin -->", "<!-- quantizer:end -->"
FORMS = ("static", "static_uint8", "dynamic", "dynamic_uint8")
IMAGES = ("resnet50", "mobilenet_v2", "efficientnet_b0", "regnet_y", "squeezenet", "yolo")
OTHERS = ("sentence", "conformer", "wav2vec")
MODELS = tuple(f"{name}.{form}" for name in IMAGES + OTHERS for form in FORMS
               if form != ("dynamic" if name in IMAGES else "dynamic_uint8"))
TOLERANCE = 2.0  # of the RMS: bytes that differ by a step, through all layers
DETECTORS = ("yolo",)  # whose boxes are other ones then


class Samples(quantization.CalibrationDataReader):
    def __init__(self, inputs: dict[str, np.ndarray]) -> None:
        self.left = iter([inputs])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


def quantise(source: pathlib.Path, form: str, to: pathlib.Path) -> None:
    if form.startswith("dynamic"):
        weights = quantization.QuantType.QUInt8 if form == "dynamic_uint8" else quantization.QuantType.QInt8
        quantization.quantize_dynamic(source, to, weight_type=weights)
        return
    how = {}
    if form == "static_uint8":
        # Scales for each channel came with opset 13.
        how = {"activation_type": quantization.QuantType.QUInt8, "per_channel": run.opset_of(onnx.load(source, load_external_data=False)) >= 13}
    quantization.quantize_static(source, to, Samples(dict(np.load(source.with_suffix(".npz")))), **how)


def make(name: str, folder: pathlib.Path) -> dict:
    """Writes NAME.onnx and NAME.npz unless they are there; returns what is known of the model."""
    file, (model, form) = folder / f"{name}.onnx", name.split(".")
    known = build_models.build_all([model], folder)[model]
    if not file.exists():
        plain = folder / f"{model}.onnx"
        prepared = folder / f"{model}.prepared.onnx"
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        prepared.with_suffix(".npz").write_bytes(plain.with_suffix(".npz").read_bytes())
        quantise(prepared, form, file)
    file.with_suffix(".npz").write_bytes((folder / f"{model}.npz").read_bytes())
    made = onnx.load(file, load_external_data=False)
    return known | {"nodes": len(made.graph.node), "opset": run.opset_of(made), "weights_mb": file.stat().st_size / 1e6}


def main() -> int:
    options = run.parse_models("--quantizer", __doc__, list(MODELS), "bench-quantizer", 0.6, openvino=True)
    logging.disable(logging.WARNING)  # the quantiser's advice
    rows, made = run.measure_models(options, make)
    print(f"{report.summary(rows)}\n{made}")
    if options.write_docs:
        report.put_between(ROOT / "docs" / "models.md", BEGIN, END,
                           f"Made by `{report.command_line('--quantizer')}`: {made}.\n\n{report.summary(rows)}\n\n{report.table(rows)}")
    return run.finish(rows, options, lambda row: np.inf if row["model"].startswith(DETECTORS) else TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
