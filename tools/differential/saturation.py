"""Whether ONNX Runtime's products of bytes are exact on this processor."""

from __future__ import annotations

import functools
import os

import numpy as np

REASON = "ONNX Runtime adds pairs of products of bytes in 16 bits on processors without VNNI, where large ones saturate"


@functools.cache
def runtime_saturates() -> bool:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime
    from onnx import parser
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (uint8[4, 64] a, int8[64, 8] b) => (int32[4, 8] y) { y = MatMulInteger(a, b) }""")
    a, b = np.full((4, 64), 255, np.uint8), np.full((64, 8), 127, np.int8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return not (session.run(None, {"a": a, "b": b})[0] == 64 * 255 * 127).all()
