#!/usr/bin/env python3
"""Cross-validates models on the real tables of the suite and compares them.

    venv/bin/python benches/tables/fetch.py --out build/tables
    venv/bin/python benches/tables/evaluate.py --part validation --external "NAME=COMMAND"

Five stratified folds for each of three seeds. A table of more than 1,000 rows gives a stratified sample of 1,000; the
seed decides on the sample, the folds and the models of sklearn, and is written for {seed} in an external command. All
preprocessing is fitted on the train part of a fold.

An external model is any command that takes --train a.csv --test b.csv --target y --out p.csv, where b.csv has no target,
and writes a row for each of b.csv with a column prediction and one p_<class> for each class of a.csv. With --task regression
the prediction is a number, and the folds are not stratified; columns q05 and q95, where they are, are judged as an interval.

Every fold is a line in --results. What is there or in --known, the baselines that come with the suite, is not run again,
and the summary is of both.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # --jobs says how many cores are used, and the times are of one

import argparse
import concurrent.futures
import gzip
import hashlib
import json
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy
import pandas
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier,
                              RandomForestRegressor)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from fetch import MANIFEST, SAMPLE, read

FOLDS, SEEDS = 5, (0, 1, 2)
FLOOR = 1e-6  # of a probability in the log loss: a forest says 0 where no tree has seen the class
HIGH_FLOOR = 1e-3  # the same loss with less weight on such zeros, to see what they cost
TIE = 0.001  # of AUC
RESAMPLES = 10_000
MANY_CLASSES = range(8, 11)
METRICS = {
    "classification": {"auc": "macro AUC", "log_loss": "log loss", "log_loss_high_floor": "log loss, floor 1e-3",
                       "accuracy": "accuracy"},
    # Both errors are divided by those of the mean of the train targets.
    "regression": {"r2": "R2", "rmse": "RMSE, of the mean's", "mae": "MAE, of the mean's"},
}
BETTER_LOW = ("log_loss", "log_loss_high_floor", "rmse", "mae")
PARTS = ("validation", "reported")
OTHER_PARTS = ("many-classes",)  # not in "all"
BASELINES = Path(__file__).parents[1] / "results" / "2026-11-17-tables-baselines" / "results.jsonl.gz"


def filled(text, numbers, scaled):
    """Medians and a flag where a number is missing; a column for each category, of which missing is one."""
    steps = [SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)]
    steps += [StandardScaler()] if scaled else []
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("numbers", make_pipeline(*steps), numbers), ("text", one_hot, text)])


def boosted(model, text, numbers, seed):
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=numpy.nan, encoded_missing_value=numpy.nan,
                           max_categories=250)
    columns = ColumnTransformer([("text", codes, text), ("numbers", "passthrough", numbers)])
    return make_pipeline(columns, model(categorical_features=range(len(text)), random_state=seed))


CLASSIFIERS = {
    "forest": lambda text, numbers, seed: make_pipeline(
        filled(text, numbers, False), RandomForestClassifier(300, random_state=seed)),
    "logistic": lambda text, numbers, seed: make_pipeline(filled(text, numbers, True), LogisticRegression(C=1, max_iter=5000)),
    "boosted": lambda *given: boosted(HistGradientBoostingClassifier, *given),
    "knn": lambda text, numbers, seed: make_pipeline(filled(text, numbers, True), KNeighborsClassifier(15)),
    "majority": lambda text, numbers, seed: DummyClassifier(strategy="prior"),
}
REGRESSORS = {
    "forest": lambda text, numbers, seed: make_pipeline(
        filled(text, numbers, False), RandomForestRegressor(300, random_state=seed)),
    "ridge": lambda text, numbers, seed: make_pipeline(filled(text, numbers, True), Ridge(1)),
    "boosted": lambda *given: boosted(HistGradientBoostingRegressor, *given),
    "knn": lambda text, numbers, seed: make_pipeline(filled(text, numbers, True), KNeighborsRegressor(15)),
    "mean": lambda text, numbers, seed: DummyRegressor(),
}
MODELS = {"classification": CLASSIFIERS, "regression": REGRESSORS}


def sampled(table, target, seed, is_stratified=True):
    if len(table) > SAMPLE:
        classes = table[target] if is_stratified else None
        table, _ = train_test_split(table, train_size=SAMPLE, stratify=classes, random_state=seed)
    return table.reset_index(drop=True)


def scores(truth, classes, p):
    """Of one fold; p has a column for each class."""
    index = numpy.searchsorted(classes, truth)
    areas = [roc_auc_score(index == c, p[:, c]) for c in range(len(classes)) if 0 < (index == c).sum() < len(index)]

    def log_loss(floor):
        kept = numpy.clip(p, floor, None)
        return float(-numpy.log((kept / kept.sum(1, keepdims=True))[numpy.arange(len(index)), index]).mean())

    return {"auc": float(numpy.mean(areas)), "log_loss": log_loss(FLOOR), "log_loss_high_floor": log_loss(HIGH_FLOOR),
            "accuracy": float((p.argmax(1) == index).mean())}


def regression_scores(truth, predicted, mean):
    """Of one fold; mean is that of the train targets."""
    error, usual = truth - predicted, truth - mean
    return {"r2": float(1 - (error ** 2).mean() / ((truth - truth.mean()) ** 2).mean()),
            "rmse": float(numpy.sqrt((error ** 2).mean() / (usual ** 2).mean())),
            "mae": float(abs(error).mean() / abs(usual).mean())}


def interval_scores(truth, low, high, train):
    """Of one fold: the share of targets inside, and the mean width beside that of an interval which is the same for all rows."""
    usual = numpy.subtract(*numpy.quantile(train, [0.95, 0.05]))
    found = {"inside": float(((low <= truth) & (truth <= high)).mean())}
    return found | ({"width": float((high - low).mean() / usual)} if usual > 0 else {})


def by_command(command, train, test, target, classes, timeout):
    """Probabilities, or numbers and the ends of an interval, if there are any, if there are no classes."""
    with tempfile.TemporaryDirectory() as folder:
        a, b, out = (os.path.join(folder, name) for name in ("train.csv", "test.csv", "p.csv"))
        train.to_csv(a, index=False)
        test.drop(columns=target).to_csv(b, index=False)
        arguments = ["--train", a, "--test", b, "--target", target, "--out", out]
        done = subprocess.run([*shlex.split(command), *arguments], capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()[-300:]}")
        made = pandas.read_csv(out, dtype={} if classes is None else {"prediction": str})
    if classes is None:
        numbers = made.reindex(columns=["prediction", "q05", "q95"]).apply(pandas.to_numeric, errors="coerce").to_numpy(float)
        if len(numbers) != len(test) or not numpy.isfinite(numbers[:, 0]).all():
            raise RuntimeError(f"{len(numbers)} rows for {len(test)}, or no numbers in a column prediction")
        return numbers if numpy.isfinite(numbers).all() else numbers[:, :1]  # no interval
    lost = [c for c in ("prediction", *(f"p_{c}" for c in classes)) if c not in made]
    if lost:
        raise RuntimeError(f"no column {lost[0]} in the predictions")
    p = made[[f"p_{c}" for c in classes]].to_numpy(float)
    if len(p) != len(test) or not numpy.isfinite(p).all() or (p < 0).any() or abs(p.sum(1) - 1).max() > 1e-3:
        raise RuntimeError(f"{len(p)} rows for {len(test)}, or rows that are no probabilities")
    return p


def one(row, folder, seed, fold, model, command, timeout):
    """The line of one fold."""
    warnings.filterwarnings("ignore", message="Found unknown categories")
    target, is_class = row["target"], row["task"] == "classification"
    table = sampled(read(folder / f"{row['name']}.csv", target), target, seed, is_class)
    splitter = StratifiedKFold if is_class else KFold
    splits = splitter(FOLDS, shuffle=True, random_state=seed).split(table, table[target])
    train, test = (table.iloc[part] for part in list(splits)[fold])
    if not is_class:
        train, test = (part.assign(**{target: part[target].astype(float)}) for part in (train, test))
    classes = numpy.unique(train[target]) if is_class else None
    features = table.drop(columns=target)
    numbers = [c for c in features if pandas.api.types.is_numeric_dtype(features[c])]
    text = [c for c in features if c not in numbers]
    line = {"table": row["name"], "seed": seed, "fold": fold, "model": model}
    begin = time.perf_counter()
    try:
        if command:
            p = by_command(command.replace("{seed}", str(seed)), train, test, target, classes, timeout)
        else:
            made = MODELS[row["task"]][model](text, numbers, seed).fit(train[features.columns], train[target])
            p = made.predict_proba(test[features.columns]) if is_class else made.predict(test[features.columns])[:, None]
        truth = test[target].to_numpy()
        found = scores(truth, classes, p) if is_class else regression_scores(truth, p[:, 0], train[target].mean())
        if not is_class and p.shape[1] == 3:
            found |= interval_scores(truth, p[:, 1], p[:, 2], train[target])
        line |= {k: round(v, 6) for k, v in found.items()}
    except (RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
        line["error"] = str(error)[:500]
    return line | {"seconds": round(time.perf_counter() - begin, 3)}


def key(line):
    return line["table"], line["seed"], line["fold"], line["model"]


def lines_of(options):
    """The last line of each fold: one that failed is run again, and then stands twice."""
    known = gzip.decompress(options.known.read_bytes()).decode() if options.known.is_file() else ""
    text = options.results.read_text() if options.results.exists() else ""
    if text and not text.endswith("\n"):  # half a line, of a run that was killed
        text = text[:text.rfind("\n") + 1]
        options.results.write_text(text)
    return {key(line): line for line in map(json.loads, [*known.splitlines(), *text.splitlines()])}


def run(options, rows, models):
    done = {k for k, line in lines_of(options).items() if "error" not in line}
    # A seed after the other: where time runs out, all tables have been run as often.
    tasks = [(row, seed, fold, model) for seed in options.seeds for row in rows for model in models for fold in range(FOLDS)
             if (row["name"], seed, fold, model) not in done]
    for row in {task[0]["name"]: task[0] for task in tasks}.values():
        path = options.tables / f"{row['name']}.csv"
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != row["sha256"]:
            raise SystemExit(f"{path} is not the table of {MANIFEST.name}: run benches/tables/fetch.py --out {options.tables}")
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with open(options.results, "a") as out, concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(one, row, options.tables, seed, fold, model, models[model], options.timeout)
                   for row, seed, fold, model in tasks]
        for count, future in enumerate(concurrent.futures.as_completed(waiting), 1):
            line = future.result()
            out.write(json.dumps(line) + "\n")
            out.flush()
            if "error" in line or count % 100 == 0 or count == len(tasks):
                print(f"{count}/{len(tasks)} {' '.join(map(str, key(line)))} {line.get('error', '')}", file=sys.stderr, flush=True)


def interval(values):
    """Of a mean over tables: 95 % of the means of resampled tables."""
    rng = numpy.random.default_rng(0)
    means = numpy.asarray(values)[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(1)
    return numpy.quantile(means, [0.025, 0.975])


def compare(tables, models, subject, metrics, say):
    """Means of the models, and the first one's difference to each other; tables: name -> model -> metric -> value."""
    for metric, title in metrics.items():
        say(f"\n{title + ', mean of ' + str(len(tables)):38}{'mean':>8}   95 % interval     {subject} minus it")
        order = sorted(models, key=lambda m: numpy.mean([t[m][metric] for t in tables.values()]), reverse=metric not in BETTER_LOW)
        for model in order:
            values = [t[model][metric] for t in tables.values()]
            low, high = interval(values)
            text = f"  {model:36}{numpy.mean(values):8.4f}   {low:.4f} to {high:.4f}"
            if model != subject:
                gaps = numpy.array([t[subject][metric] - t[model][metric] for t in tables.values()])
                low, high = interval(gaps)
                text += f"   {gaps.mean():+.4f} ({low:+.4f} to {high:+.4f})"
                if metric in ("auc", "r2"):
                    text += f"   {(gaps > TIE).sum()} won, {(abs(gaps) <= TIE).sum()} tied, {(gaps < -TIE).sum()} lost"
            say(text)


def means(table, lines, models, seeds, metrics):
    """Over folds and seeds, of each model that has all of them."""
    made = {}
    for model in models:
        here = [x for x in lines if (x["table"], x["model"]) == (table, model) and "error" not in x]
        if len(here) == FOLDS * len(seeds):
            made[model] = {metric: numpy.mean([x[metric] for x in here]) for metric in metrics}
    return made


def say_intervals(chosen, lines, models, seeds, say):
    """Of the models that gave any for all folds of a table: means over folds."""
    for model in models:
        found = {row["name"]: means(row["name"], [x for x in lines if "width" in x], [model], seeds, ("inside", "width"))
                 for row in chosen}
        found = {table: full[model] for table, full in found.items() if model in full}
        if not found:
            continue
        say(f"\n{model + ', q05 to q95':38}{'inside':>8}   width, of that of the train targets")
        found |= {f"mean of {len(found)}": {k: numpy.mean([x[k] for x in found.values()]) for k in ("inside", "width")}}
        for name, x in found.items():
            say(f"  {name:36}{x['inside']:8.4f}   {x['width']:.4f}")


def summarise(options, rows, wanted, say):
    tables = {row["name"] for row in rows}
    lines = [line for line in lines_of(options).values() if line["seed"] in options.seeds and line["table"] in tables]
    names = list(dict.fromkeys(line["model"] for line in lines if not wanted or line["model"] in wanted))
    known, metrics = MODELS[options.task], METRICS[options.task]
    models = [m for m in names if m not in known] + [m for m in known if m in names]
    if not models:
        return
    subject = options.subject or models[0]
    if subject not in models:
        raise SystemExit(f"--subject {subject}: there are results of {', '.join(models)}")
    for name in PARTS if options.part == "all" else [options.part]:
        chosen = [row for row in rows if row["split"] == name]
        say(f"{name} part: {len(chosen)} tables, {FOLDS} folds, seeds {', '.join(map(str, options.seeds))}")
        found = {row["name"]: means(row["name"], lines, models, options.seeds, metrics) for row in chosen}
        for metric, title in metrics.items():
            say(f"\n{title:22}{'rows':>7}{'cols':>5}{'cls':>4}" + "".join(f"{m[:10]:>11}" for m in models))
            for row in chosen:
                full = found[row["name"]]
                cells = "".join(f"{full[m][metric]:11.4f}" if m in full else f"{'-':>11}" for m in models)
                say(f"{row['name']:22}{row['rows']:7}{row['columns']:5}{row.get('classes', '-'):>4}{cells}")
        whole = {table: full for table, full in found.items() if len(full) == len(models)}
        if len(whole) < len(chosen):
            lost = [row["name"] for row in chosen if row["name"] not in whole]
            say(f"\nNOT in the means, as some folds failed or were not run: {', '.join(lost)}")
        many = {row["name"]: whole[row["name"]] for row in chosen if row["name"] in whole and row.get("classes") in MANY_CLASSES}
        for part, title in [(whole, "all tables"), (many, "8 to 10 classes")]:
            if part:
                say(f"\n{name} part, {title}")
                compare(part, models, subject, metrics, say)
        say_intervals(chosen, lines, models, options.seeds, say)
        say("")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=Path("build/tables"))
    parser.add_argument("--results", type=Path, default=Path("build/tables/results.jsonl"))
    parser.add_argument("--known", type=Path, default=BASELINES, help="results that need not be run again, or an empty name")
    parser.add_argument("--summary", type=Path, help="the text goes here, too")
    parser.add_argument("--part", choices=(*PARTS, *OTHER_PARTS, "all"), default="validation", help="reported is for the end, and once")
    parser.add_argument("--task", choices=tuple(MODELS), default="classification")
    parser.add_argument("--models", help="of sklearn, or nothing; default: all")
    parser.add_argument("--external", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--subject", help="the model that the others are compared with; the external one, or the forest")
    parser.add_argument("--only", default="", help="these tables alone, separated by commas")
    parser.add_argument("--seeds", type=lambda text: [int(s) for s in text.split(",")], default=list(SEEDS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one call of an external model")
    parser.add_argument("--no-run", action="store_true", help="only the summary, of all models that are there")
    options = parser.parse_args()
    rows = [row for row in json.loads(MANIFEST.read_text())["tables"] if row["task"] == options.task]
    rows = [row for row in rows if row["split"] in (PARTS if options.part == "all" else [options.part])]
    rows = [row for row in rows if not options.only or row["name"] in options.only.split(",")]
    known = MODELS[options.task]
    models = {name: None for name in (known if options.models is None else filter(None, options.models.split(",")))}
    unknown = [name for name in models if name not in known]
    if unknown or any("=" not in e for e in options.external):
        raise SystemExit(f"models: {', '.join(known)}; --external NAME=COMMAND")
    models |= dict(e.split("=", 1) for e in options.external)
    if not options.no_run:
        run(options, rows, models)
    said = []
    summarise(options, rows, () if options.no_run else models, lambda text: said.append(text) or print(text))
    if options.summary:
        options.summary.write_text("\n".join(said) + "\n")


if __name__ == "__main__":
    main()
