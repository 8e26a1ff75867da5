# One word per task; `make help` lists them. Everything is installed into .venv from the hash-pinned lists
# in requirements/, so a fresh clone needs python3 (3.11 or newer), make and, for e2e, Go.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install lock check format generate clean

help: ## list the tasks
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

install: $(STAMP) ## create .venv with the locked dependencies

$(STAMP): requirements/dev.txt pyproject.toml
	@echo "installing the locked dependencies into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || true
	@touch $(STAMP)

lock: ## compile pyproject.toml into requirements/*.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	uv pip compile pyproject.toml --universal --generate-hashes --python-version 3.11 --quiet -o requirements/run.txt
	uv pip compile pyproject.toml --group dev --universal --generate-hashes --python-version 3.11 --quiet -o requirements/dev.txt

check: install ## ruff, mypy, import-linter, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install ## let ruff fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what the tasks made
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
