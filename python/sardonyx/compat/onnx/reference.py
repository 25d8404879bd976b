"""What looks like onnx.reference.ReferenceEvaluator, and runs node after node in the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from ..._session import Session
from ._messages import model_of_graph, model_of_node


class ReferenceEvaluator:
    """Runs a model, a graph or a node; a path and bytes are models. `opsets`: of a graph or a node, by domain."""

    def __init__(self, proto: Any, opsets: Mapping[str, int] | None = None, verbose: int = 0, **options: Any):
        self._opset = (opsets or {}).get("")
        self.proto_ = proto
        self._sessions: dict[bool, Session] = {}
        if isinstance(proto, onnx.GraphProto):
            proto = model_of_graph(proto, self._opset)
        self._node = proto if isinstance(proto, onnx.NodeProto) else None
        self._source = proto
        if self._node is None:
            self._session(False)

    def _session(self, intermediate: bool) -> Session:
        if intermediate not in self._sessions:
            self._sessions[intermediate] = Session(self._source, reference=True, all_outputs=intermediate)
        return self._sessions[intermediate]

    @property
    def input_names(self) -> list[str]:
        if self._node is not None:
            return list(dict.fromkeys(name for name in self._node.input if name))
        return [one.name for one in self._session(False).inputs if not one.optional]

    @property
    def output_names(self) -> list[str]:
        if self._node is not None:
            return [name for name in self._node.output if name]
        return [one.name for one in self._session(False).outputs]

    def run(self, output_names: Sequence[str] | None, feed_inputs: dict[str, Any], attributes: dict[str, Any] | None = None,
            intermediate: bool = False) -> Any:
        """The outputs that are named, all for None, as a list; with `intermediate` all values, as a dict."""
        if attributes:
            raise NotImplementedError("attributes are those of functions, which run in their model")
        if self._node is not None:
            inputs = [feed_inputs[name] for name in self.input_names]
            session = Session(model_of_node(self._node, inputs, self._opset), reference=True)
            made = session.run(feed_inputs)
        else:
            made = self._session(intermediate).run(feed_inputs)
        if intermediate:
            return {**feed_inputs, **made}
        return [made[name] for name in output_names or self.output_names]
