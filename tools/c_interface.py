"""The functions that the headers of the C interface declare, for whoever goes over all of them.

    tools/c_interface.py FILE.def      # what a library for Windows exports
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include" / "sardonyx"


@dataclasses.dataclass
class Declaration:
    result: str
    name: str
    text: str  # of the parameters: "const char* path, size_t count"
    parameters: list[tuple[str, str]]  # type and name; a function pointer's type has "(*)" for its name


def headers(folder: pathlib.Path = HEADERS) -> list[pathlib.Path]:
    return sorted(folder.glob("sardonyx*.h"))


def split(text: str) -> list[str]:
    """At the commas between parameters."""
    parts, depth, part = [], 0, ""
    for letter in text + ",":
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
            continue
        depth += (letter == "(") - (letter == ")")
        part += letter
    return parts


def text_of(file: pathlib.Path) -> str:
    """Without comments and lines of the preprocessor."""
    text = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.S)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def types(folder: pathlib.Path = HEADERS) -> dict[str, set[str]]:
    """The types of the interface: "numbers", "callbacks", and "handles", which have a release function."""
    text = "\n".join(text_of(file) for file in headers(folder))
    return {"numbers": set(re.findall(r"typedef int32_t (sardonyx_\w+);", text)),
            "callbacks": set(re.findall(r"typedef [^;()]*\(\*(sardonyx_\w+)\)\(", text)),
            "handles": set(re.findall(r"\bvoid sardonyx_(\w+)_release\(", text))}


def declarations(folder: pathlib.Path = HEADERS) -> Iterator[Declaration]:
    for file in headers(folder):
        text = text_of(file)
        for match in re.finditer(r"SARDONYX_API\s+([^;]*?)\b(sardonyx_\w+)\(([^;]*)\);", text):
            inside = re.sub(r"\s+", " ", match[3])
            parameters = []
            for part in split(inside):
                if "(*" in part:
                    parameters.append((re.sub(r"\(\*\w+\)", "(*)", part), re.search(r"\(\*(\w+)\)", part)[1]))
                elif part != "void":
                    kind, name = part.rsplit(" ", 1)
                    parameters.append((kind, name))
            yield Declaration(match[1].strip(), match[2], inside, parameters)


def main() -> None:
    names = sorted(declaration.name for declaration in declarations())
    pathlib.Path(sys.argv[1]).write_text("EXPORTS\n" + "".join(f"  {name}\n" for name in names))


if __name__ == "__main__":
    main()
