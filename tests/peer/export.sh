#!/bin/sh
# Usage: tests/peer/export.sh
#
# Checks the package analysis/python/kappascope with PyTorch and Flax: exports critics from both, those of
# seven and of five published agents among them, and compares gradients and Hessian-vector products with the
# frameworks' own (export_torch.py, export_forms.py, export_heads.py, export_flax.py, export_flax_trees.py);
# expects what is wrong to be refused (export_refusals.py, export_heads.py, export_flax.py), eigenvectors to
# be PyTorch's or JAX's (export_vectors.py, export_vectors_flax.py), and wrappers to change nothing
# (export_wrappers.py); runs the examples of analysis/export/README.md. Compares the calls of optax in
# analysis/LOSSES.md (losses_optax.py).
#
# Environment: TORCH, PYTHON, BUILD, as for tests/bench/peer/run.sh.
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
folder=$build/peer/export
# One thread; and JAX compiles each of these small programs once, to run it a few times.
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 JAX_DISABLE_MOST_OPTIMIZATIONS=1 JAX_PLATFORMS=cpu
export PYTHONPATH="$PWD/analysis/python:$PWD/analysis/export:$PWD/tests/peer"

# The blocks of the README as they stand: the examples, each with the Python that has its framework.
examples() {
    mkdir "$folder/examples"
    "$torch" - "$folder/examples" <<'END'
import re, sys
text = open("analysis/export/README.md", encoding="utf-8").read()
for number, (kind, block) in enumerate(re.findall(r"(?ms)^```(python|sh)\n(.*?)^```", text)):
    kind = "flax.py" if "import flax" in block else "torch.py" if kind == "python" else kind
    open(f"{sys.argv[1]}/{number}.{kind}", "w", encoding="utf-8").write(block)
END
    programs=$(cd "$build/bin" && pwd) jax_python=$(cd "$environment/bin" && pwd)/python
    (
        cd "$folder/examples"
        export PATH="$programs:$PATH"
        for block in *; do
            case $block in
            *.torch.py) "$torch" "$block" ;;
            *.flax.py) "$jax_python" "$block" && kappascope analyze --quiet flax.h5 ;;
            *) sh "$block" ;;
            esac || die "analysis/export/README.md: example $block failed"
        done
    )
}

. tests/bench/peer/frameworks.sh
find_torch || install_torch
install_flax
build_here programs
KAPPASCOPE_PROGRAMS=$(cd "$build/bin" && pwd) # beside which the package finds the library
export KAPPASCOPE_PROGRAMS
rm -rf "$folder"
mkdir -p "$folder"
for script in torch forms heads wrappers vectors refusals; do
    "$torch" "tests/peer/export_$script.py" "$build/bin/kappascope-analyze" "$folder"
done
for script in export_flax export_flax_trees export_vectors_flax losses_optax; do
    "$environment/bin/python" "tests/peer/$script.py" "$build/bin/kappascope-analyze" "$folder"
done
examples
