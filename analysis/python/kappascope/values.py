"""What the nodes of a traced graph compute, and why some of it has no line in a description."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from kappascope.names import Node, Tensor


class Value:
    """What a node of the graph computes from `args`. kind is a layer's, or one of the building
    blocks below; free: no parameter takes part, or only frozen ones in what has no line; fixed: no
    trained parameter takes part. params holds Parameter objects; a layer that lacks one that its
    line has is a constant, and its numbers are 1."""

    def __init__(
        self,
        kind: str,
        node: Node,
        args: Iterable[Any] = (),
        free: bool = False,
        params: dict[str, Parameter] | None = None,
        **options: Any,
    ) -> None:
        self.kind, self.node, self.args, self.free = kind, node, list(args), free
        self.params, self.options, self.frozen, self.width = params or {}, options, False, 0
        self.fixed = free
        self.state: dict[str, str] = {}
        self.said = "", ""  # why it has no line, and the way out, if they are not the usual ones of its kind

    def with_params(self, node: Node, params: dict[str, Parameter], kind: str = "") -> Value:
        """The same layer with other parameters, as what this node computes."""
        found = Value(kind or self.kind, node, self.args, params=params, **self.options)
        found.state, found.width = self.state, self.width
        return found

    def refusal(self) -> str:
        why, way = self.said if self.said[0] else reason(self.kind)
        return f"{why}. Way out: {way}"


@dataclass
class Parameter:
    """A parameter of a module, in another layout: transform(tensor) is a view of it or of its
    moments; factor: what forward multiplies it by; part: the indices of the part of it that is
    meant."""

    name: str
    transform: Callable[[Tensor], Tensor] = lambda tensor: tensor
    factor: float = 1.0
    part: tuple[int, ...] = ()

    def then(self, function: Callable[[Tensor], Tensor]) -> Parameter:
        first = self.transform
        return replace(self, transform=lambda tensor: function(first(tensor)))


def is_parameter(value: Any) -> bool:
    return isinstance(value, Value) and value.kind == "parameter"


def own(value: Any, *refusal: str) -> Parameter:
    """The parameter that a value is. refusal: of another value."""
    if not is_parameter(value):
        raise NoLine(*refusal)
    return value.params["it"]  # type: ignore[no-any-return]


class Source:
    """Columns of the critic's input: take(what `value` computes) is [R, width]. what: names `take`,
    so that the same columns are stored once."""

    def __init__(
        self, value: Value, width: int, take: Callable[[Tensor], Tensor] | None = None, what: str = ""
    ) -> None:
        self.value, self.width, self.take = value, width, take or (lambda tensor: tensor)
        self.key = value.node, what


def inside(value: Value | None, *kinds: str) -> Value | None:
    """What a value of the first kind is computed from, and that of the second, and so on; else None."""
    for kind in kinds:
        value = value.args[0] if value and value.kind == kind else None
    return value


def split_norm(value: Value) -> Value:
    """A norm with a scale and no bias as one without both, and a scaler, where the description has
    no such line."""
    if value.kind not in ("layernorm", "batchnorm", "groupnorm") or set(value.params) != {"scale"}:
        return value
    scale, inner = value.params["scale"], value.with_params(value.node, {})
    return Value("scaler", value.node, [inner], params={"scaler": scale}, init=scale.factor)


# The activations, with the arguments that they have behind the input, and the usual values of these.
ACTIVATIONS: dict[str, dict[str, Any]] = dict.fromkeys(
    "relu tanh silu mish elu gelu sigmoid relu6 softplus leaky_relu".split(), {}
)
ACTIVATIONS |= {"elu": {"alpha": 1.0}, "softplus": {"beta": 1, "threshold": 20}}
ACTIVATIONS |= {"gelu": {"approximate": "none"}, "leaky_relu": {"negative_slope": 0.01}}
# Without a trained parameter, these are a part of the input: they have no line.
UNWRITTEN = set("bad layout parameter cast abs square sqrt rsqrt mean var norm clamp addc sub".split())
# Modules that are traced: each calls a function that a rule reads.
TRACED = set(
    "Linear LayerNorm GroupNorm RMSNorm Dropout Dropout1d AlphaDropout FeatureAlphaDropout Softmax Identity "
    "Flatten Unflatten ReLU Tanh SiLU Mish ELU GELU Sigmoid ReLU6 Softplus LeakyReLU".split()
)
# The way out of what no line has. Another function in its place would be another critic.
_BEHIND = (
    "export the part behind it, with its output as the input: the block of the Hessian of the parameters "
    f"there. Activations with a line: {', '.join(ACTIVATIONS)}, and softmax over all "
    "features. Or kappascope.torch_hessian, which takes any network and loss"
)
# Why a thing has no line in the description, and the way out.
_REASONS = {
    "dropout": (
        "its random mask is no part of the description",
        "p=0, or .eval() for this layer alone: the loss without dropout is analyzed; or the mask as an "
        "input of forward: x * mask / (1 - p)",
    ),
    "detach": (
        "the analyzed loss is differentiated through all of the critic",
        "export the part after it, with its output as the input",
    ),
    "conv": (
        "convolutions are not found in a graph",
        "export the head, with the features as its input, or write the critic with conv2d by h5py",
    ),
    "minimum": (
        "the critics of an ensemble have a loss each",
        "return all critics' values from forward, as a tuple",
    ),
    "mulc": (
        "a constant factor cannot stand behind the last Linear",
        "the product as kernel and bias of the Linear before it: curvature in these",
    ),
    "addc": (
        "a constant summand has no line in the description",
        "add it to the bias of the Linear before it",
    ),
    "cat": (
        "it joins rows or critics behind a layer with parameters",
        "join features, with dim=-1; or return the parts",
    ),
    "bias": (
        "a bias without a Linear in front of it has no line in the description",
        "a Linear in front of it, with this bias, and the identity as a weight with requires_grad=False",
    ),
    "layout": (
        "it reorders, cuts or joins rows or features behind a layer with parameters",
        "do this in front of the first layer",
    ),
    "add": (
        "the only sums that have a line in the description are of features of one shape [R, d], or of "
        "[R, d] and [R, 1], and value + advantage - mean advantage",
        "write it as one of them",
    ),
    "sub": (
        "the only differences that have a line in the description are of features of one shape [R, d], in "
        "a norm, and value + advantage - mean advantage",
        "write it as one of them",
    ),
    "times": (
        "activations times an input have a line in the description as a mask of the same shape, and as "
        "the choice of an action, (q * one_hot).sum(-1)",
        "write it as one of them; several outputs of each action as [rows, actions, outputs]",
    ),
    "gather": (
        "expected the number of one action for each row, computed from the inputs alone",
        "(q * one_hot).sum(-1), with the one-hot actions as an input",
    ),
    "sum": (
        "the only sum over features with a line in the description is (q * one_hot).sum(-1), with one_hot "
        "an input",
        "write it as that, or leave it to the loss",
    ),
    "mean": (
        "expected a mean over one dimension, with keepdim=True",
        ".mean(-1, keepdim=True), which a dueling head or a norm needs",
    ),
    "output": (
        "forward returns something else than a critic's outputs",
        "return the outputs of the last Linear alone",
    ),
    "softmax": (
        "behind the last Linear it is a part of the ce loss; elsewhere the only one with a line is over all "
        "features [R, d]",
        f"return the logits; elsewhere {_BEHIND}",
    ),
    "max": (
        "the largest or the least of features has no line in the description; a dueling head has the mean",
        _BEHIND,
    ),
}
_WORDS = {**dict.fromkeys(["min", "amin", "amax"], "max"), "simnorm": "softmax", "log_softmax": "softmax"}


def reason(word: str) -> tuple[str, str]:
    word = "conv" if word.lower().startswith("conv") else _WORDS.get(word, word)
    return _REASONS.get(word, ("it has no line in the description", _BEHIND))


class NoLine(Exception):
    """A node has no line in the description: why, and the way out; where they are not given, the usual ones
    of `word`, or of the node's own."""

    def __init__(self, why: str = "", way: str = "", word: str = "") -> None:
        super().__init__(why)
        self.why, self.way, self.word = why, way, word
