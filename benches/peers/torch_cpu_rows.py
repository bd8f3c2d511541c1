"""Row-wise ops of ferrite and PyTorch on the same CPU and threads, in turn: softmax, log_softmax, layer_norm and cross entropy with
their gradients, 4096 x 1024 f32, with inputs and results beyond the caches.

    ./dev bench --kernels softmax_f32 && python3 benches/peers/torch_cpu_rows.py --build build/release --out rows.json

Prints a table of medians and writes JSON with every measurement. `of copy` is ferrite's share of the rate at which the same threads
copy as many bytes.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

ROWS, COLUMNS, SETS, CALLS = 4096, 1024, 10, 60
PROGRAMS = ["softmax_bench", "layer_norm_bench", "softmax_cross_entropy_bench"]
NAMES = {"forward/softmax_f32": "softmax", "backward/softmax_f32": "softmax, gradient",
         "forward/log_softmax_f32": "log_softmax", "backward/log_softmax_f32": "log_softmax, gradient",
         "layer_norm_forward/f32": "layer_norm", "layer_norm_backward/f32": "layer_norm, gradient",
         "cross_entropy_forward/f32": "cross entropy", "cross_entropy_backward/f32": "cross entropy, gradient"}


def torch_ops(torch):
    """(name, inputs of one set, function)"""
    aten = torch.ops.aten

    def numbers():
        return torch.randn(ROWS, COLUMNS)

    def classes():
        return torch.randint(0, COLUMNS, (ROWS,))

    weight, bias = torch.randn(COLUMNS), torch.randn(COLUMNS)
    yield "softmax", lambda: (numbers(),), lambda x: torch.softmax(x, -1)
    yield ("softmax, gradient", lambda: (numbers(), numbers().softmax(-1)),
           lambda d, y: aten._softmax_backward_data(d, y, -1, torch.float32))
    yield "log_softmax", lambda: (numbers(),), lambda x: torch.log_softmax(x, -1)
    yield ("log_softmax, gradient", lambda: (numbers(), numbers().log_softmax(-1)),
           lambda d, y: aten._log_softmax_backward_data(d, y, -1, torch.float32))
    yield ("layer_norm", lambda: (numbers(),), lambda x: aten.native_layer_norm(x, [COLUMNS], weight, bias, 1e-5))

    def normed():
        x = numbers()
        return (numbers(), x, *aten.native_layer_norm(x, [COLUMNS], weight, bias, 1e-5)[1:])

    yield ("layer_norm, gradient", normed,
           lambda d, x, mean, rstd: aten.native_layer_norm_backward(d, x, [COLUMNS], mean, rstd, weight, bias, [True] * 3))
    yield ("cross entropy", lambda: (numbers(), classes()),
           lambda x, t: torch.nn.functional.cross_entropy(x, t, reduction="none"))

    def recorded():
        x = numbers().requires_grad_()
        t = classes()
        return torch.nn.functional.cross_entropy(x, t, reduction="none"), x, torch.randn(ROWS)

    yield ("cross entropy, gradient", recorded,
           lambda loss, x, d: torch.autograd.grad(loss, x, d, retain_graph=True)[0])


def time_torch(threads):
    import torch
    torch.set_num_threads(threads)
    times = {}
    for name, make, f in torch_ops(torch):
        sets, results = [make() for _ in range(SETS)], [None] * SETS
        for i in range(SETS):
            results[i] = f(*sets[i])
        seconds = []
        for i in range(CALLS):  # a result is kept until its turn comes again, so that outputs are as cold as inputs
            start = time.perf_counter()
            results[i % SETS] = f(*sets[i % SETS])
            seconds.append(time.perf_counter() - start)
        times[name] = 1e6 * statistics.median(seconds)
    return times


def time_ferrite(build, threads):
    times = {}
    for program in PROGRAMS:
        report = subprocess.run([os.path.join(build, "benches", program), "--benchmark_filter=f32", "--benchmark_format=json"],
                                env=dict(os.environ, FERRITE_NUM_THREADS=str(threads)), capture_output=True, text=True, check=True)
        for row in json.loads(report.stdout)["benchmarks"]:
            name = NAMES["/".join(row["name"].split("/")[:2])]
            times[name] = {"us": row["fused_us"], "copy_us": row["copy_us"], "of_copy": row["of_copy"]}
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder with the benchmarks")
    parser.add_argument("--threads", type=int, nargs="*", help="thread counts (default: 1, 2 and all cores)")
    parser.add_argument("--rounds", type=int, default=3, help="how often both take their turns")
    parser.add_argument("--out", help="write every measurement as JSON to this file")
    parser.add_argument("--torch-alone", type=int, metavar="THREADS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch_alone:
        return json.dump(time_torch(args.torch_alone), sys.stdout)
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not installed for this Python: install it, or run this where it is")

    cores = os.cpu_count() or 1
    measured = []
    for threads in args.threads or sorted({1, min(2, cores), cores}):
        for _ in range(args.rounds):
            # A process of its own: threads of one library would wait beside those of the other.
            theirs = subprocess.run([sys.executable, __file__, "--torch-alone", str(threads)], capture_output=True, text=True, check=True)
            measured.append({"threads": threads, "torch_us": json.loads(theirs.stdout), "ferrite": time_ferrite(args.build, threads)})
    print(f"{'op':26} {'threads':>7} {'ferrite us':>11} {'torch us':>10} {'speed-up':>8} {'of copy':>8}")
    for threads in dict.fromkeys(m["threads"] for m in measured):
        rounds = [m for m in measured if m["threads"] == threads]
        for name in NAMES.values():
            ours, theirs, share = (statistics.median(pick(m) for m in rounds) for pick in
                                   (lambda m: m["ferrite"][name]["us"], lambda m: m["torch_us"][name], lambda m: m["ferrite"][name]["of_copy"]))
            print(f"{name:26} {threads:7} {ours:11.0f} {theirs:10.0f} {theirs / ours:8.2f} {share:8.2f}")
    if args.out:
        with open(args.out, "w") as f:
            json.dump({"machine": platform.machine(), "cores": cores, "torch": torch.__version__, "measured": measured}, f, indent=1)


if __name__ == "__main__":
    main()
