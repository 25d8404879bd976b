"""Checks of onnxruntime-genai: genai.py SCRATCH."""

from __future__ import annotations

import json
import pathlib
import sys

import decoder
import numpy as np
import onnxruntime_genai as og
from checks import check, fails

PROMPT = [5, 17, 33, 8, 64, 90, 3]


def generator(model: og.Model, tokens: list, **options) -> og.Generator:
    params = og.GeneratorParams(model)
    params.set_search_options(**options)
    one = og.Generator(model, params)
    one.append_tokens(np.array(tokens, np.int32))
    return one


def run(one: og.Generator, sequences: int = 1) -> list[list[int]]:
    while not one.is_done():
        one.generate_next_token()
    return [list(map(int, one.get_sequence(i))) for i in range(sequences)]


def numbers(value: np.ndarray) -> dict:
    return {
        "shape": list(value.shape),
        "first": [float(one) for one in value.reshape(-1)[:24]],
        "sum": float(np.abs(value.astype(np.float64)).sum()),
    }


def main() -> None:
    for folder in decoder.write(pathlib.Path(sys.argv[1])):
        name = folder.name
        loaded: list[og.Model] = []
        check(f"{name}: opened", lambda: loaded.append(og.Model(str(folder))))
        if not loaded:
            continue
        model = loaded[0]
        check(f"{name}: 40 tokens, greedily", lambda: run(generator(model, PROMPT, max_length=47)))
        check(f"{name}: a batch of three", lambda: run(generator(model, [PROMPT, PROMPT[::-1], [9] * 7], max_length=30, batch_size=3), 3))
        check(
            f"{name}: sampled with a seed",
            lambda: run(generator(model, PROMPT, max_length=40, do_sample=True, top_k=20, temperature=0.7, random_seed=42)),
        )
        check(
            f"{name}: repetitions cost, and a least length",
            lambda: run(generator(model, PROMPT, max_length=40, min_length=30, repetition_penalty=1.3)),
        )
        if "shared" not in name:
            check(f"{name}: beams", lambda: run(generator(model, PROMPT, max_length=24, num_beams=3, num_return_sequences=2), 2))

        def logits() -> list:
            one = generator(model, PROMPT, max_length=20)
            found = [numbers(one.get_output("logits"))]
            one.generate_next_token()
            one.generate_next_token()
            return [*found, numbers(one.get_logits()), numbers(one.get_output("present.0.key"))]

        def more() -> list:
            one = generator(model, PROMPT, max_length=40)
            for _ in range(5):
                one.generate_next_token()
            one.append_tokens(np.array([[4, 40]], np.int32))
            return run(one)

        def back() -> list:
            one = generator(model, PROMPT, max_length=30)
            for _ in range(8):
                one.generate_next_token()
            one.rewind_to(4)
            one.append_tokens(np.array([[70, 71]], np.int32))
            return run(one)

        def chosen() -> list:
            one = generator(model, PROMPT, max_length=30)
            for _ in range(6):
                values = one.get_logits()
                values[..., 11:] = -1e9
                one.set_logits(values)
                one.generate_next_token()
            return [list(map(int, one.get_sequence(0)))]

        check(f"{name}: logits and the cache", logits)
        if "shared" in name:
            check(f"{name}: tokens appended after some", more)
        check(f"{name}: back to an earlier token", back)
        check(f"{name}: logits set by the caller", chosen)
        check(
            f"{name}: two generators by turns",
            lambda: [run(one) for one in [generator(model, PROMPT, max_length=25), generator(model, [8, 9], max_length=25)]],
        )

        def terminated() -> None:
            one = generator(model, PROMPT, max_length=30)
            one.set_runtime_option("terminate_session", "1")
            one.generate_next_token()
            one.generate_next_token()

        fails(f"{name}: a session that is to stop", terminated)
    config = og.Config(str(folder))
    config.overlay(
        json.dumps(
            {
                "model": {
                    "decoder": {
                        "session_options": {
                            "graph_optimization_level": "ORT_DISABLE_ALL",
                            "enable_cpu_mem_arena": False,
                            "enable_mem_pattern": False,
                            "log_severity_level": 3,
                        }
                    }
                }
            }
        )
    )
    check("session options of the configuration", lambda: run(generator(og.Model(config), PROMPT, max_length=30)))
    config = og.Config(str(folder))
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {"session.set_denormal_as_zero": "1"}}}}))
    check("an entry of the session's configuration", lambda: run(generator(og.Model(config), PROMPT, max_length=30)))
    config = og.Config(str(folder))
    config.overlay(json.dumps({"model": {"decoder": {"filename": "nothing.onnx"}}}))
    fails("a model that is not there", lambda: og.Model(config))
    fails("a token beyond the vocabulary", lambda: run(generator(model, [5000], max_length=8)))


if __name__ == "__main__":
    main()
