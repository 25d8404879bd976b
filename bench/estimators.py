#!/usr/bin/env python3
"""Times Sardonyx and ONNX Runtime side by side on what skl2onnx makes of scikit-learn's estimators.

Each is fitted to 400 seeded samples of 12 features and converted, probabilities as arrays; both engines then answer for
1, 400 and 10,000 samples, in turns in one process, and their outputs are compared, as `./dev bench` does
with the models of bench/zoo. Samples take each feature from another of the 400, so that branches are not learned by heart.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import warnings

import numpy as np
import onnx

import report
import run
import values

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- estimators:begin -->", "<!-- estimators:end -->"
SAMPLES, FEATURES = 400, 12

CLASSIFIERS = """AdaBoostClassifier BaggingClassifier BernoulliNB CalibratedClassifierCV CategoricalNB ComplementNB
    DecisionTreeClassifier ExtraTreesClassifier GaussianNB GradientBoostingClassifier KNeighborsClassifier
    LinearDiscriminantAnalysis LinearSVC LogisticRegression MLPClassifier MultiOutputClassifier MultinomialNB NuSVC
    OneVsOneClassifier OneVsRestClassifier Perceptron RandomForestClassifier RidgeClassifier SGDClassifier SVC
    StackingClassifier""".split()
REGRESSORS = """AdaBoostRegressor BaggingRegressor DecisionTreeRegressor ExtraTreesRegressor GammaRegressor
    GaussianProcessRegressor GradientBoostingRegressor KNeighborsRegressor LinearRegression MLPRegressor
    MultiOutputRegressor MultiTaskLasso NuSVR PLSRegression RandomForestRegressor SVR StackingRegressor
    VotingRegressor""".split()
OTHERS = """BayesianGaussianMixture Binarizer GaussianMixture IncrementalPCA IsolationForest KMeans KNNImputer
    KNeighborsTransformer KernelPCA MaxAbsScaler MinMaxScaler NeighborhoodComponentsAnalysis Normalizer OneClassSVM
    OneHotEncoder OrdinalEncoder PCA PolynomialFeatures PowerTransformer QuantileTransformer RFE RobustScaler
    SGDOneClassSVM SelectKBest SimpleImputer StandardScaler TruncatedSVD VarianceThreshold""".split()
NAMES = sorted(CLASSIFIERS + REGRESSORS + OTHERS)

POSITIVE = {"ComplementNB", "GammaRegressor", "MultinomialNB"}
CATEGORIES = {"CategoricalNB", "OneHotEncoder", "OrdinalEncoder"}
# Sums of large numbers that nearly cancel: neither engine is near what scikit-learn computes in double precision.
TOLERANCES = {"GaussianProcessRegressor": 0.5}


def made(name: str):
    """The estimator, not fitted yet."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.utils import all_estimators

    first, second = ("logistic", LogisticRegression()), ("weaker", LogisticRegression(C=0.1))
    around = {"MultiOutputClassifier": [LogisticRegression()], "MultiOutputRegressor": [Ridge()],
              "OneVsOneClassifier": [LogisticRegression()], "OneVsRestClassifier": [LogisticRegression()],
              "RFE": [LogisticRegression()], "StackingClassifier": [[first, second]],
              "StackingRegressor": [[("ridge", Ridge()), ("stronger", Ridge(alpha=3))]],
              "VotingRegressor": [[("ridge", Ridge()), ("stronger", Ridge(alpha=3))]]}
    kind = dict(all_estimators())[name]
    estimator = kind(*around.get(name, []))
    if name == "QuantileTransformer":
        estimator.set_params(n_quantiles=100)  # one for each sample takes two minutes to convert
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    return estimator


def samples(name: str) -> tuple[np.ndarray, np.ndarray]:
    """What the estimator is fitted to."""
    from sklearn.datasets import make_classification, make_regression

    if name in REGRESSORS:
        x, y = make_regression(SAMPLES, FEATURES, noise=1, random_state=0)
        y = y / np.abs(y).max() * 3
    else:
        x, y = make_classification(SAMPLES, FEATURES, n_informative=6, n_classes=3, random_state=0)
    x = x.astype(np.float32)
    if name in POSITIVE:
        x, y = np.abs(x), np.abs(y) + (0.1 if name in REGRESSORS else 0)
    if name in CATEGORIES:
        x = np.floor(2 * x).clip(0, 3)
    if name == "MultiTaskLasso":
        y = np.stack([y, 2 * y + x[:, 0]], axis=1)
    if name in ("MultiOutputClassifier", "MultiOutputRegressor"):
        y = np.stack([y > 0, x[:, 0] > 0], axis=1).astype(np.int64 if name in CLASSIFIERS else np.float64)
    return x, y


def converted(name: str) -> onnx.ModelProto:
    from skl2onnx import to_onnx

    x, y = samples(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = made(name).fit(x, y)
        options = {id(estimator): {"zipmap": False}} if name in CLASSIFIERS and name != "LinearSVC" else None
        return to_onnx(estimator, x[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})


def inputs(name: str, rows: int) -> np.ndarray:
    x, _ = samples(name)
    random = np.random.default_rng(0)
    return np.stack([x[random.integers(0, len(x), rows), feature] for feature in range(x.shape[1])], axis=1)


def prepare(name: str, rows: int, folder: pathlib.Path) -> dict:
    """Writes NAME.onnx unless it is there, and NAME-ROWS.onnx and .npz; returns what the bench is to know."""
    file = folder / f"{name}.onnx"
    if not file.exists():
        file.write_bytes(converted(name).SerializeToString())
    model = onnx.load(file)
    copy = folder / f"{name}-{rows}.onnx"
    copy.write_bytes(file.read_bytes())
    np.savez(copy.with_suffix(".npz"), **{model.graph.input[0].name: inputs(name, rows)})
    return {"gflop": 0, "weights_mb": 0, "nodes": len(model.graph.node), "outputs": len(model.graph.output),
            "opset": max(opset.version for opset in model.opset_import if not opset.domain)}


def table(measured: list[dict], options: argparse.Namespace) -> str:
    columns = [(rows, threads) for threads in options.threads for rows in options.rows]
    found = {(row["name"], row["rows"], row["threads"]): row for row in measured}
    titles = [f"{rows:,} rows" + (f", {threads} threads" if threads > 1 else "") for rows, threads in columns]
    lines = ["| estimator | nodes | " + " | ".join(titles) + " |", "|---" * (2 + len(columns)) + "|"]
    for name in options.estimators:
        rows = [found[name, *column] for column in columns]
        cells = ["failed" if "error" in row else f"{1e3 * row['sardonyx_ms']:.3g} µs, {row['ratio']:.2f}" for row in rows]
        lines.append(f"| {name} | {rows[0]['nodes']} | " + " | ".join(cells) + " |")
    ratios = [[found[name, *column].get("ratio", 0) for name in options.estimators] for column in columns]
    means = [f"{statistics.geometric_mean(column):.2f}" if min(column) > 0 else "" for column in ratios]
    lines.append("| geometric mean | | " + " | ".join(means) + " |")
    lines.append("| least | | " + " | ".join(f"{min(column):.2f}" for column in ratios) + " |")
    return "\n".join(lines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench --estimators", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--estimators", default="all", help="names with commas between them, or all: " + ", ".join(NAMES))
    parser.add_argument("--rows", default="1,400,10000", help="samples at a time (default 1,400,10000)")
    run.add_options(parser, "models.md", "bench-estimators", 0.3)
    options = parser.parse_args()
    options.estimators = run.chosen(parser, options.estimators, NAMES)
    options.rows = [int(part) for part in options.rows.split(",")]
    return options


def main() -> int:
    options = parse_arguments()
    peak = run.probe(options.program)
    options.models_folder.mkdir(parents=True, exist_ok=True)
    measured = []
    print(report.heading(), flush=True)
    for name in options.estimators:
        for rows in options.rows:
            known = prepare(name, rows, options.models_folder)
            for threads in options.threads:
                row = run.measure(f"{name}-{rows}", known, threads, peak, options)
                measured.append(row | {"name": name, "rows": rows})
                print(report.line(row), flush=True)
    text = table(measured, options)
    print(text)
    if options.write_docs:
        import skl2onnx
        import sklearn

        report.put_between(ROOT / "docs" / "models.md", BEGIN, END,
                           f"Made by `{report.command_line('--estimators')}`: scikit-learn {sklearn.__version__}, skl2onnx "
                           f"{skl2onnx.__version__}, {report.provenance(peak, run.versions(options.program))}.\n"
                           f"Time of Sardonyx, and ONNX Runtime's time divided by it.\n\n{text}")
    return run.finish(measured, options, lambda row: TOLERANCES.get(row["name"], values.TOLERANCE))


if __name__ == "__main__":
    sys.exit(main())
