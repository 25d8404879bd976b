"""If and Loop around steps of a family, whose bodies read values from outside."""

from __future__ import annotations

from typing import Callable

import numpy as np
from onnx import helper

from .maker import Maker


def chain(maker: Maker, x: str, keep: Callable[[Maker, str], str]) -> str:
    """Up to three steps that keep the shape; at least one node, so that the result is the body's own."""
    for _ in range(maker.random.randint(1, 3)):
        x = keep(maker, x)
    return x


def branch(maker: Maker, x: str, keep: Callable[[Maker, str], str], name: str):
    with maker.body() as nodes:
        result = chain(maker, x, keep)
        return helper.make_graph(nodes, name, [], [maker.value_info(result, maker.dtype, None)])


def condition(maker: Maker) -> str:
    """An input, a constant, or something computed of a value."""
    how = maker.random.randrange(3)
    if how == 0:
        return maker.input((), np.bool_)
    if how == 1:
        return maker.weight(np.bool_(maker.random.randrange(2)))
    sizes = maker.add("Shape", [maker.pick()], (), np.int64)
    total = maker.add("ReduceSum", [sizes], (), np.int64, keepdims=0)
    return maker.add("Greater", [total, maker.weight(np.int64(30))], (), np.bool_)


def choice(maker: Maker, x: str, keep: Callable[[Maker, str], str]) -> None:
    test = condition(maker)
    branches = {f"{name}_branch": branch(maker, x, keep, name) for name in ("then", "else")}
    maker.add("If", [test], maker.shapes[x], **branches)


def loop(maker: Maker, x: str, keep: Callable[[Maker, str], str]) -> None:
    """Carries one value, or that and another, and gathers the states where it may."""
    shape = maker.shapes[x]
    gathers = maker.chance(0.4)
    trips = maker.weight(np.int64(maker.random.randint(gathers, 3)))
    with maker.body() as nodes:
        step, go, state = maker.name(), maker.name(), maker.name()
        maker.shapes[state] = shape
        result = chain(maker, state, keep)
        going = maker.add("Identity", [go], (), np.bool_)
        outputs = [maker.value_info(going, np.dtype(bool), None), maker.value_info(result, maker.dtype, None)]
        if gathers:
            outputs.append(maker.value_info(maker.add("Neg", [state], shape), maker.dtype, None))
        body = helper.make_graph(nodes, "body", [maker.value_info(step, np.dtype(np.int64), ()), maker.value_info(go, np.dtype(bool), ()),
                                                 maker.value_info(state, maker.dtype, None)], outputs)
    names = [maker.name() for _ in range(1 + gathers)]
    maker.nodes.append(helper.make_node("Loop", [trips, maker.weight(np.bool_(True)), x], names, body=body))
    maker.note(names[0], [x], shape)
    if gathers:
        maker.others[names[1]] = maker.dtype  # no step reads it


def around(maker: Maker, x: str, keep: Callable[[Maker, str], str]) -> None:
    maker.random.choice((choice, loop))(maker, x, keep)
