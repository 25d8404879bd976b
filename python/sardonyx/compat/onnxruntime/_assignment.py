"""Which provider computes which node: there is one."""

from __future__ import annotations

from ..._model import Model, Node
from ._state import PROVIDER


class OrtEpAssignedNode:
    def __init__(self, node: Node):
        self.name: str = node.name
        self.domain: str = node.domain
        self.op_type: str = node.op_type


class OrtEpAssignedSubgraph:
    def __init__(self, nodes: list[OrtEpAssignedNode]):
        self.ep_name = PROVIDER
        self._nodes = nodes

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        return self._nodes


def assigned(model: Model) -> list[OrtEpAssignedSubgraph]:
    """Each node of the main graph as a part of its own."""
    return [OrtEpAssignedSubgraph([OrtEpAssignedNode(node)]) for node in model.nodes]
