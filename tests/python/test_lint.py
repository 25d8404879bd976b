"""The lint of the dependency table finds what it is there to find."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess

import pytest
from conftest import ROOT


@pytest.fixture
def lint(tmp_path):
    """The lint, looking at a tree of one's own: {path: text}."""
    spec = importlib.util.spec_from_file_location("lint_includes", ROOT / "tools" / "lint_includes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT = tmp_path

    def run(files: dict[str, str]) -> int:
        (tmp_path / "src").mkdir()
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return module.main()

    return run


GOOD = {
    "src/base/CMakeLists.txt": "sardonyx_module(base LIBRARIES x)",
    "src/base/a.h": '#include <vector>\n#include "sardonyx/error.h"\n',
    "src/ir/CMakeLists.txt": "sardonyx_module(ir DEPENDS base)",
    "src/ir/b.cc": '#include "ir/b.h"\n#include "base/a.h"\n',
    "include/sardonyx/error.h": "#include <string>\n",
    "tests/shared.h": "#include <string>\n",
    "tests/api/own.h": "#include <string>\n",
    "tests/api/a_test.cc": '#include "own.h"\n#include "shared.h"\n#include "sardonyx/error.h"\n',
}


def test_a_tree_in_order(lint):
    assert lint(GOOD) == 0


@pytest.mark.parametrize("name, text, mentions", [
    ("src/base/a.h", '#include "ir/b.h"\n', "'base' may not see 'ir'"),
    ("src/ir/b.cc", '#include "sardonyx/session.h"\n', "session"),
    ("src/ir/CMakeLists.txt", "sardonyx_module(ir DEPENDS base ops)", "may not be built on 'ops'"),
    ("src/ir/b.cc", "#include <hwy/highway.h>\n", "hwy"),
    ("src/cellar/c.cc", "", "cellar"),
    ("cli/main.cc", '#include "ops/table.h"\n', "'cli' may not see 'ops'"),
    ("cli/main.cc", '#include "../src/base/a.h"\n', "only the public headers"),
    ("tests/api/a_test.cc", '#include "ir/b.h"\n', "'tests/api' may not see 'ir'"),
    ("tests/shared.h", '#include "ir/b.h"\n', "'tests' may not see 'ir'"),
    ("cli/main.cc", '#include "../tests/shared.h"\n', "only the public headers"),
    ("include/sardonyx/error.h", '#include "base/a.h"\n', "public header"),
    ("src/base/c.cc", "#include <sys/stat.h>\n", "for sources of one system"),
    ("cli/main.cc", "#include <windows.h>\n", "for sources of one system"),
])
def test_what_is_out_of_order(lint, capsys, name, text, mentions):
    assert lint({**GOOD, name: text}) == 1
    assert mentions in capsys.readouterr().out


@pytest.mark.parametrize("text, count", [
    ("// What it is.\nstruct A {\n  int x = 0;  // why\n};\n", 0),
    ("namespace n {\n\nint f(int x);\n\n}  // namespace n\n", 1),
    ("// A class.\nclass A {\n public:\n  int said();  // of it\n\n  int silent();\n\n private:\n  int x;\n\n  int y;\n};\n", 1),
])
def test_public_declarations_have_comments(tmp_path, text, count):
    spec = importlib.util.spec_from_file_location("lint_public", ROOT / "tools" / "lint_public.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT = tmp_path
    header = tmp_path / "a.h"
    header.write_text(text)
    assert len(module.undocumented(header)) == count


def test_bindings_see_public_headers_alone(lint, capsys):
    good = '#include "own.h"\n#include "sardonyx/error.h"\n#include <nanobind/nanobind.h>\n'
    assert lint({**GOOD, "python/src/own.h": "", "python/src/a.cc": good + '#include "base/a.h"\n'}) == 1
    assert "python/src/a.cc:4" in capsys.readouterr().out


# --- The API reference --------------------------------------------------------------------------


def shown(text: str, name: str = "a.h") -> str:
    """A header as Doxygen sees it."""
    spec = importlib.util.spec_from_file_location("doxygen_filter", ROOT / "tools" / "doxygen_filter.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return "\n".join((module.filtered_c if text.startswith("/*") else module.filtered)(text, name))


@pytest.mark.parametrize("text, expected", [
    ("// F.\n#pragma once\n\n// One.\nint f(int x);\n", "/// @file sardonyx/a.h\n/// F.\n#pragma once\n\n/// One.\nint f(int x);"),
    ("#pragma once\n\n// Both.\nint f();\nint g();\n", "#pragma once\n\n/// Both.\nint f();\n/**  Both. */ int g();"),
    ("#pragma once\n\nstruct S {\n  int a = 0;  // one\n              // more\n  int theOther;\n};\n",
     "#pragma once\n\n/** S. */ struct S {\n  int a = 0;  ///< one\n              ///< more\n  /** The other. */ int theOther;\n};"),
    ("#pragma once\n\nstruct S {\n  int a, b = 2;  // two\n};\n", "#pragma once\n\n/** S. */ struct S {\n  /** two */ int a; /** two */ int b = 2;\n};"),
    ('#pragma once\n\n// Text.\nconst char* s = "// none";\n', '#pragma once\n\n/// Text.\nconst char* s = "// none";'),
    ("#pragma once\n\nint silent(int x);\n", "#pragma once\n\nint silent(int x);"),
    ("/* F. */\n\n/* One. */\nint f(void);\nint g(int a, /* of a */\n      int b);\n",
     "/** @file sardonyx/a.h\n * F. */\n\n/** One. */\nint f(void);\nint g(int a, /**< of a */\n      int b);"),
])
def test_headers_as_doxygen_sees_them(text, expected):
    assert shown(text).replace("/**  ", "/** ") == expected.replace("/**  ", "/** ")


def test_the_api_reference_has_no_gaps(tmp_path):
    if shutil.which("doxygen") is None:
        pytest.skip("there is no doxygen")
    settings = (ROOT / "docs" / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {tmp_path}\n"

    def run(more=""):
        return subprocess.run(["doxygen", "-"], cwd=ROOT, input=settings + more, text=True, capture_output=True)

    made = run()
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "html" / "index.html").exists()
    (tmp_path / "silent.h").write_text("// A header.\n#pragma once\n\nint silent(int x);\n")
    made = run(f"INPUT = {tmp_path / 'silent.h'}\n")
    assert made.returncode != 0 and "silent" in made.stderr
