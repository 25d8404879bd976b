"""Checks of sherpa-onnx: sherpa.py MODELS SPEECH SILERO."""

from __future__ import annotations

import sys

import numpy as np
import sherpa_onnx
from checks import check, speech

MODELS, SPEECH, SILERO = sys.argv[1:4]
SAMPLES = np.concatenate([np.zeros(16000, np.float32), speech(SPEECH)[0], np.zeros(24000, np.float32)])
WINDOW = 512


def detected(file: str, threads: int = 1) -> list:
    """Where there is speech."""
    config = sherpa_onnx.VadModelConfig()
    config.silero_vad.model = f"{SILERO}/{file}"
    config.silero_vad.min_silence_duration = 0.1
    config.silero_vad.window_size = WINDOW
    config.sample_rate = 16000
    config.num_threads = threads
    detector = sherpa_onnx.VoiceActivityDetector(config, buffer_size_in_seconds=60)
    for start in range(0, len(SAMPLES) - WINDOW, WINDOW):
        detector.accept_waveform(SAMPLES[start : start + WINDOW])
    detector.flush()
    found = []
    while not detector.empty():
        found.append([detector.front.start, len(detector.front.samples)])
        detector.pop()
    assert found, "no speech was found"
    return found


def recognized(count: int, **options) -> list:
    recognizer = sherpa_onnx.OfflineRecognizer.from_nemo_ctc(model=f"{MODELS}/ctc.onnx", tokens=f"{MODELS}/tokens.txt", **options)
    streams = [recognizer.create_stream() for _ in range(count)]
    for i, stream in enumerate(streams):
        stream.accept_waveform(16000, SAMPLES[i * 8000 : 40000 + i * 8000])
    recognizer.decode_streams(streams)
    return [[stream.result.text, list(map(float, stream.result.timestamps))[:20]] for stream in streams]


def voice() -> list:
    extractor = sherpa_onnx.SpeakerEmbeddingExtractor(sherpa_onnx.SpeakerEmbeddingExtractorConfig(model=f"{MODELS}/speaker.onnx"))
    stream = extractor.create_stream()
    stream.accept_waveform(16000, SAMPLES)
    stream.input_finished()
    return [extractor.dim, list(map(float, extractor.compute(stream)))]


def spoken() -> list:
    vits = sherpa_onnx.OfflineTtsVitsModelConfig(
        model=f"{MODELS}/vits.onnx", lexicon=f"{MODELS}/lexicon.txt", tokens=f"{MODELS}/tts_tokens.txt"
    )
    audio = sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=sherpa_onnx.OfflineTtsModelConfig(vits=vits))).generate(
        "hello world, this is a test."
    )
    return [audio.sample_rate, len(audio.samples), [float(one) for one in audio.samples[:64]]]


check("voice activity", lambda: detected("silero_vad.onnx"))
check("voice activity, of version 15", lambda: detected("silero_vad_16k_op15.onnx"))
check("voice activity, two threads", lambda: detected("silero_vad.onnx", 2))
check("recognition", lambda: recognized(1))
check("recognition of a batch", lambda: recognized(3))
check("recognition, two threads", lambda: recognized(2, num_threads=2))
check("a voice's embedding", voice)
check("speech", spoken)
