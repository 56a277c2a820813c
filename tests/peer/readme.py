"""The documentation against the programs: python3 readme.py PROGRAMS FOLDER

PROGRAMS is build/bin; FOLDER is an empty folder for the files of a small study. Five checks:

- every relative link in a Markdown file leads to a file and to a heading in it, and files and
  functions that are named exist; docs/README.md and mkdocs.yml name every page of docs;
- every option that --help prints, every setting and every task is named on its page;
- so is every dataset, attribute, JSON key and CSV column of the files that the programs write,
  and every layer, loss, key of [study], shipped study, plot and comparison;
- CITATION.cff and CHANGELOG.md know the version, and the README has at most 120 lines;
- the ```python and ```sh blocks of README.md, checkpoints/README.md and docs/*.md run as they stand,
  those of a page in their order in one folder. Other blocks (```console, ```text) are not run. PyTorch
  is that of $TORCH, python3 or /usr/bin/python3; without it the rest of a page is skipped, with a line.

A name counts as named where it stands in `code`. Of a statistic or a metric the name without its
suffix (_m30, _lower, ...) is enough."""

import csv
import json
import os
import re
import subprocess
import sys

import h5py

ANALYZER, FILES, SETTINGS, PLOTS, TESTS = [
    f"{folder}/README.md" for folder in ("analysis", "checkpoints", "configs", "plots", "tests")]
SUFFIXES = ("_m[0-9]+", "_se", "_state", "_lower", "_upper", "_low", "_high", "_least", "_most",
            "_[0-9][0-9]", "_xqc")
STUDY = """[study]
env = pendulum-swingup
architectures = bn+wn+ce dense+mse
seeds = 0
steps = 400
[train]
hidden = 8
depth = 1
actor_hidden = 8
actor_depth = 1
atoms = 11
batch = 16
random_steps = 20
replay = 1000
checkpoints = 2
evaluations = 2
eval_episodes = 1
analysis_minibatches = 2
threads = 1
[analyze]
order = 40
probes = 2
start = gradient
[analyze xqc]
compat = xqc
order = 20
"""

failures = []


def fail(message):
    if message not in failures:
        failures.append(message)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# --- links ---

def anchors(path):
    """GitHub's names of the headings of a page."""
    text = re.sub(r"(?ms)^```.*?^```", "", read(path))
    titles = re.findall(r"(?m)^#+ +(.*)$", text)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links(pages):
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
            if not os.path.exists(path):
                fail(f"{page}: link to {target}: no such file")
            elif anchor and anchor not in anchors(path):
                fail(f"{page}: link to {target}: no such heading")


def check_paths(pages):
    """Files of this repository that stand in `code`, by their path from its root or the page."""
    for page in pages:
        near = os.path.dirname(page)
        for path in re.findall(r"`([\w./-]+/[\w.-]+\.(?:c|h|sh|py|gp|study|txt))`", read(page)):
            first = path.split("/")[0]
            if os.path.basename(path).split(".")[0].isupper():
                continue  # a placeholder: src/layers/NAME.c
            if not (os.path.isdir(first) or os.path.isdir(os.path.join(near, first))):
                continue
            if not (os.path.exists(path) or os.path.exists(os.path.join(near, path))):
                fail(f"{page}: {path}: no such file")


def check_functions(pages):
    """Functions that stand in `code`; in sources some have a suffix for the precision."""
    for page in pages:
        for name in sorted(set(re.findall(r"`((?:ks|net|loss)_[a-z_0-9]+)`", read(page)))):
            if subprocess.run(["git", "grep", "-qw", name, "--", "*.c"], check=False).returncode:
                fail(f"{page}: {name}: no such name in the sources")


def check_lists(pages):
    """Every page of docs is in its list, and every page that the website's navigation has exists."""
    for page in pages:
        if page.startswith("docs/") and page != "docs/README.md":
            for where, name in (("docs/README.md", f"({page[5:]})"), ("mkdocs.yml", f" {page}\n")):
                if name not in read(where):
                    fail(f"{where}: {page} is not named")
    for page in re.findall(r": (\S+\.md)\n", read("mkdocs.yml")):
        if page not in pages:
            fail(f"mkdocs.yml: {page}: no such page")


def check_version():
    version = read("src/VERSION").strip()
    if f"\nversion: {version}\n" not in read("CITATION.cff"):
        fail(f"CITATION.cff: expected version {version}")
    if f"\n## {version}\n" not in read("CHANGELOG.md"):
        fail(f"CHANGELOG.md: expected a section {version}")
    if len(read("README.md").splitlines()) > 120:
        fail("README.md: expected at most 120 lines")


# --- names ---

named = {}      # the words in code of a page
missing = set()  # pairs of a page and a name


def is_named(page, name):
    if page not in named:
        code = re.findall(r"(?ms)^```.*?^```|^    [^\n]*|`[^`\n]+`", read(page))
        words = re.findall(r"--[a-z-]+|\w[\w.+-]*", "\n".join(code))
        named[page] = {word.rstrip(".-") for word in words}
    return name in named[page]


def check_names(page, what, names):
    for name in sorted(set(names)):
        if (page, name) in missing:
            continue
        found = name
        while not is_named(page, found):
            shorter = next((found[:m.start()] for m in (re.search(s + "$", found) for s in SUFFIXES)
                            if m), None)
            if not shorter:
                shorter = re.sub("^(critic|actor)_", "", found)
            if shorter == found:
                fail(f"{page}: {what} {name} is not named")
                missing.add((page, name))
                break
            found = shorter


def check_options(programs):
    for program, page in (("train", SETTINGS), ("analyze", ANALYZER), ("study", SETTINGS),
                          ("plot", PLOTS), ("scores", PLOTS), ("import", FILES), ("inspect", FILES),
                          ("audit", ANALYZER)):
        text = run([f"{programs}/kappascope", program, "--help"])
        common, own = text.split("Options:")
        for where, part in (("docs/README.md", common), (page, own.split("\n\n")[0])):
            check_names(where, f"option of {program}",
                        re.findall(r"(?m)^ +(?:-\w, +)?(--[a-z-]+)", part))
    text = run([f"{programs}/kappascope-train", "--list"])
    tasks, architectures, systems, settings = text.split("\n\n")
    for what, part in (("task", tasks), ("setting", settings)):
        check_names(SETTINGS, what, re.findall(r"(?m)^  (\S+)", part))
    check_names(SETTINGS, "architecture", architectures.split()[1:])
    check_names(SETTINGS, "system", systems.split()[1:])


def check_sources():
    """Attributes that no file here has, layers and arrays that no critic here has, keys of
    [study], and files."""
    for folder, page, pattern in (
            ("src/train", FILES, r'ks_attribute_add_\w+\(\s*\w+,\s*"(\w+)"'),
            ("analysis/pipeline", FILES, r'ks_attribute_add_\w+\(\s*[\w>&-]+,\s*"(\w+)"'),
            ("src/study", SETTINGS, r'\{"(\w+)", set_\w+'),
            ("src/layers", SETTINGS, r'\.name = "(\w+)"'),
            ("src/net", SETTINGS, r'\.name = "(\w+)"')):
        names = [name for source in sorted(os.listdir(folder)) if source.endswith(".c")
                 for name in re.findall(pattern, read(f"{folder}/{source}"))]
        if not names:
            fail(f"{folder}: expected names in its sources, found none")
        check_names(page, f"name in {folder}", names)
    for folder, page, ending in (("configs", SETTINGS, ".study"), ("plots", PLOTS, ".gp"),
                                 ("tests/peer", TESTS, ".sh")):
        files = [name for name in os.listdir(folder) if name.endswith(ending)]
        if not files:
            fail(f"{folder}: expected files, found none")
        check_names(page, f"file in {folder}", [f.removesuffix(".study") for f in files])


def check_file(path):
    with h5py.File(path) as file:
        check_names(FILES, f"{path}: attribute", file.attrs)

        def visit(name, item):
            words = [w for w in name.split("/") if not re.match("[0-9][0-9]_", w)]
            check_names(FILES, f"{path}: object", words)
            page = {"summary": ANALYZER, "settings": SETTINGS}.get(name, FILES)
            check_names(page, f"{path}: attribute of {name}", item.attrs)

        file.visititems(visit)


def check_keys(path):
    keys = json.loads(read(path))
    check_names(FILES, f"{path}: key", keys)
    check_names(FILES, f"{path}: key of versions", keys["versions"])
    check_names(SETTINGS, f"{path}: key of settings", keys["settings"])


def check_columns(path):
    with open(path, encoding="utf-8", newline="") as file:
        columns = next(csv.reader(file))
    statistics = [c for c in columns if os.path.basename(path) == "checkpoints.csv"
                  and columns.index(c) > columns.index("blas_kernel")]
    check_names(ANALYZER, f"{path}: column", statistics)
    check_names(FILES, f"{path}: column", [c for c in columns if c not in statistics])


def check_output(text):
    """What --layers --json and --json print."""
    keys = json.loads(text)
    rows = keys.pop("layers", [{}])
    check_names(ANALYZER, "key in JSON", list(keys) + list(rows[0]))


# --- running ---

def run(command, folder=None, environment=None):
    done = subprocess.run(command, cwd=folder, env=environment, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)[:300]}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def check_outputs(programs, folder):
    with open(f"{folder}/small.study", "w", encoding="utf-8") as file:
        file.write(STUDY)
    run([f"{programs}/kappascope-study", f"{folder}/small.study", "--out", f"{folder}/study",
         "--quiet"])
    checkpoint = f"{folder}/study/runs/pendulum-swingup/bn+wn+ce/seed0/step_000000400.h5"
    analyze = [f"{programs}/kappascope-analyze", "--quiet", checkpoint]
    check_output(run(analyze + ["--json", "--out", folder]))
    check_output(run(analyze + ["--json", "--layers", "--probes", "2"]))
    check_columns_of_text(run(analyze + ["--csv", "--layers"]))
    run(analyze + ["--exact", "--name", "exact", "--out", folder])
    run(analyze + ["--gradient", f"{folder}/g.h5"])
    run(analyze + ["--apply", f"{folder}/g.h5", "--output", f"{folder}/hg.h5"])
    for place, _, names in sorted(os.walk(folder)):
        for path in sorted(os.path.join(place, name) for name in names):
            check = {".h5": check_file, ".json": check_keys, ".csv": check_columns}.get(
                os.path.splitext(path)[1])
            if check:
                check(path)


def check_columns_of_text(text):
    check_names(ANALYZER, "column of --layers --csv", text.splitlines()[0].split(","))


# What a reader of README.md has before its examples (critics, an optimizer, minibatches), and what is
# true after them.
BEFORE = """import torch
class Critic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 1)
    def forward(self, obs, actions):
        return self.head(torch.cat([obs, actions], -1)).squeeze(-1)
qf1, qf2 = Critic(), Critic()
q_optimizer = torch.optim.Adam([p for q in (qf1, qf2) for p in q.parameters()], lr=1e-3)
obs, actions, targets = torch.randn(8, 32, 3), torch.randn(8, 32, 1), torch.randn(8, 32)
mean_return = 1.0
def draw():
    return obs, actions, targets
def save(path, step, rows):
    kappascope.save(path, [qf1, qf2], rows[:2], rows[2], loss=torch.nn.functional.mse_loss)
"""
AFTER = """
assert run.checkpoints() == [1000, 2000, 3000]
"""


def find_torch():
    """A Python with PyTorch and h5py, or None."""
    for python in os.environ.get("TORCH", "python3 /usr/bin/python3").split():
        command = [python, "-c", "import torch, h5py"]
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def examples(page):
    blocks = re.findall(r"(?ms)^```(python|sh)\n(.*?)^```", read(page))
    if page == "README.md":  # one program
        return [("python", BEFORE + "".join(block for _, block in blocks) + AFTER)]
    return blocks


def run_examples(programs, folder, page, torch):
    os.makedirs(folder)
    if page in ("README.md", FILES) and not examples(page):
        fail(f"{page}: expected examples in python or sh, found none")
    paths = os.path.abspath(programs) + os.pathsep + os.environ["PATH"]
    environment = os.environ | {"PATH": paths, "PYTHONPATH": os.path.abspath("analysis/python")}
    for kind, block in examples(page):
        command = ["sh", "-ec"] if kind == "sh" else [sys.executable, "-c"]
        if kind == "python" and re.search("(?m)^import torch$", block):
            if not torch:
                print(f"{page}: skipped from here on: no Python has PyTorch and h5py (set TORCH)")
                return
            command = [torch, "-c"]
        run(command + [block], folder, environment)


def main():
    programs, folder = sys.argv[1:]
    pages = run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]).split()
    check_links(pages)
    check_paths(pages)
    check_lists(pages)
    check_version()
    check_functions(pages)
    check_options(programs)
    check_sources()
    check_outputs(programs, folder)
    torch = find_torch()
    for page in pages:
        if page in ("README.md", FILES) or page.startswith("docs/"):
            run_examples(programs, f"{folder}/examples/{page}", page, torch)
    for line in failures:
        print(line)
    sys.exit(f"{len(failures)} names or links are missing" if failures else 0)


main()
