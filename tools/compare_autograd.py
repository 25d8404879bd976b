#!/usr/bin/env python3
"""Gradients of random training graphs beside PyTorch's autograd.

    tools/compare_autograd.py [--graphs N] [--seed S] [--torch PYTHON] [--keep FOLDER]

Draws N graphs (500): layers on images, sequences or rows, with shared weights, sums over earlier values and broadcast factors,
and a loss at their end. Each is a model whose Gradient node gives the derivative of the loss by every weight and input, and the
same operations in PyTorch; both compute in float64 from the same values. Losses and gradients must agree within 1e-8, relative to
the largest element of each. Needs the Python package (PYTHONPATH=build/release/python), onnx and numpy; PYTHON has torch 2 and
runs this file with --child. --keep writes the models that differ there. The exit code is 1 where any does.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np

TOLERANCE = 1e-8

# --- Drawing ----------------------------------------------------------------------------------------


class Program:
    """Steps of one graph: [operation, inputs, settings, output]. Values have shapes; inputs have arrays."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.steps, self.shapes, self.arrays, self.learned = [], {}, {}, []

    def below(self, n):
        return int(self.rng.integers(n))

    def one_of(self, *choices):
        return choices[self.below(len(choices))]

    def weight(self, shape, fan_in=4, low=None):
        shape = tuple(int(n) for n in shape)
        same = [name for name in self.learned if name != "x" and self.shapes[name] == shape and low is None]
        if same and self.below(4) == 0:
            return self.one_of(*same)  # shared
        name = f"w{len(self.arrays)}"
        values = self.rng.uniform(-1, 1, shape) / np.sqrt(fan_in) if low is None else self.rng.uniform(low, low + 1, shape)
        return self.array(name, values, True)

    def array(self, name, values, learned=False):
        self.arrays[name] = np.asarray(values)
        self.shapes[name] = self.arrays[name].shape
        if learned:
            self.learned.append(name)
        return name

    def add(self, op, inputs, shape, **settings):
        output = f"v{len(self.steps)}"
        self.steps.append([op, list(inputs), settings, output])
        self.shapes[output] = tuple(int(n) for n in shape)
        return output


ACTIVATIONS = ["Relu", "Sigmoid", "Tanh", "Elu", "Selu", "Celu", "LeakyRelu", "Softplus", "Softsign", "Gelu", "HardSigmoid",
               "HardSwish", "Mish", "Erf", "Sin", "Exp"]


def any_shape(p, x):
    """What keeps the shape of whatever it gets."""
    shape = p.shapes[x]
    kind = p.below(9)
    if kind == 0:
        earlier = [s[3] for s in p.steps if p.shapes[s[3]] == shape and s[3] != x]
        if earlier:
            return p.add(p.one_of("Add", "Mul", "Sub", "Max", "Min"), [x, p.one_of(*earlier)], shape)
    if kind == 1:
        part = tuple(n if p.below(2) else 1 for n in shape)[p.below(len(shape)):]
        if part:
            return p.add(p.one_of("Add", "Mul", "Sub"), [x, p.weight(part)], shape)
    if kind == 2:
        return p.add("Div", [x, p.weight(shape[-1:], low=0.7)], shape)
    if kind == 3:
        return p.add(p.one_of("Softmax", "LogSoftmax"), [x], shape, axis=p.below(len(shape)))
    if kind == 4:
        return p.add("LayerNormalization", [x, p.weight(shape[-1:], low=0.5), p.weight(shape[-1:])], shape)
    if kind == 5:
        return p.add("PRelu", [x, p.weight((shape[1],) + (1,) * (len(shape) - 2))], shape)
    if kind == 6 and shape[-1] > 1:
        at = 1 + p.below(shape[-1] - 1)
        return p.add("Swapped", [x], shape, at=at)  # Slice twice, Concat
    if kind == 7:
        return p.add(p.one_of("CumSum"), [x], shape, axis=p.below(len(shape)))
    return p.add(p.one_of(*ACTIVATIONS), [x], shape)


def image_layer(p, x):
    n, c, h, w = p.shapes[x]
    kind = p.below(8)
    if kind <= 2 and min(h, w) >= 2:
        group = p.one_of(1, 1, c)
        out = c * (1 + p.below(2)) if group > 1 else 1 + p.below(5)
        k, stride, pad = 1 + p.below(min(3, h, w)), 1 + p.below(2), p.below(2)
        size = [(s + 2 * pad - k) // stride + 1 for s in (h, w)]
        inputs = [x, p.weight((out, c // group, k, k), c * k * k)] + ([p.weight((out,))] if p.below(2) else [])
        return p.add("Conv", inputs, (n, out, *size), group=group, stride=stride, pad=pad)
    if kind == 3 and max(h, w) <= 10:
        out, k, stride = 1 + p.below(4), 1 + p.below(3), 1 + p.below(2)
        size = [(s - 1) * stride + k for s in (h, w)]
        return p.add("ConvTranspose", [x, p.weight((c, out, k, k), c * k * k)], (n, out, *size), stride=stride)
    if kind == 4 and min(h, w) >= 2:
        stride = 1 + p.below(2)
        size = [(s - 2) // stride + 1 for s in (h, w)]
        return p.add(p.one_of("MaxPool", "AveragePool"), [x], (n, c, *size), stride=stride)
    if kind == 5 and n * h * w > 2:
        return p.add("BatchNormalization", [x, p.weight((c,), low=0.5), p.weight((c,))], (n, c, h, w))
    if kind == 6 and h * w > 2:
        return p.add(p.one_of("InstanceNormalization", "GroupNormalization"), [x, p.weight((c,), low=0.5), p.weight((c,))],
                     (n, c, h, w))
    if kind == 7 and max(h, w) <= 8:
        return p.add("Upsampled", [x], (n, c, 2 * h, 2 * w), mode=p.one_of("nearest", "linear"))
    return any_shape(p, x)


def sequence_layer(p, x):
    n, t, d = p.shapes[x]
    kind = p.below(7)
    if kind == 0:
        out = 1 + p.below(6)
        return p.add("MatMul", [x, p.weight((d, out), d)], (n, t, out))
    if kind <= 2:
        op, both, hidden = p.one_of("LSTM", "LSTM", "GRU", "RNN"), p.below(2), 1 + p.below(4)
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
        inputs = [x]
        for _ in range(1 + both):
            inputs += [p.weight((gates * hidden, d), hidden), p.weight((gates * hidden, hidden), hidden),
                       p.weight((gates * hidden,)), p.weight((gates * hidden,))]
        return p.add(op, inputs, (n, t, hidden * (1 + both)), hidden=hidden, both=both)
    if kind == 3 and d % 2 == 0:
        weights = [p.weight((d, d), d) for _ in range(3)]
        return p.add("Attention", [x, *weights], (n, t, d), causal=p.below(2))
    if kind == 4:
        return p.add("Transpose", [x], (n, d, t))
    if kind == 5:
        places = p.array(f"i{len(p.arrays)}", p.rng.integers(0, t, 1 + p.below(5)))
        return p.add("Gather", [x, places], (n, p.shapes[places][0], d))
    return any_shape(p, x)


def row_layer(p, x):
    n, d = p.shapes[x]
    if p.below(3) == 0:
        out = 1 + p.below(6)
        return p.add("Gemm", [x, p.weight((out, d), d), p.weight((out,))], (n, out))
    return any_shape(p, x)


def drawn(seed):
    p = Program(seed)
    n, kind = 1 + p.below(4), p.one_of("image", "sequence", "sequence", "row")
    shape = {"image": (n, 1 + p.below(4), 3 + p.below(6), 3 + p.below(6)), "sequence": (n, 1 + p.below(5), 1 + p.below(6)),
             "row": (n, 1 + p.below(8))}[kind]
    x = p.array("x", p.rng.uniform(-2, 2, shape), True)
    if kind == "sequence" and p.below(3) == 0:  # an embedding
        table = p.weight((5, shape[2]))
        words = p.array("words", p.rng.integers(0, 5, shape[:2]))
        x = p.add("Add", [x, p.add("Embedding", [table, words], shape)], shape)
    layer = {"image": image_layer, "sequence": sequence_layer, "row": row_layer}[kind]
    for _ in range(2 + p.below(6)):
        x = layer(p, x)
    if len(p.shapes[x]) > 2:
        if p.below(2):
            axes = list(range(2, len(p.shapes[x])))
            x = p.add(p.one_of("ReduceMean", "ReduceSum", "ReduceMax", "ReduceLogSumExp", "ReduceL2"), [x], p.shapes[x][:2], axes=axes)
        else:
            x = p.add("Flatten", [x], (n, int(np.prod(p.shapes[x][1:]))))
    for _ in range(p.below(3)):
        x = row_layer(p, x)
    classes = p.shapes[x][1]
    loss = p.one_of("CrossEntropy", "Mse", "L1", "Huber", "Bce")
    if loss == "CrossEntropy":
        target = p.array("target", p.rng.integers(0, classes, n))
    else:
        target = p.array("target", p.rng.uniform(0, 1, p.shapes[x]))
    p.add(loss, [x, target], ())
    return p


# --- As a model -------------------------------------------------------------------------------------


def model_of(p):
    from onnx import TensorProto, helper, numpy_helper
    nodes, count = [], 0

    def node(op, inputs, outputs=None, domain="", **attributes):
        nonlocal count
        count += 1
        names = outputs or [f"t{count}"]
        nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0]

    def const(values, dtype=np.int64):
        return node("Constant", [], value=numpy_helper.from_array(np.asarray(values, dtype)))

    def real(value):
        return const(value, np.float64)

    for op, ins, s, out in p.steps:
        to = {"outputs": [out]}
        shape = p.shapes[ins[0]]
        if op == "Conv":
            node("Conv", ins, **to, group=s["group"], strides=[s["stride"]] * 2, pads=[s["pad"]] * 4)
        elif op == "ConvTranspose":
            node("ConvTranspose", ins, **to, strides=[s["stride"]] * 2)
        elif op in ("MaxPool", "AveragePool"):
            node(op, ins, **to, kernel_shape=[2, 2], strides=[s["stride"]] * 2)
        elif op == "BatchNormalization":
            zeros, ones = real(np.zeros(shape[1])), real(np.ones(shape[1]))
            node(op, [*ins, zeros, ones], outputs=[out, f"{out}_mean", f"{out}_var"], training_mode=1)
        elif op == "GroupNormalization":
            node(op, ins, **to, num_groups=1)
        elif op == "Upsampled":
            scales = const([1, 1, 2, 2], np.float32)
            more = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"} if s["mode"] == "nearest" else {}
            node("Resize", [ins[0], "", scales], **to, mode=s["mode"], **more)
        elif op in ("LSTM", "GRU", "RNN"):
            directions = [ins[1 + 4 * d:5 + 4 * d] for d in range(1 + s["both"])]

            def gates(name):  # PyTorch has i f g o and r z n
                if op == "RNN":
                    return name
                parts = 4 if op == "LSTM" else 3
                names = [f"{out}_{name}_{k}_{count}" for k in range(parts)]
                node("Split", [name], outputs=names, axis=0, num_outputs=parts)
                order = [0, 3, 1, 2] if op == "LSTM" else [1, 0, 2]
                return node("Concat", [names[k] for k in order], axis=0)

            def stacked(values):
                return node("Concat", [node("Unsqueeze", [value, const([0])]) for value in values], axis=0)

            w, r = (stacked([gates(direction[k]) for direction in directions]) for k in (0, 1))
            b = stacked([node("Concat", [gates(direction[2]), gates(direction[3])], axis=0) for direction in directions])
            more = {"linear_before_reset": 1} if op == "GRU" else {}
            by_step = node("Transpose", [ins[0]], perm=[1, 0, 2])
            y = node(op, [by_step, w, r, b], hidden_size=s["hidden"],
                     direction="bidirectional" if s["both"] else "forward", **more)
            y = node("Transpose", [y], perm=[2, 0, 1, 3])  # [batch, steps, directions, hidden]
            node("Reshape", [y, const([0, 0, -1])], **to)
        elif op == "Attention":
            q, k, v = (node("MatMul", [ins[0], weight]) for weight in ins[1:])
            node("Attention", [q, k, v], **to, q_num_heads=2, kv_num_heads=2, is_causal=s["causal"])
        elif op == "Transpose":
            node(op, ins, **to, perm=[0, 2, 1])
        elif op == "Gather":
            node(op, ins, **to, axis=1)
        elif op == "Embedding":
            node("Gather", ins, **to)
        elif op == "Gemm":
            node(op, ins, **to, transB=1)
        elif op in ("Softmax", "LogSoftmax"):
            node(op, ins, **to, axis=s["axis"])
        elif op == "LayerNormalization":
            node(op, ins, **to, axis=-1)
        elif op == "CumSum":
            node(op, [ins[0], const(s["axis"])], **to)
        elif op == "Swapped":
            last, at, end = const([-1]), const([s["at"]]), const([shape[-1]])
            parts = [node("Slice", [ins[0], at, end, last]), node("Slice", [ins[0], const([0]), at, last])]
            node("Concat", parts, **to, axis=-1)
        elif op.startswith("Reduce"):
            node(op, [ins[0], const(s["axes"])], **to, keepdims=0)
        elif op == "CrossEntropy":
            node("SoftmaxCrossEntropyLoss", ins, **to)
        elif op in ("Mse", "L1", "Huber"):
            rest = node("Sub", ins)
            if op == "Mse":
                each = node("Mul", [rest, rest])
            else:
                each = node("Abs", [rest])
            if op == "Huber":
                near = node("Mul", [node("Mul", [rest, rest]), real(0.5)])
                each = node("Where", [node("Less", [each, real(1)]), near, node("Sub", [each, real(0.5)])])
            node("ReduceMean", [each], **to, keepdims=0)
        elif op == "Bce":  # of logits
            positive = node("Mul", [node("Softplus", [node("Neg", [ins[0]])]), ins[1]])
            negative = node("Mul", [node("Softplus", [ins[0]]), node("Sub", [real(1), ins[1]])])
            node("ReduceMean", [node("Add", [positive, negative])], **to, keepdims=0)
        else:
            node(op, ins, **to)
    loss = p.steps[-1][3]
    node("Gradient", p.learned, outputs=[f"d_{name}" for name in p.learned], domain="ai.onnx.preview.training", xs=p.learned, y=loss)
    kinds = {np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.int64): TensorProto.INT64}
    inputs = [helper.make_tensor_value_info(name, kinds[value.dtype], value.shape) for name, value in p.arrays.items()]
    outputs = [helper.make_tensor_value_info(loss, TensorProto.DOUBLE, [])]
    outputs += [helper.make_tensor_value_info(f"d_{name}", TensorProto.DOUBLE, p.shapes[name]) for name in p.learned]
    graph = helper.make_graph(nodes, "random", inputs, outputs)
    imports = [helper.make_opsetid("", 23), helper.make_opsetid("ai.onnx.preview.training", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=11).SerializeToString()


# --- In PyTorch -------------------------------------------------------------------------------------


def attribute(value):
    """As an attribute holds it: in float32."""
    return float(np.float32(value))


def torch_step(torch, op, x, s):
    f, nn = torch.nn.functional, torch.nn
    epsilon = attribute(1e-5)
    simple = {"Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Elu": f.elu, "Celu": f.celu,
              "Softplus": f.softplus, "Softsign": f.softsign, "Gelu": f.gelu, "HardSwish": f.hardswish,
              "Mish": f.mish, "Erf": torch.erf, "Sin": torch.sin, "Exp": torch.exp, "Add": torch.add, "Sub": torch.sub,
              "Mul": torch.mul, "Div": torch.div, "Max": torch.maximum, "Min": torch.minimum, "MatMul": torch.matmul}
    if op in simple:
        return simple[op](*x)
    if op == "HardSigmoid":
        return torch.clamp(attribute(0.2) * x[0] + 0.5, 0, 1)
    if op == "LeakyRelu":
        return f.leaky_relu(x[0], attribute(0.01))
    if op == "Selu":
        return attribute(1.05070102214813232421875) * f.elu(x[0], attribute(1.67326319217681884765625))
    if op == "Conv":
        return f.conv2d(x[0], x[1], x[2] if len(x) > 2 else None, s["stride"], s["pad"], 1, s["group"])
    if op == "ConvTranspose":
        return f.conv_transpose2d(x[0], x[1], None, s["stride"])
    if op == "MaxPool":
        return f.max_pool2d(x[0], 2, s["stride"])
    if op == "AveragePool":
        return f.avg_pool2d(x[0], 2, s["stride"])
    if op == "BatchNormalization":
        return f.batch_norm(x[0], None, None, x[1], x[2], True, eps=epsilon)
    if op == "InstanceNormalization":
        return f.instance_norm(x[0], None, None, x[1], x[2], eps=epsilon)
    if op == "GroupNormalization":
        return f.group_norm(x[0], 1, x[1], x[2], epsilon)
    if op == "LayerNormalization":
        return f.layer_norm(x[0], x[1].shape, x[1], x[2], epsilon)
    if op == "PRelu":
        return torch.where(x[0] >= 0, x[0], x[0] * x[1])
    if op == "Upsampled":
        if s["mode"] == "nearest":
            return f.interpolate(x[0], scale_factor=2, mode="nearest")
        return f.interpolate(x[0], scale_factor=2, mode="bilinear", align_corners=False)
    if op in ("LSTM", "GRU", "RNN"):
        layer = getattr(nn, op)(x[0].shape[2], s["hidden"], batch_first=True, bidirectional=bool(s["both"])).double()
        names = [name for name, _ in layer.named_parameters()]
        return torch.func.functional_call(layer, dict(zip(names, x[1:])), (x[0],))[0]
    if op == "Attention":
        n, t, d = x[0].shape
        q, k, v = ((x[0] @ weight).reshape(n, t, 2, d // 2).transpose(1, 2) for weight in x[1:])
        return f.scaled_dot_product_attention(q, k, v, is_causal=bool(s["causal"])).transpose(1, 2).reshape(n, t, d)
    if op == "Transpose":
        return x[0].transpose(1, 2)
    if op == "Gather":
        return x[0][:, x[1]]
    if op == "Embedding":
        return f.embedding(x[1], x[0])
    if op == "Gemm":
        return f.linear(*x)
    if op in ("Softmax", "LogSoftmax"):
        return (torch.softmax if op == "Softmax" else torch.log_softmax)(x[0], s["axis"])
    if op == "CumSum":
        return torch.cumsum(x[0], s["axis"])
    if op == "Swapped":
        return torch.cat([x[0][..., s["at"]:], x[0][..., :s["at"]]], -1)
    if op == "Flatten":
        return x[0].flatten(1)
    reductions = {"ReduceMean": torch.mean, "ReduceSum": torch.sum, "ReduceMax": torch.amax, "ReduceLogSumExp": torch.logsumexp,
                  "ReduceL2": torch.linalg.vector_norm}
    if op in reductions:
        return reductions[op](x[0], dim=s["axes"])
    losses = {"CrossEntropy": f.cross_entropy, "Mse": f.mse_loss, "L1": f.l1_loss, "Huber": f.huber_loss,
              "Bce": f.binary_cross_entropy_with_logits}
    return losses[op](*x)


def child(folder):
    import torch
    for file in sorted(folder.glob("*.json")):
        told = json.loads(file.read_text())
        values = {name: torch.tensor(array) for name, array in np.load(file.with_suffix(".npz")).items()}
        for name in told["learned"]:
            values[name].requires_grad_()
        for op, inputs, settings, output in told["steps"]:
            values[output] = torch_step(torch, op, [values[name] for name in inputs], settings)
        loss = values[told["steps"][-1][3]]
        loss.backward()
        zeros = {name: torch.zeros_like(values[name]) for name in told["learned"]}
        made = {f"d_{name}": (values[name].grad if values[name].grad is not None else zeros[name]).numpy() for name in told["learned"]}
        np.savez(folder / (file.stem + ".torch.npz"), loss=loss.detach().numpy(), **made)
    print(torch.__version__)


# --- Both -------------------------------------------------------------------------------------------


def difference(found, expected):
    if found.shape != expected.shape or not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return np.inf
    scale = max(1e-3, float(np.max(np.abs(expected), initial=0)))
    return float(np.max(np.abs(found - expected), initial=0)) / scale


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--torch", default=sys.executable, help="the command of a Python that has torch")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for models that differ")
    parser.add_argument("--child", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child)
    import sardonyx
    with tempfile.TemporaryDirectory() as scratch:
        folder, programs = pathlib.Path(scratch), {}
        for seed in range(options.seed, options.seed + options.graphs):
            p = programs[f"{seed:06}"] = drawn(seed)
            (folder / f"{seed:06}.json").write_text(json.dumps({"steps": p.steps, "learned": p.learned}))
            np.savez(folder / f"{seed:06}.npz", **p.arrays)
        out = subprocess.run([*shlex.split(options.torch), __file__, "--child", folder], check=True, stdout=subprocess.PIPE, text=True)
        operations, largest, failed, gradients = Counter(), 0.0, 0, 0
        for name, p in programs.items():
            operations.update({step[0] for step in p.steps})
            expected = np.load(folder / f"{name}.torch.npz")
            model, problem = model_of(p), ""
            try:
                session = sardonyx.Session(model)
                loss, *slopes = session.run(p.arrays).values()
                told = {"loss": difference(np.asarray(loss), expected["loss"])}
                for weight, slope in zip(p.learned, slopes):
                    told[weight] = difference(np.asarray(slope), expected[f"d_{weight}"])
                gradients += len(slopes)
                worst = max(told, key=told.get)
                largest = max(largest, told[worst]) if told[worst] <= TOLERANCE else largest
                if not told[worst] <= TOLERANCE:
                    problem = f"{worst} differs by {told[worst]:.1e}"
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            if problem:
                failed += 1
                print(f"graph {int(name)}: {problem}; {' '.join(step[0] for step in p.steps)}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{name}.onnx").write_bytes(model)
        print(f"{len(programs)} graphs, {gradients} gradients, {len(operations)} operations, beside PyTorch {out.stdout.strip()}: "
              f"{failed} differ; the others by at most {largest:.1e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
