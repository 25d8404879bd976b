"""PagedAttention, which ONNX Runtime has for GPUs alone: against NumPy, and against GroupQueryAttention of each sequence, whose
past is what its blocks hold."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from contrib_support import Case, compare, drawing

RANDOM = np.random.default_rng(71)
F32, F16 = np.float32, np.float16
numbers, integers = drawing(RANDOM)


def i32(*values):
    return np.array(values, np.int32)


def softmax(x, sink):
    top = np.maximum(x.max(-1, keepdims=True), -1e30)
    e = np.exp(x - top)
    return e / (e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink[:, None, None] - top)))


def turned(x, table, positions, offset, interleaved):
    """[tokens, heads, size], in float32."""
    cos, sin = (t.astype(F32)[positions][:, None] for t in table)
    half, y = cos.shape[-1], x.copy()
    part = x[..., offset:offset + 2 * half]
    a, b = (part[..., ::2], part[..., 1::2]) if interleaved else (part[..., :half], part[..., half:])
    made = a * cos - b * sin, a * sin + b * cos
    y[..., offset:offset + 2 * half] = np.stack(made, -1).reshape(part.shape) if interleaved else np.concatenate(made, -1)
    return y


def normal(x, weight, epsilon=1e-6):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weight.astype(F32)


class Paged:
    """Sequences of `lengths` new tokens after `pasts` old ones; each row of the table has one block more than it needs."""

    def __init__(self, lengths, pasts, heads=4, kv_heads=2, size=16, block=4, dtype=F16, packed=False, rotary=None, offset=0,
                 interleaved=0, sink=False, norm=False, slots=False, kind=None, latent=None, outputs=(True, True, True), free=False, **more):
        self.lengths, self.pasts, self.heads, self.kv_heads, self.size, self.block = lengths, pasts, heads, kv_heads, size, block
        self.dtype, tokens = dtype, sum(lengths)
        needed = [-(-(a + b) // block) for a, b in zip(lengths, pasts)]
        self.blocks = sum(needed) + 2
        places = RANDOM.permutation(self.blocks)
        self.table = np.full((len(lengths), max(needed, default=0) + 1), -1, np.int32)
        at = 0
        for b, count in enumerate(needed):
            self.table[b, :count] = places[at:at + count]
            at += count
        q, k, v = (numbers(tokens, count * size).astype(dtype) for count in (heads, kv_heads, kv_heads))
        shape = (self.blocks, block, kv_heads, size)
        scale = {None: None, "PER_TENSOR": np.array([0.02], F32), "PER_CHANNEL": RANDOM.uniform(0.01, 0.03, (kv_heads, 1, size)).astype(F32)}[kind]
        self.caches = [integers(-128, 128, *shape, dtype=np.int8) if kind else numbers(*shape).astype(dtype) for _ in range(2)]
        self.positions = np.concatenate([p + np.arange(n) for n, p in zip(lengths, pasts)] or [np.zeros(0)]).astype(int)
        tables = [numbers(64, rotary).astype(dtype) for _ in range(2)] if rotary else [None, None]
        given = None
        if slots:
            given = np.array([self.slot(b, p) for b, (n, past) in enumerate(zip(lengths, pasts)) for p in range(past, past + n)], np.int32)
            given[::3] = -1
        weights = [numbers(size).astype(dtype) for _ in range(2)] if norm else [None, None]
        drawn = numbers(heads).astype(dtype) if sink else None
        self.inputs = [np.concatenate([q, k, v], -1) if packed else q, None if packed else k, None if packed or latent is not None else v,
                       self.caches[0], None if latent is not None else self.caches[1], np.cumsum([0, *lengths]).astype(np.int32),
                       np.array(pasts, np.int32), self.table, *tables, given, drawn, *weights, scale, scale]
        attributes = dict(num_heads=heads, kv_num_heads=kv_heads, do_rotary=int(rotary is not None), rotary_offset=offset,
                          rotary_interleaved=interleaved, **more)
        if kind:
            attributes.update(k_quant_type=kind, v_quant_type=kind)
        if latent is not None:
            attributes.update(kv_cache_layout="LATENT", v_head_size=latent)
            outputs = (True, True)
        self.case = Case("PagedAttention", self.inputs, outputs, free=free, **attributes)
        self.expected = self.compute(q, k, v, tables if rotary else None, offset, interleaved, given, drawn, weights if norm else None,
                                     scale, latent, more)
        if outputs == (True,):
            self.expected = self.expected[:1]

    def slot(self, b, position):
        return self.table[b, position // self.block] * self.block + position % self.block

    def compute(self, q, k, v, tables, offset, interleaved, slots, sink, weights, scale, latent, more):
        q, k, v = (x.astype(F32).reshape(len(x), -1, self.size) for x in (q, k, v))
        if weights:
            q, k = normal(q, weights[0]), normal(k, weights[1])
        if tables:
            q, k = (turned(x, tables, self.positions, offset, interleaved) for x in (q, k))
        flat = [cache.reshape(-1, self.kv_heads, self.size).copy() for cache in self.caches]
        each = None if scale is None else scale.reshape(-1, 1) if scale.size == 1 else scale[:, 0]
        store = lambda x: x.astype(self.dtype) if scale is None else np.clip(np.round(x * (1 / each)), -128, 127).astype(np.int8)
        load = lambda x: x.astype(F32) if scale is None else x.astype(F32) * each
        at = 0
        for b, (length, past) in enumerate(zip(self.lengths, self.pasts)):
            for i in range(length):
                place = self.slot(b, past + i) if slots is None else slots[at]
                if place >= 0:
                    flat[0][place], flat[1][place] = store(k[at]), store(v[at])
                at += 1
        made, at = np.zeros((len(q), self.heads * (latent or self.size)), F32), 0
        for b, (length, past) in enumerate(zip(self.lengths, self.pasts)):
            rows = [self.slot(b, p) for p in range(past + length)]
            keys = load(flat[0][rows])
            values = keys[..., :latent or self.size] if latent is not None else load(flat[1][rows])
            repeat = self.heads // self.kv_heads
            keys, values = (np.repeat(x, repeat, 1).transpose(1, 0, 2) for x in (keys, values))
            scores = q[at:at + length].transpose(1, 0, 2) @ keys.swapaxes(1, 2) * (more.get("scale") or 1 / np.sqrt(self.size))
            if cap := more.get("softcap"):
                scores = cap * np.tanh(scores / cap)
            query, key = past + np.arange(length)[:, None], np.arange(past + length)
            seen = np.full((length, past + length), True) if more.get("is_causal") == 0 else key <= query
            if window := more.get("local_window_size"):
                seen &= key > query - window
            weights_ = softmax(np.where(seen, scores, -np.inf), None if sink is None else sink.astype(F32))
            made[at:at + length] = (weights_ @ values).transpose(1, 0, 2).reshape(length, made.shape[1])
            at += length
        caches = [x.reshape(cache.shape) for x, cache in zip(flat, self.caches)]
        return [made.astype(self.dtype), *caches[:1 if latent is not None else 2]]

    def check(self, engine, tolerance=4e-3):
        ours = engine.run(self.case.typed(self.expected), self.case.feeds)
        self.compare(ours, tolerance)

    def compare(self, ours, tolerance=4e-3):
        compare(ours[:1], self.expected[:1], tolerance=tolerance)
        for mine, yours in zip(ours[1:], self.expected[1:]):
            compare([mine], [yours], steps=1, tolerance=2e-3)

    def refused(self, engine):
        with pytest.raises(RuntimeError) as caught:
            engine.run(self.case.typed(self.expected), self.case.feeds)
        return str(caught.value)


BATCHES = [([1, 1, 1], [5, 0, 12]), ([7, 3], [0, 0]), ([1, 4, 70], [9, 2, 3]), ([0, 2], [3, 1]), ([130], [5])]


@pytest.mark.parametrize("lengths, pasts", BATCHES)
@pytest.mark.parametrize("more", [
    {}, dict(packed=True), dict(rotary=8), dict(rotary=4, offset=8, interleaved=1), dict(norm=True, rotary=8), dict(sink=True),
    dict(slots=True), dict(softcap=2.0, scale=0.3), dict(local_window_size=3), dict(is_causal=0), dict(is_causal=0, local_window_size=2),
    dict(kind="PER_TENSOR"), dict(kind="PER_CHANNEL", packed=True), dict(outputs=(True,)), dict(block=1), dict(block=16, kv_heads=1)])
@pytest.mark.parametrize("free", [False, True])
def test_paged(engine, lengths, pasts, more, free):
    if more.get("rotary") and max(a + b for a, b in zip(lengths, pasts)) > 64:
        lengths, pasts = [1, 4, 50], [9, 2, 3]
    Paged(lengths, pasts, free=free, **more).check(engine)


@pytest.mark.parametrize("lengths, pasts", BATCHES[:3])
def test_latent(engine, lengths, pasts):
    """Values are the first channels of the keys; the last channels are turned."""
    Paged(lengths, pasts, kv_heads=1, size=24, latent=16, scale=0.25).check(engine)
    if max(lengths) < 60:
        Paged(lengths, pasts, kv_heads=1, size=24, latent=0, rotary=4, offset=16).check(engine)


def test_plain_runs_give_the_same(sardonyx, engine, tmp_path):
    for number, more in enumerate([{}, dict(packed=True, kind="PER_CHANNEL", sink=True), dict(slots=True, outputs=(True,))]):
        paged = Paged([1, 4, 70], [9, 2, 3], **more)
        path = tmp_path / f"case{number}.onnx"
        path.write_bytes(paged.case.typed(paged.expected).SerializeToString())
        ours = engine.run(paged.case.model, paged.case.feeds)
        plain = sardonyx.outputs(path, paged.case.feeds, tmp_path, "--reference")
        for a, b in zip(ours, plain):
            np.testing.assert_array_equal(a, b)


def test_bfloat16(sardonyx, tmp_path):
    import onnx.parser

    paged = Paged([1, 4], [9, 2], dtype=ml_dtypes.bfloat16)
    names = dict(q=0, k=1, v=2, a=3, b=4)
    model = f"""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
      g (float[5,64] q, float[5,32] k, float[5,32] v, float[{paged.blocks},4,2,16] a, float[{paged.blocks},4,2,16] b, int32[3] sums,
         int32[2] pasts, int32[{', '.join(map(str, paged.table.shape))}] t) => (float[5,64] y, float[{paged.blocks},4,2,16] c)
      {{ {' '.join(f'{n}16 = Cast <to = 16> ({n})' for n in names)}
        z, d, e = com.microsoft.PagedAttention <num_heads = 4, kv_num_heads = 2> (q16, k16, v16, a16, b16, sums, pasts, t)
        y = Cast <to = 1> (z)
        c = Cast <to = 1> (d) }}"""
    path = tmp_path / "bfloat16.onnx"
    onnx.save(onnx.parser.parse_model(model), path)
    feeds = {name: paged.inputs[i].astype(F32) for name, i in names.items()}
    y, cache = sardonyx.outputs(path, {**feeds, "sums": paged.inputs[5], "pasts": paged.inputs[6], "t": paged.table}, tmp_path)
    compare([y], [paged.expected[0].astype(F32)], tolerance=2e-2)
    np.testing.assert_array_equal(cache, paged.expected[1].astype(F32))


@pytest.mark.parametrize("length, past", [(1, 11), (6, 3)])
def test_one_sequence_is_grouped_query_attention(engine, length, past):
    paged = Paged([2, length], [4, past])
    rows = [paged.slot(1, p) for p in range(past)]
    pasts = [cache.reshape(-1, 2, 16)[rows].transpose(1, 0, 2)[None] for cache in paged.caches]
    q, k, v = (x[None, 2:] for x in paged.inputs[:3])
    grouped = Case("GroupQueryAttention", [q, k, v, *pasts, i32(past + length - 1), i32(past + length)], (True, True, True),
                   num_heads=4, kv_num_heads=2).expected()
    ours = engine.run(paged.case.typed(paged.expected), paged.case.feeds)
    compare([ours[0][2:]], [grouped[0][0]], tolerance=4e-3)


# --- what is wrong ---


@pytest.mark.parametrize("sums", [(1, 4, 5), (0, 6, 5), (0, 3, 4), (0, -1, 5), (0, 3, 2**31 - 1), (0, -2**31, 5)])
def test_sums_that_do_not_fit(engine, sums):
    paged = Paged([3, 2], [4, 1], free=True)
    paged.case.feeds["x5"] = i32(*sums)
    assert "cumulative_sequence_length must grow from 0 to 5" in paged.refused(engine)


@pytest.mark.parametrize("past", [-1, 10, 2**31 - 1, -2**31])
def test_pasts_beyond_the_blocks(engine, past):
    paged = Paged([3, 2], [4, 1])
    paged.case.feeds["x6"] = i32(past, 1)
    assert "past_seqlens says that sequence 0" in paged.refused(engine)


@pytest.mark.parametrize("block", [-1, 99, 2**31 - 1, -2**31])
@pytest.mark.parametrize("at", [(0, 0), (0, 1), (1, 0)])
def test_blocks_that_are_not_there(engine, block, at):
    paged = Paged([3, 2], [4, 1])
    paged.case.feeds["x7"][at] = block
    assert "block_table says that block" in paged.refused(engine)


@pytest.mark.parametrize("slot", [-2, 4 * 99, 2**31 - 1, -2**31])
def test_slots_that_are_not_there(engine, slot):
    paged = Paged([3, 2], [4, 1], slots=True)
    paged.case.feeds["x10"][1] = slot
    assert "slot_mapping must be in [-1," in paged.refused(engine)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("i, cut", [(4, 0), (4, 1), (6, 0), (7, 0), (5, 0), (1, 0)])
def test_sizes_that_do_not_fit(engine, i, cut, free):
    paged = Paged([3, 2], [4, 1], free=free)
    x = paged.case.feeds[f"x{i}"]
    paged.case.feeds[f"x{i}"] = x[:-1] if cut == 0 else x[:, :-1]
    index = [v.name for v in paged.case.model.graph.input].index(f"x{i}")
    dim = paged.case.model.graph.input[index].type.tensor_type.shape.dim[cut]
    if free:
        dim.dim_param = "other"
    else:
        dim.dim_value -= 1
    paged.refused(engine)


@pytest.mark.parametrize("more, says", [
    (dict(num_heads=3), "must be a multiple of kv_num_heads"), (dict(local_window_size=0), "local_window_size must be -1"),
    (dict(k_cache_dtype="int4"), "k_cache_dtype 'int4'"), (dict(rotary_offset=10), "half of the rotated size"),
    (dict(rotary_offset=2**62), "half of the rotated size"), (dict(rotary_offset=-8), "rotary_offset must not be negative"),
    (dict(kv_cache_layout="WIDE"), "SEPARATE or LATENT"), (dict(v_head_size=8), "v_head_size needs kv_cache_layout LATENT"),
    (dict(kv_cache_layout="LATENT"), "LATENT has no value")])
def test_attributes_that_do_not_fit(engine, more, says):
    paged = Paged([3, 2], [4, 1], rotary=4)
    paged.case = Case("PagedAttention", paged.inputs, (True,) * 3, **{**dict(num_heads=4, kv_num_heads=2, do_rotary=1), **more})
    assert says in paged.refused(engine)


@pytest.mark.parametrize("what", [np.inf, np.nan])
def test_what_one_sequence_holds_reaches_no_other(engine, what):
    paged = Paged([1, 1, 3], [9, 2, 1])
    alone = paged.expected[0][1:]
    for cache in (3, 4):
        rows = paged.case.feeds[f"x{cache}"].reshape(-1, 2, 16)
        rows[paged.slot(0, 5)] = what
    y = engine.run(paged.case.typed(paged.expected), paged.case.feeds)[0]
    compare([y[1:]], [alone], tolerance=4e-3)


def test_positions_beyond_the_tables(engine):
    paged = Paged([3, 2], [4, 1], rotary=8)
    for i in (8, 9):
        paged.case.feeds[f"x{i}"] = paged.case.feeds[f"x{i}"][:6]
        index = [v.name for v in paged.case.model.graph.input].index(f"x{i}")
        paged.case.model.graph.input[index].type.tensor_type.shape.dim[0].dim_value = 6
    assert "must be in [0, 6)" in paged.refused(engine)
