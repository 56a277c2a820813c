#!/bin/sh
# Usage: tests/peer/report.sh [DIR]
#
# Trains a tiny study of the twelve architectures, with text in its files that a page must not take for HTML,
# and checks its report in a headless browser at the widths of a desktop and a phone, in light and in dark
# (report.py, browser.py), and the page of an audit of one of its critics. With DIR the report of that study's folder
# is checked instead. Pictures of the
# page are in build/peer/report/.
#
# Environment: BUILD (build), PYTHON, one with websocket-client (default: python3 or Debian's, with
# python3-websocket). Needs chromium-headless-shell or chromium.
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
folder=$build/peer/report

# A comment of the study, a run.json and the name of a table, as an attacker would write them.
attack='</pre></script><script>window.injected = 1</script><img src=x onerror="window.injected = 2">'
write_study() {
    cat <<END
; $attack & 'single' "double"
[study]
env = cartpole-swingup
architectures = all
seeds = 0..1
steps = 600

[train]
hidden = 16
actor_hidden = 16
depth = 1
actor_depth = 1
batch = 16
random_steps = 100
replay = 1000
checkpoints = 5
evaluations = 2
eval_episodes = 1
analysis_minibatches = 2
threads = 1

[analyze]
order = 10
start = gradient

[analyze xqc]
compat = xqc
order = 10
END
}

make_study() {
    rm -rf "$folder"
    mkdir -p "$folder"
    write_study >"$folder/tiny.study"
    "$build/bin/kappascope" study --quiet --out "$folder/study" "$folder/tiny.study" >"$folder/study.txt" 2>&1
    "$python" - "$folder/study/runs/cartpole-swingup/ln+mse/seed1/run.json" "$attack" <<'END'
import json, sys
run = json.load(open(sys.argv[1]))
run["processor"] = sys.argv[2] + "\u2028 \\ '"
run["changes"] = [{"what": sys.argv[2], "env_step": 1, "from": 1, "to": "'\""}]
json.dump(run, open(sys.argv[1], "w"))
END
    cp "$folder/study/tables/mass.csv" "$folder/study/tables/a<b>&'c' \"d\" #%.csv"
    "$build/bin/kappascope" plot --quiet --resamples 200 "$folder/study" >"$folder/plot.txt" 2>&1
}

# The page of an audit, of a file with a name that a page must not take for HTML, against the study.
make_audit() {
    named="$folder/a<img src=x onerror=window.injected=3>.h5"
    cp "$folder/study/runs/cartpole-swingup/ln+mse/seed0/step_000000600.h5" "$named"
    "$build/bin/kappascope" audit --quiet --order 10 --layer-order 5 --against "$folder/study" -o "$folder/audit.html" \
        "$named" >"$folder/audit.txt"
}

find_python websocket python3-websocket
study=${1:-$folder/study}
if [ $# -eq 0 ]; then
    build_here programs
    make_study
    make_audit
    set -- "$study" "$folder/audit.html"
fi
mkdir -p "$folder/pictures"
PYTHONDONTWRITEBYTECODE=1 "$python" tests/peer/report.py "$study" "$folder/pictures" ${2:+"$2"}
