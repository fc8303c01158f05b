.PHONY: install run test check bench mutants soak

# Bytecode is kept whatever the shell says: without it each process of the tests compiles everything that it imports.
export PYTHONDONTWRITEBYTECODE =

install:
	@sh scripts/setup
	@sh scripts/link

run:
	@sh scripts/setup
	@sh scripts/link >/dev/null
	@.venv/bin/hark run

test:
	@EXTRAS=dev sh scripts/setup
	@.venv/bin/python -m pytest -n 2 --dist loadgroup

check:
	@EXTRAS=dev sh scripts/setup
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

bench:
	@EXTRAS=dev sh scripts/setup
	@.venv/bin/python -m bench

mutants:
	@EXTRAS=dev sh scripts/setup
	@.venv/bin/python -m tests.mutants $(NAMES) $(if $(MODULES),--modules $(MODULES)) $(if $(CHANGED),--changed $(CHANGED))

soak: mutants
	@EXTRAS=dev sh scripts/setup
	@HYPOTHESIS_PROFILE=soak .venv/bin/python -m pytest -n 2 --dist loadgroup -m "soak or not soak"
