"""The benchmark's rows as lines, as a table for the docs, and as a chart."""

from __future__ import annotations

import pathlib
import platform
import shlex
import sys

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
COLUMNS = [
    ("threads", "threads", "{:d}"),
    ("ms", "sardonyx_ms", "{:.3g}"),
    ("ORT ms", "onnxruntime_ms", "{:.3g}"),
    ("ratio", "ratio", "{:.2f}"),
    ("% of peak", "share_of_peak", "{:.0%}"),
    ("create ms", "sardonyx_create_ms", "{:.0f}"),
    ("ORT", "onnxruntime_create_ms", "{:.0f}"),
    ("peak MB", "sardonyx_peak_mb", "{:.0f}"),
    ("ORT", "onnxruntime_peak_mb", "{:.0f}"),
    ("diff/RMS", "max_diff_over_rms", "{:.1e}"),
]


def cells(row: dict) -> list[str]:
    if "error" in row:
        return [str(row["threads"]), "failed: " + row["error"]]
    return [form.format(round(row[key]) if form == "{:d}" else row[key]) if row["gflop"] or key != "share_of_peak"
            else "" for _, key, form in COLUMNS]


def heading() -> str:
    return f"{'model':16}" + "".join(f"{title:>11}" for title, _, _ in COLUMNS)


def line(row: dict) -> str:
    return f"{row['model']:16}" + "".join(f"{cell:>11}" for cell in cells(row))


def machine(peak: dict) -> str:
    name = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as info:
        for text in info:
            if text.startswith("model name"):
                name = text.split(":", 1)[1].strip()
                break
    return (f"{name}; measured peak of one thread: {peak['gflops_1']:.0f} GFLOP/s float32, "
            f"{peak['gbps_1']:.0f} GB/s from memory")


def table(rows: list[dict]) -> str:
    lines = ["| model | " + " | ".join(title for title, _, _ in COLUMNS) + " |",
             "|---" * (len(COLUMNS) + 1) + "|"]
    for row in rows:
        found = cells(row)
        lines.append(f"| {row['model']} | " + " | ".join(found + [""] * (len(COLUMNS) - len(found))) + " |")
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


def write_docs(rows: list[dict], machine_line: str, file: pathlib.Path) -> None:
    """Replaces what stands between the markers, and the chart beside the page."""
    import onnxruntime

    picture = file.with_suffix(".png")
    draw(rows, picture)
    put_between(file, BEGIN, END,
                f"Made by `{command_line()}` with ONNX Runtime {onnxruntime.__version__} on {machine_line}.\n"
                "Ratio: ONNX Runtime's time divided by Sardonyx's, medians of runs in turn. Peak MB: above the bare "
                f"program's.\n\n{table(rows)}\n\n![ratios]({picture.name})")


def family_line(row: dict, entry) -> str:
    """One row of docs/models.md."""
    size = f"{row['nodes']} | {row['weights_mb']:.3g} | {row['opset']}"
    if "error" in row:
        return f"| {entry.family} | {row['model']} | {size} | fails: {row['error']} | | | | |"
    status = "agrees" if row["same_outputs"] else "**differs**"
    status += f" (with its float32 counterpart {row['baseline']})" if row["baseline"] else ""
    return (f"| {entry.family} | {row['model']} | {size} | {status} | {row['max_diff_over_rms']:.1e} | "
            f"{row['sardonyx_ms']:.3g} | {row['onnxruntime_ms']:.3g} | {row['ratio']:.2f} |")


def write_models(rows: list[dict], entries: dict, machine_line: str, file: pathlib.Path) -> None:
    """The table of families, from the rows at the smallest number of threads."""
    import onnxruntime

    threads = min(row["threads"] for row in rows)
    lines = ["| family | model | nodes | weights MB | opset | status | diff/RMS | ms | ORT ms | ratio |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    lines += [family_line(row, entries[row["model"]]) for row in rows if row["threads"] == threads]
    put_between(file, BEGIN, END,
                f"With ONNX Runtime {onnxruntime.__version__} on {machine_line}; {threads} thread"
                f"{'s' if threads > 1 else ''}.\n\n" + "\n".join(lines))
