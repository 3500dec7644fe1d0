#!/usr/bin/env bash
# WMT18 raw German-English, pairs that are noisy as they are, clean validation: CE, EISL from it.
#   bash scripts/wmt18.sh MODEL data.folder=DIR [key=value ...] [--runs DIR] [--out DIR]
# MODEL  small  a Transformer of 128 units from scratch, for a CPU
#        bart   BART-base, the paper's setting (fetched; or data.gpt2=FOLDER), for a GPU
# DIR has {train,valid,test}.{de,en}, tokenised. Settings of configs/wmt18/MODEL.yaml.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
choose "the model" "${1:-}" small bart
model="$1"; shift
if [ "$model" = bart ] && [[ " $*" != *" data.gpt2="* ]]; then
    bash "$ROOT/scripts/prepare/bart_base.sh" "$ROOT/runs/bart.base"
    set -- "data.gpt2=$ROOT/runs/bart.base" "$@"
fi
run_recipe "wmt18/$model" "$@"
