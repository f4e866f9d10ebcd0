# Everything a newcomer needs: Python 3.11+ and make. Each target creates .venv when it is missing.

PYTHON ?= python3
BIN := .venv/bin
DEMO := out/demo

.PHONY: demo test check bench samples clean

demo: .venv/run.stamp  ## record both scenarios, check them, say what to open next
	$(BIN)/python -m stepscope.app.demo $(DEMO)

test: .venv/dev.stamp  ## every test; the web ones need Debian's chromium, and say so where it is missing
	$(BIN)/python -m pytest -n auto

check: .venv/dev.stamp  ## format, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.stamp  ## print what recording, drawing and checking cost on this machine
	$(BIN)/python -m tests.bench

samples: .venv/dev.stamp  ## make sample_traces/ again
	$(BIN)/python sample_traces/make.py

clean:
	rm -rf .venv out build dist

.venv/run.stamp: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "stepscope needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv/dev.stamp: .venv/run.stamp requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@touch $@
