#!/usr/bin/env python3
"""Trains the digit recogniser of examples/digits on real handwriting and writes that folder.

The data are the 1,797 digits of the UCI set that scikit-learn carries (8x8 grey values 0..16). A
fifth of them, chosen with a fixed seed and stratified by digit, is never trained on: it gives the
accuracy reported, and the PNG files. The network and its training are written out in numpy.
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIDE = 16  # of the network's input
PNG_SIDE = 64
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


# --- data -------------------------------------------------------------------------------------


def as_png(grey: np.ndarray) -> Image.Image:
    """One 8x8 digit as the image a person looks at: bright strokes on black."""
    small = Image.fromarray(np.round(grey * (255 / 16)).astype(np.uint8), mode="L")
    return small.resize((PNG_SIDE, PNG_SIDE), Image.Resampling.BICUBIC)


def sample_bilinear(image: np.ndarray, side: int) -> np.ndarray:
    """Bilinear resize by pixel centres, without a filter against aliasing."""
    position = np.clip((np.arange(side) + 0.5) * image.shape[0] / side - 0.5, 0, image.shape[0] - 1)
    low = np.floor(position).astype(int)
    high = np.minimum(low + 1, image.shape[0] - 1)
    part = position - low
    rows = image[low] * (1 - part)[:, None] + image[high] * part[:, None]
    return rows[:, low] * (1 - part) + rows[:, high] * part


def as_inputs(png: Image.Image) -> list[np.ndarray]:
    """The same image shrunk in the two ways that programs use."""
    pixels = np.asarray(png, dtype=np.float32)
    smooth = np.asarray(png.resize((SIDE, SIDE), Image.Resampling.BILINEAR), dtype=np.float32)
    return [(sample_bilinear(pixels, SIDE) / 255).astype(np.float32), smooth / 255]


def split(labels: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices to train on and to test with, each digit in the same proportion."""
    train, test = [], []
    for digit in range(10):
        indices = generator.permutation(np.flatnonzero(labels == digit))
        cut = len(indices) // 5
        test += indices[:cut].tolist()
        train += indices[cut:].tolist()
    return np.array(train), np.array(test)


def augment(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Shifts by up to a pixel, changes contrast, adds a little noise."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    result = np.empty_like(images)
    for index in range(len(images)):
        down, right = generator.integers(0, 3, 2)
        result[index] = padded[index, :, down:down + SIDE, right:right + SIDE]
    contrast = generator.uniform(0.7, 1.1, (len(images), 1, 1, 1)).astype(np.float32)
    noise = generator.normal(0, 0.03, images.shape).astype(np.float32)
    return np.clip(result * contrast + noise, 0, 1)


# --- layers -----------------------------------------------------------------------------------


class Convolution:
    """3x3, padding 1, stride 1."""

    def __init__(self, inputs: int, outputs: int, generator: np.random.Generator):
        self.weight = generator.normal(0, np.sqrt(2 / (inputs * 9)), (outputs, inputs, 3, 3)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)

    def parameters(self):
        return [self.weight, self.bias]

    def forward(self, x, training):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        self.shape = x.shape
        y = self.columns @ self.weight.reshape(len(self.bias), -1).T + self.bias
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, gradient):
        n, c, h, w = self.shape
        flat = gradient.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.gradients = [(flat.T @ self.columns).reshape(self.weight.shape), flat.sum(0)]
        columns = (flat @ self.weight.reshape(len(self.bias), -1)).reshape(n, h, w, c, 3, 3)
        padded = np.zeros((n, c, h + 2, w + 2), np.float32)
        for down in range(3):
            for right in range(3):
                padded[:, :, down:down + h, right:right + w] += columns[..., down, right].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]


class Relu:
    def parameters(self):
        return []

    def forward(self, x, training):
        self.positive = x > 0
        return x * self.positive

    def backward(self, gradient):
        self.gradients = []
        return gradient * self.positive


class MaxPool:
    """2x2, stride 2."""

    def parameters(self):
        return []

    def forward(self, x, training):
        n, c, h, w = x.shape
        tiles = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
        self.choice = tiles.argmax(-1)
        self.shape = x.shape
        return np.take_along_axis(tiles, self.choice[..., None], -1)[..., 0]

    def backward(self, gradient):
        self.gradients = []
        n, c, h, w = self.shape
        tiles = np.zeros((n, c, h // 2, w // 2, 4), np.float32)
        np.put_along_axis(tiles, self.choice[..., None], gradient[..., None], -1)
        return tiles.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(self.shape)


class Flatten(Relu):
    def forward(self, x, training):
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, gradient):
        self.gradients = []
        return gradient.reshape(self.shape)


class Dropout(Relu):
    """Used while training only; the exported network has none."""

    def __init__(self, ratio: float, generator: np.random.Generator):
        self.ratio, self.generator = ratio, generator

    def forward(self, x, training):
        keep = self.generator.random(x.shape) >= self.ratio if training else np.full(x.shape, 1 - self.ratio)
        self.mask = (keep / (1 - self.ratio)).astype(np.float32)
        return x * self.mask

    def backward(self, gradient):
        self.gradients = []
        return gradient * self.mask


class Dense:
    def __init__(self, inputs: int, outputs: int, generator: np.random.Generator):
        self.weight = generator.normal(0, np.sqrt(2 / inputs), (outputs, inputs)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)

    def parameters(self):
        return [self.weight, self.bias]

    def forward(self, x, training):
        self.x = x
        return x @ self.weight.T + self.bias

    def backward(self, gradient):
        self.gradients = [gradient.T @ self.x, gradient.sum(0)]
        return gradient @ self.weight


class Adam:
    def __init__(self, parameters: list[np.ndarray]):
        self.parameters = parameters
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]
        self.count = 0

    def step(self, gradients: list[np.ndarray], rate: float) -> None:
        self.count += 1
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            update = (m / (1 - 0.9**self.count)) / (np.sqrt(v / (1 - 0.999**self.count)) + 1e-8)
            p -= rate * update


def forward(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, training)
    return x


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def train(images: np.ndarray, labels: np.ndarray, epochs: int, seed: int) -> list:
    """images holds both shrunk forms of each digit: [digit, form, 1, SIDE, SIDE]."""
    generator = np.random.default_rng(seed)
    layers = [Convolution(1, 16, generator), Relu(), MaxPool(),
              Convolution(16, 32, generator), Relu(), MaxPool(),
              Convolution(32, 32, generator), Relu(), MaxPool(), Flatten(),
              Dense(128, 64, generator), Relu(), Dropout(0.25, generator), Dense(64, 10, generator)]
    optimizer = Adam([p for layer in layers for p in layer.parameters()])
    for epoch in range(epochs):
        order = generator.permutation(len(labels))
        rate = 0.5 * 2e-3 * (1 + np.cos(np.pi * epoch / epochs))
        loss = 0.0
        for batch in np.array_split(order, len(order) // 32):
            form = generator.integers(0, 2, len(batch))
            probabilities = softmax(forward(layers, augment(images[batch, form], generator), True))
            target = np.eye(10, dtype=np.float32)[labels[batch]] * 0.95 + 0.005
            loss -= (np.log(probabilities + 1e-9) * target).sum()
            gradient = (probabilities - target) / len(batch)
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            optimizer.step([g for layer in layers for g in layer.gradients], rate)
        print(f"epoch {epoch + 1:3}: loss {loss / len(order):.4f}", flush=True)
    return layers


# --- export -----------------------------------------------------------------------------------


def export(layers: list, accuracy: float) -> onnx.ModelProto:
    nodes, weights, value = [], [], "image"
    number = 0

    def add(kind: str, inputs: list[str], **attributes) -> str:
        output = f"{kind.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    for layer in layers:
        names = []
        for suffix, array in zip(("weight", "bias"), layer.parameters()):
            names.append(f"layer{number}.{suffix}")
            weights.append(numpy_helper.from_array(array, names[-1]))
        number += bool(names)
        if isinstance(layer, Convolution):
            value = add("Conv", [value, *names], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        elif isinstance(layer, MaxPool):
            value = add("MaxPool", [value], kernel_shape=[2, 2], strides=[2, 2])
        elif isinstance(layer, Flatten):
            value = add("Flatten", [value])
        elif isinstance(layer, Dense):
            value = add("Gemm", [value, *names], transB=1)
        elif type(layer) is Relu:
            value = add("Relu", [value])
    nodes.append(helper.make_node("Softmax", [value], ["probabilities"], name="softmax", axis=1))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, SIDE, SIDE])
    image.doc_string = "Bright strokes on black, 0 to 1."
    result = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, "digits", [image], [result], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="tools/train_digits.py", producer_version="1", domain="sardonyx.examples",
                              model_version=1)
    model.doc_string = f"Recognises a handwritten digit. Accuracy on digits not trained on: {accuracy:.2%}."
    onnx.checker.check_model(model, full_check=True)
    return model


def write_data(path: pathlib.Path, images: np.ndarray, labels: np.ndarray) -> None:
    """What `sardonyx train` reads; grey values in steps of a 32nd, which compress well."""
    np.savez_compressed(path, image=np.round(images * 32) / np.float32(32), target=labels.astype(np.int64))


README = """# Digit recogniser

`digits.onnx` is a small convolutional network that names a handwritten digit. Its input `image` is
float32 [N, 1, {side}, {side}], bright strokes on black from 0 to 1; its output `probabilities` is
float32 [N, 10]. The PNG files are the most legible of the digits that it was not trained on, one of
each kind.

    sardonyx run examples/digits/digits.onnx --input image=examples/digits/seven.png \\
      --labels examples/digits/labels.txt

It names {right} of the {total} digits kept out of its training rightly ({accuracy:.2%}).
`tools/train_digits.py` trains it anew (about a minute) and writes this folder.

`train.npz` and `test.npz` hold the digits that it was and was not trained on. The program trains the same network from
nothing in seconds ([docs/training.md](../../docs/training.md); `./dev demo` does it):

    sardonyx make-trainable examples/digits/digits.onnx --random-weights -o trainable.onnx
    sardonyx train trainable.onnx --data examples/digits/train.npz --validation examples/digits/test.npz \\
      --epochs 8 -o trained.onnx

## Data and licence

Network and images derive from *Optical Recognition of Handwritten Digits* by E. Alpaydin and
C. Kaynak (UCI Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49), in the form that
scikit-learn carries, used under the Creative Commons Attribution 4.0 International licence
(CC BY 4.0, https://creativecommons.org/licenses/by/4.0/). Changes: the images were enlarged from
8x8 to {png}x{png} pixels. The network's weights are offered under the same licence as this project.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "examples" / "digits")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--data-only", action="store_true", help="write train.npz and test.npz, and nothing else")
    options = parser.parse_args()

    from sklearn.datasets import load_digits

    digits = load_digits()
    labels = digits.target
    pngs = [as_png(grey) for grey in digits.images]
    images = np.stack([np.stack(as_inputs(png)) for png in pngs])[:, :, None]
    training, testing = split(labels, np.random.default_rng(options.seed))
    options.out.mkdir(parents=True, exist_ok=True)
    write_data(options.out / "train.npz", images[training, 1], labels[training])
    write_data(options.out / "test.npz", images[testing, 1], labels[testing])
    if options.data_only:
        return
    layers = train(images[training], labels[training], options.epochs, options.seed)

    answers = [softmax(forward(layers, images[testing, form])) for form in (0, 1)]
    right = [int((answer.argmax(1) == labels[testing]).sum()) for answer in answers]
    accuracy = right[0] / len(testing)
    print(f"right on {right[0]} and {right[1]} of {len(testing)} test digits")

    onnx.save(export(layers, accuracy), options.out / "digits.onnx")
    (options.out / "labels.txt").write_text("\n".join(WORDS) + "\n")
    (options.out / "README.md").write_text(README.format(
        side=SIDE, png=PNG_SIDE, right=right[0], total=len(testing), accuracy=accuracy))
    for digit, word in enumerate(WORDS):
        # The most legible of its kind, going by the network's own answer.
        best = max(np.flatnonzero(labels[testing] == digit), key=lambda i: answers[0][i, digit])
        pngs[testing[best]].save(options.out / f"{word}.png", optimize=True)


if __name__ == "__main__":
    main()
