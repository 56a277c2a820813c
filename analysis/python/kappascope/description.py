"""Descriptions of critics (*.arch): their layers, the shapes of parameters and of state, their losses."""

from __future__ import annotations

from collections.abc import Callable

from kappascope.losses import Head, Loss
from kappascope.names import Shapes
from kappascope.refusal import Refused, did_you_mean, fail

Made = tuple[int, Shapes]  # the width of a layer's output, and its parameters


class Layer:
    """A layer of a description: its parameters and its state as {name: shape}, and its width."""

    def __init__(
        self, number: int, kind: str, out: int, params: Shapes | None = None, state: Shapes | None = None
    ) -> None:
        self.group, self.kind, self.out = f"{number:02d}_{kind}", kind, out
        self.params, self.state, self.trainable = params or {}, state or {}, True


class Description:
    """The layers of a description in the order of their numbers, the width of its output, and the
    losses of its heads as [(loss, outputs)]: one of them, several, or none if it has no loss."""

    def __init__(self, layers: list[Layer], outputs: int, heads: list[Head]) -> None:
        self.layers, self.outputs, self.heads = layers, outputs, heads
        self.joint = any(layer.kind in ("batchnorm", "batchrenorm") for layer in layers)

    def trained(self) -> list[Layer]:
        """The layers, those that are not trained without their parameters."""
        return [x if x.trainable else Layer(0, x.kind, x.out) for x in self.layers]


def _columns(text: str, width: int) -> int:
    """The number of columns in the [a:b] of a word or a line, counted from `width`."""
    first, last = text[text.index("[") + 1 : text.index("]")].split(":")
    return len(range(width)[int(first) if first else None : int(last) if last else None])


def _dense(width: int, words: list[str], options: dict[str, str], _: _Reader) -> Made:
    out, groups = int(words[1]), int(options.get("groups", 1))
    kernel = (width // groups, out)
    params: Shapes = {"v": kernel, "g": (out,)} if options.get("norm") == "weight" else {"kernel": kernel}
    if options.get("bias", "yes") == "yes":
        params["bias"] = (out,)
    return out, params


def _norm(width: int, _: list[str], options: dict[str, str], __: _Reader) -> Made:
    names = ["scale", "bias"]
    if options.get("affine") == "no":
        names = []
    elif options.get("bias") == "no":
        names = ["scale"]
    return width, {name: (width,) for name in names}


def _vector(name: str) -> Callable[..., Made]:
    """A layer with one parameter for each feature."""

    def kind(width: int, *_: object) -> Made:
        return width, {name: (width,)}

    return kind


def _same(width: int, *_: object) -> Made:
    return width, {}


def _dueling(width: int, _: list[str], options: dict[str, str], __: _Reader) -> Made:
    return width - int(options.get("atoms", 1)), {}


def _conv2d(_: int, words: list[str], options: dict[str, str], reader: _Reader) -> Made:
    """The image is as the line says, or as the convolution before made it."""
    filters, size = int(words[1]), int(options["size"])
    stride, padding = int(options.get("stride", 1)), int(options.get("padding", 0))
    channels, *sides = (
        int(options.get(key, one)) for key, one in zip(("channels", "height", "width"), reader.image)
    )
    height, width = ((side + 2 * padding - size) // stride + 1 for side in sides)
    reader.image = filters, height, width
    params: Shapes = {"kernel": (channels * size * size, filters)}
    if options.get("bias", "yes") == "yes":
        params["bias"] = (filters,)
    return filters * height * width, params


# kind: (width, arguments, options, reader) -> Made
KINDS: dict[str, Callable[..., Made]] = {
    "dense": _dense,
    "batchnorm": _norm,
    "batchrenorm": _norm,
    "layernorm": _norm,
    "groupnorm": _norm,
    "conv2d": _conv2d,
    "rmsnorm": _vector("scale"),
    "scaler": _vector("scaler"),
    "lerp": _vector("alpha"),
    "append": lambda width, *_: (width + 1, {}),
    "input": lambda width, words, _, reader: (_columns(words[1], reader.inputs), {}),
    "concat": lambda width, words, _, reader: (width + _columns(words[1], reader.inputs), {}),
    "select": lambda width, words, _, reader: (width // _columns(words[1], reader.inputs), {}),
    "slice": lambda width, words, *_: (_columns(words[1], width), {}),
    "dueling": _dueling,
    **dict.fromkeys(
        "dropout l2norm avgl1norm simnorm relu tanh silu gelu elu mish leaky_relu relu6 sigmoid "
        "softplus".split(),
        _same,
    ),
}
UNCOUNTED = "input", "slice"  # layers that have no number
CONTAINERS = "repeat", "residual", "lerp", "branch"
_LAST = "dense", "dueling", "select", "slice"  # what the last layer may be


class _Reader:
    """Reads the lines of a description whose input has `inputs` columns: fills layers and heads."""

    def __init__(self, lines: list[str], inputs: int) -> None:
        self.lines, self.inputs = lines, inputs
        self.image = 0, 0, 0  # channels, height and width that the last convolution made
        self.layers: list[Layer] = []
        self.heads: list[Head] = []

    def block(self, at: int, width: int, inside: bool = False) -> tuple[int, int]:
        """Reads from line `at` to the } of this block, or to the end; returns (that line,
        width)."""
        while at < len(self.lines) and self.lines[at] != "}":
            words = self.lines[at].rstrip("{").split()
            if self.lines[at].endswith("{"):
                at, width = self._container(at, words, width)
                continue
            if words[0] == "loss":
                self.heads.append((Loss(self.lines[at]), width))
            else:
                width = self._layer(words, width)
            at += 1
        if inside != (at < len(self.lines)):
            fail("description: " + ("a { is never closed" if inside else "a } closes nothing"))
        return at, width

    def _container(self, at: int, words: list[str], width: int) -> tuple[int, int]:
        """Reads the container that opens in line `at`; returns (the line behind it, width)."""
        kind, begin = words[0], at + 1
        if kind not in CONTAINERS:
            fail(f"description: expected {', '.join(CONTAINERS)} before {{, found {self.lines[at]!r}")
        if kind == "branch":
            at, out = self.block(begin, width, inside=True)
            while at + 1 < len(self.lines) and self.lines[at + 1].split()[0] == "branch":
                at, more = self.block(at + 2, width, inside=True)
                out += more
            return at + 1, out
        for _ in range(int(words[1]) if kind == "repeat" else 1):
            at, width = self.block(begin, width, inside=True)
        return at + 1, self._layer(words, width) if kind == "lerp" else width

    def _layer(self, words: list[str], width: int) -> int:
        kind = words[0]
        if kind not in KINDS:
            fail(
                f"description: expected a layer ({', '.join(KINDS)}), found {' '.join(words)!r}"
                + did_you_mean(kind, KINDS)
            )
        options = dict(word.split("=", 1) for word in words if "=" in word)
        width, params = KINDS[kind](width, [word for word in words if "=" not in word], options, self)
        if kind not in UNCOUNTED:
            moments = ("mean", "var") if kind in ("batchnorm", "batchrenorm") else ()
            state: Shapes = {m: (width,) for m in moments}
            if options.get("norm") == "spectral":
                state = {"u": (width,), "v": params["kernel"][:1]}
            layer = Layer(len(self.layers), kind, width, params, state)
            layer.trainable = options.get("trainable") != "no"
            self.layers.append(layer)
        return width


def read_description(text: str, inputs: int) -> Description:
    """The description of a critic whose input has this many columns."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    loss = Loss(lines.pop()) if lines and lines[-1].split()[0] == "loss" else None
    reader = _Reader(lines, inputs)
    try:
        _, outputs = reader.block(0, inputs)
    except (ValueError, IndexError, KeyError) as error:
        if isinstance(error, Refused):
            raise
        fail(f"description: cannot be read: {error}")
    last = lines[-1].split()[0] if lines else "nothing"
    if reader.heads and (loss or last != "}"):
        fail(
            "description: expected the losses of the heads in the last branches, and nothing behind them, "
            f"found {text.strip().splitlines()[-1]!r}"
        )
    if not reader.heads and last not in _LAST:
        fail(f"description: expected a dense as its last layer, found {last}")
    return Description(reader.layers, outputs, reader.heads or ([(loss, outputs)] if loss else []))
