#!/usr/bin/env python3
"""Shows a public header to Doxygen: `doxygen_filter.py HEADER` prints it with its comments as Doxygen's.

Headers have plain comments. One above a declaration is its documentation, and so is one behind it. In a paragraph of declarations
(lines without a blank one between) that has a comment, those without one of their own get the one above the paragraph, or the words
of their name. Paragraphs without any comment stay as they are, and Doxygen complains of them.
"""

from __future__ import annotations

import pathlib
import re
import sys

COMMENT = re.compile(r"^(\s*)//(?!/)(.*)$")
TRAILING = re.compile(r'^(?P<code>(?:[^"/]|"(?:[^"\\]|\\.)*"|/(?![/*]))+?)(?P<gap>\s*)//(?!/)(?P<text>.*)$')
C_TRAILING = re.compile(r"^(?P<code>\s*[^\s/].*?)/\*(?!\*)(?P<text>.*)$")
# What no comment belongs to.
NO_DECLARATION = re.compile(r"^\s*(#(?!define)|\}|public:|private:|protected:|namespace\b|extern \"C\"|$)")
COMPOUND = re.compile(r"^\s*(struct|class|enum)\b.*\{\s*$")
ENDS = re.compile(r"[;}{,]\s*$|^\s*#")


# What its name says all of.
PLAIN = re.compile(r"^\s*(using \w+ = |friend |template <>|struct element_type_of<|typedef struct \w+ \w+;)")
# One statement that declares several members.
SEVERAL = re.compile(r"^(?P<indent>\s*)(?P<type>[A-Za-z_][\w:<>]*(?: \w+){0,3}?) (?P<names>\w+(?: = [^,;(]+)?(?:, \w+(?: = [^,;(]+)?)+);$")
# What a declaration declares: behind a class's keyword, or before an argument list, a value, or the end.
NAME = re.compile(r"\(\*(?P<pointer>\w+)\)|(?:struct|class|enum class|enum) (?:\[\[.*?\]\] )?(\w+)|(\w+|operator\W+)(?:\[\w*\])?\s*(?:[;(={,]|$)")


def words(line: str) -> str:
    found = NAME.search(line.strip())
    name = (found[1] or found[2] or found[3]) if found else ""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("_", " ").strip()
    return apart[:1].upper() + apart[1:].lower() + "." if apart else ""


def said_in_paragraph(lines: list[str]) -> list[bool]:
    """For each line, whether its paragraph has a comment."""
    said, start = [False] * len(lines), 0
    for at in range(len(lines) + 1):
        if at == len(lines) or not lines[at].strip():
            has = any("//" in line or "/*" in line or line.lstrip().startswith("*") for line in lines[start:at])
            said[start:at] = [has or bool(PLAIN.match(line)) for line in lines[start:at]]
            start = at + 1
    return said


def is_declaration(line: str) -> bool:
    return not NO_DECLARATION.match(line) and not COMMENT.match(line)


def filtered(text: str, name: str) -> list[str]:
    lines = text.splitlines()
    said = said_in_paragraph(lines)
    out: list[str] = []
    column = -1  # of the comment behind the line before
    inherited = ""  # what the paragraph says of all that is in it
    open_statement = False  # a declaration goes on from the line before
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            inherited, column, open_statement = "", -1, False
            out.append(line)
            at += 1
            continue
        comment = COMMENT.match(line)
        if comment and column >= 0 and len(comment[1]) == column:  # goes on behind the declaration
            out.append(f"{comment[1]}///<{comment[2]}")
            at += 1
            continue
        if comment:
            end = at
            while end < len(lines) and COMMENT.match(lines[end]):
                end += 1
            block = [COMMENT.match(one) for one in lines[at:end]]
            is_header = at == 0  # of the file
            documents = end < len(lines) and is_declaration(lines[end]) and not open_statement
            for number, one in enumerate(block):
                mark = "///" if documents or is_header else "//"
                file = f" @file sardonyx/{name}\n{one[1]}///" if is_header and number == 0 else ""
                out.append(f"{one[1]}{mark}{file}{one[2]}")
            if documents:
                inherited = " ".join(one[2].strip() for one in block)
            column, at = -1, end
            continue
        trailing = TRAILING.match(line)
        column = -1
        starts = is_declaration(line) and not open_statement
        several = SEVERAL.match(trailing["code"] if trailing else line)
        if several and starts:
            text_of = trailing["text"].strip() if trailing else inherited
            column = len(trailing["code"]) + len(trailing["gap"]) if trailing else -1
            line = several["indent"] + " ".join(f"/** {text_of or words(one)} */ {several['type']} {one};"
                                                for one in several["names"].split(", "))
            if trailing and at + 1 < len(lines) and (more := COMMENT.match(lines[at + 1])) and len(more[1]) == column:
                line += " //"
        elif trailing and COMPOUND.match(trailing["code"]):
            line = f"/** {trailing['text'].strip()} */ {trailing['code']}"
        elif trailing:
            column = len(trailing["code"]) + len(trailing["gap"])
            line = f"{trailing['code']}{trailing['gap']}///<{trailing['text']}"
        elif starts and said[at] and not (out and out[-1].lstrip().startswith("///") and "///<" not in out[-1]):
            is_template = line.startswith("template <>") and at + 1 < len(lines)
            above = inherited or words(lines[at + 1] if is_template else line)
            goes_on = at + 1 < len(lines) and not ENDS.search(line) and TRAILING.match(lines[at + 1])
            indent = line[: len(line) - len(line.lstrip())]
            line = f"{indent}/** {above} */ {line.lstrip()}" if above and not goes_on else line
        code = trailing["code"] if trailing else line
        if is_declaration(line):
            open_statement = not ENDS.search(code)
        if code.rstrip().endswith("{"):
            inherited = ""
        out.append(line)
        at += 1
    return out


def filtered_c(text: str, name: str) -> list[str]:
    """Of a header in C: comments between /* and */."""
    lines = text.splitlines()
    said = said_in_paragraph(lines)
    out: list[str] = []
    above, is_ready, open_statement, at = "", False, False, 0
    while at < len(lines):
        line = lines[at]
        if not line.strip() or line.lstrip().startswith("#"):
            while line.endswith("\\"):  # a macro
                out.append(line)
                at += 1
                line = lines[at]
            above = above if line.strip() else ""
            is_ready = False
        elif line.lstrip().startswith("/*"):
            end = at
            while "*/" not in lines[end]:
                end += 1
            body = lines[at : end + 1]
            if not line.lstrip().startswith("/* ---"):
                file = f"/** @file sardonyx/{name}\n *" if at == 0 else "/**"
                body[0] = body[0].replace("/*", file, 1)
                above = " ".join(" ".join(one.strip(" /*") for one in lines[at : end + 1]).split())
                is_ready = True
            out += body
            at = end + 1
            continue
        else:
            trailing = C_TRAILING.match(line)
            code = trailing["code"] if trailing else line
            several = SEVERAL.match(code.rstrip())
            if several and (trailing or said[at]):
                text_of = trailing["text"].replace("*/", "").strip() if trailing else above
                line = several["indent"] + " ".join(f"/** {text_of or words(one)} */ {several['type']} {one};"
                                                    for one in several["names"].split(", "))
            elif trailing:
                line = f"{code}/**<{trailing['text']}"
            elif not open_statement and not is_ready and said[at] and not NO_DECLARATION.match(line):
                indent = line[: len(line) - len(line.lstrip())]
                line = f"{indent}/** {above or words(line)} */ {line.lstrip()}"
            is_ready = False
            if "{" in code:
                above = ""
            open_statement = not ENDS.search(code) or (open_statement and code.rstrip().endswith(",") and "(" not in code)
            open_statement = open_statement or (code.count("(") > code.count(")"))
            if code.rstrip().endswith(");"):
                open_statement = False
        out.append(line)
        at += 1
    return out


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    name = pathlib.Path(sys.argv[1]).name
    made = filtered_c(text, name) if text.startswith("/*") else filtered(text, name)
    print("\n".join(made))


if __name__ == "__main__":
    main()
