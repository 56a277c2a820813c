"""Critics of PyTorch as checkpoints: save, and unstack for the critics of torch.func."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from kappascope.chain import Chain
from kappascope.checkpoint import write_checkpoint
from kappascope.critics import Critic, chains_of, check_parameters, check_projections, collect, states_of
from kappascope.description import Description, Layer, Loss, torch_loss
from kappascope.graph import Graph
from kappascope.minibatches import read_minibatches, read_targets, read_weights, targets_of_heads
from kappascope.names import Arrays, Module, Path, Tensor
from kappascope.nodes import read_graph
from kappascope.reference import NO_MOMENTS, compare_loss, torch_results
from kappascope.refusal import fail
from kappascope.tracing import parts_of, plain_module, surroundings


def unstack(
    module: Module, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor] | None = None
) -> list[Module]:
    """The E modules of a stacked ensemble: `parameters` and `buffers` are {name: [E, ...]}, as
    torch.func.stack_module_state returns them; `module` gives the architecture, and may be on the
    device "meta". A list for save(critics=...). Buffers that are not given are those of
    `module`."""
    names = [{name for name, _ in own} for own in (module.named_parameters(), module.named_buffers())]
    given = {**parameters, **(buffers or {})}
    empty = any(p.is_meta for p in (*module.parameters(), *module.buffers()))
    missing = [name for name in (*names[0], *(names[1] if empty else ())) if name not in given]
    unknown = [name for name in given if name not in names[0] | names[1]]
    if missing or unknown or len({len(value) for value in given.values()}) != 1:
        fail(
            f"unstack: expected {', '.join(sorted(names[0] | names[1]))}, each [E, ...] with one E, found "
            f"{', '.join(f'{k} {list(v.shape)}' for k, v in given.items()) or 'none'}"
        )
    found = []
    for e in range(len(next(iter(given.values())))):
        one = copy.deepcopy(module)
        one = one.to_empty(device="cpu") if empty else one
        for name, tensor in (*one.named_parameters(), *one.named_buffers()):
            if name in given:
                tensor.data = given[name][e].detach().clone()
        found.append(one)
    return found


def bind(module: Module, inputs: Any) -> tuple[dict[str, Any], bool]:
    """{name: tensor} in the order of forward's parameters, and whether the caller gave the
    names."""
    signature, by_name = inspect.signature(module.forward), isinstance(inputs, dict)
    given: Any = inputs if isinstance(inputs, (dict, list, tuple)) else (inputs,)
    try:
        bound = signature.bind(**given) if by_name else signature.bind(*given)
    except TypeError as error:
        wanted, found = f"the tensors that forward{signature} takes", str(len(given))
        if by_name:
            wanted, found = f"the parameters of forward{signature}", ", ".join(map(str, given))
        fail(f"inputs: expected {wanted}, found {found}: {error}")
    if by_name:
        return dict(given), True
    names = list(bound.arguments)
    if len(names) != len(given):  # forward(*tensors)
        names = [f"input{i}" for i in range(len(given))]
    return dict(zip(names, given)), False


def _torch_adam(
    optimizer: Any, chains: list[Chain], trained: list[Layer]
) -> tuple[dict[str, Any] | None, dict[str, float]]:
    """(Adam's moments in the order of the description, or None before its first step; the attribute
    learning_rate, if there is one rate)."""
    torch = chains[0].graph.torch
    amsgrad = any(g.get("amsgrad") for g in getattr(optimizer, "param_groups", []))
    if not isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)) or amsgrad:
        fail(
            "optimizer: expected Adam or AdamW without amsgrad, found "
            f"{type(optimizer).__name__}{' with amsgrad' if amsgrad else ''}. " + NO_MOMENTS
        )
    groups = {id(p): g for g in optimizer.param_groups for p in g["params"]}
    constants, rates, states = set(), set(), []
    for chain in chains:
        for p in (p for value in chain.values if not value.frozen for p in value.params.values()):
            tensor = chain.graph.parameters[p.name]
            group = groups.get(id(tensor))
            if not group:
                fail(
                    "optimizer: expected the one that trains the critics, found none of its parameters in "
                    f"{chain.graph.name}.{p.name}. Way out: the critics' optimizer, or leave it out "
                    "(unstacked copies have none)"
                )
            constants.add((*map(float, group["betas"]), float(group["eps"])))
            rates.add(float(group["lr"]))
            states.append(optimizer.state.get(tensor, {}))
    rate = {"learning_rate": rates.pop()} if len(rates) == 1 else {}
    if not any("exp_avg" in state for state in states):
        return None, rate
    steps = {int(state.get("step", 0)) for state in states}
    if len(constants) > 1 or len(steps) > 1:
        fail(
            "optimizer: expected one beta1, beta2, eps and number of steps for all parameters of the "
            f"critics, found {sorted(constants)} and {sorted(steps)} steps. {NO_MOMENTS}"
        )
    adam: dict[str, Any] = dict(zip(("beta1", "beta2", "eps"), constants.pop()), step=steps.pop())
    for moment, key in (("m", "exp_avg"), ("v", "exp_avg_sq")):

        def read(graph: Graph, name: str, key: str = key) -> Tensor:
            return optimizer.state[graph.parameters[name]][key]

        adam[moment] = collect(chains, trained, read)
    return adam, rate


def modules_of(critics: Any) -> list[Module]:
    """The list of modules that are the critics."""
    several = isinstance(critics, (list, tuple)) or type(critics).__name__ == "ModuleList"
    modules = list(critics) if several else [critics]
    if not modules or not all(hasattr(m, "named_modules") and not isinstance(m, type) for m in modules):
        fail(f"critics: expected modules of PyTorch, found {[type(m).__name__ for m in modules]}")
    for i, module in enumerate(modules):
        for path, part in parts_of(module):
            if any(one.__name__ == "ScriptModule" for one in type(part).__mro__):
                fail(
                    f"critics[{i}]{'.' + path if path else ''}: a program of TorchScript (torch.jit.script, "
                    "torch.jit.trace), which cannot be traced. Way out: the module from which it was made, "
                    "with load_state_dict(script.state_dict())"
                )
    return modules


def share_layers(modules: list[Module]) -> bool:
    """Whether modules, each another one, have parameters in common."""
    own = [{id(p) for p in m.parameters()} for m in modules]
    shared = any(a & b for i, a in enumerate(own) for b in own[:i])
    return shared and len({id(m) for m in modules}) == len(modules)


def _together(modules: list[Module]) -> Module:
    """A module that returns the outputs of these."""
    import torch

    class Critics(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *inputs: Any, **named: Any) -> Any:
            return tuple(critic(*inputs, **named) for critic in self.critics)

    together = Critics()
    together.critics = torch.nn.ModuleList(plain_module(m) for m in modules)
    together.training = modules[0].training
    return together


def _traced(
    modules: list[Module], inputs: Any, losses: list[Loss], project: Mapping[str, str]
) -> tuple[list[Critic], Arrays, bool]:
    """The traced critics, where those that share layers are one with several heads; {name: [N, R, D]}; and
    whether the caller's inputs had the first dimension."""
    named, by_name = bind(plain_module(modules[0]), inputs)
    arrays, batched = read_minibatches(named)
    if len(losses) == 1 and share_layers(modules):
        modules = [_together(modules)]
    graphs = [read_graph(m, f"critics[{i}]", arrays, by_name) for i, m in enumerate(modules)]
    traced = [Critic(graph, losses, project) for graph in graphs]
    if len(losses) == 1 and any(c.shares_layers() for c in traced):
        traced = [Critic(graph, losses * len(traced[0].chains), project) for graph in graphs]
    check_projections(chains_of(traced), project)
    return traced, arrays, batched


def save(
    path: Path,
    critics: Any,
    inputs: Any,
    targets: Any,
    loss: Any,
    optimizer: Any = None,
    step: int | None = None,
    check: Any = None,
    weights: Any = None,
    project: Mapping[str, str] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> str:
    """Writes critics of PyTorch as a checkpoint, and returns their description.

    critics    a module or a list of modules, in training mode; a module may return several critics,
               as a tuple, a stack or a concatenation, or be a stacked ensemble with parameters
               [E, in, out]; critics that share their first layers become heads of one
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

    losses = [torch_loss(one) for one in (loss if isinstance(loss, (list, tuple)) else [loss])]
    with surroundings(torch):
        traced, arrays, batched = _traced(modules_of(critics), inputs, losses, project or {})
        count = len(traced[0].losses)
        if count > len(losses):  # critics that share layers have become heads with the same loss each
            losses, targets = losses * count, targets_of_heads(targets, batched, count)
        chains, description = chains_of(traced), common_description(traced)
        ensemble = sum(chain.ensemble for chain in chains)
        heads = description.heads
        heads = [(one, outputs) for one, (_, outputs) in zip(losses, heads)]  # with their functions
        shape = next(iter(arrays.values())).shape[:2]
        t = read_targets(targets, batched, shape, heads, ensemble, description.joint)
        w = read_weights(weights, t)
        if w is not None and any(one.function for one in losses):
            fail(f"weights: expected the loss as a line, {losses[0].text!r}, found a function of PyTorch")
        batch = torch_results(traced, arrays, t, np.ones(t.shape[:2]) if w is None else w, heads)
    if check is not None:
        compare_loss(check, batch["loss"], ensemble, heads, t)
    if any(c.graph.rounded for c in traced):  # compared less sharply
        batch = {key: a.astype(np.float32) for key, a in batch.items()}
    batch |= {"target": t} | ({} if w is None else {"weight": w})
    parameters = collect(chains, description.layers, lambda graph, name: graph.parameters[name])
    parameters |= states_of(chains, description.layers)
    adam, rate = None, dict[str, float]()
    if optimizer is not None:
        adam, rate = _torch_adam(optimizer, chains, description.trained())
    arch, given = chains[0].text, {**rate, **(attributes or {})}
    write_checkpoint(path, arch, ensemble, parameters, batch, adam, given, step)
    return arch


def common_description(critics: list[Critic]) -> Description:
    """The description that all critics have, read by the rules of the file format."""
    first, *others = chains_of(critics)
    for chain in others:
        if chain.text != first.text:
            fail(
                f"critics: expected the same architecture, found\n{first.text}and in "
                f"{chain.graph.name}\n{chain.text}Way out: a file for each critic: the Hessian of several "
                "is that of each, block by block"
            )
    description = Description(first.text, first.input(first.graph.seen).shape[1])
    assert len(description.layers) == len(first.values)
    check_parameters([first, *others])
    return description
