"""What the steps of runs cost."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from . import _core


@dataclasses.dataclass(frozen=True)
class ProfiledStep:
    """What one step cost in all runs together. `inside`: the number of the step around it, -1 for none; its time counts in
    that of the step around it too. `operations` are floating-point ones, `bytes` those of the values it read and made."""

    node: str
    operator: str
    origin: str
    sources: list[str]
    kernel: str
    graph: str
    inside: int
    seconds: float
    calls: int
    operations: float
    bytes: float


def _lanes(runs: list[Any]) -> list[int]:
    """Runs that went on at the same time stand in lanes of their own."""
    lanes, ends = [0] * len(runs), list[int]()
    for i in sorted(range(len(runs)), key=lambda i: runs[i][0]):
        begin, end, _ = runs[i]
        lanes[i] = next((lane for lane, last in enumerate(ends) if last <= begin), len(ends))
        ends[lanes[i]:lanes[i] + 1] = [end]
    return lanes


class Profile(_core.Profile):
    """Filled by `Session.profile`, and by runs of one session that it is given to."""

    @property
    def steps(self) -> list[ProfiledStep]:
        described = self._steps()
        seconds, calls = [0.0] * len(described), [0] * len(described)
        operations, moved = [0.0] * len(described), [0.0] * len(described)
        for _, _, sums in self._runs():
            for i, (nanoseconds, _, _, count, flops, size) in enumerate(sums):
                seconds[i] += nanoseconds / 1e9
                calls[i] += count
                operations[i] += flops
                moved[i] += size
        return [ProfiledStep(*one, seconds[i], calls[i], operations[i], moved[i]) for i, one in enumerate(described)]

    @property
    def seconds(self) -> list[float]:
        """Of each run, as a whole."""
        return [(end - begin) / 1e9 for begin, end, _ in self._runs()]

    def trace_events(self) -> list[dict[str, Any]]:
        """In the format of Chrome's tracing, Perfetto and speedscope; times in microseconds."""
        steps = self._steps()
        pid, runs = os.getpid(), self._runs()
        lanes = [lane * self.threads for lane in _lanes(runs)]
        events: list[dict[str, Any]] = [
            {"cat": "Session", "pid": pid, "tid": lane, "dur": (end - begin) / 1e3, "ts": begin / 1e3, "ph": "X", "name": "model_run",
             "args": {}} for lane, (begin, end, _) in zip(lanes, runs)]
        for run, step, thread, begin, end in self._events():
            node, operator, _, _, kernel, _, _ = steps[step]
            events.append({"cat": "Node", "pid": pid, "tid": lanes[run] + thread, "dur": (end - begin) / 1e3, "ts": begin / 1e3,
                           "ph": "X", "name": node, "args": {"op_name": operator, "kernel": kernel}})
        return events

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.trace_events(), file)

    def _rows(self) -> list[ProfiledStep]:
        return sorted((step for step in self.steps if step.inside < 0), key=lambda step: -step.seconds)

    def __str__(self) -> str:
        runs = max(1, len(self.seconds))
        lines = [f"{len(self.seconds)} runs, {1e3 * sum(self.seconds) / runs:.3f} ms each"]
        lines += [f"{1e3 * step.seconds / runs:10.3f} ms  {step.node}  {step.kernel}" for step in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from . import _html

        runs = max(1, len(self.seconds))
        whole = sum(self.seconds) / runs or 1.0
        rows = [(step.node, step.kernel, f"{1e3 * step.seconds / runs:.3f}", f"{100 * step.seconds / runs / whole:.1f} %")
                for step in self._rows()]
        return f"<p>{len(self.seconds)} runs, {1e3 * whole:.3f} ms each</p>" + _html.table(["step", "kernel", "ms a run", "part"], rows)
