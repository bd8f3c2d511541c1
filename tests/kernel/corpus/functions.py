"""Functions and structs."""

import warp as wp


@wp.struct
class Material:
    density: float
    colour: wp.vec3


@wp.struct
class Body:
    position: wp.vec3
    material: Material
    count: int


@wp.struct
class Nothing:
    pass


@wp.func
def square(x: float) -> float:
    return x * x


@wp.func
def polar(x: float, y: float):
    r = wp.sqrt(square(x) + square(y))
    return r, wp.atan2(y, x)


@wp.func
def pick(n: int, a: float, b: float):
    if n % 2 == 0:
        return a
    else:
        return b


@wp.func
def bump(x: float, times: int):
    for k in range(times):
        x = x * 1.5 + 1.0
        if x > 100.0:
            return x
    return -x


@wp.func
def brighten(m: Material, by: float):
    m.colour = m.colour * by
    m.density += 1.0
    return m


@wp.func
def store(y: wp.array[float], i: int, v: float):
    y[i] = v


# run: dim=32 x=normal:32 y=normal:32 r=zeros:32 t=zeros:32
@wp.kernel
def to_polar(x: wp.array[float], y: wp.array[float], r: wp.array[float], t: wp.array[float]):
    i = wp.tid()
    radius, angle = polar(x[i], y[i])
    r[i] = radius
    t[i] = angle


# run: dim=32 x=normal:32 y=zeros:32
@wp.kernel
def early_returns(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    v = x[i]
    store(y, i, pick(i, bump(v, i), later(v)) + v)


@wp.func
def later(x: float):
    return x - 0.125


# run: dim=16 x=normal:16x3 y=zeros:16 c=zeros:16x3
@wp.kernel
def structs(x: wp.array[wp.vec3], y: wp.array[float], c: wp.array[wp.vec3]):
    i = wp.tid()
    b = Body()
    b.position = x[i]
    b.position[1] = 2.0
    b.material.density = 0.5
    b.material.colour = wp.vec3(1.0, float(i), 3.0)
    b.count += i
    brighter = brighten(b.material, 2.0)
    other = b
    other.count = 100
    y[i] = b.material.density + brighter.density + float(b.count + other.count) + b.position.y
    c[i] = brighter.colour - b.material.colour


# run: dim=16 m.density=2.0 m.colour=1.0,2.0,3.0 y=zeros:16
@wp.kernel
def struct_argument(m: Material, y: wp.array[float]):
    i = wp.tid()
    y[i] = m.density * float(i) + wp.dot(m.colour, wp.vec3(1.0))


# run: dim=4 y=zeros:4
@wp.kernel
def empty_struct(y: wp.array[float]):
    i = wp.tid()
    n = Nothing()
    m = n
    y[i] = of_nothing(m) + float(i)


@wp.func
def of_nothing(n: Nothing) -> float:
    return 1.5
