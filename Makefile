# The two commands of the README are `make demo` and `make test`; both do their own set-up.
PYTHON ?= $(firstword $(shell for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$p; done))
VENV := .venv
BIN := $(VENV)/bin
unexport PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED
WORKERS := -n 4 --dist worksteal --durations 20 --durations-min 1

.PHONY: install uninstall demo test test-all test-ci test-every-case attack fuzz mutations lint format generate bench screenshot examples release clean

# For this user, or as root for all users: an environment of its own, and a link in a bin folder.
PREFIX ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)
OWN := $(PREFIX)/lib/hermes-doctor
install:
	@$(call needs_own_link)
	@$(call needs_python)
	$(PYTHON) -m venv "$(OWN)"
	"$(OWN)/bin/pip" install --quiet .
	@mkdir -p "$(PREFIX)/bin" "$(PREFIX)/share/man/man1"
	@ln -sf "$(OWN)/bin/hermes-doctor" "$(PREFIX)/bin/hermes-doctor"
	@ln -sf "$(OWN)/share/man/man1/hermes-doctor.1" "$(PREFIX)/share/man/man1/hermes-doctor.1"
	@if [ "$$(command -v hermes-doctor)" = "$(PREFIX)/bin/hermes-doctor" ]; \
	then echo "Installed. Next: hermes-doctor check"; \
	else echo "Installed, but $(PREFIX)/bin is not in your PATH. Next: $(PREFIX)/bin/hermes-doctor check"; fi

uninstall:
	@$(call needs_own_link)
	rm -rf "$(OWN)"
	rm -f "$(PREFIX)/bin/hermes-doctor" "$(PREFIX)/share/man/man1/hermes-doctor.1"

define needs_own_link
program="$(PREFIX)/bin/hermes-doctor"; \
	case "$$(readlink "$$program")" in "$(OWN)/"*) exit 0;; esac; \
	test ! -e "$$program" -a ! -L "$$program" || { \
	echo "Nothing was changed: $$program was not created by \`make install\`. Remove it first."; exit 1; }
endef

define needs_python
test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: apt install python3 python3-venv"; exit 1; }; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Missing: apt install python3-venv"; exit 1; }
endef

demo: $(VENV)/installed
	$(BIN)/hermes-doctor demo

test: $(VENV)/compiled
	$(BIN)/python -m pytest $(WORKERS)

# Also the tests that need several releases of Hermes, systemd, Docker, restic or age, and those that
# take long (marked `wide`).
test-all: $(VENV)/compiled $(VENV)/release
	$(BIN)/python -m pytest $(WORKERS) --all

# The same for `.ci/run`: up to five tests that fail are run once more, alone.
test-ci: $(VENV)/compiled $(VENV)/release
	$(BIN)/python -m tools.ci_tests $(WORKERS) --all

# Nightly: also every case of those of which the others try a sample; takes more than an hour.
test-every-case: $(VENV)/compiled $(VENV)/release
	$(BIN)/python -m pytest $(WORKERS) --every-case

# Random attacks on the promises of docs/security.md, for so many minutes; exit code 1 if one is broken.
# A round is repeated with: make attack ARGS="--only kills --seed 123"
TIME ?= 10
attack: $(VENV)/compiled
	$(BIN)/python -m tools.attack --minutes $(TIME) $(ARGS)

# Nightly: 2,000 hostile homes made by chance (tests/helpers/fuzzed_homes.py), in about an hour on two
# processors. `make fuzz HOMES=100 FIRST=5000` tries others.
HOMES ?= 2000
FIRST ?= 0
fuzz: $(VENV)/compiled
	FUZZED_HOMES=$(HOMES) FUZZED_FIRST=$(FIRST) $(BIN)/python -m pytest -n 2 -q tests/scenarios/test_fuzzed_homes.py

# Two processes compile a part of the tests each; otherwise each of the four workers compiles all of
# them. The test run itself shows what is wrong with them.
$(VENV)/compiled: $(VENV)/tests
	@$(BIN)/python -m pytest --collect-only -q tests/[a-n]* > /dev/null 2>&1 & \
	$(BIN)/python -m pytest --collect-only -q tests/[o-z]* > /dev/null 2>&1; wait
	@touch $@

# Changes 20 single lines by chance; the tests must notice 17. Repeated with: make mutations ARGS="--seed 7"
mutations: $(VENV)/compiled
	$(BIN)/python -m tools.mutations $(ARGS)

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# All of them run, also after one that misses its bar.
BENCHMARKS := startup databases scale profiles watch live_backup home_backup memory logs history_size
bench: $(VENV)/dev
	@missed=""; for one in $(BENCHMARKS); do \
		echo "$$one:"; $(BIN)/python -m benchmarks.$$one || missed="$$missed $$one"; echo; done; \
	test -z "$$missed" || { echo "Missed a bar or failed:$$missed"; exit 1; }

screenshot: $(VENV)/dev
	$(BIN)/python -m tools.screenshot

# Writes what is made from other files and stays in git: docs/codes.md.
generate: $(VENV)/dev
	$(BIN)/python -m tools.list_codes

# Builds the last commit into dist/, twice, with a bill of materials and checksums.
release: $(VENV)/release
	@$(BIN)/python -m tools.release

# Runs the examples of docs/ and writes what they print.
examples: $(VENV)/dev
	$(BIN)/python -m tools.examples

$(VENV)/installed: pyproject.toml
	@$(call needs_python)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/tests: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/release: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group release
	@touch $@

$(VENV)/dev: $(VENV)/tests
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .ci/cache .generated dist build
