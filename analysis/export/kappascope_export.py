"""Writes critics of PyTorch and Flax as checkpoints that `kappascope analyze` reads.

    import kappascope_export
    kappascope_export.save("mine.h5", critics=[qf1, qf2], inputs=(obs, actions), targets=y,
                           loss=torch.nn.functional.mse_loss, optimizer=optimizer, step=1000)

save       PyTorch: the description is found by tracing the modules with torch.fx
unstack    PyTorch: the critics of a stacked ensemble (torch.func), as a list for save
save_flax  Flax, or any framework of JAX: the description is given, with a map of names
Monitor    saves and analyzes in the background while a program trains, and logs the statistics

README.md beside this file has examples, and says what can be expressed. One file; needs numpy and h5py. Every file
holds what the framework itself computes for its minibatches (outputs, losses, norms of the gradient), which the
analyzer compares with its own before it analyzes anything. What cannot be expressed raises Refused, whose message
has a line for each part: where it is, why, and a way out. Nothing is written then."""

import atexit
import copy
import csv
import difflib
import fnmatch
import inspect
import json
import linecache
import math
import os
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
    """A layer with or without parameters: its line, parameters and state as {name: shape}."""

    def __init__(self, number, kind, out, params=None, state=None):
        self.group, self.kind, self.out = f"{number:02d}_{kind}", kind, out
        self.params, self.state, self.trainable = params or {}, state or {}, True


def _norm(width, _, options):
    names = [] if options.get("affine") == "no" else ["scale"] if options.get("bias") == "no" else ["scale", "bias"]
    return width, {name: (width,) for name in names}


def _columns(text, width):
    """The number of columns in [a:b] of `width`."""
    first, last = text[text.index("[") + 1:text.index("]")].split(":")
    return len(range(width)[int(first) if first else None:int(last) if last else None])


def _dense(width, words, options):
    out, groups = int(words[1]), int(options.get("groups", 1))
    params = {"kernel": (width // groups, out)}
    if options.get("bias", "yes") == "yes":
        params["bias"] = (out,)
    return out, params


def _same(width, *_):
    return width, {}


# kind: (width, words, options) -> (width of the output, {parameter: shape})
_KINDS = {
    "dense": _dense, "batchnorm": _norm, "layernorm": _norm,
    "rmsnorm": lambda width, *_: (width, {"scale": (width,)}),
    "scaler": lambda width, *_: (width, {"scaler": (width,)}),
    "lerp": lambda width, *_: (width, {"alpha": (width,)}),
    "append": lambda width, *_: (width + 1, {}),
    "l2norm": _same, "relu": _same, "tanh": _same, "silu": _same, "gelu": _same, "elu": _same, "mish": _same,
    "leaky_relu": _same, "relu6": _same, "sigmoid": _same, "softplus": _same,
    "slice": lambda width, words, _: (_columns(words[1], width), {})}
_LOSSES = {"mse": {}, "ce": {"min": None, "max": None}, "huber": {"delta": 1.0}, "quantile": {"kappa": 1.0}}


class _Loss:
    """A line `loss NAME option=value...` without its first word."""

    def __init__(self, text, function=None):
        self.function, words = function, text.split()
        words = words[1:] if words[:1] == ["loss"] else words
        name = words[0] if words else ""
        if name not in _LOSSES:
            hints = {"mseloss": "mse weight=2", "mse_loss": "mse weight=2", "l2": "mse", "cross_entropy": "ce min=V max=V",
                     "crossentropyloss": "ce min=V max=V", "smooth_l1": "huber delta=1", "huberloss": "huber delta=1",
                     "smooth_l1_loss": "huber delta=1", "huber_loss": "huber delta=1", "quantile_huber": "quantile"}
            near = hints.get(name.lower()) or next(iter(difflib.get_close_matches(name, _LOSSES)), None)
            _fail(f"loss: expected one of {', '.join(_LOSSES)}, found {name!r}" + (f"; did you mean {near!r}?" if near else ""))
        self.name, self.text = name, " ".join(words)
        self.options = {**_LOSSES[name], "weight": 1.0}
        for word in words[1:]:
            key, _, value = word.partition("=")
            if key not in self.options:
                _fail(f"loss {name}: expected the options {', '.join(self.options)}, found {word!r}")
            self.options[key] = float(value)
        missing = [key for key, value in self.options.items() if value is None]
        if missing:
            _fail(f"loss {name}: expected the options {' and '.join(f'{key}=V' for key in missing)}, the values of the "
                  "first and the last atom")
        self.weight = self.options["weight"]


def _parse(lines, at, width, layers, inputs):
    """Reads lines[at:] up to the } that closes them; appends to layers; returns (at, width). inputs: the network's."""
    while at < len(lines) and lines[at] != "}":
        line = lines[at]
        words = line.rstrip("{").split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        at += 1
        if line.endswith("{"):
            begin, repeats = at, int(words[1]) if words[0] == "repeat" else 1
            if words[0] not in ("repeat", "residual", "lerp"):
                _fail(f"description: expected repeat, residual or lerp before {{, found {line!r}")
            for _ in range(repeats):
                at, width = _parse(lines, begin, width, layers, inputs)
            at += 1
            if words[0] != "lerp":
                continue
        elif words[0] == "input":  # the first layer's columns; it has no number
            width = _columns(line, inputs)
            continue
        elif words[0] == "concat":
            width += _columns(line, inputs)
            layers.append(_Layer(len(layers), words[0], width))
            continue
        elif words[0] not in _KINDS:
            near = difflib.get_close_matches(words[0].lower(), _KINDS, 1)
            _fail(f"description: expected a layer ({', '.join(_KINDS)}), found {line!r}"
                  + (f"; did you mean {near[0]!r}?" if near else ""))
        width, params = _KINDS[words[0]](width, words, options)
        state = {"mean": (width,), "var": (width,)} if words[0] == "batchnorm" else {}
        layers.append(_Layer(len(layers), words[0], width, params, state))
        layers[-1].trainable = options.get("trainable") != "no"
    return at, width


def _read_description(text, width):
    """The layers of a description whose input has this width, and its loss, or None without one."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    loss = _Loss(lines.pop()) if lines and lines[-1].split()[0] == "loss" else None
    layers = []
    try:
        _parse(lines, 0, width, layers, width)
    except (ValueError, IndexError) as error:
        if isinstance(error, Refused):
            raise
        _fail(f"description: cannot be read: {error}")
    if not layers or layers[-1].kind != "dense":
        _fail("description: expected a dense as its last layer")
    return layers, loss


# --- minibatches ---

def _array(name, value):
    """A real array, whatever framework it comes from."""
    value = value.detach() if hasattr(value, "detach") else value
    value = value.cpu() if hasattr(value, "cpu") else value
    if "bfloat16" in str(getattr(value, "dtype", "")):
        value = value.float() if hasattr(value, "float") else value.astype("float32")
    array = np.asarray(value)
    if array.dtype.kind != "f":
        _fail(f"{name}: expected real numbers, found {array.dtype}. Way out: convert it where it is made; class indices "
              "of a ce loss become distributions, one_hot(y, K) as real numbers" if name == "targets" else
              f"{name}: expected real numbers, found {array.dtype}. Way out: convert it, as the training does")
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
        _fail(f"inputs: expected each as [N, R, D], or each as [R, D] for one minibatch, found {shapes or 'none'}")
    if dims == {2}:
        arrays = {name: a[None] for name, a in arrays.items()}
    if len({a.shape[:2] for a in arrays.values()}) != 1 or 0 in next(iter(arrays.values())).shape:
        _fail(f"inputs: expected as many minibatches and rows of each, at least one, found {shapes}")
    return arrays, dims == {3}


def _targets(targets, batched, rows, outputs, loss, joint):
    """[N, B, K] for inputs of N minibatches of R rows; rows = (N, R)."""
    t = _array("targets", targets)
    found, k = list(t.shape), outputs if loss.name in ("ce", "quantile") else 1
    t = t if batched else t[None]
    t = t[..., None] if t.ndim == 2 and k == 1 else t
    if loss.name == "ce" and outputs < 2:
        _fail(f"loss ce: expected critics of at least 2 outputs, found {outputs}")
    if loss.name in ("mse", "huber") and outputs != 1:
        _fail(f"loss {loss.name}: expected critics of one output, found {outputs}. Way out: the loss that these outputs have")
    if t.ndim != 3 or t.shape[0] != rows[0] or t.shape[2] != k or not 1 <= t.shape[1] <= rows[1]:
        shape = f"[N, B, {k}]" + (" or [N, B]" if k == 1 else "")
        _fail(f"targets: loss {loss.name} with {outputs} outputs: expected {shape} with N = {rows[0]}, B <= {rows[1]}"
              + ("" if batched else ", without N as the inputs have none") + f", found {found}"
              + (". Way out: project each target on the atoms, as the training does" if loss.name == "ce" else ""))
    if t.shape[1] < rows[1] and not joint:
        _fail(f"targets: expected {rows[1]} rows per minibatch, as the inputs have, found {t.shape[1]}. Rows without a target "
              "have a meaning in batch normalization only")
    if loss.name == "ce" and ((t < 0).any() or (abs(t.sum(-1) - 1) > 1e-3).any()):
        _fail("targets: loss ce: expected distributions over the atoms (no negative entry, sums of 1), found sums from "
              f"{t.sum(-1).min():g} to {t.sum(-1).max():g} and entries from {t.min():g}")
    return t


# --- the file ---

def _write(path, contents, attributes):
    """Writes {name: array} and {object: {attribute: value}}; the file appears whole or not at all."""
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    handle, temporary = tempfile.mkstemp(prefix=".kappascope-", suffix=".h5", dir=folder)
    try:
        os.close(handle)
        with h5py.File(temporary, "w") as file:
            for name, array in contents.items():
                chunked = dict(chunks=True, shuffle=True, compression=1, fletcher32=True) if array.size > 1 else {}
                file.create_dataset(name, data=array, **chunked)
            for name, values in attributes.items():
                file.require_group(name).attrs.update(values)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _weights(weights, targets):
    """[N, B] in float64, or None."""
    if weights is None:
        return None
    w = _array("weights", weights)
    if w.size != targets.shape[0] * targets.shape[1] or w.shape not in (targets.shape[:2], targets.shape[1:2]) or (w < 0).any():
        _fail(f"weights: expected numbers of at least 0 of the shape {list(targets.shape[:2])}, one for each row of the targets, found "
              f"{list(w.shape)}, the least {w.min() if w.size else 0:g}")
    return w.reshape(targets.shape[:2]).astype(np.float64)


def _save(path, arch, ensemble, arrays, batch, adam, step, attributes):
    """arrays: {"NN_kind/name": [E, ...]}; batch: {name: array}; adam: None or {"m": arrays, "v": arrays, attributes}."""
    contents = {f"critic/{name}": array for name, array in arrays.items()}
    contents |= {f"batch/{name}": array for name, array in batch.items()}
    root = {"format": "kappascope-checkpoint", "version": 2 if "weight" in batch else 1, **attributes}
    if step is not None:
        root["env_step"] = int(step)
    objects = {"/": root, "/critic": {"arch": arch, "ensemble": ensemble}}
    if adam:
        for moment in "mv":
            contents |= {f"optimizer/{moment}/{name}": array for name, array in adam[moment].items()}
        objects["/optimizer"] = {k: adam[k] for k in ("step", "beta1", "beta2", "eps")}
    for name, array in contents.items():
        if not np.isfinite(array).all():
            _fail(f"{path}: {name}: expected finite numbers, found {array[~np.isfinite(array)][0]}")
    _write(path, contents, objects)


def _compare_loss(check, found, ensemble, loss):
    """Compares the losses [N] with those that the caller's training computed, a number for each or their mean."""
    given = np.atleast_1d(_array("check", check)).astype(float).ravel()
    here = found if given.size == found.size else np.array([found.mean()])
    if given.size != here.size:
        _fail(f"check: expected one loss, or one for each of {found.size} minibatches, found {given.size}")
    if np.allclose(given, here, rtol=1e-3, atol=1e-7):
        return
    at = int(np.argmax(abs(given - here)))
    ratio = given[at] / here[at] if here[at] else math.inf
    hint = "Other inputs, their order, other targets, another loss, or evaluation mode look like this"
    for factor, what in ((2, "without the 1/2 of mse"), (1 / ensemble, "the mean over the critics"),
                         (2 / ensemble, "the mean over the critics, without the 1/2 of mse"),
                         (ensemble, "of other weights")):
        if abs(ratio / factor - 1) < 1e-3:
            hint = f"It is {factor:g} times as large: {what}? Then loss={loss.name!r} needs weight={factor * loss.weight:g}"
            break
    _fail(f"check: expected the loss {here[at]:.8g} of minibatch {at} (mean over rows, sum over critics), found "
          f"{given[at]:.8g}. {hint}")


# --- PyTorch: what a graph computes ---

class _Value:
    """What a node of the graph computes. kind is a layer's, or one of the building blocks below; free: no
    parameter takes part. Parameters are _Parameter objects."""

    def __init__(self, kind, node, args=(), free=False, params=None, **options):
        self.kind, self.node, self.args, self.free = kind, node, list(args), free
        self.params, self.options, self.state, self.frozen = params or {}, options, {}, False
        self.why = self.way = None


class _Parameter:
    """A parameter of a module, in another layout: transform(tensor) is a view of it or of its moments; times factor."""

    def __init__(self, name, transform=lambda tensor: tensor, factor=1.0, part=()):
        self.name, self.transform, self.factor, self.part = name, transform, factor, part

    def then(self, function):
        return _Parameter(self.name, lambda tensor, first=self.transform: function(first(tensor)), self.factor, self.part)


def _split(value):
    """A norm with a scale and no bias as one without both, and a scaler, where the description has no such line."""
    if value.kind not in ("layernorm", "batchnorm") or set(value.params) != {"scale"}:
        return value
    inner = _Value(value.kind, value.node, value.args, **value.options)
    inner.state = value.state
    return _Value("scaler", value.node, [inner], params={"scaler": value.params["scale"]}, init=value.params["scale"].factor)


_ACTIVATIONS = {"relu": "relu", "relu_": "relu", "ReLU": "relu", "tanh": "tanh", "tanh_": "tanh", "Tanh": "tanh", "silu": "silu",
                "SiLU": "silu", "mish": "mish", "Mish": "mish", "elu": "elu", "elu_": "elu", "ELU": "elu", "gelu": "gelu",
                "GELU": "gelu", "sigmoid": "sigmoid", "Sigmoid": "sigmoid", "relu6": "relu6", "ReLU6": "relu6", "softplus": "softplus",
                "Softplus": "softplus", "leaky_relu": "leaky_relu", "leaky_relu_": "leaky_relu", "LeakyReLU": "leaky_relu"}
_ALIASES = {"iadd": "add", "add_": "add", "truediv": "div", "true_divide": "div", "divide": "div", "itruediv": "div",
            "subtract": "sub", "isub": "sub", "multiply": "mul", "imul": "mul", "mul_": "mul", "concat": "cat",
            "concatenate": "cat", "rsub": "rsub", "square": "pow", "linalg_norm": "norm", "linalg_vector_norm": "norm",
            "vector_norm": "norm", "clamp_min": "clamp", "clip": "clamp", "bmm": "matmul", "mm": "matmul"}
_LAYOUT = {"squeeze", "unsqueeze", "view", "reshape", "flatten", "getitem", "permute", "transpose", "t", "T", "mT", "swapaxes",
           "swapdims", "movedim", "Flatten", "expand", "expand_as", "view_as"}
_COPIES = {"contiguous", "clone", "Identity", "requires_grad_"}
_CASTS = {"float", "double", "to", "type", "type_as", "half", "bfloat16"}
_SHAPES = {"size", "dim", "shape", "dtype", "device", "ndim", "numel", "ones_like", "zeros_like", "full_like", "new_ones",
           "new_zeros", "new_full", "new_tensor", "ones", "zeros", "full"}
_BY_HAND = "Way out: leave it out of the module that you export, or ask for this layer"
# Why a thing has no line in the description, and the way out.
_REASONS = {
    "dropout": ("its random mask is no part of the description",
                "p=0, or .eval() for this layer alone: the loss without dropout is analyzed"),
    "detach": ("the analyzed loss is differentiated through all of the critic",
               "export the part after it, with its output as the input"),
    "conv": ("convolutions have no line in the description", "export the head, with the features as its input"),
    "minimum": ("the critics of an ensemble have a loss each", "return all critics' values from forward, as a tuple"),
    "mulc": ("a constant factor has no line in the description", "multiply the kernel and the bias of the Linear before it"),
    "addc": ("a constant summand has no line in the description", "add it to the bias of the Linear before it"),
    "cat": ("two branches with parameters, or constants, that are joined have no line in the description",
            "join inputs alone, behind the features: torch.cat([features, inputs], -1)"),
    "bias": ("a bias without a Linear in front of it has no line in the description", "a Linear in front of it, with this bias"),
    "layout": ("it reorders, cuts or joins rows or features behind a layer with parameters", "do this in front of the first layer"),
    "add": ("it is no residual sum x + f(x)", "only such sums have a line in the description"),
    "output": ("forward returns something else than a critic's outputs", "return the outputs of the last Linear alone"),
    "softmax": ("the outputs of a ce loss are logits", "return the logits"),
    "log_softmax": ("the outputs of a ce loss are logits", "return the logits"),
}


def _reason(word):
    word = {"min": "minimum", "max": "minimum", "amin": "minimum", "Dropout": "dropout", "AlphaDropout": "dropout",
            "Softmax": "softmax", "LogSoftmax": "log_softmax", "GELU": "gelu"}.get(word, word)
    word = "conv" if word.lower().startswith("conv") else word
    return _REASONS.get(word, ("it has no line in the description", _BY_HAND.removeprefix("Way out: ")))


class _Graph:
    """One module, traced: `roots` are the last denses of its critics, and `values` what its nodes compute."""

    def __init__(self, module, name, inputs, by_name):
        import torch
        import torch.fx
        self.torch, self.original, self.name = torch, _plain(module), name
        self.names, self.by_name = list(inputs), by_name
        self.dtype, self.rounded = torch.float64, False  # rounded: the module itself converts to another type
        self._check_module()
        self.module = _copy(self.original, name)
        self.wrapper, self.graph = _trace(self.module, self.names, by_name, name)
        self._check_mode()
        self.traced = torch.fx.GraphModule(self.wrapper, self.graph)
        self.modules = dict(self.wrapper.named_modules())
        self.parameters = _named_parameters(self.original)
        self.first = {key: a[0] for key, a in inputs.items()}
        self.seen = self._first_run()
        self.values = {}
        for node in self.graph.nodes:
            self.values[node] = self._value(node)
        self.roots = self._roots(next(n for n in self.graph.nodes if n.op == "output").args[0])

    def _check_mode(self):
        """A forward that asks for self.training does something else in training."""
        if self.original.training:
            return
        modes = [(m, m.training) for m in self.module.modules()]
        self.module.train()
        _, other = _trace(self.module, self.names, self.by_name, self.name)
        for m, mode in modes:
            m.training = mode
        if str(other) != str(self.graph):
            _fail(f"{self.name} is in evaluation mode, in which its forward does something else than in training. Way out: "
                  "module.train() before save")

    def _check_module(self):
        """Hooks and parametrizations would make a weight a function of others, or change values unseen."""
        lines = []
        for path, m in self.original.named_modules():
            where = f"{self.name}{'.' + path if path else ''} ({type(m).__name__})"
            if hasattr(m, "parametrizations"):
                lines.append(f"{where}: {', '.join(m.parametrizations)} is computed from other parameters (parametrize). Way out: "
                             "torch.nn.utils.parametrize.remove_parametrizations on a copy: curvature in the weight itself")
            elif any(hasattr(m, f"{key}_{end}") for key in ("weight", "bias") for end in ("g", "orig")):
                lines.append(f"{where}: its weight is computed from other parameters (weight_norm, spectral_norm). Way out: "
                             "torch.nn.utils.remove_weight_norm or remove_spectral_norm on a copy: curvature in the weight itself")
            elif m._forward_hooks or m._forward_pre_hooks:
                lines.append(f"{where}: a forward hook can change what the layer computes, unseen. Way out: remove it before save")
        if lines:
            _fail(f"{self.name} cannot be expressed:", lines)

    def run(self, inputs):
        """The values of all nodes for inputs {name: [R, D]}, and what forward returns. Parameters require gradients."""
        torch, seen = self.torch, {}

        class Recorder(torch.fx.Interpreter):
            def run_node(self, node):
                seen[node] = super().run_node(node)
                return seen[node]

        out = Recorder(self.traced, garbage_collect_values=False).run(*self.tensors(inputs))
        return seen, out

    def tensors(self, inputs):
        return [self.torch.as_tensor(inputs[name], dtype=self.dtype) for name in self.names]

    def _first_run(self):
        """The values of all nodes for the first minibatch; in float32 if forward itself converts to that."""
        try:
            return self.run(self.first)[0]
        except RuntimeError as error:
            if "dtype" not in str(error) and "ouble" not in str(error):
                raise
        self.dtype, self.rounded = self.torch.float32, True
        self.module.float()
        return self.run(self.first)[0]

    def compare_with_forward(self):
        """The graph is what forward did once. Its outputs and gradients are those of forward itself, or something is
        unseen: torch.no_grad(), randomness, another branch."""
        outputs = [_tensors(self.wrapper(*self.tensors(self.first))), _tensors(self.run(self.first)[1])]
        bound = 1e-9 if self.dtype == self.torch.float64 else 1e-4
        if not all(_close(a, b, bound) for a, b in zip(*outputs)):
            _fail(f"{self.name}: forward gives other values when it is called again: randomness, or another branch")
        named = {key: p for key, p in self.module.named_parameters() if p.requires_grad}
        lines = []
        for key, a, b in zip(named, *[self._gradients(found, list(named.values())) for found in outputs]):
            if not _close(a, b, bound):
                lines.append(f"{self.name}.{key}: the gradient of forward is not that of its operations. Way out: no "
                             "torch.no_grad() or .data in forward; or export the part behind it, with its output as the input")
        if lines:
            _fail(f"{self.name} cannot be traced:", lines)

    def _gradients(self, outputs, parameters):
        """Of a weighted sum of outputs in all parameters."""
        torch = self.torch
        weighted = sum((t * torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).reshape(t.shape)).sum() for t in outputs)
        if not outputs or not parameters or not weighted.requires_grad:
            _fail(f"{self.name}: expected outputs of forward that depend on parameters which require gradients, found none. "
                  "Way out: requires_grad_(True), and no torch.no_grad() in forward")
        return torch.autograd.grad(weighted, parameters, allow_unused=True)

    def _roots(self, returned):
        """The last dense of every critic in what forward returns: a value, a tuple, a dict, a concatenation."""
        if isinstance(returned, dict):
            returned = list(returned.values())
        if isinstance(returned, (list, tuple)):
            return [root for part in returned for root in self._roots(part)]
        value = self.values[returned] if not isinstance(returned, _Value) else returned
        if value.kind == "layout" or value.kind == "cat" and not value.free:
            return [root for part in value.args for root in self._roots(part)]
        if value.kind != "dense":
            why, way = (value.why, value.way) if value.why else _reason(value.kind)
            _fail(f"{self.name} cannot be expressed:", [
                f"{_where(self, value.node)}: the last layer of a critic is a Linear, whose outputs the loss reads; {why}. "
                f"Way out: {way}"])
        return [value]

    # --- from nodes to values ---

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
        value = _Value("bad", node, [v for v in self._inputs(node) if v.kind not in ("parameter", "constant")][:1])
        reason = _reason(word)
        value.why, value.way = why or reason[0], way or reason[1]
        return value

    def _layer_parameters(self, node, module, names):
        path = node.target.removeprefix("critic.")
        return {ours: _Parameter(f"{path}.{theirs}") for ours, theirs in names.items() if getattr(module, theirs) is not None}

    def _module(self, node, m, kind):
        x = self._inputs(node)[:1]
        if kind == "Linear":
            value = _Value("dense", node, x, params=self._layer_parameters(node, m, {"kernel": "weight", "bias": "bias"}))
            value.params["kernel"] = value.params["kernel"].then(lambda w: w.t())
            return value
        if kind in ("BatchNorm1d", "SyncBatchNorm"):
            return self._batchnorm(node, m, x)
        if kind == "LayerNorm":
            if len(m.normalized_shape) != 1:
                return self._bad(node, kind, f"it normalizes over {len(m.normalized_shape)} dimensions, not over the features")
            return _Value("layernorm", node, x, eps=m.eps, params=self._layer_parameters(node, m, {"scale": "weight", "bias": "bias"}))
        if kind == "RMSNorm":
            eps = m.eps if m.eps is not None else float(self.torch.finfo(next(self.original.parameters()).dtype).eps)
            value = _Value("rmsnorm", node, x, eps=eps, params=self._layer_parameters(node, m, {"scale": "weight"}))
            return value if value.params else self._bad(node, kind, "rmsnorm without a scale has no line in the description",
                                                        "elementwise_affine=True")
        if kind.endswith("Dropout") or kind.endswith("Dropout1d"):
            return x[0] if m.p == 0 or not m.training else self._bad(node, "dropout")
        if kind in _COPIES:
            return x[0]
        if kind == "Flatten":
            return self._layout(node, x[0])
        if kind in _ACTIVATIONS:
            return self._activation(node, kind, x, vars(m))
        return self._bad(node, kind)

    def _batchnorm(self, node, m, x):
        if not m.training:
            return self._bad(node, "BatchNorm1d", "it is in evaluation mode; the analyzed loss has the statistics of the minibatch, "
                             "as in training", "module.train() before save")
        value = _Value("batchnorm", node, x, eps=m.eps, params=self._layer_parameters(node, m, {"scale": "weight", "bias": "bias"}))
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
                return self._bad(node, kind, f"{key} is {given[key]:g}; the description has {only:g}", f"{key}={only:g}")
        options = {"relu": {"shift": 0.0}, "gelu": {"approximate": given.get("approximate", "none")},
                   "leaky_relu": {"negative_slope": given.get("negative_slope", 0.01)}}
        return _Value(kind, node, x, **options.get(kind, {}))

    def _call(self, node, *names):
        """The arguments of a function or method by name, with values in place of nodes; names[0] is the first tensor."""
        found = dict(zip(names, node.args))
        found.update(node.kwargs)
        for other, ours in (("self", "input"), ("x", "input"), ("A", "input"), ("axis", "dim"), ("keepdims", "keepdim"), ("tensors", "input")):
            if other in found and ours in names:
                found.setdefault(ours, found.pop(other))
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
        if isinstance(seen, torch.Tensor) and seen.numel() and bool((seen == seen.flatten()[0]).all()):
            return float(seen.flatten()[0])
        return found if isinstance(seen, torch.Tensor) else seen

    def _function(self, node, word):
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
        if word in _ACTIVATIONS:
            names = {"elu": ["alpha"], "leaky_relu": ["negative_slope"], "softplus": ["beta", "threshold"]}
            a = self._call(node, "input", *names.get(_ACTIVATIONS[word], []))
            return self._activation(node, word, [a["input"]], a)
        if word in _LAYOUT:
            return self._layout(node, inputs[0])
        rule = getattr(self, "_on_" + word, None)
        return rule(node) if rule else self._bad(node, word)

    def _of_parameter(self, node, word, value):
        """A view of a parameter, or one times a constant."""
        parameter, seen = value.params["it"], self.seen[node]
        if word in ("mul", "div"):
            other = [a for a in self._call(node, "input", "other").values() if not isinstance(a, _Value)]
            ordered = isinstance(self._call(node, "input", "other")["input"], _Value)
            if len(other) == 1 and (word == "mul" or ordered):
                factor = float(other[0])
                scaled = _Parameter(parameter.name, parameter.transform, parameter.factor * (factor if word == "mul" else 1 / factor),
                                    parameter.part)
                return _Value("parameter", node, params={"it": scaled})
        size = math.prod(self.torch.as_tensor(self.parameters[parameter.name]).shape)
        index = node.args[1] if word == "getitem" else None
        if word in _LAYOUT | _COPIES and (seen.numel() == size or parameter.part) or isinstance(index, int):
            def view(tensor):
                if node.op == "call_method":
                    return getattr(tensor, node.target)(*node.args[1:], **node.kwargs)
                return node.target(tensor, *node.args[1:], **node.kwargs)
            if not any(hasattr(a, "op") for a in node.args[1:]):
                moved = parameter.then(view)
                moved.part += (index,) if isinstance(index, int) else ()
                return _Value("parameter", node, params={"it": moved})
        return self._bad(node, word, "a weight that is computed from other parameters is not one of the critic's coordinates",
                         "store the weight itself in the module")

    def _layout(self, node, value):
        """Another view of the same numbers in the same order is the value itself."""
        before, after = self.seen[value.node], self.seen[node]
        torch = self.torch
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor) and before.numel() == after.numel() \
                and after.dim() and after.shape[-1] == before.shape[-1] and torch.equal(before.flatten(), after.flatten()):
            return value
        return _Value("layout", node, [value])

    def _on_linear(self, node):
        a = self._call(node, "input", "weight", "bias")
        if any(a.get(key) is not None and a[key].kind != "parameter" for key in ("weight", "bias")):
            return self._bad(node, "linear", "its weight is no parameter", "store the weight itself in the module")
        params = {"kernel": a["weight"].params["it"].then(lambda w: w.t())}
        if a.get("bias") is not None:
            params["bias"] = a["bias"].params["it"]
        return self._kernel(node, [a["input"]], params)

    def _kernel(self, node, x, params):
        if any(p.factor != 1 for p in params.values()):
            return self._bad(node, "linear", "a kernel times a constant has no line in the description",
                             "store the product itself in the module")
        return _Value("dense", node, x, params=params)

    def _on_matmul(self, node):
        a = self._call(node, "input", "other")
        if "mat2" in a:
            a["other"] = a["mat2"]
        return self._product(node, a["input"], a["other"])

    def _product(self, node, x, w, bias=None):
        if not isinstance(w, _Value) or w.kind != "parameter" or not isinstance(x, _Value) or x.kind == "parameter":
            return self._bad(node, "matmul", "expected activations times a parameter [in, out] or [E, in, out]",
                             "torch.nn.functional.linear(x, weight)")
        params = {"kernel": w.params["it"]}
        if bias is not None:
            params["bias"] = bias
        return self._kernel(node, [x], params)

    def _on_baddbmm(self, node):
        a = self._call(node, "input", "batch1", "batch2")
        if not isinstance(a["input"], _Value) or a["input"].kind != "parameter" or {"beta", "alpha"} & set(a):
            return self._bad(node, "baddbmm")
        return self._product(node, a["batch1"], a["batch2"], a["input"].params["it"])

    def _on_addmm(self, node):
        a = self._call(node, "input", "mat1", "mat2")
        if not isinstance(a["input"], _Value) or a["input"].kind != "parameter" or {"beta", "alpha"} & set(a):
            return self._bad(node, "addmm")
        return self._product(node, a["mat1"], a["mat2"], a["input"].params["it"])

    def _on_einsum(self, node):
        """x and W [.., in, out], [.., out, in]: one index is summed, an index of W alone is the output's last."""
        equation, operands = node.args[0], node.args[1:]
        operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
        left, _, out = equation.replace(" ", "").partition("->")
        letters, values = left.split(","), [self.values[n] for n in operands]
        if len(values) == 2 and values[0].kind == "parameter":
            letters, values = letters[::-1], values[::-1]
        if len(values) != 2 or values[1].kind != "parameter" or values[0].kind == "parameter":
            return self._bad(node, "einsum")
        x, w = letters
        summed, new = [c for c in w if c in x and c not in out], [c for c in w if c not in x and c in out[-1:]]
        ensemble = [c for c in w if c in out and c not in new]
        if len(summed) != 1 or len(new) != 1 or len(ensemble) > 1 or (ensemble and out[0] != ensemble[0]) or x[-1:] != summed[0]:
            return self._bad(node, "einsum")
        order = [w.index(c) for c in ensemble + summed + new]
        return self._kernel(node, [values[0]], {"kernel": values[1].params["it"].then(lambda t: t.permute(order))})

    def _on_layer_norm(self, node):
        a = self._call(node, "input", "normalized_shape", "weight", "bias", "eps")
        shape = a["normalized_shape"]
        if not isinstance(shape, int) and len(shape) != 1:
            return self._bad(node, "layer_norm", "it normalizes over several dimensions, not over the features")
        params = {ours: a[theirs].params["it"] for ours, theirs in (("scale", "weight"), ("bias", "bias")) if a.get(theirs) is not None}
        return _Value("layernorm", node, [a["input"]], eps=a.get("eps", 1e-5), params=params)

    def _on_batch_norm(self, node):
        names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
        a = self._call(node, *names)
        if not a.get("training", False):
            return self._bad(node, "batch_norm", "it is in evaluation mode; the analyzed loss has the statistics of the minibatch, "
                             "as in training", "module.train() before save")
        params = {ours: a[theirs].params["it"] for ours, theirs in (("scale", "weight"), ("bias", "bias")) if a.get(theirs) is not None}
        return _Value("batchnorm", node, [a["input"]], eps=a.get("eps", 1e-5), momentum=1 - a.get("momentum", 0.1), params=params)

    def _on_rms_norm(self, node):
        a = self._call(node, "input", "normalized_shape", "weight", "eps")
        if a.get("weight") is None or a.get("eps") is None:
            return self._bad(node, "rms_norm", "rmsnorm without a scale, or without eps, has no line in the description")
        return _Value("rmsnorm", node, [a["input"]], eps=a["eps"], params={"scale": a["weight"].params["it"]})

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
        a = self._call(node, "input", "p", "training")
        return a["input"] if a.get("p", 0.5) == 0 or not a.get("training", True) else self._bad(node, "dropout")

    def _on_cat(self, node):
        a = self._call(node, "input", "dim")
        parts = a["input"]
        constant = next((i for i, p in enumerate(parts) if not isinstance(p, _Value)), None)
        if constant is not None and len(parts) == 2 and constant == 1 and self._is_last(parts[0], a.get("dim", 0)) \
                and self.seen[node].shape[-1] == self.seen[parts[0].node].shape[-1] + 1:
            return _Value("append", node, parts[:1], constant=parts[1])
        if constant is not None:
            return self._bad(node, "cat")
        return _Value("cat", node, parts, last=self._is_last(parts[0], a.get("dim", 0)))

    def _on_stack(self, node):
        return _Value("cat", node, self._call(node, "input", "dim")["input"], last=False)

    def _is_last(self, value, dim):
        dims = self.seen[value.node].dim()
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        return isinstance(dim, int) and dim % dims == dims - 1

    # --- arithmetic: building blocks of norms, residual sums, scalers ---

    def _on_add(self, node):
        a = self._call(node, "input", "other")
        return self._sum(node, a["input"], a["other"]) if a.get("alpha", 1) == 1 else self._bad(node, "add")

    def _sum(self, node, x, y):
        if not isinstance(x, _Value) or x.kind == "parameter":
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
            return value
        return self._bad(node, "bias")

    def _on_sub(self, node):
        a = self._call(node, "input", "other")
        x, y = a["input"], a["other"]
        if isinstance(y, (int, float)):
            return self._sum(node, x, -y)
        if not isinstance(x, _Value) or "parameter" in (x.kind, y.kind) or "constant" in (x.kind, y.kind):
            return self._bad(node, "sub")
        return _Value("sub", node, [x, y])

    def _on_mul(self, node):
        a = self._call(node, "input", "other")
        x, y = a["input"], a["other"]
        if not isinstance(x, _Value) or x.kind == "parameter":
            x, y = y, x
        if isinstance(y, (int, float)):
            return self._times(node, x, float(y))
        if y.kind == "parameter":
            return self._scaled(node, x, y.params["it"])
        if y.kind == "constant":
            return self._bad(node, "mulc")
        if x.kind in ("rsqrt", "sigmoid"):
            x, y = y, x
        if y.kind == "sigmoid" and y.args[0] is x:
            return _Value("silu", node, [x])
        return self._quotient(node, x, y.args[0] if y.kind == "rsqrt" else None, root=False) or self._bad(node, "mul")

    def _times(self, node, x, factor):
        x = _split(x)
        if x.kind == "scaler":
            return _Value("scaler", node, x.args, params=x.params, init=factor * x.options["init"])
        return _Value("mulc", node, [x], constant=factor)

    def _scaled(self, node, x, scale):
        """x times a parameter: the scale of a norm without one, else a scaler."""
        if x.kind in ("rms", "layernorm", "batchnorm") and not x.params and scale.factor == 1:
            return _Value("rmsnorm" if x.kind == "rms" else x.kind, node, x.args, params={"scale": scale}, **x.options)
        if x.kind == "mulc":
            scale, x = _Parameter(scale.name, scale.transform, scale.factor * x.options["constant"], scale.part), x.args[0]
        return _Value("scaler", node, [x], params={"scaler": scale}, init=scale.factor)

    def _on_div(self, node):
        a = self._call(node, "input", "other")
        x, y = a["input"], a["other"]
        if isinstance(y, (int, float)):
            return self._times(node, x, 1 / y)
        if not isinstance(x, _Value):
            return self._bad(node, "div")
        return self._quotient(node, x, y, root=True) or self._bad(node, "div")

    def _quotient(self, node, x, below, root):
        """x / sqrt(mean(x^2) + eps), (x - mean) / sqrt(var + eps), x / max(|x|, eps), from their parts. `below` is the
        denominator (root), or what rsqrt was taken of."""
        if below is None:
            return None
        if root and below.kind == "clamp" and below.args[0].kind == "norm" and below.args[0].args[0] is x:
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
        if squares and inner.args[0].args[0] is x and inner.options["over"] == "features" and not self._centered(x):
            return _Value("rms", node, [x], eps=eps)
        centered = self._centered(x)
        if centered and (squares and inner.args[0].args[0] is x or inner.kind == "var" and inner.args[0] is centered[0]) \
                and inner.options["over"] == centered[1]:
            return _Value("layernorm" if centered[1] == "features" else "batchnorm", node, [centered[0]], eps=eps)
        return None

    def _centered(self, x):
        """(y, over) if x = y - mean(y)."""
        if x.kind == "sub" and x.args[1].kind == "mean" and x.args[1].args[0] is x.args[0]:
            return x.args[0], x.args[1].options["over"]
        return None

    def _on_pow(self, node):
        a = self._call(node, "input", "exponent")
        return _Value("square", node, [a["input"]]) if a.get("exponent", 2) == 2 else self._bad(node, "pow")

    def _over(self, node, kind):
        """mean, var and norm over the features or the rows, which they keep as a dimension of 1."""
        names = {"mean": ("dim", "keepdim"), "var": ("dim", "unbiased", "keepdim"), "norm": ("p", "dim", "keepdim")}
        a = self._call(node, "input", *names[kind])
        if a.get("ord", a.get("p")) not in (2, None, "fro"):
            return self._bad(node, kind)
        if kind == "var" and a.get("unbiased", a.get("correction", True)) not in (False, 0):
            return self._bad(node, kind, "the variance of a norm is the biased one", "unbiased=False")
        dim = a.get("dim")
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        if not isinstance(dim, int):
            return self._bad(node, kind)
        over = "features" if self._is_last(a["input"], dim) else "rows"
        if over == "features" and not a.get("keepdim", False):
            return self._bad(node, kind)
        return _Value(kind, node, [a["input"]], over=over)

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
            return self._bad(node, "lerp")
        return _Value("between", node, [a["input"], a["end"]], params={"alpha": a["weight"].params["it"]})


def _named_parameters(module):
    """{path: parameter}, a parameter with two names under both."""
    return {f"{path}.{key}" if path else key: p for path, m in module.named_modules(remove_duplicate=False)
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
    """The module that torch.compile or DistributedDataParallel wrap."""
    module = getattr(module, "_orig_mod", module)
    return module.module if type(module).__name__ in ("DistributedDataParallel", "DataParallel") else module


def _copy(module, name):
    """A copy in float64 on the CPU: the caller's module, running statistics included, is never touched."""
    try:
        return copy.deepcopy(module).cpu().double()
    except RuntimeError as error:
        _fail(f"{name}: cannot be copied: {error}. Way out: parameters and buffers of its own alone in the module")


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
    """A module that calls `module` with inputs of these names, and its graph, whose nodes know their line of source."""
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
        _fail(f"{name} cannot be traced:", [f"{where}: {error}. Way out: no branch or loop that depends on a tensor's values or shape; "
                                            "set what it depends on when the module is made"])


def _where(graph, node):
    path = f"{graph.name}.{node.target.removeprefix('critic.')}" if node.op == "call_module" else f"{graph.name}, node {node.name}"
    kind = f"{type(graph.modules[node.target]).__name__}" if node.op == "call_module" else \
        node.target if isinstance(node.target, str) else node.target.__name__
    source = node.meta.get("where")
    return f"{path} ({kind}{'; ' + source if source else ''})"


# --- PyTorch: from values to lines ---

_LINES = {"dense", "batchnorm", "layernorm", "rmsnorm", "l2norm", "relu", "tanh", "silu", "gelu", "elu", "mish", "scaler",
          "append", "leaky_relu", "relu6", "sigmoid", "softplus"}


class _Chain:
    """The layers between an input and an output, in order: items are _Value objects, or (container, items, value)."""

    def __init__(self, graph, root):
        self.graph, self.lines, self.input, self.joined = graph, [], None, []
        self.order = {node: i for i, node in enumerate(graph.graph.nodes)}
        self.items = self._between(root, None)
        if not self.lines:
            self._lay_out()

    def _lay_out(self):
        """The columns of the input: what the first layer reads, then what is joined later, each once."""
        self.sources, start = {}, 0
        for value in [self.input, *[v.options["source"] for v in self.joined[::-1]]]:
            if value.node not in self.sources:
                width = self.graph.seen[value.node].shape[-1]
                self.sources[value.node] = (start, start + width)
                start += width
        for value in self.joined:
            value.options["columns"] = self.sources[value.options["source"].node]
        if len(self.sources) > 1:
            self.items.insert(0, _Value("input", self.input.node, columns=self.sources[self.input.node]))

    def _refuse(self, value, word=None):
        why, way = (value.why, value.way) if value.why else _reason(word or value.kind)
        self.lines.append(f"{_where(self.graph, value.node)}: {why}. Way out: {way}")

    def _between(self, value, stop):
        """The items from `stop` (not included) to `value`. Without stop: from the input, which is the first value that
        no parameter reached and that has no line."""
        items = []
        while value is not stop:
            value = _split(value) if value.kind == "batchnorm" else value
            value.width = self.graph.seen[value.node].shape[-1]
            lerp = self._lerp(value)
            if lerp:
                skip, body, alpha = lerp
                self._check_frozen(alpha)
                items.append(("lerp", self._between(body, skip), alpha))
                value = skip
            elif value.kind in _LINES:
                items.append(value)
                self._check_frozen(value)
                value = value.args[0]
            elif value.kind == "cat" and value.options["last"] and not value.args[0].free and all(v.free for v in value.args[1:]):
                for part in value.args[:0:-1]:
                    items.append(_Value("concat", value.node, source=part))
                    self.joined.append(items[-1])
                value = value.args[0]
            elif value.free and stop is None:
                self.input = value
                break
            elif value.kind == "add" and not value.free:
                skip, body = sorted(value.args, key=lambda v: self.order[v.node])
                items.append(("residual", self._between(body, skip), None))
                value = skip
            elif value.free or not value.args:
                self.lines.append(f"{_where(self.graph, stop.node)}: expected a residual sum x + f(x), found a sum in which no branch "
                                  "is computed from the other. Way out: only such sums have a line in the description")
                break
            else:
                self._refuse(value)
                value = value.args[0]
        return items[::-1]

    def _check_frozen(self, value):
        """Sets value.frozen: all parameters of a layer are frozen, or none."""
        trained = {self.graph.parameters[p.name].requires_grad for p in value.params.values()}
        value.frozen = trained == {False}
        if len(trained) > 1:
            names = ", ".join(f"{p.name} ({'trained' if self.graph.parameters[p.name].requires_grad else 'frozen'})"
                              for p in value.params.values())
            self.lines.append(f"{_where(self.graph, value.node)}: expected all parameters of a layer to be frozen or none "
                              f"(requires_grad), found {names}. Way out: the same for all")

    def _lerp(self, value):
        """(skip, body, alpha) if value = l2norm(skip + alpha (body - skip))."""
        if value.kind != "l2norm":
            return None
        between = value.args[0]
        if between.kind == "between":
            return between.args[0], between.args[1], _Value("lerp", value.node, params=between.params, **self._alpha(between))
        if between.kind != "add":
            return None
        for skip, scaled in (between.args, between.args[::-1]):
            if scaled.kind == "scaler" and scaled.args[0].kind == "sub" and scaled.args[0].args[1] is skip:
                alpha = _Value("lerp", value.node, params={"alpha": scaled.params["scaler"]}, eps=value.options["eps"],
                               init=scaled.options["init"])
                return skip, scaled.args[0].args[0], alpha
        return None

    def _alpha(self, between):
        return {"init": between.params["alpha"].factor, "eps": 1e-8}


def _number(x):
    return repr(float(x)) if x != int(x) else str(int(x))


def _text(value, project):
    """The line of a layer."""
    return _words(value, project) + (" trainable=no" if value.frozen else "")


def _words(value, project):
    o, kind = value.options, value.kind
    if kind in ("input", "concat"):
        columns = f"[{o['columns'][0]}:{o['columns'][1]}]"
        return f"input {columns}" if kind == "input" else f"concat input{columns}"
    if kind == "dense":
        out = value.width
        line = f"dense {out}" + ("" if "bias" in value.params else " bias=no")
        for pattern, how in project.items():
            if fnmatch.fnmatch(value.params["kernel"].name, pattern):
                line += f" project={how}"
                break
        return line
    if kind == "layernorm":
        return f"layernorm eps={_number(o['eps'])}" + {0: " affine=no", 1: " bias=no"}.get(len(value.params), "")
    if kind == "batchnorm":
        return f"batchnorm eps={_number(o['eps'])}" + (f" momentum={_number(round(o['momentum'], 12))}" if "momentum" in o else "") \
            + ("" if value.params else " affine=no")
    if kind == "gelu":
        return "gelu" + (" approximate=none" if o["approximate"] == "none" else "")
    if kind == "leaky_relu":
        return f"leaky_relu negative_slope={_number(o['negative_slope'])}"
    if kind in ("rmsnorm", "l2norm"):
        return f"{kind} eps={_number(o['eps'])}"
    if kind in ("scaler", "lerp"):
        return kind + (f" init={_number(o['init'])}" if o["init"] != 1 else "")
    if kind == "append":
        return f"append {_number(o['constant'])}"
    return kind + (f" shift={_number(o['shift'])}" if o.get("shift") else "")


def _lines(items, project, depth=0):
    """The description's lines, and its values in the order in which layers are numbered."""
    lines, values, indent = [], [], "  " * depth
    for item in items:
        if not isinstance(item, tuple):
            lines.append(indent + _text(item, project))
            values.append(item)
            continue
        container, inner, alpha = item
        inner_lines, inner_values = _lines(inner, project, depth + 1)
        lines += [f"{indent}{_text(alpha, project) if alpha else container} {{", *inner_lines, indent + "}"]
        values += inner_values + ([alpha] if alpha else [])
    return lines, values


# --- PyTorch: saving ---

def unstack(module, parameters, buffers=None):
    """The E modules of a stacked ensemble: `parameters` and `buffers` are {name: [E, ...]}, as
    torch.func.stack_module_state returns them; `module` gives the architecture. A list for save(critics=...)."""
    count = len(next(iter(parameters.values())))
    found = []
    for e in range(count):
        one = copy.deepcopy(module)
        given = {key: value[e] for key, value in {**parameters, **(buffers or {})}.items()}
        one.to_empty(device="cpu") if any(p.is_meta for p in one.parameters()) else None
        one.load_state_dict({key: value.detach() for key, value in given.items()})
        found.append(one)
    return found


def _bind(module, inputs):
    """{name: tensor} in the order of forward's parameters, and whether the caller gave the names."""
    if isinstance(inputs, dict):
        known = inspect.signature(module.forward).parameters
        if not set(inputs) <= set(known) and not any(p.kind == p.VAR_KEYWORD for p in known.values()):
            _fail(f"inputs: expected the parameters of forward ({', '.join(known)}), found {', '.join(inputs)}")
        return dict(inputs), True
    inputs = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
    try:
        bound = inspect.signature(module.forward).bind(*inputs)
    except TypeError as error:
        _fail(f"inputs: expected the tensors that forward{inspect.signature(module.forward)} takes, found {len(inputs)}: {error}")
    names = [n for n in bound.arguments]
    if len(names) != len(inputs):  # forward(*tensors)
        names = [f"input{i}" for i in range(len(inputs))]
    return dict(zip(names, inputs)), False


def _torch_loss(loss):
    """A loss by its line, or one of PyTorch's functions or modules, which computes the proofs."""
    if isinstance(loss, str):
        return _Loss(loss)
    name = getattr(loss, "__name__", type(loss).__name__)
    if getattr(loss, "reduction", "mean") != "mean":
        _fail(f"loss: {name}: expected reduction='mean', found {loss.reduction!r}")
    if name in ("mse_loss", "MSELoss"):
        return _Loss("mse weight=2", loss)
    if name in ("huber_loss", "HuberLoss"):
        return _Loss(f"huber delta={getattr(loss, 'delta', 1.0)!r}", loss)
    if name in ("smooth_l1_loss", "SmoothL1Loss") and getattr(loss, "beta", 1.0) > 0:
        beta = getattr(loss, "beta", 1.0)
        return _Loss(f"huber delta={beta!r} weight={1 / beta!r}", loss)
    _fail(f"loss: {name} has no line that is known here. Way out: its line as a string, for example 'ce min=-10 max=10' or "
          "'quantile', and check=, the value of your loss, which is compared")


def _mean_loss(loss, f, t, w, xp, logsumexp):
    """The mean over rows of the loss of outputs f [B, K] and targets t [B, K], in torch or jax.numpy (xp); w: weights of
    the rows [B]."""
    def huber(d, delta):
        return xp.where(abs(d) <= delta, 0.5 * d * d, delta * (abs(d) - delta / 2))

    if loss.name == "mse":
        rows = 0.5 * (f - t) ** 2
    elif loss.name == "huber":
        rows = huber(f - t, loss.options["delta"])
    elif loss.name == "ce":
        rows = t.sum(-1) * logsumexp(f) - (t * f).sum(-1)
    else:
        k = f.shape[-1]
        q = xp.asarray((2 * np.arange(k) + 1) / (2 * k)).reshape(1, k, 1)
        d = t[:, None, :] - f[:, :, None]
        rows = xp.where(d < 0, 1 - q, q) * huber(d, loss.options["kappa"]) / k
    return loss.weight * (rows.reshape(len(f), -1).sum(-1) * w).sum() / len(f)


class _Critic:
    """The chains of one traced module: its description, input and parameters."""

    def __init__(self, graph, loss, project):
        self.graph, self.chains = graph, []
        for root in graph.roots:
            chain = _Chain(graph, root)
            if chain.lines:
                _fail(f"{graph.name} cannot be expressed:", chain.lines)
            lines, values = _lines(chain.items, project)
            chain.values = [value for value in values if value.kind != "input"]  # which is no layer
            chain.text = "\n".join([*lines, f"loss {loss.text}", ""])
            self.chains.append(chain)
        graph.compare_with_forward()

    def ensemble(self, chain):
        """E of a stacked ensemble, else 1."""
        kernel = chain.values[-1].params["kernel"]
        shape = kernel.transform(self.graph.parameters[kernel.name]).shape
        return shape[0] if len(shape) == 3 else 1

    def input(self, chain, seen, rows):
        """[R, D]: what the first layer reads, and what is joined later."""
        return np.concatenate([self._source(seen[node], rows) for node in chain.sources], -1)

    def _source(self, x, rows):
        """[R, d], the same for all members of a stacked ensemble."""
        x = x.detach().cpu().numpy()
        x = x if x.ndim > 1 else x[:, None]
        width = x.shape[-1]
        x = x.reshape(-1, rows, width) if x.size % (rows * width) == 0 else x[None]
        if x.ndim != 3 or x.shape[1] != rows or not (x == x[:1]).all():
            _fail(f"{self.graph.name}: expected the same {rows} rows as the input of every critic, found {list(x.shape)} that differ")
        return x[0]

    def outputs(self, seen, rows):
        """[E, R, K], in the graph of autograd."""
        return self.graph.torch.cat([seen[c.values[-1].node].reshape(self.ensemble(c), rows, -1) for c in self.chains])

    def check_norms(self, seen):
        """A lerp's l2norm has eps = 1e-8. Another eps is the same function where no norm is near either."""
        for chain in self.chains:
            for value in chain.values:
                if value.kind == "lerp" and value.options["eps"] != 1e-8:
                    above = seen[self.graph.values[value.node].args[0].node].norm(dim=-1).min()
                    if not above > 10 * max(value.options["eps"], 1e-8):
                        _fail(f"{_where(self.graph, value.node)}: expected eps=1e-8 in the l2norm of a lerp, found "
                              f"{value.options['eps']:g} and a row of norm {above:g}. Way out: eps=1e-8")


def _collect(critics, layers, read):
    """{"NN_kind/name": [E, ...]} of all critics; read(graph, name) is a tensor of a parameter's shape."""
    found = {}
    for critic in critics:
        for chain in critic.chains:
            ensemble = critic.ensemble(chain)
            for layer, value in zip(layers, chain.values):
                for name, shape in layer.params.items():
                    parameter = value.params[name]
                    array = parameter.transform(read(critic.graph, parameter.name)).detach().cpu()
                    array = array.double().numpy() if str(array.dtype) == "torch.float64" else array.float().numpy()
                    if array.size != ensemble * math.prod(shape):
                        _fail(f"{critic.graph.name}.{parameter.name}: expected {list((ensemble, *shape))} numbers for {name} of "
                              f"{layer.group}, found {list(array.shape)}")
                    found.setdefault(f"{layer.group}/{name}", []).append(array.reshape(ensemble, *shape))
    return {key: np.concatenate(arrays) for key, arrays in found.items()}


def _states(critics, layers):
    """Running statistics of batch normalization, of layers whose every critic has them."""
    found = {}
    for critic in critics:
        buffers = dict(critic.graph.original.named_buffers())
        for chain in critic.chains:
            for layer, value in zip(layers, chain.values):
                for name, path in value.state.items():
                    found.setdefault(f"{layer.group}/{name}", []).append(buffers[path].detach().cpu().float().numpy()[None])
    count = sum(len(c.chains) for c in critics)
    return {key: np.concatenate(arrays) for key, arrays in found.items() if len(arrays) == count}


def _check_parameters(critics):
    """No parameter twice, none times a constant that has no place."""
    used, lines = {}, []
    for critic in critics:
        graph = critic.graph
        for chain in critic.chains:
            for value in chain.values:
                for name, p in value.params.items():
                    tensor, path = graph.parameters[p.name], f"{graph.name}.{p.name}"
                    other = used.setdefault((id(tensor), p.part), path)
                    if other != path or (id(tensor), p.part, "twice") in used:
                        lines.append(f"{_where(graph, value.node)}: {path} is also {other}. Every layer of every critic has parameters "
                                     "of its own in the description. Way out: export the part behind a shared one")
                    used[(id(tensor), p.part, "twice")] = path
                    if p.factor != 1 and name not in ("scaler", "alpha"):
                        lines.append(f"{_where(graph, value.node)}: {path} times {p.factor:g} has no line in the description. Way out: "
                                     "store the product in the module")
    if lines:
        _fail("the critics cannot be expressed:", lines)


def _torch_adam(optimizer, critics, layers):
    """Adam's moments in the order of the description; None before its first step."""
    torch = critics[0].graph.torch
    kind = type(optimizer).__name__
    if not isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)) or any(g.get("amsgrad") for g in optimizer.param_groups):
        _fail(f"optimizer: expected Adam or AdamW without amsgrad, found {kind}. Way out: leave it out; only the operator "
              "`preconditioned` needs it")
    groups = {id(p): g for g in optimizer.param_groups for p in g["params"]}
    tensors = {}
    for critic in critics:
        for chain in critic.chains:
            for p in (p for value in chain.values if not value.frozen for p in value.params.values()):
                tensor = critic.graph.parameters[p.name]
                if id(tensor) not in groups:
                    _fail(f"optimizer: expected the one that trains the critics, found none of its parameters in "
                          f"{critic.graph.name}.{p.name}. Way out: the critics' optimizer, or leave it out")
                tensors[id(tensor)] = tensor
    constants = {(*groups[i]["betas"], groups[i]["eps"], groups[i]["lr"]) for i in tensors}
    states = [optimizer.state.get(t, {}) for t in tensors.values()]
    rates = {c[3] for c in constants}
    rate = {"learning_rate": float(next(iter(rates)))} if len(rates) == 1 else {}
    if not any("exp_avg" in state for state in states):
        return None, rate
    steps = {int(state.get("step", 0)) for state in states}
    if len({c[:3] for c in constants}) > 1 or len(steps) > 1:
        _fail("optimizer: expected one beta1, beta2, eps and number of steps for all parameters of the critics, found several. "
              "Way out: leave it out; only the operator `preconditioned` needs it")
    beta1, beta2, eps, _ = next(iter(constants))
    adam = {"step": steps.pop(), "beta1": float(beta1), "beta2": float(beta2), "eps": float(eps)}
    for moment, key in (("m", "exp_avg"), ("v", "exp_avg_sq")):
        adam[moment] = _collect(critics, [x if x.trainable else _Layer(0, x.kind, x.out) for x in layers], lambda graph, name, key=key: optimizer.state[graph.parameters[name]][key])
    return adam, rate


def _torch_proofs(critics, inputs, targets, weights, loss):
    """For each minibatch: what the first layers read, and PyTorch's outputs, loss and norm of the gradient."""
    torch = critics[0].graph.torch
    rows, found = next(iter(inputs.values())).shape[1], {"input": [], "output": [], "loss": [], "gradient_norm": []}
    for n in range(len(targets)):
        outputs, total = [], 0
        for critic in critics:
            seen, _ = critic.graph.run({key: a[n] for key, a in inputs.items()})
            critic.check_norms(seen)
            here = [critic.input(chain, seen, rows) for chain in critic.chains]
            if len(found["input"]) == n:
                found["input"].append(here[0])
            if any(x.shape != found["input"][n].shape or not np.allclose(x, found["input"][n], rtol=1e-12, atol=0) for x in here):
                _fail(f"{critic.graph.name}: expected the same input for all critics, found another one than of the first critic")
            outputs.append(critic.outputs(seen, rows))
        f = torch.cat(outputs)
        t, w = [torch.as_tensor(a[n], dtype=f.dtype) for a in (targets, weights)]
        for one in f[:, :len(t)]:
            total = total + (loss.function(one, t) if loss.function else
                             _mean_loss(loss, one, t, w, torch, lambda x: torch.logsumexp(x, -1)))
        parameters = [p for critic in critics for p in critic.graph.module.parameters() if p.requires_grad]
        gradients = [g for g in torch.autograd.grad(total, parameters, allow_unused=True) if g is not None]
        found["output"].append(f[:, :len(t)].detach().numpy().transpose(1, 0, 2))
        found["loss"].append(float(total))
        found["gradient_norm"].append(math.sqrt(sum(float((g.double() ** 2).sum()) for g in gradients)))
    return {key: np.array(value) for key, value in found.items()}


def save(path, critics, inputs, targets, loss, optimizer=None, step=None, check=None, weights=None, project=None,
         attributes=None):
    """Writes critics of PyTorch as a checkpoint, and returns their description.

    critics    a module or a list of modules, in training mode; a module may return several critics, as a tuple, a
               stack or a concatenation, or be a stacked ensemble with parameters [E, in, out]
    inputs     the tensors that forward takes, as a tuple or, safest, as a dict by the names of forward's parameters:
               [N, R, ...] for N minibatches of R rows, or [R, ...] for one
    targets    [N, B, K], [N, B], or without N for one minibatch; constants
    loss       a line of the description ("mse", "ce min=-10 max=10", "huber delta=1", "quantile", each with weight=W), or
               PyTorch's mse_loss, huber_loss, smooth_l1_loss or their modules
    optimizer  the critics' Adam or AdamW, whose moments are stored
    step       environment steps so far
    check      the loss that the training computes for these minibatches (their mean, or [N]), summed over the critics:
               compared. It notices inputs in another order, other targets, a forgotten factor
    weights    [N, B], weights of the rows that multiply the loss: prioritized replay, masks
    project    {pattern of a weight's name: "unit" or "unit-kernel"}: what weight projection does (only for the
               operator `manifold`)
    attributes further root attributes, such as {"env": "Hopper-v4", "gamma": 0.99}

    The modules are copied: neither they nor their running statistics change. Raises Refused."""
    modules = list(critics) if isinstance(critics, (list, tuple)) else [critics]
    if not modules or not all(hasattr(m, "named_modules") for m in modules):
        _fail(f"critics: expected modules of PyTorch, found {[type(m).__name__ for m in modules]}")
    loss = _torch_loss(loss)
    arrays, by_name = _bind(_plain(modules[0]), inputs)
    arrays, batched = _minibatches(arrays)
    traced = [_Critic(_Graph(m, f"critics[{i}]", arrays, by_name), loss, project or {}) for i, m in enumerate(modules)]
    chains = [(c, chain) for c in traced for chain in c.chains]
    arch = chains[0][1].text
    for critic, chain in chains:
        if chain.text != arch:
            _fail(f"critics: expected the same architecture, found\n{arch}and in {critic.graph.name}\n{chain.text}")
    first = next(iter(arrays.values()))
    width = chains[0][0].input(chains[0][1], traced[0].graph.seen, first.shape[1]).shape[1]
    layers, _ = _read_description(arch, width)
    _check_parameters(traced)
    t = _targets(targets, batched, first.shape[:2], layers[-1].out, loss, any(layer.kind == "batchnorm" for layer in layers))
    w = _weights(weights, t)
    if w is not None and loss.function:
        _fail(f"weights: expected the loss as a line, {loss.text!r}, found a function of PyTorch")
    batch = _torch_proofs(traced, arrays, t, np.ones(t.shape[:2]) if w is None else w, loss)
    ensemble = batch["output"].shape[2]
    if check is not None:
        _compare_loss(check, batch["loss"], ensemble, loss)
    if any(c.graph.rounded for c in traced):  # compared less sharply
        batch = {key: a.astype(np.float32) for key, a in batch.items()}
    batch |= {"target": t} | ({} if w is None else {"weight": w})
    parameters = _collect(traced, layers, lambda graph, name: graph.parameters[name]) | _states(traced, layers)
    adam, rate = _torch_adam(optimizer, traced, layers) if optimizer is not None else (None, {})
    _save(path, arch, ensemble, parameters, batch, adam, step, rate | (attributes or {}))
    return arch


# --- Flax ---

_FLAX = {"dense": "Dense_{}", "batchnorm": "BatchNorm_{}", "layernorm": "LayerNorm_{}", "rmsnorm": "RMSNorm_{}",
         "scaler": "Scaler_{}", "lerp": "LERP_{}"}


def _leaves(tree, path=""):
    """{path with /: leaf} of nested dicts."""
    if hasattr(tree, "items"):
        return {key: leaf for name, part in tree.items() for key, leaf in _leaves(part, f"{path}{name}/").items()}
    return {path.rstrip("/"): getattr(tree, "value", tree) if "flax" in type(tree).__module__ else tree}


def _names(names, layers):
    """{"NN_kind/param": path}: from names by layer, by parameter, or by kind with {} for its number from 0."""
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
            if key not in names:
                _fail(f"names: expected a module for {layer.group} ({', '.join(layer.params)}): {layer.group!r} or {layer.kind!r}, "
                      f"found {', '.join(map(repr, names))}")
            used.add(key)
            found[full] = f"{names[key].format(count)}/{name}"
    unused = [key for key in names if key not in used and names[key] is not _FLAX.get(key)]
    if unused:
        _fail(f"names: {', '.join(unused)}: the description has no such layer. It has {', '.join(x.group for x in layers if x.params)}")
    return found


def _find(tree, path):
    for name in ("params/" + path, "batch_stats/" + path, path):
        if name in tree:
            return name
    return None


def _take(trees, names, layers, ensemble):
    """({"NN_kind/name": [E, ...]}, the taken paths); trees: the leaves of one set of variables, or of each critic."""
    arrays, taken, lines = {}, {}, []
    for layer in layers:
        for name, shape in {**layer.params, **layer.state}.items():
            full = f"{layer.group}/{name}"
            path = _find(trees[0], names[full])
            if path is None:
                if name in layer.params:
                    near = difflib.get_close_matches(names[full], [p.split("/", 1)[-1] for p in trees[0]], 1)
                    lines.append(f"{full}: {names[full]} is not there" + (f"; did you mean {near[0]}?" if near else ""))
                continue
            parts = [_array(path, tree[path]) for tree in trees]
            want = (ensemble, *shape) if len(trees) == 1 and ensemble > 1 else shape
            parts = [a.reshape(want) if a.size == 1 and math.prod(want) == 1 else a for a in parts]
            if any(a.shape != want for a in parts):
                lines.append(f"{full}: expected {list(want)}, found {path} {list(parts[0].shape)}")
                continue
            arrays[full] = np.stack(parts) if len(want) == len(shape) else parts[0]
            taken[full] = path
    for path in trees[0]:
        if path.startswith("params/") and path not in taken.values():
            lines.append(f"{path} {list(np.shape(trees[0][path]))} is in the variables, and not in the description or in names")
    twice = [p for p in taken.values() if list(taken.values()).count(p) > 1]
    lines += [f"{path} is given for several parameters" for path in twice]
    if lines:
        listing = "; ".join(f"{p} {list(np.shape(a))}" for p, a in trees[0].items())
        _fail("the description and the variables do not agree:", [*lines, f"(the variables are: {listing})"])
    return arrays, taken


def _optax(state, sets, names, layers, ensemble, constants):
    """Adam's moments from a state of optax, or of each critic."""
    def find(part):
        if all(hasattr(part, key) for key in ("mu", "nu", "count")):
            return part
        inner = part if isinstance(part, (tuple, list)) else [getattr(part, "inner_state", None)]
        return next((f for p in inner if p is not None and p is not part for f in [find(p)] if f), None)

    states = [find(s) for s in (state if sets > 1 else [state])]
    if None in states:
        _fail("optimizer: expected a state of optax.adam or adamw, found none in it. Way out: leave it out; only the operator "
              "`preconditioned` needs it")
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
        leaves = [{path if path.startswith("params/") else f"params/{path}": leaf for path, leaf in _leaves(getattr(s, tree)).items()}
                  for s in states]
        taken, _ = _take(leaves, names, plain, ensemble)
        adam[moment] = {key: a for key, a in taken.items() if key.split("/")[0] not in frozen}
    return adam


def _nest(tree, leaves, path=""):
    """The tree with other leaves."""
    if hasattr(tree, "items"):
        return {name: _nest(part, leaves, f"{path}{name}/") for name, part in tree.items()}
    return leaves.get(path.rstrip("/"), tree)


def _forward(apply, variables, inputs):
    """apply's outputs; without the changed state that it may return as well."""
    out = apply(variables, *inputs)
    if isinstance(out, tuple) and len(out) == 2 and hasattr(out[1], "items"):
        out = out[0]
    return out


def _outputs(out, ensemble, rows):
    """[E, R, K] of the critics in one set of variables."""
    shape = tuple(out.shape)
    if ensemble == 1:
        return out.reshape(1, rows, -1)
    if shape[0] != ensemble or shape[1] != rows:
        _fail(f"apply: expected outputs [{ensemble}, {rows}, ...], with the critics first as in the parameters, found {list(shape)}")
    return out.reshape(ensemble, rows, -1)


def _check_mode(apply, inputs, outputs, joint):
    """Batch normalization in training mode lets the rows depend on each other, and nothing else does. apply(*inputs) is
    [E, R, K]; outputs [E, B, K]: what it gave for all rows."""
    part = outputs.shape[1] // 2
    if part < 2:
        return
    whole, half = np.asarray(outputs)[:, :part], np.asarray(apply(*[x[:part] for x in inputs]))
    alike = np.allclose(whole, half, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    if joint and alike:
        _fail("apply: the description has a batchnorm, and apply gives the same values for half of the rows: it is in evaluation mode. "
              "Way out: apply=lambda v, *x: module.apply(v, *x, train=True, mutable=['batch_stats'])[0]")
    if not joint and not alike:
        _fail("apply: the description has no batchnorm, and apply gives other values for half of the rows: its rows depend on each "
              "other, or it is random (dropout). Way out: deterministic=True, or a batchnorm in the description")


def _flax_proofs(apply, sets, taken, shape, minibatches, loss):
    """shape: (E of a set, whether batchnorm couples rows); in float64, whatever the type of the variables."""
    import jax
    import jax.numpy as jnp
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    inputs, targets, weights = minibatches
    found = {"output": [], "loss": [], "gradient_norm": []}
    with enable(True):
        sets = [jax.tree_util.tree_map(lambda a: jnp.asarray(_array("variables", a), jnp.float64), v) for v in sets]
        paths = [path for path in taken if path.startswith("params/")]
        trained = [{path: _leaves(v)[path] for path in paths} for v in sets]

        def value(trained, x, t, w):
            f = [_outputs(_forward(apply, _nest(v, leaves), x), shape[0], len(x[0])) for v, leaves in zip(sets, trained)]
            f = jnp.concatenate(f)
            total = sum(_mean_loss(loss, one, t, w, jnp, lambda y: jax.scipy.special.logsumexp(y, -1)) for one in f[:, :len(t)])
            return total, f[:, :len(t)]

        first = [jnp.asarray(a[0], jnp.float64) for a in inputs]
        _check_outputs(jax.eval_shape(lambda *x: _forward(apply, sets[0], x), *first), shape[0], len(first[0]), loss, targets)
        compiled = jax.jit(jax.value_and_grad(value, has_aux=True))
        for n, target in enumerate(targets):
            x, t = [jnp.asarray(a[n], jnp.float64) for a in inputs], jnp.asarray(target, jnp.float64)
            (total, f), gradients = compiled(trained, x, t, jnp.asarray(weights[n], jnp.float64))
            if n == 0:
                forward = jax.jit(lambda *x: _outputs(_forward(apply, sets[0], x), shape[0], len(x[0])))
                _check_mode(forward, x, f[:shape[0]], shape[1])
            found["output"].append(np.asarray(f).transpose(1, 0, 2))
            found["loss"].append(float(total))
            found["gradient_norm"].append(math.sqrt(sum(float((g.astype(jnp.float64) ** 2).sum())
                                                        for g in jax.tree_util.tree_leaves(gradients))))
        exact = f.dtype == jnp.float64
    return {key: np.array(a, np.float64 if exact else np.float32) for key, a in found.items()}


def _check_outputs(out, ensemble, rows, loss, t):
    if not hasattr(out, "shape"):
        _fail(f"apply: expected the critics' outputs as one array, found {type(out).__name__}. Way out: "
              "apply=lambda v, *x: jnp.stack(module.apply(v, *x))")
    k = math.prod(out.shape) // (ensemble * rows) if out.size % (ensemble * rows) == 0 else 0
    want = t.shape[2] if loss.name in ("ce", "quantile") else 1
    if k != want:
        _fail(f"apply: expected {want} outputs for each of {rows} rows and {ensemble} critics, found {list(out.shape)}")


def save_flax(path, variables, apply, arch, names=None, inputs=(), targets=None, loss=None, ensemble=1, optimizer=None, step=None,
              check=None, weights=None, attributes=None, beta1=0.9, beta2=0.999, eps=1e-8):
    """Writes critics of Flax as a checkpoint, and returns their description.

    variables  what module.init returns, {"params": ..., "batch_stats": ...}; for nn.vmap'ed critics with parameters
               [E, ...] and ensemble=E; or a list of variables, one for each critic
    apply      apply(variables, *inputs) -> outputs [R, K] or [R], with ensemble=E [E, R, K] or [E, R]; batch
               normalization in training mode: lambda v, *x: module.apply(v, *x, train=True, mutable=["batch_stats"])[0]
    arch       the description: the path of an .arch file, or its text; without a line `loss` if loss is given
    names      {layer: module}: "01_dense": "MLP_0/Dense_0"; by parameter, "01_dense/kernel": "MLP_0/Dense_0/kernel"; or
               by kind, with {} for its number from 0: "dense": "Dense_{}". What is left out is as in
               {"dense": "Dense_{}", "layernorm": "LayerNorm_{}", "batchnorm": "BatchNorm_{}", "rmsnorm": "RMSNorm_{}",
               "scaler": "Scaler_{}", "lerp": "LERP_{}"}. Paths are within params and batch_stats
    inputs     what apply takes behind the variables, [N, R, D] each or [R, D] for one minibatch, joined in this order
               as the description's input
    optimizer  the state of optax.adam or adamw (a list with a list of variables), whose constants are beta1, beta2, eps
    targets, loss, step, check, weights, attributes  as for save; loss is a line

    Every parameter has to be named, and every one that is named has to be there. Raises Refused."""
    if os.path.exists(arch):
        with open(arch, encoding="utf-8") as file:
            arch = file.read()
    elif "\n" not in arch:
        _fail(f"{arch}: no such file. Expected the path of a description, or its text")
    inputs = inputs if isinstance(inputs, dict) else dict(enumerate(inputs if isinstance(inputs, (list, tuple)) else (inputs,)))
    arrays, batched = _minibatches({str(key): a for key, a in inputs.items()})
    arrays = list(arrays.values())
    joined = np.concatenate(arrays, -1)
    layers, line = _read_description(arch, joined.shape[2])
    given = line if loss is None else _Loss(loss)
    if given is None or line is not None and (line.name, line.options) != (given.name, given.options):
        _fail("loss: expected it as an argument or as the last line of the description" if given is None else
              f"loss: the description has {line.text!r}, the argument is {given.text!r}")
    arch = (arch.rstrip() + "\n") if line is not None else f"{arch.rstrip()}\nloss {given.text}\n"
    sets = list(variables) if isinstance(variables, (list, tuple)) else [variables]
    sets = [v if "params" in v else {"params": v} for v in sets]
    names = _names({**_FLAX, **(names or {})}, layers)
    joint = any(layer.kind == "batchnorm" for layer in layers)
    parameters, taken = _take([_leaves(v) for v in sets], names, layers, ensemble)
    t = _targets(targets, batched, joined.shape[:2], layers[-1].out, given, joint)
    w = _weights(weights, t)
    trained = [taken[f"{x.group}/{name}"] for x in layers if x.trainable for name in x.params]
    minibatches = arrays, t, np.ones(t.shape[:2]) if w is None else w
    batch = _flax_proofs(apply, sets, trained, (ensemble, joint), minibatches, given)
    batch |= {"input": joined, "target": t} | ({} if w is None else {"weight": w})
    if check is not None:
        _compare_loss(check, batch["loss"], batch["output"].shape[2], given)
    constants = {"beta1": float(beta1), "beta2": float(beta2), "eps": float(eps)}
    adam = _optax(optimizer, len(sets), names, layers, ensemble, constants) if optimizer is not None else None
    _save(path, arch, batch["output"].shape[2], parameters, batch, adam, step, attributes or {})
    return arch


# --- while a program trains ---

class Monitor:
    """Saves and analyzes critics in the background while a program trains.

    monitor = Monitor("audit", save, every=10_000, log="audit/curves.csv"); monitor(step) in the loop; monitor.close().

    folder   for the checkpoints step_NNNNNNNNN.h5 and their spectra
    save     save(path, step) writes a checkpoint, always of the same minibatches
    every    steps between two analyses. While one runs, the next are left out
    log      where kappascope/NAME goes: a path of a CSV file, an object with add_scalar (TensorBoard's SummaryWriter), an
             object with log (a run of wandb), "tensorboard" (a writer in folder), "wandb" (its current run), or a list
    options  further options of `kappascope analyze`
    program  the program, if it is not in the PATH
    threads  that the analysis may use
    keep     False: delete a checkpoint once it is analyzed
    wait     seconds for which close, or the end of the program, waits for the last analysis before it is stopped

    A call only looks whether an analysis has ended, unless it saves. No failure ends the training: each message is
    printed once, on standard error."""

    def __init__(self, folder, save, every, log, options=(), program="kappascope", threads=1, keep=True, wait=600):
        self.folder, self.save, self.every, self.keep, self.wait = os.fspath(folder), save, every, keep, wait
        self.command = [*([shutil.which("nice"), "-n", "19"] if shutil.which("nice") else []), program, "analyze", "--json", "--quiet",
                        *options]
        self.environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        self.next, self.process, self.reported, self.skipped = 0, None, set(), 0
        os.makedirs(self.folder, exist_ok=True)
        self.logs = [self._logger(one) for one in (log if isinstance(log, (list, tuple)) else [log])]
        atexit.register(self.close)

    def _logger(self, log):
        if log == "tensorboard":
            from torch.utils.tensorboard import SummaryWriter
            log = SummaryWriter(self.folder)
        if log == "wandb":
            import wandb
            log = wandb
        if hasattr(log, "add_scalar"):
            return lambda step, values: [log.add_scalar(f"kappascope/{k}", v, step) for k, v in values.items() if v is not None]
        if hasattr(log, "log"):
            if hasattr(log, "define_metric"):  # an analysis ends later than the step that it is of
                log.define_metric("kappascope/*", step_metric="kappascope/step")
            return lambda step, values: log.log({"kappascope/step": step} | {f"kappascope/{k}": v for k, v in values.items()
                                                                             if v is not None})
        path = os.fspath(log)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        return lambda step, values: _append_row(path, {"step": step} | values)

    def __call__(self, step):
        """Looks for the end of an analysis; starts one if it is time. Returns whether it saved."""
        try:
            if self.process and self.process.poll() is not None:
                self._finish()
            if step < self.next:
                return False
            self.next = step - step % self.every + self.every
            if self.process:
                self.skipped += 1
                return False
            self._start(step)
            return True
        except Exception as error:  # the training goes on, whatever happens here
            self._report(f"step {step}: {type(error).__name__}: {error}")
            return False

    def _start(self, step):
        path = os.path.join(self.folder, f"step_{step:09d}.h5")
        self.save(path, step)
        self.path, self.step = path, step
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        # In a session of its own: Ctrl-C at the terminal ends the training, which then ends the analysis.
        self.process = subprocess.Popen([*self.command, path], stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        env=self.environment, start_new_session=True)

    def _finish(self):
        process, self.process = self.process, None
        try:
            self.out.seek(0)
            self.err.seek(0)
            if process.returncode != 0:
                said = self.err.read().decode(errors="replace").strip().splitlines()
                raise RuntimeError(f"kappascope analyze: exit status {process.returncode}: {said[-1] if said else 'no message'}")
            values = {key: value for key, value in json.loads(self.out.read().splitlines()[0]).items()
                      if value is None or isinstance(value, (int, float)) and not isinstance(value, bool)}
        finally:
            self.out.close()
            self.err.close()
        for log in self.logs:
            log(self.step, values)
        if not self.keep:
            os.unlink(self.path)

    def _report(self, message):
        kind = message.partition(": ")[2]
        if kind not in self.reported:
            self.reported.add(kind)
            print(f"kappascope_export: {message} (the training goes on; the same is not printed again)", file=sys.stderr, flush=True)

    def close(self, wait=None):
        """Waits for the last analysis, at most `wait` seconds, and logs it; a longer one is stopped. May be called twice."""
        atexit.unregister(self.close)
        if not self.process:
            return
        try:
            self.process.wait(self.wait if wait is None else wait)
            self._finish()
        except subprocess.TimeoutExpired:
            self._stop()
            self._report(f"step {self.step}: the analysis was stopped at the end of the program")
        except KeyboardInterrupt:
            self._stop()
            raise
        except Exception as error:
            self._report(f"step {self.step}: {type(error).__name__}: {error}")

    def _stop(self):
        """Ends the analysis and what it started: they are a group of processes of their own."""
        process, self.process = self.process, None
        if process:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _append_row(path, row):
    """A row of a CSV file, under the header that it has or gets; a value that is not resolved is empty."""
    new = not os.path.exists(path) or os.path.getsize(path) == 0
    if new:
        header = list(row)
    else:
        with open(path, encoding="utf-8", newline="") as file:
            header = next(csv.reader(file))
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, restval="", extrasaction="ignore", lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({key: "" if value is None else value for key, value in row.items()})
