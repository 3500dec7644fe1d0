#!/usr/bin/env bash
# All tests and checks, as CI runs them. Without an active environment it makes one in .venv.
#   bash scripts/test.sh [pytest arguments]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# Where a package index has no transformers, the tests of its trainers are skipped, and say so.
(use_environment test,plots,docs,style,huggingface) || say "going on without Hugging Face"
use_environment test,plots,docs,style
cd "$ROOT"
make check PYTHON=python
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
python -m pytest -n "${PYTEST_WORKERS:-2}" "$@"
