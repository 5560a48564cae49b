# Each target sets up .venv by itself; all it needs is make and Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE  # compiled once, and not in each process that a test starts

.DEFAULT_GOAL := help
.PHONY: help demo quick test proofs services portable oldest lint docs look paper study mutants differential bench dist clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.ready-demo ## Check, audit and calibrate a model of credit-card defaults; writes out/report.html
	@$(BIN)/calibrant demo

PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal -p no:logging
ONLY_TESTS := -o addopts='-ra --strict-markers --strict-config --import-mode=importlib' tests

quick: $(VENV)/.ready-test ## Run the tests for daily work, in less than a minute: a part of each kind of test
	@$(PYTEST) -q --hypothesis-profile=quick -m 'not slow and not service and not broad' $(ONLY_TESTS) \
		--ignore tests/sample/test_dask.py --ignore tests/sample/test_spark.py --ignore tests/gpu/test_rows.py \
		--ignore tests/gpu/test_kernels.py --ignore tests/draw/test_report_browser.py

test: $(VENV)/.ready-test ## Run the tests and the examples in docstrings and README; three to five minutes
	@$(PYTEST) -m 'not slow and not service' --durations=10

proofs: $(VENV)/.ready-test ## Run the long simulations that attack each guarantee; SEED=today draws new data, once
	@$(PYTEST) -m 'slow and not service' --durations=10 $(if $(SEED),--fresh-seed=$(SEED)) $(ONLY_TESTS)

services: $(VENV)/.ready-test ## Run the tests that start Spark, Dask, a browser, PostgreSQL or other processes
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -p no:logging -m service --durations=10 $(ONLY_TESTS)

# Another machine, as far as this one can be: linear algebra that every x86 processor has, one thread, other hashes,
# another time zone, no home.
ELSEWHERE := OPENBLAS_CORETYPE=Prescott OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONHASHSEED=1 TZ=Asia/Tokyo HOME=/nonexistent

portable: $(VENV)/.ready-test ## Run the quick tests and the examples of README and docs as on another machine; three minutes
	@$(ELSEWHERE) $(MAKE) --no-print-directory quick
	@$(ELSEWHERE) $(BIN)/python tools/examples.py out/portable --perturbed

oldest: $(VENV)-oldest/.ready ## Run the quick tests with the oldest dependencies that are supported
	@$(VENV)-oldest/bin/python -m pytest -n 2 -q -m 'not slow and not broad' -p no:cacheprovider --no-header \
		--ignore tests/project/test_workflows.py --ignore tests/project/test_install.py \
		--ignore tests/project/test_api_pages.py --ignore tests/project/test_deploy.py \
		--ignore tests/project/test_development.py --ignore tests/project/test_search.py \
		--ignore tests/project/test_unseen_study.py \
		--deselect 'tests/assess/test_subgroups_elsewhere.py::test_counts_give_what_rows_give[duckdb]' \
		--ignore tests/answers/test_agreement.py --ignore tests/answers/test_curves.py --ignore tests/answers/test_dialects.py \
		--ignore tests/answers/test_table.py \
		tests/answers tests/assess tests/calibrators tests/cells tests/classifier tests/guarantee tests/kernels tests/limits \
		tests/multiclass tests/params tests/project tests/streams tests/text tests/test_*.py

lint: $(VENV)/.ready-lint ## Check style, types and which module may import which
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

docs: $(VENV)/.ready-docs ## Run the code of every page and build the documentation into site/; warnings are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Built site/index.html"

look: docs $(VENV)/.ready-look $(VENV)/.ready-test ## Open every page of the site and every kind of report in Chromium; needs Chromium
	@$(BIN)/python tools/look.py site

PAPER := covariate_shift shift_intervals interval_widths bin_counts slips online_against_batch online_coverage active_labelling impossibility scale

paper: $(VENV)/.ready-paper ## Run the paper's simulations and claims, one script each; half an hour
	@for name in $(PAPER); do echo "== experiments/$$name.py"; $(BIN)/python experiments/$$name.py || exit 1; done

study: $(VENV)-study/.ready ## Run the validation study on real data, or some of it: PARTS="order clusters"; a quarter of an hour
	@$(VENV)-study/bin/python study/run.py $(PARTS)

mutants: $(VENV)/.ready-test ## Change the statistical core at random, and see whether its tests notice; half an hour
	@PYTHONPATH=src $(BIN)/python tools/mutants.py --seed $(or $(SEED),1)

differential: $(VENV)/.ready-test ## Compare all answers with those of another commit on random data: BASE=main; COUNT=60 data sets
	@$(BIN)/python tools/differential.py --base $(or $(BASE),main) --count $(or $(COUNT),60)

bench: $(VENV)/.ready-bench ## Time what users wait for, beside peers and floors, in ten minutes; writes benchmarks/results.md
	@$(BIN)/python benchmarks/bench.py --write

dist: $(VENV)/.ready-dist ## Build wheel and sdist, and test the wheel in clean environments
	@$(BIN)/python tools/dist.py

clean: ## Remove everything that make has made
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-study site out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	@echo "Setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)-oldest/.ready: pyproject.toml constraints-oldest.txt
	@echo "Setting up $(VENV)-oldest"
	@$(PYTHON) -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/python -m pip install -qq -c constraints-oldest.txt -e '.[core-test]'
	@touch $@

$(VENV)-study/.ready: pyproject.toml constraints.txt study/requirements.txt
	@echo "Setting up $(VENV)-study"
	@$(PYTHON) -m venv $(VENV)-study
	@$(VENV)-study/bin/python -m pip install -qq -c constraints.txt -r study/requirements.txt -e '.[bench]'
	@touch $@

# One stamp for each extra: installed once, and again when the dependencies change.
$(VENV)/.ready-%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what 'make $*' needs; the first time takes a minute or two"
	@$(BIN)/python -m pip install -qq -c constraints.txt -e '.[$*]'
	@touch $@
