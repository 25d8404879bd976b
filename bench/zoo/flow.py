"""Control flow, sequences, optional values and strings: models whose course depends on what they are given."""

from __future__ import annotations

import numpy as np
from onnx import helper

from .net import Built
from .small import from_text


def scan(hidden: int = 64, features: int = 32, steps: int = 60, batch: int = 4) -> Built:
    """A Scan both ways at once: a gated cell forward, sums of what it says backward."""
    text = f"""
    <ir_version: 10, opset_import: ["" : 19]>
    scan (float[batch,steps,{features}] x, float[batch,{hidden}] start)
      => (float[batch,{hidden}] last, float[steps,batch,{hidden}] states, float[batch,steps] sizes)
    {{
      shape = Shape <end = 1> (x)
      none = ConstantOfShape (shape)
      turned = Transpose <perm = [1, 0, 2]> (x)
      last, total, states, sums = Scan <num_scan_inputs = 2, scan_input_directions = [0, 1],
          scan_output_directions = [0, 1], body = step
        (float[b,{hidden}] state, float[b] sum, float[b,{features}] now, float[b,{features}] later)
        => (float[b,{hidden}] next, float[b] sum_next, float[b,{hidden}] seen, float[b] sum_seen)
        {{
          joined = Concat <axis = 1> (now, state)
          candidate_sum = Gemm (joined, weight, bias)
          gate_sum = Gemm (joined, gate_weight, bias)
          candidate = Tanh (candidate_sum)
          gate = Sigmoid (gate_sum)
          change = Sub (candidate, state)
          gated = Mul (gate, change)
          next = Add (state, gated)
          seen = Identity (next)
          one = Constant <value_ints = [1]> ()
          norm = ReduceSumSquare <keepdims = 0> (later, one)
          sum_next = Add (sum, norm)
          sum_seen = Sqrt (sum_next)
        }}> (start, none, turned, turned)
      sizes = Transpose <perm = [1, 0]> (sums)
    }}"""
    random = np.random.default_rng(41)
    total = hidden + features
    weights = {"weight": random.standard_normal((total, hidden)).astype(np.float32) / np.float32(np.sqrt(total)),
               "gate_weight": random.standard_normal((total, hidden)).astype(np.float32) / np.float32(np.sqrt(total)),
               "bias": 0.1 * random.standard_normal(hidden).astype(np.float32)}
    return from_text(text, {"x": random.standard_normal((batch, steps, features)).astype(np.float32),
                            "start": random.standard_normal((batch, hidden)).astype(np.float32)}, weights)


def optional(width: int = 32, rows: int = 6) -> Built:
    """An If gives a value or none; a Loop looks each time whether its carried optional holds something."""
    text = f"""
    <ir_version: 8, opset_import: ["" : 18]>
    optional (float[rows,{width}] x, bool given, int64 trips)
      => (float[rows,{width}] y, bool had, int64 found, float[total,{width}] stacked)
    {{
      maybe = If (given) <
        then_branch = some () => (optional(float[rows,{width}]) present)
          {{ scaled = MatMul (x, weight)  bent = Tanh (scaled)  present = Optional (bent) }},
        else_branch = none () => (optional(float[rows,{width}]) absent) {{ absent = Optional <type = float[rows,{width}]> () }}>
      had = OptionalHasElement (maybe)
      y = If (had) <
        then_branch = use () => (float[rows,{width}] value)
          {{ held = OptionalGetElement (maybe)  value = Add (held, x) }},
        else_branch = skip () => (float[rows,{width}] same) {{ same = Identity (x) }}>
      zero = Constant <value_int = 0> ()
      yes = Constant <value = bool {{1}}> ()
      nothing = SequenceEmpty <dtype = 1> ()
      state, found, pieces = Loop (trips, yes, y, zero, nothing) <body = trip
        (int64 index, bool going, float[rows,{width}] state, int64 count, seq(float[rows,{width}]) list)
        => (bool go_on, float[rows,{width}] next, int64 count_next, seq(float[rows,{width}]) list_next)
        {{
          go_on = Identity (going)
          half = Constant <value_float = 0.5> ()
          next = Mul (state, half)
          step = Cast <to = 7> (had)
          count_next = Add (count, step)
          list_next = SequenceInsert (list, next)
        }}>
      whole = SequenceInsert (pieces, y)
      stacked = ConcatFromSequence <axis = 0> (whole)
    }}"""
    random = np.random.default_rng(42)
    weight = (random.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32)
    return from_text(text, {"x": random.standard_normal((rows, width)).astype(np.float32), "given": np.array(True),
                            "trips": np.array(5, np.int64)}, {"weight": weight})


def pieces(width: int = 16, rows: int = 12, part: int = 5) -> Built:
    """Cuts an input into a sequence of unequal parts, takes some out, joins them again."""
    text = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    pieces (float[rows,{width}] x, int64 part) => (float[left,{width}] y, int64 count, float[some,{width}] last)
    {{
      parts = SplitToSequence <axis = 0> (x, part)
      count = SequenceLength (parts)
      end = Constant <value_int = -1> ()
      last = SequenceAt (parts, end)
      first_place = Constant <value_int = 0> ()
      first = SequenceAt (parts, first_place)
      without = SequenceErase (parts, first_place)
      bent = Tanh (first)
      joined = SequenceInsert (without, bent)
      y = ConcatFromSequence <axis = 0> (joined)
    }}"""
    random = np.random.default_rng(43)
    return from_text(text, {"x": random.standard_normal((rows, width)).astype(np.float32),
                            "part": np.array(part, np.int64)}, {})


WORDS = "the tin bird sang under Old lamps while rain fell softly over Stone walls and a cat slept".split()


def strings(rows: int = 64) -> Built:
    """Cleans texts, splits them into words, counts those it knows, finds addresses."""
    text = """
    <ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 4]>
    strings (string[rows] text, string[rows] ending)
      => (string[known] clean, string[rows] joined, string[rows,most] words, int64[rows] counts, int64[rows,most] ids,
          bool[rows] address)
    {
      joined = StringConcat (text, ending)
      clean = StringNormalizer <case_change_action = "LOWER", is_case_sensitive = 0, locale = "C", stopwords = ["a cat"]> (joined)
      words, counts = StringSplit <delimiter = " "> (joined)
      address = RegexFullMatch <pattern = "[a-z]+@[a-z]+[.](org|net)"> (text)
    }"""
    random = np.random.default_rng(44)
    texts = [" ".join(random.choice(WORDS, random.integers(1, 9))) for _ in range(rows)]
    texts[::7] = [f"{random.choice(WORDS[:5])}@{random.choice(WORDS[:5])}.org" for _ in texts[::7]]
    built = from_text_unchecked(text)
    built.model.graph.node.append(helper.make_node(
        "LabelEncoder", ["words"], ["ids"], domain="ai.onnx.ml", keys_strings=sorted(set(WORDS)),
        values_int64s=list(range(len(set(WORDS)))), default_int64=-1))
    built.inputs = {"text": np.array(texts), "ending": np.array(["", " !", " Stone"])[np.arange(rows) % 3]}
    return built


def from_text_unchecked(text: str) -> Built:
    from onnx import parser

    return Built(parser.parse_model(text), {})
