#!/usr/bin/env python3
"""Training side by side with PyTorch: the same initial weights and batches.

  bench/training.py                       models by name: --models mlp,resnet
  bench/training.py --torch 'PYTHON'      a Python that has torch, with its own environment if need be
  bench/training.py --compile             beside torch.compile, too

Prints, for each model and number of threads, the time of a step as a share of PyTorch's (medians of
the last epochs, all measured in turn), the largest relative difference of the losses from PyTorch's,
and that of both from PyTorch's in float64, and the peak memory of a process. Two float32 trainings
drift apart as fast as a network enlarges rounding, whoever computes them: where PyTorch's own
float32 is that far from its float64, so may others be. PyTorch runs in a process of its own: this
file with --child.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH, BATCHES = 64, 10

# --- The models, as the standard and as PyTorch say them -------------------------------------------


class Net:
    """Collects nodes and weights."""

    def __init__(self, seed: int = 0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], {}, 0
        self.other_form = {}  # initializers of the model that PyTorch has in another form
        self.constants = {}  # initializers that do not learn, and PyTorch's buffers

    def name(self, hint):
        self.count += 1
        return f"{hint}{self.count}"

    def weight(self, shape, fan_in, name):
        self.weights[name] = (self.rng.uniform(-1, 1, shape) / np.sqrt(fan_in)).astype(np.float32)
        return name

    def fill(self, value, size, name):
        self.weights[name] = np.full(size, value, np.float32)
        return name

    def add(self, op, inputs, **attributes):
        from onnx import helper
        output = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def linear(self, x, size_in, size_out, name):
        weight = self.weight((size_out, size_in), size_in, name + ".weight")
        return self.add("Gemm", [x, weight, self.weight(size_out, size_in, name + ".bias")], transB=1)

    def conv(self, x, size_in, size_out, kernel, stride, name):
        weight = self.weight((size_out, size_in, kernel, kernel), size_in * kernel * kernel, name + ".weight")
        pad = kernel // 2
        return self.add("Conv", [x, weight], pads=[pad] * 4, strides=[stride] * 2, kernel_shape=[kernel] * 2)

    def norm(self, x, size, name):
        parts = [self.fill(1, size, name + ".weight"), self.fill(0, size, name + ".bias"),
                 self.fill(0, size, name + ".running_mean"), self.fill(1, size, name + ".running_var")]
        return self.add("BatchNormalization", [x, *parts], momentum=0.9)

    def relu(self, x):
        return self.add("Relu", [x])


def mlp(net):
    x = net.relu(net.linear("x", 784, 512, "0"))
    x = net.relu(net.linear(x, 512, 512, "2"))
    return net.linear(x, 512, 10, "4")


def resnet(net, widths=(16, 32, 64), blocks=1):
    """A residual network for 32x32 images with BatchNormalization."""
    x = net.relu(net.norm(net.conv("x", 3, widths[0], 3, 1, "stem"), widths[0], "stem_norm"))
    before = widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            name = f"s{stage}b{block}"
            y = net.relu(net.norm(net.conv(x, before, width, 3, stride, name + "_conv1"), width, name + "_norm1"))
            y = net.norm(net.conv(y, width, width, 3, 1, name + "_conv2"), width, name + "_norm2")
            if stride != 1 or before != width:
                x = net.norm(net.conv(x, before, width, 1, stride, name + "_down"), width, name + "_down_norm")
            x, before = net.relu(net.add("Add", [y, x])), width
    x = net.add("Flatten", [net.add("GlobalAveragePool", [x])])
    return net.linear(x, before, 10, "head")


WIDTH, PLACES, HEADS, LAYERS = 128, 32, 4, 4


def transformer(net):
    """Encoder layers with the norm before each part, a mean over the places and a classifier."""
    from onnx import numpy_helper

    def constant(values):
        name = net.name("constant")
        net.nodes.append(onnx_constant(numpy_helper.from_array(np.asarray(values, np.int64)), name))
        return name

    def linear(x, size_in, size_out, name):
        weight = net.weight((size_in, size_out), size_in, name + ".weight")
        return net.add("Add", [net.add("MatMul", [x, weight]), net.weight(size_out, size_in, name + ".bias")])

    def norm(x, name):
        return net.add("LayerNormalization", [x, net.fill(1, WIDTH, name + ".weight"), net.fill(0, WIDTH, name + ".bias")])

    def heads(x, order):
        return net.add("Transpose", [net.add("Reshape", [x, apart])], perm=order)

    apart, together = constant([0, 0, HEADS, WIDTH // HEADS]), constant([0, 0, WIDTH])
    scale = net.name("scale")
    net.nodes.append(onnx_constant(numpy_helper.from_array(np.float32((WIDTH // HEADS) ** -0.5)), scale))
    x = "x"
    for layer in range(LAYERS):
        name = f"l{layer}"
        y = norm(x, name + "_norm1")
        q, k, v = (linear(y, WIDTH, WIDTH, f"{name}_{part}") for part in "qkv")
        scores = net.add("MatMul", [heads(q, [0, 2, 1, 3]), heads(k, [0, 2, 3, 1])])
        shares = net.add("Softmax", [net.add("Mul", [scores, scale])], axis=-1)
        mixed = net.add("Transpose", [net.add("MatMul", [shares, heads(v, [0, 2, 1, 3])])], perm=[0, 2, 1, 3])
        x = net.add("Add", [x, linear(net.add("Reshape", [mixed, together]), WIDTH, WIDTH, name + "_out")])
        y = net.relu(linear(norm(x, name + "_norm2"), WIDTH, 4 * WIDTH, name + "_up"))
        x = net.add("Add", [x, linear(y, 4 * WIDTH, WIDTH, name + "_down")])
    x = net.add("ReduceMean", [x], axes=[1], keepdims=0)
    return linear(x, WIDTH, 10, "head")


STEPS, FEATURES, HIDDEN = 32, 64, 128


def lstm(net):
    """A layer over a sequence, a classifier of its last state."""
    def gates(shape, name):  # PyTorch has them in the order input, forget, cell, output
        weight = net.weights[net.weight((4 * HIDDEN, *shape), HIDDEN, name)]
        i, f, c, o = np.split(weight, 4)
        return np.concatenate([i, o, f, c])

    w, r = gates((FEATURES,), "lstm.weight_ih_l0"), gates((HIDDEN,), "lstm.weight_hh_l0")
    b = np.concatenate([gates((), "lstm.bias_ih_l0"), gates((), "lstm.bias_hh_l0")])
    net.other_form = {"W": w[None], "R": r[None], "B": b[None]}
    from onnx import helper
    by_step = net.add("Transpose", ["x"], perm=[1, 0, 2])
    net.nodes.append(helper.make_node("LSTM", [by_step, "W", "R", "B"], ["", "last"], hidden_size=HIDDEN))
    axis = net.name("axis")
    net.constants[axis] = np.array([0], np.int64)
    return net.linear(net.add("Squeeze", ["last", axis]), HIDDEN, 10, "head")


PARTICLES, EDGES, STATE, ROUNDS = 24, 96, 32, 3


def edges():
    """Where each edge of the graph begins and ends, and the sum of the edges that end at a node as a matrix."""
    rng = np.random.default_rng(2)
    ring = np.arange(PARTICLES)
    begin = np.concatenate([ring, (ring + 1) % PARTICLES, rng.integers(0, PARTICLES, EDGES - 2 * PARTICLES)])
    end = np.concatenate([(ring + 1) % PARTICLES, ring, rng.integers(0, PARTICLES, EDGES - 2 * PARTICLES)])
    return begin, end, (end[None] == ring[:, None]).astype(np.float32)


def graph(net):
    """Rounds of messages along edges, whose sums update the nodes; a mean over the nodes and a classifier."""
    begin, end, incidence = edges()
    net.constants = {"begin": begin, "end": end, "incidence": incidence}

    def linear(x, size_in, size_out, name):
        weight = net.weight((size_in, size_out), size_in, name + ".weight")
        return net.add("Add", [net.add("MatMul", [x, weight]), net.weight(size_out, size_in, name + ".bias")])

    x = linear("x", STATE // 2, STATE, "enter")
    for turn in range(ROUNDS):
        ends = net.add("Concat", [net.add("Gather", [x, "begin"], axis=1), net.add("Gather", [x, "end"], axis=1)], axis=2)
        messages = net.relu(linear(ends, 2 * STATE, STATE, f"r{turn}_message"))
        both = net.add("Concat", [x, net.add("MatMul", ["incidence", messages])], axis=2)
        x = net.add("Add", [x, net.relu(linear(both, 2 * STATE, STATE, f"r{turn}_update"))])
    return linear(net.add("ReduceMean", [x], axes=[1], keepdims=0), STATE, 10, "head")


def onnx_constant(value, name):
    from onnx import helper
    return helper.make_node("Constant", [], [name], value=value)


def resnet18(net):
    return resnet(net, widths=(64, 128, 256, 512), blocks=2)


MODELS = {"mlp": (mlp, (784,)), "resnet": (resnet, (3, 32, 32)), "resnet18": (resnet18, (3, 32, 32)),
          "lstm": (lstm, (STEPS, FEATURES)), "transformer": (transformer, (PLACES, WIDTH)),
          "graph": (graph, (PARTICLES, STATE // 2))}


def write_model(name, folder):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    build, shape = MODELS[name]
    net = Net()
    output = build(net)
    net.nodes[-1].output[0] = "y" if net.nodes[-1].output[0] == output else output
    replaced = {key for key in net.weights if net.other_form and key.startswith("lstm.")}
    initializers = {key: value for key, value in net.weights.items() if key not in replaced}
    initializers.update(net.other_form | net.constants)
    graph = helper.make_graph(
        net.nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(value, key) for key, value in initializers.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(BATCH * BATCHES, *shape)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, target=rng.integers(0, 10, len(x)))
    np.savez(folder / "weights.npz", **net.weights)


# --- PyTorch ---------------------------------------------------------------------------------------


def torch_model(name, torch):
    nn = torch.nn
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    others = {"transformer": torch_transformer, "lstm": torch_lstm, "graph": torch_graph}
    if name in others:
        return others[name](torch)

    class ResNet(nn.Module):
        def __init__(self, widths, blocks):
            super().__init__()
            self.plan = []
            self.add("stem", 3, widths[0], 3, 1)
            before = widths[0]
            for stage, width in enumerate(widths):
                for block in range(blocks):
                    stride, at = 2 if stage > 0 and block == 0 else 1, f"s{stage}b{block}"
                    self.add(at + "_conv1", before, width, 3, stride, at + "_norm1")
                    self.add(at + "_conv2", width, width, 3, 1, at + "_norm2")
                    has_down = stride != 1 or before != width
                    if has_down:
                        self.add(at + "_down", before, width, 1, stride)
                    self.plan.append((at, has_down))
                    before = width
            self.head = nn.Linear(before, 10)

        def add(self, conv, size_in, size_out, kernel, stride, norm=None):
            setattr(self, conv, nn.Conv2d(size_in, size_out, kernel, stride, kernel // 2, bias=False))
            setattr(self, norm or conv + "_norm", nn.BatchNorm2d(size_out))

        def pair(self, x, conv, norm=None):
            return getattr(self, norm or conv + "_norm")(getattr(self, conv)(x))

        def forward(self, x):
            x = torch.relu(self.pair(x, "stem"))
            for at, has_down in self.plan:
                y = self.pair(torch.relu(self.pair(x, at + "_conv1", at + "_norm1")), at + "_conv2", at + "_norm2")
                x = torch.relu(y + (self.pair(x, at + "_down") if has_down else x))
            return self.head(x.mean((2, 3)))

    return ResNet((64, 128, 256, 512), 2) if name == "resnet18" else ResNet((16, 32, 64), 1)


def torch_lstm(torch):
    class Lstm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(FEATURES, HIDDEN, batch_first=True)
            self.head = torch.nn.Linear(HIDDEN, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    return Lstm()


def torch_product(torch):
    class Product(torch.nn.Module):  # the weight as MatMul has it
        def __init__(self, size_in, size_out):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(size_in, size_out))
            self.bias = torch.nn.Parameter(torch.empty(size_out))

        def forward(self, x):
            return x @ self.weight + self.bias

    return Product


def torch_graph(torch):
    Product = torch_product(torch)

    class Graph(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.begin, self.end, self.incidence = map(torch.tensor, edges())
            self.enter, self.head = Product(STATE // 2, STATE), Product(STATE, 10)
            for turn in range(ROUNDS):
                for part in ("message", "update"):
                    setattr(self, f"r{turn}_{part}", Product(2 * STATE, STATE))

        def forward(self, x):
            x = self.enter(x)
            for turn in range(ROUNDS):
                message, update = getattr(self, f"r{turn}_message"), getattr(self, f"r{turn}_update")
                messages = torch.relu(message(torch.cat([x[:, self.begin], x[:, self.end]], 2)))
                x = x + torch.relu(update(torch.cat([x, self.incidence @ messages], 2)))
            return self.head(x.mean(1))

    return Graph()


def torch_transformer(torch):
    nn = torch.nn
    Product = torch_product(torch)

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            for layer in range(LAYERS):
                for part in ("q", "k", "v", "out"):
                    setattr(self, f"l{layer}_{part}", Product(WIDTH, WIDTH))
                setattr(self, f"l{layer}_up", Product(WIDTH, 4 * WIDTH))
                setattr(self, f"l{layer}_down", Product(4 * WIDTH, WIDTH))
                for norm in ("norm1", "norm2"):
                    setattr(self, f"l{layer}_{norm}", nn.LayerNorm(WIDTH))
            self.head = Product(WIDTH, 10)

        def forward(self, x):
            for layer in range(LAYERS):
                part = {name: getattr(self, f"l{layer}_{name}") for name in
                        ("q", "k", "v", "out", "up", "down", "norm1", "norm2")}
                y = part["norm1"](x)
                q, k, v = (part[name](y).reshape(len(x), PLACES, HEADS, -1).transpose(1, 2) for name in "qkv")
                shares = torch.softmax(q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5, -1)
                x = x + part["out"]((shares @ v).transpose(1, 2).reshape(len(x), PLACES, WIDTH))
                x = x + part["down"](torch.relu(part["up"](part["norm2"](x))))
            return self.head(x.mean(1))

    return Transformer()


def child(name, folder, threads, epochs, rate, way):
    import resource

    import torch
    torch.set_num_threads(threads)
    model = torch_model(name, torch)
    weights = {key: torch.tensor(value) for key, value in np.load(folder / "weights.npz").items()}
    model.load_state_dict(weights, strict=False)
    data = np.load(folder / "data.npz")
    x, target = torch.tensor(data["x"]), torch.tensor(data["target"])
    if way == "float64":
        model, x = model.double(), x.double()
        if hasattr(model, "incidence"):
            model.incidence = model.incidence.double()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    if way == "compiled":
        model = torch.compile(model)
    loss_of = torch.nn.CrossEntropyLoss()
    losses, seconds = [], []
    for _ in range(epochs):
        begin = time.perf_counter()
        for i in range(BATCHES):
            rows = slice(i * BATCH, (i + 1) * BATCH)
            optimizer.zero_grad()
            loss = loss_of(model(x[rows]), target[rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seconds.append((time.perf_counter() - begin) / BATCHES)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"losses": losses, "seconds": seconds, "peak_kib": peak, "version": torch.__version__}))


# --- Sardonyx --------------------------------------------------------------------------------------


def measured(command):
    """Standard output, and the peak memory in KiB."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {shlex.join(str(word) for word in command)}")
    return out, usage.ru_maxrss


def sardonyx(program, folder, threads, epochs):
    out, peak = measured([program, "train", folder / "trainable.onnx", "--data", folder / "data.npz", "-o",
                          folder / "out.onnx", "--epochs", epochs, "--batch", BATCH, "--no-shuffle", "--json",
                          "--log-every", 1, "--threads", threads])
    lines = [json.loads(line) for line in out.splitlines()]
    return {"losses": [line["loss"] for line in lines if line["event"] == "step"],
            "seconds": [line["seconds"] / BATCHES for line in lines if line["event"] == "epoch"], "peak_kib": peak}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3, help="how often both take their turn")
    parser.add_argument("--torch", default=sys.executable, help="the command of a Python that has torch")
    parser.add_argument("--program", default=ROOT / "build/release/bin/sardonyx")
    parser.add_argument("--rate", type=float, default=0.001, help="the learning rate")
    parser.add_argument("--compile", action="store_true", help="beside torch.compile, too")
    parser.add_argument("--child", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, folder, threads, epochs, rate, way = options.child
        child(name, pathlib.Path(folder), int(threads), int(epochs), float(rate), way)
        return

    def torch_run(name, folder, threads, way):
        out, _ = measured([*shlex.split(options.torch), __file__, "--child", name, folder, threads, options.epochs,
                           options.rate, way])
        return json.loads(out.splitlines()[-1])

    def difference(run, other):
        a, b = np.array(run["losses"]), np.array(other["losses"])
        return f"{np.max(np.abs(a - b) / np.abs(b)):.1e}"

    def step_of(runs):
        return statistics.median(statistics.median(run["seconds"][len(run["seconds"]) // 2:]) for run in runs)

    compiled_title = " of torch.compile |" if options.compile else ""
    print(f"| model | threads | step, ms | of PyTorch |{compiled_title} losses differ by | from float64 | PyTorch's from "
          "float64 | memory, MB | of PyTorch |")
    print("|---|---|---|---|---|---|---|---|---|" + ("---|" if options.compile else ""))
    for name in options.models.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            write_model(name, folder)
            subprocess.run([options.program, "make-trainable", folder / "model.onnx", "-o", folder / "trainable.onnx",
                            "--optimizer", "momentum", "--learning-rate", str(options.rate),
                            *(["--freeze", "incidence"] if name == "graph" else [])], check=True, stdout=subprocess.DEVNULL)
            wide = torch_run(name, folder, 1, "float64")
            for threads in map(int, options.threads.split(",")):
                ours, theirs, compiled = [], [], []
                for _ in range(options.rounds):
                    ours.append(sardonyx(options.program, folder, threads, options.epochs))
                    theirs.append(torch_run(name, folder, threads, "eager"))
                    if options.compile:
                        compiled.append(torch_run(name, folder, threads, "compiled"))
                step = step_of(ours)
                beside_compiled = f" {step / step_of(compiled):.2f} |" if compiled else ""
                peak = [min(run["peak_kib"] for run in runs) / 1024 for runs in (ours, theirs)]
                print(f"| {name} | {threads} | {step * 1e3:.2f} | {step / step_of(theirs):.2f} |{beside_compiled} "
                      f"{difference(ours[0], theirs[0])} | {difference(ours[0], wide)} | {difference(theirs[0], wide)} | "
                      f"{peak[0]:.0f} | {peak[0] / peak[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
