"""The documentation: its links lead somewhere, its index is whole, and the README quotes what the tables hold."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])

# README's names for the models of docs/performance.md.
QUOTED = {
    "ResNet-50": "resnet50", "MobileNet v2": "mobilenet_v2", "EfficientNet-B0": "efficientnet_b0", "ViT-B/16": "vit_b16",
    "BERT": "bert", "BERT in float16": "bert_f16", "GPT-2, one step": "gpt2", "Llama in 4 bits, one step": "llama_int4",
    "ResNet-50 in int8": "resnet50_qdq", "LSTM, 200 steps": "lstm",
}


def anchors(page) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{target} is not there"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{target}: there is no such heading"


def test_the_index_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    missing = [page for page in pages if page.name != "README.md" and page.parts[0] != "decisions" and f"]({page}" not in index]
    assert missing == []


def test_the_drawing_of_layers_has_every_folder():
    drawn = re.findall(r'font-weight="bold">([^<]+)<', (ROOT / "docs" / "diagrams" / "layers.svg").read_text())
    folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    assert folders - set(drawn) == set()


def test_architecture_names_files_that_are_there():
    for page in [ROOT / "docs" / "architecture.md", *(ROOT / "docs" / "internals").glob("*.md")]:
        for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)*/[\w-]+\.(?:cc|h|py|txt))`", page.read_text()):
            below = (name, f"src/{name}", f"src/kernels/{name}", f"src/passes/{name}", f"include/{name}")
            assert any((ROOT / place).exists() for place in below), f"{page.name}: {name}"


def test_decisions_have_their_form_and_a_row():
    folder = ROOT / "docs" / "decisions"
    pages = sorted(page for page in folder.glob("*.md") if page.name != "README.md")
    listed = re.findall(r"^\| \[(\d{4})\]\((\S+)\) \| (.+) \|$", (folder / "README.md").read_text(), re.M)
    assert [name for _, name, _ in listed] == [page.name for page in pages]
    for (number, name, title), page in zip(listed, pages):
        text = page.read_text()
        assert name.startswith(number + "-") and text.startswith(f"# {number}. {title}\n")
        assert re.findall(r"^## (.+)$", text, re.M) == ["Context", "Considered", "Measured", "Decided"], name


def test_the_libraries_that_a_build_takes_are_named_with_their_licences():
    text = (ROOT / "docs" / "third_party.md").read_text().lower()
    cmake = "\n".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cli").glob("CMakeLists.txt"), ROOT / "python" / "CMakeLists.txt"])
    known = {"fmt": "{fmt}", "nlohmann_json": "nlohmann/json", "hwy": "highway", "PNG": "libpng", "JPEG": "libjpeg", "webp": "libwebp",
             "tiff": "libtiff", "openjp2": "openjpeg"}
    for name in re.findall(r"(?:find_package|pkg_check_modules)\((\w+)", cmake):
        if name not in ("Threads", "Python3", "Python", "PkgConfig"):
            assert known.get(name, name.lower()) in text, name


def rows(page: str, first: str) -> list[dict[str, str]]:
    """The rows of the table that begins so, by the titles of its columns; where one comes again it is "TITLE 2", "TITLE 3"."""
    lines = (ROOT / page).read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(first))

    def cells(line: str) -> list[str]:
        return [cell.strip() for cell in line.strip("|").split("|")]

    titles: list[str] = []
    for title in cells(lines[begin]):
        titles.append(title if title not in titles else f"{title} {1 + sum(one.split(' ')[0] == title for one in titles)}")
    found = []
    for line in lines[begin + 2:]:
        if not line.startswith("|"):
            break
        found.append(dict(zip(titles, cells(line))))
    return found


def after(row: dict[str, str], title: str) -> str:
    """The cell behind that of a title: where it is Sardonyx's, ONNX Runtime's."""
    titles = list(row)
    return row[titles[titles.index(title) + 1]]


def test_the_readme_is_short_and_quotes_the_tables():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    measured = {row["model"]: row for row in rows("docs/performance.md", "| model | threads |") if row["threads"] == "1"}
    quoted = rows("README.md", "| model | ms |")
    assert {row["model"] for row in quoted} == set(QUOTED)
    for quote in quoted:
        name, ours, theirs, ratio, openvino, memory, their_memory = quote.values()
        row = measured[QUOTED[name]]
        assert [float(ours), float(theirs), float(ratio)] == [float(row[title]) for title in ("ms", "ORT ms", "ratio")], name
        assert openvino == row["OpenVINO ms"], name
        assert [memory, their_memory] == [row["peak MB"], after(row, "peak MB")], name
