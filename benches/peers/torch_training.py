"""Training steps of ferrite and PyTorch on the same CPU and threads, side by side in one run.

    ./dev bench --peer torch        (or: python3 benches/peers/torch_training.py --build build/release)

Prints a table and writes JSON with hardware and versions. Times are medians over repetitions.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time


def torch_models(torch):
    nn = torch.nn
    F = torch.nn.functional

    mlp = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))
    yield "train/mlp_784_512_512_10_batch128", mlp, lambda: F.cross_entropy(mlp(x), y)

    cnn = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    xi, yi = torch.randn(64, 1, 8, 8), torch.randint(0, 10, (64,))
    yield "train/digits_cnn_batch64", cnn, lambda: F.cross_entropy(cnn(xi), yi)

    class Block(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

        def forward(self, x):
            n, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(seen.transpose(1, 2).reshape(n, t, c))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    block = Block(256, 8)
    xt = torch.randn(8, 128, 256)
    yield "train/transformer_block_B8_T128_C256", block, lambda: block(xt).square().mean()


def time_torch(torch, seconds, repetitions):
    for name, model, forward in torch_models(torch):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = forward()
            loss.backward()
            optimizer.step()
            return loss.item()

        for _ in range(10):
            step()
        medians = []
        for _ in range(repetitions):
            count, start = 0, time.perf_counter()
            while time.perf_counter() - start < seconds:
                step()
                count += 1
            medians.append((time.perf_counter() - start) / count * 1e6)
        yield name, statistics.median(medians)


def time_ferrite(program, threads, seconds, repetitions):
    command = [program, "--benchmark_filter=train/", "--benchmark_format=json",
               f"--benchmark_min_time={seconds}", f"--benchmark_repetitions={repetitions}",
               "--benchmark_report_aggregates_only=true"]
    environment = dict(os.environ, FERRITE_NUM_THREADS=str(threads))
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode != 0:  # newer Google Benchmark wants a unit
        command[3] += "s"
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    report = json.loads(result.stdout)
    return {b["run_name"]: b["real_time"] for b in report["benchmarks"] if b["aggregate_name"] == "median"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder with the benchmarks")
    parser.add_argument("--threads", type=int, nargs="*", help="thread counts (default: 1, 2 and all cores)")
    parser.add_argument("--seconds", type=float, default=0.5, help="measuring time per repetition")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", help="write the results as JSON to this file")
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not installed for this Python: install it, or run this where it is")

    cores = os.cpu_count() or 1
    rows = []
    for threads in args.threads or sorted({1, min(2, cores), cores}):
        torch.set_num_threads(threads)
        ours = time_ferrite(os.path.join(args.build, "benches", "training_bench"), threads, args.seconds, args.repetitions)
        for name, theirs in time_torch(torch, args.seconds, args.repetitions):
            rows.append({"name": name, "threads": threads, "ferrite_us": ours[name], "torch_us": theirs,
                         "speedup": theirs / ours[name]})
    print(f"{'step':44} {'threads':>7} {'ferrite us':>11} {'torch us':>10} {'speed-up':>8}")
    for r in rows:
        print(f"{r['name']:44} {r['threads']:7} {r['ferrite_us']:11.0f} {r['torch_us']:10.0f} {r['speedup']:8.2f}")
    if args.out:
        report = {"machine": platform.machine(), "cores": cores, "torch": torch.__version__,
                  "torch_config": torch.__config__.show(), "rows": rows}
        with open(args.out, "w") as f:
            json.dump(report, f, indent=1)


if __name__ == "__main__":
    main()
