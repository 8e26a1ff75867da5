# One word per task; `make help` lists them. Everything is installed into .venv from the hash-pinned lists in
# requirements/, so a fresh clone needs python3 (3.11 or newer), make and, for the e2e tests, Go.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 2
# A module stays in one process: some have tests that go on where the one before stopped.
PARALLEL := -n $(WORKERS) --dist loadfile
NETNS := $(BIN)/python -m e2e.netns --
CLUSTER ?= local
# Each process has a network namespace, an API server, a gateway and a controller of its own.
E2E_WORKERS := --dist loadfile --tx '$(WORKERS)*popen//python=$(NETNS) $(BIN)/python'

.DEFAULT_GOAL := help
.PHONY: help install lock check format generate docs changelog test test-fast test-simulated coverage simulate test-e2e faults kill soak precedence explain-differential conformance attacks demo demo-cluster screenshots release-rehearsal bench clean

help: ## list the tasks
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{sub(/:.*/, "", $$1); printf "  make %-14s %s\n", $$1, $$2}'

demo: install ## gateway, controller and backends on this machine, with requests (KEEP=1 leaves it running)
	@$(BIN)/python -m e2e.demos.local $(if $(KEEP),--keep)

demo-cluster: install binaries ## the same against a real API server, with kubectl commands to try
	@$(BIN)/python -m e2e.demos.cluster $(if $(KEEP),--keep)

test: test-fast test-simulated test-e2e ## every test, e2e included

test-fast: install ## unit, golden, property and flow tests
	$(PYTEST) tests --ignore=tests/simulation $(PARALLEL)

test-simulated: install ## 500 simulated stories of the whole control plane on a virtual clock
	$(PYTEST) tests/simulation -n $(WORKERS) --dist worksteal

coverage: install ## the fast tests with branch coverage; fails below the floor in pyproject.toml, takes three times as long
	$(PYTEST) tests --ignore=tests/simulation --cov --cov-report=term-missing:skip-covered

simulate: install ## overnight: many more stories (SEEDS=10000, START=0), then check that planted defects are found
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),10000) --start $(or $(START),0)
	$(BIN)/python -m tests.simulation.defects

test-e2e: install binaries browser ## stories with real traffic against a real API server (CLUSTER=local or kind)
	$(if $(filter local,$(CLUSTER)),$(PYTEST) e2e $(E2E_WORKERS),e2e/kind/kind.sh test)

screenshots: install binaries browser ## update the screenshots of the status page (docs/images; OUT, STATES="well many broken away")
	$(BIN)/python -m e2e.screenshots --out $(or $(OUT),docs/images) $(if $(STATES),--states $(STATES))

kill: install binaries ## overnight: kill -9 at random points (KILLS=200), leaders frozen during a write (FREEZES=50)
	KILLS=$(or $(KILLS),200) FREEZES=$(or $(FREEZES),50) $(NETNS) $(PYTEST) e2e/stories/faults/test_kill.py e2e/stories/faults/test_faults_gateway_leaders.py

faults: install binaries ## overnight: API servers that misbehave for minutes (OUTAGE=600, SLOW=180, seconds)
	OUTAGE=$(or $(OUTAGE),600) SLOW=$(or $(SLOW),180) $(NETNS) $(PYTEST) e2e/faults/nightly_api.py

conformance: install binaries ## run the Gateway API conformance suite against the development gateway or GATEWAY=URL of an Admin API; see e2e/README.md
	$(BIN)/python -m e2e.conformance.programs
	$(NETNS) $(BIN)/python -m e2e.conformance.run $(if $(GATEWAY),--gateway '$(GATEWAY)') $(if $(ADMIN_KEY),--admin-key '$(ADMIN_KEY)') $(if $(START),--start '$(START)') $(if $(STOP),--stop '$(STOP)') -- $(ARGUMENTS)

attacks: install binaries ## run the attacks against a real gateway: GATEWAY=URL of its Admin API, ADMIN_KEY, PROXY, TLS, START, STOP; see e2e/README.md
	$(NETNS) /bin/sh -c '$(or $(START),true) && $(PYTEST) e2e/attacks --admin-url="$(GATEWAY)" --admin-key="$(ADMIN_KEY)" --proxy-url="$(PROXY)" --tls-address="$(TLS)"; status=$$?; $(or $(STOP),true); exit $$status'

precedence: install ## overnight: compare the precedence of random HTTPRoutes with a model of the specification (SETS=10000)
	PRECEDENCE_SETS=$(or $(SETS),10000) $(PYTEST) tests/property/test_gateway_precedence.py $(PARALLEL:loadfile=load) -q

explain-differential: install ## compare what explain predicts with the development gateway (SETS=200), or with GATEWAY=URL, ADMIN_KEY, HTTP, HTTPS
	$(BIN)/python -m e2e.explained --sets $(or $(SETS),200) $(if $(GATEWAY),--admin-url '$(GATEWAY)' --admin-key '$(ADMIN_KEY)' --http $(HTTP) --https $(HTTPS))

soak: install binaries ## overnight: continuous edits while watches end; checks files, threads and memory (SOAK=600, seconds)
	SOAK=$(or $(SOAK),600) $(NETNS) $(PYTEST) e2e/stories/faults/test_faults_gateway_soak.py -s

check: install ## ruff, mypy, import-linter, language, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m reference.language
	$(BIN)/python -m crds --check
	$(BIN)/python -m reference --check
	$(BIN)/python -m reference.content.program --check
	$(BIN)/python -m e2e.charts.kinds

docs: install ## build the site into build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

changelog: install ## print the section of a release (VERSION=0.2.0; WRITE=1 writes CHANGELOG.md, removes the fragments)
	@$(BIN)/python -m reference.changelog $(or $(VERSION),next) $(if $(WRITE),--write)

format: install ## let ruff fix and format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

generate: install binaries ## regenerate CRDs, kustomize bases, values and the reference
	$(BIN)/python -m crds --write
	$(BIN)/python -m e2e.charts.chart --write
	$(BIN)/python -m reference --write
	$(BIN)/python -m reference.content.program --write

release-rehearsal: install ## every step of a release for real, with a report in build/release-rehearsal (root; PREVIOUS=commit to upgrade from)
	$(BIN)/python -m e2e.release $(if $(PREVIOUS),--previous '$(PREVIOUS)') $(addprefix --part ,$(PARTS))

bench: install binaries ## measure controllers side by side: cold sync, changes, edits, storm, restart, wipe
	$(BIN)/python -m benchmarks run

install: $(STAMP) ## create .venv with the locked dependencies

.PHONY: binaries
binaries: $(STAMP)
	@$(BIN)/python -m e2e.cluster.binaries >/dev/null
	@$(BIN)/python -m e2e.charts.prometheus_rules >/dev/null
	@$(BIN)/python -m e2e.argocd >/dev/null

.PHONY: browser
browser: $(STAMP)
	@$(BIN)/python -m e2e.browser >/dev/null

$(STAMP): requirements/dev.txt pyproject.toml
	@echo "installing the locked dependencies into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

lock: install ## compile pyproject.toml into requirements/*.txt
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --python-version 3.11 --quiet -o requirements/run.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes --python-version 3.11 --quiet -o requirements/dev.txt
	$(BIN)/uv pip compile pyproject.toml --group bench --universal --generate-hashes --python-version 3.11 --quiet -c requirements/dev.txt -o requirements/bench.txt

clean: ## remove everything that these tasks created in the checkout
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
