"""The comparison as one HTML file: plots as inline SVG and the whole table. No network, no libraries.

Every plot is a list of rows with one dot per measured backend on a common logarithmic axis; names and values stand
beside the dots, and hovering over a dot gives the exact figure.
"""

import html
import math

WHO = {"cuda": "ferrite on the GPU", "torch": "PyTorch on the GPU", "cpu": "ferrite on the CPU",
       "naive": "ferrite's naive CPU reference"}
NAME_WIDTH, PLOT_WIDTH, VALUE_WIDTH, LINE = 310, 560, 90, 17

STYLE = """
:root { color-scheme: light dark; --text: #1c1c1c; --faint: #6b6b6b; --grid: #dedede; --back: #ffffff; --bad: #b3261e;
  --good: #1a7f37; --cuda: #0b63c4; --torch: #d9570d; --cpu: #0f8a6d; --naive: #8b5fbf; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --faint: #a0a0a0; --grid: #3a3a3a; --back: #161616;
  --bad: #ff8a80; --good: #6fdd8b; --cuda: #62a8ff; --torch: #ff9a57; --cpu: #4ecfae; --naive: #c3a1f0; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1000px;
  margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2.2em; } p { color: var(--faint); max-width: 75ch; }
.scroll { overflow-x: auto; }
svg { font: 11px system-ui, sans-serif; } svg text { fill: var(--text); } svg .faint { fill: var(--faint); }
svg .head { font-weight: 600; } svg line { stroke: var(--grid); } svg .mark { stroke: var(--text); stroke-dasharray: 4 3; }
.cuda { fill: var(--cuda); color: var(--cuda); } .torch { fill: var(--torch); color: var(--torch); }
.cpu { fill: var(--cpu); color: var(--cpu); } .naive { fill: var(--naive); color: var(--naive); }
.legend span { margin-right: 1.6em; color: var(--text); } .legend b { font-size: 1.2em; }
table { border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; }
td, th { padding: 2px 9px; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; } .yes { color: var(--good); } .no { color: var(--bad); font-weight: 600; }
"""


def short(value):
    """Three digits; powers of ten only where the number would be long."""
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def ticks(low, high):
    """Powers of ten, and numbers between them where the axis is short."""
    decades = math.log10(high / low)
    steps = (1,) if decades > 2.5 else (1, 2, 5) if decades > 1 else (1, 1.5, 2, 3, 4, 5, 7)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [t for p in powers for s in steps if low <= (t := s * 10.0**p) <= high]


def plot(points, unit, mark=None):
    """points: (name, {who: value}), all values positive. mark: (value, label) of a line across the plot."""
    values = [v for _, by in points for v in by.values()] + ([mark[0]] if mark else [])
    if not values:
        return "<p>Nothing was measured.</p>"
    low, high = min(values) / 1.15, max(values) * 1.15

    def x(value):
        return NAME_WIDTH + PLOT_WIDTH * math.log(value / low) / math.log(high / low)

    def words(at, y, content, kind="", anchor="start"):
        return f'<text x="{at:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(content)}</text>'

    body, y, family = [], 34, None
    for name, by in points:
        op, _, rest = name.partition("/")
        if op != family:
            family, y = op, y + 8
            body.append(words(0, y + 4, op, "head"))
        body.append(words(NAME_WIDTH - 10, y + 4, rest, "faint", "end"))
        body.append(f'<line x1="{NAME_WIDTH}" x2="{NAME_WIDTH + PLOT_WIDTH}" y1="{y}" y2="{y}"/>')
        for who in reversed(WHO):  # ferrite's GPU last, on top
            if who in by:
                tip = f"{name}, {WHO[who]}: {short(by[who])} {unit}"
                body.append(f'<circle cx="{x(by[who]):.1f}" cy="{y}" r="4.5" class="{who}"><title>{html.escape(tip)}'
                            "</title></circle>")
        if "cuda" in by:
            body.append(words(NAME_WIDTH + PLOT_WIDTH + VALUE_WIDTH, y + 4, short(by["cuda"]), "cuda", "end"))
        y += LINE
    axis = [words(NAME_WIDTH + PLOT_WIDTH + VALUE_WIDTH, 12, unit, "faint", "end")]
    for tick in ticks(low, high):
        axis.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="18" y2="{y - 8}"/>')
        axis.append(words(x(tick), 12, short(tick), "faint", "middle"))
    if mark:
        axis.append(f'<line class="mark" x1="{x(mark[0]):.1f}" x2="{x(mark[0]):.1f}" y1="18" y2="{y}"/>')
        axis.append(words(x(mark[0]), y + 12, mark[1], "", "middle"))
    width, height = NAME_WIDTH + PLOT_WIDTH + VALUE_WIDTH, y + 18
    return (f'<div class="scroll"><svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
            + "".join(axis + body) + "</svg></div>")


def select(rows, value_of, whos=tuple(WHO), keep=lambda row: True):
    """The rows with ferrite's GPU among those that have a positive value."""
    points = []
    for row in filter(keep, rows):
        by = {who: v for who in whos if (v := value_of(row, who)) and v > 0}
        if "cuda" in by:
            points.append((row["name"], by))
    return points


def table(rows):
    def cell(value, form="{:.2f}", scale=1.0):
        return "" if value is None else form.format(value * scale)

    def verdict(met):
        return {True: '<td class="yes">yes</td>', False: '<td class="no">no</td>'}.get(met, "<td></td>")

    lines = ["<tr><th>row</th>" + "".join(f"<th>{WHO[w]}, us</th>" for w in WHO)
             + "<th>speed-up</th><th>share</th><th>limit</th><th>got</th><th>met</th><th>error</th><th>PyTorch's</th>"
             "<th>ok</th></tr>"]
    for row in rows:
        limit = row.get("limit") or {}
        scale, sign = (1e6, "&le; {:g} us") if limit.get("kind") == "seconds" else (1, "&ge; {:g} of " + limit.get("kind", ""))
        cells = [cell((row.get(w) or {}).get("seconds"), scale=1e6) for w in WHO] + [
            cell(row["ratio"]), cell(row["share"]), cell(limit.get("at"), sign, scale),
            cell(limit.get("value"), "{:.3g}", scale)]
        errors = [cell((row.get(w) or {}).get("error"), "{:.1e}") for w in ("cuda", "torch")]
        lines.append(f"<tr><td>{html.escape(row['name'])}</td>" + "".join(f"<td>{c}</td>" for c in cells)
                     + verdict(limit.get("met")) + "".join(f"<td>{c}</td>" for c in errors)
                     + verdict(row.get("error_met")) + "</tr>")
    return '<div class="scroll"><table>' + "".join(lines) + "</table></div>"


def render(report):
    rows, copy = report["rows"], report["copy_bytes_per_second"]

    def measured(row, who, key):
        return (row.get(who) or {}).get(key)

    def rate(amount, scale):
        def value(row, who):
            seconds, per_call = measured(row, who, "seconds"), measured(row, "cuda", amount)
            return per_call / seconds / scale if seconds and per_call else None
        return value

    gpu = ("cuda", "torch")
    sections = [
        ("Speed-up over PyTorch", "PyTorch's time over ferrite's on the same GPU: right of the line ferrite is faster.",
         plot(select(rows, lambda r, who: r["ratio"], ("cuda",)), "times", (1.0, "PyTorch"))),
        ("Arithmetic", "Products and convolutions.",
         plot(select(rows, rate("flops", 1e12), keep=lambda r: r["bound"] == "flops"), "TFLOP/s")),
        ("Bandwidth", "Bytes that an op must move (inputs read once, outputs written once) over its time, against the "
         "best copy of 4 GiB seen in the same run.",
         plot(select(rows, rate("bytes", 1e9), gpu, lambda r: r["bound"] == "bytes"), "GB/s",
              (copy / 1e9, "copy") if copy else None)),
        ("Time on all backends", "The sizes that the CPU ran too.",
         plot(select(rows, lambda r, who: (measured(r, who, "seconds") or 0) * 1e6, keep=lambda r: "cpu" in r), "us")),
        ("Error", "Distance from the same computation in float64, relative, by L2 norms; exact results have no dot.",
         plot(select(rows, lambda r, who: measured(r, who, "error"), gpu), "relative")),
    ]
    machine = report["machine"]
    facts = [f"{machine['gpu']}, driver {machine['driver']}", f"{machine['cpu']}, {machine['cores']} cores",
             f"PyTorch {machine['torch']}, CUDA {machine['cuda']}, cuDNN {machine['cudnn']}",
             f"ferrite {machine['commit'][:12]}{machine['commit'][40:]}", machine["date"]]
    legend = "".join(f'<span><b class="{who}">&#9679;</b> {label}</span>' for who, label in WHO.items())
    body = "".join(f"<h2>{title}</h2><p>{note}</p>{drawing}" for title, note, drawing in sections)
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>ferrite and PyTorch</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
            f"<h1>ferrite and PyTorch on one GPU</h1><p>{html.escape(' · '.join(facts))}</p>"
            f'<p class="legend">{legend}</p>{body}<h2>All rows</h2><p>Medians. Share: of the copy bandwidth, or of the '
            f"best matrix product of that dtype.</p>{table(rows)}</body></html>\n")
