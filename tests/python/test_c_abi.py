"""The binary interface of the C headers: the committed description is theirs, and what breaks programs is found."""

from __future__ import annotations

import shutil
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import c_abi  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("abidw") is None or shutil.which("cc") is None,
                                reason="abidw (Debian's abigail-tools) or a C compiler is not installed")


def test_the_description_is_that_of_the_headers(tmp_path):
    code, words = c_abi.compare(tmp_path, c_abi.describe(tmp_path))
    assert code == 0, f"{words}\ntools/c_abi.py says whether this breaks programs; with --write it renews the description"


def test_the_description_is_small():
    assert c_abi.DESCRIPTION.stat().st_size < 300_000


CHANGES = {
    "a function is removed": ("void sardonyx_model_release(sardonyx_model* model);", "int unused_;", c_abi.BROKEN),
    "a parameter has another type": ("sardonyx_threads_create(int count,", "sardonyx_threads_create(int64_t count,", c_abi.BROKEN),
    "a field goes between others": ("typedef struct sardonyx_run_options {\n  size_t size;",
                                    "typedef struct sardonyx_run_options {\n  size_t size;\n  int64_t other;", c_abi.BROKEN),
    "a number means something else": ("SARDONYX_CANCELLED = 8,", "SARDONYX_CANCELLED = 18,", c_abi.BROKEN),
    "a struct without a size grows": ("} sardonyx_dim;", "  int64_t other;\n} sardonyx_dim;", c_abi.BROKEN),
    "a callback takes another argument": ("typedef size_t (*sardonyx_read_function)(void* buffer,",
                                          "typedef size_t (*sardonyx_read_function)(void* buffer, int more,", c_abi.BROKEN),
    "a number is added": ("SARDONYX_CANCELLED = 8,", "SARDONYX_OTHER = 11, SARDONYX_CANCELLED = 8,", c_abi.CHANGED),
    "a field comes last": ("} sardonyx_run_options;", "  int64_t other;\n} sardonyx_run_options;", c_abi.CHANGED),
    "a function is added": ("SARDONYX_API void sardonyx_model_release(", "SARDONYX_API void sardonyx_other(int a);\n"
                            "SARDONYX_API void sardonyx_model_release(", c_abi.CHANGED),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_found(change, tmp_path):
    old, new, expected = CHANGES[change]
    public = tmp_path / "include" / "sardonyx"
    public.mkdir(parents=True)
    for file in c_abi.headers():
        shutil.copy(file, public)
    texts = {file: file.read_text(encoding="utf-8") for file in public.iterdir()}
    assert sum(text.count(old) for text in texts.values()) == 1
    for file, text in texts.items():
        file.write_text(text.replace(old, new), encoding="utf-8")
    before = tmp_path / "before.abi"
    before.write_text(c_abi.describe(tmp_path), encoding="utf-8")
    code, words = c_abi.compare(tmp_path, c_abi.describe(tmp_path, public), before)
    assert code == expected, words
