#!/usr/bin/env bash
# install.sh PYTHON: make .venv-sglang in this checkout, with SGLang's scheduler on a CPU and this stepscope.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=.venv-sglang/bin
has() { "$bin/python" -c "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))" "$@"; }

if [ -x $bin/python ] && has sglang torch torchvision vllm pytest stepscope; then
	echo ".venv-sglang is there"
	exit 0
fi
began=$(date +%s)
"${1:-python3}" -m venv .venv-sglang
pip() { "$bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
# TORCH_INDEX=https://download.pytorch.org/whl/cpu spares gigabytes of CUDA, where it can be reached.
pip torch==2.13.0 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
# Its own requirements are those of a GPU.
pip --no-deps sglang==0.5.23 triton dill
echo "torch==2.13.0" > .venv-sglang/constraints.txt
pip --constraint .venv-sglang/constraints.txt --requirement tests/sglang/requirements.txt
pip --no-deps --require-hashes --requirement requirements.lock
PYTHONWARNINGS=ignore pip --no-deps --editable .
# SGLang imports torchvision, which it uses for images alone, and takes one kernel of vLLM's on a CPU.
site=$("$bin/python" -c 'import site; print(site.getsitepackages()[0])')
for package in torchvision vllm; do cp -r "tests/sglang/stand_in_$package" "$site/$package"; done
echo "made .venv-sglang in $(($(date +%s) - began)) s"
