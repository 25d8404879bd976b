#!/usr/bin/env python3
"""Makes the sound and the image that the examples of voice activity and text recognition are run on.

speech.wav: two sentences by espeak-ng (Debian's package) in silence with a little noise. note.png: a page in the font that
matplotlib carries.
"""

from __future__ import annotations

import pathlib
import subprocess
import tempfile
import wave

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy import signal

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
RATE = 16000
LINES = ["Sardonyx Stationers", "Notebook, ruled  4.50", "12 pencils  3.20", "Total: EUR 7.70", "Thank you!"]


def spoken(text: str) -> np.ndarray:
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["espeak-ng", "-v", "en", "-s", "150", "-w", file.name, text], check=True)
        with wave.open(file.name) as sound:
            samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).astype(np.float64)
            return signal.resample_poly(samples, RATE, sound.getframerate())


def silence(seconds: float) -> np.ndarray:
    return np.zeros(int(RATE * seconds))


def write_speech(path: pathlib.Path) -> None:
    samples = np.concatenate([silence(0.6), spoken("Sardonyx listens to this."), silence(0.8), spoken("And now it goes on."),
                              silence(0.5)])
    samples += np.random.default_rng(1).normal(0, 20, samples.size)
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, RATE, 0, "NONE", ""))
        sound.writeframes(np.clip(samples, -32768, 32767).astype("<i2").tobytes())


def write_note(path: pathlib.Path) -> None:
    font = ImageFont.truetype(pathlib.Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", 28)
    image = Image.new("L", (480, 60 * len(LINES) + 20), 235)
    draw = ImageDraw.Draw(image)
    for index, line in enumerate(LINES):
        draw.text((30 + 10 * index, 20 + 60 * index), line, 40, font)
    image.save(path, optimize=True)


def main() -> None:
    write_speech(EXAMPLES / "voice_activity" / "speech.wav")
    write_note(EXAMPLES / "text_recognition" / "note.png")


if __name__ == "__main__":
    main()
