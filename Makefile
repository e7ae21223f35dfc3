# Everything here works on a fresh machine with Python 3.10 or newer and make.
# TORCH is the requirement that demo and test install; TORCH= (empty) installs none.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := fixtures/classifier_held_loss.py

.PHONY: demo test lint types format clean

$(BIN)/gpulint: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(if $(TORCH),$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" numpy)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(BIN)/.test-extra: $(BIN)/gpulint pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,dev]"
	touch $@

## lint a training script, show what --fix would change
demo: $(BIN)/gpulint
	-$(BIN)/gpulint --no-cache --isolated $(DEMO)
	-$(BIN)/gpulint --no-cache --isolated --diff $(DEMO)

## the test suite, with ruff and mypy
test: $(BIN)/.test-extra lint types
	$(BIN)/python -m pytest -q

lint: $(BIN)/.test-extra
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/.test-extra
	$(BIN)/mypy

format: $(BIN)/.test-extra
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist *.egg-info .gpulint_cache
