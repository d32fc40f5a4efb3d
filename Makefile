# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Every target does its own set-up: nothing needs to be done before.
# PYTHON=/path/to/python chooses the interpreter (CPython 3.9, 3.10 or 3.11).

UV_VERSION := 0.13.9

# Foreign packages on these paths would shadow the pinned ones.
unexport PYTHONPATH PYTHONHOME

# A process for each processor, each with its own TensorFlow and TFF worker. Files
# stay whole: what a class has compiled serves all of its tests.
PARALLEL := -n auto --maxprocesses=8 --dist=loadfile --no-loadscope-reorder

.PHONY: help env demo test test-fast lint format figures docs wheel \
  check-wheel check-install lock clean
.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' \
	  Makefile

env: ## Make .venv with the pinned packages, once and when they change
	@PYTHON='$(PYTHON)' sh tools/make_env.sh

demo: env ## Train on handwritten digits with 8-bit secure sums (DEMO_ARGS=...)
	@.venv/bin/python -m experiments.training.run_demo $(DEMO_ARGS)

test: lint ## Check the style, then run all tests (PYTEST_ARGS=...)
	.venv/bin/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

test-fast: env ## Run the tests that are not marked slow
	.venv/bin/python -m pytest $(PARALLEL) -m 'not slow' $(PYTEST_ARGS)

lint: env ## Check style and format, change nothing
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .

format: env ## Format the sources and mend what the linter can mend
	.venv/bin/python -m ruff check --fix .
	.venv/bin/python -m ruff format .

figures: env ## Draw experiments/*/figures/ anew from the committed results
	@for flags in experiments/*/configs/figures/*.flags; do \
	  folder=$${flags#experiments/}; \
	  .venv/bin/python -m experiments.$${folder%%/*}.plot \
	    --flagfile=$$flags || exit 1; \
	done

docs: env ## Build the documentation site into build/docs/
	@rm -rf build/docs
	@.venv/bin/python -m sphinx -c docs -d build/doctrees -W --keep-going -q -E \
	  . build/docs
	@echo 'Wrote build/docs/index.html'

wheel: env ## Build the sdist and the wheel into dist/
	.venv/bin/python -m build --no-isolation

check-wheel: ## Test the last commit's wheel in a new environment (PYTHON=...)
	@PYTHON='$(PYTHON)' sh tools/check_wheel.sh

check-install: ## Walk each way of docs/install.md (PYTHON=..., WAYS='pip uv')
	@PYTHON='$(PYTHON)' UV_VERSION=$(UV_VERSION) sh tools/check_install.sh $(WAYS)

# Resolves for all supported Pythons at once. Pins that still fit are kept;
# LOCK_ARGS=--upgrade takes the newest. The same marker on every line (TFF's
# platform) is dropped: with it, pip would install nothing elsewhere and call
# that a success.
lock: ## Write requirements.txt from requirements.in (LOCK_ARGS=--upgrade)
	@set -eu; \
	python=$$(PYTHON='$(PYTHON)' sh tools/find_python.sh); \
	work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	"$$python" -m venv "$$work/uv"; \
	"$$work/uv/bin/python" -m pip install --quiet uv==$(UV_VERSION); \
	cp requirements.txt "$$work/lock.txt"; \
	"$$work/uv/bin/uv" pip compile requirements.in --quiet --universal \
	  --python-version 3.9 --override overrides.txt $(LOCK_ARGS) \
	  --custom-compile-command 'make lock' --output-file "$$work/lock.txt"; \
	sed -E -e "s/ and implementation_name == .*sys_platform == 'linux'$$//" \
	  -e "s/ ; python_full_version < '3\.12'$$//" \
	  "$$work/lock.txt" > requirements.txt

clean: ## Remove .venv and everything that was built
	[ ! -e .venv/made-by-make ] || rm -rf .venv
	rm -rf build dist *.egg-info .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
