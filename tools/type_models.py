"""Models in the standard's textual syntax for what its suite has no case of with every type: tools/check_types.py.

Of each constraint of an operator, by the kind of value, the body of a model in which {T} stands for an element type and
{N} for its number. Graph inputs are filled with 0, 1, 2 … . `opset` and `ml` are the newest versions where none is given.
"""

from __future__ import annotations

KEEP = "keep = Constant <value = bool {{1}}> ()"
TWICE = "count = Constant <value = int64 {{2}}> ()"

SEQUENCE = "g ({T}[2] x) => (seq({T}[2]) s) {{ s = SequenceConstruct (x, x) }}"
ITEM = "g ({T}[2] x) => ({T}[2] y) {{ one = Constant <value = int64 {{1}}> () s = SequenceConstruct (x, x) y = SequenceAt (s, one) }}"
JOINED = "g ({T}[2] x) => ({T}[4] y) {{ s = SequenceConstruct (x, x) y = ConcatFromSequence <axis = 0> (s) }}"
ERASED = "g ({T}[2] x) => (seq({T}[2]) y) {{ s = SequenceConstruct (x, x) y = SequenceErase (s) }}"
INSERTED = "g ({T}[2] x) => (seq({T}[2]) y) {{ s = SequenceConstruct (x) y = SequenceInsert (s, x) }}"
LENGTH = "g (seq({T}[2]) s) => (int64 n) {{ n = SequenceLength (s) }}"
EMPTY = "g () => (seq({T}[2]) s) {{ s = SequenceEmpty <dtype = {N}> () }}"
MAPPED = (
    "g ({T}[2] x) => (seq({T}[2]) y) {{ s = SequenceConstruct (x, x) "
    "y = SequenceMap <body = b ({T}[2] v) => ({T}[2] w) {{ w = Identity (v) }}> (s) }}"
)
TOGETHER = (
    "g ({T}[2] x, {T}[3] z) => (seq({T}[2]) y) {{ s = SequenceConstruct (x, x) "
    "y = SequenceMap <body = b ({T}[2] v, {T}[3] z) => ({T}[2] w) {{ w = Identity (v) }}> (s, z) }}"
)
LISTS = (
    "g (seq({T}[2]) x) => (seq({T}[2]) y) {{ y = SequenceMap <body = b ({T}[2] v) => ({T}[2] w) {{ w = Identity (v) }}> (x) }}"
)


def over_kinds(text: str, kinds: str) -> dict[str, str]:
    """The model for values of several kinds: {V} is the type of one."""
    types = {"": "{T}[2]", "seq": "seq({T}[2])", "optional": "optional({T}[2])", "optional_seq": "optional(seq({T}[2]))"}
    return {kind: text.replace("{V}", types[kind]) for kind in kinds.split(",")}


# Identity does not take all that Loop does: what enters is handed on as it is.
CARRIED = over_kinds(
    "g ({V} x) => ({V} y) {{ " + TWICE + " " + KEEP + " y = Loop (count, keep, x) <body = b (int64 i, bool c, {V} v) => "
    "(bool o, {V} v) {{ o = Identity (c) }}> }}", ",seq,optional,optional_seq",
)
STACKED = (
    "g ({T}[2] x) => ({T}[2] y, {T}[2,2] s) {{ " + TWICE + " " + KEEP + " y, s = Loop (count, keep, x) <body = b (int64 i, bool c, "
    "{T}[2] v) => (bool o, {T}[2] w, {T}[2] each) {{ o = Identity (c) w = Identity (v) each = Identity (v) }}> }}"
)
SCANNED = (
    "g ({T}[2] z, {T}[3,2] x) => ({T}[2] y, {T}[2,3] s) {{ y, s = Scan <num_scan_inputs = 1, scan_output_axes = [1], body = b "
    "({T}[2] a, {T}[2] v) => ({T}[2] w, {T}[2] each) {{ w = Identity (v) each = Identity (a) }}> (z, x) }}"
)
RANDOM = "g ({T}[2,2] x) => (float[2,2] y) {{ y = {op} <dtype = 1, seed = 1.0> (x) }}"
DRAWN = "g (float[2,2] x) => ({T}[2,2] y) {{ y = {op} <dtype = {N}, seed = 1.0> (x) }}"
SHAPED = "g () => ({T}[2,2] y) {{ y = {op} <dtype = {N}, seed = 1.0, shape = [2, 2]> () }}"

ML = "ai.onnx.ml"

MODELS: dict[tuple[str, str, str], dict[str, str]] = {
    ("", "Attention", "U"): {"": "g (float[1,1,2,4] q, float[1,1,2,4] k, float[1,1,2,4] v, {T}[2,2] m) => (float[1,1,2,4] y) {{ y = Attention (q, k, v, m) }}"},
    ("", "BitCast", "T1"): {"": "g ({T}[4] x) => ({T}[4] y) {{ y = BitCast <to = {N}> (x) }}"},
    ("", "BitCast", "T2"): {"": "g ({T}[4] x) => ({T}[4] y) {{ y = BitCast <to = {N}> (x) }}"},
    ("", "ConcatFromSequence", "T"): {"": JOINED},
    ("", "ConcatFromSequence", "S"): {"seq": JOINED},
    ("", "ConstantOfShape", "T2"): {"": "g () => ({T}[2,3] y) {{ shape = Constant <value_ints = [2, 3]> () y = ConstantOfShape <value = {T}[1] {{1}}> (shape) }}"},
    ("", "Constant", "T"): {"": "g () => ({T}[2] y) {{ y = Constant <value = {T}[2] {{{pair}}}> () }}"},
    ("", "DequantizeLinear", "T2"): {"": "g (int8[2] x, {T} s) => (float[2] y) {{ y = DequantizeLinear <output_dtype = 1> (x, s) }}"},
    ("", "DFT", "T2"): {"": "g (float[1,4,1] x, {T} n) => (y) {{ two = Constant <value = {T} {{2}}> () y = DFT (x, two) }}"},
    ("", "GlobalLpPool", "T"): {"": "g ({T}[1,2,2,2] x) => ({T}[1,2,1,1] y) {{ y = GlobalLpPool (x) }}"},
    ("", "GridSample", "T1"): {"": "g ({T}[1,1,2,2] x) => ({T}[1,1,1,2] y) {{ at = Constant <value = float[1,1,2,2] {{-0.9, -0.9, 0.4, 0.6}}> () y = GridSample <mode = \"nearest\"> (x, at) }}"},
    ("", "Identity", "V"): over_kinds("g ({V} x) => ({V} y) {{ y = Identity (x) }}", ",seq,optional,optional_seq"),
    ("", "If", "V"): {
        **over_kinds(
            "g ({V} x) => ({V} y) {{ " + KEEP + " y = If (keep) <then_branch = t () => ({V} a) {{ l = Constant <value_int = 1> () k = Identity (keep) "
            "a = Loop (l, k, x) <body = b (int64 i, bool c, {V} v) => (bool o, {V} v) {{ o = Identity (c) }}> }}, "
            "else_branch = e () => ({V} b) {{ m = Constant <value_int = 2> () n = Identity (keep) "
            "b = Loop (m, n, x) <body = d (int64 i, bool c, {V} v) => (bool o, {V} v) {{ o = Identity (c) }}> }}> }}",
            ",seq,optional,optional_seq",
        )
    },
    ("", "LayerNormalization", "U"): {"": "g (float[2,4] x, float[4] s) => (float[2,4] y, {T}[2,1] m) {{ y, m = LayerNormalization <stash_type = {N}> (x, s) }}"},
    ("", "LinearAttention", "S"): {"": "g (float[1,2,4] q, float[1,2,4] k, float[1,2,4] v, {T}[1,1,4,4] past) => (y, {T}[1,1,4,4] s) {{ y, s = LinearAttention <q_num_heads = 1, kv_num_heads = 1, update_rule = \"linear\"> (q, k, v, past) }}"},
    ("", "Loop", "V"): {**CARRIED, "": STACKED},
    ("", "MaxRoiPool", "T"): {"": "g ({T}[1,1,4,4] x) => ({T}[1,1,2,2] y) {{ f = Constant <value = float[1,5] {{0.0, 0.0, 0.0, 3.0, 3.0}}> () rois = CastLike (f, x) y = MaxRoiPool <pooled_shape = [2, 2]> (x, rois) }}"},
    ("", "Multinomial", "T1"): {"": "g ({T}[1,3] x) => (int32[1,2] y) {{ y = Multinomial <sample_size = 2, seed = 1.0> (x) }}"},
    ("", "Multinomial", "T2"): {"": "g (float[1,3] x) => ({T}[1,2] y) {{ y = Multinomial <sample_size = 2, seed = 1.0, dtype = {N}> (x) }}"},
    ("", "Optional", "V"): {
        "": "g ({T}[2] x) => (optional({T}[2]) y) {{ y = Optional (x) }}",
        "seq": "g (seq({T}[2]) x) => (optional(seq({T}[2])) y) {{ y = Optional (x) }}",
    },
    ("", "Optional", "O"): {
        "optional": "g ({T}[2] x) => (optional({T}[2]) y) {{ y = Optional (x) }}",
        "optional_seq": "g (seq({T}[2]) x) => (optional(seq({T}[2])) y) {{ y = Optional (x) }}",
    },
    ("", "OptionalGetElement", "O"): {
        "": "g ({T}[2] x) => ({T}[2] y) {{ y = OptionalGetElement (x) }}",
        "seq": "g (seq({T}[2]) x) => (seq({T}[2]) y) {{ y = OptionalGetElement (x) }}",
        "optional": "g (optional({T}[2]) x) => ({T}[2] y) {{ y = OptionalGetElement (x) }}",
        "optional_seq": "g (optional(seq({T}[2])) x) => (seq({T}[2]) y) {{ y = OptionalGetElement (x) }}",
    },
    ("", "OptionalGetElement", "V"): {
        "": "g (optional({T}[2]) x) => ({T}[2] y) {{ y = OptionalGetElement (x) }}",
        "seq": "g (optional(seq({T}[2])) x) => (seq({T}[2]) y) {{ y = OptionalGetElement (x) }}",
    },
    ("", "OptionalHasElement", "O"): over_kinds("g ({V} x) => (bool y) {{ y = OptionalHasElement (x) }}", ",seq,optional,optional_seq"),
    ("", "RandomNormal", "T"): {"": SHAPED.replace("{op}", "RandomNormal")},
    ("", "RandomUniform", "T"): {"": SHAPED.replace("{op}", "RandomUniform")},
    ("", "RandomNormalLike", "T1"): {"": RANDOM.replace("{op}", "RandomNormalLike")},
    ("", "RandomNormalLike", "T2"): {"": DRAWN.replace("{op}", "RandomNormalLike")},
    ("", "RandomUniformLike", "T1"): {"": RANDOM.replace("{op}", "RandomUniformLike")},
    ("", "RandomUniformLike", "T2"): {"": DRAWN.replace("{op}", "RandomUniformLike")},
    ("", "Resize", "T2"): {"": "g (float[1,1,4,4] x) => (y) {{ f = Constant <value = float[8] {{0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0}}> () roi = Cast <to = {N}> (f) size = Constant <value_ints = [1, 1, 2, 2]> () y = Resize <mode = \"linear\", coordinate_transformation_mode = \"tf_crop_and_resize\"> (x, roi, , size) }}"},
    ("", "Scan", "V"): {"": SCANNED},
    ("", "Scatter", "T"): {"opset": "10", "": "g ({T}[3] x, {T}[2] u) => ({T}[3] y) {{ i = Constant <value = int64[2] {{2, 0}}> () y = Scatter (x, i, u) }}"},
    ("", "Scatter", "Tind"): {"opset": "10", "": "g (float[3] x, float[1] u) => (float[3] y) {{ i = Constant <value = {T}[1] {{2}}> () y = Scatter (x, i, u) }}"},
    ("", "SequenceAt", "T"): {"": ITEM},
    ("", "SequenceAt", "S"): {"seq": ITEM},
    ("", "SequenceAt", "I"): {"": "g (float[2] x, {T} i) => (float[2] y) {{ s = SequenceConstruct (x, x) y = SequenceAt (s, i) }}"},
    ("", "SequenceConstruct", "T"): {"": SEQUENCE},
    ("", "SequenceConstruct", "S"): {"seq": SEQUENCE},
    ("", "SequenceEmpty", "S"): {"seq": EMPTY},
    ("", "SequenceErase", "S"): {"seq": ERASED},
    ("", "SequenceErase", "I"): {"": "g (float[2] x, {T} i) => (seq(float[2]) y) {{ s = SequenceConstruct (x, x) y = SequenceErase (s, i) }}"},
    ("", "SequenceInsert", "S"): {"seq": INSERTED},
    ("", "SequenceInsert", "T"): {"": INSERTED},
    ("", "SequenceInsert", "I"): {"": "g (float[2] x, {T} i) => (seq(float[2]) y) {{ s = SequenceConstruct (x, x) y = SequenceInsert (s, x, i) }}"},
    ("", "SequenceLength", "S"): {"seq": LENGTH},
    ("", "SequenceMap", "S"): {"seq": MAPPED},
    ("", "SequenceMap", "V"): {"": TOGETHER, "seq": LISTS},
    ("", "SplitToSequence", "S"): {"seq": "g ({T}[4] x) => (seq({T}[N]) y) {{ y = SplitToSequence <axis = 0> (x) }}"},
    ("", "TfIdfVectorizer", "T"): {"": 'g ({T}[4] x) => (float[2] y) {{ y = TfIdfVectorizer <max_gram_length = 1, min_gram_length = 1, max_skip_count = 0, mode = "TF", ngram_counts = [0], ngram_indexes = [0, 1], {pool}> (x) }}'},
    ("", "Upsample", "T"): {"opset": "9", "": 'g ({T}[1,1,2,2] x) => ({T}[1,1,4,4] y) {{ s = Constant <value = float[4] {{1.0, 1.0, 2.0, 2.0}}> () y = Upsample (x, s) }}'},
    (ML, "CategoryMapper", "T1"): {"": "g ({T}[2] x) => ({U}[2] y) {{ y = ai.onnx.ml.CategoryMapper <cats_int64s = [0, 1], cats_strings = [\"0\", \"1\"]> (x) }}"},
    (ML, "CategoryMapper", "T2"): {"": "g ({U}[2] x) => ({T}[2] y) {{ y = ai.onnx.ml.CategoryMapper <cats_int64s = [0, 1], cats_strings = [\"0\", \"1\"]> (x) }}"},
    (ML, "FeatureVectorizer", "T1"): {"": "g ({T}[2,3] x, {T}[2,2] z) => (float[2,5] y) {{ y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [3, 2]> (x, z) }}"},
    (ML, "Imputer", "T"): {"": "g ({T}[2,3] x) => ({T}[2,3] y) {{ y = ai.onnx.ml.Imputer <{imputed}> (x) }}"},
    (ML, "LabelEncoder", "T1"): {"": "g ({T}[3] x) => (string[3] y) {{ y = ai.onnx.ml.LabelEncoder <keys_tensor = {T}[2] {{{pair}}}, values_tensor = string[2] {{\"a\", \"b\"}}, default_tensor = string[1] {{\"c\"}}> (x) }}"},
    (ML, "LabelEncoder", "T2"): {"": "g (string[3] x) => ({T}[3] y) {{ y = ai.onnx.ml.LabelEncoder <keys_tensor = string[2] {{\"0\", \"1\"}}, values_tensor = {T}[2] {{{pair}}}, default_tensor = {T}[1] {{{single}}}> (x) }}"},
    (ML, "LinearClassifier", "T1"): {"": "g ({T}[2,3] x) => (int64[2] y, float[2,2] z) {{ y, z = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 0.5, 0.25, -1.0, 0.5, 0.25], intercepts = [0.0, 1.0], classlabels_ints = [3, 4]> (x) }}"},
    (ML, "LinearClassifier", "T2"): {"": "g (float[2,3] x) => ({T}[2] y, float[2,2] z) {{ y, z = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 0.5, 0.25, -1.0, 0.5, 0.25], intercepts = [0.0, 1.0], {labels}> (x) }}"},
    (ML, "LinearRegressor", "T"): {"": "g ({T}[2,3] x) => (float[2,1] y) {{ y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 0.5, 0.25], intercepts = [1.0]> (x) }}"},
    (ML, "Normalizer", "T"): {"": "g ({T}[2,3] x) => (float[2,3] y) {{ y = ai.onnx.ml.Normalizer <norm = \"L2\"> (x) }}"},
    (ML, "OneHotEncoder", "T"): {"": "g ({T}[3] x) => (float[3,2] y) {{ y = ai.onnx.ml.OneHotEncoder <{cats}> (x) }}"},
    (ML, "SVMClassifier", "T1"): {"": "g ({T}[2,2] x) => (int64[2] y, float[2,2] z) {{ y, z = ai.onnx.ml.SVMClassifier <kernel_type = \"LINEAR\", classlabels_ints = [0, 1], coefficients = [1.0, -1.0], rho = [0.5], support_vectors = [1.0, 2.0, 3.0, 4.0], vectors_per_class = [1, 1], kernel_params = [0.0, 0.0, 3.0]> (x) }}"},
    (ML, "SVMClassifier", "T2"): {"": "g (float[2,2] x) => ({T}[2] y, float[2,2] z) {{ y, z = ai.onnx.ml.SVMClassifier <kernel_type = \"LINEAR\", {labels}, coefficients = [1.0, -1.0], rho = [0.5], support_vectors = [1.0, 2.0, 3.0, 4.0], vectors_per_class = [1, 1], kernel_params = [0.0, 0.0, 3.0]> (x) }}"},
    (ML, "SVMRegressor", "T"): {"": "g ({T}[2,2] x) => (float[2,1] y) {{ y = ai.onnx.ml.SVMRegressor <kernel_type = \"LINEAR\", n_supports = 1, coefficients = [1.0], rho = [0.5], support_vectors = [1.0, 2.0], kernel_params = [0.0, 0.0, 3.0]> (x) }}"},
    (ML, "Scaler", "T"): {"": "g ({T}[2,3] x) => (float[2,3] y) {{ y = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (x) }}"},
    (ML, "TreeEnsembleRegressor", "T"): {"ml": "3", "": "g ({T}[2,2] x) => (float[2,1] y) {{ y = ai.onnx.ml.TreeEnsembleRegressor <{tree}, target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0], target_weights = [2.0, 3.0]> (x) }}"},
    (ML, "TreeEnsembleClassifier", "T1"): {"ml": "3", "": "g ({T}[2,2] x) => (int64[2] y, float[2,2] z) {{ y, z = ai.onnx.ml.TreeEnsembleClassifier <{tree}, class_treeids = [0, 0], class_nodeids = [1, 2], class_ids = [0, 1], class_weights = [2.0, 3.0], classlabels_int64s = [5, 6]> (x) }}"},
    (ML, "TreeEnsembleClassifier", "T2"): {"ml": "3", "": "g (float[2,2] x) => ({T}[2] y, float[2,2] z) {{ y, z = ai.onnx.ml.TreeEnsembleClassifier <{tree}, class_treeids = [0, 0], class_nodeids = [1, 2], class_ids = [0, 1], class_weights = [2.0, 3.0], {tree_labels}> (x) }}"},
}

TREE = (
    "nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [1, 0, 0], nodes_values = [1.5, 0.0, 0.0], "
    'nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0]'
)


def text_of(model: str, element: str, number: int) -> str:
    """The model for one element type."""
    whole = element.startswith(("int", "uint"))
    values = {"string": ['"0"', '"1"']}.get(element, ["0", "1"] if whole else ["0.0", "1.0"])
    text = element == "string"
    return model.format(
        T=element, N=number, U="int64" if text else "string", pair=", ".join(values), single=values[0],
        pool='pool_strings = ["0", "1"]' if text else "pool_int64s = [0, 1]",
        imputed="imputed_value_int64s = [7], replaced_value_int64 = 1" if whole else "imputed_value_floats = [7.0], replaced_value_float = 1.0",
        labels='classlabels_strings = ["a", "b"]' if text else "classlabels_ints = [3, 4]",
        tree_labels='classlabels_strings = ["a", "b"]' if text else "classlabels_int64s = [3, 4]",
        cats='cats_strings = ["0", "1"]' if text else "cats_int64s = [0, 1]", tree=TREE,
    )  # fmt: skip
