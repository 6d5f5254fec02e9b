# What a developer types. It needs Python 3.11 or newer and make, nothing else.
#
#   make run     one return on this machine's own stack, from nothing to a sent notice
#   make test    everything that is tested; each tool by itself first, and no further where that fails
#   make security what tries to get in, one test per attempt
#   make fuzz    what nobody thought of: generated requests, answers and files, FUZZ_COUNT=10000 for more of them
#   make check   what takes a minute or two: format, lint, types, import rules, unit tests
#
# make conformance runs the official MCP suite against the tool server, make clients the clients of others; these two
# alone need npm.

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALLED := .venv/.installed
RUN_HOME := $(CURDIR)/.home/run
PIP := $(BIN)/python -m pip --disable-pip-version-check
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options
# more arguments for pytest, such as --retail FILE; for a few tests alone call .venv/bin/pytest itself
TEST_OPTIONS ?=
# how many generated examples each test of `make fuzz` tries
FUZZ_COUNT ?= 1000
# such as --kills 20 --seed 42
CRASH_OPTIONS ?=
SUPPLY := .supply
SUITE := .conformance
CLIENTS := .clients
INTO_CLIENTS := -m pip --disable-pip-version-check install --quiet --require-hashes -r tests/clients
# from a lock with the digest of every package and no address: it serves whichever registry npm is told of
NPM_OPTIONS := --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=3
PYTEST := $(BIN)/pytest -n 2 --dist loadgroup
CASE ?= examples/returns/normal.json

.PHONY: venv run test test-long security fuzz check static lock sbom audit bench crash soak conformance clients clean

venv: $(INSTALLED)

$(INSTALLED): requirements.lock requirements-dev.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) install --quiet --require-hashes -r requirements.lock -r requirements-dev.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: $(INSTALLED)
	@KESSAI_HOME="$(RUN_HOME)" $(BIN)/kessai run $(CASE) --fresh

# a tool that does not keep its contract makes everything that is combined of tools fail in less telling ways
test: $(INSTALLED)
	$(PYTEST) tests/unit tests/contract tests/security $(TEST_OPTIONS)
	$(PYTEST) tests/integration tests/e2e -m "not long" $(TEST_OPTIONS)

# one test per attempt to get in; --vectors DIR adds Wycheproof's
security: $(INSTALLED)
	$(PYTEST) tests/security $(TEST_OPTIONS)

# generated requests, answers and files, other ones each time; the ordinary run tries a few, the same ones each time
fuzz: $(INSTALLED)
	$(PYTEST) --timeout 0 --fuzz $(FUZZ_COUNT) tests/security/test_fuzz_*.py

# minutes each: whole stacks that are restored, spoiled and undone, twenty random kills, machines that go away, what
# the containers run
test-long: $(INSTALLED)
	$(PYTEST) tests/integration tests/e2e -m long $(TEST_OPTIONS)

static: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: static
	$(BIN)/pytest --quiet tests/unit

# hashes of every published file, so that one lock serves every platform; no address in it
lock: $(INSTALLED)
	$(COMPILE) --output-file requirements.lock pyproject.toml
	$(COMPILE) --extra dev --extra report --constraint requirements.lock --output-file requirements-dev.lock pyproject.toml
	$(COMPILE) --output-file deploy/supply.lock deploy/supply.in

# what an installation consists of, as CycloneDX, held against its schema before it is written: read off a place with
# what the product needs and nothing else; the tool has a place of its own, since the product does not need it
sbom: $(SUPPLY)/.installed $(SUPPLY)/product/.installed
	$(SUPPLY)/bin/cyclonedx-py environment $(SUPPLY)/product --pyproject pyproject.toml --output-reproducible \
		--validate --output-file sbom.json
	@echo "sbom.json"

$(SUPPLY)/product/.installed: requirements.lock $(INSTALLED)
	$(PYTHON) -m venv --clear --without-pip $(SUPPLY)/product
	$(PIP) --python $(SUPPLY)/product install --quiet --require-hashes -r requirements.lock
	@touch $@

# asks a public service about every version in the locks; ends with 1 where one is known to be bad, or is not known
audit: $(SUPPLY)/.installed
	$(SUPPLY)/bin/pip-audit --strict --require-hashes --disable-pip -r requirements.lock -r requirements-dev.lock

$(SUPPLY)/.installed: deploy/supply.lock
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(SUPPLY)
	$(SUPPLY)/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r deploy/supply.lock
	@touch $@

bench: $(INSTALLED)
	$(BIN)/python -m tests.bench.run

crash: $(INSTALLED)
	$(BIN)/python -m tests.crash.run $(CRASH_OPTIONS)

soak: $(INSTALLED)
	$(BIN)/python -m tests.bench.soak

# the official MCP suite is a program for a newer node than many machines have, so it brings its own
conformance: $(INSTALLED) $(SUITE)/.installed
	$(BIN)/python -m tests.conformance.run $(SUITE)

$(SUITE)/.installed: tests/conformance/package.json tests/conformance/package-lock.json
	@command -v npm >/dev/null || { echo "npm is needed for the official suite" >&2; exit 1; }
	mkdir -p $(SUITE)
	cp $^ $(SUITE)
	cd $(SUITE) && npm ci $(NPM_OPTIONS)
	@touch $@

# clients that nobody here wrote, each in a place of its own: what they need has no place in what the product needs; an
# optional part for Windows that not every registry has is left out of the lock, with the line that asks for it
clients: $(INSTALLED) $(CLIENTS)/.installed
	$(BIN)/python -m tests.clients.run $(CLIENTS)

$(CLIENTS)/.installed: tests/clients/package.json tests/clients/package-lock.json tests/clients/fastmcp.lock \
		tests/clients/langchain.lock
	@command -v npm >/dev/null || { echo "npm is needed for two of the clients" >&2; exit 1; }
	mkdir -p $(CLIENTS)
	cp tests/clients/package.json tests/clients/package-lock.json $(CLIENTS)
	cd $(CLIENTS) && npm ci $(NPM_OPTIONS)
	for name in fastmcp langchain; do $(PYTHON) -m venv $(CLIENTS)/$$name && \
		$(CLIENTS)/$$name/bin/python $(INTO_CLIENTS)/$$name.lock || exit 1; done
	@touch $@

clean: $(INSTALLED)
	@for home in .home/*/; do [ ! -d "$$home" ] || KESSAI_HOME="$(CURDIR)/$$home" $(BIN)/kessai empty --yes; done
