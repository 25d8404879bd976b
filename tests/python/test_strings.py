"""StringNormalizer against what Python makes of every letter."""

from __future__ import annotations

import re
import sys
import unicodedata

import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import generate_letter_cases  # noqa: E402

TABLE = ROOT / "src" / "ops" / "shared" / "letter_cases.h"
# Letters come in every release of Unicode: of another than the table's, those that are old enough are compared.
SAME_UNICODE = f"Unicode {unicodedata.unidata_version}." in TABLE.read_text()
LETTERS = [chr(code) for code in range(1, 0x110000 if SAME_UNICODE else 0x530) if not 0xD800 <= code < 0xE000]
WORDS = ["ΟΔΥΣΣΕΥΣ ΣΑΣ", "Σ", "Α\u0301Σ\u0301", "ΑΣ.Β", "ΑΣ.", "aΣ\u00adb", "Straße", "ﬃ", "İI", "ǆ", "\U00010428Σ", "ʰΣ",
         "'Σ", "A\u02b0Σ\u02b0", "\U0001e900Σ\U0001e922"]


def normalized(sardonyx, save, folder, texts, **attributes):
    words = ", ".join(f'{name} = "{value}"' for name, value in attributes.items())
    model = save('<ir_version: 10, opset_import: ["" : 21]>\n'
                 f"g (string[n] x) => (string[m] y) {{ y = StringNormalizer<{words}>(x) }}")
    return sardonyx.outputs(model, {"x": np.array(texts)}, folder)[0].tolist()


@pytest.mark.parametrize("action", ["UPPER", "LOWER"])
@pytest.mark.parametrize("locale", ["en_US", "de_DE.UTF-8", "el"])
def test_every_letter(sardonyx, save, tmp_path, action, locale):
    texts = LETTERS + WORDS if locale == "en_US" else WORDS
    wanted = [text.upper() if action == "UPPER" else text.lower() for text in texts]
    found = normalized(sardonyx, save, tmp_path, texts, case_change_action=action, locale=locale)
    assert [(text, a, b) for text, a, b in zip(texts, found, wanted, strict=True) if a != b] == []


def test_turkish_letters(sardonyx, save, tmp_path):
    for action, texts, wanted in (("LOWER", ["IİI\u0307ß", "ΣΑΣ"], ["ıiiß", "σας"]), ("UPPER", ["iıß"], ["İISS"])):
        assert normalized(sardonyx, save, tmp_path, texts, case_change_action=action, locale="tr_TR") == wanted


def test_the_table_is_what_its_tool_writes():
    """To the letter with the same Unicode; another one adds runs of letters, and changes hardly any."""
    written, table = generate_letter_cases.content(), TABLE.read_text()
    rows, wanted = (set(re.findall(r"\{0x.*?\}", text)) for text in (table, written))
    assert len(rows) > 900
    assert table == written if SAME_UNICODE else len(rows & wanted) > 0.9 * len(rows)
