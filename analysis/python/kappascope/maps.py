"""Maps (*.map): which array of a file is which array of a critic.

    layout = torch                            required. Kernels are [out, in] and are transposed.
                                              With `layout = flax` they are [in, out]
    00_dense/kernel = critic.net.0.weight     an array of the critic, and the name of its source
    02_dense/kernel = critics.*.net.2.weight  with wildcards each match is another critic
    02_dense/kernel = l2.weight l5.weight     several names are critics, in this order
    ignore actor.**                           these arrays are not used

Adam's moments, if wanted, of all trained arrays:

    adam = 0.9 0.999 1e-8                     beta1, beta2, eps
    adam/step = optimizer.state.0.step        its number of steps, or the array that has it
    adam/m/00_dense/kernel = optimizer.state.0.exp_avg      the first moments, then the second
    adam/v/00_dense/kernel = optimizer.state.0.exp_avg_sq

In names, `*` stands for any characters except '.' and '/', `**` for any characters, and `?` for one character
except these two. Every other character stands for itself."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kappascope.refusal import fail
from kappascope.stored import Stored, Weights, check_regular, length_of

STEP = "adam/step"
_ADAM = "beta1", "beta2", "eps"
WILDCARDS, GLOB_LENGTH = 8, 256  # most wildcards of a pattern, and fewer characters than this
_LONGEST_TEXT = 1 << 20
_LONGEST_LINE = 4095
_SPACES = re.compile(r"[ \t\v\f\r]+")
_WORD = re.compile(r"[^./]*")
_PIECES = re.compile(r"\*\*|\*|\?|[^*?]+")


# --- patterns ---


def valid_glob(glob: str) -> bool:
    wildcards = sum(piece in ("*", "**", "?") for piece in _PIECES.findall(glob))
    return 0 < length_of(glob) < GLOB_LENGTH and wildcards <= WILDCARDS


def match_glob(glob: str, name: str) -> tuple[str, ...] | None:
    """What each wildcard of the pattern stands for in the name, or None if the name does not match. Wildcards
    at the left stand for as few characters as possible. Each pair of positions is tried once, so the time is
    bounded by the product of the lengths, whatever the name is."""
    pieces = _PIECES.findall(glob)

    @functools.cache
    def match(p: int, s: int) -> tuple[str, ...] | None:
        if p == len(pieces):
            return () if s == len(name) else None
        piece = pieces[p]
        if piece not in ("*", "**", "?"):
            return match(p + 1, s + len(piece)) if name.startswith(piece, s) else None
        last = len(name) if piece == "**" else _WORD.match(name, s).end()  # type: ignore[union-attr]
        for end in range(s + 1, min(s + 1, last) + 1) if piece == "?" else range(s, last + 1):
            rest = match(p + 1, end)
            if rest is not None:
                return (name[s:end], *rest)
        return None

    return match(0, 0)


def order_of(name: str) -> list[tuple[int, int]]:
    """A key that orders names by their characters, but digits as numbers: q2 comes before q10."""
    parts = re.findall(r"[0-9]+|.", name, re.DOTALL)
    return [(ord("0"), int(part)) if part[0] in "0123456789" else (ord(part), 0) for part in parts]


# --- the file ---


@dataclass
class Line:
    number: int  # in the file, from 1
    object: str | None  # "00_dense/kernel", or None for `ignore`
    names: list[str]  # one pattern, or a name for each critic

    @property
    def glob(self) -> str:
        return " ".join(self.names)


@dataclass
class Map:
    path: str
    layout: str = ""
    lines: list[Line] = field(default_factory=list)
    adam: dict[str, float] = field(default_factory=dict)  # beta1, beta2, eps

    def find(self, name: str) -> Line | None:
        return next((line for line in self.lines if line.object == name), None)

    def has_moments(self) -> bool:
        """Whether the critic's moments are wanted; then all lines about them must be there."""
        moments = any(line.object and line.object.startswith(("adam/m/", "adam/v/")) for line in self.lines)
        missing = [
            what
            for what, there in (
                ("adam = BETA1 BETA2 EPS", self.adam),
                ("adam/step = STEPS", self.find(STEP)),
                ("adam/m/NN_kind/ARRAY = NAME, adam/v/NN_kind/ARRAY = NAME", moments),
            )
            if not there
        ]
        if 0 < len(missing) < 3:
            fail(f"{self.path}: expected a line '{missing[0]}', since others are about Adam's moments")
        return moments

    def read_line(self, where: str, number: int, words: list[str]) -> None:
        """KEY = VALUE... or ignore NAME. where: of the line, for messages."""
        key, _, rest = " ".join(words).partition("=")
        key, values = key.strip(), rest.split()
        if len(words) == 2 and words[0] == "ignore":
            key, values = "", words[1:]
        elif len(key.split()) != 1 or not values or key == "layout" and len(values) > 1:
            fail(
                f"{where}: expected 'NN_kind/ARRAY = NAME', with a name for each critic if "
                "one has no wildcards, 'layout = torch', 'layout = flax' or 'ignore NAME'"
            )
        if key == "adam":
            try:
                self.adam = dict(zip(_ADAM, map(float, values)))
                known = len(values) == 3 and self.adam["eps"] != 0
                if not known or not all(0 <= x < 1 for x in self.adam.values()):
                    raise ValueError
            except ValueError:
                said = f"found '{' '.join(values)}'"
                fail(f"{where}: expected 'adam = BETA1 BETA2 EPS', such as 0.9 0.999 1e-8, {said}")
        elif key == "layout":
            if self.layout:
                fail(f"{where}: layout is given twice")
            if values[0] not in ("torch", "flax"):
                fail(f"{where}: layout: expected torch or flax, found '{values[0]}'")
            self.layout = values[0]
        else:
            for glob in values:
                if not valid_glob(glob):
                    fail(f"{where}: expected a name with at most {WILDCARDS} wildcards, found '{glob}'")
            earlier = self.find(key) if key else None
            if earlier:
                fail(
                    f"{where}: {key} has a second line; its first is line {earlier.number}, where "
                    "the names of all critics stand one behind the other"
                )
            self.lines.append(Line(number, key or None, values))


def read_text(path: str) -> str:
    """A text file of at most 1 MiB."""
    check_regular(path)
    with open(path, "rb") as file:
        data = file.read(_LONGEST_TEXT + 1)
    if len(data) > _LONGEST_TEXT:
        fail(f"{path}: expected a text of at most {_LONGEST_TEXT} bytes")
    if b"\0" in data:
        fail(f"{path}: expected a text, found a zero byte")
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")  # without a byte order mark


def read_map(path: str) -> Map:
    found = Map(path)
    for number, line in enumerate(read_text(path).split("\n"), 1):
        line = line.split("#")[0]
        length = length_of(line)
        if length > _LONGEST_LINE:
            fail(f"{path}:{number}: the line has {length} characters, expected at most {_LONGEST_LINE}")
        words = [word for word in _SPACES.split(line) if word]
        if words:
            found.read_line(f"{path}:{number}", number, words)
    if not found.layout:
        fail(
            f"{path}: expected a line 'layout = torch' (kernels [out, in], as PyTorch stores them) or "
            "'layout = flax' ([in, out]), found none"
        )
    return found


# --- a map applied to a file ---


@dataclass
class Object:
    """An array of the critic."""

    name: str  # "00_dense/kernel"
    shape: tuple[int, ...]
    state: bool  # a running statistic; else a parameter


@dataclass
class Found:
    """The sources of one array of the critic: one for each critic, in the order of their names, with what the
    wildcards stand for; or in the order of the line's several names, with their numbers."""

    object: Object
    line: Line | None  # None if the map has none for it
    sources: list[tuple[Stored, tuple[str, ...]]]

    def keys(self) -> list[str]:
        """The parts of the sources' names that are not the same in all of them: they tell critics apart."""
        parts = [stands_for for _, stands_for in self.sources]
        differ = [k for k, column in enumerate(zip(*parts)) if len(set(column)) > 1]
        return [",".join(mine[k] for k in differ) for mine in parts]


class Match:
    """A map applied to a file: the sources of each array that the file must have, and the arrays left over.
    The file must have running statistics if the map has a line for one of them, or if a layer needs them in
    training mode."""

    def __init__(self, map: Map, weights: Weights, objects: list[Object], needs_states: bool) -> None:
        self.map, self.weights = map, weights
        names = [o.name for o in objects]
        for line in map.lines:
            if line.object is not None and line.object not in [*names, STEP]:
                fail(
                    f"{map.path}:{line.number}: the description has no array {line.object}: expected one of "
                    + ", ".join(names)
                )
        states = needs_states or any(o.state and map.find(o.name) for o in objects)
        self.uses: dict[str, list[Line]] = {s.name: [] for s in weights.arrays}
        self.found = [
            Found(o, map.find(o.name), self._sources(map.find(o.name)))
            for o in objects
            if states or not o.state
        ]
        step = map.find(STEP)
        self.steps = self._sources(step) if step and not re.fullmatch("[0-9]+", step.glob) else []
        for line in map.lines:
            if line.object is None:
                self._sources(line)

    def _sources(self, line: Line | None) -> list[tuple[Stored, tuple[str, ...]]]:
        found: list[tuple[Stored, tuple[str, ...]]] = []
        if not line:
            return found
        for number, glob in enumerate(line.names, 1):
            matches = [(s, match_glob(glob, s.name)) for s in self.weights.arrays]
            sources = [(s, parts) for s, parts in matches if parts is not None]
            if len(line.names) > 1:
                sources = [(s, (f"name {number}",)) for s, _ in sources]
            found += sorted(sources, key=lambda source: (order_of(source[0].name), source[0].name))
        for stored, _ in found:
            self.uses[stored.name].append(line)
        return found

    def count_steps(self) -> int:
        """Adam's number of steps: a number in the map, or what all the arrays of its line hold."""
        line = self.map.find(STEP)
        assert line
        where, found = f"{self.map.path}:{line.number}: {STEP}", set()
        if re.fullmatch("[0-9]{1,15}", line.glob):
            found.add(float(line.glob))
        for s, _ in self.steps:
            found.update(self.weights.read_count(s).ravel().tolist())
        if len(found) != 1 or not min(found) >= 1 or min(found) % 1:
            text = ", ".join(f"{x:g}" for x in sorted(found)[:3]) or f"no array '{line.glob}'"
            fail(f"{where}: expected one number of steps from 1, found {text}")
        return int(min(found))

    def list_all(self) -> Iterator[tuple[str, str]]:
        """(how, what) for everything that is taken, ignored, unused, ambiguous or missing."""
        for found in self.found:
            shape = list(found.object.shape)
            turned = ", transposed" if len(found.object.shape) == 2 and self.map.layout == "torch" else ""
            for i, (s, _) in enumerate(found.sources, 1):
                how = turned + (", widened" if s.type in ("float16", "bfloat16") else "")
                what = f"{s.name} {s.describe()} -> {found.object.name} {shape}{how}"
                yield "taken", f"{what}, source {i} of {len(found.sources)}"
        for s, _ in self.steps:
            yield "taken", f"{s.name} {s.describe()} -> {STEP}"
        for s in self.weights.arrays:
            uses, what = self.uses[s.name], f"{s.name} {s.describe()}"
            if len(uses) > 1:
                numbers = f"lines {uses[0].number} and {uses[1].number} of {self.map.path} both match it"
                if uses[0] is uses[1]:
                    numbers = f"line {uses[0].number} of {self.map.path} has it twice"
                yield "ambiguous", f"{what}: {numbers}"
            elif not uses or uses[0].object is None:
                yield "ignored" if uses else "unused", what
        for found in self.found:
            what = f"{found.object.name} {list(found.object.shape)}"
            if not found.line:
                yield "missing", f"{what}: {self.map.path} has no line for it"
                continue
            for glob in found.line.names:
                if not any(match_glob(glob, s.name) is not None for s, _ in found.sources):
                    where = f"({self.map.path}:{found.line.number})"
                    yield "missing", f"{what}: no array matches '{glob}' {where}"
                    break
        for found in self.found:
            text = self._mismatch(found)
            if text:
                yield "ambiguous", f"{found.object.name}: {text}"

    def _mismatch(self, found: Found) -> str:
        """Every array must have as many sources as the first one, and the same parts of their names must tell
        them apart. Otherwise a kernel of one critic might meet a bias of another."""
        moments = found.object.name.startswith("adam/")  # which may have names of another form
        first = next(f for f in self.found if f.object.name.startswith("adam/") == moments)
        n = len(found.sources)
        several = len(found.line.names) if found.line else 1
        if 1 < several < n:
            return f"expected one array for each of {several} names, found {n}"
        if not n or not first.sources or not found.line or not first.line:
            return ""
        ours, theirs = found.line.glob, first.line.glob
        if 1 in (several, len(first.line.names)) and n > 1 and several != len(first.line.names):
            return f"expected names of all critics on each line, or wildcards on each, found '{ours}'"
        if n != len(first.sources):
            others = f"'{theirs}' of {first.object.name} matches {len(first.sources)}"
            return f"'{ours}' matches {n} arrays, but {others}"
        for i, (a, b) in enumerate(zip(first.keys(), found.keys()), 1):
            if a != b:
                return f"source {i} of '{ours}' is '{b}', but source {i} of '{theirs}' is '{a}'"
        return ""
