"""Sound: front ends, encoders of the Conformer and wav2vec kinds, voice activity with a state, taggers."""

from __future__ import annotations

import numpy as np
from onnx import parser

from .net import Built, Net
from .transformers import Transformer


def tone(random: np.random.Generator, batch: int, samples: int) -> np.ndarray:
    """A few gliding tones in noise."""
    time = np.arange(samples) / 16000
    pitches = random.uniform(100, 2000, (batch, 4, 1))
    wave = np.sin(2 * np.pi * pitches * (time + time ** 2)).sum(1) + 0.3 * random.standard_normal((batch, samples))
    return (wave / wave.std()).astype(np.float32)


def mel_front_end(samples: int = 16000, frame: int = 400, hop: int = 160, bins: int = 512, mels: int = 80,
                  batch: int = 1) -> Built:
    """Logarithmic mel spectrogram by HannWindow, STFT and MelWeightMatrix, normalised over time."""
    net = Net("mel_front_end", opset=17, seed=80)
    wave = net.input("waveform", tone(net.random, batch, samples), ["batch", "samples"])
    earlier = net.op("Slice", wave, net.ints(0), net.ints(-1), net.ints(1))
    wave = net.op("Sub", net.op("Slice", wave, net.ints(1), net.ints(np.iinfo(np.int64).max), net.ints(1)),
                  net.op("Mul", earlier, net.const(0.97)))
    wave = net.op("Unsqueeze", wave, net.ints(2))
    window = net.op("Pad", net.op("HannWindow", net.const(frame, np.int64), periodic=1),
                    net.ints((bins - frame) // 2, (bins - frame) // 2))
    spectrum = net.op("STFT", wave, net.const(hop, np.int64), window, net.const(bins, np.int64), onesided=1)
    power = net.op("ReduceSumSquare", spectrum, axes=[3], keepdims=0)
    filters = net.op("MelWeightMatrix", net.const(mels, np.int64), net.const(bins, np.int64),
                     net.const(16000, np.int64), net.const(20.0), net.const(7600.0))
    energy = net.op("Log", net.op("Clip", net.op("MatMul", power, filters), net.const(1e-6)))
    energy = net.op("Sub", energy, net.op("ReduceMean", energy, axes=[1], keepdims=1))
    spread = net.op("Sqrt", net.op("Add", net.op("ReduceMean", net.op("Mul", energy, energy), axes=[1], keepdims=1),
                                   net.const(1e-5)))
    net.rms.clear()  # powers of sound have no scale of their own
    y = net.op("Transpose", net.op("Div", energy, spread), perm=[0, 2, 1])
    return net.finish({y: ["batch", mels, "frames"]})


def dft_filter(size: int = 1024, channels: int = 8, batch: int = 2) -> Built:
    """Filters sound in the frequency domain: DFT of opset 20 there and back, phases by Atan and magnitudes."""
    net = Net("dft_filter", opset=20, seed=81)
    x = net.input("blocks", tone(net.random, batch * channels, size).reshape(batch, channels, size, 1),
                  ["batch", channels, size, 1])
    axis = net.const(2, np.int64)
    spectrum = net.op("DFT", x, net.const(size, np.int64), axis)
    gain = 1 / (1 + (np.minimum(np.arange(size), size - np.arange(size)) / (size / 8)) ** 4)
    curve = net.op("Mul", spectrum, net.weight(gain.astype(np.float32).reshape(1, 1, size, 1)))
    real, imaginary = net.op("Split", curve, net.ints(1, 1), outputs=2, axis=3)
    power = net.op("Sqrt", net.op("Add", net.op("Mul", real, real), net.op("Mul", imaginary, imaginary)))
    back = net.op("DFT", curve, net.const(size, np.int64), axis, inverse=1)
    y = net.op("Squeeze", net.op("Slice", back, net.ints(0), net.ints(1), net.ints(3)), net.ints(3))
    half = net.op("DFT", x, "", net.const(-2, np.int64), onesided=1)
    return net.finish({y: ["batch", channels, size], power: ["batch", channels, size, 1],
                       half: ["batch", channels, size // 2 + 1, 2]})


def conformer(layers: int = 4, hidden: int = 144, heads: int = 4, kernel: int = 31, mels: int = 80,
              frames: int = 400, classes: int = 128, batch: int = 1) -> Built:
    """Subsampling, then half feed-forward, attention, gated depthwise convolution, half feed-forward; CTC scores."""
    net = Transformer("conformer", opset=15, seed=144)
    x = net.input("features", net.normal(batch, frames, mels), ["batch", "frames", mels])
    x = net.op("Unsqueeze", x, net.ints(1))
    x = net.conv_relu(net.conv_relu(x, 64, 3, 2), 64, 3, 2)
    channels, wide = net.values[x].shape[1], net.values[x].shape[3]
    x = net.op("Transpose", x, perm=[0, 2, 1, 3])
    x = net.matmul_add(net.reshape(x, net.size(x, 0), net.size(x, 1), channels * wide), hidden)

    def swish(y: str) -> str:
        return net.op("Mul", y, net.op("Sigmoid", y))

    def feed_forward(y: str) -> str:
        y = net.matmul_add(swish(net.matmul_add(net.layer_norm(y), 4 * hidden)), hidden)
        return net.op("Mul", y, net.const(0.5))

    def convolution(y: str) -> str:
        y = net.op("Transpose", net.layer_norm(y), perm=[0, 2, 1])
        value, gate = net.op("Split", net.conv(y, 2 * hidden, 1), net.ints(hidden, hidden), outputs=2, axis=1)
        y = net.op("Mul", value, net.op("Sigmoid", gate))
        y = net.batchnorm(net.conv(y, hidden, kernel, 1, kernel // 2, group=hidden))
        return net.op("Transpose", net.conv(swish(y), hidden, 1, target=0.5), perm=[0, 2, 1])

    def attention(y: str) -> str:
        y = net.layer_norm(y)
        query = net.split_heads(net.matmul_add(y, hidden, 0.9), heads, [0, 2, 1, 3])
        key = net.split_heads(net.matmul_add(y, hidden, 0.9), heads, [0, 2, 3, 1])
        value = net.split_heads(net.matmul_add(y, hidden, 2.0), heads, [0, 2, 1, 3])
        scores = net.op("Div", net.op("MatMul", query, key), net.const(np.sqrt(hidden // heads)))
        return net.matmul_add(net.join_heads(net.op("MatMul", net.op("Softmax", scores, axis=-1), value)), hidden, 0.5)

    for _ in range(layers):
        x = net.op("Add", x, feed_forward(x))
        x = net.op("Add", x, attention(x))
        x = net.op("Add", x, convolution(x))
        x = net.layer_norm(net.op("Add", x, feed_forward(x)))
    return net.finish({net.op("LogSoftmax", net.matmul_add(x, classes, 2.0), axis=-1): ["batch", "steps", classes]})


def wav2vec(layers: int = 4, hidden: int = 384, heads: int = 6, channels: int = 256, samples: int = 16000,
            classes: int = 32, batch: int = 1) -> Built:
    """Seven convolutions over the wave, the first normalised by channel, a grouped one for places; CTC scores."""
    net = Transformer("wav2vec", opset=14, seed=22)
    x = net.input("input_values", tone(net.random, batch, samples), ["batch", "samples"])
    x = net.op("Unsqueeze", x, net.ints(1))
    for index, (kernel, stride) in enumerate(((10, 5), *[(3, 2)] * 4, *[(2, 2)] * 2)):
        x = net.conv(x, channels, kernel, stride, bias=False)
        if not index:  # GroupNorm with a group for each channel, as exporters write it
            shape = net.op("Shape", x)
            y = net.op("Reshape", x, net.ints(0, channels, -1))
            y = net.op("InstanceNormalization", y, net.weight(np.ones(channels, np.float32)),
                       net.weight(np.zeros(channels, np.float32)), epsilon=1e-5)
            y = net.op("Mul", net.op("Reshape", y, shape),
                       net.weight((1 + net.normal(channels, 1, std=0.2)).astype(np.float32)))
            x = net.op("Add", y, net.weight(net.normal(channels, 1, std=0.1)))
        x = net.gelu_erf(x)
    x = net.matmul_add(net.layer_norm(net.op("Transpose", x, perm=[0, 2, 1])), hidden)
    y = net.conv(net.op("Transpose", x, perm=[0, 2, 1]), hidden, 64, 1, 32, group=16)
    y = net.gelu_erf(net.op("Slice", y, net.ints(0), net.ints(-1), net.ints(2)))
    x = net.layer_norm(net.op("Add", x, net.op("Transpose", y, perm=[0, 2, 1])))
    for _ in range(layers):
        query = net.op("Mul", net.matmul_add(x, hidden, 0.9), net.const((hidden // heads) ** -0.5))
        # Heads as batches, rank 3, as torch.bmm has it.
        query, key, value = (net.op("Transpose", net.reshape(part, net.size(x, 0), -1, heads, hidden // heads),
                                    perm=[0, 2, 1, 3])
                             for part in (query, net.matmul_add(x, hidden, 0.9), net.matmul_add(x, hidden, 2.0)))
        query, key, value = (net.reshape(part, -1, net.size(part, 2), hidden // heads) for part in (query, key, value))
        scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 2, 1]))
        y = net.op("MatMul", net.op("Softmax", scores, axis=-1), value)
        y = net.join_heads(net.reshape(y, -1, heads, net.size(y, 1), hidden // heads))
        x = net.layer_norm(net.op("Add", x, net.matmul_add(y, hidden, 0.5)))
        y = net.matmul_add(net.gelu_erf(net.matmul_add(x, 4 * hidden)), hidden, 0.5)
        x = net.layer_norm(net.op("Add", x, y))
    return net.finish({net.matmul_add(x, classes, 2.0): ["batch", "steps", classes]})


def voice_activity(hidden: int = 64, samples: int = 512, batch: int = 1) -> Built:
    """Takes a piece of sound and its state, gives the probability of speech and the next state; an If on the rate."""
    net = Net("voice_activity", opset=16, seed=16)
    net.input("input", tone(net.random, batch, samples), ["batch", "samples"])
    net.input("sr", np.array(16000, np.int64), [])
    net.input("state", net.normal(2, batch, hidden, std=0.3), [2, "batch", hidden])
    for name, rate in (("fine", 1), ("coarse", 2)):
        frame = 256 // rate
        waves = np.exp(-2j * np.pi * np.outer(np.arange(frame // 2 + 1), np.arange(frame)) / frame)
        basis = np.concatenate([waves.real, waves.imag]) * np.hanning(frame) / np.sqrt(frame)
        net.weight(basis[:, None].astype(np.float32), f"{name}_basis")
        bins = frame // 2 + 1
        net.weight(net.normal(hidden, bins, 3, std=0.7 / np.sqrt(bins)), f"{name}_weight")
        net.weight(net.normal(hidden, std=0.1), f"{name}_bias")

    def branch(name: str, rate: int) -> str:
        frame, bins = 256 // rate, 128 // rate + 1
        return f"""{name} () => (float[b, {hidden}, t] {name}_out) {{
          one = Constant <value_ints = [1]> ()
          wave = Unsqueeze (input, one)
          spectrum = Conv <kernel_shape = [{frame}], strides = [{frame // 4}]> (wave, {name}_basis)
          real, imaginary = Split <axis = 1> (spectrum, {name}_halves)
          real2 = Mul (real, real)
          imaginary2 = Mul (imaginary, imaginary)
          power = Add (real2, imaginary2)
          size = Sqrt (power)
          filtered = Conv <kernel_shape = [3], pads = [1, 1]> (size, {name}_weight, {name}_bias)
          {name}_out = Relu (filtered)
        }}"""

    for name, rate in (("fine", 1), ("coarse", 2)):
        net.weight(np.array([128 // rate + 1] * 2, np.int64), f"{name}_halves")
    net.op("Equal", "sr", net.const(16000, np.int64), names=["is_fine"])
    x = net.op("If", "is_fine", then_branch=parser.parse_graph(branch("fine", 1)),
               else_branch=parser.parse_graph(branch("coarse", 2)))
    x = net.op("Transpose", x, perm=[2, 0, 1])
    first, second = net.op("Split", "state", net.ints(1, 1), outputs=2, axis=0)
    weights = (net.normal(1, 4 * hidden, hidden, std=1.5 / np.sqrt(hidden)),
               net.normal(1, 4 * hidden, hidden, std=1 / np.sqrt(hidden)), net.normal(1, 8 * hidden, std=0.2))
    y, h, c = net.op("LSTM", x, *map(net.weight, weights), "", first, second, outputs=3, hidden_size=hidden)
    y = net.op("Transpose", net.op("Squeeze", y, net.ints(1)), perm=[1, 2, 0])
    y = net.op("Sigmoid", net.conv(net.op("Relu", y), 1, 1))
    y = net.op("ReduceMean", net.op("Squeeze", y, net.ints(1)), axes=[1], keepdims=1)
    return net.finish({y: ["batch", 1], net.op("Concat", h, c, axis=0): [2, "batch", hidden]})


def tagger(kind: str = "GRU", hidden: int = 256, features: int = 128, steps: int = 100, tags: int = 20,
           vocabulary: int = 5000, batch: int = 4) -> Built:
    """Tags each word: embeddings, two layers both ways over texts of different lengths, scores."""
    net = Net(f"{kind.lower()}_tagger", opset=14, seed=len(kind))
    ids = net.input("words", net.random.integers(0, vocabulary, (steps, batch)), ["steps", "batch"])
    lengths = net.input("lengths", np.maximum(1, steps - np.arange(batch) * (steps // (2 * batch))).astype(np.int32),
                        ["batch"])
    x = net.op("Gather", net.weight(net.normal(vocabulary, features)), ids)
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[kind]
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    for _ in range(2):
        size = net.values[x].shape[-1]
        weights = (net.normal(2, gates * hidden, size, std=1 / np.sqrt(size)),
                   net.normal(2, gates * hidden, hidden, std=0.7 / np.sqrt(hidden)),
                   net.normal(2, 2 * gates * hidden, std=0.2))
        y = net.op(kind, x, *map(net.weight, weights), lengths, outputs=2 + (kind == "LSTM"), hidden_size=hidden,
                   direction="bidirectional", **more)
        x = net.op("Reshape", net.op("Transpose", y[0], perm=[0, 2, 1, 3]), net.ints(0, 0, -1))
    scores = net.matmul_add(x, tags, 2.0)
    return net.finish({net.op("LogSoftmax", scores, axis=-1): ["steps", "batch", tags],
                       y[1]: [2, "batch", hidden],
                       net.op("ArgMax", scores, axis=2, keepdims=0): ["steps", "batch"]})
