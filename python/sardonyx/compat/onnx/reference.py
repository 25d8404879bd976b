"""What looks like onnx.reference.ReferenceEvaluator, and runs node after node in the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from ... import _core
from ..._session import Session
from ._messages import is_path, model_of_graph, model_of_node, newest_opset


class ReferenceEvaluator:
    """Runs a model, a graph, a function or a node; a path and bytes are models. `opsets`: of a graph or a node, by domain;
    `functions`: those that a graph, a function or a node calls."""

    def __init__(self, proto: Any, opsets: Mapping[str, int] | None = None, functions: Sequence[Any] | None = None, verbose: int = 0,
                 new_ops: Sequence[Any] | None = None, check_shape_annotations: bool = False):
        if new_ops:
            raise NotImplementedError("new_ops are operators for onnx's evaluator; sardonyx.operator makes those of sardonyx.Session")
        if check_shape_annotations:
            raise NotImplementedError("check_shape_annotations is not supported; sardonyx.infer_types(model, strict=True) finds "
                                      "declarations that contradict")
        self.proto_ = proto
        self._functions = [one.proto_ if isinstance(one, ReferenceEvaluator) else one for one in functions or ()]
        self._node: Any = None
        if isinstance(proto, onnx.FunctionProto):
            self._functions.append(proto)
            self._node = helper.make_node(proto.name, proto.input, proto.output, domain=proto.domain)
        elif isinstance(proto, onnx.NodeProto):
            self._node = proto
        elif not isinstance(proto, onnx.GraphProto) and (functions or opsets):
            raise ValueError("opsets and functions are for a graph or a node: a model has its own")
        self._imports = self._versions(opsets)
        self._source = proto if not isinstance(proto, onnx.GraphProto) else model_of_graph(proto, imports=self._imports,
                                                                                           functions=self._functions)
        self._sessions: dict[bool, Session] = {}
        if self._node is None:
            self._session(False)

    def _versions(self, opsets: Mapping[str, int] | None) -> dict[str, int]:
        """Of a graph's, a function's or a node's imports."""
        imports = {"": newest_opset()} if not opsets else {}
        if self._node is not None:
            imports.setdefault(self._node.domain, _core.operator_domains().get(self._node.domain, 1))
        for function in self._functions:
            imports.setdefault(function.domain, 1)
        if isinstance(self.proto_, onnx.FunctionProto):
            imports.update((one.domain, one.version) for one in self.proto_.opset_import)
        return {**imports, **(opsets or {})}

    def _session(self, intermediate: bool) -> Session:
        if intermediate not in self._sessions:
            self._sessions[intermediate] = Session(self._source, reference=True, all_outputs=intermediate)
        return self._sessions[intermediate]

    @property
    def opsets(self) -> dict[str, int]:
        return dict(self._imports) if self._node is not None else self._session(False).model.opset_imports

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

    def _graph(self) -> Any:
        if self._node is not None:
            raise AttributeError("a function and a node do not say types of their inputs and outputs")
        if is_path(self._source):
            return onnx.load(self._source, load_external_data=False).graph
        return (onnx.load_model_from_string(self._source) if isinstance(self._source, bytes) else self._source).graph

    @property
    def input_types(self) -> list[Any]:
        types = {one.name: one.type for one in self._graph().input}
        return [types[name] for name in self.input_names]

    @property
    def output_types(self) -> list[Any]:
        return [one.type for one in self._graph().output]

    def run(self, output_names: Sequence[str] | None, feed_inputs: dict[str, Any], attributes: dict[str, Any] | None = None,
            intermediate: bool = False) -> Any:
        """The values that are named, all outputs for None, as a list; with `intermediate` all values, as a dict. `attributes`: those of
        a function."""
        if attributes and not isinstance(self.proto_, onnx.FunctionProto):
            raise ValueError("attributes are those of a function, and this is none")
        names = list(self.output_names if output_names is None else output_names)
        is_inside = intermediate or not set(names) <= {*self.output_names, *feed_inputs}
        if self._node is not None:
            session = self._session_of_node(feed_inputs, attributes or {})
        else:
            session = self._session(is_inside)
        made = {**feed_inputs, **session.run(feed_inputs)}
        if intermediate:
            return made
        for name in names:
            if name not in made:
                raise RuntimeError(f"Unable to find output name {name!r} in {sorted(made)}.")
        return [made[name] for name in names]

    def _session_of_node(self, feed_inputs: dict[str, Any], attributes: dict[str, Any]) -> Session:
        node = onnx.NodeProto()
        node.CopyFrom(self._node)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        inputs = [feed_inputs[name] for name in self.input_names]
        return Session(model_of_node(node, inputs, imports=self._imports, functions=self._functions), reference=True)
