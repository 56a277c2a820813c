"""Writes critics of PyTorch and Flax as checkpoints that `kappascope analyze` reads.

    import kappascope_export
    kappascope_export.save("mine.h5", critics=[qf1, qf2], inputs=(obs, actions), targets=y,
                           loss=torch.nn.functional.mse_loss, optimizer=optimizer, step=1000)

save       PyTorch: the description is found by tracing the modules with torch.fx
unstack    PyTorch: the critics of a stacked ensemble (torch.func), as a list for save
save_flax  Flax, or any framework of JAX: the description is given, with a map of names
Monitor    saves and analyzes in the background while a program trains, and logs the statistics

README.md beside this file has examples, and says what can be expressed. This is one file, which
needs numpy and h5py. What it writes holds the results of the framework itself for its minibatches
(outputs, losses, norms of the gradient), which the analyzer compares with its own before it
analyzes anything. What cannot be expressed raises Refused, whose message has a line for each part:
where it is, why, and a way out. Then nothing is written.

How it works, for PyTorch: _Graph traces a module and computes its first minibatch; a _Value says
what a node of the graph computes; _Chain puts the values of one critic into the order of a
description; _lines writes them; _collect and _torch_proofs gather the numbers."""

import atexit
import contextlib
import copy
import csv
import difflib
import fnmatch
import inspect
import io
import json
import linecache
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np


class Refused(ValueError):
    """The critic, its inputs or its loss cannot be exported as they are."""


def _fail(message, lines=()):
    raise Refused("\n  ".join([message, *dict.fromkeys(lines)]))


# --- descriptions (*.arch) ---

class _Layer:
    """A layer of a description: its parameters and its state as {name: shape}, and its width."""

    def __init__(self, number, kind, out, params=None, state=None):
        self.group, self.kind, self.out = f"{number:02d}_{kind}", kind, out
        self.params, self.state, self.trainable = params or {}, state or {}, True


class _Description:
    """The layers of a description in the order of their numbers, the width of its output, and the
    losses of its heads as [(loss, outputs)]: one of them, several, or none if it has no loss."""

    def __init__(self, layers, outputs, heads):
        self.layers, self.outputs, self.heads = layers, outputs, heads
        self.joint = any(layer.kind in ("batchnorm", "batchrenorm") for layer in layers)


def _columns(text, width):
    """The number of columns in the [a:b] of a word or a line, counted from `width`."""
    first, last = text[text.index("[") + 1:text.index("]")].split(":")
    return len(range(width)[int(first) if first else None:int(last) if last else None])


def _dense(width, words, options, _):
    out, groups = int(words[1]), int(options.get("groups", 1))
    kernel = (width // groups, out)
    params = {"v": kernel, "g": (out,)} if options.get("norm") == "weight" else {"kernel": kernel}
    if options.get("bias", "yes") == "yes":
        params["bias"] = (out,)
    return out, params


def _norm(width, _, options, __):
    names = ["scale", "bias"]
    if options.get("affine") == "no":
        names = []
    elif options.get("bias") == "no":
        names = ["scale"]
    return width, {name: (width,) for name in names}


def _vector(name):
    """A layer with one parameter for each feature."""
    return lambda width, *_: (width, {name: (width,)})


def _same(width, *_):
    return width, {}


def _dueling(width, _, options, __):
    return width - int(options.get("atoms", 1)), {}


def _conv2d(*_):
    """Flax has images and kernels of convolutions in another order than the checkpoint."""
    _fail("description: conv2d: expected no convolutions here. Way out: write the checkpoint with "
          "h5py, with kernels as configs/README.md has them")


# kind: (width, words, options, columns of the input) -> (width of the output, {parameter: shape})
_KINDS = {
    "dense": _dense, "batchnorm": _norm, "batchrenorm": _norm, "layernorm": _norm,
    "groupnorm": _norm, "conv2d": _conv2d,
    "rmsnorm": _vector("scale"), "scaler": _vector("scaler"), "lerp": _vector("alpha"),
    "append": lambda width, *_: (width + 1, {}),
    "input": lambda width, words, _, inputs: (_columns(words[1], inputs), {}),
    "concat": lambda width, words, _, inputs: (width + _columns(words[1], inputs), {}),
    "select": lambda width, words, _, inputs: (width // _columns(words[1], inputs), {}),
    "slice": lambda width, words, *_: (_columns(words[1], width), {}),
    "dueling": _dueling,
    **dict.fromkeys(["dropout", "l2norm", "simnorm", "relu", "tanh", "silu", "gelu", "elu", "mish",
                     "leaky_relu", "relu6", "sigmoid", "softplus"], _same)}
_UNCOUNTED = "input", "slice"  # layers that have no number
_CONTAINERS = "repeat", "residual", "lerp", "branch"
_LAST = "dense", "dueling", "select", "slice"  # what the last layer may be
_LOSSES = {"mse": {}, "ce": {"min": None, "max": None}, "huber": {"delta": 1.0},
           "quantile": {"kappa": 1.0}}
_LOSS_HINTS = {
    "mseloss": "mse weight=2", "mse_loss": "mse weight=2", "l2": "mse",
    "cross_entropy": "ce min=V max=V", "crossentropyloss": "ce min=V max=V",
    "smooth_l1": "huber delta=1", "smooth_l1_loss": "huber delta=1", "huberloss": "huber delta=1",
    "huber_loss": "huber delta=1", "quantile_huber": "quantile"}


def _did_you_mean(word, known, hints=None):
    """"; did you mean X?", or nothing if no known word is similar."""
    near = [(hints or {}).get(word.lower()), *difflib.get_close_matches(word, known, 1),
            *difflib.get_close_matches(word.lower(), known, 1)]
    near = next(filter(None, near), None)
    return f"; did you mean {near!r}?" if near else ""


class _Loss:
    """A line `loss NAME option=value...`, with or without its first word. function: PyTorch's,
    which is compared with the line."""

    def __init__(self, text, function=None):
        self.function, words = function, text.split()
        words = words[1:] if words[:1] == ["loss"] else words
        name = words[0] if words else ""
        if name not in _LOSSES:
            _fail(f"loss: expected one of {', '.join(_LOSSES)}, found {name!r}"
                  + _did_you_mean(name, _LOSSES, _LOSS_HINTS))
        self.name, self.text = name, " ".join(words)
        self.options = {**_LOSSES[name], "weight": 1.0}
        for word in words[1:]:
            self._read_option(word)
        missing = [key for key, value in self.options.items() if value is None]
        if missing:
            _fail(f"loss {name}: expected the options "
                  f"{' and '.join(f'{key}=V' for key in missing)}, the values of the first and the "
                  "last atom")
        self.weight = self.options["weight"]

    def _read_option(self, word):
        key, _, value = word.partition("=")
        if key not in self.options:
            _fail(f"loss {self.name}: expected the options {', '.join(self.options)}, found "
                  f"{word!r}")
        try:
            self.options[key] = float(value)
        except ValueError:
            _fail(f"loss {self.name}: expected a number after {key}=, found {value!r}. Write a "
                  "fraction as a decimal number")


class _Reader:
    """Reads the lines of a description whose input has `inputs` columns: fills layers and heads."""

    def __init__(self, lines, inputs):
        self.lines, self.inputs, self.layers, self.heads = lines, inputs, [], []

    def block(self, at, width, inside=False):
        """Reads from line `at` to the } of this block, or to the end; returns (that line,
        width)."""
        while at < len(self.lines) and self.lines[at] != "}":
            words = self.lines[at].rstrip("{").split()
            if self.lines[at].endswith("{"):
                at, width = self._container(at, words, width)
                continue
            if words[0] == "loss":
                self.heads.append((_Loss(self.lines[at]), width))
            else:
                width = self._layer(words, width)
            at += 1
        if inside != (at < len(self.lines)):
            _fail("description: " + ("a { is never closed" if inside else "a } closes nothing"))
        return at, width

    def _container(self, at, words, width):
        """Reads the container that opens in line `at`; returns (the line behind it, width)."""
        kind, begin = words[0], at + 1
        if kind not in _CONTAINERS:
            _fail(f"description: expected {', '.join(_CONTAINERS)} before {{, found "
                  f"{self.lines[at]!r}")
        if kind == "branch":
            at, out = self.block(begin, width, inside=True)
            while at + 1 < len(self.lines) and self.lines[at + 1].split()[0] == "branch":
                at, more = self.block(at + 2, width, inside=True)
                out += more
            return at + 1, out
        for _ in range(int(words[1]) if kind == "repeat" else 1):
            at, width = self.block(begin, width, inside=True)
        return at + 1, self._layer(words, width) if kind == "lerp" else width

    def _layer(self, words, width):
        kind = words[0]
        if kind not in _KINDS:
            _fail(f"description: expected a layer ({', '.join(_KINDS)}), found {' '.join(words)!r}"
                  + _did_you_mean(kind, _KINDS))
        options = dict(word.split("=", 1) for word in words if "=" in word)
        before = width
        width, params = _KINDS[kind](width, words, options, self.inputs)
        if kind not in _UNCOUNTED:
            moments = ("mean", "var") if kind in ("batchnorm", "batchrenorm") else ()
            state = {m: (width,) for m in moments}
            if options.get("norm") == "spectral":
                state = {"u": (width,), "v": (before,)}
            layer = _Layer(len(self.layers), kind, width, params, state)
            layer.trainable = options.get("trainable") != "no"
            self.layers.append(layer)
        return width


def _read_description(text, inputs):
    """The description of a critic whose input has this many columns."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    loss = _Loss(lines.pop()) if lines and lines[-1].split()[0] == "loss" else None
    reader = _Reader(lines, inputs)
    try:
        _, outputs = reader.block(0, inputs)
    except (ValueError, IndexError) as error:
        if isinstance(error, Refused):
            raise
        _fail(f"description: cannot be read: {error}")
    last = lines[-1].split()[0] if lines else "nothing"
    if reader.heads and (loss or last != "}"):
        _fail("description: expected the losses of the heads in the last branches, and nothing "
              f"behind them, found {text.strip().splitlines()[-1]!r}")
    if not reader.heads and last not in _LAST:
        _fail(f"description: expected a dense as its last layer, found {last}")
    return _Description(reader.layers, outputs, reader.heads or ([(loss, outputs)] if loss else []))


# --- minibatches ---

def _array(name, value):
    """A real array, whatever framework it comes from."""
    if isinstance(value, (list, tuple)):
        return np.array([_array(name, part) for part in value])
    value = value.detach() if hasattr(value, "detach") else value
    value = value.cpu() if hasattr(value, "cpu") else value
    if "bfloat16" in str(getattr(value, "dtype", "")):
        value = value.float() if hasattr(value, "float") else value.astype("float32")
    array = np.asarray(value)
    if array.dtype.kind != "f":
        way = "convert them, as the training does"
        if name == "targets":
            way = "class indices of a ce loss become distributions: one_hot(y, K) as real numbers"
        elif name.startswith("inputs"):
            way += ("; the number of an action becomes a real number that forward converts by "
                    ".long(), or a one-hot vector")
        _fail(f"{name}: expected real numbers, found {array.dtype}. Way out: {way}")
    array = array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32)
    if not np.isfinite(array).all():
        _fail(f"{name}: expected finite numbers, found {array[~np.isfinite(array)][0]}")
    return array


def _minibatches(inputs):
    """{name: [N, R, D]}, and whether the caller's arrays had the first dimension."""
    arrays = {name: _array(f"inputs: {name}", value) for name, value in inputs.items()}
    shapes = ", ".join(f"{name} {list(a.shape)}" for name, a in arrays.items())
    dims = {a.ndim for a in arrays.values()}
    if not arrays or len(dims) != 1 or not dims <= {2, 3}:
        _fail("inputs: expected each as [N, R, D], or each as [R, D] for one minibatch, found "
              f"{shapes or 'none'}. Way out: reshape(..., 1) for one number in a row; for images, "
              "export the part behind the encoder, with the features as its input")
    if dims == {2}:
        arrays = {name: a[None] for name, a in arrays.items()}
    if len({a.shape[:2] for a in arrays.values()}) != 1 or 0 in next(iter(arrays.values())).shape:
        _fail("inputs: expected as many minibatches and rows of each, at least one, found "
              f"{shapes}")
    return arrays, dims == {3}


def _targets(targets, batched, rows, heads, ensemble, joint):
    """[N, B, K], or [N, B, E, K] if each critic has its own; several heads side by side. rows: N
    and R of the inputs; heads: [(loss, outputs)]."""
    parts = targets if len(heads) > 1 and isinstance(targets, (list, tuple)) else [targets]
    if len(parts) != len(heads):
        _fail(f"targets: expected a list with the targets of each of {len(heads)} heads")
    found = [_target(value, batched, rows, (*head, ensemble), len(heads) > 1)
             for value, head in zip(parts, heads)]
    count = found[0].shape[1]
    if any(t.shape[1] != count for t in found):
        _fail(f"targets: expected as many rows for each head, found {[t.shape[1] for t in found]}")
    if count < rows[1] and not joint:
        _fail(f"targets: expected {rows[1]} rows per minibatch, as the inputs have, found {count}. "
              "Rows without a target have a meaning in batch normalization only")
    if any(t.ndim == 4 for t in found):
        found = [t if t.ndim == 4 else np.repeat(t[:, :, None], ensemble, 2) for t in found]
    return np.concatenate(found, -1)


def _target(value, batched, rows, head, several):
    """The targets of one head: [N, B, K] or [N, B, E, K]. head: (loss, outputs, E)."""
    loss, outputs, ensemble = head
    t = _array("targets", value)
    shape = list(t.shape)
    t = t if batched else t[None]
    own = t.ndim == 4 and t.shape[2] == ensemble
    columns = outputs if loss.name in ("ce", "quantile") else 1
    t = t[..., None] if t.ndim == 2 and columns == 1 else t
    if loss.name == "ce" and outputs < 2:
        _fail(f"loss ce: expected critics of at least 2 outputs, found {outputs}")
    if loss.name in ("mse", "huber") and outputs != 1:
        _fail(f"loss {loss.name}: expected critics of one output, found {outputs}. Way out: the "
              "value of the taken action alone, (q * one_hot).sum(-1); or another loss")
    free = loss.name == "quantile" and not several  # any number of samples
    if not (t.ndim == 3 or own) or t.shape[0] != rows[0] or not 1 <= t.shape[1] <= rows[1] \
            or t.shape[-1] != columns and not free:
        last = "T" if free else columns
        _fail(f"targets: loss {loss.name} with {outputs} outputs: expected [N, B, {last}]"
              + (" or [N, B]" if columns == 1 else "")
              + f", or [N, B, E, {last}] if each critic has its own, with N = {rows[0]}, "
              f"B <= {rows[1]}, E = {ensemble}" + ("" if batched else ", without N as the inputs "
                                                  "have none") + f", found {shape}"
              + (". Way out: project each target on the atoms, as the training does"
                 if loss.name == "ce" else ""))
    if loss.name == "ce" and ((t < 0).any() or (abs(t.sum(-1) - 1) > 1e-3).any()):
        _fail("targets: loss ce: expected distributions over the atoms (no negative entry, sums of "
              f"1), found sums from {t.sum(-1).min():g} to {t.sum(-1).max():g} and entries from "
              f"{t.min():g}. Way out: the softmax of what are logits")
    return t


# --- the file ---

def _image(contents, attributes):
    """The bytes of an HDF5 file with {name: array} and {object: {attribute: value}}. It is made in
    memory: HDF5 cannot give up a file on a full disk that it has begun to write."""
    with h5py.File("image.h5", "w", driver="core", backing_store=False) as file:
        for name, array in contents.items():
            how = {}
            if array.size > 1:
                how = dict(chunks=True, shuffle=True, compression=1, fletcher32=True)
            file.create_dataset(name, data=array, **how)
        for name, values in attributes.items():
            file.require_group(name).attrs.update(values)
        file.flush()
        return file.id.get_file_image()


def _write(path, contents, attributes):
    """Writes a file that appears whole or not at all."""
    image = _image(contents, attributes)
    path = os.fspath(path)
    temporary = f"{path}.{os.getpid()}-{time.time_ns()}.part"
    try:
        with open(temporary, "xb") as file:
            file.write(image)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _weights(weights, targets):
    """[N, B] in float64, or None."""
    if weights is None:
        return None
    w, shape = _array("weights", weights), targets.shape[:2]
    if w.size != math.prod(shape) or w.shape not in (shape, shape[1:]) or (w < 0).any():
        _fail(f"weights: expected numbers of at least 0 of the shape {list(shape)}, one for each "
              f"row of the targets, found {list(w.shape)}, the least {w.min() if w.size else 0:g}")
    return w.reshape(shape).astype(np.float64)


def _save(path, arch, ensemble, arrays, batch, adam, root):
    """arrays: {"NN_kind/name": [E, ...]}; batch: {name: array}; adam: None, or {"m": arrays, "v":
    arrays, attributes}; root: further attributes of the file."""
    contents = {f"critic/{name}": array for name, array in arrays.items()}
    contents |= {f"batch/{name}": array for name, array in batch.items()}
    own = {"format": "kappascope-checkpoint", "version": 2 if "weight" in batch else 1}
    reserved = [name for name in own if name in root]
    if reserved:
        _fail(f"attributes: {', '.join(reserved)} says what kind of file this is, and cannot be "
              "given")
    objects = {"/": own | root, "/critic": {"arch": arch, "ensemble": ensemble}}
    if adam:
        for moment in "mv":
            contents |= {f"optimizer/{moment}/{name}": a for name, a in adam[moment].items()}
        objects["/optimizer"] = {k: adam[k] for k in ("step", "beta1", "beta2", "eps")}
    for name, array in contents.items():
        if not np.isfinite(array).all():
            _fail(f"{path}: {name}: expected finite numbers, found "
                  f"{array[~np.isfinite(array)][0]}")
    _write(path, contents, objects)


# --- losses ---

def _huber(d, delta, xp):
    return xp.where(abs(d) <= delta, 0.5 * d * d, delta * (abs(d) - delta / 2))


def _loss_rows(loss, f, t, xp, logsumexp):
    """The loss of each row [B], of outputs f [B, K] and targets t [B, T], in torch or jax.numpy
    (xp), without its weight. The formulas are those of analysis/LOSSES.md."""
    if loss.name == "mse":
        rows = 0.5 * (f - t) ** 2
    elif loss.name == "huber":
        rows = _huber(f - t, loss.options["delta"], xp)
    elif loss.name == "ce":
        rows = t.sum(-1) * logsumexp(f) - (t * f).sum(-1)
    else:
        k = f.shape[-1]
        q = xp.asarray((2 * np.arange(k) + 1) / (2 * k)).reshape(1, k, 1)
        d = t[:, None, :] - f[:, :, None]
        rows = xp.where(d < 0, 1 - q, q) * _huber(d, loss.options["kappa"], xp) / t.shape[-1]
    return rows.reshape(len(f), -1).sum(-1)


def _mean_loss(heads, f, t, w, xp, logsumexp):
    """The mean over rows of the sum over heads [(loss, outputs)], which lie side by side in f [B,
    K] and t [B, T]; w: weights of the rows [B]."""
    total, at, target = 0, 0, 0
    for loss, outputs in heads:
        columns = outputs if loss.name == "ce" or loss.name == "quantile" and len(heads) > 1 else 1
        columns = t.shape[-1] if len(heads) == 1 else columns
        rows = _loss_rows(loss, f[:, at:at + outputs], t[:, target:target + columns], xp, logsumexp)
        total = total + loss.weight * (rows * w).sum() / len(f)
        at, target = at + outputs, target + columns
    return total


def _compare_loss(check, found, ensemble, heads):
    """Compares the losses [N] with those that the caller's training computed, a number for each or
    their mean, to 0.1%."""
    given = np.atleast_1d(_array("check", check)).astype(float).ravel()
    here = found if given.size == found.size else np.array([found.mean()])
    if given.size != here.size:
        _fail(f"check: expected one loss, or one for each of {found.size} minibatches, found "
              f"{given.size}")
    if np.allclose(given, here, rtol=1e-3, atol=1e-7):
        return
    at = int(np.argmax(abs(given - here)))
    hint = ("Other inputs, inputs in another order, other targets, another loss, or evaluation "
            "mode look like this")
    factors = {1 / ensemble: "Is it the mean over the critics, where the sum is meant"}
    if heads[0][0].name == "mse":
        factors = {2: "Is it without the 1/2 of mse", **factors,
                   2 / ensemble: "Is it the mean over the critics, and without the 1/2 of mse"}
    for factor, what in factors.items() if len(heads) == 1 else ():
        if np.allclose(given, factor * here, rtol=1e-3):
            loss = heads[0][0]
            hint = (f"It is {factor:g} times as large. {what}? Then loss={loss.name!r} needs "
                    f"weight={factor * loss.weight:g}")
            break
    _fail(f"check: expected the loss {here[at]:.8g} of minibatch {at} (mean over rows, sum over "
          f"critics), found {given[at]:.8g}. {hint}")


# --- PyTorch: what a graph computes ---

class _Value:
    """What a node of the graph computes from `args`. kind is a layer's, or one of the building
    blocks below; free: no parameter takes part. params holds _Parameter objects; a layer that lacks
    one that its line has is a constant, and its numbers are 1."""

    def __init__(self, kind, node, args=(), free=False, params=None, **options):
        self.kind, self.node, self.args, self.free = kind, node, list(args), free
        self.params, self.options, self.state, self.frozen = params or {}, options, {}, False
        self.why = self.way = None


class _Parameter:
    """A parameter of a module, in another layout: transform(tensor) is a view of it or of its
    moments; factor: what forward multiplies it by; part: the indices of the part of it that is
    meant."""

    def __init__(self, name, transform=lambda tensor: tensor, factor=1.0, part=()):
        self.name, self.transform, self.factor, self.part = name, transform, factor, part

    def then(self, function):
        return _Parameter(self.name, lambda tensor, first=self.transform: function(first(tensor)),
                          self.factor, self.part)


class _Source:
    """Columns of the critic's input: take(what `value` computes) is [R, width]. what: names `take`,
    so that the same columns are stored once."""

    def __init__(self, value, width, take=None, what=""):
        self.value, self.width, self.take = value, width, take or (lambda tensor: tensor)
        self.key = value.node, what


def _split(value):
    """A norm with a scale and no bias as one without both, and a scaler, where the description has
    no such line."""
    if value.kind not in ("layernorm", "batchnorm") or set(value.params) != {"scale"}:
        return value
    inner = _Value(value.kind, value.node, value.args, **value.options)
    inner.state = value.state
    scale = value.params["scale"]
    return _Value("scaler", value.node, [inner], params={"scaler": scale}, init=scale.factor)


# A module or function: the kind of layer; and the names of the function's arguments behind the
# input.
_ACTIVATIONS = {
    "relu": "relu", "relu_": "relu", "ReLU": "relu", "tanh": "tanh", "tanh_": "tanh",
    "Tanh": "tanh", "silu": "silu", "SiLU": "silu", "mish": "mish", "Mish": "mish", "elu": "elu",
    "elu_": "elu", "ELU": "elu", "gelu": "gelu", "GELU": "gelu", "sigmoid": "sigmoid",
    "sigmoid_": "sigmoid", "Sigmoid": "sigmoid", "relu6": "relu6", "ReLU6": "relu6",
    "softplus": "softplus", "Softplus": "softplus", "leaky_relu": "leaky_relu",
    "leaky_relu_": "leaky_relu", "LeakyReLU": "leaky_relu"}
_SETTINGS = {"elu": ["alpha", "inplace"], "leaky_relu": ["negative_slope", "inplace"],
             "softplus": ["beta", "threshold"], "gelu": ["approximate"], "tanh": [], "sigmoid": []}
_ALIASES = {
    "iadd": "add", "add_": "add", "truediv": "div", "true_divide": "div", "divide": "div",
    "itruediv": "div", "div_": "div", "subtract": "sub", "isub": "sub", "sub_": "sub",
    "multiply": "mul", "imul": "mul", "mul_": "mul", "concat": "cat", "concatenate": "cat",
    "square": "pow", "linalg_norm": "norm", "linalg_vector_norm": "norm", "vector_norm": "norm",
    "clamp_min": "clamp", "clip": "clamp", "clamp_": "clamp", "bmm": "matmul", "mm": "matmul"}
_LAYOUT = {"squeeze", "unsqueeze", "view", "reshape", "flatten", "getitem", "permute", "transpose",
           "t", "T", "mT", "swapaxes", "swapdims", "movedim", "Flatten", "expand", "expand_as",
           "view_as", "unflatten", "Unflatten"}
_COPIES = {"contiguous", "clone", "Identity", "requires_grad_"}
_CASTS = {"float", "double", "to", "type", "type_as", "half", "bfloat16"}
_SHAPES = {"size", "dim", "shape", "dtype", "device", "ndim", "numel", "ones_like", "zeros_like",
           "full_like", "new_ones", "new_zeros", "new_full", "new_tensor", "ones", "zeros", "full"}
# Why a thing has no line in the description, and the way out.
_REASONS = {
    "dropout": ("its random mask is no part of the description",
                "p=0, or .eval() for this layer alone: the loss without dropout is analyzed; or "
                "the mask as an input of forward: x * mask / (1 - p)"),
    "detach": ("the analyzed loss is differentiated through all of the critic",
               "export the part after it, with its output as the input"),
    "conv": ("convolutions are not found in a graph",
             "export the head, with the features as its input, or write the critic with conv2d by "
             "h5py"),
    "minimum": ("the critics of an ensemble have a loss each",
                "return all critics' values from forward, as a tuple"),
    "mulc": ("a constant factor cannot stand behind the last Linear",
             "multiply the kernel and the bias of the Linear before it"),
    "addc": ("a constant summand has no line in the description",
             "add it to the bias of the Linear before it"),
    "cat": ("it joins rows or critics behind a layer with parameters",
            "join features, with dim=-1; or return the parts"),
    "bias": ("a bias without a Linear in front of it has no line in the description",
             "a Linear in front of it, with this bias"),
    "layout": ("it reorders, cuts or joins rows or features behind a layer with parameters",
               "do this in front of the first layer"),
    "add": ("the only sums that have a line in the description are x + f(x), and value + advantage "
            "- mean advantage", "write it as one of them"),
    "sub": ("a difference has no line in the description, except in a norm and in value + "
            "advantage - mean advantage", "write it as one of them"),
    "times": ("activations times an input have a line in the description as a mask of the same "
              "shape, and as the choice of an action, (q * one_hot).sum(-1)", "write it as one of "
                                                                              "them"),
    "gather": ("expected an index of shape [R, 1] that is computed from the inputs alone",
               "(q * one_hot).sum(-1), with the one-hot actions as an input"),
    "sum": ("the only sum over features with a line in the description is (q * one_hot).sum(-1), "
            "with one_hot an input", "write it as that, or leave it to the loss"),
    "mean": ("expected a mean over one dimension, with keepdim=True",
             ".mean(-1, keepdim=True), which a dueling head or a norm needs"),
    "output": ("forward returns something else than a critic's outputs",
               "return the outputs of the last Linear alone"),
    "softmax": ("the outputs of a ce loss are logits", "return the logits"),
    "log_softmax": ("the outputs of a ce loss are logits", "return the logits"),
}
_WORDS = {"min": "minimum", "max": "minimum", "amin": "minimum", "Dropout": "dropout",
          "AlphaDropout": "dropout", "Softmax": "softmax", "LogSoftmax": "log_softmax"}


def _reason(word):
    word = "conv" if word.lower().startswith("conv") else _WORDS.get(word, word)
    return _REASONS.get(word, ("it has no line in the description",
                               "leave it out of the module that you export, or ask for this layer"))


class _Unread(Exception):
    """A call has an argument that is not understood here."""


@contextlib.contextmanager
def _surroundings(torch):
    """What the caller may have set for all of PyTorch, such as no_grad, does not reach the
    export."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))  # which also ends a no_grad
        if hasattr(torch, "get_default_device"):
            stack.enter_context(torch.device("cpu"))
        dynamo = sys.modules.get("torch._dynamo")  # imported only where something was compiled
        if hasattr(getattr(dynamo, "config", None), "error_on_nested_fx_trace"):
            stack.enter_context(dynamo.config.patch(error_on_nested_fx_trace=False))
        if hasattr(getattr(torch, "compiler", None), "set_stance"):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


class _Graph:
    """One module, traced: `roots` are the outputs of its critics, `values` what its nodes
    compute."""

    def __init__(self, module, name, inputs, by_name):
        import torch
        import torch.fx
        self.torch, self.original, self.name = torch, _plain(module), name
        self.names, self.by_name = list(inputs), by_name
        self.dtype, self.rounded = torch.float64, False  # rounded: forward converts to another type
        self._check_module()
        self.module = _copy(torch, self.original, name)
        for _, m in _parts(self.module):
            if _kernel_norm(m):
                m.eval()  # the stored vectors of a spectral norm are used as they are
        self.wrapper, self.graph = _trace(self.module, self.names, by_name, name)
        self._check_mode()
        self.traced = torch.fx.GraphModule(self.wrapper, self.graph)
        self.modules = dict(self.wrapper.named_modules())
        self.parameters = _named_parameters(self.original)
        self.first = {key: a[0] for key, a in inputs.items()}
        self.rows = len(next(iter(self.first.values())))
        self.seen = self._first_run()
        self.values, self.duels = {}, {}
        for node in self.graph.nodes:
            self.values[node] = self._value(node)
            self._write_through(node)
        self.roots = self._roots(next(n for n in self.graph.nodes if n.op == "output").args[0])

    def _check_mode(self):
        """A forward that asks for self.training does something else in training, apart from
        dropout."""
        if self.original.training:
            return
        modes = [(m, m.training) for m in self.module.modules()]
        self.module.train()
        _, other = _trace(self.module, self.names, self.by_name, self.name)
        for m, mode in modes:
            m.training = mode
        if _operations(other) != _operations(self.graph):
            _fail(f"{self.name} is in evaluation mode, in which its forward does something else "
                  "than in training. Way out: module.train() before save")

    def _check_module(self):
        """Hooks and parametrizations would make a weight a function of others, or change values
        unseen."""
        lines = []
        for path, m in _parts(self.original):
            where = f"{self.name}{'.' + path if path else ''} ({type(m).__name__})"
            if _kernel_norm(m) and not m._forward_hooks and not m._backward_hooks:
                continue
            if hasattr(m, "parametrizations"):
                lines.append(f"{where}: {', '.join(m.parametrizations)} is computed from other "
                             "parameters (parametrize). Way out: torch.nn.utils.parametrize."
                             "remove_parametrizations on a copy: curvature in the weight itself")
            elif any(hasattr(m, f"{key}_{end}") for key in ("weight", "bias")
                     for end in ("g", "orig")):
                lines.append(f"{where}: its weight is computed from other parameters (weight_norm, "
                             "spectral_norm). Way out: torch.nn.utils.remove_weight_norm or "
                             "remove_spectral_norm on a copy: curvature in the weight itself")
            elif m._forward_hooks or m._forward_pre_hooks or m._backward_hooks:
                lines.append(f"{where}: a hook can change what the layer computes, unseen. Way "
                             "out: remove it before save")
        if lines:
            _fail(f"{self.name} cannot be expressed:", lines)

    def run(self, inputs):
        """The values of all nodes for inputs {name: [R, D]}, and what forward returns. Parameters
        require gradients."""
        graph, seen = self, {}

        class Recorder(self.torch.fx.Interpreter):
            def run_node(self, node):
                graph.running = node
                seen[node] = super().run_node(node)
                return seen[node]

        out = Recorder(self.traced, garbage_collect_values=False).run(*self.tensors(inputs))
        return seen, out

    def tensors(self, inputs):
        """Copies, since forward may change its inputs in place."""
        return [self.torch.tensor(inputs[name], dtype=self.dtype) for name in self.names]

    def _first_run(self):
        """The values of all nodes for the first minibatch; in float32 if forward itself converts to
        that."""
        try:
            return self.run(self.first)[0]
        except Exception as error:  # whatever forward does with these inputs
            if "dtype" not in str(error) and "ouble" not in str(error):
                self._fail_run(error)
        self.dtype, self.rounded = self.torch.float32, True
        self.module.float()
        try:
            return self.run(self.first)[0]
        except Exception as error:
            self._fail_run(error)

    def _fail_run(self, error):
        shapes = ", ".join(f"{name} {list(a.shape)}" for name, a in self.first.items())
        what = (str(error).strip() or type(error).__name__).splitlines()[0]
        _fail(f"{self.name}: forward fails for the first minibatch ({shapes}), on the CPU:", [
            f"{_where(self, self.running)}: {what}. Way out: the inputs that forward expects, in "
            "its order; and no device or type that is fixed in forward"])

    def compare_with_forward(self):
        """The graph is what forward did once. Its outputs and gradients are those of forward
        itself, or something is unseen: torch.no_grad(), randomness, another branch."""
        outputs = [_tensors(self.wrapper(*self.tensors(self.first))),
                   _tensors(self.run(self.first)[1])]
        bound = 1e-9 if self.dtype == self.torch.float64 else 1e-4
        if not all(_close(a, b, bound) for a, b in zip(*outputs)):
            _fail(f"{self.name}: forward gives other values when it is called again. Way out: no "
                  "random numbers in forward, nothing that it counts or stores, and no x += y on a "
                  "tensor that is used again")
        named = {key: p for key, p in self.module.named_parameters() if p.requires_grad}
        lines = []
        gradients = [self._gradients(found, list(named.values())) for found in outputs]
        for key, a, b in zip(named, *gradients):
            if not _close(a, b, bound):
                lines.append(f"{self.name}.{key}: the gradient of forward is not that of its "
                             "operations. Way out: no torch.no_grad() or .data in forward; or "
                             "export the part behind it, with its output as the input")
        if lines:
            _fail(f"{self.name} cannot be traced:", lines)

    def _gradients(self, outputs, parameters):
        """Of a weighted sum of outputs in all parameters."""
        torch = self.torch
        weighted = sum((t.flatten() * torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype)).sum()
                       for t in outputs)
        if not outputs or not parameters or not weighted.requires_grad:
            _fail(f"{self.name}: expected outputs of forward that depend on parameters which "
                  "require gradients, found none. Way out: requires_grad_(True), and no "
                  "torch.no_grad() in forward")
        return torch.autograd.grad(weighted, parameters, allow_unused=True)

    def _roots(self, returned):
        """The last layer of every critic in what forward returns: a value, a tuple, a dict, a
        concatenation."""
        if isinstance(returned, dict):
            returned = list(returned.values())
        if isinstance(returned, (list, tuple)):
            return [root for part in returned for root in self._roots(part)]
        if not isinstance(returned, (_Value, self.torch.fx.Node)):
            _fail(f"{self.name}: expected forward to return the outputs of its critics alone, "
                  f"found {returned!r} among them. Way out: a wrapper whose forward returns the "
                  "outputs")
        value = self.values[returned] if not isinstance(returned, _Value) else returned
        if value.kind == "layout" or value.kind == "cat" and not value.free:
            roots = [root for part in value.args for root in self._roots(part)]
            if value.kind == "layout":
                self._check_arrangement(value, roots)
            return roots
        if value.kind not in ("dense", "select", "slice") and not self.duel(value):
            why, way = (value.why, value.way) if value.why else _reason(value.kind)
            _fail(f"{self.name} cannot be expressed:", [
                f"{_where(self, value.node)}: the last layer of a critic is a Linear, whose "
                f"outputs the loss reads; {why}. Way out: {way}"])
        return [value]

    def _check_arrangement(self, value, roots):
        """What forward returns has the outputs of every row in their order, and lacks none."""
        after, before = self.seen[value.node], [self.seen[root.node] for root in roots]
        width = 1 if all(t.shape[-1] == 1 or t.dim() == 1 for t in before) else before[0].shape[-1]
        good = after.numel() == sum(t.numel() for t in before)
        if good and width > 1:
            tables = [sorted(tuple(row) for t in part for row in t.reshape(-1, width).tolist())
                      for part in ([after], before)] if after.shape[-1] == width else [0, 1]
            good = tables[0] == tables[1]
        if not good:
            _fail(f"{self.name} cannot be expressed:", [
                f"{_where(self, value.node)}: forward cuts or reorders the outputs of the last "
                f"layer, {[list(t.shape) for t in before]}, to {list(after.shape)}. Way out: "
                "return them as they are, and do this in the loss"])

    # --- heads of Q-networks ---

    def duel(self, value):
        """value + advantage - mean advantage as a layer `dueling` of a joined value and advantages;
        None if it is something else."""
        if value not in self.duels:
            self.duels[value] = self._find_duel(value)
        return self.duels[value]

    def _find_duel(self, value):
        terms = self._terms(value, 1) if value.kind in ("add", "sub") else []
        means = [t for sign, t in terms if sign < 0 and t.kind == "mean" and t.options["keepdim"]]
        plus = [t for sign, t in terms if sign > 0]
        if len(means) != 1 or len(plus) != 2 or means[0].args[0] not in plus:
            return None
        advantages = means[0].args[0]
        base = plus[0] if plus[1] is advantages else plus[1]
        a, dim = self.seen[advantages.node], means[0].options["dim"]
        if dim == a.dim() - 1:
            atoms = 1
        elif a.dim() == 3 and dim == 1:
            atoms = a.shape[-1]
        else:
            return None
        flat = self.unfolded(advantages)
        v, rows = self.seen[base.node], len(a)
        if flat is None or v.numel() != rows * atoms or v.shape[-1] != atoms:
            return None
        a, v = a.reshape(rows, -1, atoms), v.reshape(rows, 1, atoms)
        if not self._same(v + a - a.mean(1, keepdim=True), value):
            return None
        joined = _Value("cat", value.node, [base, flat], last=True)
        return _Value("dueling", value.node, [joined], atoms=atoms)

    def _terms(self, value, sign):
        """The terms of sums and differences, with their signs."""
        if value.kind not in ("add", "sub"):
            return [(sign, value)]
        x, y = value.args
        return self._terms(x, sign) + self._terms(y, sign if value.kind == "add" else -sign)

    def _same(self, expected, value):
        found = self.seen[value.node]
        return expected.numel() == found.numel() and _close(found.reshape(expected.shape), expected,
                                                            1e-12 if not self.rounded else 1e-5)

    def unfolded(self, value):
        """The value [R, K M] behind a view [R, K, M] of it; a value [R, K] as it is; else None."""
        before = self.seen[value.node]
        if value.kind != "layout":
            return value if before.dim() == 2 or self.duel(value) else None
        inner = self.seen[value.args[0].node]
        same = inner.dim() == 2 and before.numel() == inner.numel() and len(before) == len(inner)
        same = same and self.torch.equal(before.flatten(), inner.flatten())
        return value.args[0] if same else None

    def _on_sum(self, node):
        a = self._call(node, "input", "dim", "keepdim")
        x, dim = a["input"], a.get("dim")
        dim = dim[0] if isinstance(dim, list) and len(dim) == 1 else dim
        if x.kind != "times" or not isinstance(dim, int):
            return self._bad(node, "sum")
        features, chosen = x.args
        shape = self.seen[features.node].shape
        if dim % len(shape) != 1:
            return self._bad(node, "sum")
        return self._select(node, features, _Source(
            chosen, shape[1], lambda t: t.reshape(len(t), -1), "weights"))

    def _on_gather(self, node):
        a = self._call(node, "input", "dim", "index")
        x = a["input"]
        index = self.seen[a["index"].node] if isinstance(a["index"], _Value) else None
        if index is None or not a["index"].free or a["dim"] % index.dim() != 1 \
                or index.shape[1] != 1 or not bool((index == index[..., :1]).all()):
            return self._bad(node, "gather")
        count, functional = self.seen[x.node].shape[1], self.torch.nn.functional
        return self._select(node, x, _Source(
            a["index"], count,
            lambda t: functional.one_hot(t.reshape(len(t), -1)[:, 0], count).to(self.dtype),
            f"one of {count}"))

    def _select(self, node, x, source):
        """The layer `select`: x is [R, K] or [R, K, M], and the source [R, K]."""
        flat, rows = self.unfolded(x), self.rows
        if flat is not None and len(self.seen[x.node]) == rows:
            blocks = self.seen[x.node].reshape(rows, source.width, -1)
            chosen = source.take(self.seen[source.value.node])
            value = _Value("select", node, [flat], source=source)
            if list(chosen.shape) == [rows, source.width] \
                    and self._same((blocks * chosen[..., None]).sum(1), value):
                return value
        return self._bad(node, "times")

    # --- from nodes to values ---

    def _write_through(self, node):
        """Behind an operation in place, such as relu_, the names of its tensor have the new
        value."""
        if node.op == "call_module":
            changes = getattr(self.modules[node.target], "inplace", False)
        elif node.op in ("call_method", "call_function"):
            word = getattr(node.target, "__name__", node.target)
            changes = node.kwargs.get("inplace") or word.endswith("_") and not word.endswith("__") \
                or word in _ACTIVATIONS and any(a is True for a in node.args)
        else:
            return
        for other, seen in self.seen.items() if changes else ():
            if other in self.values and isinstance(seen, self.torch.Tensor) \
                    and seen.data_ptr() == self.seen[node].data_ptr() \
                    and seen.shape == self.seen[node].shape:
                self.values[other] = self.values[node]

    def _value(self, node):
        if node.op == "placeholder":
            return _Value("given", node, free=True)
        if node.op == "get_attr":
            return self._attribute(node)
        if node.op == "output":
            return _Value("output", node)
        if node.op == "call_module":
            module = self.modules[node.target]
            value = self._module(node, module, type(module).__name__)
        else:
            word = node.target if node.op == "call_method" else node.target.__name__
            value = self._function(node, _ALIASES.get(word, word))
        value.free = value.free or (not value.params and all(v.free for v in self._inputs(node)))
        return value

    def _inputs(self, node):
        return [self.values[n] for n in node.all_input_nodes]

    def _attribute(self, node):
        name = node.target.removeprefix("critic.")
        if name in self.parameters:
            return _Value("parameter", node, params={"it": _Parameter(name)})
        return _Value("constant", node, free=True)

    def _bad(self, node, word, why=None, way=None):
        inputs = [v for v in self._inputs(node) if v.kind not in ("parameter", "constant")]
        value = _Value("bad", node, inputs[:1])
        reason = _reason(word)
        value.why, value.way = why or reason[0], way or reason[1]
        return value

    def _layer_parameters(self, node, module, names):
        path = node.target.removeprefix("critic.")
        return {ours: _Parameter(f"{path}.{theirs}") for ours, theirs in names.items()
                if getattr(module, theirs) is not None}

    def _module(self, node, m, kind):
        x = self._inputs(node)[:1]
        norm = {"scale": "weight", "bias": "bias"}
        if _kernel_norm(m):
            return self._normed(node, m, x)
        if kind == "Linear":
            params = self._layer_parameters(node, m, {"kernel": "weight", "bias": "bias"})
            params["kernel"] = params["kernel"].then(lambda w: w.t())
            return _Value("dense", node, x, params=params)
        if kind in ("BatchNorm1d", "SyncBatchNorm"):
            return self._batchnorm(node, m, x)
        if kind == "LayerNorm":
            if len(m.normalized_shape) != 1:
                return self._bad(node, kind, f"it normalizes over {len(m.normalized_shape)} "
                                 "dimensions, not over the features")
            return _Value("layernorm", node, x, eps=m.eps,
                          params=self._layer_parameters(node, m, norm))
        if kind == "GroupNorm":
            params = self._layer_parameters(node, m, norm)
            return self._groupnorm(node, x[0], m.num_groups, m.eps, params)
        if kind == "RMSNorm":
            params = self._layer_parameters(node, m, {"scale": "weight"})
            return _Value("rmsnorm" if params else "rms", node, x, eps=m.eps, params=params)
        if kind.endswith("Dropout") or kind.endswith("Dropout1d"):
            return x[0] if m.p == 0 or not m.training else self._bad(node, "dropout")
        if kind in _COPIES:
            return x[0]
        if kind in _LAYOUT:
            return self._layout(node, x[0])
        if kind in _ACTIVATIONS:
            return self._activation(node, kind, x, vars(m))
        return self._bad(node, kind)

    def _normed(self, node, m, x):
        """A Linear whose weight has a norm. PyTorch's g is [out, 1]."""
        path, (norm, params, state) = node.target.removeprefix("critic."), _kernel_norm(m)
        found = {ours: _Parameter(f"{path}.{theirs}") for ours, theirs in params.items()}
        found = {ours: p.then(lambda w: w.flatten()) if ours == "g" else p.then(lambda w: w.t())
                 for ours, p in found.items()}
        if m.bias is not None:
            found["bias"] = _Parameter(f"{path}.bias")
        value = _Value("dense", node, x, params=found, norm=norm)
        value.state = {ours: f"{path}.{theirs}" for ours, theirs in state.items()}
        return value

    def _groupnorm(self, node, x, groups, eps, params):
        dims = self.seen[node].dim()
        if dims != 2:
            return self._bad(node, "GroupNorm", f"it normalizes {dims}-dimensional activations, "
                             "not rows [R, d]")
        return _Value("groupnorm", node, [x], groups=groups, eps=eps, params=params)

    def _evaluates(self, node):
        return self._bad(node, "batchnorm", "it is in evaluation mode; the analyzed loss has the "
                         "statistics of the minibatch, as in training", "module.train() before "
                                                                        "save")

    def _by_rows(self, node, x):
        """None if x is [R, d], the rows of a minibatch; else the refusal of a norm over them."""
        shape = list(self.seen[x.node].shape)
        if len(shape) == 2 and shape[0] == self.rows:
            return None
        return self._bad(node, "batchnorm", f"expected activations [R, d] with R = {self.rows} "
                         f"rows, found {shape}", "one such norm for each critic")

    def _batchnorm(self, node, m, x):
        if not m.training:
            return self._evaluates(node)
        if self._by_rows(node, x[0]):
            return self._by_rows(node, x[0])
        value = _Value("batchnorm", node, x, eps=m.eps, params=self._layer_parameters(
            node, m, {"scale": "weight", "bias": "bias"}))
        if m.momentum is not None:
            value.options["momentum"] = 1 - m.momentum
        if m.track_running_stats and m.running_mean is not None:
            path = node.target.removeprefix("critic.")
            value.state = {"mean": f"{path}.running_mean", "var": f"{path}.running_var"}
        return value

    def _activation(self, node, word, x, given):
        """given: what the module or the call sets, of the settings named here."""
        kind = _ACTIVATIONS[word]
        settings = {"elu": {"alpha": 1.0}, "softplus": {"beta": 1, "threshold": 20}}.get(kind, {})
        for key, only in settings.items():
            if given.get(key, only) != only:
                return self._bad(node, kind, f"{key} is {given[key]:g}; the description has "
                                             f"{only:g}",
                                 f"{key}={only:g}")
        options = {"relu": {"shift": 0.0},
                   "gelu": {"approximate": given.get("approximate", "none")},
                   "leaky_relu": {"negative_slope": given.get("negative_slope", 0.01)}}
        return _Value(kind, node, x, **options.get(kind, {}))

    def _call(self, node, *names):
        """The arguments of a function or method by name, with values in place of nodes; names[0] is
        the first tensor."""
        found = dict(zip(names, node.args))
        found.update(node.kwargs)
        for other, ours in (("self", "input"), ("x", "input"), ("A", "input"), ("tensors", "input"),
                            ("axis", "dim"), ("keepdims", "keepdim")):
            if other in found and ours in names:
                found.setdefault(ours, found.pop(other))
        unread = [key for key, value in found.items()
                  if key not in (*names, "inplace") and value is not None]
        unread += [repr(value) for value in node.args[len(names):] if value is not None]
        if unread:
            raise _Unread(f"its argument {unread[0]} is not read here")
        return {key: self._argument(value) for key, value in found.items()}

    def _argument(self, value):
        """A node as its value; a constant as the number it is; lists likewise."""
        import torch.fx
        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        if not isinstance(value, torch.fx.Node):
            return value
        found = self.values[value]
        if found.kind != "constant":
            return found
        seen = self.seen[value]
        if not isinstance(seen, torch.Tensor):
            return seen
        alike = seen.numel() and bool((seen == seen.flatten()[0]).all())
        return float(seen.flatten()[0]) if alike else found

    def _function(self, node, word):
        try:
            return self._read(node, word)
        except _Unread as error:
            return self._bad(node, word, str(error), "leave this argument out")

    def _read(self, node, word):
        inputs = self._inputs(node)
        if word == "getattr":
            word = node.args[1]
        if word in _SHAPES or all(v.kind == "constant" for v in inputs):
            return _Value("constant", node, free=True)
        if inputs[0].kind == "parameter" and len([v for v in inputs if v.kind != "constant"]) == 1:
            return self._of_parameter(node, word, inputs[0])
        if word in _CASTS:
            self.rounded = True
            return _Value("cast", node, inputs) if inputs[0].free else inputs[0]
        if word in _COPIES:
            return inputs[0]
        if word in _LAYOUT:
            return self._layout(node, inputs[0])
        if word in _ACTIVATIONS:
            a = self._call(node, "input", *_SETTINGS.get(_ACTIVATIONS[word], ["inplace"]))
            return self._activation(node, word, [a["input"]], a)
        rule = getattr(self, "_on_" + word, None)
        return rule(node) if rule else self._bad(node, word)

    def _of_parameter(self, node, word, value):
        """A view of a parameter, or one times a constant."""
        parameter, seen = value.params["it"], self.seen[node]
        if word in _CASTS:
            self.rounded = True
            return value
        if word in ("mul", "div"):
            given = list(self._call(node, "input", "other").values())
            other = [a for a in given if not isinstance(a, _Value)]
            if len(other) == 1 and (word == "mul" or isinstance(given[0], _Value)):
                factor = float(other[0]) if word == "mul" else 1 / float(other[0])
                scaled = _Parameter(parameter.name, parameter.transform, parameter.factor * factor,
                                    parameter.part)
                return _Value("parameter", node, params={"it": scaled})
        size = self.parameters[parameter.name].numel()
        index = node.args[1] if word == "getitem" else None
        whole = seen.numel() == size or parameter.part
        if word in _LAYOUT | _COPIES and whole or type(index) is int:
            def view(tensor):
                if node.op == "call_method":
                    return getattr(tensor, node.target)(*node.args[1:], **node.kwargs)
                return node.target(tensor, *node.args[1:], **node.kwargs)
            if not any(hasattr(a, "op") for a in node.args[1:]):
                moved = parameter.then(view)
                moved.part += (index % len(self.seen[value.node]),) if type(index) is int else ()
                return _Value("parameter", node, params={"it": moved})
        return self._bad(node, word, "a weight that is computed from other parameters is not one "
                         "of the critic's coordinates", "store the weight itself in the module")

    def _layout(self, node, value):
        """Another view of the same numbers in the same order is the value itself; some neighbouring
        features are a slice."""
        before, after = self.seen[value.node], self.seen[node]
        torch = self.torch
        if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor) \
                or not before.dim() or not after.dim():
            return _Value("layout", node, [value])
        if before.numel() == after.numel() and after.shape[-1] == before.shape[-1] \
                and torch.equal(before.flatten(), after.flatten()):
            return value
        part = node.args[1] if getattr(node.target, "__name__", "") == "getitem" else None
        if isinstance(part, tuple) and len(part) > 1 and not value.free and before.dim() == 2 \
                and before.numel() != after.numel():
            return self._slice(node, value, part[-1])
        return _Value("layout", node, [value])

    def _slice(self, node, value, part):
        """Features part of [R, d]: neighbouring ones, or a single one, of all rows."""
        before, after = self.seen[value.node], self.seen[node]
        if type(part) is int:
            part = slice(part % before.shape[-1], part % before.shape[-1] + 1)
        if isinstance(part, slice) and not any(hasattr(p, "op") for p in
                                               (part.start, part.stop, part.step)):
            first, last, step = part.indices(before.shape[-1])
            taken = before[:, first:last]
            if step == 1 and taken.numel() == after.numel() and len(after) == len(before) \
                    and self.torch.equal(taken.flatten(), after.flatten()):
                return _Value("slice", node, [value], part=(first, last))
        return _Value("layout", node, [value])

    def _on_linear(self, node):
        a = self._call(node, "input", "weight", "bias")
        if any(a.get(key) is not None and a[key].kind != "parameter" for key in ("weight", "bias")):
            return self._bad(node, "linear", "its weight is no parameter",
                             "store the weight itself in the module")
        params = {"kernel": a["weight"].params["it"].then(lambda w: w.t())}
        if a.get("bias") is not None:
            params["bias"] = a["bias"].params["it"]
        return self._kernel(node, [a["input"]], params)

    def _kernel(self, node, x, params):
        if any(p.factor != 1 for p in params.values()):
            return self._bad(node, "linear", "a kernel times a constant has no line in the "
                                             "description",
                             "store the product itself in the module")
        return _Value("dense", node, x, params=params)

    def _on_matmul(self, node):
        a = self._call(node, "input", "other", "mat2")
        return self._product(node, a["input"], a.get("other", a.get("mat2")))

    def _product(self, node, x, w, bias=None):
        if not isinstance(w, _Value) or w.kind != "parameter" or not isinstance(x, _Value) \
                or x.kind == "parameter":
            return self._bad(node, "matmul",
                             "expected activations times a parameter [in, out] or [E, in, out]",
                             "torch.nn.functional.linear(x, weight)")
        params = {"kernel": w.params["it"]}
        if bias is not None:
            params["bias"] = bias
        return self._kernel(node, [x], params)

    def _on_baddbmm(self, node):
        return self._biased_product(node, "batch1", "batch2")

    def _on_addmm(self, node):
        return self._biased_product(node, "mat1", "mat2")

    def _biased_product(self, node, left, right):
        a = self._call(node, "input", left, right)
        if not isinstance(a["input"], _Value) or a["input"].kind != "parameter":
            return self._bad(node, "matmul", "expected a parameter as the summand",
                             "torch.nn.functional.linear(x, weight, bias)")
        return self._product(node, a[left], a[right], a["input"].params["it"])

    def _on_einsum(self, node):
        """x and W [.., in, out], [.., out, in]: one index is summed, an index of W alone is the
        output's last."""
        equation, operands = node.args[0], node.args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = operands[0]
        left, _, out = equation.replace(" ", "").partition("->")
        letters, values = left.split(","), [self.values[n] for n in operands]
        if len(values) == 2 and values[0].kind == "parameter":
            letters, values = letters[::-1], values[::-1]
        if len(values) != 2 or values[1].kind != "parameter" or values[0].kind == "parameter":
            return self._bad(node, "einsum", "expected activations and one parameter")
        x, w = letters
        summed = [c for c in w if c in x and c not in out]
        new = [c for c in w if c not in x and c in out[-1:]]
        ensemble = [c for c in w if c in out and c not in new]
        if len(summed) != 1 or len(new) != 1 or len(ensemble) > 1 or x[-1:] != summed[0] \
                or ensemble and out[0] != ensemble[0]:
            return self._bad(node, "einsum", "expected a sum over the features, whose result is "
                             "the last index, with the critics, if any, as the first one",
                             "such as 'bi,eio->ebo' or 'ebi,eio->ebo'")
        order = [w.index(c) for c in ensemble + summed + new]
        kernel = values[1].params["it"].then(lambda t: t.permute(order))
        return self._kernel(node, [values[0]], {"kernel": kernel})

    def _affine(self, a):
        """Scale and bias of a norm, from the arguments `weight` and `bias`; None if another value
        than a parameter takes their place."""
        given = {ours: a[theirs] for ours, theirs in (("scale", "weight"), ("bias", "bias"))
                 if a.get(theirs) is not None}
        if any(not isinstance(v, _Value) or v.kind != "parameter" for v in given.values()):
            raise _Unread("its weight or bias is no parameter")
        return {ours: v.params["it"] for ours, v in given.items()}

    def _on_layer_norm(self, node):
        a = self._call(node, "input", "normalized_shape", "weight", "bias", "eps")
        shape = a["normalized_shape"]
        if not isinstance(shape, int) and len(shape) != 1:
            return self._bad(node, "layer_norm",
                             "it normalizes over several dimensions, not over the features")
        return _Value("layernorm", node, [a["input"]], eps=a.get("eps", 1e-5),
                      params=self._affine(a))

    def _on_group_norm(self, node):
        a = self._call(node, "input", "num_groups", "weight", "bias", "eps")
        return self._groupnorm(node, a["input"], a["num_groups"], a.get("eps", 1e-5),
                               self._affine(a))

    def _on_batch_norm(self, node):
        names = ["input", "running_mean", "running_var", "weight", "bias", "training", "momentum",
                 "eps"]
        if node.target is self.torch.batch_norm:  # which is not torch.nn.functional.batch_norm
            names = ["input", "weight", "bias", "running_mean", "running_var", *names[5:],
                     "cudnn_enabled"]
        a = self._call(node, *names)
        if not a.get("training", False):
            return self._evaluates(node)
        return self._by_rows(node, a["input"]) or _Value(
            "batchnorm", node, [a["input"]], eps=a.get("eps", 1e-5),
            momentum=1 - a.get("momentum", 0.1), params=self._affine(a))

    def _on_rms_norm(self, node):
        a = self._call(node, "input", "normalized_shape", "weight", "eps")
        if a.get("eps") is None:
            return self._bad(node, "rms_norm", "its eps depends on the type of the numbers",
                             "eps=1.1920929e-07, which is PyTorch's for float32")
        params = self._affine(a)
        kind = "rmsnorm" if params else "rms"
        return _Value(kind, node, [a["input"]], eps=a["eps"], params=params)

    def _on_normalize(self, node):
        a = self._call(node, "input", "p", "dim", "eps")
        if a.get("p", 2.0) != 2 or not self._is_last(a["input"], a.get("dim", 1)):
            return self._bad(node, "normalize", "expected p=2 over the features (dim=-1)")
        return _Value("l2norm", node, [a["input"]], eps=a.get("eps", 1e-12))

    def _on_pad(self, node):
        a = self._call(node, "input", "pad", "mode", "value")
        if list(a["pad"]) != [0, 1] or a.get("mode", "constant") != "constant":
            return self._bad(node, "pad")
        return _Value("append", node, [a["input"]], constant=float(a.get("value") or 0))

    def _on_dropout(self, node):
        a = self._call(node, "input", "p", "training", "inplace")
        if a.get("p", 0.5) == 0 or not a.get("training", True):
            return a["input"]
        return self._bad(node, "dropout")

    def _on_cat(self, node):
        a = self._call(node, "input", "dim")
        parts = a["input"]
        constant = next((i for i, p in enumerate(parts) if not isinstance(p, _Value)), None)
        last = constant != 0 and self._is_last(parts[0], a.get("dim", 0))
        if constant == 1 and len(parts) == 2 and last \
                and self.seen[node].shape[-1] == self.seen[parts[0].node].shape[-1] + 1:
            return _Value("append", node, parts[:1], constant=parts[1])
        if constant is not None:
            return self._bad(node, "cat", "a constant can only be joined as one more feature, "
                             "behind the others", "torch.cat([x, one_column], -1)")
        return _Value("cat", node, parts, last=last)

    def _on_stack(self, node):
        return _Value("cat", node, self._call(node, "input", "dim")["input"], last=False)

    def _is_last(self, value, dim):
        dims = self.seen[value.node].dim()
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        return isinstance(dim, int) and dim % dims == dims - 1

    # --- arithmetic: building blocks of norms, residual sums, scalers ---

    def _on_add(self, node):
        a = self._call(node, "input", "other")
        return self._sum(node, a["input"], a["other"])

    def _sum(self, node, x, y):
        if not isinstance(x, _Value) or x.kind in ("parameter", "constant"):
            x, y = y, x
        if isinstance(y, (int, float)):
            if x.kind == "relu":
                return _Value("relu", node, x.args, shift=x.options["shift"] + y)
            return _Value("addc", node, [x], constant=float(y))
        if y.kind == "constant":
            return self._bad(node, "addc")
        if y.kind != "parameter":
            return _Value("add", node, [x, y])
        return self._biased(node, x, y.params["it"])

    def _biased(self, node, x, bias):
        """dense + b, or the bias of a norm whose scale came before."""
        ready = {"dense": ("kernel",), "layernorm": ("scale",), "batchnorm": ("scale",)}
        if bias.factor == 1 and x.kind in ready and tuple(x.params) == ready[x.kind]:
            value = _Value(x.kind, node, x.args, params={**x.params, "bias": bias}, **x.options)
            value.state = x.state
            return value
        return self._bad(node, "bias")

    def _on_sub(self, node):
        a = self._call(node, "input", "other")
        x, y = a["input"], a["other"]
        if isinstance(y, (int, float)):
            return self._sum(node, x, -y)
        if not isinstance(x, _Value) or {"parameter", "constant"} & {x.kind, y.kind}:
            return self._bad(node, "sub")
        return _Value("sub", node, [x, y])

    def _on_mul(self, node):
        a = self._call(node, "input", "other")
        x, y = a["input"], a["other"]
        if not isinstance(x, _Value) or x.kind in ("parameter", "constant"):
            x, y = y, x
        if isinstance(y, (int, float)):
            return self._times(node, x, float(y))
        if y.kind == "parameter":
            return self._scaled(node, x, y.params["it"])
        for x, y in ((x, y), (y, x)):
            if y.kind == "sigmoid" and y.args[0] is x:
                return _Value("silu", node, [x])
            if y.kind == "tanh" and y.args[0].kind == "softplus" and y.args[0].args[0] is x:
                return _Value("mish", node, [x])
            norm = self._quotient(node, x, y.args[0], root=False) if y.kind == "rsqrt" else None
            if norm:
                return norm
        refused = self._refused_part(x) or self._refused_part(y)
        if refused:
            return refused
        if x.free != y.free:
            return _Value("times", node, [y, x] if x.free else [x, y])
        return self._bad(node, "mul", "a product of activations has a line in the description only "
                         "as x * sigmoid(x), x * tanh(softplus(x)) or a norm", "write it as one of "
                                                                               "them")

    def _times(self, node, x, factor):
        x = _split(x)
        if x.kind == "scaler":
            return _Value("scaler", node, x.args, params=x.params, init=factor * x.options["init"])
        if x.kind == "mulc":
            factor, x = factor * x.options["init"], x.args[0]
        return _Value("mulc", node, [x], init=factor)

    def _scaled(self, node, x, scale):
        """x times a parameter: the scale of a norm without one, else a scaler."""
        if x.kind in ("rms", "layernorm", "batchnorm") and not x.params and scale.factor == 1:
            value = _Value("rmsnorm" if x.kind == "rms" else x.kind, node, x.args,
                           params={"scale": scale}, **x.options)
            value.state = x.state
            return value
        factor = scale.factor
        if x.kind == "mulc":
            factor, x = factor * x.options["init"], x.args[0]
        return _Value("scaler", node, [x], params={"scaler": scale}, init=factor)

    def _on_div(self, node):
        a = self._call(node, "input", "other")
        x, y = a["input"], a["other"]
        if isinstance(y, (int, float)):
            return self._times(node, x, 1 / y)
        norm = self._quotient(node, x, y, root=True) if isinstance(x, _Value) else None
        return norm or self._refused_part(y) or self._bad(
            node, "div", "a quotient has a line in the description only as a norm: x / sqrt("
            "mean(x^2) + eps), (x - mean) / sqrt(var + eps) with the biased variance, x / max(norm, "
            "eps)",
            "write it as one of them")

    def _refused_part(self, value):
        """What was refused in the parts of a norm, which says more than that it is no norm."""
        while value.kind in ("sqrt", "rsqrt", "addc", "clamp") and value.args:
            value = value.args[0]
        return value if value.kind == "bad" and not value.free else None

    def _quotient(self, node, x, below, root):
        """x / sqrt(mean(x^2) + eps), (x - mean) / sqrt(var + eps), x / max(|x|, eps), from their
        parts. `below` is the denominator (root), or what rsqrt was taken of."""
        if root and below.kind == "clamp" and below.args[0].kind == "norm" \
                and below.args[0].args[0] is x:
            return _Value("l2norm", node, [x], eps=below.options["constant"])
        if root and below.kind == "norm" and below.args[0] is x:
            return _Value("l2norm", node, [x], eps=1e-12)
        if root and below.kind != "sqrt":
            return None
        below = below.args[0] if root else below
        if below.kind != "addc":
            return None
        eps, inner = below.options["constant"], below.args[0]
        squares = inner.kind == "mean" and inner.args[0].kind == "square"
        centered = self._centered(x)
        if squares and inner.args[0].args[0] is x and inner.options["over"] == "features" \
                and not centered:
            return _Value("rms", node, [x], eps=eps)
        if not centered or inner.options.get("over") != centered[1]:
            return None
        if squares and inner.args[0].args[0] is x \
                or inner.kind == "var" and inner.args[0] is centered[0]:
            kind = {"features": "layernorm", "rows": "batchnorm"}.get(centered[1])
            return _Value(kind, node, [centered[0]], eps=eps) if kind else None
        return None

    def _centered(self, x):
        """(y, over) if x = y - mean(y)."""
        if x.kind == "sub" and x.args[1].kind == "mean" and x.args[1].args[0] is x.args[0]:
            return x.args[0], x.args[1].options["over"]
        return None

    def _on_pow(self, node):
        a = self._call(node, "input", "exponent")
        if a.get("exponent", 2) != 2:
            return self._bad(node, "pow")
        return _Value("square", node, [a["input"]])

    def _over(self, node, kind):
        """mean, var and norm over the features or the rows; over the features they keep a dimension
        of 1."""
        names = {"mean": ("dim", "keepdim"), "var": ("dim", "unbiased", "keepdim", "correction"),
                 "norm": ("p", "dim", "keepdim", "ord")}
        a = self._call(node, "input", *names[kind])
        if a.get("ord", a.get("p")) not in (2, None, "fro"):
            return self._bad(node, kind, "the only norm that has a line is the Euclidean one")
        if kind == "var" and a.get("unbiased", a.get("correction", True)) not in (False, 0):
            return self._bad(node, kind, "the variance of a norm is the biased one",
                             "unbiased=False")
        dim = a.get("dim")
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        shape = self.seen[a["input"].node].shape
        if not isinstance(dim, int):
            return self._bad(node, kind, f"expected a {kind} over the features, found one over all "
                             "entries, rows included", f".{kind}(-1, keepdim=True)"
                             if kind == "mean" else "dim=-1, keepdim=True")
        dim, keepdim = dim % len(shape), bool(a.get("keepdim", False))
        over = "features" if dim == len(shape) - 1 else "others"
        if shape[dim] == self.rows and (len(shape), dim) in ((2, 0), (3, 1)):  # [R, d] or [E, R, d]
            over = "rows"
        if over == "features" and not keepdim:
            return self._bad(node, kind, "it drops the dimension of the features", "keepdim=True")
        return _Value(kind, node, [a["input"]], over=over, dim=dim, keepdim=keepdim)

    def _on_mean(self, node):
        return self._over(node, "mean")

    def _on_var(self, node):
        return self._over(node, "var")

    def _on_norm(self, node):
        return self._over(node, "norm")

    def _on_sqrt(self, node):
        return _Value("sqrt", node, self._inputs(node))

    def _on_rsqrt(self, node):
        return _Value("rsqrt", node, self._inputs(node))

    def _on_clamp(self, node):
        a = self._call(node, "input", "min", "max")
        if a.get("max") is not None or not isinstance(a.get("min"), (int, float)):
            return self._bad(node, "clamp")
        if a["min"] == 0:
            return _Value("relu", node, [a["input"]], shift=0.0)
        return _Value("clamp", node, [a["input"]], constant=float(a["min"]))

    def _on_lerp(self, node):
        a = self._call(node, "input", "end", "weight")
        if not isinstance(a["weight"], _Value) or a["weight"].kind != "parameter":
            return self._bad(node, "lerp", "its weight is no parameter")
        return _Value("between", node, [a["input"], a["end"]],
                      params={"alpha": a["weight"].params["it"]})


def _named_parameters(module):
    """{path: parameter}, a parameter with two names under both."""
    return {f"{path}.{key}" if path else key: p for path, m in _parts(module)
            for key, p in m._parameters.items() if p is not None}


def _close(a, b, bound):
    if a is None or b is None or not a.numel():
        return a is b or a is not None and b is not None and a.shape == b.shape
    return a.shape == b.shape and float((a - b).abs().max()) <= bound * (1 + float(b.abs().max()))


def _tensors(out):
    """The tensors in what forward returned, in order."""
    if isinstance(out, dict):
        out = list(out.values())
    if isinstance(out, (list, tuple)):
        return [t for part in out for t in _tensors(part)]
    return [out] if hasattr(out, "is_floating_point") else []


def _plain(module):
    """The module in the wrappers of torch.compile, DataParallel and DistributedDataParallel."""
    while True:
        if hasattr(module, "_orig_mod"):
            module = module._orig_mod
        elif type(module).__name__ in ("DistributedDataParallel", "DataParallel"):
            module = module.module
        else:
            return module


def _parts(module, path=""):
    """(path, module) of a module and all in it, without wrappers; a shared one under all its
    names."""
    module = _plain(module)
    yield path, module
    for name, part in module._modules.items():
        if part is not None:
            yield from _parts(part, f"{path}.{name}" if path else name)


# The class that computes the weight of a Linear: the norm in the description, its parameters and
# its state in the module.
_NORMS = {
    "WeightNorm": ("weight", {"v": "weight_v", "g": "weight_g"}, {}),
    "_WeightNorm": ("weight", {"v": "parametrizations.weight.original1",
                               "g": "parametrizations.weight.original0"}, {}),
    "SpectralNorm": ("spectral", {"kernel": "weight_orig"}, {"u": "weight_u", "v": "weight_v"}),
    "_SpectralNorm": ("spectral", {"kernel": "parametrizations.weight.original"},
                      {"u": "parametrizations.weight.0._u", "v": "parametrizations.weight.0._v"})}


def _kernel_norm(module):
    """The entry of _NORMS for a Linear whose weight alone has one of these norms, of its rows
    (dim=0); else None."""
    if type(module).__name__ not in ("Linear", "ParametrizedLinear"):
        return None
    computed = [(name, one) for name, several in getattr(module, "parametrizations", {}).items()
                for one in several]
    computed += [(getattr(one, "name", None), one) for one in module._forward_pre_hooks.values()]
    if len(computed) != 1 or computed[0][0] != "weight" or getattr(computed[0][1], "dim", None) != 0:
        return None
    return _NORMS.get(type(computed[0][1]).__name__)


def _copy(torch, module, name):
    """A copy in float64 on the CPU: the caller's module, running statistics included, is never
    touched."""
    # What a hook computed as the weight in the last forward cannot be copied.
    computed = [(m, m.__dict__.pop("weight")) for _, m in _parts(module)
                if _kernel_norm(m) and "weight" in m.__dict__]
    try:
        found = copy.deepcopy(module).cpu()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        _fail(f"{name}: cannot be copied: {error}. Way out: a module that holds parameters and "
              "buffers of its own alone, with values")
    finally:
        for m, weight in computed:
            m.__dict__["weight"] = weight
    for _, m in _parts(found):
        m._modules = type(m._modules)((key, part if part is None else _plain(part))
                                      for key, part in m._modules.items())
        if type(m).__name__ == "RMSNorm" and getattr(m, "eps", 0) is None:
            # By default PyTorch takes the machine's eps, of the type in which the critic is
            # trained.
            own = next((p.dtype for p in m.parameters()), torch.get_default_dtype())
            m.eps = float(torch.finfo(own).eps)
    return found.double()


def _operations(graph):
    """What the nodes of a graph do, apart from whether dropout is active."""
    return [(node.op, str(node.target), str(node.args[:1]) if "dropout" in str(node.target) else
             f"{node.args} {node.kwargs}") for node in graph.nodes]


def _user_frame(frames):
    """file:line: source of the innermost frame that is neither PyTorch's nor this file's."""
    import torch
    library = os.path.dirname(torch.__file__) + os.sep
    for file, line in frames:
        if file == __file__:
            return None
        if not file.startswith(library) and not file.startswith("<"):
            return f"{os.path.basename(file)}:{line}: {linecache.getline(file, line).strip()}"
    return None


def _stack():
    frame, found = sys._getframe(2), []
    while frame:
        if frame.f_code.co_filename != __file__ or found:
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


def _trace(module, names, by_name, name):
    """A module that calls `module` with inputs of these names, and its graph, whose nodes know
    their line of source."""
    import torch
    import torch.fx

    class Tracer(torch.fx.Tracer):
        def create_node(self, *args, **kwargs):
            node = super().create_node(*args, **kwargs)
            node.meta["where"] = _user_frame(_stack())
            return node

    arguments = [f"input_{i}" for i in range(len(names))]
    space = {}
    exec(f"def forward(self, {', '.join(arguments)}):\n    return self.critic("
         + ", ".join(f"{n}={a}" if by_name else a for n, a in zip(names, arguments)) + ")", space)
    wrapper = type("Critic", (torch.nn.Module,), {"forward": space["forward"]})()
    wrapper.critic = module
    wrapper.training = module.training
    try:
        return wrapper, Tracer().trace(wrapper)
    except Exception as error:  # whatever forward does with a symbolic tensor
        frames, trace = [], error.__traceback__
        while trace:
            frames.insert(0, (trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        where = _user_frame([f for f in frames if f[0] != __file__]) or type(module).__name__
        _fail(f"{name} cannot be traced:", [
            f"{where}: {error or type(error).__name__}. Way out: no branch or loop that depends on "
            "a tensor's values or shape, and no vmap or jit inside forward; set what it depends on "
            "when the module is made"])


def _where(graph, node):
    """The module or node, what it is, and the line of the caller's code that it comes from."""
    if node.op == "call_module":
        path = f"{graph.name}.{node.target.removeprefix('critic.')}"
        kind = type(graph.modules[node.target]).__name__
    else:
        path = f"{graph.name}, node {node.name}"
        kind = getattr(node.target, "__name__", str(node.target))
    source = node.meta.get("where")
    return f"{path} ({kind}{'; ' + source if source else ''})"


# --- PyTorch: from values to lines ---

_LINES = {"dense", "batchnorm", "layernorm", "groupnorm", "rmsnorm", "rms", "l2norm", "relu",
          "tanh", "silu", "gelu", "elu", "mish", "scaler", "mulc", "append", "leaky_relu", "relu6", "sigmoid",
          "softplus"}
_FROZEN = {"mulc", "rms"}  # lines with parameters that are constants of forward


def _is_input(value):
    """Whether forward computes the value from its inputs alone, and no line says how."""
    return value.free and value.kind not in _LINES - _FROZEN


class _Chain:
    """The layers of one critic in order: items are _Value objects, or (container, items, value),
    with an alpha or a loss as the value. roots: the values that are its outputs, one for each head,
    whose losses are `losses`."""

    def __init__(self, graph, roots, losses):
        self.graph, self.roots, self.losses, self.lines = graph, roots, losses, []
        self.order = {node: i for i, node in enumerate(graph.graph.nodes)}
        self.first = []  # what the first layers read
        if len(roots) > 1:
            self.items, rest = self._branches(roots, None, losses)
            self.items = (self._between(rest, None) if rest else []) + self.items
        else:
            self.items = self._between(roots[0], None)
        if not self.lines:
            self._lay_out()

    def _lay_out(self):
        """The columns of the input: what the first layers read, then what later ones do, each
        once."""
        self.sources, places, start = [], {}, 0
        joined = [value for value in _flat(self.items) if "source" in value.options]
        for source in [*self.first, *[value.options["source"] for value in joined]]:
            if source.key not in places:
                self.sources.append(source)
                places[source.key] = (start, start + source.width)
                start += source.width
        end = max(places[source.key][1] for source in self.first)
        for value in joined:
            value.options["columns"] = places[value.options["source"].key]
        if end < start:
            self.items.insert(0, _Value("input", self.first[0].value.node, columns=(0, end)))

    def _source(self, value):
        """What a value computes from the inputs alone, as columns of the critic's input."""
        seen = self.graph.seen[value.node]
        return _Source(value, seen.shape[-1] if seen.dim() > 1 else 1)

    def _refuse(self, value):
        why, way = (value.why, value.way) if value.why else _reason(value.kind)
        self.lines.append(f"{_where(self.graph, value.node)}: {why}. Way out: {way}")

    def _between(self, value, stop):
        """The items from `stop` (not included) to `value`. Without stop: from the input, which is
        the first value that no parameter reached and that has no line."""
        items = []
        while value is not stop:
            value = _split(value) if value.kind == "batchnorm" else value
            if _is_input(value):
                if stop is None:
                    self.first.append(self._source(value))
                break
            more, value = self._step(value, stop)
            items[:0] = more
        return items

    def _step(self, value, stop):
        """The items that end with `value`, and the value in front of them."""
        lerp, duel = self._lerp(value), self.graph.duel(value)
        if lerp:
            skip, body, alpha = lerp
            self._check_frozen(alpha)
            return [("lerp", self._between(body, skip), alpha)], skip
        if duel:
            more, front = self._cat(duel.args[0], stop)
            return [*more, duel], front
        if value.kind in _LINES or value.kind == "slice":
            if value.kind == "dense":
                value.width = self.graph.seen[value.node].shape[-1]
            self._check_frozen(value)
            return [value], value.args[0]
        if value.kind == "select":
            return [value], value.args[0]
        if value.kind == "times" and self._is_mask(value):
            mask = _Value("dropout", value.node, source=self._mask(value))
            return [mask], value.args[0]
        if value.kind == "cat" and value.options["last"]:
            return self._cat(value, stop)
        if value.kind == "add":
            skip, body = sorted(value.args, key=lambda v: self.order[v.node])
            if any(v is skip for v in self._spine(body)):
                return [("residual", self._between(body, skip), None)], skip
        bad = [v for v in value.args if v.kind == "bad" and not v.free]
        self._refuse(bad[0] if bad and value.kind != "bad" else value)
        return [], value.args[0] if value.args else stop

    # --- several branches ---

    def _is_mask(self, value):
        x, mask = [list(self.graph.seen[v.node].shape) for v in value.args]
        return len(x) == 2 and (mask in (x, x[1:], [1, x[1]], [x[0], 1]))

    def _mask(self, value):
        x, mask = value.args
        shape = self.graph.seen[x.node].shape
        return _Source(mask, shape[1], lambda tensor: tensor.expand(shape), f"mask {shape[1]}")

    def _cat(self, value, stop):
        """Joined parts: branches of those with parameters, and `concat` of those without."""
        features = [v for v in value.args if not v.free]
        front, items = features[0], []
        if len(features) > 1:
            whole = self._whole(features)
            items, front = ([], whole) if whole else self._branches(features, stop)
        inputs = [v for v in value.args if v.free]
        items += [_Value("concat", value.node, source=self._source(v)) for v in inputs]
        if value.args != features + inputs:
            items += self._reordered(value, features + inputs)
        return items, front

    def _whole(self, parts):
        """The value of which the parts are all features in order; else None."""
        base, at = parts[0].args[0] if parts[0].args else None, 0
        for part in parts:
            if part.kind != "slice" or part.args[0] is not base or part.options["part"][0] != at:
                return None
            at = part.options["part"][1]
        return base if at == self.graph.seen[base.node].shape[-1] else None

    def _reordered(self, value, stored):
        """Branches that put features, which are in the order of `stored`, in that of value.args."""
        places, at = {}, 0
        for part in stored:
            width = self.graph.seen[part.node].shape[-1]
            places.setdefault(part, (at, at + width))
            at += width
        return [("branch", [_Value("slice", value.node, part=places[part])], None)
                for part in value.args]

    def _branches(self, parts, stop, losses=None):
        """A branch for each part, with its loss for heads, and the value that they all start from;
        None is the input. A branch that starts from a part of the input begins with a slice."""
        common = self._common(parts, stop)
        if common is None and stop is not None:
            self.lines.append(f"{_where(self.graph, parts[0].node)}: expected branches that start "
                              "from the same features, found others inside of a sum x + f(x). Way "
                              "out: compute both from x")
            return [], stop
        bodies, ends = [], []
        for part in parts:
            before = len(self.first)
            bodies.append(self._between(part, common))
            ends.append({source.key: source for source in self.first[before:]})
            if not bodies[-1]:
                width = self.graph.seen[part.node].shape[-1]
                bodies[-1].append(_Value("slice", part.node, part=(0, width)))
        for body, sources in zip(bodies, ends):
            if len(sources) == 1 and len({key for end in ends for key in end}) > 1:
                source, = sources.values()
                body.insert(0, _Value("slice", source.value.node, source=source))
        losses = losses or [None] * len(parts)
        return [("branch", body, loss) for body, loss in zip(bodies, losses)], common

    def _common(self, parts, stop):
        """The last value from which all parts are computed; None if that is the input or a part of
        it, and not `stop`."""
        spines = [list(self._spine(part)) for part in parts]
        for value in spines[0]:
            if all(any(value is other for other in spine) for spine in spines[1:]):
                return None if _is_input(value) and value is not stop else value
        return None

    def _spine(self, value):
        """A value and those in front of it, without what is inside of containers."""
        while value is not None:
            yield value
            lerp, duel = self._lerp(value), self.graph.duel(value)
            if _is_input(value):
                return
            if lerp:
                value = lerp[0]
            elif duel or value.kind == "cat":
                parts = [v for v in (duel.args[0] if duel else value).args if not v.free]
                several = len(parts) > 1
                value = self._whole(parts) or self._common(parts, None) if several else parts[0]
            elif value.kind == "add":
                value = min(value.args, key=lambda v: self.order[v.node])
            else:
                value = value.args[0] if value.args else None

    def _check_frozen(self, value):
        """Sets value.frozen: all parameters of a layer are frozen, or none."""
        names = {p.name: self.graph.parameters[p.name].requires_grad for p in value.params.values()}
        value.frozen = set(names.values()) == {False} or value.kind in _FROZEN
        if len(set(names.values())) > 1:
            states = ", ".join(f"{name} ({'trained' if trained else 'frozen'})"
                               for name, trained in names.items())
            self.lines.append(f"{_where(self.graph, value.node)}: expected all parameters of a "
                              f"layer to be frozen or none (requires_grad), found {states}. Way "
                              "out: the same for all")

    def _lerp(self, value):
        """(skip, body, alpha) if value = l2norm(skip + alpha (body - skip))."""
        if value.kind != "l2norm":
            return None
        between = value.args[0]
        if between.kind == "between":
            factor, params = between.params["alpha"].factor, between.params
            skip, body = between.args
        else:
            found = self._spelled_out(between)
            if not found:
                return None
            skip, body, scaled = found
            factor, params = scaled.options["init"], {"alpha": scaled.params["scaler"]}
        return skip, body, _Value("lerp", value.node, params=params, init=factor,
                                  eps=value.options["eps"])

    def _spelled_out(self, value):
        """(skip, body, scaler) if value = skip + scaler (body - skip)."""
        for skip, scaled in (value.args, value.args[::-1]) if value.kind == "add" else ():
            if scaled.kind == "scaler" and scaled.args[0].kind == "sub" \
                    and scaled.args[0].args[1] is skip:
                return skip, scaled.args[0].args[0], scaled
        return None


def _flat(items):
    """The values of layers and, in containers, of their bodies, in order."""
    for item in items:
        if isinstance(item, tuple):
            yield from _flat(item[1])
        else:
            yield item


def _number(x):
    return repr(float(x)) if x != int(x) else str(int(x))


def _kernel(dense):
    return dense.params["v" if "v" in dense.params else "kernel"]


def _text(value, project):
    """The line of a layer."""
    return _words(value, project) + (" trainable=no" if value.frozen else "")


def _words(value, project):
    o, kind = value.options, value.kind
    if kind in ("input", "slice", "concat", "select", "dropout"):
        first, last = o.get("columns") or o["part"]
        return f"{kind}{' ' if kind in ('input', 'slice') else ' input'}[{first}:{last}]"
    if kind == "dense":
        line = f"dense {value.width}" + ("" if "bias" in value.params else " bias=no")
        line += f" norm={o['norm']}" if "norm" in o else ""
        for pattern, how in project.items():
            if fnmatch.fnmatch(_kernel(value).name, pattern):
                line += f" project={how}"
                break
        return line
    if kind == "layernorm":
        affine = {0: " affine=no", 1: " bias=no"}.get(len(value.params), "")
        return f"layernorm eps={_number(o['eps'])}{affine}"
    if kind == "groupnorm":
        affine = "" if value.params else " affine=no"
        return f"groupnorm groups={o['groups']} eps={_number(o['eps'])}{affine}"
    if kind == "batchnorm":
        momentum = f" momentum={_number(round(o['momentum'], 12))}" if "momentum" in o else ""
        affine = "" if value.params else " affine=no"
        return f"batchnorm eps={_number(o['eps'])}{momentum}{affine}"
    if kind == "gelu":
        return "gelu" + (" approximate=none" if o["approximate"] == "none" else "")
    if kind == "leaky_relu":
        return f"leaky_relu negative_slope={_number(o['negative_slope'])}"
    if kind in ("rmsnorm", "rms", "l2norm"):
        return f"{'rmsnorm' if kind == 'rms' else kind} eps={_number(o['eps'])}"
    if kind in ("scaler", "mulc", "lerp"):
        init = f" init={_number(o['init'])}" if o["init"] != 1 else ""
        return ("scaler" if kind == "mulc" else kind) + init
    if kind == "append":
        return f"append {_number(o['constant'])}"
    if kind == "dueling":
        return "dueling" + (f" atoms={o['atoms']}" if o["atoms"] > 1 else "")
    return kind + (f" shift={_number(o['shift'])}" if o.get("shift") else "")


def _lines(items, project, depth=0):
    """The description's lines, and its values in the order in which layers are numbered."""
    lines, values, indent = [], [], "  " * depth
    for item in items:
        if not isinstance(item, tuple):
            lines.append(indent + _text(item, project))
            values += [] if item.kind in _UNCOUNTED else [item]
            continue
        container, inner, extra = item
        inner_lines, inner_values = _lines(inner, project, depth + 1)
        alpha = extra if container == "lerp" else None
        lines += [f"{indent}{_text(alpha, project) if alpha else container} {{", *inner_lines]
        if isinstance(extra, _Loss):
            lines.append(f"{indent}  loss {extra.text}")
        lines.append(indent + "}")
        values += inner_values + ([alpha] if alpha else [])
    return lines, values


# --- PyTorch: saving ---

def unstack(module, parameters, buffers=None):
    """The E modules of a stacked ensemble: `parameters` and `buffers` are {name: [E, ...]}, as
    torch.func.stack_module_state returns them; `module` gives the architecture, and may be on the
    device "meta". A list for save(critics=...). Buffers that are not given are those of
    `module`."""
    names = [{name for name, _ in own}
             for own in (module.named_parameters(), module.named_buffers())]
    given = {**parameters, **(buffers or {})}
    missing, empty = [name for name in names[0] if name not in given], _has_no_values(module)
    if empty:
        missing += [name for name in names[1] if name not in given]
    unknown = [name for name in given if name not in names[0] | names[1]]
    if missing or unknown or len({len(value) for value in given.values()}) != 1:
        _fail(f"unstack: expected {', '.join(sorted(names[0] | names[1]))}, each [E, ...] with one "
              f"E, found {', '.join(f'{k} {list(v.shape)}' for k, v in given.items()) or 'none'}")
    found = []
    for e in range(len(next(iter(given.values())))):
        one = copy.deepcopy(module)
        one = one.to_empty(device="cpu") if empty else one
        for name, tensor in (*one.named_parameters(), *one.named_buffers()):
            if name in given:
                tensor.data = given[name][e].detach().clone()
        found.append(one)
    return found


def _has_no_values(module):
    return any(p.is_meta for p in (*module.parameters(), *module.buffers()))


def _bind(module, inputs):
    """{name: tensor} in the order of forward's parameters, and whether the caller gave the
    names."""
    signature = inspect.signature(module.forward)
    if isinstance(inputs, dict):
        try:
            signature.bind(**inputs)
        except TypeError as error:
            _fail(f"inputs: expected the parameters of forward{signature}, found "
                  f"{', '.join(map(str, inputs))}: {error}")
        return dict(inputs), True
    inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    try:
        bound = signature.bind(*inputs)
    except TypeError as error:
        _fail(f"inputs: expected the tensors that forward{signature} takes, found {len(inputs)}: "
              f"{error}")
    names = list(bound.arguments)
    if len(names) != len(inputs):  # forward(*tensors)
        names = [f"input{i}" for i in range(len(inputs))]
    return dict(zip(names, inputs)), False


def _torch_loss(loss):
    """A loss by its line, or one of PyTorch's functions or modules, which computes the proofs."""
    if isinstance(loss, str):
        return _Loss(loss)
    name = getattr(loss, "__name__", type(loss).__name__)
    if getattr(loss, "reduction", "mean") != "mean":
        _fail(f"loss: {name}: expected reduction='mean', found {loss.reduction!r}. Way out: a "
              "line, in which weight=B makes the mean over B rows a sum")
    if name in ("mse_loss", "MSELoss"):
        return _Loss("mse weight=2", loss)
    if name in ("huber_loss", "HuberLoss"):
        return _Loss(f"huber delta={getattr(loss, 'delta', 1.0)!r}", loss)
    if name in ("smooth_l1_loss", "SmoothL1Loss") and getattr(loss, "beta", 1.0) > 0:
        beta = getattr(loss, "beta", 1.0)
        return _Loss(f"huber delta={beta!r} weight={1 / beta!r}", loss)
    _fail(f"loss: {name} has no line that is known here. Way out: its line as a string, for "
          "example 'ce min=-10 max=10' or 'quantile', and check=, the value of your loss, which is "
          "compared")


class _Critic:
    """The chains of one traced module: its description, input and parameters."""

    def __init__(self, graph, losses, project):
        self.graph, self.chains = graph, []
        roots = [[root] for root in graph.roots]
        if len(losses) > 1:
            roots = [graph.roots]
            if len(graph.roots) != len(losses):
                _fail(f"{graph.name}: expected a tuple of {len(losses)} outputs from forward, as "
                      f"many as losses, found {len(graph.roots)}. Way out: a module for each "
                      "critic")
        for one in roots:
            chain = _Chain(graph, one, losses)
            if chain.lines:
                _fail(f"{graph.name} cannot be expressed:", chain.lines)
            lines, chain.values = _lines(chain.items, project)
            lines += [f"loss {losses[0].text}"] if len(losses) == 1 else []
            chain.text = "\n".join([*lines, ""])
            self.chains.append(chain)
        graph.compare_with_forward()

    def ensemble(self, chain):
        """E of a stacked ensemble, else 1."""
        kernel = next(_kernel(v) for v in chain.values if v.kind == "dense")
        shape = kernel.transform(self.graph.parameters[kernel.name]).shape
        return shape[0] if len(shape) == 3 else 1

    def input(self, chain, seen, rows):
        """[R, D]: what the first layers read, and what is joined later."""
        return np.concatenate([self._columns(source, seen, rows) for source in chain.sources], -1)

    def _columns(self, source, seen, rows):
        """[R, d], the same for all members of a stacked ensemble."""
        x = source.take(seen[source.value.node]).detach().cpu().numpy()
        x = x if x.ndim > 1 else x[:, None]
        width = x.shape[-1]
        x = x.reshape(-1, rows, width) if x.size % (rows * width) == 0 else x[None]
        if x.ndim != 3 or x.shape[1] != rows or not (x == x[:1]).all():
            _fail(f"{_where(self.graph, source.value.node)}: expected the same {rows} rows as the "
                  f"inputs have, for every critic, found {list(x.shape)} that differ. Way out: no "
                  "change of rows in forward; inputs that have all rows")
        return x[0]

    def outputs(self, seen, rows, width):
        """[E, R, K], in the graph of autograd; width: K."""
        found = []
        for chain in self.chains:
            parts = [seen[root.node].reshape(self.ensemble(chain), rows, -1)
                     for root in chain.roots]
            found.append(self.graph.torch.cat(parts, -1))
        if any(f.shape[-1] != width for f in found):
            _fail(f"{self.graph.name}: expected {width} outputs for each of {rows} rows, found "
                  f"{[list(seen[root.node].shape) for root in self.graph.roots]}")
        return self.graph.torch.cat(found)

    def check_norms(self, seen):
        """A lerp's l2norm has eps = 1e-8. Another eps is the same function where no norm is near
        either."""
        for value in (value for chain in self.chains for value in chain.values):
            if value.kind == "lerp" and value.options["eps"] != 1e-8:
                before = self.graph.values[value.node].args[0].node
                least = seen[before].norm(dim=-1).min()
                if not least > 10 * max(value.options["eps"], 1e-8):
                    _fail(f"{_where(self.graph, value.node)}: expected eps=1e-8 in the l2norm of a "
                          f"lerp, found {value.options['eps']:g} and a row of norm {least:g}. Way "
                          "out: eps=1e-8")


def _collect(critics, layers, read):
    """{"NN_kind/name": [E, ...]} of all critics; read(graph, name) is a tensor of a parameter's
    shape."""
    found = {}
    for critic, chain in ((critic, chain) for critic in critics for chain in critic.chains):
        ensemble = critic.ensemble(chain)
        for layer, value in zip(layers, chain.values):
            for name, shape in layer.params.items():
                shape = (ensemble, *shape)
                if name not in value.params:  # a constant of forward
                    found.setdefault(f"{layer.group}/{name}", []).append(np.ones(shape, np.float32))
                    continue
                parameter = value.params[name]
                array = parameter.transform(read(critic.graph, parameter.name)).detach().cpu()
                single = str(array.dtype) != "torch.float64"
                array = (array.float() if single else array).numpy()
                if array.size != math.prod(shape):
                    _fail(f"{_where(critic.graph, value.node)}: expected {list(shape)} numbers for "
                          f"{name} of {layer.group}, found {list(array.shape)} in "
                          f"{parameter.name}. Way out: one number for each feature")
                found.setdefault(f"{layer.group}/{name}", []).append(array.reshape(shape))
    return {key: np.concatenate(arrays) for key, arrays in found.items()}


def _states(critics, layers):
    """Running statistics of batch normalization and vectors of spectral norms, if all such layers
    of all critics have them: a checkpoint has all of them or none."""
    found, wanted = {}, {f"{layer.group}/{name}" for layer in layers for name in layer.state}
    for critic in critics:
        buffers = {f"{path}.{key}": b for path, m in _parts(critic.graph.original)
                   for key, b in m._buffers.items()}
        for chain in critic.chains:
            for layer, value in zip(layers, chain.values):
                for name, path in value.state.items():
                    array = _array(path, buffers[path])[None]
                    found.setdefault(f"{layer.group}/{name}", []).append(array)
    count = sum(len(c.chains) for c in critics)
    if set(found) != wanted or any(len(arrays) != count for arrays in found.values()):
        return {}
    return {key: np.concatenate(arrays) for key, arrays in found.items()}


def _check_parameters(critics):
    """No parameter twice, none times a constant that has no place."""
    used, lines = {}, []
    for graph, value in ((c.graph, v) for c in critics for chain in c.chains for v in chain.values):
        for name, p in value.params.items():
            tensor, path = graph.parameters[p.name], f"{graph.name}.{p.name}"
            key = id(tensor), p.part
            if key in used:
                lines.append(f"{_where(graph, value.node)}: {path} is also {used[key]}. Every "
                             "layer of every critic has parameters of its own in the description. "
                             "Way out: export the part behind a shared one")
            used[key] = path
            if p.factor != 1 and name not in ("scaler", "alpha"):
                lines.append(f"{_where(graph, value.node)}: {path} times {p.factor:g} has no line "
                             "in the description. Way out: store the product in the module")
    if lines:
        _fail("the critics cannot be expressed:", lines)


_NO_MOMENTS = "Way out: leave the optimizer out; only the operator `preconditioned` needs it"


def _trained(critics, optimizer):
    """The trained parameters of the critics, and the group of the optimizer that each is in."""
    groups = {id(p): g for g in optimizer.param_groups for p in g["params"]}
    tensors = {}
    for critic in critics:
        values = [v for chain in critic.chains for v in chain.values if not v.frozen]
        for p in (p for value in values for p in value.params.values()):
            tensor = critic.graph.parameters[p.name]
            if id(tensor) not in groups:
                _fail("optimizer: expected the one that trains the critics, found none of its "
                      f"parameters in {critic.graph.name}.{p.name}. Way out: the critics' "
                      "optimizer, or leave it out (unstacked copies have none)")
            tensors[id(tensor)] = tensor
    return list(tensors.values()), [groups[i] for i in tensors]


def _torch_adam(optimizer, critics, layers):
    """(Adam's moments in the order of the description, or None before its first step; the attribute
    learning_rate, if there is one rate)."""
    torch = critics[0].graph.torch
    if not isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)) \
            or any(g.get("amsgrad") for g in optimizer.param_groups):
        _fail("optimizer: expected Adam or AdamW without amsgrad, found "
              f"{type(optimizer).__name__}. "
              + _NO_MOMENTS)
    tensors, groups = _trained(critics, optimizer)
    constants = {(*(float(b) for b in g["betas"]), float(g["eps"])) for g in groups}
    rates = {float(g["lr"]) for g in groups}
    rate = {"learning_rate": rates.pop()} if len(rates) == 1 else {}
    states = [optimizer.state.get(t, {}) for t in tensors]
    if not any("exp_avg" in state for state in states):
        return None, rate
    steps = {int(state.get("step", 0)) for state in states}
    if len(constants) > 1 or len(steps) > 1:
        _fail("optimizer: expected one beta1, beta2, eps and number of steps for all parameters of "
              f"the critics, found {sorted(constants)} and {sorted(steps)} steps. {_NO_MOMENTS}")
    adam = dict(zip(("beta1", "beta2", "eps"), constants.pop()), step=steps.pop())
    trained = [x if x.trainable else _Layer(0, x.kind, x.out) for x in layers]
    for moment, key in (("m", "exp_avg"), ("v", "exp_avg_sq")):
        adam[moment] = _collect(critics, trained, lambda graph, name, key=key:
                                optimizer.state[graph.parameters[name]][key])
    return adam, rate


def _critic_loss(heads, f, t, w, torch):
    """The loss of one critic for outputs f [B, K] and targets t [B, T], by PyTorch's own function
    if that is given, which has to be that of the line."""
    ours = _mean_loss(heads, f, t, w, torch, lambda x: torch.logsumexp(x, -1))
    if not any(loss.function for loss, _ in heads):
        return ours
    theirs, at, target = 0, 0, 0
    for loss, outputs in heads:
        columns = 1 if loss.name in ("mse", "huber") else outputs
        one, y = f[:, at:at + outputs], t[:, target:target + columns]
        at, target = at + outputs, target + columns
        theirs = theirs + (loss.function(one, y) if loss.function else _mean_loss(
            [(loss, outputs)], one, y, w, torch, lambda x: torch.logsumexp(x, -1)))
    bound = 1e-4 * abs(float(ours)) + 1e-12
    if theirs.shape != ours.shape or not abs(float(theirs - ours)) <= bound:
        _fail("loss: expected the mean over rows of "
              f"{' and '.join(loss.text for loss, _ in heads)}, {float(ours):.8g}, found "
              f"{theirs.detach().numpy()} from the function that is given. Way out: the line of "
              "your loss as a string, and check=, the value of your loss")
    return theirs


def _torch_proofs(critics, inputs, targets, weights, heads):
    """For each minibatch: what the first layers read, and PyTorch's outputs, loss and norm of the
    gradient."""
    torch, width = critics[0].graph.torch, sum(outputs for _, outputs in heads)
    rows = next(iter(inputs.values())).shape[1]
    found = {"input": [], "output": [], "loss": [], "gradient_norm": []}
    for n, target in enumerate(targets):
        outputs = []
        for critic in critics:
            seen, _ = critic.graph.run({key: a[n] for key, a in inputs.items()})
            critic.check_norms(seen)
            here = [critic.input(chain, seen, rows) for chain in critic.chains]
            if len(found["input"]) == n:
                found["input"].append(here[0])
            first = found["input"][n]
            if any(x.shape != first.shape or not np.allclose(x, first, rtol=1e-12, atol=0)
                   for x in here):
                _fail(f"{critic.graph.name}: expected the same input for all critics, found "
                      "another one than of the first critic")
            outputs.append(critic.outputs(seen, rows, width))
        f = torch.cat(outputs)[:, :len(target)]
        t, w = [torch.as_tensor(a, dtype=f.dtype) for a in (target, weights[n])]
        total = sum(_critic_loss(heads, one, t[:, e] if t.dim() == 3 else t, w, torch)
                    for e, one in enumerate(f))
        parameters = [p for critic in critics for p in critic.graph.module.parameters()
                      if p.requires_grad]
        gradients = torch.autograd.grad(total, parameters, allow_unused=True)
        squares = [float((g.double() ** 2).sum()) for g in gradients if g is not None]
        found["output"].append(f.detach().numpy().transpose(1, 0, 2))
        found["loss"].append(float(total))
        found["gradient_norm"].append(math.sqrt(sum(squares)))
    return {key: np.array(value) for key, value in found.items()}


def _modules(critics):
    """The list of modules that are the critics."""
    if type(critics).__name__ == "ModuleList":
        critics = list(critics)
    modules = list(critics) if isinstance(critics, (list, tuple)) else [critics]
    if not modules or not all(hasattr(m, "named_modules") for m in modules):
        _fail("critics: expected modules of PyTorch, found "
              f"{[type(m).__name__ for m in modules]}")
    return modules


def save(path, critics, inputs, targets, loss, optimizer=None, step=None, check=None, weights=None,
         project=None, attributes=None):
    """Writes critics of PyTorch as a checkpoint, and returns their description.

    critics    a module or a list of modules, in training mode; a module may return several critics,
               as a tuple, a stack or a concatenation, or be a stacked ensemble with parameters
               [E, in, out]
    inputs     the tensors that forward takes, as a tuple or, safest, as a dict by the names of
               forward's parameters: [N, R, D] for N minibatches of R rows, or [R, D] for one
    targets    [N, B, K], [N, B], or [N, B, E, K] if each critic has its own; without N for one
               minibatch; constants
    loss       a line of the description ("mse", "ce min=-10 max=10", "huber delta=1", "quantile",
               each with weight=W), or PyTorch's mse_loss, huber_loss, smooth_l1_loss or their
               modules. With several heads: a list, for the outputs that forward returns as a tuple;
               then targets is a list too, and each module is one critic
    optimizer  the critics' Adam or AdamW, whose moments are stored
    step       environment steps so far
    check      the loss that the training computes for these minibatches (their mean, or [N]),
               summed over the critics: compared, to 0.1%. It notices inputs in another order, other
               targets, a forgotten factor
    weights    [N, B], weights of the rows that multiply the loss: prioritized replay, masks
    project    {pattern of a weight's name: "unit" or "unit-kernel"}: what weight projection does
               (only for the operator `manifold`)
    attributes further root attributes, such as {"env": "Hopper-v4", "gamma": 0.99}

    The modules are copied: neither they nor their running statistics change. Raises Refused."""
    import torch
    modules, losses = _modules(critics), loss if isinstance(loss, (list, tuple)) else [loss]
    losses = [_torch_loss(one) for one in losses]
    arrays, by_name = _bind(_plain(modules[0]), inputs)
    arrays, batched = _minibatches(arrays)
    with _surroundings(torch):
        traced = [_Critic(_Graph(m, f"critics[{i}]", arrays, by_name), losses, project or {})
                  for i, m in enumerate(modules)]
        description = _common_description(traced, arrays)
        ensemble = sum(c.ensemble(chain) for c in traced for chain in c.chains)
        heads = description.heads
        heads = [(one, outputs) for one, (_, outputs) in zip(losses, heads)]  # with their functions
        shape = next(iter(arrays.values())).shape[:2]
        t = _targets(targets, batched, shape, heads, ensemble, description.joint)
        w = _weights(weights, t)
        if w is not None and any(one.function for one in losses):
            _fail(f"weights: expected the loss as a line, {losses[0].text!r}, found a function of "
                  "PyTorch")
        batch = _torch_proofs(traced, arrays, t, np.ones(t.shape[:2]) if w is None else w, heads)
    if check is not None:
        _compare_loss(check, batch["loss"], ensemble, heads)
    if any(c.graph.rounded for c in traced):  # compared less sharply
        batch = {key: a.astype(np.float32) for key, a in batch.items()}
    batch |= {"target": t} | ({} if w is None else {"weight": w})
    parameters = _collect(traced, description.layers, lambda graph, name: graph.parameters[name])
    parameters |= _states(traced, description.layers)
    adam, root = None, {} if step is None else {"env_step": int(step)}
    if optimizer is not None:
        adam, rate = _torch_adam(optimizer, traced, description.layers)
        root |= rate
    arch = traced[0].chains[0].text
    _save(path, arch, ensemble, parameters, batch, adam, root | (attributes or {}))
    return arch


def _common_description(critics, arrays):
    """The description that all critics have, read by the rules of the file format."""
    first = critics[0].chains[0]
    for critic, chain in ((c, chain) for c in critics for chain in c.chains):
        if chain.text != first.text:
            _fail(f"critics: expected the same architecture, found\n{first.text}and in "
                  f"{critic.graph.name}\n{chain.text}")
    rows = next(iter(arrays.values())).shape[1]
    width = critics[0].input(first, critics[0].graph.seen, rows).shape[1]
    description = _read_description(first.text, width)
    assert len(description.layers) == len(first.values)
    _check_parameters(critics)
    return description


# --- Flax ---

_FLAX = {"dense": "Dense_{}", "batchnorm": "BatchNorm_{}", "batchrenorm": "BatchRenorm_{}",
         "layernorm": "LayerNorm_{}", "rmsnorm": "RMSNorm_{}", "scaler": "Scaler_{}",
         "lerp": "LERP_{}"}


def _leaves(tree, path=""):
    """{path with /: leaf} of nested dicts."""
    if hasattr(tree, "items"):
        return {key: leaf for name, part in tree.items()
                for key, leaf in _leaves(part, f"{path}{name}/").items()}
    boxed = "flax" in type(tree).__module__
    return {path.rstrip("/"): getattr(tree, "value", tree) if boxed else tree}


def _names(names, layers):
    """{"NN_kind/param": path}: from names by layer, by parameter, or by kind with {} for its number
    from 0."""
    found, counts, used = {}, {}, set()
    for layer in layers:
        count = counts.get(layer.kind, 0)
        counts[layer.kind] = count + 1
        for name in [*layer.params, *layer.state]:
            full = f"{layer.group}/{name}"
            if full in names:
                used.add(full)
                found[full] = names[full]
                continue
            key = layer.group if layer.group in names else layer.kind
            used.add(key)
            found[full] = f"{names[key].format(count)}/{name}"
    unused = [key for key in names if key not in used and names[key] != _FLAX.get(key)]
    if unused:
        _fail(f"names: {', '.join(unused)}: the description has no such layer. It has "
              f"{', '.join(x.group for x in layers if x.params)}")
    return found


def _find(tree, path):
    for name in ("params/" + path, "batch_stats/" + path, path):
        if name in tree:
            return name
    return None


def _take(trees, names, layers, ensemble):
    """({"NN_kind/name": [E, ...]}, the taken paths); trees: the leaves of one set of variables, or
    of each critic."""
    arrays, taken, lines = {}, {}, []
    for layer in layers:
        for name, shape in {**layer.params, **layer.state}.items():
            full = f"{layer.group}/{name}"
            path = _find(trees[0], names[full])
            if path is None:
                if name in layer.params or layer.kind == "batchrenorm":
                    known = [p.split("/", 1)[-1] for p in trees[0]]
                    lines.append(f"{full}: {names[full]} is not there"
                                 + _did_you_mean(names[full], known))
                continue
            parts = [_array(path, tree[path]) for tree in trees]
            want = (ensemble, *shape) if len(trees) == 1 and ensemble > 1 else shape
            one = (1, *shape) if ensemble == 1 else want  # an ensemble of one, by nn.vmap
            parts = [a.reshape(want) if a.shape == one or a.size == math.prod(want) == 1 else a
                     for a in parts]
            wrong = next((a for a in parts if a.shape != want), None)
            if wrong is not None:
                lines.append(f"{full}: expected {list(want)}, found {path} {list(wrong.shape)}")
                continue
            arrays[full] = np.stack(parts) if len(want) == len(shape) else parts[0]
            taken[full] = path
    for path in trees[0]:
        if path.startswith("params/") and path not in taken.values():
            lines.append(f"{path} {list(np.shape(trees[0][path]))} is in the variables, and not in "
                         "the description or in names")
    twice = [p for p in taken.values() if list(taken.values()).count(p) > 1]
    lines += [f"{path} is given for several parameters" for path in twice]
    if lines:
        listing = "; ".join(f"{p} {list(np.shape(a))}" for p, a in trees[0].items())
        _fail("the description and the variables do not agree:",
              [*lines, f"(the variables are: {listing})"])
    states = {f"{layer.group}/{name}" for layer in layers for name in layer.state}
    if not states <= set(arrays):  # a checkpoint has all running statistics or none
        arrays = {full: a for full, a in arrays.items() if full not in states}
    return arrays, taken


def _optax(state, sets, names, layers, ensemble, constants):
    """Adam's moments from a state of optax, or of each critic."""
    def find(part):
        if type(part).__name__ == "ScaleByAdamState":
            return part
        inner = part if isinstance(part, (tuple, list)) else [getattr(part, "inner_state", None)]
        found = (find(p) for p in inner if p is not None and p is not part)
        return next((f for f in found if f), None)

    states = [find(s) for s in (state if sets > 1 else [state])]
    if None in states:
        _fail("optimizer: expected a state of optax.adam or adamw, found none in it. "
              "" + _NO_MOMENTS)
    counts = {int(np.asarray(s.count).ravel()[0]) for s in states}
    if len(counts) > 1:
        _fail(f"optimizer: expected one number of steps, found {sorted(counts)}")
    if counts == {0}:
        return None
    adam = {"step": counts.pop(), **constants}
    frozen = {x.group for x in layers if not x.trainable}
    plain = [_Layer(0, x.kind, x.out, x.params) for x in layers]
    for new, old in zip(plain, layers):
        new.group = old.group
    for moment, tree in (("m", "mu"), ("v", "nu")):
        leaves = [{path if path.startswith("params/") else f"params/{path}": leaf
                   for path, leaf in _leaves(getattr(s, tree)).items()} for s in states]
        taken, _ = _take(leaves, names, plain, ensemble)
        adam[moment] = {key: a for key, a in taken.items() if key.split("/")[0] not in frozen}
    return adam


def _nest(tree, leaves, path=""):
    """The tree with other leaves."""
    if hasattr(tree, "items"):
        return {name: _nest(part, leaves, f"{path}{name}/") for name, part in tree.items()}
    return leaves.get(path.rstrip("/"), tree)


def _forward(apply, variables, inputs):
    """apply's outputs; without the changed state that it may return as well. inputs: {name: array}
    with strings as names for apply's named arguments, else numbers."""
    named = {name: x for name, x in inputs.items() if isinstance(name, str)}
    out = apply(variables, *[x for name, x in inputs.items() if name not in named], **named)
    if isinstance(out, tuple) and len(out) == 2 and hasattr(out[1], "items"):
        out = out[0]
    return out


def _outputs(out, ensemble, rows):
    """[E, R, K] of the critics in one set of variables."""
    shape = tuple(out.shape)
    if ensemble == 1:
        return out.reshape(1, rows, -1)
    if shape[0] != ensemble or shape[1] != rows:
        _fail(f"apply: expected outputs [{ensemble}, {rows}, ...], with the critics first as in "
              f"the parameters, found {list(shape)}")
    return out.reshape(ensemble, rows, -1)


def _check_mode(apply, inputs, outputs, joint):
    """Batch normalization in training mode lets the rows depend on each other, and nothing else
    does. apply(inputs) is [E, R, K]; outputs [E, B, K]: what it gave for all rows."""
    part = outputs.shape[1] // 2
    if part < 2:
        return
    whole = np.asarray(outputs)[:, :part]
    half = np.asarray(apply({name: x[:part] for name, x in inputs.items()}))
    alike = np.allclose(whole, half, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    if joint and alike:
        _fail("apply: the description has a batchnorm, and apply gives the same values for half of "
              "the rows: it is in evaluation mode. Way out: apply=lambda v, *x: module.apply(v, "
              "*x, train=True, mutable=['batch_stats'])[0]")
    if not joint and not alike:
        _fail("apply: the description has no batchnorm, and apply gives other values for half of "
              "the rows: its rows depend on each other, or it is random (dropout). Way out: "
              "deterministic=True, or a batchnorm in the description")


def _double(variables):
    """The variables with real numbers as float64; counters and keys of random numbers as they
    are."""
    import jax
    import jax.numpy as jnp

    def convert(leaf):
        real = jnp.issubdtype(getattr(leaf, "dtype", np.asarray(leaf).dtype), np.floating)
        return jnp.asarray(_array("variables", leaf), jnp.float64) if real else leaf

    return jax.tree_util.tree_map(convert, variables)


class _Flax:
    """Critics of Flax: apply, the sets of variables, the paths of trained parameters, E of a set,
    and the heads [(loss, outputs)]."""

    def __init__(self, apply, sets, taken, ensemble, heads):
        self.apply, self.ensemble, self.heads = apply, ensemble, heads
        self.sets = [_double(v) for v in sets]
        paths = [path for path in taken if path.startswith("params/")]
        self.trained = [{path: _leaves(v)[path] for path in paths} for v in self.sets]

    def outputs(self, variables, x):
        """[E, R, K]"""
        rows = len(next(iter(x.values())))
        return _outputs(_forward(self.apply, variables, x), self.ensemble, rows)

    def loss(self, trained, x, t, w):
        """The loss of a minibatch, and the outputs of its rows with targets, [E, B, K]."""
        import jax
        import jax.numpy as jnp
        f = jnp.concatenate([self.outputs(_nest(v, leaves), x)
                             for v, leaves in zip(self.sets, trained)])[:, :len(t)]
        total = sum(_mean_loss(self.heads, one, t[:, e] if t.ndim == 3 else t, w, jnp,
                               lambda y: jax.scipy.special.logsumexp(y, -1))
                    for e, one in enumerate(f))
        return total, f

    def check_outputs(self, x):
        """apply gives one array with as many outputs as the description."""
        import jax
        out = jax.eval_shape(lambda x: _forward(self.apply, self.sets[0], x), x)
        if not hasattr(out, "shape"):
            _fail(f"apply: expected the critics' outputs as one array, found {type(out).__name__}. "
                  "Way out: apply=lambda v, *x: jnp.stack(module.apply(v, *x)); several heads side "
                  "by side, jnp.concatenate(module.apply(v, *x), -1)")
        rows, want = len(next(iter(x.values()))), sum(outputs for _, outputs in self.heads)
        if math.prod(out.shape) != want * self.ensemble * rows:
            _fail(f"apply: expected {want} outputs for each of {rows} rows and {self.ensemble} "
                  f"critics, found {list(out.shape)}")

    def proofs(self, minibatches, joint):
        """Outputs, losses and norms of the gradient, in float64 whatever the type of the
        variables."""
        import jax
        import jax.numpy as jnp
        inputs, targets, weights = minibatches
        found = {"output": [], "loss": [], "gradient_norm": []}
        compiled = jax.jit(jax.value_and_grad(self.loss, has_aux=True))
        for n, target in enumerate(targets):
            x = {name: jnp.asarray(a[n], jnp.float64) for name, a in inputs.items()}
            if n == 0:
                self.check_outputs(x)
            (total, f), gradients = compiled(self.trained, x, jnp.asarray(target, jnp.float64),
                                             jnp.asarray(weights[n], jnp.float64))
            if n == 0:
                forward = jax.jit(lambda x: self.outputs(self.sets[0], x))
                _check_mode(forward, x, f[:self.ensemble], joint)
            squares = [float((g.astype(jnp.float64) ** 2).sum())
                       for g in jax.tree_util.tree_leaves(gradients)]
            found["output"].append(np.asarray(f).transpose(1, 0, 2))
            found["loss"].append(float(total))
            found["gradient_norm"].append(math.sqrt(sum(squares)))
        kind = np.float64 if f.dtype == jnp.float64 else np.float32
        return {key: np.array(a, kind) for key, a in found.items()}


def _flax_description(arch, loss, inputs):
    """The text of the description with its loss, and what it says; inputs: columns."""
    arch = os.fspath(arch)
    if "\n" not in arch:
        if not os.path.exists(arch):
            _fail(f"{arch}: no such file. Expected the path of a description, or its text")
        with open(arch, encoding="utf-8") as file:
            arch = file.read()
    description = _read_description(arch, inputs)
    arch = arch.rstrip() + "\n"
    if not description.heads:
        if loss is None:
            _fail("loss: expected it as an argument or as the last line of the description")
        arch += f"loss {_Loss(loss).text}\n"
        description = _read_description(arch, inputs)
    elif loss is not None:
        text, given = ", ".join(one.text for one, _ in description.heads), _Loss(loss)
        one = description.heads[0][0]
        if len(description.heads) > 1 or (one.name, one.options) != (given.name, given.options):
            _fail(f"loss: the description has {text!r}, the argument is {given.text!r}")
    return arch, description


def _flax_inputs(inputs):
    """{name: [N, R, D]}, and whether the caller's arrays had the first dimension; a name is a
    number where the caller gave none."""
    if not isinstance(inputs, dict):
        inputs = dict(enumerate(inputs if isinstance(inputs, (list, tuple)) else (inputs,)))
    return _minibatches(inputs)


def save_flax(path, variables, apply, arch, names=None, inputs=(), targets=None, loss=None,
              ensemble=1, optimizer=None, step=None, check=None, weights=None, attributes=None,
              beta1=0.9, beta2=0.999, eps=1e-8):
    """Writes critics of Flax as a checkpoint, and returns their description.

    variables  what module.init returns, {"params": ..., "batch_stats": ...}; for nn.vmap'ed critics
               with parameters [E, ...] and ensemble=E; or a list of variables, one for each critic
    apply      apply(variables, *inputs) -> outputs [R, K] or [R], with ensemble=E [E, R, K] or [E,
               R]; several heads side by side. Batch normalization in training mode:
               lambda v, *x: module.apply(v, *x, train=True, mutable=["batch_stats"])[0]
    arch       the description: the path of an .arch file, or its text; without a line `loss` if
               loss is given
    names      {layer: module}: "01_dense": "MLP_0/Dense_0"; by parameter, "01_dense/kernel":
               "MLP_0/Dense_0/kernel"; or by kind, with {} for its number from 0: "dense":
               "Dense_{}". What is left out is as in {"dense": "Dense_{}", "layernorm":
               "LayerNorm_{}", "batchnorm": "BatchNorm_{}", "batchrenorm": "BatchRenorm_{}",
               "rmsnorm": "RMSNorm_{}", "scaler": "Scaler_{}", "lerp": "LERP_{}"}. Paths are within
               params and batch_stats
    inputs     what apply takes behind the variables, [N, R, D] each or [R, D] for one minibatch,
               joined in this order as the description's input; a dict is given to apply by its
               names
    optimizer  the state of optax.adam or adamw (a list with a list of variables), whose constants
               are beta1, beta2, eps
    targets, loss, step, check, weights, attributes  as for save; loss is a line

    Every parameter has to be named, and every one that is named has to be there. Raises Refused."""
    import jax
    arrays, batched = _flax_inputs(inputs)
    joined = np.concatenate(list(arrays.values()), -1)
    arch, description = _flax_description(arch, loss, joined.shape[2])
    layers, heads = description.layers, description.heads
    sets = list(variables) if isinstance(variables, (list, tuple)) else [variables]
    sets = [v if "params" in v else {"params": v} for v in sets]
    names = _names({**_FLAX, **(names or {})}, layers)
    parameters, taken = _take([_leaves(v) for v in sets], names, layers, ensemble)
    t = _targets(targets, batched, joined.shape[:2], heads, ensemble * len(sets), description.joint)
    w = _weights(weights, t)
    trained = [taken[f"{x.group}/{name}"] for x in layers if x.trainable for name in x.params]
    minibatches = arrays, t, np.ones(t.shape[:2]) if w is None else w
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with enable(True):
        batch = _Flax(apply, sets, trained, ensemble, heads).proofs(minibatches, description.joint)
    batch |= {"input": joined, "target": t} | ({} if w is None else {"weight": w})
    count = batch["output"].shape[2]
    if check is not None:
        _compare_loss(check, batch["loss"], count, heads)
    adam = None
    if optimizer is not None:
        constants = {"beta1": float(beta1), "beta2": float(beta2), "eps": float(eps)}
        adam = _optax(optimizer, len(sets), names, layers, ensemble, constants)
    root = {} if step is None else {"env_step": int(step)}
    _save(path, arch, count, parameters, batch, adam, root | (attributes or {}))
    return arch


# --- while a program trains ---

def _logger(log, folder):
    """A function (step, values) that logs values; None stands for one that is not resolved."""
    if log == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter
        log = SummaryWriter(folder)
    if log == "wandb":
        import wandb
        log = wandb
    if hasattr(log, "add_scalar"):
        def scalars(step, values):
            for key, value in values.items():
                if value is not None:
                    log.add_scalar(f"kappascope/{key}", value, step)
        return scalars
    if hasattr(log, "log"):
        if hasattr(log, "define_metric"):  # an analysis ends later than the step that it is of
            log.define_metric("kappascope/*", step_metric="kappascope/step")

        def row(step, values):
            found = {f"kappascope/{key}": v for key, v in values.items() if v is not None}
            log.log({"kappascope/step": step} | found)
        return row
    path = os.fspath(log)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return lambda step, values: _append_row(path, {"step": step} | values)


class Monitor:
    """Saves and analyzes critics in the background while a program trains:

        monitor = Monitor("audit", save, every=10_000, log="audit/curves.csv")
        monitor(step)        # in the loop
        monitor.close()

    folder   for the checkpoints step_NNNNNNNNN.h5 and their spectra
    save     save(path, step) writes a checkpoint, always of the same minibatches
    every    steps between two analyses. While one runs, the next are left out
    log      where kappascope/NAME goes: a path of a CSV file, an object with add_scalar
             (TensorBoard's SummaryWriter), an object with log (a run of wandb), "tensorboard" (a
             writer in folder), "wandb" (its current run), or a list
    options  further options of `kappascope analyze`
    program  the program, if it is not in the PATH
    threads  that the analysis may use
    keep     False: delete each checkpoint when its analysis has ended, well or not
    wait     seconds for which close, or the end of the program, waits for the last analysis before
             it is stopped

    A call only looks whether an analysis has ended, unless it saves. No failure ends the training:
    each is printed once, on standard error. Processes that the program forks do nothing here. If
    the program is killed, an analysis that runs ends by itself."""

    def __init__(self, folder, save, every, log, options=(), program="kappascope", threads=1,
                 keep=True, wait=600):
        if every < 1:
            raise ValueError(f"Monitor: every: expected at least 1 step, found {every}")
        self.folder, self.save, self.every = os.fspath(folder), save, every
        self.keep, self.wait, self.owner = keep, wait, os.getpid()
        nice = shutil.which("nice")
        self.command = [*([nice, "-n", "19"] if nice else []), program, "analyze", "--json",
                        "--quiet", *options]
        self.environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        self.next, self.process, self.reported, self.skipped = 0, None, set(), 0
        os.makedirs(self.folder, exist_ok=True)
        logs = log if isinstance(log, (list, tuple)) else [log]
        self.logs = [_logger(one, self.folder) for one in logs]
        atexit.register(self.close)

    def __call__(self, step):
        """Looks for the end of an analysis; starts one if it is time. Returns whether it saved."""
        if os.getpid() != self.owner:
            return False
        try:
            if self.process and self.process.poll() is not None:
                self._finish()
        except Exception as error:  # the training goes on, whatever happens here
            self._report(self.step, error)
        try:
            if step < self.next:
                return False
            self.next = step - step % self.every + self.every
            if self.process:
                self.skipped += 1
                return False
            self._start(step)
            return True
        except Exception as error:
            self._report(step, error)
            return False

    def _start(self, step):
        path = os.path.join(self.folder, f"step_{step:09d}.h5")
        self.save(path, step)
        self.path, self.step = path, step
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        try:
            # In a session of its own: Ctrl-C at the terminal ends the training, which then ends the
            # analysis.
            self.process = subprocess.Popen([*self.command, path], stdin=subprocess.DEVNULL,
                                            stdout=self.out, stderr=self.err, env=self.environment,
                                            start_new_session=True)
        except BaseException:
            self._clean()
            raise

    def _finish(self):
        """Logs the statistics of the analysis that has ended."""
        process, self.process = self.process, None
        try:
            values = self._read(process.returncode)
        finally:
            self._clean()
        failed = []
        for log in self.logs:
            try:
                log(self.step, values)
            except Exception as error:  # the other logs get their values
                failed.append(error)
        if failed:
            raise failed[0]

    def _read(self, status):
        """The numbers that the analyzer printed."""
        self.out.seek(0)
        self.err.seek(0)
        lines = self.out.read().splitlines()
        if status != 0 or not lines:
            said = self.err.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(f"kappascope analyze: exit status {status}: "
                               f"{said[-1] if said else 'no statistics and no message'}")
        return {key: value for key, value in json.loads(lines[0]).items()
                if value is None or isinstance(value, (int, float)) and not isinstance(value, bool)}

    def _clean(self):
        self.out.close()
        self.err.close()
        if not self.keep and os.path.exists(self.path):
            os.unlink(self.path)

    def _report(self, step, error):
        """Prints a message, once for all steps."""
        message = str(error) if type(error) is RuntimeError else f"{type(error).__name__}: {error}"
        kind = re.sub(r"\d+", "", message)
        if kind not in self.reported:
            self.reported.add(kind)
            print(f"kappascope_export: step {step}: {message} (the training goes on; the same is "
                  "not printed again)", file=sys.stderr, flush=True)

    def close(self, wait=None):
        """Waits for the last analysis, at most `wait` seconds, and logs it; a longer one is
        stopped. May be called twice."""
        atexit.unregister(self.close)
        if not self.process or os.getpid() != self.owner:
            return
        wait = self.wait if wait is None else wait
        try:
            try:
                self.process.wait(min(wait, 2))
            except subprocess.TimeoutExpired:
                if wait > 2:
                    print(f"kappascope_export: waiting for the analysis of step {self.step}, at "
                          f"most {wait:g} s", file=sys.stderr, flush=True)
                self.process.wait(max(wait - 2, 0))
            self._finish()
        except subprocess.TimeoutExpired:
            self._stop()
            self._report(self.step, RuntimeError("the analysis was stopped at the end of the "
                                                 "program"))
        except KeyboardInterrupt:
            self._stop()
            raise
        except Exception as error:
            self._report(self.step, error)

    def _stop(self):
        """Ends the analysis and what it started: they are a group of processes of their own."""
        process, self.process = self.process, None
        if not process:
            return
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5 if sign == signal.SIGTERM else None)
                break
        self._clean()


def _append_row(path, row):
    """A row of a CSV file, under the header that it has or gets; a value that is not resolved is
    empty. On a full disk the file stays as it was."""
    text = io.StringIO()
    size = os.path.getsize(path) if os.path.exists(path) else 0
    header = list(row)
    if size > 0:
        with open(path, encoding="utf-8", newline="") as file:
            header = next(csv.reader(file))
    writer = csv.DictWriter(text, header, restval="", extrasaction="ignore", lineterminator="\n")
    if size == 0:
        writer.writeheader()
    writer.writerow({key: "" if value is None else value for key, value in row.items()})
    try:
        with open(path, "a", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
    except OSError:
        if os.path.exists(path):
            os.truncate(path, size)
        raise
