"""Changing what a model says."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._model import ModelSource
from ._tools import _made, _opened, given_back


class ModelEditor:
    """A copy of a model's messages that can be changed; the model it is made of stays as it is, and weights are shared.

        editor = sardonyx.ModelEditor("model.onnx")
        editor.set_metadata("license", "MIT").set_dimension("x", 0, "batch")
        editor.finish().save("edited.onnx")

    Takes what Model takes. Each function does what it says and returns the editor, or raises BadInputError and has changed nothing. One
    thread at a time. Whether the result obeys the standard is for check() to say. Names of values, nodes and dimensions: rename().
    """

    def __init__(self, model: ModelSource) -> None:
        self._given = model
        self._from = _opened(model)
        self._held = _core.ModelEditor(self._from._held)

    # --- what the model says of itself --------------------------------------------------------

    def set_ir_version(self, version: int) -> ModelEditor:
        self._held.set_ir_version(version)
        return self

    def set_producer(self, name: str, version: str = "") -> ModelEditor:
        self._held.set_producer_name(name)
        self._held.set_producer_version(version)
        return self

    def set_domain(self, domain: str) -> ModelEditor:
        self._held.set_domain(domain)
        return self

    def set_model_version(self, version: int) -> ModelEditor:
        self._held.set_model_version(version)
        return self

    def set_doc_string(self, text: str) -> ModelEditor:
        self._held.set_doc_string(text)
        return self

    def set_metadata(self, key: str, value: str) -> ModelEditor:
        """Adds metadata, or replaces that of the key."""
        self._held.set_metadata(key, value)
        return self

    def remove_metadata(self, key: str) -> ModelEditor:
        self._held.remove_metadata(key)
        return self

    def set_opset_import(self, domain: str, version: int) -> ModelEditor:
        """The version of a domain's operators. Nodes stay as they are: convert_version() carries them to another."""
        self._held.set_opset_import(domain, version)
        return self

    # --- the main graph -----------------------------------------------------------------------

    def set_graph_name(self, name: str) -> ModelEditor:
        self._held.set_graph_name(name)
        return self

    def set_type(self, value: str, type: str) -> ModelEditor:
        """The declared type of an input, an output or a value in between: "float[batch,3,224,224]", "seq(int64[n])"."""
        self._held.set_type(value, type)
        return self

    def set_dimension(self, value: str, axis: int, size: int | str | None) -> ModelEditor:
        """One dimension of an input's or output's declared shape: a number, a name, or None for an open one."""
        self._held.set_dimension(value, axis, "" if size is None else size)
        return self

    def set_denotation(self, value: str, denotation: str, axis: int | None = None) -> ModelEditor:
        """What an input's or output's type, or one dimension of its shape, stands for: "IMAGE", "DATA_BATCH"; "" for nothing."""
        if axis is None:
            self._held.set_denotation(value, denotation)
        else:
            self._held.set_denotation(value, axis, denotation)
        return self

    def add_input(self, name: str, type: str) -> ModelEditor:
        """As the last one; where an initializer has this name, that becomes its default."""
        self._held.add_input(name, type)
        return self

    def remove_input(self, name: str) -> ModelEditor:
        """One that nothing reads, or whose initializer then takes its place."""
        self._held.remove_input(name)
        return self

    def add_output(self, name: str, type: str = "") -> ModelEditor:
        """A value of the graph, after the other outputs; without a type, with the one that is declared or that inference finds."""
        self._held.add_output(name, type)
        return self

    def remove_output(self, name: str) -> ModelEditor:
        self._held.remove_output(name)
        return self

    def has_initializer(self, name: str) -> bool:
        """Whether there is a dense one of this name."""
        return self._held.has_initializer(name)

    def add_initializer(self, name: str, array: Any) -> ModelEditor:
        """Of an array, whose elements are copied."""
        self._held.add_initializer(name, np.array(array))
        return self

    def replace_initializer(self, name: str, array: Any) -> ModelEditor:
        """By an array, whose elements are copied; its type and shape may be others."""
        self._held.replace_initializer(name, np.array(array))
        return self

    def remove_initializer(self, name: str) -> ModelEditor:
        """One that nothing reads, or that is the default of an input."""
        self._held.remove_initializer(name)
        return self

    def finish(self) -> Any:
        """The model as it is now, in the form of what was given: a message for a message, bytes for bytes, a Model otherwise. The editor may
        go on; what it changes later is another model's."""
        return given_back(self._given, _made(self._held.finish(), self._from))
