# Everything a newcomer needs: Python 3.11+ and make. Each target creates .venv when it is missing.

PYTHON ?= python3
BIN := .venv/bin
VLLM := .venv-vllm/bin/python
SGLANG := .venv-sglang/bin/python
DEMO := out/demo
PAGE := tests/app/web/scripts
CLIENT := tests/app/dap/client
ASSISTANT := tests/app/mcp/client

FUZZ_SECONDS ?= 300

# Bytecode is cached even where the environment turns that off: without it each process that a test
# starts compiles the product again, and each worker the tests. `make test` asks Polars for its engine
# in memory, on one thread a worker: traces of tests are small. `make test-all` takes the defaults.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto --durations=10

.PHONY: demo test test-all test-vllm test-sglang check bench bench-vllm bench-sglang fuzz sanitize matrix replays exact random mutants samples screenshots gallery docs clean

demo: .venv/run.stamp  ## record both scenarios, check them, say what to open next
	rm -rf $(DEMO)
	$(BIN)/stepscope record mix-admission --variant all -o $(DEMO)/mix-admission
	$(BIN)/stepscope record fcfs-preemption --variant all -o $(DEMO)/fcfs-preemption
	$(BIN)/stepscope check --fail-on never $(DEMO)/mix-admission/before.trace $(DEMO)/mix-admission/after.trace \
		$(DEMO)/fcfs-preemption/before.trace $(DEMO)/fcfs-preemption/after.trace
	$(BIN)/stepscope check --fail-on never sample_traces/torch_profiler_cpu.json.gz
	@echo
	@echo "Open next:"
	@echo "  $(BIN)/stepscope tui $(DEMO)/mix-admission/before.trace     in this terminal; n jumps to a finding"
	@echo "  $(BIN)/stepscope web $(DEMO)/fcfs-preemption/before.trace   in a browser"
	@echo "  $(BIN)/stepscope explain COR001                             what a finding means"

test: .venv/dev.stamp  ## the tests that protect every change; the web ones need Debian's chromium, and say so where it is missing
	POLARS_ENGINE_AFFINITY=in-memory POLARS_MAX_THREADS=1 $(PYTEST) -m "not slow"

test-all: .venv/dev.stamp  ## these, the slow sweeps, and new examples of properties, as every night and before a release
	STEPSCOPE_HYPOTHESIS_RANDOM=1 $(PYTEST)

test-vllm: .venv-vllm/ready.stamp  ## record a whole vLLM on a CPU, and hold every step against its own scheduler
	$(VLLM) -m pytest -p no:cacheprovider -p no:dash -q --durations=10 tests/vllm

test-sglang: .venv-sglang/ready.stamp  ## record SGLang's own event loop on a CPU, and hold every step against its scheduler
	$(SGLANG) -m pytest -p no:cacheprovider -p no:dash -q --durations=5 tests/sglang

check: .venv/dev.stamp .venv/node.stamp  ## format, lint, types, import contract; the page's scripts where node is there
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if test -d $(PAGE)/node_modules; then \
		$(PAGE)/node_modules/.bin/tsc --project $(PAGE) && \
		$(PAGE)/node_modules/.bin/eslint --config $(PAGE)/eslint.config.js app/web/assets app/web/report/assets app/web/start/assets; \
	else echo "SKIPPED: the page's scripts were not checked; install node and npm, and run: rm .venv/node.stamp"; fi

bench: .venv/dev.stamp  ## print what recording, drawing and checking cost on this machine
	$(BIN)/python -m tests.bench

bench-vllm: .venv-vllm/ready.stamp  ## print what recording costs a vLLM on this machine, with and without in turn
	$(VLLM) -m tests.vllm.costs.bench

bench-sglang: .venv-sglang/ready.stamp  ## print what recording costs a scheduler of SGLang, with and without in turn
	$(SGLANG) -m tests.sglang.bench

fuzz: .venv/dev.stamp  ## feed every reader with what nobody wrote; FUZZ_SECONDS=300 for each
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)
	$(BIN)/python -m tests.fuzz.differential --sanitize --seconds $(FUZZ_SECONDS)

sanitize: .venv/dev.stamp  ## run the tests of the pass in C with address and undefined-behaviour sanitizers
	$(BIN)/python -m tests.fuzz.sanitizers
	$(BIN)/python -m tests.fuzz.differential --sanitize --windows 5000

matrix: .venv/dev.stamp  ## print every fault of the engine against every rule
	$(BIN)/python -m tests.matrix

replays: .venv/dev.stamp  ## record every variant and fault of the engine, and run each again: the same bytes
	$(BIN)/python -m tests.replays

exact: .venv/dev.stamp  ## record every variant, executor and fault, and compare the state at each step, change and instant with the engine's, killed runs included
	$(BIN)/python -m tests.app.debug.exact
	$(BIN)/python -m tests.app.debug.verifying.every_change
	$(BIN)/python -m tests.app.debug.verifying.every_instant
	$(BIN)/python -m tests.app.debug.verifying.killing

random: .venv/dev.stamp  ## draw settings and jobs that no test uses, and count again what is said of them
	$(BIN)/python -m tests.random_configurations
	$(BIN)/python -m tests.random_configurations --faults
	$(BIN)/python -m tests.ingest.derive.collectives.random_jobs

mutants: .venv/dev.stamp  ## print which of 60 random changes of the product make test lets live
	$(BIN)/python -m tests.mutants

samples: .venv/dev.stamp  ## make sample_traces/ again
	$(BIN)/python sample_traces/make.py

screenshots: .venv/dev.stamp  ## take the README's pictures again
	$(BIN)/python -m tests.docs.pictures.screenshots

gallery: .venv/dev.stamp  ## record the five reports, and take the pictures of docs/gallery.md again
	$(BIN)/python -m tests.docs.gallery

docs: .venv/dev.stamp  ## write again the pages that are made from code, record the gallery's reports, build the site in out/site
	$(BIN)/python -m tests.docs.rule_pages
	$(BIN)/python -m tests.pages
	$(BIN)/python -m tests.docs.site

clean:
	rm -rf .venv out build dist

.venv/run.stamp: requirements.lock pyproject.toml $(wildcard ingest/readers/chrome/_*.[ch] app/timeline/spans/_*.c)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "stepscope needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

.venv-vllm/ready.stamp: tests/vllm/install.sh tests/vllm/requirements.txt
	bash tests/vllm/install.sh $(PYTHON)
	@touch $@

.venv-sglang/ready.stamp: tests/sglang/install.sh tests/sglang/requirements.txt
	bash tests/sglang/install.sh $(PYTHON)
	@touch $@

# npm_ci: the oldest node that does, the folder of the packages, what they do
define npm_ci
node -e 'process.exit(parseInt(process.versions.node) < $(1) ? 1 : 0)' 2>/dev/null && \
	npm ci --silent --no-audit --no-fund --prefix $(2) || \
	echo "node $(1) or newer is not there, or npm could not install what $(3)"
endef

.venv/node.stamp: $(PAGE)/package-lock.json $(CLIENT)/package-lock.json $(ASSISTANT)/package-lock.json
	@mkdir -p .venv
	@$(call npm_ci,20,$(PAGE),checks the page's scripts)
	@$(call npm_ci,18,$(CLIENT),drives the debug adapter in tests)
	@$(call npm_ci,18,$(ASSISTANT),asks the server for assistants in tests)
	@touch $@

.venv/dev.stamp: .venv/run.stamp requirements-dev.lock requirements-torch.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.lock
	@touch $@
