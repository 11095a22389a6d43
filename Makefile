# One command per thing a person does. Everything is set up on first use; `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PROJECT ?= projects/slurm-p5en.yaml
# What the project makes: a cluster to train on, endpoints, or both.
STACKS ?= $(if $(shell grep -lE '^training:' $(PROJECT)),TrainingStack) $(if $(shell grep -lE '^inference:' $(PROJECT)),InferenceStack)
# A local AWS runs no chart: where HyperPod's is not there, which `fmblocks chart pull` fetches, one of ours stands for it.
CHARTS ?= $(if $(wildcard $(dir $(PROJECT))charts/hyperpod/Chart.yaml),,-c charts=tests/charts)
# Two machines' worth of work fits two cores; pytest-xdist takes the number.
WORKERS ?= 2

BIN := $(CURDIR)/.venv/bin
export PATH := $(BIN):$(CURDIR)/node_modules/.bin:$(PATH)
# Some machines switch byte code off; every start of Python would then compile aws_cdk anew.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE
unexport VIRTUAL_ENV
IN_LOCAL_AWS := $(BIN)/fmblocks local run --project $(PROJECT) --

.PHONY: help setup deploy-local destroy-local check test unit stacks lambda local slurm docs bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.done .venv-local/.done node_modules/.done ## make the environments: Python, local AWS, Node and CDK CLI

.venv/.done: requirements/bootstrap.lock requirements/dev.lock pyproject.toml
	@echo "== Python environment (.venv)"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q constructs stacks lambda
	touch $@

.venv-local/.done: .venv/.done constructs/fmblocks/local/requirements.lock
	@echo "== environment of the local AWS (.venv-local)"
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-local
	$(BIN)/uv pip install --quiet --python .venv-local/bin/python --require-hashes -r constructs/fmblocks/local/requirements.lock
	touch $@

node_modules/.done: .venv/.done package-lock.json
	@echo "== CDK CLI (node_modules)"
	npm ci --silent
	touch $@

deploy-local: setup ## put the project (TrainingStack, InferenceStack) into a local AWS (PROJECT=projects/….yaml picks another project)
	@echo "== deploying $(PROJECT) into a local AWS; nothing leaves this machine"
	$(IN_LOCAL_AWS) npx cdk deploy $(STACKS) -c project=$(PROJECT) $(CHARTS) --progress events
	@printf '%s\n' '' \
	  '== deployed: $(strip $(STACKS)), in the local AWS. Look around with any AWS tool, for example' \
	  '   .venv/bin/fmblocks local run -- npx cdk list --long -c project=$(PROJECT) $(CHARTS)' \
	  '   .venv/bin/fmblocks local run --project $(PROJECT) -- python docs/examples/look_around.py $(PROJECT)' \
	  '   .venv/bin/fmblocks local run --project $(PROJECT) -- aws fsx describe-file-systems   (with the AWS CLI)' \
	  '== In a real account, with credentials in the environment and the account bootstrapped:' \
	  '   npx cdk deploy $(strip $(STACKS)) -c project=$(PROJECT)' \
	  '== make destroy-local PROJECT=$(PROJECT) removes it again; with ALL=1 all stacks: a CapacityStack bills until then'

destroy-local: setup ## remove it from the local AWS; ALL=1 unlocks and removes all stacks
	$(IN_LOCAL_AWS) npx cdk destroy $(STACKS) -c project=$(PROJECT) $(CHARTS) --force
ifeq ($(ALL),1)
	$(IN_LOCAL_AWS) python docs/examples/unlock.py $(PROJECT)
	$(IN_LOCAL_AWS) npx cdk destroy --all -c project=$(PROJECT) $(CHARTS) --force
	@echo '== what is kept: data, its key, and the network it stands on'
	$(IN_LOCAL_AWS) python docs/examples/look_around.py $(PROJECT)
endif

check: setup ## lint and types
	ruff check .
	ruff format --check .
	mypy
	lint-imports

unit: setup ## test: the quick ones
	pytest -q -n $(WORKERS) tests/unit

stacks: setup ## test: synthesized templates against properties, cfn-lint, cdk-nag and each other
	pytest -q -n $(WORKERS) tests/stacks tests/comparison

lambda: setup ## test: handlers that run in AWS Lambda
	pytest -q -n $(WORKERS) tests/lambda

local: setup ## test: real `cdk deploy` into the local AWS
	pytest -q -n $(WORKERS) tests/local

slurm: setup ## test: acceptance jobs under a real Slurm, where there is one
	bash tests/slurm/install.sh
	pytest -q tests/slurm

test: check ## everything that CI runs
	bash tests/slurm/install.sh
	pytest -q -n $(WORKERS) tests

docs: setup ## write the generated pages of docs/
	python docs/generate.py
	python -m tests.comparison.compare

bench: setup ## time and memory of the app, cold starts of validate, the chains of slow resources
	python benchmarks/synth.py
	python benchmarks/validate.py
	python benchmarks/critical_path.py

lock: setup ## renew the hashed locks
	uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate --group dev pyproject.toml -o requirements/dev.lock
	uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate requirements/bootstrap.in -o requirements/bootstrap.lock
	uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate constructs/fmblocks/local/requirements.in -o constructs/fmblocks/local/requirements.lock
	npm install --package-lock-only

clean: ## stop the local AWS and remove what setup made
	-test -x $(BIN)/fmblocks && $(BIN)/fmblocks local down
	rm -rf .venv .venv-local node_modules cdk.out dist .fmblocks
