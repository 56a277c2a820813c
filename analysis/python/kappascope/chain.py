"""PyTorch: from the values of a graph to the lines of a description."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kappascope.description import Loss
from kappascope.graph import Graph, added
from kappascope.names import Array, Node
from kappascope.refusal import fail
from kappascope.tracing import place_of
from kappascope.values import Parameter, Source, Value, split_norm

_LINES = set(
    "dense batchnorm layernorm groupnorm rmsnorm rms l2norm avgl1norm relu tanh silu "
    "gelu elu mish scaler mulc append leaky_relu relu6 sigmoid softplus simnorm".split()
)
_FROZEN = {"mulc", "rms"}  # lines with parameters that are constants of forward


def _is_input(value: Value) -> bool:
    """Whether forward computes the value from its inputs alone, and no line says how."""
    return value.free and value.kind not in _LINES - _FROZEN


Item = Any  # a Value, or a container as (its name, its items, an alpha or a loss or None)


class Chain:
    """The layers of one critic in order: items are Value objects, or (container, items, value),
    with an alpha or a loss as the value. roots: the values that are its outputs, one for each head.
    text: the description; values: of its layers, in the order of their numbers; ensemble: E of a stacked
    ensemble, else 1."""

    def __init__(
        self, graph: Graph, roots: list[Value], losses: list[Loss], project: Mapping[str, str]
    ) -> None:
        self.graph, self.roots = graph, roots
        self.lines: list[str] = []
        self.order = {node: i for i, node in enumerate(graph.graph.nodes)}
        self.residual, self.front = functools.cache(self._residual), functools.cache(self._front)
        self.first: list[Source] = []  # what the first layers read
        if len(roots) > 1:
            self.items, rest = self._branches(roots, None, losses)
            self.items = self._joined(self._between(rest, None), rest, self.items) if rest else self.items
        else:
            self.items = self._between(roots[0], None)
        if self.lines:
            fail(f"{graph.name} cannot be expressed:", self.lines)
        self._lay_out()
        lines, self.values = description_lines(self.items, project)
        lines += [f"loss {losses[0].text}"] if len(losses) == 1 else []
        self.text = "\n".join([*lines, ""])
        kernel = next(kernel_of(v) for v in self.values if v.kind == "dense" and v.params)
        shape = kernel.transform(graph.parameters[kernel.name]).shape
        self.ensemble = int(shape[0]) if len(shape) == 3 else 1

    def _lay_out(self) -> None:
        """The columns of the input: what the first layers read, then what later ones do, each
        once."""
        self.sources: list[Source] = []
        places: dict[Any, tuple[int, int]] = {}
        start = 0
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
            self.items.insert(0, Value("input", self.first[0].value.node, columns=(0, end)))

    def input(self, seen: dict[Node, Any]) -> Array:
        """[R, D]: what the first layers read, and what is joined later."""
        return np.concatenate([self._columns(source, seen) for source in self.sources], -1)

    def _columns(self, source: Source, seen: dict[Node, Any]) -> Array:
        """[R, d], the same for all members of a stacked ensemble."""
        x = source.take(seen[source.value.node]).detach().cpu().numpy()
        x = x if x.ndim > 1 else x[:, None]
        width, rows = x.shape[-1], self.graph.rows
        x = x.reshape(-1, rows, width) if x.size % (rows * width) == 0 else x[None]
        if x.ndim != 3 or x.shape[1] != rows or not (x == x[:1]).all():
            fail(
                f"{place_of(self.graph, source.value.node)}: expected the same {rows} rows as the inputs "
                f"have, for every critic, found {list(x.shape)} that differ. Way out: no change of rows in "
                "forward; inputs that have all rows"
            )
        return np.asarray(x[0])

    def check_norms(self, seen: dict[Node, Any]) -> None:
        """A lerp's l2norm has eps = 1e-8. Another eps is the same function where no norm is near
        either."""
        for value in self.values:
            if value.kind == "lerp" and value.options["norm_eps"] != 1e-8:
                before = self.graph.values[value.node].args[0].node
                least = seen[before].norm(dim=-1).min()
                if not least > 10 * max(value.options["norm_eps"], 1e-8):
                    fail(
                        f"{place_of(self.graph, value.node)}: expected eps=1e-8 in the l2norm of a lerp, "
                        f"found {value.options['norm_eps']:g} and a row of norm {least:g}. Way out: eps=1e-8"
                    )

    def _say(self, value: Value, text: str) -> None:
        """Adds a line about what a value has no line for."""
        self.lines.append(f"{place_of(self.graph, value.node)}: {text}")

    def _between(self, value: Value, stop: Value | None) -> list[Item]:
        """The items from `stop` (not included) to `value`. Without stop: from the input, which is
        the first value that no parameter reached and that has no line."""
        items: list[Item] = []
        while value is not stop:
            value = split_norm(value) if value.kind in ("batchnorm", "groupnorm") else value
            if _is_input(value):
                if stop is None:
                    self.first.append(Source(value, self.graph.width(value)))
                else:
                    self._say(
                        value,
                        "expected branches that start from the same features, found another one inside of a "
                        "sum x + f(x). Way out: compute both from x",
                    )
                break
            more, front = self._step(value, stop)
            items, value = self._joined(more, value, items), front
        return items

    def _joined(self, items: list[Item], value: Value, more: list[Item]) -> list[Item]:
        """The items that end with `value`, and more. Branches behind other branches would be read as one row:
        a slice of all features stands between them."""
        if _is_row(items[-1:]) and _is_row(more[:1]):
            items = [*items, Value("slice", value.node, part=(0, self.graph.width(value)))]
        return items + more

    def _step(self, value: Value, stop: Value | None) -> tuple[list[Item], Any]:
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
            if value.kind == "dense" and not value.width:
                value.width = self.graph.seen[value.node].shape[-1]
            most, eps = 1e6 if value.kind in ("l2norm", "avgl1norm") else 1, value.options.get("eps", 1)
            if not 1e-12 <= eps <= most:
                way = "an eps of this size, in training, too"
                self._say(value, f"expected an eps from 1e-12 to {most:g}, found {eps:g}. Way out: {way}")
            value = self._half_frozen(value) or value
            self._check_frozen(value)
            return [value], value.args[0]
        if value.kind == "select":
            return [value], value.args[0]
        if value.kind == "times":
            x, mask = [self.graph.seen[v.node].shape for v in value.args]
            if len(x) == 2 and list(mask) in ([*x], [x[1]], [1, x[1]], [x[0], 1]):
                source = Source(value.args[1], x[1], lambda tensor: tensor.expand(x), f"mask {x[1]}")
                return [Value("dropout", value.node, source=source)], value.args[0]
        if value.kind == "cat" and value.options["last"]:
            return self._cat(value, stop)
        residual = self.residual(value)
        if residual:
            skip, body = residual
            return [("residual", self._between(body, skip), None)], skip
        total = self.graph.sum_of(value)
        if total:
            return [total], total.args[0]
        bad = [v for v in value.args if v.kind == "bad" and not v.free and value.kind != "bad"]
        if bad or value.kind != "layout" or not any(v.kind == "bad" for v in self._spine(value)):
            refused = [*bad, value][0]  # of a layout the line of what is bad in front of it says more
            self._say(refused, refused.refusal())
        return [], value.args[0] if value.args else stop

    def _residual(self, value: Value) -> tuple[Value, Value] | None:
        """(skip, body) if value = skip + body, and body is computed from skip."""
        if value.kind != "add":
            return None
        skip, body = sorted(value.args, key=lambda v: self.order[v.node])
        inner = self._behind(body, skip) - {skip}
        through = not _is_input(skip) or skip in self._spine(body)
        if body is skip or not self._reaches(body, skip) or not through:
            return None
        return None if inner & self._behind(skip) else (skip, body)  # else something goes around `skip`

    # --- several branches ---

    def _cat(self, value: Value, stop: Value | None) -> tuple[list[Item], Any]:
        """Joined parts: branches of those with parameters, and `concat` of those without."""
        features = [v for v in value.args if not v.free]
        front: Value | None = features[0]
        items: list[Item] = []
        if len(features) > 1:
            whole = self._whole(features)
            items, front = ([], whole) if whole else self._branches(features, stop)
        inputs = [v for v in value.args if v.free]
        items += [Value("concat", value.node, source=Source(v, self.graph.width(v))) for v in inputs]
        if value.args != features + inputs:
            items += self._reordered(value, features + inputs)
        return items, front

    def _whole(self, parts: list[Value]) -> Value | None:
        """The value of which the parts are all features in order; else None."""
        base, at = parts[0].args[0] if parts[0].args else None, 0
        for part in parts:
            if part.kind != "slice" or part.args[0] is not base or part.options["part"][0] != at:
                return None
            at = part.options["part"][1]
        return base if base and at == self.graph.seen[base.node].shape[-1] else None

    def _reordered(self, value: Value, stored: list[Value]) -> list[Item]:
        """Branches that put features, which are in the order of `stored`, in that of value.args."""
        places: dict[Value, tuple[int, int]] = {}
        at = 0
        for part in stored:
            width = self.graph.seen[part.node].shape[-1]
            places.setdefault(part, (at, at + width))
            at += width
        return [("branch", [Value("slice", value.node, part=places[part])], None) for part in value.args]

    def _branches(
        self, parts: list[Value], stop: Value | None, losses: list[Loss] | None = None
    ) -> tuple[list[Item], Value | None]:
        """A branch for each part, with its loss for heads, and the value that they all start from;
        None is the input. A branch that starts from a part of the input begins with a slice."""
        if stop is not None and not all(self._reaches(part, stop) for part in parts):
            return self._beside_inputs(parts, stop), stop
        common = self._common(parts, stop)
        if stop is not None and (common is None or self._reaches(stop, common)):
            common = stop
        bodies, ends = [], []
        for part in parts:
            before = len(self.first)
            bodies.append(self._between(part, common))
            ends.append({source.key: source for source in self.first[before:]})
            if not bodies[-1]:
                bodies[-1].append(Value("slice", part.node, part=(0, self.graph.width(part))))
        for body, sources in zip(bodies, ends):
            if len(sources) == 1 and len({key for end in ends for key in end}) > 1:
                (source,) = sources.values()
                body.insert(0, Value("slice", source.value.node, source=source))
        ends_of: list[Any] = [*losses] if losses else [None] * len(parts)
        return [("branch", body, loss) for body, loss in zip(bodies, ends_of)], common

    def _beside_inputs(self, parts: list[Value], stop: Value) -> list[Item]:
        """Branches inside of a container, which start from `stop`, and others that start from a part of the
        input, which is joined in front of them."""
        joined, branches, width = [], [], self.graph.width(stop)
        end = width
        for part in parts:
            cut, before = (0, width), len(self.first)
            inside = self._reaches(part, stop)
            body = self._between(part, stop if inside else None)
            sources, self.first[before:] = self.first[before:], []
            if not inside:
                if len({s.key for s in sources}) != 1 or any("source" in v.options for v in _flat(body)):
                    self._say(
                        part,
                        "expected branches that start from the same features or from one part of the input, "
                        "found another one inside of a sum x + f(x). Way out: compute both from x",
                    )
                    continue
                cut = end, end + sources[0].width
                joined.append(Value("concat", part.node, source=sources[0]))
                end = cut[1]
            branches.append(("branch", [Value("slice", part.node, part=cut), *body], None))
        return [*joined, *branches]

    def _common(self, parts: list[Value], stop: Value | None) -> Value | None:
        """The last value from which all parts are computed; None if that is the input or a part of
        it, and not `stop`."""
        spines = [list(self._spine(part)) for part in parts]
        for value in spines[0]:
            if all(value in spine for spine in spines[1:]):
                return None if _is_input(value) and value is not stop else value
        return None

    def _spine(self, value: Value | None) -> Iterator[Value]:
        """A value and those in front of it, without what is inside of containers."""
        while value is not None:
            yield value
            value = None if _is_input(value) else self.front(value)

    def _reaches(self, value: Value, target: Value) -> bool:
        """Whether a value is computed from another one."""
        return target in self._behind(value, target)

    def _behind(self, value: Value, stop: Value | None = None) -> set[Value]:
        """The values from which a value is computed, up to `stop`, which is one of them; without inputs."""
        left, found = [value], set()
        while left:
            one = left.pop()
            if one not in found and (one is stop or not _is_input(one)):
                found.add(one)
                left += [] if one is stop else one.args
        return found

    def _front(self, value: Value) -> Value | None:
        """The value in front of a layer or of a whole container."""
        lerp, duel = self._lerp(value), self.graph.duel(value)
        if lerp:
            return lerp[0]
        if duel or value.kind == "cat":
            parts = [v for v in (duel.args[0] if duel else value).args if not v.free]
            deepest = max(parts, key=lambda part: len(list(self._spine(part))))
            return self._whole(parts) or self._common(parts, None) or deepest
        residual, total = self.residual(value), self.graph.sum_of(value)
        front = residual or (total or value).args
        return front[0] if front else None

    def _check_frozen(self, value: Value) -> None:
        """Sets value.frozen: all parameters of a layer are frozen, or none."""
        names = {p.name: self.graph.parameters[p.name].requires_grad for p in value.params.values()}
        value.frozen = value.frozen or set(names.values()) == {False} or value.kind in _FROZEN
        if len(set(names.values())) > 1:
            words = {True: "trained", False: "frozen"}
            states = ", ".join(f"{name} ({words[trained]})" for name, trained in names.items())
            self._say(
                value,
                "expected all parameters of a layer but its bias to be "
                f"frozen or none (requires_grad), found {states}, which no line says. Way out: a layer that "
                "has these parameters in parts, such as a norm without scale and a scaler",
            )

    def _half_frozen(self, value: Value) -> Value | None:
        """A layer of which only the bias is trained, or only the bias is frozen, or a norm with a bias alone,
        as the layer without it plus a dense of the constant 1, whose kernel is the bias; None if it is
        another layer."""
        trained = {key: self.graph.parameters[p.name].requires_grad for key, p in value.params.items()}
        bias = trained.pop("bias", None)
        if bias is None or set(trained.values()) not in ({not bias}, set()):
            return None
        x, node, params = value.args[0], value.node, dict(value.params)
        one = Value("append", node, [x], constant=1.0)
        width, inputs = (self.graph.seen[n].shape[-1] for n in (node, x.node))
        shift = Value("dense", node, [Value("slice", node, [one], part=(inputs, inputs + 1))])
        shift.params, shift.width = {"kernel": params.pop("bias")}, width
        value.width = width
        rest = value.with_params(node, params)
        if "scale" in rest.params:
            scale = rest.params.pop("scale")
            rest = Value("scaler", node, [rest], params={"scaler": scale}, init=scale.factor)
        return added(node, [rest, shift], [np.eye(width)] * 2)

    def _lerp(self, value: Value) -> tuple[Value, Value, Value] | None:
        """(skip, body, alpha) if value = l2norm(skip + alpha (body - skip))."""
        if value.kind != "l2norm":
            return None
        between, eps = value.args[0], value.options["eps"]
        if between.kind == "between":
            (skip, body), params = between.args, between.params
            alpha = Value("lerp", value.node, params=params, init=params["alpha"].factor, norm_eps=eps)
            return skip, body, alpha
        for skip, scaled in (between.args, between.args[::-1]) if between.kind == "add" else ():
            if scaled.kind == "scaler" and scaled.args[0].kind == "sub" and scaled.args[0].args[1] is skip:
                params, init = {"alpha": scaled.params["scaler"]}, scaled.options["init"]
                alpha = Value("lerp", value.node, params=params, init=init, norm_eps=eps)
                return skip, scaled.args[0].args[0], alpha
        return None


def _flat(items: list[Item]) -> Iterator[Value]:
    """The values of layers and, in containers, of their bodies, in order."""
    for item in items:
        if isinstance(item, tuple):
            yield from _flat(item[1])
        else:
            yield item


def _is_row(items: list[Item]) -> bool:
    return any(isinstance(item, tuple) and item[0] == "branch" for item in items)


def _number(x: float) -> str:
    return repr(float(x)) if x != int(x) else str(int(x))


def kernel_of(dense: Value) -> Parameter:
    return dense.params["v" if "v" in dense.params else "kernel"]


def _text(value: Value, project: Mapping[str, str]) -> str:
    """The line of a layer."""
    return _words(value, project) + (" trainable=no" if value.frozen else "")


# Options of lines in their order, and the values with which they are left out.
_OPTIONS = "groups", "eps", "momentum", "negative_slope", "init", "dim", "atoms", "shift"
_USUAL = {"init": 1, "atoms": 1, "shift": 0}


def _words(value: Value, project: Mapping[str, str]) -> str:
    o, kind = value.options, value.kind
    if kind in ("input", "slice", "concat", "select", "dropout"):
        first, last = o.get("columns") or o["part"]
        return f"{kind}{' ' if kind in ('input', 'slice') else ' input'}[{first}:{last}]"
    if kind == "dense":
        line = f"dense {value.width}" + ("" if "bias" in value.params else " bias=no")
        line += f" norm={o['norm']}" if "norm" in o else ""
        names = [kernel_of(value).name] if value.params else []
        return line + next((f" project={how}" for p, how in project.items() if fnmatch.filter(names, p)), "")
    if kind == "append":
        return f"append {_number(o['constant'])}"
    line = {"mulc": "scaler", "rms": "rmsnorm"}.get(kind, kind)
    shown = [key for key in _OPTIONS if key in o and o[key] != _USUAL.get(key)]
    line += "".join(f" {key}={_number(o[key])}" for key in shown)
    if kind in ("layernorm", "groupnorm", "batchnorm"):
        line += " affine=no" if not value.params else " bias=no" if "bias" not in value.params else ""
    line += " approximate=none" if o.get("approximate") == "none" else ""
    return line + (" unbiased=yes" if "unbiased" in o else "")


def description_lines(
    items: list[Item], project: Mapping[str, str], depth: int = 0
) -> tuple[list[str], list[Value]]:
    """The description's lines, and its values in the order in which layers are numbered."""
    lines, values, indent = [], [], "  " * depth
    for item in items:
        if not isinstance(item, tuple):
            lines.append(indent + _text(item, project))
            values += [] if item.kind in ("input", "slice") else [item]  # they have no number
            continue
        container, inner, extra = item
        inner_lines, inner_values = description_lines(inner, project, depth + 1)
        alpha = extra if container == "lerp" else None
        lines += [f"{indent}{_text(alpha, project) if alpha else container} {{", *inner_lines]
        if isinstance(extra, Loss):
            lines.append(f"{indent}  loss {extra.text}")
        lines.append(indent + "}")
        values += inner_values + ([alpha] if alpha else [])
    return lines, values
