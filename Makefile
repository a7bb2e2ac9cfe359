# `make demo` and `make test` are all a fresh machine with Python >= 3.11 and make needs.
# PYTHON=... picks another Python, VENV=... another directory for the environment.

VENV = .venv
RUN = "$(VENV)/bin/python"
PREPARE = PYTHON="$(PYTHON)" VENV="$(VENV)" sh .ci/venv

.PHONY: help demo test quick test-all doors soak bench record readme lint clean

help:
	@echo 'make demo      run the job queue on the embedded emulator'
	@echo 'make test      run the tests'
	@echo 'make quick     the tests that take no time'
	@echo 'make test-all  every test, bounds on time and memory too, and lint'
	@echo 'make doors     the door tests with other versions of redis-py and valkey-py'
	@echo 'make soak      random comparisons with the live server: MINUTES=10 SEED=...'
	@echo 'make bench     measure against fakeredis and the live server'
	@echo 'make record    write down what the live server answers, for machines without it'
	@echo 'make readme    bring the generated parts of the documents up to date'
	@echo 'make lint      ruff and mypy'
	@echo 'make clean     remove what was built'

demo:
	@$(PREPARE) runtime
	@$(RUN) -m echomq demo $(ARGS)

test:
	@$(PREPARE) dev
	@$(RUN) -m pytest $(ARGS)

quick:
	@$(PREPARE) dev
	@$(RUN) -m pytest -m 'not slow and not wall and not strict' $(ARGS)

test-all: lint
	@$(RUN) -m pytest -m '' $(ARGS)

doors:
	@$(PREPARE) dev
	@$(RUN) -m tests.doors.versions $(ARGS)

soak:
	@$(PREPARE) dev
	@$(RUN) -m tests.conformance.soak --minutes "$(or $(MINUTES),10)" $(if $(SEED),--seed "$(SEED)") $(ARGS)

bench:
	@$(PREPARE) dev
	@$(RUN) -m benchmarks $(ARGS)

record:
	@$(PREPARE) dev
	@$(RUN) -m tests.meta.live_commands
	@$(RUN) -m tests.conformance --record
	@$(RUN) -m tests.cluster.recorded

readme:
	@$(PREPARE) dev
	@$(RUN) -m tests.meta.generated

lint:
	@$(PREPARE) dev
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

clean:
	rm -rf "$(VENV)" build dist ./*.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
