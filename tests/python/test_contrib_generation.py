"""Operators of com.microsoft that generate sequences, against ONNX Runtime, on small models with random weights."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnx
import pytest
from conftest import INVALID_MODEL, OK, RUN_FAILED, UNSUPPORTED
from contrib_support import Case, agree, run_onnxruntime
from generation_support import LAYERS, VOCAB, Translator, fused_gpt, gpt, model_of
from onnx import TensorProto, helper, numpy_helper

PAD = 1
GPTS = [gpt(seed, temper=temper) for seed, temper in enumerate((1.0, 1.5, 2.5, 4.0))]


def ints(*values):
    return np.array(values, np.int32)


def floats(*values):
    return np.array(values, np.float32)


def maybe(random, share: float, value):
    return value if random.random() < share else None


def prompt(random, batch: int, length: int) -> np.ndarray:
    """Some are padded on the left."""
    ids = random.integers(2, VOCAB, (batch, length)).astype(np.int32)
    if random.random() < 0.5:
        for row in ids:
            row[: random.integers(0, length)] = PAD
    return ids


def attention_mask(random, ids):
    mask = (ids != PAD).astype(np.int32)
    if random.random() < 0.3:
        mask[:, 0] = 0
    return mask


def processors(random, batch: int) -> dict:
    return {
        "repetition_penalty": maybe(random, 0.7, floats(random.choice([1.0, 1.3, 0.8, 2.0]))),
        "vocab_mask": maybe(random, 0.3, (random.random(VOCAB) < 0.8).astype(np.int32)),
        "prefix_vocab_mask": maybe(random, 0.3, (random.random((batch, VOCAB)) < 0.5).astype(np.int32)),
    }


def node_attributes(random) -> dict:
    ngram = maybe(random, 0.4, int(random.integers(1, 4)))
    return {"eos_token_id": int(random.integers(0, VOCAB)), "pad_token_id": PAD,
            **({"no_repeat_ngram_size": ngram} if ngram else {})}


def same_tokens(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Up to where all have ended: ONNX Runtime leaves what follows unset, here it is padding."""
    length = int((ours != PAD).any(axis=0).nonzero()[0].max(initial=-1)) + 1
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours[:, :length], theirs[:, :length])
    assert (ours[:, length:] == PAD).all()


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)


# --- greedy ---


def greedy(random, **more):
    batch, length = int(random.integers(1, 4)), int(random.integers(1, 6))
    most = length + int(random.integers(1, 12))
    ids = prompt(random, batch, length)
    inputs = {"input_ids": ids, "max_length": ints(most),
              "min_length": maybe(random, 0.5, ints(random.integers(0, most))), **processors(random, batch),
              "attention_mask": maybe(random, 0.3, attention_mask(random, ids))}
    return model_of("GreedySearch", inputs, ["sequences"], decoder=GPTS[int(random.integers(4))],
                    **node_attributes(random), **more)


@pytest.mark.parametrize("seed", range(40))
def test_greedy(engine, seed):
    model, feeds = greedy(np.random.default_rng(seed))
    [theirs], [ours] = run_onnxruntime(model, feeds), engine.run(model, feeds)
    same_tokens(ours, theirs)


def test_a_sequence_that_ended_is_padded(engine):
    """All end at once, one goes on, none ends."""
    ids = np.array([[7, 8], [9, 10], [11, 12]], np.int32)
    make = lambda eos: model_of("GreedySearch", {"input_ids": ids, "max_length": ints(9)}, ["sequences"],
                                decoder=GPTS[1], eos_token_id=eos, pad_token_id=PAD)
    free = engine.run(*make(VOCAB + 5))[0]
    assert free.shape == (3, 9) and (free[:, 2:] != PAD).any(axis=1).all()
    for eos in set(free[:, 2:].ravel().tolist()) - {PAD}:
        ended = engine.run(*make(eos))[0]
        for row, before in zip(ended, free):
            first = np.flatnonzero(before[2:] == eos)
            stop = 2 + first[0] if first.size else 9
            np.testing.assert_array_equal(row[:stop], before[:stop])
            assert (row[stop:] == PAD).all()


# --- beams ---


def compare_beams(ours, theirs, batch: int) -> None:
    np.testing.assert_array_equal(ours[0], theirs[0])
    close(ours[1], theirs[1])
    # Scores of sequences that are done mean nothing: all steps can be told of one sequence alone, of which
    # those that did not run are zeros here and unset there.
    ran = np.abs(ours[2]).max(axis=(1, 2, 3)) > 0 if batch == 1 else [0]
    assert ours[2].shape == theirs[2].shape
    close(ours[2][ran], theirs[2][ran])


def beams_there(model, feeds, batch: int, run=run_onnxruntime) -> list[np.ndarray]:
    """Sequence after sequence: whether one of a batch is done depends on the scores of others there."""
    of_batch = {"input_ids", "prefix_vocab_mask", "attention_mask", "decoder_input_ids"}
    made = [run(model, {n: v[i:i + 1] if n in of_batch else v for n, v in feeds.items()}) for i in range(batch)]
    return [np.concatenate([m[k] for m in made], axis=1 if k == 2 else 0) for k in range(len(made[0]))]


BEAM_OUTPUTS = ["sequences", "sequences_scores", "scores"]


def beam_inputs(random, most: int) -> dict:
    beams = int(random.integers(1, 6))
    return {"max_length": ints(most), "min_length": ints(random.integers(0, most)), "num_beams": ints(beams),
            "num_return_sequences": ints(random.integers(1, beams + 1)),
            "length_penalty": floats(random.choice([0.5, 1, 2, 0]))}


@pytest.mark.parametrize("seed", range(60))
def test_beams(engine, seed):
    random = np.random.default_rng(seed)
    batch, length = int(random.integers(1, 4)), int(random.integers(1, 6))
    ids = prompt(random, batch, length)
    inputs = {"input_ids": ids, **beam_inputs(random, length + int(random.integers(1, 12))), **processors(random, batch),
              "attention_mask": maybe(random, 0.3, attention_mask(random, ids))}
    model, feeds = model_of("BeamSearch", inputs, BEAM_OUTPUTS, decoder=GPTS[int(random.integers(4))],
                            early_stopping=int(random.integers(0, 2)), **node_attributes(random))
    compare_beams(engine.run(model, feeds), beams_there(model, feeds, batch), batch)


@pytest.mark.parametrize("starts_decoder", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_beams_of_encoder_and_decoder(engine, seed, starts_decoder):
    random = np.random.default_rng(seed)
    model_parts = Translator(seed % 5, starts_decoder=starts_decoder, hidden_state=starts_decoder and seed % 3 == 0)
    batch, length = int(random.integers(1, 4)), int(random.integers(2, 6))
    ids = prompt(random, batch, length)
    ids[0, -1] = PAD  # what is no padding on the left counts
    inputs = {"input_ids": ids, **beam_inputs(random, int(random.integers(3, 14))), **processors(random, batch),
              "attention_mask": maybe(random, 0.3, attention_mask(random, ids))}
    model, feeds = model_of("BeamSearch", inputs, BEAM_OUTPUTS, encoder=model_parts.encoder(),
                            decoder=model_parts.decoder(), model_type=1, decoder_start_token_id=3,
                            early_stopping=int(random.integers(0, 2)), **node_attributes(random))
    compare_beams(engine.run(model, feeds), beams_there(model, feeds, batch), batch)


def run_in_new_process(model, feeds) -> list[np.ndarray]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run_onnxruntime, model, feeds).result()


def whisper_there(model, feeds, ours, batch: int, tries: int = 8) -> list[np.ndarray]:
    """ONNX Runtime reads memory that it has not set now and then in this form: the same model gives other sequences in
    another run. Equal ones have to come, of each sequence of the batch."""
    items = iter(range(batch))

    def run(model, feeds):
        item = next(items)
        for attempt in range(tries):
            theirs = run_onnxruntime(model, feeds) if attempt < tries - 3 else run_in_new_process(model, feeds)
            if np.array_equal(theirs[0][0], ours[0][item]) and np.allclose(theirs[1][0], ours[1][item], atol=1e-4):
                break
        return theirs

    return beams_there(model, feeds, batch, run)


@pytest.mark.parametrize("op", ["BeamSearch", "WhisperBeamSearch"])
@pytest.mark.parametrize("seed", range(20))
def test_beams_of_whisper(engine, seed, op):
    random = np.random.default_rng(seed)
    parts = Translator(seed % 5, whisper=True, hidden_state=seed % 3 == 0)
    batch, given = int(random.integers(1, 4)), int(random.integers(1, 4))
    features = random.standard_normal((batch, parts.features, int(random.integers(2, 6)))).astype(np.float32)
    inputs = {"input_ids": features, **beam_inputs(random, given + int(random.integers(2, 10))),
              **processors(random, batch), "attention_mask": None,
              "decoder_input_ids": maybe(random, 0.7, random.integers(2, VOCAB, (batch, given)).astype(np.int32))}
    if op == "WhisperBeamSearch" and seed % 2:
        inputs |= {"logits_processor": None, "cross_qk_layer_head": None, "extra_decoding_ids": None,
                   "temperature": floats(random.choice([0.5, 1.7]))}
        inputs["vocab_mask"] = inputs["prefix_vocab_mask"] = None
    model, feeds = model_of(op, inputs, BEAM_OUTPUTS, encoder=parts.encoder(), decoder=parts.decoder(), model_type=2,
                            decoder_start_token_id=3, early_stopping=int(random.integers(0, 2)),
                            **node_attributes(random))
    ours = engine.run(model, feeds)
    compare_beams(ours, whisper_there(model, feeds, ours, batch), batch)


# Whisper's tokens in a vocabulary of 37: text up to 19, the end, tasks, timestamps from 26 on.
TOKENS = dict(eos_token_id=20, decoder_start_token_id=21, translate_token_id=22, transcribe_token_id=23,
              start_of_lm_token_id=24, no_timestamps_token_id=25, beginning_timestamp_token_id=26)


def whisper_model(seed, inputs=(), outputs=BEAM_OUTPUTS, batch=2, beams=3, most=14, **more):
    parts = Translator(seed, whisper=True, temper=1.0)
    features = np.random.default_rng(seed).standard_normal((batch, parts.features, 4)).astype(np.float32)
    feeds = {"input_ids": features, "max_length": ints(most), "min_length": ints(0), "num_beams": ints(beams),
             "num_return_sequences": ints(beams), "length_penalty": floats(1), "repetition_penalty": None,
             "vocab_mask": None, "prefix_vocab_mask": None, "attention_mask": None, "decoder_input_ids": None,
             "logits_processor": None, "cross_qk_layer_head": None, "extra_decoding_ids": None, **dict(inputs)}
    return model_of("WhisperBeamSearch", feeds, outputs, encoder=parts.encoder(), decoder=parts.decoder(),
                    pad_token_id=PAD, **{**TOKENS, **more})


@pytest.mark.parametrize("seed", range(10))
def test_timestamps(engine, seed):
    start = np.array([[21, 23]] * 2, np.int32)
    model, feeds = whisper_model(seed, {"decoder_input_ids": start, "logits_processor": ints(1)})
    ours = engine.run(model, feeds)
    compare_beams(ours, whisper_there(model, feeds, ours, 2), 2)
    for row in ours[0].reshape(-1, 14)[:, 2:]:
        assert not set(row.tolist()) & {22, 24, 25}
        stamps = [int(t) for t in row if t >= 26]
        assert stamps == sorted(stamps)


def test_probability_of_no_speech(engine):
    """Of the first logits, which are the scores of the first step without a search."""
    model, feeds = whisper_model(1, outputs=["sequences", "", "scores", "", "no_speech"], beams=1, no_speech_token_id=4)
    _, scores, silent = engine.run(model, feeds)
    assert silent.shape == (2,)
    close(silent, np.exp(scores[0, :, 0, 4]))


def test_extra_decoding_ids_come_first(engine):
    model, feeds = whisper_model(2, {"extra_decoding_ids": np.array([[5, 9, 6]], np.int32)})
    sequences = engine.run(model, feeds)[0]
    np.testing.assert_array_equal(sequences[:, 0, 1:4], [[5, 9, 6]] * 2)


# --- sampling ---


def sampling(seed, presence=None, length=10, run_seed=7, **attributes):
    random = np.random.default_rng(seed)
    batch = int(random.integers(1, 4))
    ids = prompt(random, batch, 4)
    inputs = {"input_ids": ids, "max_length": ints(length), "min_length": ints(0), **processors(random, batch),
              "attention_mask": None, "presence_mask": presence,
              "seed": None if run_seed is None else ints(run_seed)}
    return model_of("Sampling", inputs, ["sequences", "filtered_logits"], decoder=GPTS[seed % 4],
                    **{**node_attributes(random), **attributes})


@pytest.mark.parametrize("custom", [0, 1])
@pytest.mark.parametrize("seed", range(15))
def test_sampling_where_one_token_is_left(engine, seed, custom):
    model, feeds = sampling(seed, custom=custom, top_p=1e-4, min_tokens_to_keep=1, temperature=[0.5, 1.0, 2.0][seed % 3])
    ours = engine.run(model, feeds)[0]
    same_tokens(ours, run_onnxruntime(model, feeds)[0])


def kept_tokens(logits, top_p: float) -> np.ndarray:
    """The least set of the likeliest that weighs more than top_p."""
    order = np.argsort(-logits, axis=-1, kind="stable")
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p = np.take_along_axis(p / p.sum(-1, keepdims=True), order, -1).cumsum(-1)
    keep = np.concatenate([np.ones_like(p[:, :1], bool), p[:, :-1] <= top_p], -1)
    kept = np.zeros_like(keep)
    np.put_along_axis(kept, order, keep, -1)
    return kept


@pytest.mark.parametrize("custom", [0, 1])
@pytest.mark.parametrize("top_p", [0.3, 0.7, 0.95])
def test_filtered_logits(engine, custom, top_p):
    plain = engine.run(*sampling(3, length=5, top_p=2.0, custom=1))[1]
    filtered = engine.run(*sampling(3, length=5, top_p=top_p, custom=custom, filter_value=-77.0))[1]
    kept = kept_tokens(plain.astype(np.float64), top_p)
    assert 0 < kept.sum() < kept.size
    np.testing.assert_array_equal(filtered, np.where(kept, plain, np.float32(-77)))


def test_presence_and_temperature(engine):
    """Each token by its own mask; ONNX Runtime takes all masks from the first score."""
    plain = engine.run(*sampling(3, length=5, top_p=2.0, custom=1))[1].astype(np.float64)
    mask = (np.random.default_rng(1).random(plain.shape) < 0.4).astype(np.int32)
    ours = engine.run(*sampling(3, mask, length=5, top_p=2.0, custom=1, presence_penalty=1.5, temperature=0.5))[1]
    seen = plain > -1e30  # no mask of the vocabulary
    close(ours[seen], (plain / 0.5 - 1.5 * mask)[seen])
    assert seen.any() and (ours[~seen] < -1e30).all()


def test_samples_follow_the_probabilities(engine):
    batch = 4000
    ids = np.full((batch, 1), 8, np.int32)
    model, feeds = model_of("Sampling", {"input_ids": ids, "max_length": ints(2), "min_length": None,
                                         "repetition_penalty": None, "vocab_mask": None, "prefix_vocab_mask": None,
                                         "attention_mask": None, "presence_mask": None, "seed": ints(3)},
                            ["sequences", "filtered_logits"], decoder=GPTS[1], top_p=0.8, custom=1,
                            eos_token_id=VOCAB + 1, pad_token_id=PAD)
    sequences, logits = engine.run(model, feeds)
    p = np.exp(logits[0].astype(np.float64) - logits[0].max())
    p /= p.sum()
    counts = np.bincount(sequences[:, 1], minlength=VOCAB)
    assert counts[p < 1e-9].sum() == 0
    deviation = np.sqrt(batch * p * (1 - p)) + 1
    assert (np.abs(counts - batch * p) < 5 * deviation).all()


def test_a_seed_repeats_itself(engine):
    run = lambda seed: engine.run(*sampling(2, length=16, run_seed=seed, top_p=1.0, temperature=2.0, custom=1))[0].tolist()
    assert run(5) == run(5)
    assert len({str(run(seed)) for seed in range(6)}) > 1
    assert run(None) == run(None)  # sessions of one seed


# --- how the graphs are run ---


@pytest.mark.parametrize("seed", range(8))
def test_a_decoder_of_fused_operators(engine, seed):
    random = np.random.default_rng(seed)
    batch, length = int(random.integers(1, 4)), int(random.integers(1, 6))
    inputs = {"input_ids": prompt(random, batch, length), **beam_inputs(random, length + 8), **processors(random, batch)}
    model, feeds = model_of("BeamSearch", inputs, BEAM_OUTPUTS, decoder=fused_gpt(seed), **node_attributes(random))
    compare_beams(engine.run(model, feeds), beams_there(model, feeds, batch), batch)


@pytest.mark.parametrize("starts_decoder", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_decoder_that_takes_whole_sequences(engine, seed, starts_decoder):
    """Its input_ids do not say that there is one token a row."""
    random = np.random.default_rng(seed)
    parts = Translator(seed, starts_decoder=starts_decoder, whole_sequence=True)
    inputs = {"input_ids": prompt(random, 2, 4), **beam_inputs(random, 8), **processors(random, 2)}
    model, feeds = model_of("BeamSearch", inputs, BEAM_OUTPUTS, encoder=parts.encoder(), decoder=parts.decoder(),
                            model_type=1, decoder_start_token_id=3, **node_attributes(random))
    compare_beams(engine.run(model, feeds), beams_there(model, feeds, 2), 2)


def with_outer_value(rows_wanted: bool):
    """The decoder adds a value of the outer graph to its logits: `[vocab]` or `[batch * beams, 1, vocab]`."""
    shape = (6, 1, VOCAB) if rows_wanted else (VOCAB,)
    extra = np.random.default_rng(5).standard_normal(shape).astype(np.float32) * 2
    ids = np.array([[7, 8, 9], [3, 4, 5]], np.int32)
    model, feeds = model_of("BeamSearch", {"input_ids": ids, "max_length": ints(9), "min_length": ints(0),
                                           "num_beams": ints(3), "num_return_sequences": ints(2),
                                           "length_penalty": floats(1)},
                            BEAM_OUTPUTS, decoder=gpt(1, extra="twice"), eos_token_id=5, pad_token_id=PAD)
    model.graph.input.append(helper.make_tensor_value_info("extra", TensorProto.FLOAT, list(shape)))
    model.graph.node.insert(0, helper.make_node("Add", ["extra", "extra"], ["twice"]))
    return model, {**feeds, "extra": extra}


@pytest.mark.parametrize("rows_wanted", [False, True])
def test_values_of_the_outer_graph(engine, rows_wanted):
    model, feeds = with_outer_value(rows_wanted)
    compare_beams(engine.run(model, feeds), run_onnxruntime(model, feeds), 2)


def plain_models():
    random = np.random.default_rng(3)
    yield greedy(random)
    yield with_outer_value(False)
    yield sampling(1, top_p=0.9, custom=1)
    yield whisper_model(0)


@pytest.mark.parametrize("index", range(4))
def test_planned_and_plain_runs_agree(engine, sardonyx, tmp_path, index):
    model, feeds = list(plain_models())[index]
    planned = engine.run(model, feeds)
    onnx.save(model, tmp_path / "m.onnx")
    plain = sardonyx.outputs(tmp_path / "m.onnx", feeds, tmp_path, "--reference")
    np.testing.assert_array_equal(planned[0], plain[0])
    for ours, reference in zip(planned[1:], plain[1:]):
        close(ours, reference)


def test_lengths_that_are_constants(engine):
    """Then the shapes of outputs are known before a run; the batch still varies."""
    ids = np.array([[7, 8, 9], [3, 4, 5]], np.int32)
    inputs = {"input_ids": ids, "max_length": ints(8), "min_length": ints(0), "num_beams": ints(3),
              "num_return_sequences": ints(2), "length_penalty": floats(1)}
    model, feeds = model_of("BeamSearch", inputs, BEAM_OUTPUTS, constant=set(inputs) - {"input_ids"}, decoder=GPTS[2],
                            eos_token_id=5, pad_token_id=PAD)
    for batch in (1, 2):
        some = {"input_ids": ids[:batch]}
        compare_beams(engine.run(model, some), run_onnxruntime(model, some), batch)


def test_a_decoder_for_the_first_call(engine):
    model, feeds = greedy(np.random.default_rng(4), init_decoder=GPTS[0])
    decoder = next(a for a in model.graph.node[0].attribute if a.name == "decoder")
    decoder.g.CopyFrom(GPTS[0])
    same, _ = greedy(np.random.default_rng(4))
    next(a for a in same.graph.node[0].attribute if a.name == "decoder").g.CopyFrom(GPTS[0])
    np.testing.assert_array_equal(engine.run(model, feeds)[0], engine.run(same, feeds)[0])


def test_a_decoder_with_fixed_rows(engine):
    ids = np.array([[7, 8, 9], [3, 4, 5]], np.int32)
    inputs = {"input_ids": ids, "max_length": ints(8), "min_length": ints(0), "num_beams": ints(3),
              "num_return_sequences": ints(2), "length_penalty": floats(1)}
    make = lambda rows: model_of("BeamSearch", inputs, BEAM_OUTPUTS, decoder=gpt(2, rows=rows), eos_token_id=5,
                                 pad_token_id=PAD)
    free, fixed = engine.run(*make("B")), engine.run(*make(6))
    np.testing.assert_array_equal(free[0], fixed[0])
    close(free[1], fixed[1])


def test_an_empty_batch(engine):
    ids = np.zeros((0, 3), np.int32)
    assert engine.run(*model_of("GreedySearch", {"input_ids": ids, "max_length": ints(8)}, ["sequences"],
                                decoder=GPTS[0], eos_token_id=5, pad_token_id=PAD))[0].shape == (0, 8)
    inputs = {"input_ids": ids, "max_length": ints(8), "min_length": ints(0), "num_beams": ints(3),
              "num_return_sequences": ints(2)}
    made = engine.run(*model_of("BeamSearch", inputs, BEAM_OUTPUTS, decoder=GPTS[0], eos_token_id=5, pad_token_id=PAD))
    assert [m.shape for m in made] == [(0, 2, 8), (0, 2), (5, 0, 3, VOCAB)]


def in_half(graph: onnx.GraphProto) -> onnx.GraphProto:
    """The same graph with past, present and logits of float16."""
    half = onnx.GraphProto()
    half.CopyFrom(graph)
    del half.node[:]
    for info in list(half.input)[3:] + list(half.output):
        info.type.tensor_type.elem_type = TensorProto.FLOAT16
    taken, given = [i.name for i in half.input[3:]], [o.name for o in half.output]
    half.node.extend(helper.make_node("Cast", [n], [n + "_wide"], to=TensorProto.FLOAT) for n in taken)
    for node in graph.node:
        copy = half.node.add()
        copy.CopyFrom(node)
        copy.input[:] = [n + "_wide" if n in taken else n for n in node.input]
        copy.output[:] = [n + "_wide" if n in given else n for n in node.output]
    half.node.extend(helper.make_node("Cast", [n + "_wide"], [n], to=TensorProto.FLOAT16) for n in given)
    return half


def test_states_of_float16(engine):
    ids = np.array([[7, 8, 9], [3, 4, 5]], np.int32)
    inputs = {"input_ids": ids, "max_length": ints(8), "min_length": ints(0), "num_beams": ints(3),
              "num_return_sequences": ints(1), "length_penalty": floats(1)}
    make = lambda graph: model_of("BeamSearch", inputs, BEAM_OUTPUTS[:2], decoder=graph, eos_token_id=5, pad_token_id=PAD)
    wide, half = engine.run(*make(GPTS[3])), engine.run(*make(in_half(GPTS[3])))
    np.testing.assert_array_equal(wide[0], half[0])
    np.testing.assert_allclose(wide[1], half[1], atol=2e-2)


# --- what is refused ---


def broken(change, op="GreedySearch", **inputs):
    given = {"input_ids": np.array([[7, 8, 9]], np.int32), "max_length": ints(8), "min_length": ints(0)}
    if op == "BeamSearch":
        given |= {"num_beams": ints(2), "num_return_sequences": ints(1)}
    given |= inputs
    model, feeds = model_of(op, given, ["sequences"], decoder=GPTS[0], eos_token_id=5, pad_token_id=PAD)
    change(model.graph.node[0], next(a.g for a in model.graph.node[0].attribute if a.name == "decoder"))
    return model, feeds


def rename_input(index, name):
    def change(_, graph):
        old = graph.input[index].name
        graph.input[index].name = name
        for node in graph.node:
            node.input[:] = [name if n == old else n for n in node.input]
    return change


def rename_logits(_, graph):
    graph.output[0].name = graph.node[-1].output[0] = "scores"
    assert graph.node[-1].op_type == "Identity"


def set_attribute(name, value):
    return lambda node, _: node.attribute.append(helper.make_attribute(name, value))


def without_attribute(name):
    def change(node, _):
        node.attribute.remove(next(a for a in node.attribute if a.name == name))
    return change


WRONG_MODELS = [
    (rename_input(1, "positions"), INVALID_MODEL, ["'position_ids'", "'positions'"]),
    (lambda _, g: g.input.pop(), INVALID_MODEL, ["past"]),
    (lambda _, g: setattr(g.input[0].type.tensor_type, "elem_type", TensorProto.INT64), INVALID_MODEL,
     ["'input_ids'", "int32", "int64"]),
    (lambda _, g: g.input[3].type.tensor_type.shape.dim[2].Clear(), INVALID_MODEL, ["'past_0'", "heads"]),
    (lambda _, g: g.input[3].type.tensor_type.shape.dim.pop(), INVALID_MODEL, ["'past_0'", "5", "4"]),
    (rename_logits, INVALID_MODEL, ["'logits'", "'scores'"]),
    (without_attribute("decoder"), INVALID_MODEL, ["decoder"]),
    (without_attribute("eos_token_id"), INVALID_MODEL, ["eos_token_id"]),
    (set_attribute("model_type", 3), INVALID_MODEL, ["model_type", "3"]),
    (set_attribute("model_type", 1), UNSUPPORTED, ["model_type"]),
]


@pytest.mark.parametrize("index", range(len(WRONG_MODELS)))
def test_wrong_graphs_and_attributes(sardonyx, tmp_path, index):
    change, code, mentions = WRONG_MODELS[index]
    model, feeds = broken(change)
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", **feeds)
    sardonyx.fails(code, "run", tmp_path / "m.onnx", "--inputs", tmp_path / "in.npz", mentions=mentions)


nothing = lambda *_: None
WRONG_INPUTS = [
    ("GreedySearch", nothing, {"max_length": ints(3)}, ["max_length", "3"]),
    ("GreedySearch", nothing, {"max_length": ints(2**31 - 1)}, ["max_length", "4096"]),
    ("GreedySearch", nothing, {"max_length": ints(8, 9)}, ["max_length", "[2]"]),
    ("GreedySearch", nothing, {"min_length": ints(8)}, ["min_length"]),
    ("GreedySearch", nothing, {"input_ids": np.zeros((2, 0), np.int32)}, ["input_ids"]),
    ("GreedySearch", nothing, {"repetition_penalty": floats(0)}, ["repetition_penalty"]),
    ("GreedySearch", nothing, {"repetition_penalty": floats(1), "vocab_mask": np.ones(5, np.int32)}, ["37", "5"]),
    ("GreedySearch", nothing, {"repetition_penalty": floats(1), "vocab_mask": None,
                               "prefix_vocab_mask": np.ones((2, VOCAB), np.int32)}, ["prefix_vocab_mask", "[2,37]"]),
    ("GreedySearch", set_attribute("vocab_size", 40), {}, ["logits", "40", "37"]),
    ("BeamSearch", nothing, {"num_beams": ints(0)}, ["num_beams"]),
    ("BeamSearch", nothing, {"num_beams": ints(129)}, ["num_beams", "128"]),
    ("BeamSearch", nothing, {"num_return_sequences": ints(3)}, ["num_return_sequences"]),
    ("BeamSearch", set_attribute("vocab_size", 1), {}, ["candidates"]),
]


@pytest.mark.parametrize("index", range(len(WRONG_INPUTS)))
def test_wrong_inputs(sardonyx, tmp_path, index):
    op, change, inputs, mentions = WRONG_INPUTS[index]
    model, feeds = broken(change, op, **inputs)
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", **feeds)
    for how in ([], ["--reference"]):
        sardonyx.fails(RUN_FAILED, "run", tmp_path / "m.onnx", "--inputs", tmp_path / "in.npz", *how, mentions=mentions)


def test_a_graph_that_gives_other_shapes(sardonyx, tmp_path):
    """The present has a head too many, the logits lack a position."""
    def too_many_heads(_, graph):
        for node in graph.node:
            node.output[:] = ["short" if n == "present_1" else n for n in node.output]
        graph.node.append(helper.make_node("Concat", ["short", "short"], ["present_1"], axis=2))

    def no_position(_, graph):
        for node in graph.node:
            node.output[:] = ["long" if n == "logits" else n for n in node.output]
        graph.initializer.append(numpy_helper.from_array(np.array([0], np.int64), "zero"))
        graph.node.append(helper.make_node("Slice", ["long", "zero", "zero", "one_axis"], ["logits"]))
        graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "one_axis"))

    for change, name in ((too_many_heads, "present_1"), (no_position, "logits")):
        model, feeds = broken(change)
        onnx.save(model, tmp_path / "m.onnx")
        np.savez(tmp_path / "in.npz", **feeds)
        sardonyx.fails(RUN_FAILED, "run", tmp_path / "m.onnx", "--inputs", tmp_path / "in.npz", mentions=[name])


def test_buffers_of_past_and_present(engine):
    """The fourth form of a decoder: states of max_length, into which it writes at past_sequence_length."""
    graph = onnx.GraphProto()
    graph.CopyFrom(GPTS[1])
    graph.input.append(helper.make_tensor_value_info("past_sequence_length", TensorProto.INT32, [1]))
    zero, axis = (numpy_helper.from_array(np.array([v], np.int64), n) for v, n in ((0, "b_zero"), (3, "b_axis")))
    graph.initializer.extend([zero, axis])
    before = [helper.make_node("Cast", ["past_sequence_length"], ["b_length"], to=TensorProto.INT64)]
    after = []
    for i in range(LAYERS):
        before.append(helper.make_node("Slice", [f"past_{i}", "b_zero", "b_length", "b_axis"], [f"used_{i}"]))
        # What was not written stays as it is.
        after += [helper.make_node("Shape", [f"short_{i}"], [f"b_have_{i}"], start=3, end=4),
                  helper.make_node("Shape", [f"past_{i}"], [f"b_size_{i}"], start=3, end=4),
                  helper.make_node("Slice", [f"past_{i}", f"b_have_{i}", f"b_size_{i}", "b_axis"], [f"rest_{i}"]),
                  helper.make_node("Concat", [f"short_{i}", f"rest_{i}"], [f"present_{i}"], axis=3)]
    nodes = list(graph.node)
    for node in nodes:
        node.input[:] = [n.replace("past_", "used_") if n.startswith("past_") else n for n in node.input]
        node.output[:] = [n.replace("present_", "short_") for n in node.output]
    del graph.node[:]
    graph.node.extend(before + nodes + after)
    ids = np.array([[7, 8, 9], [PAD, 4, 5]], np.int32)
    inputs = {"input_ids": ids, "max_length": ints(9), "min_length": ints(0), "num_beams": ints(3),
              "num_return_sequences": ints(2), "length_penalty": floats(1)}
    make = lambda g: model_of("BeamSearch", inputs, BEAM_OUTPUTS, decoder=g, eos_token_id=5, pad_token_id=PAD)
    grown, buffered = engine.run(*make(GPTS[1])), engine.run(*make(graph))
    np.testing.assert_array_equal(grown[0], buffered[0])
    close(grown[2], buffered[2])


@pytest.mark.parametrize("command", ["check", "info", "infer", "explain", "show"])
def test_other_commands_take_such_models(sardonyx, tmp_path, command):
    for index, (model, _) in enumerate(plain_models()):
        onnx.save(model, tmp_path / f"{index}.onnx")
        text = sardonyx(command, tmp_path / f"{index}.onnx", expect=OK).stdout
        if command != "check":
            assert model.graph.node[-1].op_type in text or command == "infer"


# --- n-grams ---


@pytest.mark.parametrize("n", [1, 2, 3, 9])
@pytest.mark.parametrize("length", [0, 1, 8, 30])
def test_ngram_repeat_block(engine, n, length):
    random = np.random.default_rng(length)
    ids = random.integers(0, 4, (3, length))
    scores = random.standard_normal((3, 6)).astype(np.float32)
    for free in (False, True):
        agree(engine, Case("NGramRepeatBlock", [ids, scores], ngram_size=n, free=free))


@pytest.mark.parametrize("token", [-1, 6])
def test_ngram_repeat_block_refuses_what_is_no_token(engine, token):
    scores = np.zeros((1, 6), np.float32)
    case = Case("NGramRepeatBlock", [np.array([[token, 1]]), scores], ngram_size=1)
    with pytest.raises(RuntimeError, match=r"input_ids.*\[0, 6\).*" + str(token)):
        engine.run(case.typed([scores]), case.feeds)


@pytest.mark.parametrize("seed", range(40))
def test_bifurcation_detector(engine, seed):
    random = np.random.default_rng(seed)
    letters = int(random.integers(2, 5))
    source = random.integers(0, letters, int(random.integers(0, 12)))
    current = random.integers(0, letters, int(random.integers(0, 6)))
    at = int(random.integers(0, len(source) + 1))
    predicted = np.concatenate([source[at:], [int(random.integers(0, letters))]]).astype(np.int64)
    if random.random() < 0.5:
        predicted[random.integers(0, len(predicted))] = 0
    least = int(random.integers(1, 3))
    agree(engine, Case("BifurcationDetector", [source, current, np.array([at]), maybe(random, 0.7, predicted)],
                       (True, True), min_ngram_size=least, max_ngram_size=least + int(random.integers(0, 4)),
                       free=seed % 2 == 0))


def test_bifurcation_detector_refuses_other_lengths(engine):
    source, current = np.arange(4), np.arange(2)
    for at, predicted, message in ((5, np.arange(1), "prev_suffix_match_idx"), (-1, np.arange(6), "prev_suffix_match_idx"),
                                   (1, np.arange(3), "pred_tokens")):
        case = Case("BifurcationDetector", [source, current, np.array([at]), predicted], (True, True))
        with pytest.raises(RuntimeError, match=message):
            engine.run(case.typed([current, np.array([at])]), case.feeds)
