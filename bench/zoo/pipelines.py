"""Pipelines of scikit-learn, LightGBM and XGBoost, trained on scikit-learn's data sets and carried over by skl2onnx
and onnxmltools; what these never write comes by hand from the trained estimators' arrays."""

from __future__ import annotations

import re
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper
from sklearn import (compose, datasets, decomposition, ensemble, feature_extraction, impute, linear_model, naive_bayes,
                     neighbors, neural_network, pipeline, preprocessing, svm, tree)

from .net import Built, ir_version

ROWS = 64  # that a model is tried on


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return x.astype(np.float32), y


def converted(estimator, x: np.ndarray, expected: list[np.ndarray], name: str = "X", opset: int = 17, ml: int = 3,
              options: dict | None = None) -> Built:
    """By skl2onnx, with rows free."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    kind = StringTensorType if x.dtype.kind == "U" else FloatTensorType
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = to_onnx(estimator, initial_types=[(name, kind([None, *x.shape[1:]]))], options=options,
                        target_opset={"": opset, "ai.onnx.ml": ml})
    return finished(model, {name: x[:ROWS]}, expected)


def finished(model: onnx.ModelProto, inputs: dict[str, np.ndarray], expected: list[np.ndarray]) -> Built:
    names = [output.name for output in model.graph.output]
    return Built(model, inputs, expected=dict(zip(names, expected)))


def classified(estimator, x: np.ndarray) -> list[np.ndarray]:
    return [estimator.predict(x[:ROWS]), estimator.predict_proba(x[:ROWS])]


def valued(estimator, x: np.ndarray) -> list[np.ndarray]:
    return [np.asarray(estimator.predict(x[:ROWS])).reshape(-1, 1)]


def forest(trees: int = 100, depth: int | None = None) -> Built:
    """Pictures of digits; labels are names, probabilities come as maps."""
    x, y = data("digits")
    names = np.array("zero one two three four five six seven eight nine".split())[y]
    model = ensemble.RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(x, names)
    return converted(model, x, classified(model, x))


def forest_v5(trees: int = 30) -> Built:
    """The same trees as TreeEnsemble of ai.onnx.ml 5, by hand: leaves that hold a weight for one class each."""
    x, y = data("digits")
    model = ensemble.ExtraTreesClassifier(trees, max_depth=7, random_state=1).fit(x, y)
    columns: dict[str, list] = {key: [] for key in ("feature", "split", "yes", "no", "yes_leaf", "no_leaf")}
    roots, targets, weights = [], [], []

    def leaf(shares: np.ndarray) -> int:
        """A leaf speaks for one class; one that is not sure becomes a chain of nodes that always go on."""
        targets.append(int(shares.argmax()))
        weights.append(float(shares.max()) / trees)
        return len(targets) - 1

    for one in model.estimators_:
        inner = one.tree_
        place = {}
        roots.append(len(columns["feature"]))
        order = [node for node in range(inner.node_count) if inner.children_left[node] >= 0]
        for node in order:
            place[node] = roots[-1] + len(place)
        for node in order:
            columns["feature"].append(int(inner.feature[node]))
            columns["split"].append(float(np.nextafter(np.float32(inner.threshold[node]), np.float32(np.inf))
                                          if np.float32(inner.threshold[node]) < inner.threshold[node]
                                          else np.float32(inner.threshold[node])))
            for side, child in (("yes", inner.children_left[node]), ("no", inner.children_right[node])):
                is_leaf = inner.children_left[child] < 0
                columns[side].append(leaf(inner.value[child][0]) if is_leaf else place[child])
                columns[side + "_leaf"].append(int(is_leaf))
    expected = np.zeros((ROWS, 10))
    for one in model.estimators_:
        shares = one.tree_.value[one.tree_.apply(x[:ROWS])][:, 0]
        expected[np.arange(ROWS), shares.argmax(1)] += shares.max(1) / trees
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["scores"], domain="ai.onnx.ml", n_targets=10, aggregate_function=1, post_transform=0,
        tree_roots=roots, nodes_featureids=columns["feature"], nodes_truenodeids=columns["yes"],
        nodes_falsenodeids=columns["no"], nodes_trueleafs=columns["yes_leaf"], nodes_falseleafs=columns["no_leaf"],
        nodes_modes=helper.make_tensor("modes", TensorProto.UINT8, [len(columns["feature"])],
                                       np.zeros(len(columns["feature"]), np.uint8)),
        nodes_splits=helper.make_tensor("splits", TensorProto.FLOAT, [len(columns["split"])], columns["split"]),
        leaf_targetids=targets, leaf_weights=helper.make_tensor("weights", TensorProto.FLOAT, [len(weights)], weights))
    best = helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0)
    graph = helper.make_graph(
        [node, best], "forest_v5", [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["rows", 64])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, ["rows"]),
         helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", 10])])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
    return finished(helper.make_model(graph, opset_imports=opsets, ir_version=ir_version(opsets)), {"X": x[:ROWS]},
                    [expected.argmax(1), expected])


def logistic() -> Built:
    """Gaps filled, scaled, classified; the probabilities as a tensor."""
    x, y = data("breast_cancer")
    x[::5, 3] = np.nan
    x[::7, 20] = np.nan
    model = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler(),
                                   linear_model.LogisticRegression(max_iter=1000)).fit(x, y)
    return converted(model, x, classified(model, x), opset=9, ml=1, options={"zipmap": False})


def ridge() -> Built:
    """Rows made of length one, polynomials of them, a linear regression."""
    x, y = data("diabetes")
    model = pipeline.make_pipeline(preprocessing.Normalizer(), preprocessing.PolynomialFeatures(2),
                                   linear_model.Ridge(0.01)).fit(x, y)
    return converted(model, x, valued(model, x), opset=12, ml=2)


def boosting() -> Built:
    """Gradient boosted trees for a number, after columns were scaled to a range."""
    x, y = data("diabetes")
    model = ensemble.GradientBoostingRegressor(n_estimators=60, random_state=3).fit(x, y)
    return converted(model, x, valued(model, x), opset=15, ml=2)


def boosted_classes() -> Built:
    """Gradient boosted trees for three classes."""
    x, y = data("wine")
    model = ensemble.GradientBoostingClassifier(n_estimators=30, random_state=4).fit(x, y)
    return converted(model, x, classified(model, x), options={"zipmap": False})


def support_vectors() -> Built:
    """An SVM with probabilities among three kinds of wine."""
    x, y = data("wine")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVC(probability=True, random_state=5)).fit(x, y)
    return converted(model, x, classified(model, x), opset=11, ml=1, options={"zipmap": False})


def support_regression() -> Built:
    x, y = data("diabetes")
    model = pipeline.make_pipeline(preprocessing.MinMaxScaler(), svm.SVR(C=100.0)).fit(x, y)
    return converted(model, x, valued(model, x), opset=18)


def neighbours() -> Built:
    """Nearest neighbours: distances by a Scan, then TopK and votes."""
    x, y = data("iris")
    model = neighbors.KNeighborsClassifier(5).fit(x, y)
    return converted(model, x, classified(model, x), opset=13, ml=2, options={"zipmap": False})


def perceptron() -> Built:
    """Principal components before a small network."""
    x, y = data("digits")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pipeline.make_pipeline(preprocessing.MinMaxScaler(), decomposition.PCA(20, random_state=6),
                                       neural_network.MLPClassifier((64, 32), max_iter=60, random_state=6)).fit(x, y)
    return converted(model, x, classified(model, x), options={"zipmap": False})


def bayes() -> Built:
    x, y = data("iris")
    model = naive_bayes.GaussianNB().fit(x, y)
    return converted(model, x, classified(model, x), options={"zipmap": False})


def votes() -> Built:
    """A vote of three estimators, one of them a tree."""
    x, y = data("wine")
    model = ensemble.VotingClassifier([
        ("tree", tree.DecisionTreeClassifier(max_depth=4, random_state=7)),
        ("linear", pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())),
        ("bayes", naive_bayes.GaussianNB())], voting="soft", flatten_transform=False).fit(x, y)
    return converted(model, x, classified(model, x), options={"zipmap": False})


def columns() -> Built:
    """Words and numbers in columns: one-hot codes and scaled numbers, for a linear classifier; its labels are words."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    x, y = data("wine")
    shades = np.array(["pale", "clear", "deep", "dark"])[np.digitize(x[:, 9], [3, 5, 8])]
    sizes = np.array(["low", "high"])[(x[:, 12] > 700).astype(int)]
    names = ("shade", "size", "alcohol", "hue")
    table = np.empty((len(y), 4), object)
    for index, column in enumerate((shades, sizes, x[:, 0], x[:, 10])):
        table[:, index] = column
    labels = np.array(["red", "green", "blue"])[y]
    model = pipeline.make_pipeline(
        compose.ColumnTransformer([("words", preprocessing.OneHotEncoder(handle_unknown="ignore"), [0, 1]),
                                   ("numbers", preprocessing.RobustScaler(), [2, 3])]),
        linear_model.LogisticRegression(max_iter=500)).fit(table, labels)
    kinds = [(name, (StringTensorType if index < 2 else FloatTensorType)([None, 1]))
             for index, name in enumerate(names)]
    onx = to_onnx(model, initial_types=kinds, target_opset={"": 17, "ai.onnx.ml": 3})
    part = table[:ROWS]
    inputs = {name: part[:, index:index + 1].astype(str if index < 2 else np.float32)
              for index, name in enumerate(names)}
    return finished(onx, inputs, [model.predict(part), model.predict_proba(part)])


def sentences() -> tuple[np.ndarray, np.ndarray]:
    """What scikit-learn's own descriptions of its data sets say, and of which."""
    texts, kinds = [], []
    for kind in ("iris", "wine", "digits", "diabetes", "breast_cancer"):
        description = getattr(datasets, f"load_{kind}")().DESCR
        for line in re.split(r"[\n.]+", description):
            words = re.findall(r"[A-Za-z]{2,}", line)
            if len(words) > 3:
                texts.append(" ".join(words))
                kinds.append(kind)
    return np.array(texts), np.array(kinds)


def texts() -> Built:
    """Sentences: made lower, split, counted by words and pairs of them, weighed, classified; by hand, as converters
    write operators of their own for the splitting."""
    x, y = sentences()
    counts = feature_extraction.text.TfidfVectorizer(ngram_range=(1, 2), max_features=800, token_pattern="[a-zA-Z]+")
    last = linear_model.LogisticRegression(C=10.0, max_iter=500)
    model = pipeline.make_pipeline(counts, last).fit(x, y)
    grams = sorted(counts.vocabulary_, key=lambda gram: (gram.count(" "), gram))
    pool = [word for gram in grams for word in gram.split()]
    singles = sum(" " not in gram for gram in grams)

    def node(kind: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes):
        return helper.make_node(kind, inputs, outputs, domain=domain, **attributes)

    # ONNX Runtime wants a locale that the machine has.
    nodes = [
        node("StringNormalizer", ["text"], ["lower"], case_change_action="LOWER", locale="C"),
        node("StringSplit", ["lower"], ["words", "lengths"]),
        node("TfIdfVectorizer", ["words"], ["weighed"], mode="TFIDF", min_gram_length=1, max_gram_length=2,
             max_skip_count=0, ngram_counts=[0, singles], ngram_indexes=[counts.vocabulary_[gram] for gram in grams],
             pool_strings=pool, weights=[float(counts.idf_[counts.vocabulary_[gram]]) for gram in grams]),
        node("Normalizer", ["weighed"], ["unit"], "ai.onnx.ml", norm="L2"),
        node("LinearClassifier", ["unit"], ["label", "scores"], "ai.onnx.ml", post_transform="SOFTMAX",
             coefficients=last.coef_.reshape(-1).tolist(), intercepts=last.intercept_.tolist(),
             classlabels_strings=last.classes_.tolist()),
        node("ZipMap", ["scores"], ["probabilities"], "ai.onnx.ml", classlabels_strings=last.classes_.tolist()),
    ]
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))
    graph = helper.make_graph(nodes, "texts", [helper.make_tensor_value_info("text", TensorProto.STRING, ["rows"])],
                              [helper.make_tensor_value_info("label", TensorProto.STRING, ["rows"]),
                               helper.make_value_info("probabilities", maps)])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    onx = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version(opsets))
    return finished(onx, {"text": x[:ROWS]}, classified(model, x))


def lightgbm(trees: int = 60) -> Built:
    import lightgbm as library
    from onnxmltools.convert import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, y = data("digits")
    model = library.LGBMClassifier(n_estimators=trees, n_jobs=1, random_state=8, verbose=-1).fit(x, y)
    onx = convert_lightgbm(model, initial_types=[("X", FloatTensorType([None, x.shape[1]]))], zipmap=False,
                           target_opset=15)
    label = onx.graph.output[0].type.tensor_type.shape.dim[0]
    label.dim_param = "rows"  # not 1, as the converter says
    return finished(onx, {"X": x[:ROWS]}, classified(model, x))


def xgboost(trees: int = 80) -> Built:
    import xgboost as library
    from onnxmltools.convert import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, y = data("diabetes")
    x[::6, 4] = np.nan
    model = library.XGBRegressor(n_estimators=trees, max_depth=5, n_jobs=1, random_state=9).fit(x, y)
    onx = convert_xgboost(model, initial_types=[("X", FloatTensorType([None, x.shape[1]]))], target_opset=15)
    return finished(onx, {"X": x[:ROWS]}, valued(model, x))


def classic() -> Built:
    """What converters of other libraries write: FeatureVectorizer, ArrayFeatureExtractor, Binarizer, CategoryMapper,
    LabelEncoder, OneHotEncoder, Scaler, LinearRegressor, ZipMap; the arrays from a trained regression."""
    x, y = data("diabetes")
    x = x[:, :6]
    scaler = preprocessing.StandardScaler().fit(x)
    sex = np.array(["she", "he"])[(x[:, 1] > 0).astype(int)]
    coded = np.concatenate([scaler.transform(x)[:, [2, 0, 3]], (x[:, 4:5] > 0), sex[:, None] == ["he", "she"]], 1)
    model = linear_model.LinearRegression().fit(coded, y)

    def node(kind: str, inputs: list[str], output: str, domain: str = "ai.onnx.ml", **attributes):
        return helper.make_node(kind, inputs, [output], domain=domain, **attributes)

    nodes = [
        node("FeatureVectorizer", ["first", "second"], "joined", inputdimensions=[4, 2]),
        node("Scaler", ["joined"], "scaled", offset=scaler.mean_.tolist(), scale=(1 / scaler.scale_).tolist()),
        node("ArrayFeatureExtractor", ["scaled", "places"], "chosen"),
        node("ArrayFeatureExtractor", ["joined", "fourth"], "column"),
        node("Binarizer", ["column"], "flag", threshold=0.0),
        node("CategoryMapper", ["sex"], "code", cats_int64s=[0, 1], cats_strings=["he", "she"], default_int64=-1),
        node("OneHotEncoder", ["code"], "hot", cats_int64s=[0, 1], zeros=1),
        node("FeatureVectorizer", ["chosen", "flag", "hot"], "features", inputdimensions=[3, 1, 2]),
        node("LinearRegressor", ["features"], "value", coefficients=model.coef_.tolist(),
             intercepts=[float(model.intercept_)]),
        node("Greater", ["value", "middle"], "high", domain=""),
        node("Cast", ["high"], "number", domain="", to=TensorProto.INT64),
        node("LabelEncoder", ["number"], "label", keys_int64s=[0, 1], values_strings=["low", "high"]),
        node("ZipMap", ["value"], "map", classlabels_strings=["progress"]),
    ]
    infos = [helper.make_tensor_value_info("first", TensorProto.FLOAT, ["rows", 4]),
             helper.make_tensor_value_info("second", TensorProto.FLOAT, ["rows", 2]),
             helper.make_tensor_value_info("sex", TensorProto.STRING, ["rows"])]
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))
    outputs = [helper.make_tensor_value_info("label", TensorProto.STRING, ["rows", 1]),
               helper.make_tensor_value_info("value", TensorProto.FLOAT, ["rows", 1]),
               helper.make_value_info("map", maps)]
    constants = [helper.make_tensor("places", TensorProto.INT64, [3], [2, 0, 3]),
                 helper.make_tensor("fourth", TensorProto.INT64, [1], [4]),
                 helper.make_tensor("middle", TensorProto.FLOAT, [], [150.0])]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 2)]
    onx = helper.make_model(helper.make_graph(nodes, "classic", infos, outputs, constants), opset_imports=opsets,
                            ir_version=ir_version(opsets))
    expected = model.predict(coded[:ROWS]).reshape(-1, 1)
    inputs = {"first": x[:ROWS, :4], "second": x[:ROWS, 4:], "sex": sex[:ROWS]}
    return finished(onx, inputs, [np.where(expected > 150, "high", "low"), expected, expected])
