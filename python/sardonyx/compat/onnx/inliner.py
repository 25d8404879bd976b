"""onnx.inliner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx.checker
import onnx.inliner

from ... import _tools
from ..._errors import Error, InvalidModelError
from ._install import theirs
from ._messages import model_of_graph


def inline_local_functions(model: Any, convert_version: bool = False) -> Any:
    """With calls of the model's functions replaced by their bodies. `convert_version`: nodes of functions that import another
    version of a domain are brought to the model's. ValidationError where calls go in circles."""
    try:
        if convert_version and _imports_differ(model):
            return _tools.convert_version(model, _version(model))
        return _tools.inline(model)
    except InvalidModelError as found:
        raise onnx.checker.ValidationError(str(found)) from found
    except Error as found:
        raise RuntimeError(str(found)) from found


def _version(model: Any) -> int:
    return next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)


def _imports_differ(model: Any) -> bool:
    versions = {one.domain: one.version for one in model.opset_import}
    return any(versions.get(one.domain, one.version) != one.version for function in model.functions for one in function.opset_import)


def inline_selected_functions(model: Any, function_ids: Sequence[tuple[str, str]], exclude: bool = False,
                              inline_schema_functions: bool = False) -> Any:
    """With calls of some functions replaced by their bodies, in the graph and in the functions that stay: those of `function_ids`, pairs
    of domain and name, or with `exclude` all others. `inline_schema_functions`: functions of the standard, too, as onnx does it."""
    named = {(domain, name) for domain, name in function_ids}
    if inline_schema_functions:
        return theirs("inliner", "inline_selected_functions")(model, list(function_ids), exclude, True)
    chosen: list[Any] = []
    kept: list[Any] = []
    for function in model.functions:
        (chosen if ((function.domain, function.name) in named) != exclude else kept).append(function)
    made = inline_local_functions(_with_functions(model, model.graph, chosen))
    for function in kept:
        made.functions.append(_inlined_function(model, function, chosen))
    return made


def _with_functions(model: Any, graph: Any, functions: Sequence[Any]) -> Any:
    whole = type(model)()
    whole.CopyFrom(model)
    whole.graph.CopyFrom(graph)
    del whole.functions[:]
    whole.functions.extend(functions)
    return whole


def _inlined_function(model: Any, function: Any, chosen: Sequence[Any]) -> Any:
    """The function with calls of the chosen ones replaced, as if its body were a graph."""
    graph = onnx.GraphProto(name=function.name)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in function.input)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    graph.node.extend(function.node)
    imports = {one.domain: one.version for one in function.opset_import}
    inlined = inline_local_functions(model_of_graph(graph, imports=imports, ir_version=model.ir_version, functions=chosen))
    made = onnx.FunctionProto()
    made.CopyFrom(function)
    del made.node[:]
    made.node.extend(inlined.graph.node)
    have = {one.domain for one in made.opset_import}
    made.opset_import.extend(one for one in inlined.opset_import if one.domain not in have)
    return made


__all__ = ["inline_local_functions", "inline_selected_functions"]
