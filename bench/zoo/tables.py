"""Gathering and scattering: networks on graphs, recommenders on tables of embeddings."""

from __future__ import annotations

import numpy as np
from onnx import helper

from .net import Built, Net


def graph_network(nodes: int = 1000, edges: int = 8000, features: int = 64, hidden: int = 64, layers: int = 3,
                  classes: int = 8) -> Built:
    """Attention over a graph's edges: scores of neighbours made to sum to one by ScatterElements; then a mean."""
    net = Net("graph_network", opset=18, seed=90)
    x = net.input("x", net.normal(nodes, features), ["nodes", features])
    ends = net.random.integers(0, nodes, (2, edges))
    ends[:, 0] = nodes - 1
    ends = net.input("edge_index", ends, [2, "edges"])
    source, target = (net.op("Gather", ends, net.const(i, np.int64), axis=0) for i in range(2))
    count = net.op("Slice", net.op("Shape", x), net.ints(0), net.ints(1))

    def filled(shape: str, value: float) -> str:
        return net.op("ConstantOfShape", shape, value=helper.make_tensor("value", 1, [1], [value]))

    for _ in range(layers):
        h = net.matmul(x, hidden)
        left, right = (net.op("Squeeze", net.matmul(h, 1), net.ints(1)) for _ in range(2))
        score = net.op("Add", net.op("Gather", left, source), net.op("Gather", right, target))
        score = net.op("LeakyRelu", score, alpha=0.2)
        peak = net.op("ScatterElements", filled(count, -1e30), target, score, axis=0, reduction="max")
        share = net.op("Exp", net.op("Sub", score, net.op("Gather", peak, target)))
        total = net.op("ScatterElements", filled(count, 1e-9), target, share, axis=0, reduction="add")
        share = net.op("Div", share, net.op("Gather", total, target))
        message = net.op("Mul", net.op("Gather", h, source), net.op("Unsqueeze", share, net.ints(1)))
        shape = net.op("Concat", count, net.ints(hidden), axis=0)
        sums = net.op("ScatterND", filled(shape, 0.0), net.op("Unsqueeze", target, net.ints(1)), message,
                      reduction="add")
        x = net.op("Elu", net.op("Add", sums, net.matmul_add(x, hidden)))
    pooled = net.op("ReduceMean", x, net.ints(0), keepdims=1)
    return net.finish({net.matmul_add(x, classes, 2.0): ["nodes", classes],
                       net.gemm(pooled, classes, 2.0): [1, classes]})


def recommender(tables: int = 26, rows: int = 10000, width: int = 16, dense: int = 13, batch: int = 64) -> Built:
    """DLRM: a small network on numbers, a table of embeddings for each category, products of all pairs."""
    net = Net("recommender", opset=13, seed=91)
    x = net.input("dense", net.normal(batch, dense), ["batch", dense])
    ids = net.input("categories", net.random.integers(0, rows, (batch, tables)), ["batch", tables])
    for size in (512, 256, width):
        x = net.op("Relu", net.gemm(x, size))
    columns = net.op("Split", ids, net.ints(*[1] * tables), outputs=tables, axis=1)
    vectors = [net.op("Unsqueeze", x, net.ints(1))]
    vectors += [net.op("Gather", net.weight(net.normal(rows, width)), column, axis=0) for column in columns]
    stack = net.op("Concat", *vectors, axis=1)
    products = net.op("MatMul", stack, net.op("Transpose", stack, perm=[0, 2, 1]))
    lower = np.tril_indices(tables + 1, -1)
    flat = net.op("Reshape", products, net.ints(0, (tables + 1) ** 2))
    pairs = net.op("Gather", flat, net.weight((lower[0] * (tables + 1) + lower[1]).astype(np.int64)), axis=1)
    y = net.op("Concat", x, pairs, axis=1)
    for size in (512, 256):
        y = net.op("Relu", net.gemm(y, size))
    return net.finish({net.op("Sigmoid", net.gemm(y, 1, 1.5)): ["batch", 1]}, external=True)
