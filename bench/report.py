"""The benchmark's rows as lines, as a table for the docs, and as a chart."""

from __future__ import annotations

import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
PEER_NAMES = {"onnxruntime": "ORT", "openvino": "OpenVINO"}
# Title, key, form; what an engine could not do is left blank.
COLUMNS = [
    ("threads", "threads", "{:d}"),
    ("ms", "sardonyx_ms", "{:.3g}"),
    ("ORT ms", "onnxruntime_ms", "{:.3g}"),
    ("ratio", "ratio", "{:.2f}"),
    ("OpenVINO ms", "openvino_ms", "{:.3g}"),
    ("best peer", "best_peer", "{}"),
    ("ratio to it", "best_ratio", "{:.2f}"),
    ("% of peak", "share_of_peak", "{:.0%}"),
    ("first ms", "sardonyx_first_ms", "{:.3g}"),
    ("ORT", "onnxruntime_first_ms", "{:.3g}"),
    ("OpenVINO", "openvino_first_ms", "{:.3g}"),
    ("peak MB", "sardonyx_peak_mb", "{:.0f}"),
    ("ORT", "onnxruntime_peak_mb", "{:.0f}"),
    ("OpenVINO", "openvino_peak_mb", "{:.0f}"),
    ("diff/RMS", "max_diff_over_rms", "{:.1e}"),
]


def columns_for(rows: list[dict]) -> list[tuple[str, str, str]]:
    """Without those of OpenVINO where it was not there."""
    with_openvino = any(key.startswith("openvino") for row in rows for key in row)
    return [column for column in COLUMNS if with_openvino or not (column[1].startswith("openvino") or column[1].startswith("best"))]


def cell(row: dict, key: str, form: str) -> str:
    value = row.get(key)
    if key == "share_of_peak" and not row["gflop"]:
        return ""
    if key == "openvino_ms" and value is None and "openvino_error" in row:
        return "fails"
    text = "" if value is None else form.format(PEER_NAMES.get(value, value))
    if key == "openvino_ms" and value is not None and row.get("openvino_same_outputs") is False:
        text += f" (differs: {row['openvino_diff_over_rms']:.2g})"
    if key == "max_diff_over_rms" and row.get("outputs_left_out"):
        text += f" of {row['outputs'] - row['outputs_left_out']} of {row['outputs']} outputs"
    return text


def cells(row: dict, columns: list[tuple[str, str, str]] = COLUMNS) -> list[str]:
    if "error" in row:
        return [str(row["threads"]), "failed: " + row["error"]]
    return [cell(row, key, form) for _, key, form in columns]


def heading() -> str:
    return f"{'model':16}" + "".join(f"{title:>12}" for title, _, _ in COLUMNS)


def line(row: dict) -> str:
    return f"{row['model']:16}" + "".join(f"{cell:>12}" for cell in cells(row))


def machine(peak: dict) -> str:
    name = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as info:
        for text in info:
            if text.startswith("model name"):
                name = text.split(":", 1)[1].strip()
                break
    return (f"{name}; measured peak of one thread: {peak['gflops_1']:.0f} GFLOP/s float32, "
            f"{peak['gbps_1']:.0f} GB/s from memory")


def commit() -> str:
    """The commit that is checked out, and whether files differ from it."""
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()

    found = git("rev-parse", "--short=10", "HEAD")
    if not found:
        return "an unknown commit"
    return found + (" with changes" if git("status", "--porcelain", "--untracked-files=no") else "")


def provenance(peak: dict, versions: dict[str, str]) -> str:
    """What made a table: the commit, the versions, the machine."""
    peers = " and ".join(f"{name} {versions[key]}" for key, name in (("onnxruntime", "ONNX Runtime"), ("openvino", "OpenVINO"))
                         if key in versions)
    return f"commit {commit()}, with {peers or 'no peer'}, on {machine(peak)}"


def summary(rows: list[dict], kind: Callable[[str], str] | None = None) -> str:
    """A table of geometric means, the least and the greatest ratio: of each kind of models and number of threads."""
    import zoo

    lines = ["| kind | threads | models | beside ONNX Runtime | least | greatest | beside the best peer | least |", "|" + "---|" * 8]
    good = [row for row in rows if "error" not in row]
    for key, name in zoo.KINDS.items() if kind else [("", "all models")]:
        for threads in sorted({row["threads"] for row in good}):
            found = [row for row in good if row["threads"] == threads and (kind is None or kind(row["model"]) == key)]
            if not found:
                continue
            ratios, best = ({row["model"]: row[what] for row in found} for what in ("ratio", "best_ratio"))
            low, high, low_best = min(ratios, key=ratios.get), max(ratios, key=ratios.get), min(best, key=best.get)
            lines.append(f"| {name} | {threads} | {len(found)} | {statistics.geometric_mean(ratios.values()):.2f} | "
                         f"{ratios[low]:.2f} ({low}) | {ratios[high]:.2f} ({high}) | "
                         f"{statistics.geometric_mean(best.values()):.2f} | {best[low_best]:.2f} ({low_best}) |")
    return "\n".join(lines)


def model_cell(row: dict) -> str:
    return row["model"] + (f" (peers: {row['baseline']})" if row.get("baseline") else "")


def table(rows: list[dict]) -> str:
    columns = columns_for(rows)
    lines = ["| model | " + " | ".join(title for title, _, _ in columns) + " |",
             "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        found = cells(row, columns)
        lines.append(f"| {model_cell(row)} | " + " | ".join(found + [""] * (len(columns) - len(found))) + " |")
    return "\n".join(lines)


def slowest_first(rows: list[dict], what: str, unit: str = "ms", per_ms: float = 1) -> str:
    """A summary beside ONNX Runtime, and a table that begins with the slowest beside it."""
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    slower = sum(ratio < 0.95 for ratio in ratios)
    lines = [f"{len(ratios)} rows: geometric mean {statistics.geometric_mean(ratios):.2f}, {slower} below 0.95, least {min(ratios):.2f}.", "",
             f"| {what} | threads | {unit} | ORT {unit} | ratio |", "|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: row.get("ratio", 0)):
        lines.append(f"| {row['model']} | {row['threads']} | " + (
            f"failed: {row['error']} | | |" if "error" in row else
            f"{per_ms * row['sardonyx_ms']:.3g} | {per_ms * row['onnxruntime_ms']:.3g} | {row['ratio']:.2f} |"))
    return "\n".join(lines)


def draw(rows: list[dict], file: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    good = [row for row in rows if "error" not in row]
    if not good:
        return
    names = list(dict.fromkeys(row["model"] for row in good))
    threads = sorted({row["threads"] for row in good})
    figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.22 * len(names) * (len(threads) + 0.6)))
    height = 0.8 / len(threads)
    for index, count in enumerate(threads):
        found = {row["model"]: row["ratio"] for row in good if row["threads"] == count}
        places = [place + index * height for place, name in enumerate(names) if name in found]
        values = [found[name] for name in names if name in found]
        bars = axes.barh(places, values, height * 0.9, label=f"{count} thread{'s' if count > 1 else ''}")
        axes.bar_label(bars, labels=[f"{value:.2f}" for value in values], padding=2, fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(names))], names)
    axes.invert_yaxis()
    axes.set_xlabel("ONNX Runtime's time divided by Sardonyx's (right of 1: Sardonyx is faster)")
    axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(threads), frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def command_line(*first: str) -> str:
    """How this was called, by way of ./dev bench."""
    named = {"--program", "--bench"}
    words, skip = [], False
    for word in sys.argv[1:]:
        if not skip and word not in named:
            words.append(word)
        skip = word in named
    return shlex.join(["./dev", "bench", *first, *words])


def put_between(file: pathlib.Path, begin: str, end: str, body: str) -> None:
    """Replaces what stands between the markers; they go to the end of a page that lacks them."""
    text = file.read_text() if file.exists() else ""
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n".lstrip()
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    file.write_text(f"{before}{begin}\n{body}\n{end}{after}")


def write_docs(rows: list[dict], made: str, file: pathlib.Path, kind: Callable[[str], str]) -> None:
    """Replaces what stands between the markers, and the chart beside the page."""
    picture = file.with_suffix(".png")
    draw(rows, picture)
    put_between(file, BEGIN, END,
                f"Made by `{command_line()}`: {made}.\n"
                "Ratio: a peer's time divided by Sardonyx's, medians of runs in turn in one process. First: making the session and "
                "the first\nrun, in a process that does nothing else, the file in cache. Peak MB: above the bare program's.\n\n"
                f"{summary(rows, kind)}\n\n{table(rows)}\n\n![ratios]({picture.name})")


def family_line(row: dict, entry) -> str:
    """One row of docs/models.md."""
    size = f"{row['nodes']} | {row['weights_mb']:.3g} | {row['opset']}"
    if "error" in row:
        return f"| {entry.family} | {row['model']} | {size} | fails: {row['error']} |" + " |" * 7
    status = "agrees" if row["same_outputs"] else "**differs**"
    status += f" (with its float32 counterpart {row['baseline']})" if row["baseline"] else ""
    figures = " | ".join(cell(row, key, form) for key, form in (
        ("max_diff_over_rms", "{:.1e}"), ("sardonyx_ms", "{:.3g}"), ("onnxruntime_ms", "{:.3g}"), ("ratio", "{:.2f}"),
        ("openvino_ms", "{:.3g}"), ("best_peer", "{}"), ("best_ratio", "{:.2f}")))
    return f"| {entry.family} | {row['model']} | {size} | {status} | {figures} |"


def write_models(rows: list[dict], entries: dict, made: str, file: pathlib.Path) -> None:
    """The table of families, from the rows at the smallest number of threads."""
    threads = min(row["threads"] for row in rows)
    lines = ["| family | model | nodes | weights MB | opset | status | diff/RMS | ms | ORT ms | ratio | OpenVINO ms | best peer | "
             "ratio to it |", "|" + "---|" * 13]
    lines += [family_line(row, entries[row["model"]]) for row in rows if row["threads"] == threads]
    put_between(file, BEGIN, END,
                f"Made by `{command_line()}`: {made}; {threads} thread{'s' if threads > 1 else ''}.\n\n" + "\n".join(lines))
