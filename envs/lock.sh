#!/usr/bin/env bash
# Write the locks anew from an environment in which the tests pass; `uv` must be installed, it finds the hashes:
#     bash envs/lock.sh .venv/bin/python
# cpu.txt is packages.txt, torch.txt and FAISS for CPUs; gpu.txt is packages.txt, torch.txt, cuda.txt and FAISS for GPUs.
set -euo pipefail
python=${1:?usage: bash envs/lock.sh PYTHON}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

# Requirements with the digests of all their files: those of every Python and platform.
hashed() { uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 "$@"; }
names() { sed -n 's/^\([A-Za-z0-9._-]*\)==.*/\1/p' "$@" | tr '[:upper:]_.' '[:lower:]--'; }
# The blocks of a lock whose package is (or, with -v, is not) one of the names on standard input.
blocks() { awk -v invert="${2:-}" 'NR == FNR { wanted[$1]; next } /^[A-Za-z0-9]/ { split($0, part, "=="); name = tolower(part[1]);
    gsub(/[_.]/, "-", name); keep = (name in wanted) != (invert == "-v") } keep' - "$1"; }

# pip is the installer and this project is not a dependency; local suffixes such as +cpu name one builder's wheels.
"$python" -m pip --disable-pip-version-check freeze --all --exclude pip --exclude wheel --exclude-editable |
    grep -v '^#' | sed 's/+[a-z0-9.]*$//' | LC_ALL=C sort -f >"$work/frozen"
hashed --no-deps "$work/frozen" >"$work/all"

# PyTorch's builds for CPUs are not on PyPI: the digest of the one that pip takes here stands with the others.
grep '^torch==' "$work/frozen" >"$work/torch"
"$python" -m pip --disable-pip-version-check download --quiet --no-deps --dest "$work/wheel" --requirement "$work/torch"
digest=$(sha256sum "$work"/wheel/torch-*.whl | cut -d ' ' -f 1)
grep -q "$digest" "$work/all" || sed -i "s/^torch==.*/&\n    --hash=sha256:$digest \\\\/" "$work/all"

linux() { hashed --python-platform x86_64-manylinux_2_28 "$1"; }
linux "$work/torch" >"$work/torch.all"
sed -n 's/^faiss.cpu==/faiss-gpu==/p' "$work/frozen" >"$work/faiss" # the same version; one module's name, so never both
linux "$work/faiss" >"$work/faiss.all"
# What is built where there is no wheel, with the versions of the environment where that has them.
printf '%s\n' setuptools setuptools-scm wheel >"$work/build"
hashed --constraint "$work/frozen" "$work/build" >"$work/build.all"

{
    echo "# Every package but PyTorch and FAISS, for Python 3.11 to 3.14; made by envs/lock.sh."
    printf '%s\n' torch faiss-cpu | blocks "$work/all" -v
} >"$here/packages.txt"
{
    echo "# PyTorch, in PyPI's builds and in the one for CPUs; made by envs/lock.sh."
    echo torch | blocks "$work/all"
} >"$here/torch.txt"
{
    echo "# A CPU environment; made by envs/lock.sh."
    printf -- '--requirement %s\n' packages.txt torch.txt
    echo faiss-cpu | blocks "$work/all"
} >"$here/cpu.txt"
{
    echo "# What PyTorch's CUDA build, which is PyPI's on Linux, needs beside; made by envs/lock.sh."
    names "$work/all" | blocks "$work/torch.all" -v
} >"$here/cuda.txt"
{
    echo "# A GPU environment: cpu.txt with another build of FAISS, and CUDA; made by envs/lock.sh."
    printf -- '--requirement %s\n' packages.txt torch.txt cuda.txt
    names "$work/all" | blocks "$work/faiss.all" -v
} >"$here/gpu.txt"
{
    echo "# What packages without a wheel are built with; made by envs/lock.sh."
    cat "$work/build.all"
} >"$here/build.txt"
sed -i "s/^# locks: .*/# locks: $(cat "$here"/{packages,torch,cuda,cpu,gpu,build}.txt | sha256sum | cut -c 1-16)/" "$here/environment.post-deploy.sh"
{
    echo "# The programs of tools.in; made by envs/lock.sh."
    hashed --universal --python-version 3.11 "$here/tools.in"
} >"$here/tools.txt"
