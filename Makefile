# `make demo` and `make test` need Python (3.10 or newer, with its venv module) and nothing else: each sets up .venv first.
PYTHON ?= python3
CASES ?= tests/cases
# of tests at a time
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOGS := tests/data/logs

.PHONY: help install demo test check lint wheels score bench bench-source lab browser soak schema pages picture generality dist lab-soak score-fit docs

help:
	@echo 'make demo     set up, and diagnose a crash of SGLang from its log and from its journal'
	@echo 'make test     set up, and run the tests'
	@echo 'make check    all that must hold before a change is taken: style, types, layers, schema, tests'
	@echo 'make wheels   what is read of real wheels, against cuobjdump (downloads 130 MB once)'
	@echo 'make score    how many labelled cases are diagnosed rightly; CASES=folder for others'
	@echo 'make score-fit  estimates of memory against measured starts; POINTS=file (and MODELS=file) for others'
	@echo 'make bench    seconds to start and to diagnose'
	@echo 'make bench-source  seconds of the tracer on real releases, which it fetches'
	@echo 'make lab      real hosts: systemd, sshd, journal, FlashInfer (as root, on Debian 12)'
	@echo 'make browser  reports in a real browser: keyboard, layout, accessibility, screenshots (as root, on Debian 12)'
	@echo 'make dist     wheel, sdist, gpuwhy.pyz and its wheelhouse, built and tried without a network'
	@echo 'make docs     the site of docs/, into site/, without a network'
	@echo 'make soak     randomised tests with their full counts'
	@echo 'make lab-soak what of the lab takes long: real builds and package changes (as root)'
	@echo 'make schema   write docs/*.schema.json'
	@echo 'make picture  write docs/seed.svg'
	@echo 'make pages    write docs/causes'
	@echo 'make generality  the score under variations of the cases: other numbers, other prefixes, buried, cut'

install: $(INSTALLED)

# the build backend comes from the constraints too, so it is installed first and the build is not isolated
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo 'gpuwhy needs Python 3.10 or newer; name one: make PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo 'the venv module of $(PYTHON) is missing; on Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt hatchling editables
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev,docs]'
	@touch $@

# a diagnosed failure is exit status 1: that is the answer here
demo: $(INSTALLED)
	@for log in $(LOGS)/sglang.log $(LOGS)/incident.export; do \
		echo; echo "$$ gpuwhy diagnose $$log"; echo; \
		$(BIN)/gpuwhy diagnose $$log; status=$$?; \
		test $$status -eq 1 || { echo "expected exit status 1, got $$status" >&2; exit 1; }; \
	done

test: $(INSTALLED)
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal

check: lint test wheels

wheels: $(INSTALLED)
	$(BIN)/pytest -q -m wheels tests/binaries/test_real_wheels.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.make_schema --check
	$(BIN)/python -m scripts.make_cause_pages --check

score: $(INSTALLED)
	@$(BIN)/python -m scripts.score $(CASES)

generality: $(INSTALLED)
	@$(BIN)/python -m scripts.generality $(CASES)

score-fit: $(INSTALLED)
	@$(BIN)/python -m scripts.score_fit $(POINTS) $(MODELS)

bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench_start.py
	$(BIN)/python benchmarks/bench_diagnose.py
	$(BIN)/python -m benchmarks.bench_fit
	$(BIN)/python -m benchmarks.bench_reports

bench-source: $(INSTALLED)
	$(BIN)/python benchmarks/source.py
	$(BIN)/python -m benchmarks.bench_judge
	$(BIN)/python -m benchmarks.bench_large_log
	$(BIN)/python -m benchmarks.bench_fingerprints
	$(BIN)/python benchmarks/binaries.py

lab: $(INSTALLED)
	tests/lab/setup
	$(BIN)/pytest tests/lab -m 'lab and not soak' -p no:cacheprovider --durations=12

browser: $(INSTALLED)
	tests/browser/setup
	$(BIN)/pytest tests/browser -q -m browser -p no:cacheprovider

dist: $(INSTALLED)
	rm -rf dist
	$(BIN)/python -m scripts.make_dist --output dist
	GPUWHY_DIST=dist $(BIN)/pytest -q -m dist tests/dist

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

lab-soak: $(INSTALLED)
	tests/lab/setup
	$(BIN)/pytest tests/lab -m 'lab and soak' -p no:cacheprovider

soak: $(INSTALLED)
	$(BIN)/pytest -m soak -n $(WORKERS)

schema: $(INSTALLED)
	$(BIN)/python -m scripts.make_schema

pages: $(INSTALLED)
	$(BIN)/python -m scripts.make_cause_pages

picture: $(INSTALLED)
	$(BIN)/python -m scripts.make_picture
