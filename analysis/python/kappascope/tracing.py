"""PyTorch: a module is traced with torch.fx, on a copy in float64, and run for its first minibatch."""

from __future__ import annotations

import builtins
import contextlib
import copy
import linecache
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from kappascope.names import Arrays, Module, Node, Tensor
from kappascope.refusal import fail, first_line
from kappascope.values import TRACED


@contextlib.contextmanager
def surroundings(torch: Any) -> Iterator[None]:
    """What the caller may have set for all of PyTorch, such as no_grad, does not reach the
    export."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))  # which also ends a no_grad
        if hasattr(torch, "get_default_device"):
            stack.enter_context(torch.device("cpu"))
        dynamo: Any = sys.modules.get("torch._dynamo")  # imported only where something was compiled
        if hasattr(getattr(dynamo, "config", None), "error_on_nested_fx_trace"):
            stack.enter_context(dynamo.config.patch(error_on_nested_fx_trace=False))
        if hasattr(getattr(torch, "compiler", None), "set_stance"):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


class Tracing:
    """One module: its copy, its graph, and what the nodes of the graph compute for the first minibatch,
    `seen`."""

    interpreter: Any  # of the last run, which has what the nodes computed

    def __init__(self, module: Module, name: str, inputs: Arrays, by_name: bool) -> None:
        import torch
        import torch.fx

        self.torch, self.original, self.name = torch, plain_module(module), name
        self.names, self.by_name = list(inputs), by_name
        self.dtype, self.rounded = torch.float64, False  # rounded: forward converts to another type
        self._check_module()
        self.module = _copy_module(torch, self.original, name)
        for _, m in parts_of(self.module):
            if kernel_norm(m):
                m.eval()  # the stored vectors of a spectral norm are used as they are
        self.wrapper, self.graph = _trace(self.module, self.names, by_name, name)
        self._check_mode()
        self.traced = torch.fx.GraphModule(self.wrapper, self.graph)
        self.modules = dict(self.wrapper.named_modules())
        self.parameters = _named_parameters(self.original)
        self.first = {key: a[0] for key, a in inputs.items()}
        self.rows = len(next(iter(self.first.values())))
        self.seen = self._first_run()

    def _check_mode(self) -> None:
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
            fail(
                f"{self.name} is in evaluation mode, in which its forward does something else than in "
                "training. Way out: module.train() before save"
            )

    def _check_module(self) -> None:
        """Hooks and parametrizations would make a weight a function of others, or change values
        unseen."""
        lines = []
        for path, m in parts_of(self.original):
            if any(type(p).__name__.startswith("Uninitialized") for p in m._parameters.values()):
                fail(
                    f"{self.name}.{path} ({type(m).__name__}): its parameters have no values yet. Way out: "
                    "call the critic once on a minibatch"
                )
            where = f"{self.name}{'.' + path if path else ''} ({type(m).__name__})"
            if kernel_norm(m) and not m._forward_hooks and not m._backward_hooks:
                continue
            if hasattr(m, "parametrizations"):
                lines.append(
                    f"{where}: {', '.join(m.parametrizations)} is computed from other parameters "
                    "(parametrize). Way out: torch.nn.utils.parametrize.remove_parametrizations on a "
                    "copy: curvature in the weight itself"
                )
            elif any(hasattr(m, f"{key}_{end}") for key in ("weight", "bias") for end in ("g", "orig")):
                lines.append(
                    f"{where}: its weight is computed from other parameters (weight_norm, spectral_norm). "
                    "Way out: torch.nn.utils.remove_weight_norm or remove_spectral_norm on a copy: "
                    "curvature in the weight itself"
                )
            elif m._forward_hooks or m._forward_pre_hooks or m._backward_hooks:
                lines.append(
                    f"{where}: a hook can change what the layer computes, unseen. Way out: remove it "
                    "before save"
                )
        if lines:
            fail(f"{self.name} cannot be expressed:", lines)

    def refuse(self, node: Node, text: str) -> NoReturn:
        """Says of a node why it, and so the critic, has no description."""
        fail(f"{self.name} cannot be expressed:", [f"{place_of(self, node)}: {text}"])

    def run(self, inputs: Arrays) -> tuple[dict[Node, Any], Any]:
        """The values of all nodes for inputs {name: [R, D]}, and what forward returns. Parameters
        require gradients."""
        self.interpreter = self.torch.fx.Interpreter(self.traced, garbage_collect_values=False)
        out = self.interpreter.run(*self.tensors(inputs))
        return self.interpreter.env, out

    def tensors(self, inputs: Arrays) -> list[Tensor]:
        """Copies, since forward may change its inputs in place."""
        return [self.torch.tensor(inputs[name], dtype=self.dtype) for name in self.names]

    def _first_run(self) -> dict[Node, Any]:
        """The values of all nodes for the first minibatch; in float32 if forward itself converts to
        that."""
        try:
            return self.run(self.first)[0]
        except Exception as error:  # whatever forward does with these inputs
            if self.rounded or "dtype" not in str(error) and "ouble" not in str(error):
                self._fail_run(error)
        self.dtype, self.rounded = self.torch.float32, True
        self.module.float()
        return self._first_run()

    def _fail_run(self, error: Exception) -> NoReturn:
        shapes = ", ".join(f"{name} {list(a.shape)}" for name, a in self.first.items())
        running = next(node for node in self.traced.graph.nodes if node not in self.interpreter.env)
        what = first_line(error)
        way = "the inputs that forward expects, in its order; and no device or type that is fixed in forward"
        if "more than 1 value per channel" in what:
            way = "minibatches of several rows, which batch normalization needs"
        fail(
            f"{self.name}: forward fails for the first minibatch ({shapes}), on the CPU:",
            [f"{place_of(self, running)}: {what}. Way out: {way}"],
        )

    def compare_with_forward(self, exported: set[str]) -> None:
        """The graph is what forward did once. Its outputs and gradients are those of forward
        itself, or something is unseen: torch.no_grad(), randomness, another branch. Every
        parameter on which the outputs depend is exported."""
        outputs = [tensors_of(self.wrapper(*self.tensors(self.first))), tensors_of(self.run(self.first)[1])]
        bound = 1e-9 if self.dtype == self.torch.float64 else 1e-4
        if not all(nearly_equal(a, b, bound) for a, b in zip(*outputs)):
            self._refuse_infinities()
            fail(
                f"{self.name}: forward gives other values when it is called again. Way out: no random "
                "numbers in forward, nothing that it counts or stores, and no x += y on a tensor that is "
                "used again"
            )
        named = {key: p for key, p in self.module.named_parameters() if p.requires_grad}
        lines = []
        gradients = [self._gradients(found, list(named.values())) for found in outputs]
        stored = {id(self.parameters[key]) for key in exported}
        unused = []
        for key, a, b in zip(named, *gradients):
            if a is None and b is None:
                unused += [key] if id(self.parameters[key]) not in stored else []
            elif id(self.parameters[key]) not in stored:
                lines.append(
                    f"{self.name}.{key}: the outputs depend on it, and no line of the description has it. "
                    "Way out: export the part behind it, with its output as the input"
                )
            elif not nearly_equal(a, b, bound):
                lines.append(
                    f"{self.name}.{key}: the gradient of forward is not that of its operations. Way out: "
                    "no torch.no_grad() or .data in forward; or export the part behind it, with its "
                    "output as the input"
                )
        if lines:
            fail(f"{self.name} cannot be traced:", lines)
        if unused:
            warnings.warn(
                f"{self.name}: {', '.join(unused)}: the outputs of forward do not depend on these "
                "parameters, so the checkpoint does not have them",
                stacklevel=2,
            )

    def _refuse_infinities(self) -> None:
        for key, tensor in (*self.module.named_parameters(), *self.module.named_buffers()):
            wrong = tensor[~self.torch.isfinite(tensor)]
            if wrong.numel() > 0:
                fail(f"{self.name}.{key}: expected finite numbers, found {wrong[0].item():g}")

    def _gradients(self, outputs: list[Tensor], parameters: list[Tensor]) -> Any:
        """Of a weighted sum of outputs in all parameters."""
        torch = self.torch
        weighted = sum(
            (t.flatten() * torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype)).sum() for t in outputs
        )
        if not outputs or not parameters or not weighted.requires_grad:
            fail(
                f"{self.name}: expected outputs of forward that depend on parameters which require "
                "gradients, found none. Way out: requires_grad_(True), and no torch.no_grad() in forward"
            )
        return torch.autograd.grad(weighted, parameters, allow_unused=True)


def _named_parameters(module: Module) -> dict[str, Tensor]:
    """{path: parameter}, a parameter with two names under both."""
    return {
        f"{path}.{key}" if path else key: p
        for path, m in parts_of(module)
        for key, p in m._parameters.items()
        if p is not None
    }


def nearly_equal(a: Tensor | None, b: Tensor | None, bound: float) -> bool:
    if a is None or b is None or not a.numel():
        return a is b or a is not None and b is not None and a.shape == b.shape
    a, b = a.detach(), b.detach()
    return a.shape == b.shape and float((a - b).abs().max()) <= bound * (1 + float(b.abs().max()))


def tensors_of(out: Any) -> list[Tensor]:
    """The tensors in what forward returned, in order."""
    import torch.fx

    found: list[Any] = []
    torch.fx.node.map_aggregate(out, found.append)
    return [t for t in found if isinstance(t, torch.Tensor)]


def plain_module(module: Module) -> Module:
    """The module in the wrappers of torch.compile, DataParallel and DistributedDataParallel."""
    wrappers = "DistributedDataParallel", "DataParallel"
    while hasattr(module, "_orig_mod") or type(module).__name__ in wrappers:
        module = module._orig_mod if hasattr(module, "_orig_mod") else module.module
    return module


def parts_of(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """(path, module) of a module and all in it, without wrappers; a shared one under all its
    names."""
    module = plain_module(module)
    yield path, module
    for name, part in module._modules.items():
        if part is not None:
            yield from parts_of(part, f"{path}.{name}" if path else name)


# The class that computes the weight of a Linear: the norm in the description, its parameters and
# its state in the module.
KernelNorm = tuple[str, dict[str, str], dict[str, str]]
_AT = "parametrizations.weight."
_NORMS: dict[str, KernelNorm] = {
    "WeightNorm": ("weight", {"v": "weight_v", "g": "weight_g"}, {}),
    "_WeightNorm": ("weight", {"v": _AT + "original1", "g": _AT + "original0"}, {}),
    "SpectralNorm": ("spectral", {"kernel": "weight_orig"}, {"u": "weight_u", "v": "weight_v"}),
    "_SpectralNorm": ("spectral", {"kernel": _AT + "original"}, {"u": _AT + "0._u", "v": _AT + "0._v"}),
}


def kernel_norm(module: Module) -> KernelNorm | None:
    """The entry of _NORMS for a Linear whose weight alone has one of these norms, of its rows
    (dim=0); else None."""
    if type(module).__name__ not in ("Linear", "ParametrizedLinear"):
        return None
    computed = [
        (name, one) for name, several in getattr(module, "parametrizations", {}).items() for one in several
    ]
    computed += [(getattr(one, "name", None), one) for one in module._forward_pre_hooks.values()]
    if len(computed) != 1 or computed[0][0] != "weight" or getattr(computed[0][1], "dim", None) != 0:
        return None
    return _NORMS.get(type(computed[0][1]).__name__)


def is_renorm(module: Module) -> bool:
    """Whether a module is sb3-contrib's BatchRenorm, which stores its statistics in forward."""
    names = "warmup_steps steps ra_mean ra_var scale bias affine eps momentum"
    return type(module).__name__.startswith("BatchRenorm") and all(hasattr(module, n) for n in names.split())


def _copy_module(torch: Any, module: Module, name: str) -> Module:
    """A copy in float64 on the CPU: the caller's module, running statistics included, is never
    touched."""
    # What a hook computed as the weight in the last forward cannot be copied.
    computed = [
        (m, m.__dict__.pop("weight"))
        for _, m in parts_of(module)
        if kernel_norm(m) and "weight" in m.__dict__
    ]
    try:
        found = copy.deepcopy(module).cpu()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        way = "a module that holds parameters and buffers of its own alone, with values"
        fail(f"{name}: cannot be copied: {first_line(error)}. Way out: {way}")
    finally:
        for m, weight in computed:
            m.__dict__["weight"] = weight
    for _, m in parts_of(found):
        m._modules = type(m._modules)(
            (key, part if part is None else plain_module(part)) for key, part in m._modules.items()
        )
        if type(m).__name__ == "RMSNorm" and getattr(m, "eps", 0) is None:
            # By default PyTorch takes the machine's eps, of the type in which the critic is
            # trained.
            own = next((p.dtype for p in m.parameters()), torch.get_default_dtype())
            m.eps = float(torch.finfo(own).eps)
    return found.double()


def _operations(graph: Any) -> list[tuple[str, str, str]]:
    """What the nodes of a graph do, apart from whether dropout is active."""
    return [
        (
            node.op,
            str(node.target),
            str(node.args[:1]) if "dropout" in str(node.target) else f"{node.args} {node.kwargs}",
        )
        for node in graph.nodes
    ]


def _user_frame(frames: Iterable[tuple[str, int]]) -> str | None:
    """file:line: source of the innermost frame that is neither PyTorch's nor this package's."""
    import torch

    others = tuple(os.path.dirname(module) + os.sep for module in (torch.__file__, __file__))
    for file, line in frames:
        if not file.startswith((*others, "<")):
            return f"{os.path.basename(file)}:{line}: {linecache.getline(file, line).strip()}"
    return None


def _stack() -> Iterator[tuple[str, int]]:
    """The files and lines of the calls in a trace, from the innermost one."""
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        if frame.f_code is _trace.__code__:
            return
        yield frame.f_code.co_filename, line


@contextlib.contextmanager
def _recorded(torch: Any) -> Iterator[None]:
    """Meanwhile a symbolic tensor is a tensor for isinstance in the caller's code, len(x) of it is its number
    of rows, and torch.arange and the like take that."""

    def record(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            found: list[Any] = []
            torch.fx.node.map_aggregate((args, kwargs), found.append)
            tracer = next((a.tracer for a in found if isinstance(a, torch.fx.Proxy)), None)
            create = tracer and tracer.create_proxy
            return create("call_function", function, args, kwargs) if create else function(*args, **kwargs)

        return call

    from unittest import mock  # which imports much

    length, instance, proxy = builtins.len, builtins.isinstance, torch.fx.Proxy

    def is_instance(value: Any, kinds: Any) -> bool:
        if instance(value, kinds) or not instance(value, proxy):
            return instance(value, kinds)
        own = sys._getframe(1).f_globals.get("__name__", "").split(".")[0] == "torch"
        return not own and torch.Tensor in (kinds if instance(kinds, tuple) else (kinds,))

    def rows(value: Any) -> Any:
        return value.size(0) if instance(value, proxy) else length(value)

    names = "arange", "zeros", "ones", "full", "empty", "as_tensor"
    recorded = {name: record(getattr(torch, name)) for name in names}
    with mock.patch.multiple(torch, **recorded):
        with mock.patch.multiple(builtins, len=rows, isinstance=is_instance):
            yield


def _without_repetitions(graph: Any) -> Any:
    """A graph in which layers that critics share are called once for the same values."""
    first: dict[str, Node] = {}
    for node in graph.nodes:
        in_place = str(getattr(node.target, "__name__", node.target)).endswith("_")
        in_place = in_place or node.kwargs.get("inplace")
        if node.op not in ("placeholder", "output") and not in_place:
            same = first.setdefault(f"{node.op} {node.target} {node.args} {node.kwargs}", node)
            if same is not node:
                node.replace_all_uses_with(same)
                graph.erase_node(node)
    return graph


def _trace(module: Module, names: list[str], by_name: bool, name: str) -> tuple[Module, Any]:
    """A module that calls `module` with inputs of these names, and its graph, whose nodes know
    their line of source."""
    import torch
    import torch.fx

    class Tracer(torch.fx.Tracer):  # type: ignore[misc]
        inside = None  # the path and the kind of PyTorch's module that is called

        def is_leaf_module(self, m: Module, path: str) -> bool:
            traced = type(m).__name__ in TRACED and not kernel_norm(m)
            return is_renorm(m) or not traced and bool(super().is_leaf_module(m, path))

        def call_module(self, m: Module, *args: Any) -> Any:
            outer, path = self.inside, self.path_of_module(m)
            if is_renorm(m) or super().is_leaf_module(m, path):
                self.inside = outer or (path.partition(".")[2], type(m).__name__)
            try:
                return super().call_module(m, *args)
            finally:
                self.inside = outer

        def create_node(self, *args: Any, **kwargs: Any) -> Node:
            node = super().create_node(*args, **kwargs)
            node.meta.update(where=_user_frame(_stack()), module=self.inside)
            return node

    arguments = [f"input_{i}" for i in range(len(names))]
    space: dict[str, Any] = {}
    exec(
        f"def forward(self, {', '.join(arguments)}):\n    return self.critic("
        + ", ".join(f"{n}={a}" if by_name else a for n, a in zip(names, arguments))
        + ")",
        space,
    )
    wrapper = type("Critic", (torch.nn.Module,), {"forward": space["forward"]})()
    wrapper.critic = module
    wrapper.training = module.training
    try:
        with _recorded(torch):
            graph = Tracer().trace(wrapper)
        for path, m in parts_of(module):  # which PyTorch refused to assign before 2.15
            for key, b in m._buffers.items():
                if isinstance(b, torch.fx.Proxy):
                    raise TypeError(f"cannot assign to the buffer '{path and path + '.'}{key}'")
        return wrapper, _without_repetitions(graph)
    except Exception as error:  # whatever forward does with a symbolic tensor
        _fail_trace(module, name, error)


def _fail_trace(module: Module, name: str, error: Exception) -> NoReturn:
    """Says in which line forward cannot be traced, why, and the way out."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    where = _user_frame(frames[::-1]) or type(module).__name__
    way = (
        "no branch or loop that depends on a tensor's values or shape, and no vmap or jit inside "
        "forward; set what it depends on when the module is made"
    )
    if "as a submodule" in str(error) or "not a member" in str(error):
        way = "make it an attribute of the module, lists as nn.ModuleList or nn.ParameterList"
    elif "cannot be interpreted as an integer" in str(error):
        way = "torch.arange(len(x)) in place of range(len(x)), for a number that depends on the input"
    elif "buffer" in str(error) and "assign" in str(error):
        way = "running statistics and counters that are stored outside of forward"
    fail(f"{name} cannot be traced:", [f"{where}: {error or type(error).__name__}. Way out: {way}"])


def path_of(node: Node, key: str = "") -> str:
    """The path of a node's module or attribute, or of `key` in it; "" is the critic."""
    return ".".join(filter(None, [*node.target.split(".")[1:], key]))


def place_of(graph: Tracing, node: Node) -> str:
    """The module or node, what it is, and the line of the caller's code that it comes from."""
    if node.meta.get("module"):
        path, kind = node.meta["module"]
        path = ".".join(filter(None, [graph.name, path]))
    else:
        path, kind = f"{graph.name}, node {node.name}", getattr(node.target, "__name__", str(node.target))
    source = node.meta.get("where")
    return f"{path} ({kind}{'; ' + source if source else ''})"
