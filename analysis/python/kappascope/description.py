"""Descriptions of critics (*.arch), as libkappascope reads them: layers, shapes of arrays, losses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from kappascope.library import library
from kappascope.losses import Head, Loss
from kappascope.names import Shapes

LOSS = re.compile(r"^\s*loss\s+([^#\r\n]*)", re.M)  # a line in a description


@dataclass
class Layer:
    """A layer of a description: the name of its group ("00_dense"), its parameters and its state as {name:
    shape}."""

    group: str
    kind: str
    params: Shapes = field(default_factory=dict)
    state: Shapes = field(default_factory=dict)
    trainable: bool = True


def _shapes(arrays: Any) -> Shapes:
    return {a.name.decode(): (a.rows, a.columns) if a.rows else (a.columns,) for a in arrays if a.name}


class Description:
    """What a description says for an input of this many columns: its layers in the order of their numbers,
    the width of its output, the number of trained parameters, whether batch normalization joins the rows, and
    the losses of its heads as [(loss, outputs)], none for the description of an actor. source: its name in
    messages. Raises Refused."""

    def __init__(self, text: str, inputs: int, source: str = "description") -> None:
        sizes, layers, heads = library().parts(text, inputs, ("arch:", f"{source}:"))
        self.layers = [
            Layer(x.name.decode(), x.kind.decode(), _shapes(x.parameter), _shapes(x.state), x.trainable)
            for x in layers
        ]
        self.outputs, self.parameters = sizes.outputs, sizes.parameters
        self.joint = any(x.joint for x in layers)
        self.heads: list[Head] = [(Loss(line), head.outputs) for line, head in zip(LOSS.findall(text), heads)]

    def trained(self) -> list[Layer]:
        """The layers, those that are not trained without their parameters."""
        return [x if x.trainable else Layer(x.group, x.kind) for x in self.layers]
