#!/usr/bin/env bash
# Run the demo under each Python that is here, each in its own clone and environment, and compare the tables byte
# by byte; one that is not here is skipped by name:
#     bash envs/check_demo.sh python3.11 python3.12 python3.13
set -euo pipefail
clone=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
for python in "${@:?usage: bash envs/check_demo.sh PYTHON...}"; do
    "$python" -c '' 2>/dev/null || { echo "$python is not here: skipped" && continue; }
    git clone --quiet "$clone" "$work/demo"
    make --directory "$work/demo" demo PYTHON="$python" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
    mv "$work/demo/results/tables/table1.csv" "$work/${python##*/}.csv"
    rm -rf "$work/demo"
    first=${first:-$work/${python##*/}.csv}
    cmp "$first" "$work/${python##*/}.csv"
    echo "$("$python" --version): table1.csv is $(sha256sum <"$work/${python##*/}.csv" | cut -c 1-16)"
done
: "${first:?none of these is here}"
