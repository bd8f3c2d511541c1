"""Branches and loops in Warp's form."""

import warp as wp

TAPS = 3


@wp.kernel
def clamp(a: wp.array[float], low: float, high: float, out: wp.array[float]):
    i = wp.tid()
    x = a[i]
    if x < low:
        x = low
    elif x > high:
        x = high
    else:
        x = x * 2.0
    out[i] = x


@wp.kernel
def only_if(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    r = 0.0
    if a[i] > 0.0:
        r = a[i]
        t = r * 2.0
        out[i] = t
    out[i] = r


@wp.kernel
def guard(a: wp.array[float], n: int, out: wp.array[float]):
    i = wp.tid()
    if i >= n:
        return
    out[i] = a[i]


@wp.kernel
def conditions(a: wp.array[float], n: int, out: wp.array[int]):
    i = wp.tid()
    x = a[i]
    if (x > 0.0 and x < 1.0 and i != 3) or not (n == 2):
        out[i] = 1
    elif 0.0 <= x < 2.0:
        out[i] = 2
    elif n:
        out[i] = 3
    else:
        out[i] = 4


@wp.kernel
def chosen(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = a[i] if a[i] > 0.5 else wp.where(i % 2 == 0, 1.0, -a[i])


@wp.kernel
def sum_loop(a: wp.array[float], n: int, out: wp.array[float]):
    i = wp.tid()
    s = float(0.0)
    p = float(1.0)
    for k in range(n):
        s += a[k] * float(i)
        p = p * (1.0 + a[k])
    out[i] = s / p


@wp.kernel
def unrolled(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    s = 0.0
    for k in range(TAPS):
        s += a[i + k] * float(k + 1)
    for k in range(3, -1, -1):
        s -= a[k]
    out[i] = s


@wp.kernel
def many_constants(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    s = float(0.0)
    for k in range(40):
        s += a[k]
    for k in range(100, 3, -5):
        s = s * 0.5 + a[k]
    out[i] = s


@wp.kernel
def nested(a: wp.array2d[float], n: int, out: wp.array[float]):
    i = wp.tid()
    s = float(0.0)
    for j in range(1, n, 2):
        for k in range(j):
            if a[j, k] < 0.0:
                continue
            s += a[j, k]
            if s > 100.0:
                break
        s = s * 0.5
    out[i] = s


@wp.kernel
def while_loop(a: wp.array[float], out: wp.array[int]):
    i = wp.tid()
    x = a[i]
    n = int(0)
    while x > 1.0 and n < 50:
        x = x * 0.5
        n += 1
        if n == 30:
            break
    out[i] = n


@wp.kernel
def continue_unrolled(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    s = float(0.0)
    for k in range(4):
        if a[k] < 0.0:
            s += 1.0
            continue
        s += a[k]
        s = s * 2.0
    out[i] = s


@wp.kernel
def break_of_constants(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    s = float(0.0)
    for k in range(8):
        if a[k] > 3.0:
            break
        s += a[k]
    out[i] = s


@wp.kernel
def returns_in_branches(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x = a[i]
    if x < 0.0:
        if x < -1.0:
            out[i] = -1.0
            return
        x = -x
    out[i] = x


@wp.kernel(enable_backward=False)
def forward_only(a: wp.array[float], n: int, out: wp.array[float]):
    i = wp.tid()
    best = a[0]
    where = int(0)
    for k in range(1, n):
        if a[k] > best:
            best = a[k]
            where = k
    out[i] = best + float(where)


@wp.func
def half(x: float) -> float:
    return x * 0.5


@wp.func
def parts(x: float, n: int):
    if x > float(n):
        return half(x), n
    return x, n + 1


@wp.func
def fill(out: wp.array[float], i: int, x: float):
    out[i] = x


@wp.kernel
def functions(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    x, n = parts(a[i], i)
    fill(out, i, half(x) + float(n))
