#!/usr/bin/env python3
"""Training artifacts of ONNX Runtime, and what its training API computes with them: tests/python/artifacts.

    PYTHON tools/make_artifacts.py

PYTHON has onnxruntime-training 1.19, which needs Python 3.8 to 3.11, torch and onnx below 1.17. Each folder gets the files
that `generate_artifacts` writes, and expected.npz: inputs and targets of some steps, the loss of each, the parameters and the
loss of the eval model after all, and the parameters of a training that goes on from checkpoint.resumed.
"""

import os
import pathlib

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import onnxruntime.training.api as api
from onnxruntime.training import artifacts

TO = pathlib.Path(__file__).resolve().parent.parent / "tests" / "python" / "artifacts"
STEPS, RESUMED_AT, BATCH = 6, 3, 4
rng = np.random.default_rng(7)


class Net:
    def __init__(self, inputs, outputs, opset=15):
        self.nodes, self.weights, self.inputs, self.outputs, self.opset = [], [], inputs, outputs, opset

    def weight(self, name, shape, value=None):
        values = rng.uniform(-0.4, 0.4, shape) if value is None else np.full(shape, value)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output + "_node", **attributes))
        return output

    def model(self):
        graph = helper.make_graph(self.nodes, "net", self.inputs, self.outputs, self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.checker.check_model(made, full_check=True)
        return made


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def dense(opset=15):
    net = Net([value("x", ["batch", 6])], [value("scores", ["batch", 3])], opset)
    y = net.add("Relu", [net.add("Gemm", ["x", net.weight("a.weight", (8, 6)), net.weight("a.bias", (8,))], "a", transB=1)], "b")
    net.add("Gemm", [y, net.weight("c.weight", (3, 8)), net.weight("c.bias", (3,))], "scores", transB=1)
    return net


def images():
    net = Net([value("x", ["batch", 2, 6, 6])], [value("scores", ["batch", 3])])
    y = net.add("Conv", ["x", net.weight("conv.weight", (4, 2, 3, 3)), net.weight("conv.bias", (4,))], "a", pads=[1, 1, 1, 1])
    y = net.add("BatchNormalization", [y, net.weight("norm.scale", (4,), 1), net.weight("norm.shift", (4,), 0),
                                       net.weight("norm.mean", (4,), 0), net.weight("norm.variance", (4,), 1)], "n")
    y = net.add("MaxPool", [net.add("Relu", [y], "r")], "p", kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Flatten", [net.add("GlobalAveragePool", [y], "g")], "f")
    net.add("Gemm", [y, net.weight("head.weight", (3, 4)), net.weight("head.bias", (3,))], "scores", transB=1)
    return net


def attention():
    """As exporters wrote it before operators for it came: LayerNormalization and Gelu in parts, which ONNX Runtime fuses."""
    net = Net([value("x", ["batch", 5], TensorProto.INT64)], [value("scores", ["batch", 3])])

    def number(name, of):
        net.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.float32(of), name)))
        return name

    e = net.add("Gather", [net.weight("embedding", (10, 8)), "x"], "e")
    q, k, v = (net.add("Add", [net.add("MatMul", [e, net.weight(p + ".weight", (8, 8))], p + "m"), net.weight(p + ".bias", (8,))], p)
               for p in "qkv")
    s = net.add("Div", [net.add("MatMul", [q, net.add("Transpose", [k], "kt", perm=[0, 2, 1])], "qk"), number("root", 8**0.5)], "s")
    y = net.add("Add", [net.add("MatMul", [net.add("Softmax", [s], "shares", axis=-1), v], "mixed"), e], "residual")
    d = net.add("Sub", [y, net.add("ReduceMean", [y], "mean", axes=[-1])], "d")
    two, small = number("two", 2), number("small", 1e-5)
    variance = net.add("ReduceMean", [net.add("Pow", [d, two], "square")], "variance", axes=[-1])
    y = net.add("Div", [d, net.add("Sqrt", [net.add("Add", [variance, small], "raised")], "deviation")], "normal")
    y = net.add("Add", [net.add("Mul", [y, net.weight("norm.scale", (8,), 1)], "scaled"), net.weight("norm.shift", (8,), 0)], "ln")
    u = net.add("Add", [net.add("MatMul", [y, net.weight("up.weight", (8, 8))], "um"), net.weight("up.bias", (8,))], "u")
    erf = net.add("Add", [net.add("Erf", [net.add("Div", [u, number("root2", 2**0.5)], "ud")], "ue"), number("one", 1)], "u1")
    y = net.add("Add", [y, net.add("Mul", [net.add("Mul", [u, erf], "uu"), number("half", 0.5)], "gelu")], "after")
    y = net.add("ReduceMean", [y], "pooled", axes=[1], keepdims=0)
    net.add("Gemm", [y, net.weight("head.weight", (3, 8)), net.weight("head.bias", (3,))], "scores", transB=1)
    return net


def make(name, net, loss, optimizer, frozen=(), outputs=(), x_of=None, target_of=None, edit=None):
    folder = TO / name
    folder.mkdir(parents=True, exist_ok=True)
    model = net.model()
    names = [one.name for one in net.weights]
    statistics = [one for one in names if one in ("norm.mean", "norm.variance")]
    kept = list(frozen) + statistics
    artifacts.generate_artifacts(
        model, requires_grad=[one for one in names if one not in kept], frozen_params=kept, loss=loss, optimizer=optimizer,
        artifact_directory=str(folder), additional_output_names=list(outputs) or None)
    if edit is not None:
        path = folder / "optimizer_model.onnx"
        made = onnx.load(path)
        edit(made)
        onnx.save(made, path)
    batches = [(x_of(), target_of()) for _ in range(STEPS)]

    def first(told):
        return told[0] if isinstance(told, (tuple, list)) else told

    state = api.CheckpointState.load_checkpoint(str(folder / "checkpoint"))
    module = api.Module(str(folder / "training_model.onnx"), state, str(folder / "eval_model.onnx"))
    steps = api.Optimizer(str(folder / "optimizer_model.onnx"), module)
    losses = []
    for at, (x, target) in enumerate(batches):
        if at == RESUMED_AT:
            api.CheckpointState.save_checkpoint(state, str(folder / "checkpoint.resumed"), include_optimizer_state=True)
        module.train()
        losses.append(float(first(module(x, target))))
        steps.step()
        module.lazy_reset_grad()
    module.eval()
    expected = {"losses": np.array(losses), "eval_loss": np.float64(first(module(*batches[0]))),
                "x": np.concatenate([x for x, _ in batches]), "target": np.concatenate([t for _, t in batches]),
                "target_name": np.array(module.input_names()[1]), "batch": np.int64(BATCH), "resumed_at": np.int64(RESUMED_AT)}
    for one, parameter in state.parameters:
        expected["parameter " + one] = parameter.data.copy()
    np.savez_compressed(folder / "expected.npz", **expected)
    print(name, [f"{one:.4f}" for one in losses], sum(one.stat().st_size for one in folder.iterdir()), "bytes")


def clip(made):
    """The node that ONNX Runtime's block for clipping adds."""
    adamw = made.graph.node[0]
    made.graph.node.insert(0, helper.make_node("InplaceClipGradNorm", [adamw.input[3]], ["clipped"], domain="com.microsoft",
                                               name="clip", max_norm=0.05))
    adamw.input[3] = "clipped"
    for attribute in adamw.attribute:
        if attribute.name == "weight_decay":
            attribute.f = 0.1


def torch_mode(made):
    for attribute in made.graph.node[0].attribute:
        if attribute.name == "adam_mode":
            attribute.i = 0
        if attribute.name == "weight_decay":
            attribute.f = 0.1


def numbers(*shape):
    return lambda: rng.standard_normal((BATCH, *shape)).astype(np.float32)


def classes(count):
    return lambda: rng.integers(0, count, BATCH)


def main():
    kinds, rules = artifacts.LossType, artifacts.OptimType
    make("classes", dense(), kinds.CrossEntropyLoss, rules.AdamW, x_of=numbers(6), target_of=classes(3))
    make("frozen", dense(14), kinds.MSELoss, rules.SGD, frozen=["a.weight", "a.bias"], x_of=numbers(6), target_of=numbers(3))
    make("clipped", dense(), kinds.BCEWithLogitsLoss, rules.AdamW, edit=clip, x_of=numbers(6),
         target_of=lambda: rng.random((BATCH, 3)).astype(np.float32))
    make("torch_adamw", dense(), kinds.L1Loss, rules.AdamW, edit=torch_mode, x_of=numbers(6), target_of=numbers(3))
    make("images", images(), kinds.CrossEntropyLoss, rules.AdamW, outputs=["scores"], x_of=numbers(2, 6, 6), target_of=classes(3))
    make("attention", attention(), kinds.CrossEntropyLoss, rules.AdamW, x_of=lambda: rng.integers(0, 10, (BATCH, 5)),
         target_of=classes(3))


if __name__ == "__main__":
    main()
