"""The prior-fitted network in PyTorch (torch_pfn.py): training steps and inference, in seconds.

ferrite's counterpart is pfn_bench.cpp, whose rows have the same names up to the last part. Tables are random and the
batch stays the same: making tables is not measured. Every line of --out is a row in JSON. Rows are measured with both forms
of attention among cells (torch_pfn.CELL_ATTENTION), and the faster one counts; "forms" has both.

    python3 benches/pfn/torch_rows.py --device cuda --out torch.jsonl
    python3 benches/pfn/torch_rows.py --device cpu --threads 2 --only train --tables 1 --train-rows 112 --query-rows 128 --columns 8
    python3 benches/pfn/torch_rows.py --device cuda --only infer --modes eager compile --sdpa cudnn
    python3 benches/pfn/torch_rows.py --check --ferrite build/release/src/ferrite

Modes: eager; compile (torch.compile for these sizes); graph and compile-graph, on a GPU, replay the whole step, optimiser
included, as one CUDA graph.
"""

import argparse
import contextlib
import itertools
import json
import os
import statistics
import sys
import tempfile
import time

import torch

import torch_pfn

STANDARD = {"task": "classification", "classes": 10, "bins": 100, "dim": 192, "head_width": 32, "layers": 6,
            "hidden": 512, "registers": 16, "offsets": [0, 1, 3], "eps": 1e-5, "dtype": "f32"}
# Tables, train rows, query rows, columns: of the standard course (src/models/pfn/course.cpp).
# Fewer tables for a CPU, where a step takes seconds.
COURSE = {"cuda": [(195, 64, 64, 3), (46, 112, 128, 8), (12, 240, 128, 21), (2, 1008, 128, 36)],
          "cpu": [(8, 64, 64, 3), (2, 112, 128, 8), (1, 240, 128, 21)]}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
CLASSES = 4  # that the tables have


def size_name(tables, train, query, columns):
    return f"{tables}x{train}+{query}x{columns}"


def make_batch(tables, train, query, columns):
    """On the host: x with missing cells, is_category, labels, targets, classes."""
    torch.manual_seed(1)
    x = torch.randn(tables, train + query, columns)
    x[torch.rand_like(x) < 0.03] = torch.nan
    is_category = (torch.rand(tables, columns) < 0.3).float()
    y = torch.randint(0, CLASSES, (tables, train + query))
    return x, is_category, y[:, :train].contiguous(), y[:, train:].contiguous(), torch.full((tables,), CLASSES)


class Clock:
    def __init__(self, device, seconds):
        self.device, self.seconds = device, seconds

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def time(self, call, per_wait):
        """The median seconds of a call, after three that do not count; the host waits after every `per_wait`."""
        for _ in range(3):
            call()
        times, start = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < self.seconds:
            self.synchronize()
            begin = time.perf_counter()
            for _ in range(per_wait):
                call()
            self.synchronize()
            times.append((time.perf_counter() - begin) / per_wait)
        return statistics.median(times)


def captured(call):
    """The work of call() as a CUDA graph, after three runs on another stream; returns replay and what call returned."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    return graph.replay, result


def optimizers_of(model, kind, device):
    """The settings of `ferrite pfn train`. Muon takes the matrices of the blocks."""
    shared = {"betas": (0.9, 0.98), "fused": True, **({"capturable": True} if device == "cuda" else {})}
    of_muon = [p for name, p in model.named_parameters() if kind == "muon" and name.startswith("blocks.") and p.ndim == 2]
    ids = {id(p) for p in of_muon}
    rest = [p for p in model.parameters() if id(p) not in ids]
    lr = 2e-3 if kind == "muon" else 1e-3
    groups = [{"params": [p for p in rest if p.ndim >= 2], "weight_decay": 0.01},
              {"params": [p for p in rest if p.ndim < 2], "weight_decay": 0.0}]
    made = [torch.optim.AdamW(groups, lr=lr, **shared)]
    if of_muon:
        made.append(torch.optim.Muon(of_muon, lr=lr, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"))
    return made


def time_training(args, clock, size, dtype, mode, form):
    model = torch_pfn.Pfn(STANDARD | args.network, form).to(args.device)
    batch = [t.to(args.device) for t in make_batch(*size)]
    optimizers, parameters = optimizers_of(model, args.optimizer, args.device), list(model.parameters())

    def loss_of(*tensors):
        with torch.autocast(args.device, torch.bfloat16, enabled=dtype == "bf16"):
            return model.loss(*tensors)

    loss = torch.compile(loss_of, dynamic=False) if mode.startswith("compile") else loss_of

    def step():
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss(*batch).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        for optimizer in optimizers:
            optimizer.step()

    call = captured(step)[0] if mode.endswith("graph") else step
    return clock.time(call, per_wait=10 if args.device == "cuda" else 1), sum(p.numel() for p in parameters)


def time_inference(args, clock, size, dtype, mode, form, together):
    """Cells on the host to probabilities on the host: of all tables at once, or of one after the other."""
    model = torch_pfn.Pfn(STANDARD | args.network, form).to(args.device, DTYPES[dtype]).eval()
    host = [t.pin_memory() if args.device == "cuda" else t for t in make_batch(*size)[:3]]
    width = size[0] if together else 1
    inputs = [t[:width].to(args.device) for t in host]

    def probabilities():
        return model(*inputs)[:, :, :CLASSES].softmax(-1)

    if mode.startswith("compile"):
        probabilities = torch.compile(probabilities, dynamic=False)
    with torch.no_grad():
        replay, result = captured(probabilities) if mode.endswith("graph") else (None, None)

        def run():
            for first in range(0, size[0], width):
                for static, t in zip(inputs, host):
                    static.copy_(t[first:first + width], non_blocking=True)
                (replay() or result if replay else probabilities()).cpu()

        return clock.time(run, per_wait=1), sum(p.numel() for p in model.parameters())


def best_form(args, measure):
    """The faster form's measurement, and of both the seconds or why it failed: one row must not cost the others."""
    forms, best = {}, None
    for form in args.cells:
        try:
            torch.compiler.reset()
            seconds, parameters = measure(form)
            forms[form] = seconds
            if best is None or seconds < best["seconds"]:
                best = {"seconds": seconds, "form": form, "parameters": parameters}
        except Exception as error:
            forms[form] = f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        if args.device == "cuda":
            torch.cuda.empty_cache()
    return (best or {"failed": True}) | {"forms": forms}


def rows_of(args, clock):
    only_given = any(v is not None for v in (args.tables, args.train_rows, args.query_rows, args.columns))
    if "train" in args.only:
        for size in [given_size(args)] if only_given else COURSE[args.device]:
            for dtype, mode in itertools.product(args.dtypes or ["bf16" if args.device == "cuda" else "f32"], args.modes):
                row = best_form(args, lambda form: time_training(args, clock, size, dtype, mode, form))
                if "seconds" in row:
                    cells = size[0] * (size[1] + size[2]) * (size[3] + 1)
                    row |= {"steps_per_s": 1 / row["seconds"], "cells": cells, "cells_per_s": cells / row["seconds"]}
                yield {"name": f"pfn_train/{size_name(*size)}/{dtype}/{args.optimizer}/{mode}"} | row
    if "infer" in args.only:
        size = given_size(args, (4, 500, 500, 10))
        for dtype, together, mode in itertools.product(args.dtypes or ["f32", "bf16"], (True, False), args.modes):
            row = best_form(args, lambda form: time_inference(args, clock, size, dtype, mode, form, together))
            yield {"name": f"pfn_infer/{size_name(*size)}/{dtype}/{'batch' if together else 'single'}/{mode}"} | row


def given_size(args, default=(None, 240, 128, 21)):
    tables, train, query, columns = (
        given if given is not None else usual
        for given, usual in zip((args.tables, args.train_rows, args.query_rows, args.columns), default))
    return tables or max(1, 100_000 // ((train + query) * (columns + 1))), train, query, columns


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    add("--threads", type=int, help="of the CPU")
    add("--only", nargs="+", choices=["train", "infer"], default=["train", "infer"])
    add("--modes", nargs="+", choices=["eager", "compile", "graph", "compile-graph"], help="default: all of the device")
    add("--dtypes", nargs="+", choices=list(DTYPES),
        help="default: training bf16 (mixed) on a GPU and f32 on a CPU, inference both")
    add("--cells", nargs="+", choices=list(torch_pfn.CELL_ATTENTION), default=list(torch_pfn.CELL_ATTENTION),
        help="forms of attention among cells")
    add("--sdpa", choices=["default", "cudnn", "flash", "efficient"], default="default",
        help="which kernels scaled_dot_product_attention tries first")
    add("--optimizer", choices=["adamw", "muon"], default="adamw")
    add("--tables", type=int, help="of a batch; default: about 100,000 cells, for inference 4")
    add("--train-rows", type=int, help="of a table; with none of these four, sizes of the standard course")
    add("--query-rows", type=int)
    add("--columns", type=int)
    add("--network", type=json.loads, default={}, metavar="JSON", help='other than standard, as \'{"layers": 2}\'')
    add("--tf32", action="store_true", help="products of f32 may round their operands to TF32")
    add("--seconds", type=float, default=3, help="measuring time of a row and form")
    add("--out", help="JSON lines; default: standard output")
    add("--check", action="store_true", help="measure nothing: compare with what ferrite predicts")
    add("--ferrite", default="build/release/src/ferrite", help="the program, for --check")
    args = parser.parse_args()
    args.modes = args.modes or ["eager", "compile"] + (["graph", "compile-graph"] if args.device == "cuda" else [])
    if args.device == "cpu" and any(mode.endswith("graph") for mode in args.modes):
        parser.error("graphs need --device cuda")
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU")
    return args


def sdpa_context(choice):
    if choice == "default":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    every = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
             "efficient": SDPBackend.EFFICIENT_ATTENTION}
    return sdpa_kernel([every[choice], *(b for name, b in every.items() if name != choice), SDPBackend.MATH],
                       set_priority=True)


def main():
    args = parse()
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.check:
        import torch_check
        with tempfile.TemporaryDirectory() as folder:
            sys.exit(0 if torch_check.check(os.path.abspath(args.ferrite), folder) else 1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
    torch._dynamo.config.recompile_limit = 64
    machine = {"who": "torch", "torch": torch.__version__, "threads": torch.get_num_threads(), "sdpa": args.sdpa,
               "tf32": args.tf32, "device": torch.cuda.get_device_name() if args.device == "cuda" else "cpu"}
    with open(args.out, "w") if args.out else contextlib.nullcontext(sys.stdout) as out, sdpa_context(args.sdpa):
        for row in rows_of(args, Clock(args.device, args.seconds)):
            print(json.dumps(row | machine), file=out, flush=True)
            if args.out:
                print(f"{row['name']:60} {row.get('seconds', float('nan')) * 1e3:10.3f} ms  {row['forms']}", flush=True)


if __name__ == "__main__":
    main()
