"""Branches and loops."""

import warp as wp

ROUNDS = wp.constant(4)


# run: dim=64 x=normal:64 y=zeros:64
@wp.kernel
def branches(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = x[i]
    if v < -1.0:
        r = -1.0
    elif v < 0.0:
        r = -0.5
    elif v < 1.0:
        r = 0.5
    else:
        r = 1.0
    y[i] = r


# run: dim=32 n=20 y=zeros:32
@wp.kernel
def collatz(n: int, y: wp.array[int]):
    i = wp.tid()
    v = int(i + 1)
    steps = int(0)
    while v != 1 and steps < 200:
        if v % 2 == 0:
            v = v // 2
        else:
            v = 3 * v + 1
        steps += 1
    y[i] = steps


# run: dim=16 n=9 x=normal:16x9 y=zeros:16
@wp.kernel
def row_sum(x: wp.array2d[float], y: wp.array[float], n: int):
    i = wp.tid()
    total = float(0.0)
    for j in range(n):
        total += x[i, j]
    y[i] = total


# run: dim=16 y=zeros:16
@wp.kernel
def constant_range(y: wp.array[float]):
    i = wp.tid()
    s = float(0.0)
    for k in range(ROUNDS):
        for m in range(1, 4):
            s += float(k * m) / float(i + 1)
    y[i] = s


# run: dim=16 n=40 y=zeros:16
@wp.kernel
def break_and_continue(n: int, y: wp.array[int]):
    i = wp.tid()
    s = int(0)
    for k in range(n):
        if k % 3 == 1:
            continue
        if k > i * 2:
            break
        for m in range(k):
            if m == 3:
                break
            s += m
        s += k
    y[i] = s


# run: dim=16 y=zeros:16
@wp.kernel
def count_down(y: wp.array[int]):
    i = wp.tid()
    s = int(0)
    for k in range(i, -5, -3):
        s = s * 3 + k
    y[i] = s


# run: dim=16 x=normal:16 y=zeros:16
@wp.kernel
def newton_root(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = wp.abs(x[i]) + 0.1
    r = v * 0.5 + 0.5
    err = float(1.0)
    rounds = int(0)
    while err > 1.0e-3 and rounds < 30:
        next = 0.5 * (r + v / r)
        err = wp.abs(next - r)
        r = next
        rounds = rounds + 1
    y[i] = r


# run: dim=64 x=normal:64 y=zeros:64
@wp.kernel
def conditions(x: wp.array[float], y: wp.array[int]):
    i = wp.tid()
    v = x[i]
    inside = -0.5 < v < 0.5
    odd = i % 2 == 1
    if (inside or odd) and not (inside and odd):
        y[i] = 1
    elif i and v > 0.0:
        y[i] = 2
    else:
        y[i] = 3 if odd else 4


# run: dim=16 y=zeros:16
@wp.kernel
def swap(y: wp.array[int]):
    i = wp.tid()
    a = int(0)
    b = int(1)
    for k in range(i):
        a, b = b, a + b
    y[i] = a
