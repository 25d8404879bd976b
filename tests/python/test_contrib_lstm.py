"""DynamicQuantizeLSTM: against ONNX Runtime, and against its definition in numpy where that has no kernel."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from contrib_support import Case, Engine, agree, drawing

RANDOM = np.random.default_rng(29)
numbers, integers = drawing(RANDOM)
F32 = np.float32
BYTES = [np.uint8, np.int8]


def bytes_of(dtype, *shape):
    return RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def zero_points(dtype, each, directions, columns, free):
    """ONNX Runtime wants 0 for each column of int8, and one number for all columns of uint8."""
    if not each:
        return bytes_of(dtype, directions)
    if free:
        return bytes_of(dtype, directions, columns)
    return np.full((directions, columns), 0 if dtype == np.int8 else 117, dtype)


class Layer:
    def __init__(self, dtype, each, directions=1, batch=2, steps=7, size=11, hidden=10, optional=(), constant=True,
                 outputs=(True, True, True), free_zeros=False, **attributes):
        columns = 4 * hidden
        self.w, self.r = bytes_of(dtype, directions, size, columns), bytes_of(dtype, directions, hidden, columns)
        shape = (directions, columns) if each else (directions,)
        self.scales = [(np.abs(numbers(*shape)) + F32(0.5)) * F32(0.002) for _ in range(2)]
        self.zeros = [zero_points(dtype, each, directions, columns, free_zeros) for _ in range(2)]
        self.x = numbers(steps, batch, size)
        more = [numbers(directions, 2 * columns), integers(1, steps + 1, batch), numbers(directions, batch, hidden),
                numbers(directions, batch, hidden), numbers(directions, 3 * hidden)]
        self.more = [x if i in optional else None for i, x in enumerate(more, 3)]
        names = dict(hidden_size=hidden, direction=["forward", "bidirectional"][directions - 1]) | attributes
        inputs = [self.x, self.w, self.r, *self.more, self.scales[0], self.zeros[0], self.scales[1], self.zeros[1]]
        self.case = Case("DynamicQuantizeLSTM", inputs, outputs,
                         constant=(1, 2, 3, 7, 8, 9, 10, 11) if constant else (), **names)

    def defined(self):
        """What ONNX Runtime's kernel computes, of a layer whose activations and attributes are the defaults."""
        results = [self.direction(d) for d in range(len(self.w))]
        return [np.stack([y for y, _, _ in results], 1), np.stack([h for _, h, _ in results]),
                np.stack([c for _, _, c in results])]

    def direction(self, d):
        steps, batch, _ = self.x.shape
        hidden = self.r.shape[1]
        bias, lengths, h, c, p = self.more
        bias = F32(0) if bias is None else bias[d, :4 * hidden] + bias[d, 4 * hidden:]
        lengths = np.full(batch, steps) if lengths is None else lengths
        h = np.zeros((batch, hidden), F32) if h is None else h[d].copy()
        c = np.zeros((batch, hidden), F32) if c is None else c[d].copy()
        p = np.zeros(3 * hidden, F32) if p is None else p[d]
        longest = lengths.max()
        part = product(self.x[:longest].reshape(longest * batch, -1), self.w[d], self.scales[0][d], self.zeros[0][d])
        part = part.reshape(longest, batch, -1) + bias
        y = np.zeros((steps, batch, hidden), F32)
        for step in range(longest):
            going = np.flatnonzero(step < lengths)
            time = lengths[going] - 1 - step if d == 1 else np.full(len(going), step)
            ranged = h[step <= lengths]  # those that have just ended count once more
            gates = part[time, going] + product(h[going], self.r[d], self.scales[1][d], self.zeros[1][d], ranged)
            i, o, f, g = np.split(gates, 4, axis=1)
            i = sigmoid(i + p[:hidden] * c[going])
            f = sigmoid(f + p[2 * hidden:] * c[going])
            c[going] = f * c[going] + i * np.tanh(g)
            h[going] = sigmoid(o + p[hidden:2 * hidden] * c[going]) * np.tanh(c[going])
            y[time, going] = h[going]
        return y, h, c


def sigmoid(x):
    return F32(1) / (F32(1) + np.exp(-x))


def product(a, w, scale, zero, ranged=None):
    """Rows as bytes of one scale and zero point, the whole numbers' products, and floats again."""
    ranged = a if ranged is None else ranged
    low, high = min(F32(0), ranged.min()), max(F32(0), ranged.max())
    a_scale = F32(1) if low == high else F32((high - low) / F32(255))
    a_zero = np.rint(np.clip(-low / a_scale, 0, 255))
    rows = np.clip(np.rint(a / a_scale) + a_zero, 0, 255).astype(np.int64) - int(a_zero)
    sums = rows @ (w.astype(np.int64) - zero.astype(np.int64))
    return sums.astype(F32) * (a_scale * scale).astype(F32)


def check(engine, *form, **how):
    layer = Layer(*form, **how)
    return layer, agree(engine, layer.case)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("optional", [(), (3,), (3, 4), (3, 5, 6), (3, 4, 5, 6, 7)])
def test_dynamic_quantize_lstm(engine, dtype, each, directions, optional):
    layer, expected = check(engine, dtype, each, directions, optional=optional)
    agree(engine, layer.case, reference=layer.defined())


@pytest.mark.parametrize("how", [
    dict(direction="reverse"), dict(outputs=(False, True)), dict(outputs=(True,), batch=1), dict(clip=0.25),
    dict(input_forget=1), dict(activations=["HardSigmoid", "Softsign", "Tanh"], activation_alpha=[0.3], activation_beta=[0.4])])
def test_dynamic_quantize_lstm_attributes(engine, how):
    check(engine, np.int8, False, optional=(3,), **how)


@pytest.mark.parametrize("size, hidden, batch", [(1, 1, 1), (64, 64, 5), (40, 96, 1), (3, 16, 33), (130, 67, 2)])
@pytest.mark.parametrize("dtype", BYTES)
def test_dynamic_quantize_lstm_sizes(engine, size, hidden, batch, dtype):
    """Whole panels and parts of them, one row and more than a block, quads that are not full."""
    check(engine, dtype, False, size=size, hidden=hidden, batch=batch, optional=(3, 4))


@pytest.mark.parametrize("instructions", ["avx512", "avx2", "baseline"])
def test_dynamic_quantize_lstm_for_every_instruction_set(sardonyx, tmp_path, instructions):
    engine = Engine(sardonyx.path, tmp_path, instructions)
    check(engine, np.uint8, True, 2, size=70, hidden=33, optional=(3, 4, 5))
    engine.close()


@pytest.mark.parametrize("dtype", BYTES)
def test_every_column_may_have_its_zero_point(engine, dtype):
    """ONNX Runtime refuses these; the definition does not need it to."""
    layer = Layer(dtype, True, 2, free_zeros=True, optional=(3, 4, 5, 6))
    agree(engine, layer.case, reference=layer.defined())


@pytest.mark.parametrize("each", [False, True])
def test_dynamic_quantize_lstm_with_weights_that_come_as_inputs(engine, each):
    layer = Layer(np.int8, each, 2, optional=(3,), constant=False)
    agree(engine, layer.case, reference=layer.defined())  # of which ONNX Runtime has no kernel


def test_a_sequence_that_has_ended_counts_once_more(engine):
    """And then no longer, whether Y is wanted or not. (Without Y, ONNX Runtime goes on counting it.)"""
    for outputs in ((True, True, True), (False, True, True)):
        layer = Layer(np.int8, False, batch=2, steps=9, optional=(3, 4, 5), outputs=outputs)
        layer.more[1][:] = [1, 9]
        expected = layer.defined()
        agree(engine, layer.case, reference=expected if outputs[0] else expected[1:])
        assert outputs[0] == all(np.allclose(a, b, atol=2e-5) for a, b in zip(layer.case.expected()[-2:], expected[-2:]))


@pytest.mark.parametrize("x", [np.zeros((3, 2, 8), F32), np.full((3, 2, 8), 2.5, F32), np.full((3, 2, 8), -1e-3, F32)])
def test_rows_of_one_number(engine, x):
    layer = Layer(np.int8, False, steps=3, size=8)
    layer.x[:] = x
    agree(engine, layer.case)


@pytest.mark.parametrize("which, shape, says", [
    (8, (2,), "must have one entry for each direction"), (9, (1, 39), "must have one entry for each column"),
    (10, (), "must have one dimension, or two"), (1, (1, 11, 41), "must have shape [1,11,40]")])
def test_what_does_not_fit_is_refused(engine, which, shape, says):
    layer = Layer(np.int8, False)
    inputs = [layer.x, layer.w, layer.r, *layer.more, layer.scales[0], layer.zeros[0], layer.scales[1], layer.zeros[1]]
    inputs[which] = np.resize(inputs[which], shape)
    case = Case("DynamicQuantizeLSTM", inputs, constant=tuple(range(1, 12)), hidden_size=10)
    with pytest.raises(RuntimeError, match="DynamicQuantizeLSTM 'node'") as error:
        engine.run(case.typed([layer.x]), case.feeds)
    assert says in str(error.value)


def test_results_do_not_depend_on_threads(engine):
    """More sequences than threads, and products that several threads share."""
    layer = Layer(np.int8, True, 2, batch=9, steps=4, size=200, hidden=300, optional=(3, 4))
    model = layer.case.typed(layer.case.expected())
    onnx.save(model, engine.folder / "threads.onnx")
    np.savez(engine.folder / "threads.npz", **layer.case.feeds)
    results = []
    for threads in (1, 2, 3):
        engine.ask(f"load {engine.folder / 'threads.onnx'} {threads}")
        engine.ask(f"inputs {engine.folder / 'threads.npz'}")
        engine.ask("run 1")
        engine.ask(f"outputs {engine.folder / 'out.npz'}")
        with np.load(engine.folder / "out.npz") as arrays:
            results.append([arrays[name].tobytes() for name in arrays.files])
    assert results[0] == results[1] == results[2]
