"""Whether torch_pfn.py computes what ferrite computes: see torch_rows.py --check.

Tables are such that `ferrite pfn predict --members 1` hands them to the network as they are: numbers of moderate size,
and categories whose codes are their places in the order of values.
"""

import csv
import os
import subprocess

import numpy as np
import torch

import torch_pfn

SIZES = {"tiny": ["--layers", "2", "--dim", "64", "--hidden", "128"], "standard": []}
LIMIT = 1e-4
TRAIN, QUERY, CLASSES, LEVELS = 90, 40, 3, 4


def make_table(rng, kind):
    """x [rows, columns] in f32 with NaN for missing, and flags of categories."""
    rows, columns = TRAIN + QUERY, 7
    x = rng.normal(size=(rows, columns)).astype(np.float32) * [1, 10, 1e3, 1e-3, 1, 1, 1] + [0, 5, 0, 0, 0, -2, 1]
    x = x.astype(np.float32)
    is_category = np.zeros(columns, np.float32)
    if kind == "plain":
        return x, is_category
    x[::17, 0] *= 30  # outliers
    for c in (2, 4):  # every category has train rows, so that codes are values
        x[:, c] = np.concatenate([np.arange(LEVELS), rng.integers(0, LEVELS, rows - LEVELS)])
        is_category[c] = 1
    x[:, 5] = 3  # constant, but for the missing cells, for which the encoder keeps it
    holes = rng.random(x.shape) < 0.15
    holes[:LEVELS] = False
    x[holes] = np.nan
    return x, is_category


def write_csv(path, x, y):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow([f"c{i}" for i in range(x.shape[1])] + (["y"] if y is not None else []))
        for i, row in enumerate(x):
            cells = ["" if np.isnan(v) else repr(float(v)) for v in row]
            out.writerow(cells + ([y[i]] if y is not None else []))


def ferrite(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join([program, *arguments])}\n{done.stdout}{done.stderr}")


def train(program, folder, size, task):
    """Two steps at a high rate: the projections that start as 0 then matter."""
    out = os.path.join(folder, f"{size}-{task}")
    if not os.path.exists(out):
        ferrite(program, "pfn", "train", "--steps", "2", "--lr", "0.1", "--warmup", "0", "--average", "0", "--cells", "2000",
                "--evaluate-every", "0", "--evaluate-batches", "1", "--backend", "cpu", "--task", task, "--quiet",
                "--out", out, *SIZES[size])
    return os.path.join(out, "step-00000002.safetensors")


def ferrite_columns(program, folder, weights, x, is_category, y, task):
    """The columns of ferrite's predictions by name."""
    paths = [os.path.join(folder, name) for name in ("train.csv", "test.csv", "out.csv")]
    labels = [f"k{c}" for c in y[:TRAIN]] if task == "classification" else [repr(float(v)) for v in y[:TRAIN]]
    write_csv(paths[0], x[:TRAIN], labels)
    write_csv(paths[1], x[TRAIN:], None)
    categories = [f"c{c}" for c in np.flatnonzero(is_category)]
    ferrite(program, "pfn", "predict", "--train", paths[0], "--test", paths[1], "--out", paths[2], "--target", "y", "--task", task,
            "--weights", weights, "--members", "1", "--backend", "cpu", *(["--categories", *categories] if categories else []))
    with open(paths[2]) as f:
        rows = list(csv.DictReader(f))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0] if name != "prediction" or task == "regression"}


def scores(model, x, is_category, labels):
    """f64 scores and context of one table."""
    table, flags = torch.from_numpy(x)[None], torch.from_numpy(is_category)[None]
    with torch.inference_mode():
        context = model.read(table[:, :TRAIN], flags, torch.from_numpy(labels)[None])
        return model.predict(context, table[:, TRAIN:])[0].double().numpy(), context


def log_softmax(s):
    s = s - s.max(-1, keepdims=True)
    return s - np.log(np.exp(s).sum(-1, keepdims=True))


def quantile(p, shapes, level):
    below = np.concatenate([[0], p.cumsum()])
    found = min(int(np.searchsorted(below[1:], level)), len(p) - 1)
    share = np.clip((level - below[found]) / max(p[found], 1e-300), 1e-6, 1 - 1e-6)
    place = np.log(share) if found == 0 else -np.log1p(-share) if found == len(p) - 1 else share
    return shapes["starts"][found] + shapes["widths"][found] * place


def torch_columns(model, x, is_category, y, task):
    """The same as ferrite_columns, and for classification log p_<class> as logp_<class>."""
    if task == "classification":
        logp = log_softmax(scores(model, x, is_category, y[:TRAIN].astype(np.int64))[0][:, :CLASSES])
        return {f"p_k{c}": np.exp(logp[:, c]) for c in range(CLASSES)} | {f"logp_k{c}": logp[:, c] for c in range(CLASSES)}
    # The predictor standardises labels in f64, and then the network in f32.
    known = y[:TRAIN] / np.abs(y[:TRAIN]).max()
    centre, spread = known.mean(), known.std()
    s, context = scores(model, x, is_category, ((known - centre) / spread).astype(np.float32))
    p, shapes = np.exp(log_softmax(s)), torch_pfn.bin_shapes(model.config["bins"])
    magnitude, mean, deviation = (float(t) for t in context.labels)
    z = {"prediction": p @ shapes["means"], **{
        f"q{int(level * 100):02}": np.array([quantile(row, shapes, level) for row in p]) for level in (0.05, 0.5, 0.95)}}
    return {name: ((v * deviation + mean) * magnitude * spread + centre) * np.abs(y[:TRAIN]).max() for name, v in z.items()}


def without(model, part):
    """The network with one branch off."""
    for block in model.blocks:
        torch.nn.init.zeros_({"cells": block.cells.proj, "rows": block.proj, "feed-forward": block.ff.down}[part].weight)
    return model


def furthest(ours, theirs, scale):
    return max(np.abs(ours[name] - theirs[name]).max() / scale for name in theirs)


def check(program, folder):
    """Prints a line for each network and table; returns whether all agree."""
    os.makedirs(folder, exist_ok=True)
    agrees = True
    for size in SIZES:
        for task in ("classification", "regression"):
            weights = train(program, folder, size, task)
            model = torch_pfn.load(weights)
            for kind in ("plain", "categories and missing"):
                rng = np.random.default_rng(1)
                x, is_category = make_table(rng, kind)
                y = rng.integers(0, CLASSES, TRAIN + QUERY) if task == "classification" else rng.normal(size=TRAIN + QUERY) * 7 + 20
                theirs = ferrite_columns(program, folder, weights, x, is_category, y, task)
                if task == "classification":
                    theirs |= {name.replace("p_", "logp_"): np.log(v) for name, v in theirs.items()}
                scale = 1 if task == "classification" else y[:TRAIN].std()
                error = furthest(torch_columns(model, x, is_category, y, task), theirs, scale)
                # A comparison that does not see a branch missing would say nothing about it.
                blind = [part for part in ("cells", "rows", "feed-forward") if furthest(
                    torch_columns(without(torch_pfn.load(weights), part), x, is_category, y, task), theirs, scale) < 10 * LIMIT]
                agrees = agrees and error <= LIMIT and not blind
                print(f"{size:9} {task:15} {kind:23} furthest apart {error:.1e}" + (
                    f", but without {', '.join(blind)} too" if blind else "") + ("" if error <= LIMIT else "  TOO FAR"))
    return agrees
