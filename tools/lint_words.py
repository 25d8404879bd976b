#!/usr/bin/env python3
"""Keeps words that were given up out of names, options and texts: each has another word that the field uses.

A word is added here in the change that replaces its last use. Lines that must name an old word (an option's old name)
end in `retired-word`, or stand in ALLOWED.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What was given up, and what to say.
RETIRED = {
    r"\brewrite/|\brewrite::": "passes/, lower/, autodiff/, compose/",
    r"detours?\b": "no-op elimination (no_ops)",
    r"dealt_streams": "interleaved groups",
    r"image_planes": "NCHW inputs",
    r"image_factors": "squeeze-and-excite",
    r"quantized_sums": "quantised adds",
    r"form_bands": "fuse_inverted_residuals",
    r"form_regions": "fuse_elementwise",
    r"make_byte_tables": "make_lookup_tables",
    r"\blast_conv\b|\bLastConv\b": "NHWC convolution (nhwc_conv, NhwcConv)",
    r"\bConvShape\b": "ConvParams",
    r"\bDealtConcat\b|\bdealt_|\bdeals_out\b": "interleaved groups (InterleavedConcat, shuffles_output)",
    r"\bconv\.bands\b|\bChainBands\b": "tiles of a fused chain (FusedConvChain)",
    r"\b(?:depthwise|pointwise|grouped|windows|lines|dots|winograd)_last\b|\bonly_last_|\bwanted_last_": "*_nhwc",
    r"\bbyte_table|\bByteTable": "lookup table (lookup_table, LookupTable)",
    r"\bconv_bytes|\bdepthwise_quads|\bbyte_quads": "conv_int8, depthwise_vnni, vnni_groups",
    r"\bBrainBits\b|\bHalfBits\b|\bto_halves\b": "Bfloat16Bits, Float16Bits, to_float16",
    r"\bRegion(?:Step|Program|Extent|Operand|Link|Run)\b|\bbind_region\b": "FusedElementwise, Elementwise*",
    r"\bSplit(?:From|Panel|Tiles|Job)\b|\bsplit_pays\b": "bf16x3_*, Bf16x3*",
    r"\bKnown\b(?= (?:of|copy|output|value|facts)\()|\bops::Known\b": "ValueFacts",
    r"\binfer::Findings\b": "infer::InferenceContext",
    r"\bforesee\b|\bis_frugal\b|\bis_hurried\b": "infer_outputs, is_over_bytes, is_over_budget",
    r"\bSizedPlans?\b|\bsized_plans\b": "specialised plans (SpecializedPlans), with guards",
    r"\bLateTypes\b|\blower::Meanings?\b": "LazyTypes, OperatorResolver, ResolvedOperator",
    r"\bgive_back\b|\bgive_back_pages\b": "release, release_pages",
    r"\bCustom(?:Size|Inference|Preparation|Run)\b": "SymbolicDim, ShapeInferenceContext, KernelBuilder, KernelContext",
    r"\bpack_early\b": "prepack",
    r"\bWideArguments\b|\bScratchLayout\b": "ConvertedArguments, ScratchPlanner",
    r"\bkept_boxes\b|\bbetter_places\b|\bopen_beneath\b": "selected boxes, filter_topk, open_confined",
    r"\bbyte_turn\b|\bturn_k_major\b|\bStoreTurned|\bTurned?Rows\b|\bmay_turn\b": "sign_offset, transpose_k_major, transposed, may_reorder",
    r"\bfor_spelled_out\b|spelled_out\.h": "expanded (for_expanded)",
    r"\bcarried up\b": "upgraded",
    r"--plain\b": "--reference",
    r"--pack-early\b": "--prepack",
}
# Files that may name old words: they say what became of them.
ALLOWED = {"tools/lint_words.py", "CHANGELOG.md", "tests/python/test_program.py", "cli/loading.cc"}
ENDINGS = {".cc", ".h", ".c", ".py", ".md", ".txt", ".cmake", ".sh", ".in"}


def files() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.splitlines()
    return [ROOT / name for name in listed if pathlib.Path(name).suffix in ENDINGS or name in ("dev", ".ci/run")]


def main() -> int:
    words = [(re.compile(pattern, re.I), say) for pattern, say in RETIRED.items()]
    problems = []
    for path in files():
        name = str(path.relative_to(ROOT))
        if name in ALLOWED or not path.is_file():
            continue
        for word, say in words:
            if word.search(name):
                problems.append(f"{name}: a file of a retired name; say {say}")
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if line.rstrip().endswith("retired-word"):
                continue
            problems += [f"{name}:{number}: '{found[0]}' is retired; say {say}"
                         for word, say in words if (found := word.search(line))]
    print("\n".join(problems) or "no retired words", file=sys.stderr if problems else sys.stdout)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
