"""A notebook against its stored outputs: python3 notebook.py NOTEBOOK [write]

Executes it from the first cell to the last one. Fails if a cell raises or draws no plot where it did, or if what is
printed differs from what is stored: words at all, numbers by more than 1% and one unit of the last digit. Numbers
below 1e-9 are rounding errors and not compared, nor is standard error. Also checks that links lead to files. With
`write` the outputs are stored, in place of the former ones."""

import html
import os
import re
import sys

import nbclient
import nbformat

NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?"
failures = []


def unit(number):
    """One unit of the last digit of a printed number."""
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def near(old, new):
    a, b = float(old.replace(",", "")), float(new.replace(",", ""))
    return max(abs(a), abs(b)) < 1e-9 or abs(a - b) <= max(0.01 * abs(a), 1.001 * max(unit(old), unit(new)))


def compare(where, old, new):
    if re.sub(NUMBER, "#", old).split() != re.sub(NUMBER, "#", new).split():
        failures.append(f"{where}: expected\n{old}\nfound\n{new}")
    else:
        for a, b in zip(re.findall(NUMBER, old), re.findall(NUMBER, new)):
            if not near(a, b):
                failures.append(f"{where}: expected {a}, found {b}")


def texts(cell):
    """What a cell shows, by its kind; a picture counts as a word."""
    shown = {}
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            shown[output.name] = shown.get(output.name, "") + output.text
        for kind, data in output.get("data", {}).items():
            text = "picture" if kind.startswith("image/") else html.unescape(re.sub("<[^>]*>", " ", "".join(data)))
            shown[kind] = shown.get(kind, "") + text + "\n"
    sys.stderr.write(shown.pop("stderr", ""))
    return shown


def check_links(path, notebook):
    for cell in notebook.cells:
        for target in re.findall(r"\]\(([^)\s#]+)", cell.source if cell.cell_type == "markdown" else ""):
            if not re.match("[a-z]+:", target) and not os.path.exists(os.path.join(os.path.dirname(path), target)):
                failures.append(f"link to {target}: no such file")


def tidy(notebook):
    """Nothing of the machine or the time is stored; what was printed in parts is one text."""
    notebook.metadata = {key: notebook.metadata[key] for key in ("kernelspec", "language_info")}
    notebook.metadata.language_info = {"name": "python"}
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = {}, f"cell-{number}"
        if cell.cell_type == "code":
            streams = [output for output in cell.outputs if output.output_type == "stream" and output.name == "stdout"]
            others = [output for output in cell.outputs if output.output_type != "stream"]
            for output in streams[1:]:
                streams[0].text += output.text
            cell.outputs = streams[:1] + others


def main():
    path = sys.argv[1]
    stored, notebook = nbformat.read(path, 4), nbformat.read(path, 4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    check_links(path, notebook)
    tidy(notebook)
    if sys.argv[2:] == ["write"]:
        nbformat.write(notebook, path)
    else:
        for number, (old, new) in enumerate(zip(stored.cells, notebook.cells)):
            before, after = texts(old), texts(new)
            if before.keys() != after.keys():
                failures.append(f"cell {number}: expected {sorted(before)}, found {sorted(after)}")
            for kind in before.keys() & after.keys():
                compare(f"cell {number}, {kind}", before[kind], after[kind])
        if stored.metadata != notebook.metadata or any(cell.metadata for cell in stored.cells):
            failures.append("metadata: expected those of `notebook.sh write`")
    for line in failures:
        print(line)
    sys.exit(f"{path}: {len(failures)} differences" if failures else 0)


main()
