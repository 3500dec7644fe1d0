#!/usr/bin/env bash
# From nothing to a result in a few minutes, on a CPU and without a download of data: a toy corpus,
# CE training on targets with 50% repeated words, EISL fine-tuning from it, translation of the test
# set, a table, pictures and a page.
#   bash scripts/quickstart.sh [key=value ...] [--runs DIR] [--out DIR]
# It runs configs/smoke/quickstart.yaml, whose settings key=value changes, e.g. seed=2 noise=blank:0.3.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
run_recipe smoke/quickstart "$@"
