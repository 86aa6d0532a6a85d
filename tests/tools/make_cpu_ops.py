"""Records tests/data/cpu/ops.json: small graphs for the host executor with the values torch computes for them in double precision.

Inputs follow a formula that the C test repeats (see `uniform`), so only outputs are stored. In simulated cases every value is rounded to its
encoding with explicit integer arithmetic after each operator, as docs/architecture.md defines it.

Run: python tests/tools/make_cpu_ops.py (needs numpy and torch)."""

import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).parents[1] / "data" / "cpu" / "ops.json"


def uniform(count, seed, amplitude):
    """Multiples of amplitude / 2^23 in [-amplitude, amplitude); exact in float32 when amplitude is a power of two."""
    i = np.arange(count, dtype=np.uint64)
    bits = ((i + np.uint64(seed) * np.uint64(7919)) * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
    bits = (bits ^ (bits >> np.uint64(15))) * np.uint64(2246822519) & np.uint64(0xFFFFFFFF)
    return ((bits >> np.uint64(8)).astype(np.float64) / 2**23 - 1.0) * amplitude


def limits(tensor):
    bits = tensor["encoding"]["bits"]
    if tensor["dtype"] in ("u8", "u16"):
        return 0, 2**bits - 1
    high = 2 ** (bits - 1) - 1
    return (-high if tensor["kind"] == "static" else -high - 1), high


def element_scales(tensor, shape):
    """The scale of every element of a tensor with an encoding."""
    e = tensor["encoding"]
    if "scale" in e:
        return np.full(shape, np.float64(np.float32(e["scale"])))
    scales = np.array(e["scales"], dtype=np.float32)
    if "block_scales" in e:  # [channels][blocks] over the inputs of a weight whose matrix is [N, K]
        blocks = np.array(e["block_scales"], dtype=np.float32).reshape(len(scales), -1)
        per_block = (scales[:, None] * blocks).astype(np.float32)
        return np.repeat(per_block, shape[1] // blocks.shape[1], axis=1).astype(np.float64)
    view = [1] * len(shape)
    view[e["axis"]] = len(scales)
    return np.broadcast_to(scales.astype(np.float64).reshape(view), shape)


def to_integers(tensor, values, scales):
    low, high = limits(tensor)
    offset = tensor["encoding"].get("offset", 0)
    return np.clip(np.rint(values / scales).astype(np.int64) - offset, low, high)


def rounded(tensor, values, shape=None):
    if "encoding" not in tensor:
        return values
    shape = values.shape if shape is None else shape
    scales = element_scales(tensor, shape).reshape(values.shape)
    return scales * (to_integers(tensor, values, scales) + tensor["encoding"].get("offset", 0))


def evaluate(op, x):
    t = [torch.from_numpy(np.ascontiguousarray(v)) for v in x]
    kind, a = op["kind"], op.get("attributes", {})
    if kind == "Gather":
        return torch.index_select(t[0], a["axis"], t[1].flatten().long()).reshape(
            t[0].shape[: a["axis"]] + t[1].shape + t[0].shape[a["axis"] + 1 :]
        )
    if kind == "RmsNorm":
        return F.rms_norm(t[0], t[1].shape, t[1], eps=float(np.float32(a["epsilon"]))) + t[2]
    if kind == "LayerNorm":
        return F.layer_norm(t[0], t[1].shape, t[1], t[2], eps=float(np.float32(a["epsilon"])))
    if kind == "Conv2d":
        return F.linear(t[0], t[1], t[2] if len(t) == 3 else None)
    if kind == "MatMul":
        left = t[0].transpose(-1, -2) if a.get("transpose_a") else t[0]
        right = t[1].transpose(-1, -2) if a.get("transpose_b") else t[1]
        return left @ right
    if kind == "ElementWiseAdd":
        return t[0] + t[1]
    if kind == "ElementWiseSubtract":
        return t[0] - t[1]
    if kind == "ElementWiseMultiply":
        return t[0] * t[1]
    if kind == "Sigmoid":
        return torch.sigmoid(t[0])
    if kind == "Tanh":
        return torch.tanh(t[0])
    if kind == "Gelu":
        return F.gelu(t[0])
    if kind == "Softmax":
        return torch.softmax(t[0], -1)
    if kind == "Concat":
        return torch.cat(t, a["axis"])
    if kind == "StridedSlice":
        return t[0][tuple(slice(b, e) for b, e in zip(a["begin"], a["end"]))]
    if kind == "Reshape":
        return t[0].reshape(op["dims"])
    if kind == "Transpose":
        return t[0].permute(a["perm"])
    if kind == "Convert":
        return t[0]
    raise ValueError(kind)


class Case:
    """A graph, built and evaluated in one go."""

    def __init__(self, name, simulated=False):
        self.doc = {"name": name, "mode": "simulated" if simulated else "float", "tensors": [], "ops": []}
        self.simulated = simulated
        self.values = {}
        CASES.append(self)

    def _tensor(self, name, kind, dims, dtype, values, encoding, **extra):
        tensor = {"name": name, "kind": kind, "dtype": dtype, "dims": list(dims), **extra}
        if encoding:
            tensor["encoding"] = encoding
        self.doc["tensors"].append(tensor)
        self.values[name] = values
        return tensor

    def input(self, name, dims, seed, amplitude=2.0, dtype="f32", encoding=None):
        """A fixed-point input's integers are the formula's values rounded to the encoding; the C test hands over the same integers."""
        values = uniform(int(np.prod(dims)), seed, amplitude).reshape(dims)
        tensor = self._tensor(name, "input", dims, dtype, values, encoding, seed=seed, amplitude=amplitude)
        if self.simulated:
            self.values[name] = rounded(tensor, values)
        return name

    def indices(self, name, dims, values):
        self._tensor(name, "input", dims, "i32", np.array(values, dtype=np.int32).reshape(dims), None, integers=list(values))
        return name

    def static(self, name, dims, seed, amplitude=1.0, rows=None, dtype="f32", encoding=None):
        """`dims` is the tensor's shape; the values' matrix is [rows, cols] (for a linear weight [N, K] of dims [1, 1, K, N])."""
        count = int(np.prod(dims))
        linear = len(dims) == 4 and dims[:2] == [1, 1] and rows == dims[3]
        shape = [dims[3], dims[2]] if linear else list(dims)
        values = uniform(count, seed, amplitude).reshape(shape)
        rows = rows or (shape[0] if len(shape) > 1 else 1)
        tensor = self._tensor(name, "static", dims, dtype, values, encoding, seed=seed, amplitude=amplitude, rows=rows, cols=count // rows)
        if self.simulated and encoding:
            if linear and "scales" in encoding and "block_scales" not in encoding:
                scales = np.repeat(np.array(encoding["scales"], dtype=np.float32)[:, None], shape[1], axis=1).astype(np.float64)
                self.values[name] = scales * to_integers(tensor, values, scales)
            else:
                self.values[name] = rounded(tensor, values, shape)
        return name

    def op(self, kind, inputs, output, dims=None, dtype="f32", encoding=None, is_output=False, **attributes):
        op = {"kind": kind, "inputs": inputs, "output": output, "attributes": attributes}
        result = evaluate({**op, "dims": dims}, [self.values[i] for i in inputs]).numpy()
        if dims:
            assert list(result.shape) == list(dims), (self.doc["name"], result.shape, dims)
        tensor = self._tensor(output, "output" if is_output else "intermediate", result.shape, dtype, result, encoding)
        if self.simulated and encoding:
            scales = element_scales(tensor, result.shape)
            integers = to_integers(tensor, result, scales)
            self.values[output] = scales * (integers + encoding.get("offset", 0))
        if is_output:
            if self.simulated and encoding:
                tensor["expected"] = integers.flatten().tolist()
            else:
                tensor["expected"] = [float(f"{v:.9g}") for v in self.values[output].flatten()]
        self.doc["ops"].append(op)
        return output

    def out(self, kind, inputs, output, **more):
        return self.op(kind, inputs, output, is_output=True, **more)


CASES = []


def float_cases():
    for m, k, n, bias in ((1, 8, 5, False), (3, 33, 17, True), (1, 100, 70, True), (37, 64, 130, False)):
        c = Case(f"linear {m}x{k}x{n}{' bias' if bias else ''}")
        ops = [c.input("x", [1, 1, m, k], 1), c.static("w", [1, 1, k, n], 2, rows=n)]
        if bias:
            ops.append(c.static("b", [n], 3))
        c.out("Conv2d", ops, "y")
    c = Case("linear over rows and columns")
    c.out("Conv2d", [c.input("x", [1, 2, 3, 6], 4), c.static("w", [1, 1, 6, 4], 5, rows=4)], "y")

    for dims in ([1, 5, 48], [1, 1, 1, 7], [2, 3, 33]):
        width = dims[-1]
        for kind in ("RmsNorm", "LayerNorm"):
            c = Case(f"{kind} {dims}")
            ops = [c.input("x", dims, 6, 4.0), c.static("g", [width], 7), c.static("b", [width], 8)]
            c.out(kind, ops, "y", epsilon=1e-5)

    shapes = [
        ([2, 3, 17], [2, 3, 17]),
        ([2, 3, 17], [17]),
        ([2, 3, 17], [1]),
        ([1], [2, 3, 4]),
        ([2, 1, 5], [1, 4, 1]),
        ([1, 9, 4, 8], [1, 1, 4, 8]),
        ([1, 1, 4, 8], [1, 9, 4, 8]),
        ([3, 1, 7], [3, 5, 7]),
        ([3, 5, 1], [3, 5, 7]),
        ([1, 2, 1, 3, 1], [2, 1, 3, 1, 4]),
        ([1], [1]),
    ]
    for a, b in shapes:
        for kind in ("ElementWiseAdd", "ElementWiseSubtract", "ElementWiseMultiply"):
            c = Case(f"{kind} {a} {b}")
            c.out(kind, [c.input("a", a, 9), c.input("b", b, 10)], "y")
    c = Case("a tensor times itself")
    c.out("ElementWiseMultiply", [c.input("x", [1, 20], 11), "x"], "y")

    for kind in ("Sigmoid", "Tanh", "Gelu"):
        c = Case(kind)
        c.out(kind, [c.input("x", [1, 3, 41], 12, 8.0)], "y")
    for dims in ([1, 4, 33], [2, 3, 1], [1, 1, 2, 130]):
        c = Case(f"Softmax {dims}")
        c.out("Softmax", [c.input("x", dims, 13, 16.0)], "y")

    for ta in (False, True):
        for tb in (False, True):
            for b, m, k, n in ((2, 3, 5, 4), (3, 1, 20, 33), (1, 30, 16, 18)):
                c = Case(f"MatMul {b}x{m}x{k}x{n} {ta} {tb}")
                c.out(
                    "MatMul",
                    [c.input("a", [1, b, k, m] if ta else [1, b, m, k], 14), c.input("b", [1, b, n, k] if tb else [1, b, k, n], 15)],
                    "y",
                    transpose_a=ta,
                    transpose_b=tb,
                )
    c = Case("MatMul by a static")
    c.out("MatMul", [c.input("a", [5, 6], 16), c.static("b", [6, 3], 17)], "y")

    for axis in (0, 1, 2, 3):
        dims = [2, 3, 4, 5]
        other = list(dims)
        other[axis] = 2
        c = Case(f"Concat axis {axis}")
        c.out("Concat", [c.input("a", dims, 18), c.input("b", other, 19), "a"], "y", axis=axis)

    for begin, end in (
        ([0, 0, 0, 0], [1, 3, 4, 5]),
        ([0, 1, 0, 0], [1, 3, 4, 5]),
        ([0, 0, 2, 0], [1, 3, 3, 5]),
        ([0, 0, 0, 1], [1, 3, 4, 4]),
        ([0, 1, 1, 1], [1, 2, 4, 3]),
        ([0, 2, 3, 4], [1, 3, 4, 5]),
        ([0, 2, 1, 2], [1, 3, 2, 5]),
    ):
        c = Case(f"StridedSlice {begin} {end}")
        c.out("StridedSlice", [c.input("x", [1, 3, 4, 5], 20)], "y", begin=begin, end=end)

    for dims, perm in (
        ([5, 7], [1, 0]),
        ([1, 9, 4, 8], [0, 2, 1, 3]),
        ([1, 4, 9, 8], [0, 1, 3, 2]),
        ([2, 3, 4, 5], [3, 1, 0, 2]),
        ([2, 3, 4, 5], [1, 2, 3, 0]),
        ([2, 3, 4, 5], [0, 1, 2, 3]),
        ([1, 40, 1, 33], [0, 3, 2, 1]),
        ([2, 1, 3, 2, 4], [4, 2, 1, 0, 3]),
        ([1, 1, 6, 1], [2, 0, 1, 3]),
    ):
        c = Case(f"Transpose {dims} {perm}")
        c.out("Transpose", [c.input("x", dims, 21)], "y", perm=perm)

    c = Case("Gather of rows of a static")
    c.out("Gather", [c.static("t", [11, 6], 22), c.indices("i", [1, 4], [10, 0, 3, 3])], "y", axis=0)
    c = Case("Gather of an activation")
    c.out("Gather", [c.input("t", [4, 3, 5], 23), c.indices("i", [2, 2], [2, 0, 1, 1])], "y", axis=0)

    c = Case("Reshape and Convert")
    x = c.op("Reshape", [c.input("x", [2, 3, 4], 24)], "r", dims=[1, 6, 4])
    c.out("Convert", [x], "y")


def graph_cases():
    c = Case("outputs that are views, read again, written in place")
    x = c.input("x", [1, 4, 6], 30)
    s = c.op("Sigmoid", [x], "s")
    v = c.out("Reshape", [s], "v", dims=[1, 2, 12])
    t = c.op("Tanh", [v], "t")
    u = c.op("ElementWiseAdd", [t, v], "u")
    part = c.out("StridedSlice", [u], "part", begin=[0, 1, 0], end=[1, 2, 12])
    c.out("Reshape", [part], "again", dims=[3, 4])
    c.out("Tanh", [u], "last")

    c = Case("a chain in place with a slice in the middle")
    x = c.input("x", [1, 4, 6], 31)
    a = c.op("Tanh", [x], "a")
    b = c.op("Sigmoid", [a], "b")
    half = c.op("StridedSlice", [b], "half", begin=[0, 2, 0], end=[1, 4, 6])
    d = c.op("Gelu", [half], "d")
    low = c.op("StridedSlice", [d], "low", begin=[0, 0, 0], end=[1, 2, 3])
    high = c.op("StridedSlice", [d], "high", begin=[0, 0, 3], end=[1, 2, 6])
    rotated = c.op("Concat", [high, low], "rotated", axis=2)
    c.out("ElementWiseSubtract", [d, rotated], "y")

    c = Case("attention with shared heads")
    h, kv, d, m = 4, 2, 8, 6
    x = c.input("x", [1, 1, m, 24], 32)
    q = c.op("Conv2d", [x, c.static("wq", [1, 1, 24, h * d], 33, 0.5, rows=h * d)], "q")
    k = c.op("Conv2d", [x, c.static("wk", [1, 1, 24, kv * d], 34, 0.5, rows=kv * d)], "k")
    v = c.op("Conv2d", [x, c.static("wv", [1, 1, 24, kv * d], 35, 0.5, rows=kv * d)], "v")
    q = c.op("Reshape", [q], "q.split", dims=[1, m, h, d])
    q = c.op("Transpose", [q], "q.heads", perm=[0, 2, 1, 3])
    q = c.op("Reshape", [q], "q.groups", dims=[1, kv, h // kv * m, d])
    k = c.op("Reshape", [k], "k.split", dims=[1, m, kv, d])
    k = c.out("Transpose", [k], "k.out", perm=[0, 2, 3, 1])
    v = c.op("Reshape", [v], "v.split", dims=[1, m, kv, d])
    v = c.out("Transpose", [v], "v.out", perm=[0, 2, 1, 3])
    s = c.op("MatMul", [q, k], "scores", transpose_a=False, transpose_b=False)
    s = c.op("ElementWiseMultiply", [s, c.static("root", [1], 36)], "scaled")
    s = c.op("Reshape", [s], "scores.heads", dims=[1, h, m, m])
    s = c.op("ElementWiseAdd", [s, c.input("mask", [1, 1, m, m], 37)], "masked")
    p = c.op("Softmax", [s], "p")
    p = c.op("Reshape", [p], "p.groups", dims=[1, kv, h // kv * m, m])
    o = c.op("MatMul", [p, v], "o")
    o = c.op("Reshape", [o], "o.heads", dims=[1, h, m, d])
    o = c.op("Transpose", [o], "o.rows", perm=[0, 2, 1, 3])
    o = c.op("Reshape", [o], "o.flat", dims=[1, 1, m, h * d])
    o = c.op("Conv2d", [o, c.static("wo", [1, 1, h * d, 24], 38, 0.5, rows=24)], "proj")
    c.out("ElementWiseAdd", [x, o], "y")


def per_tensor(bits, low, high, signed=False):
    """Scale and offset that cover [low, high] with zero representable."""
    if signed:
        return {"bits": bits, "scale": float(np.float32(max(-low, high) / (2 ** (bits - 1) - 1))), "offset": 0}
    scale = float(np.float32((high - low) / (2**bits - 1)))
    return {"bits": bits, "scale": scale, "offset": int(np.rint(low / scale))}


def per_channel(count, bits, axis, amplitude):
    high = 2 ** (bits - 1) - 1
    return {"bits": bits, "axis": axis, "scales": [float(np.float32(amplitude * (0.5 + 0.5 * (i % 7) / 6) / high)) for i in range(count)]}


def simulated_cases():
    u16, u8 = per_tensor(16, -2.5, 3.0), per_tensor(8, -1.5, 2.25)
    for name, source, target in (
        ("u16 to u8", ("u16", u16), ("u8", u8)),
        ("u8 to u16", ("u8", u8), ("u16", u16)),
        ("u16 to u16", ("u16", u16), ("u16", per_tensor(16, -1.0, 2.0))),
        ("s8 to u16", ("s8", per_tensor(8, -2, 2, True)), ("u16", u16)),
        ("u16 to s16", ("u16", u16), ("s16", per_tensor(16, -2, 2, True))),
    ):
        c = Case(f"Convert {name}", True)
        x = c.input("x", [1, 3, 50], 40, 4.0, *source)
        c.out("Convert", [x], "y", dtype=target[0], encoding=target[1])
    c = Case("Reshape keeps an encoding, Convert of a view", True)
    x = c.input("x", [1, 4, 6], 41, 2.0, "u16", u16)
    r = c.out("Reshape", [x], "r", dims=[2, 12], dtype="u16", encoding=u16)
    c.out("Convert", [r], "y", dtype="u8", encoding=u8)
    c = Case("Concat of different encodings", True)
    a, b = c.input("a", [1, 2, 5], 42, 2.0, "u16", u16), c.input("b", [1, 3, 5], 43, 2.0, "u8", u8)
    c.out("Concat", [a, b], "y", axis=1, dtype="u16", encoding=per_tensor(16, -2.47, 2.6))

    kinds = {
        "per channel 8": ("s8", lambda n, k: per_channel(n, 8, 3, 1.0)),
        "per channel 4": ("s8", lambda n, k: per_channel(n, 4, 3, 1.0)),
        "per tensor": ("s8", lambda n, k: per_tensor(8, -1, 1, True)),
        "blocks": (
            "s8",
            lambda n, k: {
                **per_channel(n, 4, 3, 1.0 / 16),
                "block_scales": [1 + (i * 5) % 16 for i in range(n * (k // 16))],
            },
        ),
    }
    for label, (dtype, encoding) in kinds.items():
        for m, k, n in ((1, 32, 20), (9, 48, 33)):
            c = Case(f"linear {label} {m}x{k}x{n}", True)
            x = c.input("x", [1, 1, m, k], 44, 2.0, "u16", u16)
            weights = encoding(n, k)
            w = c.static("w", [1, 1, k, n], 45, 1.0, rows=n, dtype=dtype, encoding=weights)
            scales = weights.get("scales", [weights.get("scale")] * n)
            bias = {"bits": 32, "axis": 0, "scales": [float(np.float32(np.float32(u16["scale"]) * np.float32(s))) for s in scales]}
            b = c.static("b", [n], 46, 1.0, dtype="s32", encoding=bias)
            c.out("Conv2d", [x, w, b], "y", dtype="u16", encoding=per_tensor(16, -16, 16))

    unit = {"bits": 16, "scale": float(np.float32(1 / 65535)), "offset": 0}
    for kind, target in (
        ("Softmax", ("u16", unit)),
        ("Sigmoid", ("u16", per_tensor(16, 0, 1))),
        ("Tanh", ("u8", per_tensor(8, -1, 1))),
        ("Gelu", ("u16", per_tensor(16, -0.2, 2.1))),
    ):
        c = Case(f"{kind} of 16 bits", True)
        c.out(kind, [c.input("x", [1, 3, 32], 47, 2.0, "u16", u16)], "y", dtype=target[0], encoding=target[1])
    for kind in ("RmsNorm", "LayerNorm"):
        c = Case(f"{kind} of 16 bits", True)
        x = c.input("x", [1, 3, 32], 47, 2.0, "u16", u16)
        g = c.static("g", [32], 48, 1.0, dtype="u16", encoding=per_tensor(16, -1, 1))
        b = c.static("b", [32], 49, 1.0, dtype="s32", encoding={"bits": 32, "scale": 1.0 / 65536, "offset": 0})
        c.out(kind, [x, g, b], "y", epsilon=1e-5, dtype="u16", encoding=per_tensor(16, -3, 3))
    for kind in ("ElementWiseAdd", "ElementWiseSubtract", "ElementWiseMultiply"):
        c = Case(f"{kind} of 16 and 8 bits", True)
        a, b = c.input("a", [1, 3, 32], 57, 2.0, "u16", u16), c.input("b", [1, 32], 58, 2.0, "u8", u8)
        c.out(kind, [a, b], "y", dtype="u16", encoding=per_tensor(16, -3.1, 3.3))

    c = Case("MatMul of 16 by 8 bits", True)
    a = c.input("a", [1, 2, 4, 16], 50, 2.0, "u16", u16)
    b = c.input("b", [1, 2, 16, 9], 51, 2.0, "u8", u8)
    c.out("MatMul", [a, b], "y", dtype="u16", encoding=per_tensor(16, -20, 20))

    c = Case("Gather of a quantized table", True)
    t = c.static("t", [11, 6], 52, 1.0, dtype="u16", encoding=per_tensor(16, -1, 1))
    i = c.indices("i", [1, 3], [10, 0, 7])
    c.out("Gather", [t, i], "y", axis=0, dtype="u16", encoding=per_tensor(16, -1, 1))
    c = Case("Gather of a table with a scale per row", True)
    t = c.static("t", [7, 5], 53, 1.0, dtype="s8", encoding=per_channel(7, 8, 0, 1.0))
    i = c.indices("i", [3], [6, 0, 2])
    c.out("Gather", [t, i], "y", axis=0, dtype="u16", encoding=per_tensor(16, -1, 1))
    c = Case("a static with a scale per column", True)
    x = c.input("x", [4, 5], 54, 2.0, "u16", u16)
    w = c.static("w", [4, 5], 55, 1.0, dtype="s8", encoding=per_channel(5, 8, 1, 1.0))
    c.out("ElementWiseMultiply", [x, w], "y", dtype="u16", encoding=per_tensor(16, -2, 2))

    c = Case("float tensors between quantized ones", True)
    x = c.input("x", [1, 10], 56, 2.0, "u16", u16)
    t = c.op("Tanh", [x], "t")
    c.out("ElementWiseAdd", [t, x], "y")


float_cases()
graph_cases()
simulated_cases()
OUT.parent.mkdir(parents=True, exist_ok=True)
lines = ",\n".join(json.dumps(c.doc, separators=(",", ":")) for c in CASES)
OUT.write_text('{"cases":[\n' + lines + "\n]}\n")
print(OUT.name, len(CASES), "cases", OUT.stat().st_size, "bytes")
