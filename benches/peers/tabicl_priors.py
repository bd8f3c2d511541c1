#!/usr/bin/env python3
"""ferrite's default mixture beside TabICL's own generator, on the same cores: 1024 rows, 2 to 20 features, classification,
post-processing included.

    ./dev bench --peer tabicl        (or: python3 benches/peers/tabicl_priors.py --build build/release)

Needs the packages tabicl and xgboost in the Python that runs it, and says so where they are not there. The two take
turns. TabICL samples `is_causal` as its version 1 did; it does not reject what cannot be learned, ferrite does.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

ROWS, FEATURES, CLASSES = 1024, (2, 20), 10


def tabicl_datasets(count):
    """Makes datasets in this process, with one thread."""
    from tabicl.prior import PriorDataset
    from tabicl.prior._prior_config import DEFAULT_FIXED_HP, DEFAULT_SAMPLED_HP

    fixed = {key: value for key, value in DEFAULT_FIXED_HP.items() if key != "is_causal"}
    sampled = DEFAULT_SAMPLED_HP | {"is_causal": {"distribution": "meta_choice", "choice_values": [True, False]}}
    prior = PriorDataset(batch_size=count, min_features=FEATURES[0], max_features=FEATURES[1], max_classes=CLASSES,
                         max_seq_len=ROWS, prior_type="mix_scm", scm_fixed_hp=fixed, scm_sampled_hp=sampled, n_jobs=1,
                         num_threads_per_generate=1, device="cpu")
    return len(prior.get_batch()[0])


def tabicl_rate(pool, cores, datasets):
    start = time.perf_counter()
    made = sum(pool.map(tabicl_datasets, [datasets // cores] * cores))
    return made / (time.perf_counter() - start)


def ferrite_rate(program, cores, datasets, seed):
    command = [program, "priors", "--datasets", str(datasets), "--rows", str(ROWS), "--features",
               f"{FEATURES[0]}:{FEATURES[1]}", "--classes", f"2:{CLASSES}", "--seed", str(seed), "--json"]
    reply = subprocess.run(command, capture_output=True, text=True, check=True,
                           env=os.environ | {"FERRITE_NUM_THREADS": str(cores)})
    result = json.loads(reply.stdout)
    return datasets / result["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    try:
        import tabicl.prior  # noqa: F401
        import xgboost  # noqa: F401
    except ImportError as error:
        print(f"no comparison of priors with TabICL: {error}; pip install tabicl xgboost (which brings PyTorch)")
        return 0
    program = options.build / "src" / "ferrite"
    rates = {"tabicl": [], "ferrite": []}
    with ProcessPoolExecutor(options.cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        tabicl_rate(pool, options.cores, 8 * options.cores)  # starts the workers
        for round_number in range(options.rounds):
            rates["ferrite"].append(ferrite_rate(program, options.cores, 1000, round_number))
            rates["tabicl"].append(tabicl_rate(pool, options.cores, 32 * options.cores))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    ratio = middle["ferrite"] / middle["tabicl"]
    for name, rate in middle.items():
        print(f"{name:<8}{rate:8.1f} datasets/s on {options.cores} cores, median of {options.rounds}")
    for what, value, least in (("datasets/s", middle["ferrite"], 300), ("times TabICL", ratio, 10)):
        print(f"{value:8.1f} {what}, at least {least}: {'yes' if value >= least else 'NO'}")
    options.out.mkdir(parents=True, exist_ok=True)
    versions = {"tabicl": version("tabicl"), "torch": version("torch")}
    machine = {"machine": platform.machine(), "cores": options.cores, "load": os.getloadavg()}
    result = {"datasets_per_second": middle, "ratio": ratio, "all": rates, "versions": versions, "machine": machine}
    (options.out / "tabicl_peers.json").write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
