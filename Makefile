# `make demo` and `make test` are the two to know. Every target sets itself up in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all docs lint sbom clean

demo: .venv/ready
	$(BIN)/hedged demo --out runs/demo

test: .venv/ready lint
	$(BIN)/python -m pytest -n 2 -m "not heavy"

# What is too heavy for `make test`; the two share no test.
test-all: .venv/ready docs
	$(BIN)/python -m pytest -n 2 -m heavy

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html, or serve it with search: $(BIN)/python -m http.server -d build/site"

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What hedged is made of, with versions and licences (CycloneDX).
sbom: .venv/ready
	mkdir -p build
	$(BIN)/python tools/sbom.py > build/sbom.json

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist
