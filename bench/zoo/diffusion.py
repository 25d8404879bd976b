"""A piece of a diffusion network: residual blocks told the time, attention over places and to a text."""

from __future__ import annotations

import numpy as np

from .net import Built
from .towers import norm
from .transformers import Transformer


class Block(Transformer):
    groups = 8

    def group_norm(self, x: str, epsilon: float = 1e-5) -> str:
        """As an operator from opset 21 on, before that around InstanceNormalization."""
        channels = self.values[x].shape[1]
        scale, bias = (1 + self.normal(channels, std=0.2)).astype(np.float32), self.normal(channels, std=0.1)
        if self.opset >= 21:
            return self.op("GroupNormalization", x, self.weight(scale), self.weight(bias), num_groups=self.groups,
                           epsilon=epsilon)
        shape = self.op("Shape", x)
        y = self.op("Reshape", x, self.ints(0, self.groups, -1))
        y = self.op("InstanceNormalization", y, self.weight(np.ones(self.groups, np.float32)),
                    self.weight(np.zeros(self.groups, np.float32)), epsilon=epsilon)
        y = self.op("Mul", self.op("Reshape", y, shape), self.weight(scale.reshape(-1, 1, 1)))
        return self.op("Add", y, self.weight(bias.reshape(-1, 1, 1)))

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))

    def residual(self, x: str, time: str, outputs: int) -> str:
        y = self.conv(self.silu(self.group_norm(x)), outputs, 3, 1, 1)
        told = self.op("Unsqueeze", self.gemm(self.silu(time), outputs, 0.5), self.ints(2, 3))
        y = self.op("Add", y, told)
        y = self.conv(self.silu(self.group_norm(y)), outputs, 3, 1, 1, target=0.6)
        if self.values[x].shape[1] != outputs:
            x = self.conv(x, outputs, 1)
        return self.op("Add", x, y)

    def attend(self, x: str, memory: str, heads: int) -> str:
        hidden = self.values[x].shape[-1]
        query = self.split_heads(self.matmul(x, hidden, 0.9), heads, [0, 2, 1, 3])
        key = self.split_heads(self.matmul(memory, hidden, 0.9), heads, [0, 2, 3, 1])
        value = self.split_heads(self.matmul(memory, hidden, 2.0), heads, [0, 2, 1, 3])
        scores = self.op("Mul", self.op("MatMul", query, key), self.const((hidden // heads) ** -0.5))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), value)
        return self.matmul_add(self.join_heads(y), hidden, 0.5)

    def transformer(self, x: str, text: str, heads: int) -> str:
        channels = self.values[x].shape[1]
        shape = self.op("Shape", x)
        y = self.conv(self.group_norm(x, 1e-6), channels, 1)
        y = self.op("Transpose", self.op("Reshape", y, self.ints(0, channels, -1)), perm=[0, 2, 1])
        z = norm(self, y)
        y = self.op("Add", y, self.attend(z, z, heads))
        y = self.op("Add", y, self.attend(norm(self, y), text, heads))
        value, gate = self.op("Split", self.matmul_add(norm(self, y), 8 * channels),
                              self.ints(4 * channels, 4 * channels), outputs=2, axis=-1)
        y = self.op("Add", y, self.matmul_add(self.op("Mul", value, self.gelu_erf(gate)), channels, 0.5))
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1]), shape)
        return self.op("Add", x, self.conv(y, channels, 1, target=0.6))


def diffusion(opset: int = 21, width: int = 64, side: int = 32, heads: int = 4, text_width: int = 128,
              length: int = 16, batch: int = 1) -> Built:
    """Predicts noise: down once, the middle, up once, with the way across."""
    net = Block(f"diffusion_{opset}", opset=opset, seed=opset)
    x = net.input("sample", net.normal(batch, 4, side, side), ["batch", 4, "height", "width"])
    step = net.input("timestep", np.full(batch, 500, np.int64), ["batch"])
    text = net.input("encoder_hidden_states", net.normal(batch, length, text_width), ["batch", "text", text_width])
    rates = np.exp(-np.log(10000) * np.arange(width // 2) / (width // 2)).astype(np.float32)[None]
    angles = net.op("Mul", net.op("Unsqueeze", net.op("Cast", step, to=1), net.ints(1)), net.weight(rates))
    time = net.op("Concat", net.op("Sin", angles), net.op("Cos", angles), axis=-1)
    time = net.gemm(net.silu(net.gemm(time, 4 * width)), 4 * width)

    x = net.conv(x, width, 3, 1, 1)
    across = net.transformer(net.residual(x, time, width), text, heads)
    x = net.conv(across, width, 3, 2, 1)
    x = net.residual(net.transformer(net.residual(x, time, 2 * width), text, heads), time, 2 * width)
    x = net.op("Resize", x, "", "", net.op("Concat", net.op("Slice", net.op("Shape", x), net.ints(0), net.ints(2)),
                                           net.op("Slice", net.op("Shape", across), net.ints(2), net.ints(4)), axis=0),
               mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = net.op("Concat", net.conv(x, width, 3, 1, 1), across, axis=1)
    x = net.transformer(net.residual(x, time, width), text, heads)
    x = net.conv(net.silu(net.group_norm(x)), 4, 3, 1, 1)
    return net.finish({x: ["batch", 4, "height", "width"]})
