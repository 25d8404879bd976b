"""Generation whose decoders keep past and present in buffers of max_length, and are told of beams: they choose what the same
decoders choose whose states grow, and what ONNX Runtime chooses."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import run_onnxruntime
from generation_support import (FLOAT, HEADS, INT, LAYERS, POSITIONS, SIZE, VOCAB, WIDTH, Builder, Translator, cross_names, fused_gpt,
                                model_of)
from onnx import helper

OWN = {"domain": "com.microsoft"}
PAD, EOS = 0, 5
BEAM_OUTPUTS = ["sequences", "sequences_scores", "scores"]


def ints(*values):
    return np.array(values, np.int32)


def floats(*values):
    return np.array(values, np.float32)


def close(ours, theirs, tolerance=1e-4):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, np.abs(theirs[np.isfinite(theirs)]).max(initial=0)))


class Buffered(Translator):
    """Its decoder writes into buffers. `of_beams`: DecoderMaskedMultiHeadAttention, which takes beam_width and
    cache_indirection; else MultiHeadAttention."""

    def __init__(self, of_beams: bool, **more):
        super().__init__(**more)
        self.of_beams = of_beams

    def continued(self, past, cross, mask_bias):
        b = self.b
        b.random = np.random.default_rng(self.seed + 1000)
        x = b.op("Gather", b.weight(self.vocab, WIDTH), "input_ids")
        x = b.op("Add", x, b.op("Gather", b.weight(POSITIONS, WIDTH, scale=0.5), "past_sequence_length"))
        made = []
        for i in range(self.layers):
            q, k, v = b.op("Split", b.linear(b.norm(x, WIDTH), WIDTH, 3 * WIDTH), outputs=3, axis=-1)
            names = [b.name("y"), b.name("k"), b.name("v")]
            states = past[2 * i:2 * i + 2]
            how = dict(num_heads=HEADS, scale=float(1.5 / np.sqrt(SIZE)), to=names, **OWN)
            if self.of_beams:
                b.op("DecoderMaskedMultiHeadAttention", q, k, v, "", "", *states, "past_sequence_length", "beam_width",
                     "cache_indirection", past_present_share_buffer=1, **how)
            else:
                b.op("MultiHeadAttention", q, k, v, "", "", "", *states, "past_sequence_length", **how)
            made += names[1:]
            x = b.op("Add", x, b.linear(names[0], WIDTH, WIDTH))
            q = b.heads(b.linear(b.norm(x, WIDTH), WIDTH, WIDTH), HEADS, SIZE)
            seen = b.attend(q, *cross[2 * i:2 * i + 2], HEADS, SIZE, mask_bias)
            x = b.mlp(b.op("Add", x, b.linear(seen, WIDTH, WIDTH)), WIDTH)
        logits = b.op("MatMul", b.norm(x, WIDTH), b.weight(WIDTH, self.vocab, scale=self.temper / np.sqrt(WIDTH)))
        return logits, made

    def decoder(self):
        b = self.b = Builder(self.seed)
        bias = None if self.whisper else b.mask_bias("encoder_attention_mask")
        past_self, past_cross = cross_names("past", self.layers)
        logits, made = self.continued(past_self, past_cross, bias)
        names_self, _ = cross_names("present", self.layers)
        for value, name in zip([logits] + made, ["logits"] + names_self):
            b.rename(value, name)
        more = [("past_sequence_length", INT, [1])]
        if self.of_beams:
            more += [("beam_width", INT, [1]), ("cache_indirection", INT, ["N", "W", "M"])]
        inputs = ([("input_ids", INT, ["B", 1])] + self.mask_inputs() + [(n, FLOAT, ["B", HEADS, "M", SIZE]) for n in past_self] +
                  [(n, FLOAT, ["B", HEADS, "E", SIZE]) for n in past_cross] + more)
        outputs = [("logits", FLOAT, ["B", 1, self.vocab])] + [(n, FLOAT, ["B", HEADS, "M", SIZE]) for n in names_self]
        return b.graph("decoder", inputs, outputs)


def translation(translator, beams=3, most=9, batch=2, **more):
    random = np.random.default_rng(beams)
    ids = random.integers(6, VOCAB, (batch, 5)).astype(np.int32)
    ids[0, :2] = PAD
    inputs = {"input_ids": ids, "max_length": ints(most), "min_length": ints(1), "num_beams": ints(beams),
              "num_return_sequences": ints(min(beams, 2)), "length_penalty": floats(1.2)}
    return model_of("BeamSearch", inputs, BEAM_OUTPUTS, encoder=translator.encoder(), decoder=translator.decoder(), model_type=1,
                    eos_token_id=EOS, pad_token_id=PAD, decoder_start_token_id=3, **more)


@pytest.mark.parametrize("of_beams", [False, True])
@pytest.mark.parametrize("starts_decoder", [True, False])
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_encoder_and_a_decoder(engine, of_beams, starts_decoder, beams, seed):
    how = dict(seed=seed, starts_decoder=starts_decoder)
    grown = engine.run(*translation(Translator(**how), beams))
    ours = engine.run(*translation(Buffered(of_beams, **how), beams))
    np.testing.assert_array_equal(ours[0], grown[0])
    close(ours[1], grown[1]), close(ours[2], grown[2])


@pytest.mark.parametrize("of_beams", [False, True])
def test_the_same_without_a_plan(engine, sardonyx, tmp_path, of_beams):
    model, feeds = translation(Buffered(of_beams))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    plain, planned = sardonyx.outputs(path, feeds, tmp_path, "--reference"), engine.run(model, feeds)
    np.testing.assert_array_equal(plain[0], planned[0])
    close(plain[2], planned[2])


@pytest.mark.parametrize("of_beams", [False, True])
def test_whisper(engine, of_beams):
    def model(translator):
        features = np.random.default_rng(3).standard_normal((2, translator.features, 6)).astype(np.float32)
        inputs = {"input_ids": features, "max_length": ints(9), "min_length": ints(0), "num_beams": ints(3),
                  "num_return_sequences": ints(2), "length_penalty": floats(1), "repetition_penalty": None, "vocab_mask": None,
                  "prefix_vocab_mask": None, "attention_mask": None, "decoder_input_ids": np.array([[7, 8, 9], [10, 4, 6]], np.int32)}
        return model_of("BeamSearch", inputs, BEAM_OUTPUTS, encoder=translator.encoder(), decoder=translator.decoder(), model_type=2,
                        eos_token_id=EOS, pad_token_id=PAD, decoder_start_token_id=3)

    grown = engine.run(*model(Translator(whisper=True, seed=2)))
    ours = engine.run(*model(Buffered(of_beams, whisper=True, seed=2)))
    np.testing.assert_array_equal(ours[0], grown[0])
    close(ours[2], grown[2])


# --- decoders alone ---


def buffered_gpt(first: bool, seed: int = 0):
    """fused_gpt over buffers: for the first step Attention, for the others DecoderMaskedSelfAttention."""
    graph = fused_gpt(seed)
    extra = [("past_sequence_length", [1])]
    if not first:
        extra += [("beam_width", [1]), ("cache_indirection", ["N", "W", "M"])]
    graph.input.extend(helper.make_tensor_value_info(n, INT, s) for n, s in extra)
    for node in graph.node:
        if node.op_type != "Attention":
            continue
        node.attribute.append(helper.make_attribute("past_present_share_buffer", 1))
        if first:
            node.input.extend(["", "past_sequence_length"])
        else:
            node.op_type = "DecoderMaskedSelfAttention"
            for attribute in list(node.attribute):
                if attribute.name == "unidirectional":
                    node.attribute.remove(attribute)
            node.input.extend(["", "past_sequence_length", "beam_width", "cache_indirection"])
    for value in (*graph.input, *graph.output):
        if value.name.startswith(("past_", "present_")) and value.name != "past_sequence_length":
            value.type.tensor_type.shape.dim[3].dim_param = "M"
    return graph


def continuation(beams, most=9, **graphs):
    ids = np.array([[7, 8, 9], [PAD, 4, 6]], np.int32)
    inputs = {"input_ids": ids, "max_length": ints(most), "min_length": ints(0), "num_beams": ints(beams),
              "num_return_sequences": ints(min(beams, 2)), "length_penalty": floats(1)}
    return model_of("BeamSearch", inputs, BEAM_OUTPUTS, eos_token_id=EOS, pad_token_id=PAD, **graphs)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("seed", [0, 4])
def test_a_decoder_alone(engine, beams, seed):
    grown = engine.run(*continuation(beams, decoder=fused_gpt(seed)))
    ours = engine.run(*continuation(beams, init_decoder=buffered_gpt(True, seed), decoder=buffered_gpt(False, seed)))
    np.testing.assert_array_equal(ours[0], grown[0])
    close(ours[1], grown[1]), close(ours[2], grown[2])


@pytest.mark.parametrize("op", ["GreedySearch", "Sampling"])
def test_a_search_without_beams(engine, op):
    def run(**graphs):
        inputs = {"input_ids": np.array([[7, 8, 9], [PAD, 4, 6]], np.int32), "max_length": ints(9), "min_length": ints(0)}
        if op == "Sampling":
            inputs |= {n: None for n in ("repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask", "presence_mask")}
            inputs["seed"], graphs["top_p"] = ints(3), 0.9
        return engine.run(*model_of(op, inputs, ["sequences"], eos_token_id=EOS, pad_token_id=PAD, **graphs))[0]

    np.testing.assert_array_equal(run(decoder=fused_gpt(1)), run(init_decoder=buffered_gpt(True, 1), decoder=buffered_gpt(False, 1)))


def test_what_onnxruntime_chooses(engine):
    """For the decoders that these stand for: of these it has no kernel (DecoderMaskedSelfAttention) or does not move what it
    has written with the beams."""
    model, feeds = continuation(3, decoder=fused_gpt(2))
    theirs = run_onnxruntime(model, feeds)
    ours = engine.run(*continuation(3, init_decoder=buffered_gpt(True, 2), decoder=buffered_gpt(False, 2)))
    np.testing.assert_array_equal(ours[0], theirs[0])
    close(ours[1], theirs[1])
    model, feeds = translation(Translator(seed=3))
    theirs = run_onnxruntime(model, feeds)
    ours = engine.run(*translation(Buffered(True, seed=3)))
    np.testing.assert_array_equal(ours[0], theirs[0])
    close(ours[1], theirs[1])


# --- what is wrong ---


def refusal(engine, model, feeds):
    with pytest.raises(RuntimeError) as caught:
        engine.run(model, feeds)
    return str(caught.value)


def test_other_inputs_than_these(engine):
    for change, says in [
            (lambda g: (g.input.pop(), g.initializer.append(helper.make_tensor("cache_indirection", 6, [1, 1, 1], [0]))), "past_sequence_length, beam_width and cache_indirection"),
            (lambda g: g.input.append(helper.make_tensor_value_info("more", INT, [1])), "past_sequence_length, beam_width and"),
            (lambda g: g.input[-1].type.tensor_type.__setattr__("elem_type", FLOAT), "of int32")]:
        decoder = buffered_gpt(False)
        change(decoder)
        assert says in refusal(engine, *continuation(2, init_decoder=buffered_gpt(True), decoder=decoder))


@pytest.mark.parametrize("of_beams", [False, True])
def test_no_sequences(engine, of_beams):
    model, feeds = translation(Buffered(of_beams))
    feeds["input_ids"] = feeds["input_ids"][:0]
    assert [x.shape for x in engine.run(model, feeds)] == [(0, 2, 9), (0, 2), (8, 0, 3, VOCAB)]


def test_buffers_beside_states_that_grow(engine):
    assert "must have the same pasts" in refusal(engine, *continuation(2, init_decoder=fused_gpt(0), decoder=buffered_gpt(False)))


def test_buffers_of_whole_sequences(engine):
    class Whole(Buffered):
        def decoder(self):
            graph = super().decoder()
            graph.input[0].type.tensor_type.shape.dim[1].dim_param = "D"
            return graph

    assert "must declare input_ids of one token" in refusal(engine, *translation(Whole(True)))


def test_presents_that_are_not_the_buffers(engine):
    class Short(Buffered):
        def decoder(self):
            graph = super().decoder()
            name = graph.output[1].name
            node = next(n for n in graph.node if name in n.output)
            node.output[0] = "long"
            graph.initializer.extend(Builder(0).weights)
            for value, array in (("s_begin", [0]), ("s_end", [-1]), ("s_axis", [2])):
                graph.initializer.append(helper.make_tensor(value, 7, [1], array))
            graph.node.append(helper.make_node("Slice", ["long", "s_begin", "s_end", "s_axis"], [name]))
            return graph

    model, feeds = translation(Short(True))
    assert "output 1" in refusal(engine, model, feeds)
