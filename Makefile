# Everything here works on a fresh machine with Python 3.10 or newer and make.
# TORCH is the requirement that demo and test install; TORCH= (empty) installs none.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := fixtures/evaluate_with_metrics.py
# What `make quick` runs, the tests that most changes break first.
QUICK := tests/test_cases.py tests/test_rules.py tests/test_attaching.py tests/test_fixing_*.py
# What is compiled is kept: else each of the many processes that tests start would compile the linter anew.
# Three processes for two cores: each waits for the processes it starts for two fifths of its time.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 3 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help demo quick test docs lint types format clean

# Said before anything is downloaded: pip's own words about torch would be others.
define new-enough
@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	{ echo "gpulint needs Python 3.10 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1): name another, make PYTHON=python3.12"; exit 1; }
endef

$(BIN)/gpulint: pyproject.toml
	$(new-enough)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(if $(TORCH),$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" numpy)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(BIN)/.test-extra: $(BIN)/gpulint pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,dev,docs]"
	touch $@

# Building the site needs no torch.
$(BIN)/.docs-extra: pyproject.toml
	$(new-enough)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

## list these commands
help:
	@awk '/^## /{told=substr($$0,4);next} /^[a-z]+:/&&told{printf "make %-8s %s\n",substr($$1,1,length($$1)-1),told} {told=""}' $(firstword $(MAKEFILE_LIST))

# An empty pyproject.toml makes the copy a project of its own: the fixtures and tests around it do not call its functions.
## lint one training script, try its fixes by running it, and show what they save (in a copy)
demo: $(BIN)/gpulint
	@rm -rf $(VENV)/demo && mkdir -p $(VENV)/demo && touch $(VENV)/demo/pyproject.toml && sed 's/  # expect: .*//' $(DEMO) > $(VENV)/demo/train.py
	@cd $(VENV)/demo && echo '$$ gpulint train.py' && ../bin/gpulint --no-cache --isolated train.py || true
	@$(if $(TORCH),cd $(VENV)/demo && echo && echo '$$ gpulint verify --fix train.py' && ../bin/gpulint verify --fix train.py || true)

## the labelled programs, the rules' examples, lowering and fixing: half a minute
quick: $(BIN)/.test-extra
	$(PYTEST) -m "not slow" $(QUICK)

## the test suite, with ruff and mypy
test: $(BIN)/.test-extra lint types
	$(PYTEST)

## the documentation site, in site/: open site/index.html
docs: $(BIN)/.docs-extra
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

## ruff: its rules and its format
lint: $(BIN)/.test-extra
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

## mypy, strict
types: $(BIN)/.test-extra
	$(BIN)/mypy

## let ruff mend what it can
format: $(BIN)/.test-extra
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## remove the environment and everything that was built
clean:
	rm -rf $(VENV) build dist site *.egg-info
