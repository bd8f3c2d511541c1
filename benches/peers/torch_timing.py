"""How a PyTorch call is timed: as benches/backend_cuda/suite.hpp times ferrite's. Change both together."""

import functools
import math
import statistics
import time

import torch

REPETITIONS = 20
BATCH_SECONDS = 5e-3
ENOUGH_SECONDS = 1.0
BEYOND_CACHE = 256e6
MOST_BUFFERS = 32
HEAVY_FLOPS = 1e10
REST_SECONDS = 0.3


def time_calls(call, clock):
    """Median and least seconds of a call. clock: "device" (events), "call" (events around a single call that finds
    the GPU idle), "wall", or "latency" (waits for each call)."""
    flush = torch.empty(int(BEYOND_CACHE) // 4, device="cuda") if clock == "device" else None

    def batch(calls):
        if clock == "device":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            begin.record()
            for _ in range(calls):
                call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) * 1e-3
        torch.cuda.synchronize()
        if clock == "call":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) * 1e-3
        start = time.perf_counter()
        for _ in range(calls):
            call()
            if clock == "latency":
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    batch(2)
    calls = 1
    while clock != "call" and batch(calls) < BATCH_SECONDS and calls < 1024:
        calls *= 2
    times, start = [], time.perf_counter()
    while len(times) < REPETITIONS and (len(times) < 3 or time.perf_counter() - start < ENOUGH_SECONDS):
        times.append(batch(calls) / calls)
    return {"seconds": statistics.median(times), "min_seconds": min(times)}


def outputs_of(result):
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [t for t in results if isinstance(t, torch.Tensor) and t.is_floating_point()]


def error_of(problem, inputs):
    """The largest |y - y64| / |y64| of the outputs, by L2 norms; None if it is not a number."""
    wide = tuple(t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in inputs)
    worst = 0.0
    for y, exact in zip(outputs_of(problem.run(inputs)), outputs_of(problem.run(wide))):
        size, off = (torch.linalg.vector_norm(t).item() for t in (exact, y.double() - exact))
        error = off / size if size > 0 else off
        if not math.isfinite(error):
            return None
        worst = max(worst, error)
    return worst


def measure(problem, ferrite):
    """One row, with as many sets of inputs taking turns as ferrite's row had."""
    with torch.enable_grad() if problem.needs_grad else torch.inference_mode():
        moved = ferrite.get("bytes", math.inf)
        count = min(MOST_BUFFERS, max(1, math.ceil(BEYOND_CACHE / moved)))
        with torch.device("cuda"):  # not while timing: it costs microseconds per call
            sets = [problem.make() for _ in range(count)]
            ready = [problem.prepare(*inputs) for inputs in sets]
        results, turn = [None] * count, 0

        def next_call():
            nonlocal turn
            turn = (turn + 1) % count
            results[turn] = problem.call(*ready[turn])

        call = next_call if count > 1 else functools.partial(problem.call, *ready[0])
        if ferrite.get("flops", 0) >= HEAVY_FLOPS:
            call()  # chooses its kernel
            torch.cuda.synchronize()
            time.sleep(REST_SECONDS)
        row = time_calls(call, problem.clock)
        del call
        results.clear()
        ready.clear()
        del sets[1:]
        if "error" in ferrite:
            row["error"] = error_of(problem, sets[0])
    return row
