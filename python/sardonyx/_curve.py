"""A picture of a training that grows while it runs."""

from __future__ import annotations

import html
import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._fit import EpochResult, FitProgress

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 260, 60, 30, 22
_MOST_POINTS = 400  # of a line; neighbours are averaged beyond


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    each = -(-len(points) // _MOST_POINTS) or 1
    parts = (points[first:first + each] for first in range(0, len(points), each))
    return [(sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for part in parts]


class TrainingCurve:
    """A callback of `fit` that draws the loss of steps, and of epochs over the validation data.

        training.fit(data, epochs=10, callbacks=sardonyx.TrainingCurve())

    In a notebook the picture appears below the cell and is drawn anew at most every `seconds`. Elsewhere nothing is shown; `to_svg()`
    gives the picture at any time. `logarithmic`: the axis of losses, where all are positive. One curve is for one `fit` at a time.
    """

    def __init__(self, *, seconds: float = 0.5, logarithmic: bool = False):
        self.steps: list[tuple[int, float]] = []  # step, loss; those whose loss was no finite number are left out
        self.validation: list[tuple[int, float]] = []  # step at the end of an epoch, loss over the validation data
        self._seconds, self._logarithmic = seconds, logarithmic
        self._drawn = -math.inf
        self._handle: Any = None

    def on_step(self, progress: FitProgress) -> None:
        if math.isfinite(progress.loss):
            self.steps.append((progress.step, progress.loss))
        if time.monotonic() - self._drawn >= self._seconds:
            self._show()

    def on_epoch(self, result: EpochResult) -> None:
        loss = next(iter(result.validation.values()), math.nan)
        if math.isfinite(loss):
            self.validation.append((self.steps[-1][0] if self.steps else result.epoch + 1, loss))
        self._show()

    def _show(self) -> None:
        self._drawn = time.monotonic()
        if "IPython" not in sys.modules:
            return
        from IPython import get_ipython  # type: ignore[import-not-found,unused-ignore]
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        if self._handle is not None:
            self._handle.update(self)
        elif get_ipython() is not None:
            self._handle = display(self, display_id=True)

    def to_svg(self) -> str:
        """The picture: a line of steps, a point for each epoch's validation."""
        shown = [*self.steps, *self.validation]
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="11">'
        if not shown:
            return f'{opening}<text x="20" y="40">no step has been done</text></svg>'
        logarithmic = self._logarithmic and min(y for _, y in shown) > 0

        def scaled(y: float) -> float:
            return math.log10(y) if logarithmic else y

        steps = _thinned([(x, scaled(y)) for x, y in self.steps])
        points = [(float(x), scaled(y)) for x, y in self.validation]
        low, high = min(y for _, y in [*steps, *points]), max(y for _, y in [*steps, *points])
        first, last = min(x for x, _ in shown), max(x for x, _ in shown)

        def place(x: float, y: float) -> tuple[float, float]:
            across = (x - first) / ((last - first) or 1)
            up = (y - low) / (high - low) if high > low else 0.5
            return _LEFT + across * (_WIDTH - _LEFT - 10), _HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - _TOP)

        def number(y: float) -> str:
            return html.escape(f"{10**y if logarithmic else y:.4g}")

        line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in steps)
        dots = "".join('<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="#c2410c"/>'.format(*place(x, y)) for x, y in points)
        title = f"loss {self.steps[-1][1]:.6g}" if self.steps else "loss"
        if self.validation:
            title += f", validation {self.validation[-1][1]:.6g}"
        return (f'{opening}<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>'
                f'<path d="M{_LEFT} {_TOP - 5}V{_HEIGHT - _BOTTOM + 5}H{_WIDTH - 10}" fill="none" stroke="#999"/>'
                f'<text x="{_LEFT}" y="13">{title}</text>'
                f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{number(high)}</text>'
                f'<text x="{_LEFT - 6}" y="{_HEIGHT - _BOTTOM}" text-anchor="end">{number(low)}</text>'
                f'<text x="{_LEFT}" y="{_HEIGHT - 8}">step {first}</text>'
                f'<text x="{_WIDTH - 10}" y="{_HEIGHT - 8}" text-anchor="end">{last}</text>'
                f'<polyline points="{line}" fill="none" stroke="#1d4ed8" stroke-width="1.5"/>{dots}</svg>')

    def _repr_html_(self) -> str:
        return self.to_svg()
