"""How nodes of ai.onnx.ml are drawn."""

from __future__ import annotations

import numpy as np
from drawing import Draw, Hints, Node

HINTS = Hints()
of = HINTS.of
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
KEYS = ["a", "b", "c", "d"]


def matrix(d: Draw, dtype, columns: int, low: float = -4, high: float = 4):
    return d.array(dtype, [d.between(1, 4), columns], low, high, edges=0)


def reals(d: Draw, count: int, low: float = -2, high: float = 2) -> list[float]:
    return [d.real(low, high) for _ in range(count)]


@of("ArrayFeatureExtractor")
def extractor(d: Draw) -> Node:
    shape = d.shape(2, 3)
    if shape[-1] == 0:
        shape[-1] = 2
    return Node([d.array(d.dtype("X"), shape), d.indices(np.int64, [1, d.between(1, 4)], shape[-1], False)])


@of("Binarizer")
def binarizer(d: Draw) -> Node:
    return Node([d.array(d.dtype("X"), d.shape(1, 2), edges=0)], d.attributes(threshold=d.real()))


@of("CastMap")
def cast_map(d: Draw) -> Node:
    keys = d.random.sample(range(6), 3)
    texts = d.maybe()
    value = {key: str(d.between(0, 9)) if texts else d.real() for key in keys}
    made = {"cast_to": d.one_of("TO_FLOAT", "TO_INT64") if texts else d.one_of("TO_FLOAT", "TO_STRING", "TO_INT64")}
    if d.maybe():
        made.update(map_form="SPARSE", max_map=8)
    return Node([value], made)


@of("CategoryMapper")
def category_mapper(d: Draw) -> Node:
    made = {"cats_int64s": [1, 2, 3], "cats_strings": ["a", "b", "cat"],
            **d.attributes(default_int64=d.between(-3, 9), default_string="none")}
    x = d.array(d.one_of(np.object_, np.int64), d.shape(1, 2), 0, 5, edges=0)
    return Node([x], made)


@of("DictVectorizer")
def dict_vectorizer(d: Draw) -> Node:
    if d.maybe():
        return Node([{key: d.real() for key in d.random.sample(KEYS, 2)}], {"string_vocabulary": KEYS})
    return Node([{key: d.real() for key in d.random.sample(range(4), 2)}], {"int64_vocabulary": [3, 0, 2, 1]})


@of("FeatureVectorizer")
def feature_vectorizer(d: Draw) -> Node:
    rows, widths = d.between(1, 3), [d.between(1, 3) for _ in range(d.between(1, 3))]
    dtype = d.dtype("X")
    return Node([d.array(dtype, [rows, width], edges=0) for width in widths], {"inputdimensions": widths})


@of("Imputer")
def imputer(d: Draw) -> Node:
    width = d.between(1, 4)
    one = d.maybe(0.3)
    if d.maybe():
        x = matrix(d, np.float32, width)
        flat = x.reshape(-1)
        missing = np.nan if d.maybe() else flat[0]
        flat[d.between(0, flat.size - 1)] = missing
        return Node([x], {"imputed_value_floats": reals(d, 1 if one else width), "replaced_value_float": float(missing)})
    x = matrix(d, np.int64, width, -2, 2)
    return Node([x], {"imputed_value_int64s": [d.between(5, 9) for _ in range(1 if one else width)],
                      "replaced_value_int64": int(x[0, 0])})


@of("LabelEncoder")
def label_encoder(d: Draw) -> Node:
    shape = d.shape(1, 2)
    if d.version == 1:
        made = {"classes_strings": ["a", "b", "cat"], **d.attributes(default_int64=-7, default_string="none")}
        return Node([d.array(d.one_of(np.object_, np.int64), shape, -1, 4, edges=0)], made)
    kinds = {"strings": (["a", "b", "cat"], np.object_), "int64s": ([3, 1, 2], np.int64),
             "floats": ([0.5, -1.0, float("nan")], np.float32)}
    source, target = d.one_of(*kinds), d.one_of(*kinds)
    if d.version == 2 and source == target:
        target = {"strings": "int64s", "int64s": "floats", "floats": "strings"}[source]
    keys, dtype = kinds[source]
    x = d.array(dtype, shape, -1, 4, edges=0)
    if source == "floats" and x.size:
        x.reshape(-1)[:2] = [d.one_of(0.5, np.nan), -1.0][:x.size]
    return Node([x], {f"keys_{source}": keys, f"values_{target}": kinds[target][0],
                      **d.attributes(default_int64=-7, default_string="none", default_float=-0.5)})


@of("LinearClassifier")
def linear_classifier(d: Draw) -> Node:
    classes, width = d.between(2, 4), d.between(1, 3)
    labels = {"classlabels_ints": d.random.sample(range(-5, 9), classes)} if d.maybe() else {"classlabels_strings": KEYS[:classes]}
    made = {"coefficients": reals(d, classes * width), "intercepts": reals(d, classes), "post_transform": d.one_of(*TRANSFORMS[:4]),
            **labels, **d.attributes(multi_class=d.between(0, 1))}
    return Node([matrix(d, d.dtype("X", "float", "double", "int64", "int32"), width)], made, 2)


@of("LinearRegressor")
def linear_regressor(d: Draw) -> Node:
    targets, width = d.between(1, 3), d.between(1, 3)
    made = {"coefficients": reals(d, targets * width), "targets": targets, "post_transform": d.one_of(*TRANSFORMS[:4]),
            **d.attributes(intercepts=reals(d, targets))}
    return Node([matrix(d, d.dtype("X", "float"), width)], made)


@of("Normalizer")
def normalizer(d: Draw) -> Node:
    return Node([matrix(d, d.dtype("X"), d.between(1, 4))], d.attributes(norm=d.one_of("MAX", "L1", "L2")))


@of("OneHotEncoder")
def one_hot_encoder(d: Draw) -> Node:
    made = d.attributes(zeros=1)
    if d.maybe(0.4):
        return Node([d.array(np.object_, d.shape(1, 2))], {"cats_strings": ["a", "b", "cat"], **made})
    return Node([d.array(d.dtype("X", "int64", "int32", "float", "double"), d.shape(1, 2), 0, 4, edges=0)],
                {"cats_int64s": [0, 3, 1, 2, 4, -1, -2, -3, -4], **made})


@of("Scaler")
def scaler(d: Draw) -> Node:
    width = d.between(1, 4)
    return Node([matrix(d, d.dtype("X"), width)], {"offset": reals(d, width if d.maybe() else 1), "scale": reals(d, width)}
                if d.maybe() else {"offset": reals(d, 1), "scale": reals(d, 1)})


@of("SVMRegressor")
def svm_regressor(d: Draw) -> Node:
    width, supports = d.between(1, 3), d.between(1, 4)
    kind = d.one_of("LINEAR", "POLY", "RBF", "SIGMOID")
    made = {"kernel_type": kind, "kernel_params": [d.real(0.1, 1), d.real(-1, 1), float(d.between(1, 3))],
            "post_transform": "NONE", "rho": reals(d, 1), **d.attributes(one_class=d.between(0, 1))}
    if d.maybe(0.7):
        made.update(n_supports=supports, support_vectors=reals(d, supports * width), coefficients=reals(d, supports))
    else:
        made.update(n_supports=0, coefficients=reals(d, width), kernel_type="LINEAR")
    return Node([matrix(d, d.dtype("X", "float"), width)], made)


@of("SVMClassifier")
def svm_classifier(d: Draw) -> Node:
    width, classes = d.between(1, 3), d.between(2, 3)
    each = [d.between(1, 2) for _ in range(classes)]
    supports, pairs = sum(each), classes * (classes - 1) // 2
    labels = {"classlabels_ints": d.random.sample(range(9), classes)} if d.maybe() else {"classlabels_strings": KEYS[:classes]}
    made = {"kernel_type": d.one_of("LINEAR", "POLY", "RBF", "SIGMOID"), **labels,
            "kernel_params": [d.real(0.1, 1), d.real(-1, 1), float(d.between(1, 3))], "vectors_per_class": each,
            "support_vectors": reals(d, supports * width), "coefficients": reals(d, supports * (classes - 1)),
            "rho": reals(d, pairs), "post_transform": d.one_of("NONE", "LOGISTIC", "SOFTMAX") if classes > 2 else "NONE"}
    if d.maybe(0.4):
        made.update(prob_a=reals(d, pairs), prob_b=reals(d, pairs), post_transform="NONE")
    return Node([matrix(d, d.dtype("X", "float"), width)], made, 2)


class Trees:
    """A few complete trees in the lists that ensembles are made of."""

    def __init__(self, d: Draw, features: int):
        self.tree, self.node, self.feature, self.value, self.mode, self.true, self.false = ([] for _ in range(7))
        self.missing, self.leaves = [], []  # leaves: (tree, node)
        modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
        one_mode = d.one_of(*modes)
        alike = d.maybe()
        for tree in range(d.between(1, 3)):
            depth = d.between(0, 3)
            inner = 2**depth - 1
            for node in range(2 * inner + 1):
                leaf = node >= inner
                self.tree.append(tree)
                self.node.append(node)
                self.feature.append(0 if leaf else d.between(0, features - 1))
                self.value.append(0.0 if leaf else float(d.between(-2, 2)))
                self.mode.append("LEAF" if leaf else one_mode if alike else d.one_of(*modes))
                self.true.append(0 if leaf else 2 * node + 1)
                self.false.append(0 if leaf else 2 * node + 2)
                self.missing.append(0 if leaf else d.between(0, 1))
                if leaf:
                    self.leaves.append((tree, node))

    def attributes(self, d: Draw) -> dict:
        return {"nodes_treeids": self.tree, "nodes_nodeids": self.node, "nodes_featureids": self.feature,
                "nodes_values": self.value, "nodes_modes": self.mode, "nodes_truenodeids": self.true,
                "nodes_falsenodeids": self.false, **d.attributes(nodes_missing_value_tracks_true=self.missing)}


def features_of(d: Draw, width: int):
    x = matrix(d, d.dtype("X", "float", "double") if d.version >= 3 else np.float32, width, -3, 3)
    x = np.round(x)
    if d.maybe(0.3):
        x.reshape(-1)[0] = np.nan
    return x


@of("TreeEnsembleRegressor")
def tree_regressor(d: Draw) -> Node:
    width, targets = d.between(1, 3), d.between(1, 3)
    trees = Trees(d, width)
    leaves = [(t, n, target) for t, n in trees.leaves for target in range(targets)]
    made = {**trees.attributes(d), "n_targets": targets, "target_treeids": [leaf[0] for leaf in leaves],
            "target_nodeids": [leaf[1] for leaf in leaves], "target_ids": [leaf[2] for leaf in leaves],
            "target_weights": reals(d, len(leaves)), "post_transform": d.one_of("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"),
            **d.attributes(aggregate_function=d.one_of("SUM", "AVERAGE", "MIN", "MAX"), base_values=reals(d, targets))}
    return Node([features_of(d, width)], made)


@of("TreeEnsembleClassifier")
def tree_classifier(d: Draw) -> Node:
    width, classes = d.between(1, 3), d.between(2, 4)
    trees = Trees(d, width)
    binary = classes == 2 and d.maybe()  # one weight decides
    leaves = [(t, n, c) for t, n in trees.leaves for c in ([0] if binary else range(classes))]
    labels = {"classlabels_int64s": d.random.sample(range(9), classes)} if d.maybe() else {"classlabels_strings": KEYS[:classes]}
    made = {**trees.attributes(d), **labels, "class_treeids": [leaf[0] for leaf in leaves],
            "class_nodeids": [leaf[1] for leaf in leaves], "class_ids": [leaf[2] for leaf in leaves],
            "class_weights": reals(d, len(leaves), -1 if not binary else 0, 1),
            "post_transform": d.one_of("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")}
    if binary:  # no text says what becomes of one score for two classes
        made["post_transform"] = d.one_of("NONE", "LOGISTIC")
    else:
        made.update(d.attributes(base_values=reals(d, classes)))
    return Node([features_of(d, width)], made, 2)


@of("TreeEnsemble")
def tree_ensemble(d: Draw) -> Node:
    width, targets = d.between(1, 3), d.between(1, 3)
    dtype = d.dtype("X", "float", "double")
    splits, features, modes, true, false, true_leaf, false_leaf, roots = ([] for _ in range(8))
    leaf_count = 0

    def add(depth: int) -> tuple[int, int]:
        """(index, is a leaf) of a new subtree."""
        nonlocal leaf_count
        if depth == 0:
            leaf_count += 1
            return leaf_count - 1, 1
        at = len(splits)
        for values, value in ((splits, float(d.between(-2, 2))), (features, d.between(0, width - 1)), (modes, d.between(0, 5)),
                              (true, 0), (false, 0), (true_leaf, 0), (false_leaf, 0)):
            values.append(value)
        true[at], true_leaf[at] = add(depth - d.between(1, depth))
        false[at], false_leaf[at] = add(depth - d.between(1, depth))
        return at, 0

    for _ in range(d.between(1, 3)):
        roots.append(len(splits))
        add(d.between(1, 3))
    made = {"tree_roots": roots, "nodes_splits": ("tensor", np.array(splits, dtype)), "nodes_featureids": features,
            "nodes_modes": ("tensor", np.array(modes, np.uint8)), "nodes_truenodeids": true, "nodes_falsenodeids": false,
            "nodes_trueleafs": true_leaf, "nodes_falseleafs": false_leaf, "n_targets": targets,
            "leaf_targetids": [d.between(0, targets - 1) for _ in range(leaf_count)],
            "leaf_weights": ("tensor", np.array(reals(d, leaf_count), dtype)),
            **d.attributes(aggregate_function=d.between(0, 3), post_transform=d.one_of(0, 1, 2, 3),
                           nodes_missing_value_tracks_true=[d.between(0, 1) for _ in splits])}
    x = np.round(d.array(dtype, [d.between(1, 4), width], -3, 3, edges=0))
    return Node([x.astype(dtype)], made)


@of("ZipMap")
def zip_map(d: Draw) -> Node:
    classes = d.between(1, 4)
    labels = {"classlabels_int64s": d.random.sample(range(9), classes)} if d.maybe() else {"classlabels_strings": KEYS[:classes]}
    return Node([matrix(d, np.float32, classes)], labels)
