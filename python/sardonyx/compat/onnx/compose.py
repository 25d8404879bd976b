"""onnx.compose."""

from __future__ import annotations

from typing import Any

from ... import _tools


def merge_models(m1: Any, m2: Any, io_map: list[tuple[str, str]], inputs: list[str] | None = None, outputs: list[str] | None = None,
                 prefix1: str | None = None, prefix2: str | None = None, name: str | None = None, doc_string: str | None = None,
                 producer_name: str | None = "onnx.compose.merge_models", producer_version: str | None = "1.0",
                 domain: str | None = "", model_version: int | None = 1) -> Any:
    """Two models as one: outputs of the first feed inputs of the second. `io_map` has names before the prefixes.

    `inputs` and `outputs`: only the part that makes these of those, by names with their prefixes. Raises ValueError.
    """
    made = _tools.merge(m1, m2, list(io_map), first_prefix=prefix1 or "", second_prefix=prefix2 or "", outputs=outputs or ())
    if inputs:
        made = _tools.extract(made, inputs, [one.name for one in made.graph.output])
    made.graph.name = name or "_".join((m1.graph.name, m2.graph.name))
    made.graph.doc_string = doc_string or f"Graph combining {m1.graph.name} and {m2.graph.name}\n{m1.graph.name}\n\n" \
                                          f"{m1.graph.doc_string}\n\n{m2.graph.name}\n\n{m2.graph.doc_string}"
    made.producer_name, made.producer_version = producer_name or "", producer_version or ""
    made.domain, made.model_version = domain or "", model_version or 0
    return made


def add_prefix(model: Any, prefix: str, rename_nodes: bool | None = True, rename_edges: bool | None = True,
               rename_inputs: bool | None = True, rename_outputs: bool | None = True, rename_initializers: bool | None = True,
               rename_value_infos: bool | None = True, rename_functions: bool | None = True, inplace: bool | None = False,
               sub_graph_node: Any = None) -> Any:
    """The prefix before the names that are chosen, wherever they occur, in nested graphs too."""
    graph = model.graph
    inputs, outputs = [one.name for one in graph.input], [one.name for one in graph.output]
    initializers = [one.name for one in graph.initializer] + [one.values.name for one in graph.sparse_initializer]
    others = {name for node in graph.node for name in node.output if name} - set(inputs + outputs + initializers)
    chosen: dict[str, None] = {}
    for wanted, names in ((rename_inputs, inputs), (rename_outputs, outputs), (rename_initializers, initializers),
                          (rename_edges, sorted(others))):
        if wanted:
            chosen.update(dict.fromkeys(names))
    nodes = {node.name: prefix + node.name for node in graph.node if node.name} if rename_nodes else {}
    functions = {one.name: prefix + one.name for one in model.functions} if rename_functions else {}
    made = _tools.rename(model, values={name: prefix + name for name in chosen}, nodes=nodes, functions=functions)
    if inplace:
        model.CopyFrom(made)
        return model
    return made
