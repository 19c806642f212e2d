# Everything here needs only python3 (3.11 to 3.14), pip and make: `make run` and `make test` fetch the rest
# into .tools, .venv and .cache.
PYTHON ?= python3
PYTHONS ?= $(PYTHON)
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
TESTS ?= tests/unit
MINUTES ?= 30
ROUTES := $(addprefix --route=,$(ROUTE))

export UV_PYTHON_DOWNLOADS := never
# Where it is set each of thousands of starts compiles all that it imports: half of what a start costs.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-python lint unit interop delayed chaos fuzz bench crds docs image wheels deb sbom lock clean test-tools simulate mutations

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/.installed-run ## Gateway, demo broker and demo client until Ctrl-C (UPSTREAM=amqp://user:pass@host:port for a real broker)
	@set --; upstream='$(subst ','\'',$(value UPSTREAM))'; \
	[ -z "$$upstream" ] || set -- --upstream "$$upstream"; \
	exec $(BIN)/amqpgate demo "$$@"

test: $(VENV)/.installed-dev test-tools ## Lint, types, import contracts, unit and property tests, quick interop tests
	@tools/test.sh $(PYTEST)

lint: $(VENV)/.installed-dev ## Style, types, import contracts, generated code up to date
	$(BIN)/ruff check src tests tools examples helm
	$(BIN)/ruff format --check src tests tools examples helm
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m amqpgate.codegen --check

unit: $(VENV)/.installed-dev ## Unit and property tests only
	$(PYTEST) $(TESTS)

test-python: ## Unit tests on another Python, in an environment of its own (PYTHON=python3.14, TESTS=tests/unit/policy for less)
	@version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])') && \
	  $(MAKE) --no-print-directory VENV=.venv-$$version unit

interop: $(VENV)/.installed-dev test-tools ## All tests on real brokers and clients, the slow ones too (ROUTE=direct or gateway for one way only)
	$(PYTEST) tests/interop $(ROUTES)

delayed: $(VENV)/.installed-dev test-tools ## Delayed messages for an hour, 100/s, under kills (DELAYED="--seconds 900 --rate 50" for less)
	$(BIN)/python -m tests.interop.delayed_messages $(DELAYED)

chaos: $(VENV)/.installed-dev test-tools ## Faults on real brokers, gateways and clients, half an hour (MINUTES=5 CHAOS="--setups own --seed 7")
	$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(CHAOS)

simulate: $(VENV)/.installed-dev ## The gateway on virtual time, with faults by a seed (SEED=, SECONDS=600, HOURS=10, JOBS=2)
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) \
	  $(if $(HOURS),--hours $(HOURS) --seconds 1000000) $(if $(JOBS),--jobs $(JOBS))

mutations: $(VENV)/.installed-dev ## Faults put into copies of the gateway, and who finds each first (MUTATIONS="--by chaos --jobs 2")
	@$(BIN)/python -m tests.mutations $(MUTATIONS)

fuzz: $(VENV)/.installed-dev ## Fuzz whatever takes bytes from others, ten minutes (FUZZ="--seconds 60 --targets yaml,proxy --jobs 2")
	@$(BIN)/python -c 'import atheris' 2>/dev/null || \
	  .tools/bin/uv pip install --quiet --python $(BIN)/python 'atheris>=3' || \
	  echo "atheris could not be had: plain mutation, which coverage does not guide"
	@$(BIN)/python -m tests.fuzz $(FUZZ)

bench: $(VENV)/.installed-dev ## Beside HAProxy, some 25 minutes, into build/bench (BENCH=--quick to try)
	.tools/bin/uv pip install --quiet --python $(BIN)/python 'matplotlib>=3.8'
	$(BIN)/python -m tests.bench.run $(BENCH)

crds: $(VENV)/.installed-dev ## The CustomResourceDefinitions of the chart, of the policies' schemas
	@$(BIN)/python -m amqpgate.resources --into helm/amqpgate/files/crds

docs: $(VENV)/.installed-dev ## The documents as a site, into build/site
	.tools/bin/uv pip install --quiet --python $(BIN)/python 'mkdocs-material>=9.5'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

image: $(VENV)/.installed-dev test-tools ## Build the container image and play through it; on a stand-in base, as root (IMAGE=--help)
	@$(BIN)/python -m tests.image.check $(IMAGE)

wheels: ## A wheel for each Python that is named, installed and tried, into dist (PYTHONS="python3.11 python3.14")
	@tools/wheels.sh $(PYTHONS)

deb: ## A Debian package for this Debian and its python3, into dist (EXTRAS=audit,oauth for Parquet records)
	@tools/deb.sh

sbom: ## What amqpgate consists of, as a CycloneDX list, into dist
	@tools/sbom.sh

lock: ## Pin every dependency anew in constraints.txt
	@PYTHON=$(PYTHON) tools/install.sh lock

clean: ## Remove what the other targets made
	rm -rf .venv .venv-* .tools .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# Brokers and clients of other languages. What cannot be had is named in one line, and its tests say so too.
test-tools:
	@tools/test-tools.sh

$(VENV)/.installed-%: pyproject.toml constraints.txt tools/install.sh $(shell find src -name "*.p[yx][xdi]")
	@PYTHON=$(PYTHON) VENV=$(VENV) tools/install.sh $*
	@touch $@
