"""Operators in Python."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import threading
import traceback
import weakref

import numpy as np
import onnx
import pytest
import sardonyx
from onnx import parser

IMPORTS = '<ir_version: 10, opset_import: ["" : 21, "com.example" : 2]> '


def parse(text: str, **weights: np.ndarray) -> onnx.ModelProto:
    return parser.parse_model(IMPORTS + text)


class Leaky(sardonyx.Operator):
    domain = "com.example"
    signature = """
        Leaky
          since 2
            in x: T
            out y: T
            attr slope: float = 0.5
            where T in float double
          since 1 like 2, attr slope: float = 0.25"""

    def run(self, node, x):
        return np.where(x < 0, x * x.dtype.type(node.attributes["slope"]), x)

    def infer(self, context):
        context.set_output_like(0, 0)


@sardonyx.operator("com.example", like="x")
def Twice(x):
    """Doubles."""
    return x + x


@sardonyx.operator("com.example", outputs=("first", "rest"))
def Parts(x, *, count: int = 1, names: list[str] = ["a", "b"], factor: float = 2.0):
    return x[:count], x[count:] * x.dtype.type(factor)


LEAKY = "g (float[n] x) => (float[n] y) { y = com.example.Leaky <slope = 0.1> (x) }"
X = np.array([1, -10], np.float32)


@pytest.mark.parametrize("reference", [False, True])
def test_a_class_and_a_function(reference):
    model = parse("g (float[n] x) => (float[n] y) { a = com.example.Leaky (x)  b = Relu(a)  y = com.example.Twice (b) }")
    session = sardonyx.Session(model, operators=[Leaky(), Twice], reference=reference)
    np.testing.assert_array_equal(session([1.0, -10.0]), [2, 0])
    assert Twice(2) == 4 and Twice.__doc__ == "Doubles."
    assert any("python.Leaky" in step.kernel for step in session.steps) or reference


def test_the_version_that_the_model_imports():
    old = parser.parse_model(IMPORTS.replace('"com.example" : 2', '"com.example" : 1') + LEAKY.replace("<slope = 0.1>", ""))
    new = parse(LEAKY.replace("<slope = 0.1>", ""))
    assert sardonyx.Session(old, operators=[Leaky()])(X)[1] == -2.5
    assert sardonyx.Session(new, operators=[Leaky()])(X)[1] == -5
    assert sardonyx.Session(parse(LEAKY), operators=[Leaky()])(X)[1] == np.float32(-1)


def test_outputs_without_inference_have_the_shape_that_they_get():
    model = parse("g (float[n] x) => (float[] a, float[] b) { a, b = com.example.Parts <count = 3> (x) }")
    a, b = sardonyx.Session(model, operators=[Parts])(np.arange(5, dtype=np.float32))
    assert a.tolist() == [0, 1, 2] and b.tolist() == [6, 8]
    only = parse("g (float[n] x) => (float[] a) { a = com.example.Parts (x) }")
    assert sardonyx.Session(only, operators=[Parts])(np.arange(3, dtype=np.float32)).tolist() == [0]


def test_attributes_of_every_kind():
    seen = {}

    @sardonyx.operator("com.example", types={"T": "float"}, like="x")
    def All(x, *, i: int, f: float, s: str, ints: list[int], floats: list[float], strings: list[str], t: np.ndarray = None,
            flag=True, missing: int | None = None):
        seen.update(i=i, f=f, s=s, ints=ints, floats=floats, strings=strings, t=t, flag=flag, missing=missing)
        return x

    model = parse('g (float[n] x) => (float[n] y) { y = com.example.All <i = 7, f = 1.5, s = "word", ints = [1, 2], '
                  'floats = [0.5, 1.5], strings = ["a", "b"], t = int64[2] {3, 4}> (x) }')
    sardonyx.Session(model, operators=[All])(X)
    assert seen.pop("t").tolist() == [3, 4]
    assert seen == {"i": 7, "f": 1.5, "s": "word", "ints": [1, 2], "floats": [0.5, 1.5], "strings": ["a", "b"], "flag": 1,
                    "missing": None}
    without = parse("g (float[n] x) => (float[n] y) { y = com.example.All <i = 7> (x) }")
    report = sardonyx.check(without, operators=[All])
    assert not report.ok and "attribute" in str(report)


def test_defaults_of_attributes():
    seen = []

    @sardonyx.operator("com.example", like="x")
    def Kinds(x, *, factor: float = 1, half: float | None = 0.5, mixed=[1, 2.5], name="\u00e9 \"", tab="a\tb", texts=("q", "\n"),
              flag: bool = True, wide=np.float64(0.25), count: int = np.int64(3)):
        seen.append((factor, half, mixed, name, tab, list(texts), flag, wide, count))
        return x

    for given in ("", "<factor = 0.25>"):
        text = f"g (float[n] x) => (float[n] y) {{ y = com.example.Kinds {given} (x) }}"
        sardonyx.Session(sardonyx.Model(parse(text).SerializeToString(), operators=[Kinds])).run({"x": X})
    assert seen == [(factor, 0.5, [1, 2.5], "\u00e9 \"", "a\tb", ["q", "\n"], True, 0.25, 3) for factor in (1, 0.25)]


def test_element_types():
    types = ["float", "double", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "string",
             "bfloat16", "int4", "complex64"]
    for name in types:
        model = parse(f"g ({name}[n] x) => ({name}[n] y) {{ y = com.example.Same (x) }}")

        @sardonyx.operator("com.example", like="x")
        def Same(x):
            return x

        session = sardonyx.Session(model, operators=[Same])
        x = np.array(["a", "ü"], object) if name == "string" else np.array([0, 1]).astype(session.inputs[0].dtype)
        y = session(x)
        assert y.dtype == x.dtype and y.tolist() == x.tolist(), name


def test_absent_and_variadic_inputs():
    @sardonyx.operator("com.example")
    def Clip(x, low=None, high=None):
        return np.clip(x, low, high)

    @sardonyx.operator("com.example")
    def Sum(*x):
        return sum(x)

    model = parse("g (float[n] x, float high) => (float[] y) { c = com.example.Clip (x, , high)  y = com.example.Sum (c, c, x) }")
    assert sardonyx.Session(model, operators=[Clip, Sum])([1, 5], 2).tolist() == [3, 9]


def test_a_type_for_one_parameter():
    @sardonyx.operator("com.example", types={"at": "int64", "found": "bool"}, outputs=("y", "found"))
    def Pick(x, at):
        return x[at], at >= 0

    model = parse("g (float[n] x, int64[k] at) => (float[] y, bool[] found) { y, found = com.example.Pick (x, at) }")
    y, found = sardonyx.Session(model, operators=[Pick])(X, np.array([1, -1]))
    assert y.tolist() == [-10, -10] and found.tolist() == [True, False] and found.dtype == np.bool_
    with pytest.raises(ValueError, match="neither an input nor an output"):
        sardonyx.operator("com.example", types={"z": "int64"})(lambda x: x)


def test_inference_with_symbolic_sizes():
    @sardonyx.operator("com.example")
    def Windows(x, *, width: int):
        return np.stack([x[i:i + width] for i in range(len(x) - width + 1)]).reshape(-1)

    kept = []

    @Windows.inference
    def infer(context):
        (size,) = context.shape(0)
        width = context.attributes["width"]
        assert context.element_type(0) == "float" and context.since == 1 and context.input_count == 1
        if isinstance(size, int) and size < width:
            context.fail(f"{size} elements have no window of {width}")
        kept.append((context, size))
        context.set_output(0, np.float32, [(size - width + 1) * width])

    model = parse("g (float[n] x) => (float[] y) { y = com.example.Windows <width = 2> (x) }")
    found = sardonyx.infer_types(model, operators=[Windows])
    assert found["y"].shape == ("2*n - 2",)
    assert sardonyx.infer_types(model, operators=[Windows], sizes={"n": 5})["y"].shape == (8,)
    assert sardonyx.Session(model, operators=[Windows])([1, 2, 3]).tolist() == [1, 2, 2, 3]
    with pytest.raises(RuntimeError, match="over"):
        kept[0][0].shape(0)
    symbolic = [size for _, size in kept if not isinstance(size, int)]
    with pytest.raises(RuntimeError, match="over"):
        symbolic[0] + 1
    with pytest.raises(sardonyx.Error, match="no window of 2"):
        sardonyx.Session(model, operators=[Windows], dimensions={"n": 1})


def test_the_arithmetic_of_sizes():
    shapes = []

    @sardonyx.operator("com.example")
    def Sizes(a, b):
        return np.zeros(0, np.float32)

    @Sizes.inference
    def infer(context):
        n, m = context.shape(0)[0], context.shape(1)[0]
        context.require_equal(n, m, "both must be as long")
        shapes.append([n + m, 3 + n, n - 1, 5 - n, n * m, 2 * n, n // 2, 7 // n, context.ceil_div(n, 2), context.min(n, m),
                       context.max(n, 9), context.broadcast(n, m), context.unknown(), context.unknown(n)])
        context.set_output(0, "float", [context.unknown(4)])

    model = parse("g (float[4] a, float[4] b) => (float[] y) { y = com.example.Sizes (a, b) }")
    sardonyx.infer_types(model, operators=[Sizes])
    assert shapes[0][:12] == [8, 7, 3, 1, 16, 8, 2, 1, 2, 4, 9, 4]
    different = parse("g (float[4] a, float[5] b) => (float[] y) { y = com.example.Sizes (a, b) }")
    assert "both must be as long" in str(sardonyx.infer_types(different, operators=[Sizes]).findings)
    with pytest.raises(sardonyx.Error, match="both must be as long"):
        sardonyx.Session(different, operators=[Sizes])


def test_constants_are_shown_to_inference_and_folded():
    calls = []

    @sardonyx.operator("com.example", types={"count": "int64"})
    def Repeat(x, count):
        calls.append(1)
        return np.repeat(x, int(count))

    @Repeat.inference
    def infer(context):
        count = context.constant(1)
        context.set_output(0, context.element_type(0), [context.shape(0)[0] * int(count)] if count is not None else [context.unknown()])

    model = parse("g (float[2] x) => (float[] y) <int64 three = {3}> { y = com.example.Repeat (x, three) }")
    assert sardonyx.infer_types(model, operators=[Repeat])["y"].shape == (6,)
    assert sardonyx.Session(model, operators=[Repeat])(X).shape == (6,)
    constant = parse("g (float x) => (float[] y) <float[2] w = {1, 2}, int64 two = {2}> { r = com.example.Repeat (w, two)  y = Add (r, x) }")
    session = sardonyx.Session(constant, operators=[Repeat])
    before = len(calls)
    assert session(1).tolist() == [2, 2, 3, 3] and len(calls) == before


def test_in_subgraphs_and_functions():
    model = parse("""
        g (float[n] x, bool which) => (float[] y)
        {
            h = com.example.Quad (x)
            y = If (which) <
                then_branch = then () => (float[] a) { a = com.example.Leaky (h) },
                else_branch = otherwise () => (float[] b) { b = com.example.Twice (h) }>
        }
        <domain: "com.example", opset_import: ["" : 21, "com.example" : 2]>
        Quad (x) => (z) { t = com.example.Twice (x)  z = com.example.Twice (t) }""")
    for reference in (False, True):
        session = sardonyx.Session(model, operators=[Leaky(), Twice], reference=reference)
        assert session(X, True).tolist() == [4, -20] and session(X, False).tolist() == [8, -80]
    loop = parse("""
        g (float[n] x) => (float[] y) <int64 trips = {3}, bool go = {1}>
        { y = Loop (trips, go, x) <body = body (int64 i, bool c, float[n] s) => (bool d, float[n] t)
            { d = Identity (c)  t = com.example.Twice (s) }> }""")
    assert sardonyx.Session(loop, operators=[Twice])(X).tolist() == [8, -80]


# --- what goes wrong -----------------------------------------------------------------------------


@sardonyx.operator("com.example", like="x")
def Broken(x, *, kind: str = "value"):
    if kind == "value":
        raise ValueError("no such luck")
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "exit":
        raise SystemExit(3)
    if kind == "type":
        return x.astype(np.float64)
    if kind == "shape":
        return x[:1]
    if kind == "nothing":
        return None
    if kind == "many":
        return x, x
    return "text"


def broken(kind: str) -> sardonyx.Session:
    model = parse(f'g (float[n] x) => (float[n] y) {{ a = Relu (x)  y = com.example.Broken <kind = "{kind}"> (a) }}')
    return sardonyx.Session(model, operators=[Broken])


@pytest.mark.parametrize("reference", [False, True])
def test_an_exception_reaches_the_caller_with_its_traceback(reference):
    session = sardonyx.Session(broken("value").model, reference=reference)
    for _ in range(2):
        with pytest.raises(sardonyx.RunFailedError, match="Broken.*ValueError: no such luck") as caught:
            session(X)
        cause = caught.value.__cause__
        assert type(cause) is ValueError and cause.args == ("no such luck",)
        assert 'raise ValueError("no such luck")' in "".join(traceback.format_exception(caught.value))


def test_an_exception_whose_text_has_no_utf8():
    """Names of files may be such."""
    def missing(x):
        raise FileNotFoundError("caf\udce9.npy")

    session = sardonyx.Session(parse("g (float[n] x) => (float[n] y) { y = com.example.Missing(x) }"),
                               operators=[sardonyx.operator("com.example", name="Missing", since=2, like="x")(missing)])
    with pytest.raises(sardonyx.RunFailedError, match=r"FileNotFoundError: caf\\udce9\.npy") as error:
        session(X)
    assert isinstance(error.value.__cause__, FileNotFoundError)


def test_what_is_no_exception_goes_through():
    with pytest.raises(KeyboardInterrupt):
        broken("interrupt")(X)
    with pytest.raises(SystemExit):
        broken("exit")(X)
    assert Twice(1) == 2


@pytest.mark.parametrize(("kind", "words"), [
    ("type", "gave double for output 'y', which is float"), ("nothing", "NoneType"), ("many", "2 values"), ("shape", "Broken"),
    ("text", "string")])
def test_what_the_code_gives_is_checked(kind, words):
    with pytest.raises(sardonyx.Error, match=words):
        broken(kind)(X)


def test_an_error_inside_of_inference():
    @sardonyx.operator("com.example")
    def Bad(x):
        return x

    @Bad.inference
    def infer(context):
        raise ZeroDivisionError("by nothing")

    model = parse("g (float[n] x) => (float[n] y) { y = com.example.Bad (x) }")
    with pytest.raises(sardonyx.Error, match=r"Bad.*infer\(\): ZeroDivisionError: by nothing") as caught:
        sardonyx.Session(model, operators=[Bad])
    assert type(caught.value.__cause__) is ZeroDivisionError


def test_inference_belongs_to_its_call_and_thread():
    held, told = [], []

    @sardonyx.operator("com.example", outputs=("y",), types={"T": "float"})
    def Kept(x):
        return x

    @Kept.inference
    def infer(context):
        held.append(context)

        def ask():
            try:
                context.shape(0)
            except RuntimeError as error:
                told.append(str(error))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        context.set_output_like(0, 0)

    text = '<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]> g (float[n] x) => (float[n] y) { y = com.example.Kept(x) }'
    sardonyx.Session(sardonyx.Model.from_text(text, operators=[Kept]))
    assert told and all("belongs to the thread" in one for one in told)
    with pytest.raises(RuntimeError, match="nothing of it may be kept"):
        held[0].shape(0)


def test_signatures_are_checked():
    class Odd(sardonyx.Operator):
        domain = "com.example"
        signature = "Odd\n since 1\n in x: nothing\n out y: float"

    model = parse(LEAKY)
    with pytest.raises(sardonyx.BadInputError, match="nothing"):
        sardonyx.Session(model, operators=[Odd()])
    Odd.signature = "Odd\n since 1\n in x: float\n out y: float\n attr g: graph"
    with pytest.raises(sardonyx.UnsupportedError, match="graph"):
        sardonyx.Session(model, operators=[Odd()])
    Odd.signature, Odd.domain = "Relu\n since 1\n in x: float\n out y: float", ""
    with pytest.raises(sardonyx.BadInputError, match="domain"):
        sardonyx.Session(model, operators=[Odd()])
    with pytest.raises(sardonyx.BadInputError, match="before"):
        sardonyx.Session(model, operators=[Leaky(), Leaky()])
    with pytest.raises(TypeError, match="any attribute"):
        sardonyx.operator("com.example")(lambda x, **more: x)
    with pytest.raises(TypeError, match="kind"):
        @sardonyx.operator("com.example")
        def F(x, *, a):
            return x
    with pytest.raises(ValueError, match="like="):
        sardonyx.operator("com.example", like="z")(lambda x: x)
    with pytest.raises(ValueError, match="no input"):
        sardonyx.operator("com.example")(lambda: 1)


def test_without_the_operator_the_error_names_it():
    with pytest.raises(sardonyx.UnsupportedError, match="Leaky"):
        sardonyx.Session(parse(LEAKY))


def test_run_is_not_written():
    class Empty(sardonyx.Operator):
        domain = "com.example"
        signature = Leaky.signature

    with pytest.raises(sardonyx.RunFailedError, match=r"Empty.run\(\)"):
        sardonyx.Session(parse(LEAKY), operators=[Empty()])(X)


# --- threads, copies, lifetimes ------------------------------------------------------------------


def test_inputs_may_be_kept():
    kept = []

    @sardonyx.operator("com.example", like="x")
    def Keep(x):
        kept.append(x)
        return x

    session = sardonyx.Session(parse("g (float[n] x) => (float[n] y) { a = Neg (x)  y = com.example.Keep (a) }"), operators=[Keep])
    for i in range(20):
        session(np.full(1000, i, np.float32))
    assert [float(x[0]) for x in kept] == [-i for i in range(20)] and all((x == x[0]).all() for x in kept)


def test_many_threads_run_and_make_sessions():
    model = sardonyx.Model(parse("g (float[n] x) => (float[] y) { a = com.example.Leaky (x)  y = com.example.Twice (a) }"),
                           operators=[Leaky(), Twice])
    shared = sardonyx.Session(model)
    failures = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            for i in range(40):
                x = rng.standard_normal(rng.integers(1, 50)).astype(np.float32)
                session = sardonyx.Session(model, threads=1) if i % 10 == 0 else shared
                expected = 2 * np.where(x < 0, x * np.float32(0.5), x)
                np.testing.assert_array_equal(session(x), expected)
                shared.packed_bytes, shared.steps
        except BaseException as found:
            failures.append(found)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures


def test_an_operator_may_run_sessions():
    inner = sardonyx.Session(parse("g (float[n] x) => (float[n] y) { y = com.example.Broken (x) }"), operators=[Broken])
    fine = sardonyx.Session(parse("g (float[n] x) => (float[n] y) { y = Neg (x) }"))

    @sardonyx.operator("com.example", like="x")
    def Outer(x):
        with pytest.raises(sardonyx.RunFailedError) as caught:
            inner(x)
        assert type(caught.value.__cause__) is ValueError
        return fine(x)

    assert sardonyx.Session(parse("g (float[n] x) => (float[n] y) { y = com.example.Outer (x) }"), operators=[Outer])(X).tolist() == [-1, 10]


def test_pickle_and_copies():
    session = sardonyx.Session(parse(LEAKY), operators=[Leaky()])
    for again in (pickle.loads(pickle.dumps(session)), copy.deepcopy(session), copy.copy(session)):
        assert again(X)[1] == np.float32(-1)
    twice = sardonyx.Session(parse("g (float[n] x) => (float[n] y) { y = com.example.Twice (x) }"), operators=[Twice])
    assert pickle.loads(pickle.dumps(twice))(X).tolist() == [2, -20]
    assert pickle.loads(pickle.dumps(Twice)) is Twice and copy.deepcopy(Twice) is Twice
    local = sardonyx.operator("com.example")(lambda x: x)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(local)


def test_what_is_made_of_a_model_keeps_its_operators():
    model = sardonyx.Model(parse("g (float[n] x) => (float[n] y) { a = com.example.Leaky (x)  y = Relu (a) }"), operators=[Leaky()])
    made = [sardonyx.extract(model, ["x"], ["a"]), sardonyx.rename(model, values={"x": "z"}), sardonyx.convert_version(model, 22),
            sardonyx.inline(model)]
    del model
    gc.collect()
    for one in [*made, pickle.loads(pickle.dumps(made[0]))]:
        assert sardonyx.Session(one)(X)[0] == 1


def test_operators_go_with_the_last_session():
    op = Leaky()
    gone = weakref.ref(op)
    session = sardonyx.Session(parse(LEAKY), operators=[op])
    del op
    gc.collect()
    assert session(X)[1] == np.float32(-1) and gone() is not None
    del session
    gc.collect()
    assert gone() is None


def test_other_threads_than_pythons(environment):
    """A run on a thread of the session's own, and the end of the interpreter while operators are at work."""
    code = textwrap.dedent("""
        import asyncio, time, numpy as np, sardonyx

        @sardonyx.operator("com.example", like="x")
        def Slow(x):
            time.sleep(0.05)
            return x + 1

        @sardonyx.operator("com.example", like="x")
        def Wrong(x):
            raise LookupError("not here")

        model = lambda name: sardonyx.Model.from_text('<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]> '
            f'g (float[n] x) => (float[n] y) {{ y = com.example.{name} (x) }}', operators=[Slow, Wrong])

        async def main():
            made = await asyncio.gather(*(sardonyx.Session(model("Slow")).run_async([[i]]) for i in range(5)))
            print([float(y[0]) for (y,) in made])
            try:
                await sardonyx.Session(model("Wrong")).run_async([[1]])
            except sardonyx.RunFailedError as found:
                print(type(found.__cause__).__name__)

        asyncio.run(main())
        session = sardonyx.Session(model("Slow"))
        for i in range(20):
            session._run_async([[i]], lambda outputs, error: None)
        print("end")
    """)
    made = subprocess.run([sys.executable, "-c", code], env=environment, text=True, capture_output=True, timeout=120)
    assert made.returncode == 0, made.stderr
    assert made.stdout.split("\n")[:3] == ["[1.0, 2.0, 3.0, 4.0, 5.0]", "LookupError", "end"] and made.stderr == ""
