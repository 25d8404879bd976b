"""What notebooks show: pages that are well formed, pictures that are, and nothing of a model that becomes part of a page."""

from __future__ import annotations

import base64
import html.parser
import re
import sys
import types
import xml.etree.ElementTree

import numpy as np
import onnx
import pytest

import sardonyx

EVIL = "<script>alert(1)</script>&\"'"
VOID = {"img", "br", "hr"}


class Page(html.parser.HTMLParser):
    """Fails where tags do not close as they opened."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.images: list[bytes] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "img":
            source = dict(attrs)["src"]
            assert source.startswith("data:image/svg+xml;base64,")
            self.images.append(base64.b64decode(source.partition(",")[2], validate=True))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.words += data


def texts_of(svg: str | bytes) -> str:
    """The words of a picture, which has to be well formed and to bring nothing that runs or is fetched."""
    root = xml.etree.ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    for one in root.iter():
        name = one.tag.rpartition("}")[2]
        assert name not in ("script", "foreignObject", "image", "use"), name
        for key, value in one.attrib.items():
            assert not key.lower().startswith("on") and not re.match(r"(https?:|javascript:)", value), (key, value)
    return " ".join(root.itertext())


@pytest.fixture
def named(model):
    """A model with a body, a function, and names that are markup."""
    proto = model("g (bool c, float[batch,3] x) => (float[batch,3] y) { t = Relu(x) y = If(c) <then_branch = a () => (float[batch,3] p) "
                  "{ p = Neg(t) }, else_branch = b () => (float[batch,3] q) { q = Exp(t) }> }")
    proto.graph.node[0].name = EVIL
    proto.graph.name = EVIL
    proto.producer_name = EVIL
    proto.graph.input[1].name = proto.graph.node[0].input[0] = EVIL
    return proto


def test_a_models_page_and_picture(named):
    model = sardonyx.Model(named)
    page = Page(model._repr_html_())
    assert page.tags <= {"table", "tr", "th", "td", "div", "img"}
    assert EVIL in page.words and "1 Relu" in page.words
    (image,) = page.images
    for svg in (image, model.to_svg()):
        words = texts_of(svg)
        assert all(one in words for one in ("Relu", "If", "Neg", "Exp")), words
    assert model.to_dot().startswith("digraph")


def test_a_model_that_is_too_large_says_so(model):
    steps = " ".join(f"t{i + 1} = Neg(t{i})" for i in range(400))
    page = Page(sardonyx.Model(model(f"g (float[n] t0) => (float[n] t400) {{ {steps} }}"))._repr_html_())
    assert page.images == [] and "400 nodes are too many" in page.words


def test_pages_of_sessions_profiles_and_findings(named, double):
    session = sardonyx.Session(named, threads=1)
    page = Page(session._repr_html_())
    assert EVIL in page.words and "Relu" in page.words and "script" not in page.tags
    x = np.ones(3, np.float32)
    page = Page(sardonyx.Session(double).profile({"x": x}, runs=2)._repr_html_())
    assert "Add" in page.words
    broken = onnx.ModelProto()
    broken.CopyFrom(named)
    broken.graph.node[0].op_type = "<b>Nope</b>"
    page = Page(sardonyx.check(broken)._repr_html_())
    assert "<b>Nope</b>" in page.words and "b" not in page.tags
    assert "table" in Page(sardonyx.check(double)._repr_html_()).tags


@pytest.fixture
def training(model):
    proto = model("g (float[batch,4] x) => (float[batch,2] y) { y = MatMul(x, w) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((4, 2), np.float32), "w"))
    made = sardonyx.TrainingSession(sardonyx.make_trainable(proto, loss="mse", optimizer="sgd", learning_rate=0.01))
    made.initialize()
    return made


DATA = {"x": np.ones((8, 4), np.float32), "target": np.ones((8, 2), np.float32)}


def test_the_page_of_a_training(training):
    assert "loss" in Page(training.fit(DATA, epochs=3, batch=4)._repr_html_()).words


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_curve_grows(training, logarithmic):
    curve = sardonyx.TrainingCurve(logarithmic=logarithmic)
    assert "no step" in texts_of(curve.to_svg())
    training.fit(DATA, epochs=3, batch=4, validation=DATA, callbacks=curve)
    assert [step for step, _ in curve.steps] == [1, 2, 3, 4, 5, 6] and [step for step, _ in curve.validation] == [2, 4, 6]
    losses = [loss for _, loss in curve.steps]
    assert losses == sorted(losses, reverse=True)
    svg = curve._repr_html_()
    words = texts_of(svg)
    assert f"{losses[-1]:.6g}" in words and f"{max(losses):.4g}" in words and f"{curve.validation[-1][1]:.6g}" in words
    points = [[float(one) for one in pair.split(",")] for pair in re.search(r'points="([^"]*)"', svg)[1].split()]
    assert len(points) == 6 and points == sorted(points) and [y for _, y in points] == sorted(y for _, y in points)
    assert svg.count("<circle") == 3


def test_a_long_curve_is_thinned():
    curve = sardonyx.TrainingCurve(seconds=1e9)
    for step in range(5000):
        loss = float("nan") if step == 7 else 1 / (step + 1)
        curve.on_step(sardonyx.FitProgress(0, step + 1, None, step, 0.0, loss, step == 7, {}))
    assert len(curve.steps) == 4999 and len(curve.to_svg()) < 10_000
    texts_of(curve.to_svg())


def test_a_notebook_shows_the_curve_and_draws_it_anew(training, monkeypatch):
    shown, updated = [], []
    handle = types.SimpleNamespace(update=lambda one: updated.append(one.to_svg()))
    notebook = types.ModuleType("IPython")
    notebook.get_ipython = object
    notebook.display = types.ModuleType("IPython.display")
    notebook.display.display = lambda one, display_id: shown.append(one) or handle
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    curve = sardonyx.TrainingCurve(seconds=0)
    training.fit(DATA, epochs=2, batch=4, callbacks=curve)
    assert shown == [curve] and len(updated) == 5 and updated[0] != updated[-1]
