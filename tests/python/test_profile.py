"""sardonyx profile: its tables add up, its page and its trace are sound, and every step is in them."""

from __future__ import annotations

import html.parser
import json

import numpy as np
import pytest
from conftest import BAD_INPUT, DIGITS, UNREADABLE, USAGE, parse_json

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
VOID = {"meta", "br", "img", "hr", "input", "link"}
LOOP = f"""{HEAD}
  looping (float[n] x, int64 trips) => (float[n] y, float[t,n] all) {{
    zero = Constant <value_int = 0> ()
    go = Constant <value = bool {{1}}> ()
    y, all = Loop (trips, go, x) <body = body (int64 i, bool c, float[n] v) => (bool d, float[n] w, float[n] out) {{
      d = Identity (c)
      wide = CumSum (v, zero)
      w = Softmax (wide)
      out = Neg (w)
    }}>
  }}"""
CHOICE = f"""{HEAD}
  choosing (float[n] x, bool up) => (float[n] y) {{
    y = If (up) <then_branch = rise () => (float[n] a) {{ a = Exp (x) }},
                 else_branch = fall () => (float[n] b) {{ t = Sin (x)  b = Softmax (t) }}>
  }}"""


class Page(html.parser.HTMLParser):
    """Collects what the page holds and checks that its elements nest."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[tuple[str, dict]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.marks: dict[str, list[dict]] = {}
        self.scripts: dict[str, str] = {}
        self.addresses: list[str] = []
        self.table = None
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.addresses += [value for key, value in attributes if key in ("src", "href", "srcset", "action")]
        if tag == "table":
            self.table = self.tables.setdefault(found["id"], [])
        if tag == "tr" and self.table is not None:
            self.table.append([])
        if tag in ("td", "th") and self.table is not None:
            self.table[-1].append("")
        if tag in ("rect", "circle"):
            svg = next(kept for name, kept in self.open if name == "svg")
            self.marks.setdefault(svg["id"], []).append(found)
        if tag not in VOID:
            self.open.append((tag, found))

    def handle_startendtag(self, tag, attributes):
        assert tag not in ("rect", "circle"), "marks have titles"

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        if tag == "table":
            self.table = None

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "script":
            key = self.open[-1][1].get("id", "")
            self.scripts[key] = self.scripts.get(key, "") + data
        elif self.table and self.table[-1] and any(tag in ("td", "th") for tag, _ in self.open):
            self.table[-1][-1] += data


@pytest.fixture
def profile(sardonyx, tmp_path):
    def run(model, *arguments):
        page, trace = tmp_path / "p.html", tmp_path / "t.json"
        found = parse_json(sardonyx("profile", model, *arguments, "--json", "--html", page, "--trace", trace))
        return found, Page(page.read_text()), json.loads(trace.read_text())

    return run


def origin(step: dict) -> str:
    return "from " + ", ".join(step["sources"]) if step["sources"] else step["origin"]


def add_up(found: dict) -> None:
    steps, operators = found["steps"], found["operators"]
    assert sum(row["self_ms"] for row in steps) + found["rest_ms"] == pytest.approx(found["run_ms"], rel=1e-6)
    assert found["rest_ms"] > 0 and found["run_ms"] > 0
    for key in ("self_ms", "calls", "operations", "bytes", "share"):
        assert sum(row[key] for row in operators) == pytest.approx(sum(row[key] for row in steps), rel=1e-6)
    assert [row["self_ms"] for row in operators] == sorted((row["self_ms"] for row in operators), reverse=True)
    for index, row in enumerate(steps):
        assert 0 <= row["self_ms"] <= row["ms"] + 1e-9
        inside = sum(other["ms"] for other in steps if other["inside"] == index)
        assert row["ms"] - row["self_ms"] == pytest.approx(inside, rel=1e-6, abs=1e-9)
        assert row["share"] == pytest.approx(row["self_ms"] / found["run_ms"], rel=1e-6)
        if row["operations"]:
            assert row["gflops"] == pytest.approx(row["operations"] / row["self_ms"] * 1e-6, rel=1e-6)


def test_every_step_of_explain_with_its_work(sardonyx, profile):
    model = DIGITS / "digits.onnx"
    found, page, trace = profile(model, "--runs", 12, "--threads", 2)
    explained = parse_json(sardonyx("explain", model, "--json", "--threads", 2))["steps"]
    assert found["runs"] == 12 and found["threads"] == 2
    assert [(s["node"], s["origin"], s["sources"], s["kernel"]) for s in found["steps"]] == [
        (s["node"], s["origin"], s["sources"], s["kernel"]) for s in explained]
    add_up(found)
    cost = parse_json(sardonyx("info", model, "--json"))["cost"]["flops"]
    assert sum(step["operations"] for step in found["steps"]) == pytest.approx(cost, rel=0.1)
    machine = found["machine"]
    assert machine["gflops"] > 0 and [level["name"] for level in machine["levels"]][-1] == "memory"
    assert all(level["gbps"] > 0 for level in machine["levels"])

    assert not page.addresses
    assert page.tables["steps"][1][0] == found["steps"][0]["node"]
    assert len(page.tables["steps"]) == 1 + len(explained)
    assert {row[0].removeprefix("■ ") for row in page.tables["operators"][1:]} == {
        row["operator"] for row in found["operators"]}
    assert json.loads(page.scripts["profile"])["steps"] == found["steps"]
    bars = page.marks["timeline"]
    assert {int(bar["data-step"]) for bar in bars if bar["data-thread"] == "0"} == set(range(len(explained)))
    assert all(-0.01 <= float(bar["x"]) and float(bar["x"]) + float(bar["width"]) <= 1200.01 for bar in bars)
    assert page.marks["roofline"]


def test_the_timeline_shows_a_run_that_was_kept_whole(sardonyx, save, tmp_path):
    """A run makes 700,000 calls of steps, a profile keeps a million: the first run alone is whole."""
    page = tmp_path / "p.html"
    np.savez(tmp_path / "in.npz", x=np.ones(1, np.float32), trips=np.array(175_000))
    sardonyx("profile", save(LOOP), "--inputs", tmp_path / "in.npz", "--runs", 4, "--threads", 1, "--html", page)
    assert "Run 1 of 4," in page.read_text()
    bars = Page(page.read_text()).marks["timeline"]
    assert len(bars) == 6000
    ends = [float(bar["x"]) + float(bar["width"]) for bar in bars]
    assert max(ends) == pytest.approx(1200, rel=0.01)  # all of the run is there


def spans_nest(events: list[dict]) -> None:
    """What Perfetto needs: spans of one thread lie within one another or apart."""
    for thread in {event["tid"] for event in events}:
        stack = []
        spans = [event for event in events if event["tid"] == thread]
        for event in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
            begin, end = event["ts"], event["ts"] + event["dur"]
            while stack and stack[-1] <= begin + 1e-3:
                stack.pop()
            assert not stack or end <= stack[-1] + 1e-3, event
            stack.append(end)


def test_trace_events(profile):
    found, _, trace = profile(DIGITS / "digits.onnx", "--runs", 3, "--threads", 2)
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert {"run", "helper 1"} < names
    spans_nest(spans)
    runs = [event for event in spans if event["cat"] == "run"]
    assert len(runs) == 3
    for number in range(3):
        own = [event for event in spans if event["tid"] == 0 and event["args"].get("run") == number]
        assert [event["args"]["step"] for event in own] == list(range(len(found["steps"])))
        assert runs[number]["ts"] <= own[0]["ts"] <= own[-1]["ts"] + own[-1]["dur"] <= runs[number]["ts"] + runs[number]["dur"]
    told = {event["args"]["origin"] for event in spans if event["args"].get("origin")}
    assert told == {origin(step) for step in found["steps"] if origin(step)}
    assert any(text.startswith("from ") and ", " in text for text in told)


def test_helpers_are_seen(profile, save, tmp_path):
    model = save(f"{HEAD} g (float[n,512] x, float[512,512] w) => (float[n,512] y) {{ y = MatMul (x, w) }}")
    found, page, trace = profile(model, "--set", "n=4096", "--threads", 2, "--runs", 9)
    product = found["steps"][0]
    assert product["operations"] == 2 * 4096 * 512 * 512
    assert product["bytes"] == 4 * (4096 * 512 * 2 + 512 * 512)
    assert 1.05 < product["threads"] <= 2.1
    helped = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["tid"] == 1]
    assert helped and all(event["name"].endswith("(part)") for event in helped)
    assert any(bar["data-thread"] == "1" for bar in page.marks["timeline"])


def test_a_body_counts_by_itself(sardonyx, profile, save):
    model = save(LOOP)
    found, page, trace = profile(model, "--input", "x=1 2 3 4", "--input", "trips=5", "--runs", 4, "--threads", 1)
    add_up(found)
    explained = parse_json(sardonyx("explain", model, "--json"))["steps"]
    assert [s["node"] for s in found["steps"] if s["inside"] < 0] == [s["node"] for s in explained]
    loop = next(i for i, step in enumerate(found["steps"]) if step["operator"] == "Loop")
    body = [step for step in found["steps"] if step["inside"] == loop]
    assert {"CumSum", "Softmax", "Neg"} <= {step["operator"] for step in body}
    assert all(step["calls"] == 5 and step["graph"] == "body" for step in body)
    softmax = next(step for step in body if step["operator"] == "Softmax")
    assert softmax["operations"] == 5 * 4 and softmax["bytes"] == 5 * 32
    nested = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["args"].get("graph") == "body"]
    assert len(nested) == 4 * 5 * len(body)
    assert all(event["args"]["inside"].startswith("Loop") for event in nested)
    spans_nest([event for event in trace["traceEvents"] if event["ph"] == "X"])
    assert len(page.tables["steps"]) == 1 + len(found["steps"])


def test_a_branch_appears_when_it_runs(profile, save):
    model = save(CHOICE)
    taken, _, _ = profile(model, "--input", "x=1 2", "--input", "up=1", "--runs", 2)
    other, _, _ = profile(model, "--input", "x=1 2", "--input", "up=0", "--runs", 2)
    assert [step["operator"] for step in taken["steps"]] == ["If", "Exp"]
    assert [step["operator"] for step in other["steps"]] == ["If", "Sin", "Softmax"]
    assert other["steps"][1]["graph"] == "fall"
    add_up(taken), add_up(other)


def test_sizes_that_the_run_decides(profile, save):
    model = save(f"{HEAD} g (float[n] x) => (int64[1,k] y, float[n] z) {{ y = NonZero (x)  f = Cast <to = 1> (y) "
                 "m = ReduceSum <keepdims = 0> (f)  z = Add (m, x) }")
    found, _, _ = profile(model, "--input", "x=1 0 2 0", "--runs", 3)
    add_up(found)
    nonzero = next(step for step in found["steps"] if step["operator"] == "NonZero")
    assert nonzero["bytes"] == 4 * 4 + 2 * 8


def test_convolution_and_attention_are_counted(profile, save):
    weights = np.ones((8, 4, 3, 3), np.float32)
    model = save(f"{HEAD} g (float[1,4,10,10] x, float[8,4,3,3] w) => (float[1,8,8,8] y) "
                 "{ c = Conv (x, w)  y = Relu (c) }", w=weights)
    found, _, _ = profile(model, "--runs", 2)
    conv = next(step for step in found["steps"] if step["operator"] == "Conv")
    assert conv["operations"] == 2 * 8 * 64 * 36
    assert conv["bytes"] == 4 * (400 + 8 * 36 + 512)
    attention = save('<ir_version: 10, opset_import: ["" : 23]> g (float[2,3,5,8] q, float[2,3,7,8] k, float[2,3,7,4] v) '
                     "=> (float[2,3,5,4] y) { y = Attention (q, k, v) }", name="attention.onnx")
    found, _, _ = profile(attention, "--runs", 2)
    assert found["steps"][0]["operations"] == 2 * 2 * 3 * 5 * 7 * (8 + 4)


def test_names_of_strangers_stay_text(profile, save, tmp_path):
    import onnx

    model = save(f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Softmax (x) }}")
    proto = onnx.load(model)
    proto.graph.node[0].name = '</script><script>alert("1")</script>&amp;\u202e'
    onnx.save(proto, model)
    found, page, trace = profile(model, "--runs", 1)
    assert set(page.scripts) == {"profile", ""} and "alert" not in page.scripts[""]
    assert json.loads(page.scripts["profile"])["steps"][0]["node"] == found["steps"][0]["node"]
    assert "alert" in page.tables["steps"][1][0]


def test_text_tells_origins_once_and_cuts_long_lists(sardonyx, profile, save):
    model = save("""<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) { y = local.Both (x)
          a = Exp (x) b = Neg (a) c = Tanh (b) d = Abs (c) e = Sqrt (d) f = Exp (e) h = Abs (f) z = Neg (h) }
        <domain: "local", opset_import: ["" : 21]> Both (a) => (c) { [p] b = Exp (a) [q] c = Neg (b) }""")
    sources = [step["sources"] for step in parse_json(sardonyx("explain", model, "--json"))["steps"]]
    inside = " (in function Both, called by local.Both making 'y')"
    long = ["Exp making 'a'", "Neg making 'b'", "Tanh making 'c'", "Abs making 'd'", "Sqrt making 'e'", "Exp making 'f'",
            "Abs making 'h'", "Neg making 'z'"]
    assert sources == [[f"Exp 'p'{inside}", f"Neg 'q'{inside}"], long]
    for text in (sardonyx("explain", model).stdout, sardonyx("profile", model, "--runs", 1).stdout):
        assert f"from Exp 'p', Neg 'q'{inside}\n" in text
        assert f"from {', '.join(long[:6])} and 2 more\n" in text
    _, page, trace = profile(model, "--runs", 1)
    assert [row[-1] for row in page.tables["steps"][1:]] == [f"from Exp 'p', Neg 'q'{inside}", f"from {', '.join(long)}"]
    assert f"from {', '.join(long)}" in {event["args"].get("origin") for event in trace["traceEvents"]}


SQUEEZE = f"""{HEAD}
  squeezing (float[n, m] x) => (float[k] y) {{
    zero = Constant <value_int = 0> ()
    one = Constant <value = int64 {{1}}> ()
    sizes = Shape (x)
    size = Gather (sizes, one)
    is_one = Equal (size, one)
    s = If (is_one) <then_branch = t () => (float[n] a) {{ axis = Constant <value = int64[1] {{1}}> ()  a = Squeeze (x, axis) }},
                     else_branch = e () => (float[n, m] b) {{ b = Identity (x) }}>
    y = CumSum (s, zero)
  }}"""


def test_plans_for_what_sizes_decide_say_so(sardonyx, profile, save):
    model = save(SQUEEZE)
    for m, branch, steps in ((1, "then_branch", 2), (3, "else_branch", 1)):
        assumed = [f"If making 's' takes its {branch}"]
        explained = parse_json(sardonyx("explain", model, "--json", "--set", f"m={m}", "--set", "n=4"))
        assert explained["guards"] == assumed and len(explained["steps"]) == steps
        found, _, _ = profile(model, "--set", f"m={m}", "--runs", 2)
        assert found["guards"] == assumed
        assert [s["node"] for s in found["steps"]] == [s["node"] for s in explained["steps"]]
        for command in (["explain"], ["profile", "--runs", 2]):
            assert f"planned for runs in which {assumed[0]}\n" in sardonyx(*command, model, "--set", f"m={m}").stdout
    whatever = parse_json(sardonyx("explain", model, "--json"))
    assert whatever["guards"] == [] and "evaluated plainly" in {step["kernel"] for step in whatever["steps"]}


def test_text_lists_operators_and_steps(sardonyx):
    text = sardonyx("profile", DIGITS / "digits.onnx", "--runs", 2).stdout
    explained = parse_json(sardonyx("explain", DIGITS / "digits.onnx", "--json"))["steps"]
    assert all(step["node"] in text and step["kernel"] in text for step in explained)
    assert "GFLOP/s" in text and "outside the steps" in text


def test_a_page_and_a_trace_go_to_standard_output(sardonyx, tmp_path):
    start = ["profile", DIGITS / "digits.onnx", "--runs", "2", "--json"]
    page = sardonyx(*start, "--html", "-", cwd=tmp_path)
    assert page.stdout.startswith("<!doctype html>") and page.stdout.endswith("</html>\n") and json.loads(page.stderr)["runs"] == 2
    trace = sardonyx(*start, "--trace", "-", cwd=tmp_path)
    assert json.loads(trace.stdout)["traceEvents"] and json.loads(trace.stderr)["runs"] == 2
    sardonyx.fails(USAGE, "run", DIGITS / "digits.onnx", "--random-inputs", "-o", "-", mentions=["folder"], cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_makes_no_sense(sardonyx, tmp_path):
    model = DIGITS / "digits.onnx"
    sardonyx.fails(USAGE, "profile", model, "--reference", mentions=["--reference"])
    sardonyx.fails(USAGE, "profile", model, "--runs", "0")
    sardonyx.fails(UNREADABLE, "profile", model, "--runs", "1", "--html", tmp_path / "no" / "p.html", mentions=["p.html"])
    sardonyx.fails(BAD_INPUT, "profile", model, "--input", "other=1", mentions=["other"])


def test_a_report_takes_the_place_of_nothing(sardonyx, tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes((DIGITS / "digits.onnx").read_bytes())
    start = ["profile", model, "--runs", "1"]
    for option in ("--html", "--trace"):
        sardonyx.fails(USAGE, *start, option, tmp_path / "." / "model.onnx", mentions=["is the model"])
    sardonyx.fails(USAGE, *start, "--html", "one", "--trace", "./one", mentions=["--html and --trace"], cwd=tmp_path)
    (tmp_path / "two").touch()
    (tmp_path / "link").symlink_to("two")
    sardonyx.fails(USAGE, *start, "--html", "two", "--trace", "link", mentions=["--html and --trace"], cwd=tmp_path)
    long = "x" * 300  # two names that no file can have are not one
    sardonyx.fails(UNREADABLE, *start, "--html", long + ".html", "--trace", long + ".json", mentions=["File name too long"], cwd=tmp_path)
    assert model.read_bytes() == (DIGITS / "digits.onnx").read_bytes() and not (tmp_path / "one").exists()
    sardonyx(*start, "--html", "/dev/null", "--trace", "/dev/null")
