"""What notebooks show: pages that are well formed, pictures that are, and nothing of a model that becomes part of a page."""

from __future__ import annotations

import base64
import html.parser
import re
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


def test_the_page_of_a_training(model):
    proto = model("g (float[batch,4] x) => (float[batch,2] y) { y = MatMul(x, w) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((4, 2), np.float32), "w"))
    training = sardonyx.TrainingSession(sardonyx.make_trainable(proto, loss="mse", optimizer="sgd", learning_rate=0.01))
    training.initialize()
    data = {"x": np.ones((8, 4), np.float32), "target": np.ones((8, 2), np.float32)}
    result = training.fit(data, epochs=3, batch=4)
    assert "loss" in Page(result._repr_html_()).words
