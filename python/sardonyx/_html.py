"""What notebooks show."""

from __future__ import annotations

import base64
import collections
import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from ._model import Model

MAX_NODES = 300  # of a graph that is drawn
MAX_DRAWING = 1_000_000  # bytes of SVG
MAX_ROWS = 100


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The first MAX_ROWS rows, with a line that says how many more there are."""
    listed = list(rows)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in listed[:MAX_ROWS])
    if len(listed) > MAX_ROWS:
        body += f"<tr><td colspan={len(header)}>and {len(listed) - MAX_ROWS} more</td></tr>"
    return "<table><tr>" + "".join(f"<th>{html.escape(one)}</th>" for one in header) + f"</tr>{body}</table>"


def drawing(model: Model) -> str:
    """A picture of the graph; a line that says why there is none for large ones. It is an image: nothing of the model becomes
    part of the page."""
    count = _core.node_count(model._held)
    if count > MAX_NODES:
        return f"<p>{count} nodes are too many for a picture here; Model.to_svg() draws them.</p>"
    drawn = _core.model_drawing(model._held, "svg", MAX_DRAWING)
    if drawn is None:
        return "<p>The picture is too large to be shown here; Model.to_svg() draws it.</p>"
    data = base64.b64encode(drawn.encode("utf-8", "replace")).decode()
    return ('<div style="max-height: 40em; overflow: auto"><img alt="the graph" style="max-width: none" '
            f'src="data:image/svg+xml;base64,{data}"></div>')


def of_model(model: Model) -> str:
    imports = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in model.opset_imports.items())
    producer = " ".join(filter(None, (model.producer_name, model.producer_version)))
    about = [("graph", model.graph_name), ("operator sets", imports), ("producer", producer)]
    about += [("input", f"{one.name}: {one.type}") for one in model.inputs]
    about += [("output", f"{one.name}: {one.type}") for one in model.outputs]
    counts = collections.Counter(".".join(filter(None, (node.domain, node.op_type))) for node in model.nodes)
    about.append(("nodes", ", ".join(f"{count} {name}" for name, count in counts.most_common(20)) + (", …" if len(counts) > 20 else "")))
    return table(["", ""], [row for row in about if row[1]]) + drawing(model)
