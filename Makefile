# All targets use a local environment, .venv, which is created on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs

.PHONY: demo test lint types check benchmark compare peers results docs page page-test clean

demo: $(STAMP)
	$(BIN)/sequela demo --force

# Compile first: otherwise every process of pytest compiles the same kernels at the same time.
test: $(STAMP)
	$(BIN)/sequela compile
	$(BIN)/python -m pytest -n auto --dist worksteal -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell src tests paper page docs benchmarks verification tools README.md CHANGELOG.md CONTRIBUTING.md

types: $(STAMP)
	$(BIN)/mypy

check: lint types test

benchmark: $(STAMP)
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.learning
	$(BIN)/python -m benchmarks.questions

# Compare the speed of two revisions: make compare BASE=main COMPARE="--only fit --repeats 9"
BASE ?= HEAD~1
compare: $(STAMP)
	$(BIN)/python -m benchmarks.compare $(BASE) $(COMPARE)

# Compare with other programs (about an hour). PEERS has options, such as --resume or --quick.
peers: $(STAMP)
	$(BIN)/python -m benchmarks.peers $(PEERS)

# Write docs/results.md from the files that `sequela paper NAME -o paper/results/NAME` wrote.
results: $(STAMP)
	$(BIN)/python -m sequela_paper.page paper/results docs/results.md

# Build the page of report.html from page/ into src/sequela/report/page (needs Node). Commit the result.
page: page/node_modules
	cd page && npm run --silent build

page-test:
	cd page && npm test

page/node_modules: page/package-lock.json
	cd page && npm ci --no-audit --no-fund
	@touch page/node_modules

docs: $(DOCS_STAMP)
	$(BIN)/sphinx-build -n -W --keep-going -q -b html docs docs/_build/html

$(STAMP): pyproject.toml paper/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --editable ./paper --group dev
	@touch $(STAMP)

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $(DOCS_STAMP)

clean:
	rm -rf $(VENV) docs/_build docs/_live .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src -name '*.nb?' -delete
