# Everything here works on a fresh machine with Python 3.10 or newer and make.
# TORCH is the requirement that demo and test install; TORCH= (empty) installs none.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := fixtures/evaluate_with_metrics.py

.PHONY: demo test docs lint types format clean

$(BIN)/gpulint: pyproject.toml
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
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

## lint, verify, fix and verify again one training script (the fix is made in a copy)
demo: $(BIN)/gpulint
	rm -rf $(VENV)/demo && mkdir -p $(VENV)/demo && cp $(DEMO) $(VENV)/demo/train.py
	-$(BIN)/gpulint --no-cache --isolated $(VENV)/demo/train.py
	$(if $(TORCH),-$(BIN)/gpulint verify $(VENV)/demo/train.py)
	-$(BIN)/gpulint --no-cache --isolated --diff --unsafe-fixes $(VENV)/demo/train.py
	-$(BIN)/gpulint --no-cache --isolated --fix --unsafe-fixes $(VENV)/demo/train.py
	$(if $(TORCH),-$(BIN)/gpulint verify $(VENV)/demo/train.py)

## the test suite, with ruff and mypy
test: $(BIN)/.test-extra lint types
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

## the documentation site, in site/: open site/index.html
docs: $(BIN)/.docs-extra
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

lint: $(BIN)/.test-extra
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy knows nothing of setuptools' package-dir: it is shown the tree as it is installed.
types: $(BIN)/.test-extra
	rm -rf $(VENV)/typed && mkdir -p $(VENV)/typed/gpulint
	ln -s $(CURDIR)/gpulint/* $(CURDIR)/rules $(VENV)/typed/gpulint/
	cd $(VENV)/typed && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml

format: $(BIN)/.test-extra
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist site *.egg-info .gpulint_cache
