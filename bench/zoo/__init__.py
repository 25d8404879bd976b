"""Models of real architectures with seeded weights, made with the onnx helper API; pipelines that were trained."""

from . import small, transformers, vision
from .families import ENTRIES, KINDS, Entry, kind
from .net import LAYERS, Built, Net, rms

MODELS = {name: entry.build for name, entry in ENTRIES.items()}

__all__ = ["ENTRIES", "KINDS", "LAYERS", "MODELS", "Built", "Entry", "Net", "kind", "rms", "small", "transformers", "vision"]
