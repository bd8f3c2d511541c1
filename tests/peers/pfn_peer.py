#!/usr/bin/env python3
"""Writes what tests of metrics and of simple models compare with: numbers of scikit-learn.

    python pfn_peer.py --make tests/models/pfn/sklearn     small public tables, and reference.json

Needs scikit-learn, which brings the tables (iris, wine, breast cancer, diabetes: UCI and Efron et al., public). Even
rows are the train part and odd rows the test part, whose predictions are kept.
"""
import argparse
import csv
import json
import sys
from pathlib import Path

SKIPPED = 77
try:
    import numpy as np
    from scipy.stats import norm
    from sklearn import datasets, metrics
    from sklearn.calibration import calibration_curve
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
except ImportError as missing:
    print(f"SKIPPED: {missing}: install scikit-learn to make the reference")
    sys.exit(SKIPPED)


def tables():
    """Rows of cells, the target last, by name."""
    iris, wine, cancer = datasets.load_iris(), datasets.load_wine(), datasets.load_breast_cancer()
    diabetes = datasets.load_diabetes(scaled=False)
    means = slice(0, 10)  # of thirty columns, those of means
    return {
        "iris": (iris.feature_names, iris.data, iris.target),
        "wine": (wine.feature_names, wine.data, wine.target),
        "breast_cancer": (cancer.feature_names[means], cancer.data[:, means], cancer.target),
        "diabetes": (diabetes.feature_names, diabetes.data, diabetes.target),
    }


def write_csv(path, names, x, y):
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*names, "target"])
        for row, target in zip(x, y):
            cells = [value if isinstance(value, str) else "" if value != value else f"{value:.10g}" for value in row]
            out.writerow([*cells, f"{target:.10g}"])


def mixed(rows=240):
    """Numbers and categories, both with missing cells."""
    rng = np.random.default_rng(1)
    size, weight = rng.normal(size=rows).round(3), rng.exponential(size=rows).round(3)
    colour = rng.choice(["red", "green", "blue", ""], size=rows, p=[0.4, 0.3, 0.2, 0.1])
    target = (size + (colour == "red") - weight + rng.logistic(size=rows) > 0).astype(int)
    weight[rng.random(rows) < 0.15] = np.nan
    x = np.empty((rows, 3), dtype=object)
    x[:, 0], x[:, 1], x[:, 2] = size, weight, colour
    return ["size", "weight", "colour"], x, target


def logistic(c):
    return LogisticRegression(C=c, tol=1e-10, max_iter=100_000)


def metric_cases():
    rng = np.random.default_rng(0)
    rows, cases = 60, {}
    for name, classes in (("binary", 2), ("five", 5)):
        truth = rng.integers(0, classes, rows)
        scores = rng.normal(size=(rows, classes))
        scores[np.arange(rows), truth] += 1
        p = np.exp(scores)
        p = (p / p.sum(1, keepdims=True)).round(2) + 0.01  # ties
        p /= p.sum(1, keepdims=True)
        one = (truth == 1).astype(int)
        auc = metrics.roc_auc_score(truth, p[:, 1] if classes == 2 else p, multi_class="ovr", average="macro")
        false_rate, true_rate, thresholds = metrics.roc_curve(one, p[:, 1])
        observed, predicted = calibration_curve(one, p[:, 1], n_bins=8)
        curves = [metrics.roc_curve(truth == c, p[:, c]) for c in range(classes)]
        grid = np.unique(np.concatenate([curve[0] for curve in curves]))
        mean = np.mean([np.interp(grid, curve[0], curve[1]) for curve in curves], axis=0)
        largest = p.max(1)
        sure, right = calibration_curve(p.argmax(1) == truth, largest, n_bins=10)[::-1]
        cases[name] = {
            "classes": truth.tolist(), "probabilities": p.ravel().tolist(), "auc": auc,
            "log_loss": metrics.log_loss(truth, p), "accuracy": metrics.accuracy_score(truth, p.argmax(1)),
            "roc": {"false": false_rate.tolist(), "true": true_rate.tolist(), "thresholds": thresholds[1:].tolist()},
            "calibration": {"observed": observed.tolist(), "predicted": predicted.tolist()},
            "mean_roc": {"false": grid.tolist(), "true": mean.tolist(), "area": metrics.auc(grid, mean)},
            "reliability": {"observed": right.tolist(), "predicted": sure.tolist()},
            "confusion": metrics.confusion_matrix(truth, p.argmax(1)).ravel().tolist(),
        }
    truth, predicted = rng.normal(size=rows) * 10 + 3, rng.normal(size=rows)
    predicted = truth + 4 * predicted
    counts, edges = np.histogram(truth - predicted, bins=7)
    cases["regression"] = {
        "targets": truth.tolist(), "predictions": predicted.tolist(), "r2": metrics.r2_score(truth, predicted),
        "rmse": metrics.root_mean_squared_error(truth, predicted),
        "mae": metrics.mean_absolute_error(truth, predicted),
        "residuals": {"counts": counts.tolist(), "edges": edges.tolist()},
        "pinball_10": metrics.mean_pinball_loss(truth, predicted, alpha=0.1),
        "pinball_50": metrics.mean_pinball_loss(truth, predicted, alpha=0.5),
    }
    return cases


def rounded(values, digits=8):
    return [float(f"{value:.{digits}g}") for value in np.ravel(values)]


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    reference = {"metrics": metric_cases(), "logistic": {}, "neighbours": {}, "ridge": {}}
    train, test = slice(0, None, 2), slice(1, None, 2)
    for name, (names, x, y) in tables().items():
        write_csv(folder / f"{name}.csv", [n.replace(" ", "_") for n in names], x, y)
        def fitted(model):
            return make_pipeline(StandardScaler(), model).fit(x[train], y[train])
        if name == "diabetes":
            reference["ridge"][name] = rounded(fitted(Ridge(alpha=1.0)).predict(x[test]))
            reference["neighbours"][name] = rounded(fitted(KNeighborsRegressor(5)).predict(x[test]))
            continue
        reference["logistic"][name] = {str(c): rounded(fitted(logistic(c)).predict_proba(x[test])) for c in (1.0, 0.1)}
        reference["neighbours"][name] = rounded(fitted(KNeighborsClassifier(5)).predict_proba(x[test]))
    names, x, y = mixed()
    write_csv(folder / "mixed.csv", names, x, y)
    numbers = make_pipeline(StandardScaler(), SimpleImputer(strategy="constant", fill_value=0))
    flag = FunctionTransformer(lambda column: np.isnan(column.astype(float)).astype(float))
    columns = ColumnTransformer([("n", numbers, [0, 1]), ("f", flag, [1]), ("c", OneHotEncoder(), [2])])
    model = make_pipeline(columns, logistic(1.0)).fit(x[train], y[train])
    reference["logistic"]["mixed"] = {"1.0": rounded(model.predict_proba(x[test]))}
    levels = [1e-300, 1e-9, 0.001, 0.02, 0.03, 0.25, 0.5, 0.7, 0.975, 0.99, 1 - 1e-9]
    reference["normal_quantiles"] = {"levels": levels, "values": norm.ppf(levels).tolist()}
    (folder / "reference.json").write_text(json.dumps(reference) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", type=Path, required=True, metavar="FOLDER")
    make(parser.parse_args().make)
