#!/usr/bin/env bash
# Write cpu.txt and gpu.txt anew from an environment in which the tests pass: bash envs/lock.sh .venv/bin/python
set -euo pipefail
python=${1:?usage: bash envs/lock.sh PYTHON}
here=$(cd "$(dirname "$0")" && pwd)
faiss_gpu=faiss-gpu-cu12==1.14.1.post1 # the newest; it shares its module's name with faiss-cpu, so never both

# pip is the installer and this project is not a dependency; local suffixes such as +cpu name one builder's wheels.
packages=$("$python" -m pip --disable-pip-version-check freeze --all --exclude pip --exclude wheel --exclude-editable |
    grep -v '^#' | sed 's/+[a-z0-9.]*$//' | LC_ALL=C sort -f)
{
    echo "# Every package of a CPU environment, for Python 3.11; made by envs/lock.sh."
    echo "# PyPI's torch brings CUDA libraries along; PyTorch's own CPU index (--extra-index-url) has a smaller build."
    echo "$packages"
} >"$here/cpu.txt"
{
    echo "# cpu.txt with FAISS for GPUs instead of its CPU build; made by envs/lock.sh."
    sed "/^#/d; s/^faiss-cpu==.*/$faiss_gpu/" "$here/cpu.txt"
} >"$here/gpu.txt"
