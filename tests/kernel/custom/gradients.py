"""Functions with gradients of their own, for the comparison with Warp's tape."""

import warp as wp


@wp.struct
class Part:
    weight: float
    place: wp.vec2


@wp.func
def relu(x: float):
    return wp.max(x, 0.0)


@wp.func_grad(relu)
def adj_relu(x: float, adj_ret: float):
    wp.adjoint[x] += adj_ret


@wp.func
def whole(x: float):
    return wp.round(x)


@wp.func_grad(whole)
def adj_whole(x: float, adj_ret: float):
    g = adj_ret
    if wp.abs(x) > 1.0:
        g = g * 0.5
    for k in range(2):
        wp.adjoint[x] += g


@wp.func
def polar(x: float, y: float):
    return wp.sqrt(x * x + y * y), x * y


@wp.func_grad(polar)
def adj_polar(x: float, y: float, adj_r: float, adj_p: float):
    wp.adjoint[x] += relu(adj_r) + y * adj_p
    wp.adjoint[y] -= adj_r * 2.0


@wp.func
def longest(v: wp.vec3):
    return wp.max(v)


@wp.func_grad(longest)
def adj_longest(v: wp.vec3, adj_ret: float):
    wp.adjoint[v] += wp.vec3(adj_ret, adj_ret, adj_ret)


@wp.func
def look_up(a: wp.array[float], i: int):
    return a[i]


@wp.func_grad(look_up)
def adj_look_up(a: wp.array[float], i: int, adj_ret: float):
    wp.adjoint[a][i] += 3.0 * adj_ret


@wp.func
def value_of(p: Part):
    return p.weight + p.place[0]


@wp.func_grad(value_of)
def adj_value_of(p: Part, adj_ret: float):
    wp.adjoint[p.weight] += 2.0 * adj_ret
    wp.adjoint[p.place] += wp.vec2(0.0, adj_ret)


# run: dim=8 x=normal:8 y=zeros:8
@wp.kernel
def straight_through(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = relu(x[i]) * 3.0 + whole(2.0 * x[i])


# run: dim=8 x=normal:8 y=zeros:8
@wp.kernel
def in_a_loop(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    s = float(0.0)
    for k in range(3):
        s += relu(x[i] * float(k))
    if x[i] > 0.0:
        s += whole(x[i])
    y[i] = s


# run: dim=8 x=normal:8 y=zeros:8
@wp.kernel
def several_results(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    r, p = polar(x[i], x[0])
    y[i] = r * 2.0 + p


# run: dim=4 v=normal:4x3 x=normal:4 y=zeros:4
@wp.kernel
def other_types(v: wp.array[wp.vec3], x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    t = look_up(x, 3 - i)
    y[i] = longest(v[i]) + t * t + value_of(Part(x[i], wp.vec2(x[i], x[0])))
