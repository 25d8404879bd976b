"""tests/conformance/exceptions.txt: its form, and that it names releases that are run."""

import collections
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import conformance_exceptions as exceptions  # noqa: E402


def test_the_list_names_releases_that_are_run():
    entries = exceptions.read()
    assert entries
    releases = set(exceptions.releases())
    for entry in entries:
        ends = {entry.first, entry.last} - {"0", "999"}
        assert ends <= releases, entry
        assert len(entry.reason) > 20, entry


def test_no_case_is_listed_twice():
    entries = exceptions.read()
    counts = collections.Counter((release, entry.case) for entry in entries for release in exceptions.releases()
                                 if entry.covers(release, entry.case))
    assert [case for case, count in counts.items() if count > 1] == []


def test_spans_and_reasons(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("# about\n[superseded] it was\nwrong\n  1.2.2..1.9.0 a\n  1.10.2.. b\n\n[broken] so\n  1.4.1 c\n")
    entries = exceptions.read(path)
    assert exceptions.find(entries, "1.8.1", "a").reason == "it was wrong"
    assert exceptions.find(entries, "1.10.2", "a") is None
    assert exceptions.find(entries, "1.23.2", "b").kind == "superseded"
    assert exceptions.find(entries, "1.4.1", "c").kind == "broken"
    path.write_text("  1.2.2 a\n")
    with pytest.raises(ValueError, match="first line"):
        exceptions.read(path)
