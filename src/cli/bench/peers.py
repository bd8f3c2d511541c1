"""The rows of `ferrite bench` in NumPy and PyTorch. Started as `python3 -c <this text> PEER THREADS`, where PEER is
numpy, torch or torch-cuda. Its first line says what it is, or why it cannot run; then a row comes in on each line,
and its figures go out on another. Calls are timed as src/cli/bench/timing.cpp times ferrite's; change both together."""

import json
import math
import statistics
import sys
import time

PEER, THREADS = sys.argv[1], int(sys.argv[2])


class NumpyPeer:
    def __init__(self):
        import numpy
        self.np = numpy
        self.dtypes = {"f32": numpy.float32, "f64": numpy.float64, "f16": numpy.float16, "i64": numpy.int64}
        self.what = f"NumPy {numpy.__version__}, {THREADS} threads in products, one elsewhere"
        self.random = numpy.random.default_rng(1)

    def draw(self, shape, dtype, classes, uniform):
        if classes:
            return self.random.integers(0, classes, shape)
        values = uniform * self.random.random(shape) if uniform else self.random.standard_normal(shape)
        return values.astype(dtype)

    def wide(self, x):
        return x.astype(self.np.float64) if x.dtype.kind == "f" else x

    def distance(self, y, exact):
        norm = self.np.linalg.norm
        size, off = norm(exact), norm(self.np.asarray(y, self.np.float64) - exact)
        return float(off / size if size > 0 else off)

    def synchronize(self):
        pass

    def call(self, op):
        np = self.np

        def softmax(x):
            e = np.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

        def layer_norm(x, weight, bias):
            centred = x - x.mean(-1, keepdims=True)
            return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + x.dtype.type(1e-5)) * weight + bias

        def batch_norm(x, weight, bias):
            axes, shape = (0, 2, 3), (1, -1, 1, 1)
            scale = weight.reshape(shape) / np.sqrt(x.var(axes, keepdims=True) + x.dtype.type(1e-5))
            return (x - x.mean(axes, keepdims=True)) * scale + bias.reshape(shape)

        def cross_entropy(x, y):
            top = x.max(-1)
            total = np.log(np.exp(x - top[:, None]).sum(-1))
            return total + top - x[np.arange(len(y)), y]

        def windows(x):
            n, c, h, w = x.shape
            return x.reshape(n, c, h // 2, 2, w // 2, 2)

        def gelu(x):
            return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

        return {"add": np.add, "mul": np.multiply, "relu": lambda x: np.maximum(x, 0), "gelu": gelu,
                "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "copy": np.copy, "sum": np.sum, "matmul": np.matmul,
                "softmax": softmax, "layer_norm": layer_norm, "batch_norm": batch_norm,
                "cross_entropy": cross_entropy, "max_pool2d": lambda x: windows(x).max((3, 5)),
                "avg_pool2d": lambda x: windows(x).mean((3, 5))}.get(op)

    def step(self, op):
        return None


class TorchPeer:
    def __init__(self, device):
        import torch
        import torch.nn.functional as functional
        self.torch, self.F, self.device = torch, functional, device
        if device == "cuda" and not torch.cuda.is_available():
            raise ImportError("PyTorch finds no GPU")
        torch.set_num_threads(THREADS)
        torch.manual_seed(1)
        self.dtypes = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
                       "i64": torch.int64}
        where = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads"
        self.what = f"PyTorch {torch.__version__}, {where}"
        if device == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            self.flush = torch.empty(64_000_000, device="cuda")  # more than the L2 cache

    def draw(self, shape, dtype, classes, uniform):
        if classes:
            return self.torch.randint(0, classes, shape, device=self.device)
        if uniform:
            return self.torch.rand(shape, dtype=dtype, device=self.device) * uniform
        return self.torch.randn(shape, dtype=dtype, device=self.device)

    def wide(self, x):
        return x.double() if x.is_floating_point() else x

    def distance(self, y, exact):
        norm = self.torch.linalg.vector_norm
        size, off = norm(exact).item(), norm(y.double() - exact).item()
        return off / size if size > 0 else off

    def synchronize(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def call(self, op):
        torch, F = self.torch, self.F
        return {"add": torch.add, "mul": torch.mul, "relu": torch.relu, "sigmoid": torch.sigmoid,
                "gelu": lambda x: F.gelu(x, approximate="tanh"), "copy": torch.clone, "sum": torch.sum,
                "matmul": torch.matmul, "softmax": lambda x: torch.softmax(x, -1),
                "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
                "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
                "cross_entropy": lambda x, y: F.cross_entropy(x, y, reduction="none"),
                "conv2d": lambda x, w: F.conv2d(x, w, padding=1), "max_pool2d": lambda x: F.max_pool2d(x, 2),
                "avg_pool2d": lambda x: F.avg_pool2d(x, 2)}.get(op)

    def step(self, op):
        """One training step of the networks in src/cli/bench/training_rows.cpp."""
        torch, nn = self.torch, self.torch.nn
        with torch.device(self.device):
            if op == "train_mlp":
                net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                    nn.Linear(512, 10))
                x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))
            else:
                net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                    nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
                x, y = torch.randn(64, 1, 8, 8), torch.randint(0, 10, (64,))
        adamw = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

        def step():
            adamw.zero_grad(set_to_none=True)
            self.F.cross_entropy(net(x), y).backward()
            adamw.step()
        return step


def time_calls(peer, call, row, on_device):
    def by_wall(calls):
        peer.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        peer.synchronize()
        return time.perf_counter() - start

    def by_events(calls):
        begin, end = (peer.torch.cuda.Event(enable_timing=True) for _ in range(2))
        peer.flush.zero_()
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    batch, most = by_events if on_device else by_wall, row["max_seconds"]
    start = time.perf_counter()
    for i in range(row["warmup"]):
        if i == 0 or time.perf_counter() - start < most:
            batch(1)

    def attempt(calls):
        first, enough = batch(calls), row["batch_seconds"]
        return first if first < enough or first > 20 * enough else min(first, batch(calls))

    calls, trial = 1, attempt(1)
    while trial < row["batch_seconds"] and calls < row["most_calls"]:
        calls *= 2
        trial = attempt(calls)
    times = [trial / calls] if trial >= most else []
    start = time.perf_counter()
    while len(times) < row["iterations"] and (not times or (trial < most and time.perf_counter() - start < most)):
        times.append(batch(calls) / calls)
    return {"seconds": statistics.median_high(times), "min_seconds": min(times), "iterations": len(times),
            "calls": calls}


def measure_op(peer, call, row):
    sets = [[peer.draw(tuple(x["shape"]), peer.dtypes[x["dtype"]], x["classes"], x["uniform"])
             for x in row["inputs"]] for _ in range(row["sets"])]
    results, turn = [None] * len(sets), 0

    def next_call():
        nonlocal turn
        turn = (turn + 1) % len(sets)
        results[turn] = call(*sets[turn])

    figures = time_calls(peer, next_call, row, PEER == "torch-cuda")
    if row["check"]:
        error = peer.distance(call(*sets[0]), call(*(peer.wide(x) for x in sets[0])))
        figures["error"] = error if math.isfinite(error) else None  # JSON has no NaN
    return figures


def measure(peer, row):
    if row["dtype"] not in peer.dtypes:
        return {"note": "not in this dtype"}
    if not row["inputs"]:
        step = peer.step(row["op"])
        return time_calls(peer, step, row, False) if step else {"note": "not in this comparison"}
    call = peer.call(row["op"])
    if call is None:
        return {"note": "not in this comparison"}
    if PEER == "numpy":
        return measure_op(peer, call, row)
    with peer.torch.inference_mode():
        return measure_op(peer, call, row)


def main():
    try:
        peer = NumpyPeer() if PEER == "numpy" else TorchPeer("cuda" if PEER == "torch-cuda" else "cpu")
    except ImportError as error:
        print(json.dumps({"missing": f"{error} ({sys.executable}); --python names another"}), flush=True)
        return
    print(json.dumps({"what": peer.what}), flush=True)
    for line in sys.stdin:
        try:
            figures = measure(peer, json.loads(line))
        except Exception as error:  # one row that fails does not stop the others
            figures = {"note": f"{type(error).__name__}: {error}"}
        print(json.dumps(figures), flush=True)


main()
