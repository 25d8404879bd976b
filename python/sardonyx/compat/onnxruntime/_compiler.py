"""ModelCompiler: there is no provider that compiles, so that what it writes is the model as it is."""

from __future__ import annotations

import enum
import os
import pathlib
from collections.abc import Callable
from typing import Any

from ... import _errors
from ..._model import Model
from ._exceptions import Fail, error, while_loading
from ._options import GraphOptimizationLevel, SessionOptions


class OrtCompileApiFlags(enum.IntFlag):
    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2

    __str__ = enum.Enum.__str__


class OrtExternalInitializerInfo:
    def __init__(self, filepath: str, file_offset: int, byte_size: int):
        self.filepath = filepath
        self.file_offset = file_offset
        self.byte_size = byte_size


class ModelCompiler:
    """Reads a model and writes it again, with its weights inside or in `external_initializers_file_path`, which stands beside it."""

    def __init__(self, sess_options: SessionOptions, input_model_path_or_bytes: str | os.PathLike[str] | bytes,
                 embed_compiled_data_into_model: bool = False, external_initializers_file_path: str | os.PathLike[str] | None = None,
                 external_initializers_size_threshold: int = 1024, flags: int = OrtCompileApiFlags.NONE,
                 graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
                 get_initializer_location_func: Callable[..., Any] | None = None):
        if not isinstance(input_model_path_or_bytes, (str, os.PathLike, bytes)):
            raise TypeError(f"Unable to load from type '{type(input_model_path_or_bytes)}'")
        if not input_model_path_or_bytes:
            raise ValueError("Input model is empty")
        if get_initializer_location_func is not None:
            raise NotImplementedError("get_initializer_location_func is not supported; external_initializers_file_path names one file "
                                      "for all large initializers")
        self._source = input_model_path_or_bytes
        self._flags = OrtCompileApiFlags(int(flags))
        self._external = os.fspath(external_initializers_file_path or "")
        self._threshold = int(external_initializers_size_threshold)

    def _model(self) -> Model:
        if self._flags & OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED:
            raise error(Fail, "Unable to compile any nodes. Sardonyx compiles no part of a model ahead of time.")
        path = None if isinstance(self._source, bytes) else os.fspath(self._source)
        try:
            return Model(self._source)
        except _errors.Error as found:
            raise while_loading(found, path, was_read=False) from found

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Without a path: "model_ctx.onnx" beside "model.onnx"."""
        model = self._model()
        if output_model_path is None or not os.fspath(output_model_path):
            if isinstance(self._source, bytes):
                raise ValueError("a model from memory needs a path to be written to")
            source = pathlib.Path(os.fspath(self._source))
            output_model_path = source.with_name(f"{source.stem}_ctx.onnx")
        path = os.fspath(output_model_path)
        if self._flags & OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS and os.path.exists(path):
            raise error(Fail, f"the file '{path}' exists already. Remove it, or leave the flag ERROR_IF_OUTPUT_FILE_EXISTS off.")
        beside = os.path.relpath(self._external, os.path.dirname(path) or ".") if os.path.isabs(self._external) else self._external
        try:
            model.save(path, external_data=beside, threshold=self._threshold, embed=not beside, form="binary")
        except _errors.Error as found:
            raise error(Fail, str(found)) from found

    def compile_to_bytes(self) -> bytes:
        if self._external:
            raise ValueError("initializers in a file of their own need compile_to_file()")
        return self._model().to_bytes()

    def compile_to_stream(self, write_function: Callable[[bytes], Any]) -> None:
        """Fail for what the function raises."""
        data = self.compile_to_bytes()
        try:
            write_function(data)
        except Exception as raised:
            raise error(Fail, f"the function that takes the model raised {type(raised).__name__}: {raised}") from raised

    def set_ep_context_data_write_func(self, write_func: Callable[..., Any]) -> None:
        """No provider has data to write."""

    def clear_ep_context_data_write_func(self) -> None:
        """No provider has data to write."""
