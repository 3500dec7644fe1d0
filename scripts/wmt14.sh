#!/usr/bin/env bash
# A non-autoregressive model with EISL on WMT14 English-German, the published setting (GPUs).
#   bash scripts/wmt14.sh MODEL data.folder=DIR [key=value ...] [--runs DIR] [--out DIR]
# MODEL is nat, nacrf, inat, levt or cmlm, each also on a teacher's translations (nat_kd, ...), ctc or
# dag (latent alignments), or small: vanilla NAT, 128 wide, for a CPU.
# DIR has {train,valid,test}.{en,de}, tokenised. Settings of configs/wmt14/MODEL.yaml.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
choose "the model" "${1:-}" {nat,nacrf,inat,levt,cmlm}{,_kd} ctc dag small
model="$1"; shift
run_recipe "wmt14/$model" "$@"
