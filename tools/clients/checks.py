"""What the programs of this folder share: a check is a line of JSON with its name, whether it passed, and what it saw, which is to be the
same with all libraries; `note` may differ."""

from __future__ import annotations

import json
import wave
from collections.abc import Callable

import numpy as np


def check(name: str, body: Callable[[], object]) -> None:
    line: dict = {"check": name, "ok": True}
    try:
        line["value"] = body()
    except Exception as error:
        line |= {"ok": False, "note": f"{type(error).__name__}: {error}"[:600]}
    print(json.dumps(line), flush=True)


def fails(name: str, body: Callable[[], object]) -> None:
    """What is thrown is noted: the words are the library's own."""
    try:
        body()
        line = {"check": name, "ok": False, "note": "nothing was thrown"}
    except Exception as error:
        line = {"check": name, "ok": len(str(error)) > 0, "note": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(line), flush=True)


def speech(path: str) -> tuple[np.ndarray, int]:
    """The samples of a file and their rate."""
    with wave.open(path) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768, file.getframerate()


def numbers(values: list[np.ndarray]) -> list:
    return [[str(one.dtype), list(one.shape), one.astype(np.float64).reshape(-1)[:40].tolist()] for one in values]
