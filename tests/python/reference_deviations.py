"""What the reference refuses and Sardonyx does not, on purpose: docs/checker.md has the same list.

Each entry: what is damaged and what the reference says (regular expressions), and why Sardonyx does otherwise.
"""

from __future__ import annotations

import re

FIELDS = [
    (r"attribute\.(f|ref_attr_name)$", r"Attribute _ expect a float",
     "a number that is absent is 0: writers of proto3 drop zeros (R-10)"),
    (r"graph\.input\.type\.tensor_type\.shape\.dim$", r"differ in rank",
     "trip count and condition of a Loop may have rank 1 and one element; its body is given scalars"),
    (r"graph\.sparse_initializer\.values\.name$", r"type case mismatch",
     "a sparse initializer is a dense tensor to those who read it, as an input of its name is"),
]

OPERATORS = [
    (r"^Split$", r"evenly", "the last part is smaller, as from version 18 on"),
    (r"^ConvTranspose$", r"differ in rank", "early files list batch and channels in output_shape, too"),
    (r"^Loop$", r"differ in rank",
     "trip count and condition of a Loop may have rank 1 and one element; its body is given scalars"),
    (r"^TreeEnsemble$", r"must have type INTN",
     "a list without elements is a list; the reference takes it for an attribute of another type"),
]


def is_open_zero(what: str) -> bool:
    """A declared 0 is open: exporters write it where a size is not known (docs/inference.md, "Open sizes")."""
    return re.search(r"\bdim(_value| \d+) ?= ?0$", what) is not None


def reason(listed, damaged: str, message: str) -> str | None:
    for place, said, why in listed:
        if re.search(place, damaged) and re.search(said, message):
            return why
    return None
