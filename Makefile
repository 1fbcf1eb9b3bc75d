.PHONY: check format quick lint types layers tests

check: format lint types layers quick  ## everything before a commit

format:
	ruff format --check src tests benchmarks examples docs notebooks

lint:
	ruff check src tests benchmarks examples docs notebooks

types:
	mypy

layers:
	lint-imports

quick:
	pytest -n 2 -m "not slow"

tests:
	pytest -n auto
