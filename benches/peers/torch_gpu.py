"""ferrite and PyTorch on the same GPU, row by row in one run; small rows also on ferrite's CPU backends.

    ./dev bench --peer torch        (or: python3 benches/peers/torch_gpu.py --build build/release)

Prints a table and writes torch_gpu.json (with hardware, versions and commit) and torch_gpu.html (plots).
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

import limits
import report_page

COPY = "copy/f32/1G"


def run_ferrite(program, backend, pattern, *options):
    """Rows by name. Those before a crash are kept; the crash is named."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as out:
        status = subprocess.run([program, "--backend", backend, "--filter", pattern, "--out", out.name, *options]).returncode
        rows = {row["name"]: row for row in map(json.loads, out.read().decode().splitlines())}
    if status not in (0, 1):
        print(f"{program} --backend {backend} ended with status {status} after {list(rows)[-1:]}", file=sys.stderr)
    return rows


def run_torch(ours):
    import torch

    import torch_rows
    import torch_timing

    torch.backends.cudnn.benchmark = True
    rows = {}
    for name, row in ours.items():
        if re.fullmatch(torch_rows.OURS_ALONE, name):
            continue
        try:
            rows[name] = torch_timing.measure(torch_rows.problem(name), row)
        except Exception as error:  # one row must not cost the others
            rows[name] = {"failed": str(error).splitlines()[0]}
        torch.cuda.empty_cache()
    return rows


def machine():
    import torch

    def output(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    gpu = torch.cuda.get_device_properties(0)
    models = re.findall(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    changed = output("git", "status", "--porcelain", "--untracked-files=no")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": (output("git", "rev-parse", "HEAD") or "unknown") + (" with changes" if changed else ""),
        "gpu": gpu.name, "gpu_bytes": gpu.total_memory, "multiprocessors": gpu.multi_processor_count,
        "driver": output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "cpu": models[0] if models else platform.machine(), "cores": os.cpu_count(),
        "torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
        "python": platform.python_version(),
    }


def rate(row, who, amount):
    """FLOP/s or bytes/s by ferrite's account of the row; None where one is missing."""
    seconds, per_call = limits.seconds(row, who), (row.get("cuda") or {}).get(amount)
    return per_call / seconds if seconds and per_call else None


def grouped(rows):
    """By op and then by dtype, each in the order of its first row."""
    names = [row["name"] for row in rows]

    def first(prefix):
        return next(i for i, name in enumerate(names) if name.startswith(prefix + "/"))
    return sorted(rows, key=lambda row: (first(row["name"].split("/")[0]), first(row["name"].rpartition("/")[0])))


def summarize(report):
    """Sorts the rows and adds ceilings, ratios, shares and judgements."""
    rows = report["rows"] = grouped(report["rows"])

    def best(pattern, amount):
        return max((rate(r, who, amount) or 0 for r in rows if re.fullmatch(pattern, r["name"])
                    for who in ("cuda", "torch")), default=0)

    copy = report["copy_bytes_per_second"] = best(re.escape(COPY), "bytes")
    gemm = report["gemm_flops_per_second"] = {
        d: best(rf"matmul/{d}/\d+", "flops") for d in ("f32", "tf32", "bf16", "f16", "f64")}
    for row in rows:
        op, *rest = row["name"].split("/")
        ours, theirs = limits.seconds(row, "cuda"), limits.seconds(row, "torch")
        row["ratio"] = theirs / ours if ours and theirs else None
        row["bound"] = "flops" if op.startswith(("matmul", "conv2d", "attention", "linear_cross_entropy")) else "bytes"
        ceiling = gemm.get(rest[0], 0) if row["bound"] == "flops" else copy
        reached = rate(row, "cuda", row["bound"])
        row["share"] = reached / ceiling if reached and ceiling else None
        limits.judge(row, rows, copy)


def text(value, form):
    return "-" if value is None else format(value, form)


def limit_text(limit):
    if not limit:
        return "", "", ""
    unit = {"peer": "x torch", "eager peer": "x eager torch", "copy": " of copy", "host copy": " of host copy", "seconds": " us"}[limit["kind"]]
    scale = 1e6 if limit["kind"] == "seconds" else 1
    sign = "<=" if limit["kind"] == "seconds" else ">="
    value = None if limit["value"] is None else limit["value"] * scale
    met = {True: "yes", False: "NO", None: "?"}[limit["met"]]
    return f"{sign} {limit['at'] * scale:g}{unit}", text(value, ".3g"), met


def print_table(report):
    line = "{:46} {:>11} {:>11} {:>7} {:>6}  {:20} {:>7} {:>4} {:>9} {:>9} {:>4}"
    print(line.format("row (times in us)", "ferrite", "torch", "ratio", "share", "limit", "got", "met", "error",
                      "torch's", "ok"))
    for row in report["rows"]:
        cuda, torch = row.get("cuda") or {}, row.get("torch") or {}
        if "failed" in cuda:
            print(f"{row['name']:46} FAILED: {cuda['failed']}")
            continue
        times = [None if t is None else t * 1e6 for t in (limits.seconds(row, "cuda"), limits.seconds(row, "torch"))]
        print(line.format(row["name"], *(text(t, ".2f") for t in times), text(row["ratio"], ".2f"),
                          text(row["share"], ".2f"), *limit_text(row.get("limit")), text(cuda.get("error"), ".1e"),
                          text(torch.get("error"), ".1e"), {True: "yes", False: "NO"}.get(row.get("error_met"), "")))
        if "failed" in torch:
            print(f"{'':46} PyTorch failed: {torch['failed']}")
    judged = [r["limit"]["met"] for r in report["rows"] if r.get("limit")]
    errors = [r["error_met"] for r in report["rows"] if "error_met" in r]
    print(f"speed: {judged.count(True)} of {len(judged)} limits met; error: {errors.count(True)} of {len(errors)} within "
          f"{limits.ERROR_LIMIT} times PyTorch's; copy {report['copy_bytes_per_second'] / 1e9:.0f} GB/s")


def print_backends(report):
    """The rows that the CPU ran too."""
    columns = ("naive", "cpu", "cuda", "torch")
    rows = [r for r in report["rows"] if "cpu" in r]
    if rows:
        print(f"{'row (times in us)':46}" + "".join(f" {c:>13}" for c in ("CPU naive", "CPU", "CUDA", "PyTorch")))
    for row in rows:
        times = [limits.seconds(row, who) for who in columns]
        print(f"{row['name']:46}" + "".join(f" {text(None if t is None else t * 1e6, '.2f'):>13}" for t in times))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder with the benchmarks")
    parser.add_argument("--filter", default="", help="only rows whose name matches this regular expression")
    parser.add_argument("--backends", default="cpu,naive", help="which CPU backends to run as well, or 'none'")
    parser.add_argument("--out", default="build/bench", help="folder for torch_gpu.json and torch_gpu.html")
    parser.add_argument("--fastest", action="store_true",
                        help="ferrite's ops too may give other bits on every run, as PyTorch's do")
    parser.add_argument("--report", help="measure nothing: table and page of this JSON file")
    args = parser.parse_args()
    if args.report:
        with open(args.report) as f:
            report = json.load(f)
    else:
        try:
            import torch
        except ImportError:
            sys.exit("PyTorch is not installed for this Python: install it, or run this where it is")
        if not torch.cuda.is_available():
            sys.exit("PyTorch sees no GPU")
        program = os.path.join(args.build, "benches", "cuda_bench")
        pattern = f"^{COPY}$|{args.filter}" if args.filter else ""
        results = {"cuda": run_ferrite(program, "cuda", pattern, *["--fastest"] * args.fastest)}
        results["torch"] = run_torch(results["cuda"])
        for backend in args.backends.split(",") if args.backends != "none" else ():
            results[backend] = run_ferrite(program, backend, pattern)
        report = {"machine": machine(), "bits": "any" if args.fastest else "the same on every run", "rows": [
            {"name": name, **{who: rows[name] for who, rows in results.items() if name in rows}}
            for name in results["cuda"]]}
    summarize(report)
    os.makedirs(args.out, exist_ok=True)
    for name, content in (("torch_gpu.json", json.dumps(report, indent=1)),
                          ("torch_gpu.html", report_page.render(report))):
        with open(os.path.join(args.out, name), "w") as f:
            f.write(content)
    print_backends(report)
    print_table(report)
    print(f"results: {args.out}/torch_gpu.json, torch_gpu.html", file=sys.stderr)


if __name__ == "__main__":
    main()
