"""Checks of moonshine-voice, whose library has a model of voice activity in it: moonshine.py."""

from __future__ import annotations

import pathlib
import sys
import types

from checks import check, fails, speech

# Recording needs a package with a library of the system's.
sys.modules["sounddevice"] = types.ModuleType("sounddevice")
import moonshine_voice  # noqa: E402

ASSETS = pathlib.Path(moonshine_voice.get_assets_path())


def segments(file: str, **options: str) -> list:
    transcriber = moonshine_voice.Transcriber(model_path=ASSETS / "tiny-en", options={"skip_transcription": "true", **options})
    samples, rate = speech(str(ASSETS / file))
    lines = transcriber.transcribe_without_streaming(samples.tolist(), rate).lines
    assert lines, "no speech was found"
    return [[round(line.start_time, 3), round(line.duration, 3)] for line in lines]


check("segments of beckett.wav", lambda: segments("beckett.wav"))
check("segments of two_cities.wav", lambda: segments("two_cities.wav"))
check("another threshold", lambda: segments("beckett.wav", vad_threshold="0.8"))
fails("models that are not there", lambda: moonshine_voice.Transcriber(model_path=ASSETS / "tiny-en"))
