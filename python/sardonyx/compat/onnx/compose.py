"""onnx.compose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from ... import _tools
from ._messages import model_of_graph


def check_overlapping_names(g1: Any, g2: Any, io_map: Sequence[tuple[str, str]] | None = None) -> list[tuple[str, list[str]]]:
    """Names that both graphs have, by what they name: "edge", "value_info", "initializer", "sparse_initializer"; inputs of the second
    that `io_map` connects do not count."""
    _require_graph(g1, "g1")
    _require_graph(g2, "g2")
    connected = {name for _, name in io_map or ()}
    edges = [{name for node in graph.node for name in [*node.input, *node.output] if name} for graph in (g1, g2)]
    kinds: list[tuple[str, list[set[str]]]] = [
        ("edge", [edges[0], edges[1] - connected]),
        ("value_info", [{one.name for one in graph.value_info} for graph in (g1, g2)]),
        ("initializer", [{one.name for one in graph.initializer} for graph in (g1, g2)]),
        ("sparse_initializer", [{one.values.name for one in graph.sparse_initializer} for graph in (g1, g2)])]
    found = [(kind, sorted(one & other)) for kind, (one, other) in kinds if one & other]
    indices = [{one.indices.name for one in graph.sparse_initializer if one.indices.name} for graph in (g1, g2)]
    if indices[0] & indices[1]:
        if not found or found[-1][0] != "sparse_initializer":
            found.append(("sparse_initializer", []))
        found[-1][1].extend(sorted(indices[0] & indices[1]))
    return found


def _require_graph(graph: Any, name: str) -> None:
    if not isinstance(graph, onnx.GraphProto):
        raise TypeError(f"{name} argument is not an ONNX graph")


def merge_models(m1: Any, m2: Any, io_map: list[tuple[str, str]], inputs: list[str] | None = None, outputs: list[str] | None = None,
                 prefix1: str | None = None, prefix2: str | None = None, name: str | None = None, doc_string: str | None = None,
                 producer_name: str | None = "onnx.compose.merge_models", producer_version: str | None = "1.0",
                 domain: str | None = "", model_version: int | None = 1) -> Any:
    """Two models as one: outputs of the first feed inputs of the second. `io_map` has names before the prefixes.

    `inputs` and `outputs`: only the part that makes these of those, by names with their prefixes. Raises ValueError.
    """
    for given, which in ((m1, "m1"), (m2, "m2")):
        if not isinstance(given, onnx.ModelProto):
            raise TypeError(f"{which} argument is not an ONNX model")
    if m1.ir_version != m2.ir_version:
        raise ValueError(f"IR version mismatch {m1.ir_version} != {m2.ir_version}. Both models should have the same IR version")
    metadata = {one.key: one.value for one in m1.metadata_props}
    for prop in m2.metadata_props:
        if metadata.get(prop.key, prop.value) != prop.value:
            raise ValueError(f"Can't merge models with different values for the same model metadata property: '{prop.key}'")
    for graph, names, what in ((m1.graph.output, [one for one, _ in io_map], "Output {} is not present in g1"),
                               (m2.graph.input, [one for _, one in io_map], "Input {} is not present in g2")):
        there = {one.name for one in graph}
        for one in names:
            if one not in there:
                raise ValueError(what.format(one))
    made = _tools.merge(m1, m2, list(io_map), first_prefix=prefix1 or "", second_prefix=prefix2 or "", outputs=outputs or ())
    if inputs:
        made = _tools.extract(made, inputs, [one.name for one in made.graph.output])
    made.graph.name = name or "_".join((m1.graph.name, m2.graph.name))
    made.graph.doc_string = doc_string or f"Graph combining {m1.graph.name} and {m2.graph.name}\n{m1.graph.name}\n\n" \
                                          f"{m1.graph.doc_string}\n\n{m2.graph.name}\n\n{m2.graph.doc_string}"
    made.producer_name, made.producer_version = producer_name or "", producer_version or ""
    made.domain, made.model_version = domain or "", model_version or 0
    return made


def merge_graphs(g1: Any, g2: Any, io_map: list[tuple[str, str]], inputs: list[str] | None = None, outputs: list[str] | None = None,
                 prefix1: str | None = None, prefix2: str | None = None, name: str | None = None, doc_string: str | None = None) -> Any:
    """As merge_models, of graphs."""
    _require_graph(g1, "g1")
    _require_graph(g2, "g2")
    return merge_models(model_of_graph(g1), model_of_graph(g2), io_map, inputs, outputs, prefix1, prefix2, name, doc_string).graph


def _node_names(graph: Any) -> dict[str, None]:
    """Of the graph's nodes and of those in graphs inside of them."""
    found: dict[str, None] = {}
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            if node.name:
                found[node.name] = None
            for attribute in node.attribute:
                waiting.extend(attribute.graphs)
                if attribute.HasField("g"):
                    waiting.append(attribute.g)
    return found


def _names_made(graph: Any) -> set[str]:
    """Of values that a graph takes, has or makes itself."""
    names = {one.name for one in [*graph.input, *graph.initializer]} | {one.values.name for one in graph.sparse_initializer}
    return (names | {name for node in graph.node for name in node.output}) - {""}


def _prefix_inside(model: Any, prefix: str, done: set[str]) -> None:
    """Before names of values that graphs inside nodes make, but for those that are `done`."""
    waiting: list[tuple[Any, dict[str, str]]] = [(model.graph, {})]
    while waiting:
        graph, names = waiting.pop()
        for node in graph.node:
            for attribute in node.attribute:
                for inside in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
                    known = {**names, **{name: prefix + name for name in _names_made(inside) - done}}
                    _rename_in(inside, known)
                    waiting.append((inside, known))


def _rename_in(graph: Any, names: Mapping[str, str]) -> None:
    for one in [*graph.input, *graph.output, *graph.value_info, *graph.initializer, *(one.values for one in graph.sparse_initializer)]:
        one.name = names.get(one.name, one.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for quantized in graph.quantization_annotation:
        quantized.tensor_name = names.get(quantized.tensor_name, quantized.tensor_name)
        for one in quantized.quant_parameter_tensor_names:
            one.value = names.get(one.value, one.value)


def add_prefix(model: Any, prefix: str, rename_nodes: bool | None = True, rename_edges: bool | None = True,
               rename_inputs: bool | None = True, rename_outputs: bool | None = True, rename_initializers: bool | None = True,
               rename_value_infos: bool | None = True, rename_functions: bool | None = True, inplace: bool | None = False,
               sub_graph_node: Any = None) -> Any:
    """The prefix before the names that are chosen, wherever they occur, and before those of values that graphs inside nodes make."""
    if not isinstance(model, onnx.ModelProto):
        raise TypeError("model argument is not an ONNX model")
    graph = model.graph
    inputs, outputs = [one.name for one in graph.input], [one.name for one in graph.output]
    initializers = [one.name for one in graph.initializer] + [one.values.name for one in graph.sparse_initializer]
    others = {name for node in graph.node for name in node.output if name} - set(inputs + outputs + initializers)
    chosen: dict[str, None] = {}
    for wanted, names in ((rename_inputs, inputs), (rename_outputs, outputs), (rename_initializers, initializers),
                          (rename_edges, sorted(others))):
        if wanted:
            chosen.update(dict.fromkeys(names))
    nodes = {name: prefix + name for name in _node_names(graph)} if rename_nodes else {}
    functions = {one.name: prefix + one.name for one in model.functions} if rename_functions else {}
    made = _tools.rename(model, values={name: prefix + name for name in chosen}, nodes=nodes, functions=functions)
    _prefix_inside(made, prefix, {prefix + name for name in chosen})
    for sparse in made.graph.sparse_initializer if rename_initializers else ():
        if sparse.indices.name:
            sparse.indices.name = prefix + sparse.indices.name
    known = {*inputs, *outputs, *initializers, *others}
    for one in made.graph.value_info if rename_value_infos else ():
        if one.name not in known and not one.name.startswith(prefix):  # of what nothing makes
            one.name = prefix + one.name
    if inplace:
        model.CopyFrom(made)
        return model
    return made


def add_prefix_graph(graph: Any, prefix: str, rename_nodes: bool | None = True, rename_edges: bool | None = True,
                     rename_inputs: bool | None = True, rename_outputs: bool | None = True, rename_initializers: bool | None = True,
                     rename_value_infos: bool | None = True, inplace: bool | None = False, name_map: dict[str, str] | None = None) -> Any:
    """As add_prefix, of a graph. `name_map`: further names and what becomes of them."""
    if not isinstance(graph, onnx.GraphProto):
        raise TypeError("graph argument is not an ONNX graph")
    made = add_prefix(model_of_graph(graph), prefix, rename_nodes, rename_edges, rename_inputs, rename_outputs, rename_initializers,
                      rename_value_infos)
    if name_map:
        there = {name for node in made.graph.node for name in [*node.input, *node.output]}
        made = _tools.rename(made, values={old: new for old, new in name_map.items() if old in there and old != new})
    if inplace:
        graph.CopyFrom(made.graph)
        return graph
    return made.graph


def expand_out_dim(model: Any, dim_idx: int, inplace: bool | None = False) -> Any:
    """With a dimension of size 1 at `dim_idx` of every output."""
    if not isinstance(model, onnx.ModelProto):
        raise TypeError("model argument is not an ONNX model")
    inner = {one.name: f"{one.name}_collapsed_dim_{dim_idx}" for one in model.graph.output}
    made = _tools.rename(model, values=inner)
    graph = made.graph
    axis = f"{graph.name}_expand_out_dim_idx"
    value = helper.make_tensor(f"{axis}-value", onnx.TensorProto.INT64, [1], [dim_idx])
    graph.node.append(helper.make_node("Constant", [], [axis], name=f"{axis}-constant", value=value))
    for output in graph.output:
        inside = output.name
        (output.name,) = [name for name, other in inner.items() if other == inside]
        graph.node.append(helper.make_node("Unsqueeze", [inside, axis], [output.name], name=f"unsqueeze-{output.name}"))
        if output.type.tensor_type.HasField("shape"):
            dims = list(output.type.tensor_type.shape.dim)
            dims.insert(dim_idx if dim_idx >= 0 else len(dims) + 1 + dim_idx, onnx.TensorShapeProto.Dimension(dim_value=1))
            del output.type.tensor_type.shape.dim[:]
            output.type.tensor_type.shape.dim.extend(dims)
    if inplace:
        model.CopyFrom(made)
        return model
    return made


def expand_out_dim_graph(graph: Any, dim_idx: int, inplace: bool | None = False) -> Any:
    """As expand_out_dim, of a graph."""
    if not isinstance(graph, onnx.GraphProto):
        raise TypeError("graph argument is not an ONNX graph")
    made = expand_out_dim(model_of_graph(graph), dim_idx).graph
    if inplace:
        graph.CopyFrom(made)
        return graph
    return made


__all__ = ["add_prefix", "add_prefix_graph", "check_overlapping_names", "expand_out_dim", "expand_out_dim_graph", "merge_graphs",
           "merge_models"]
