#!/usr/bin/env bash
# A non-autoregressive model with EISL on Multi30k English-German, small, on a CPU or a GPU: cross
# entropy, then as many updates again of cross entropy and of EISL (orders 2,3,4) from the same
# checkpoint; the last 5 checkpoints of each are averaged and scored at several numbers of
# refinement iterations. Rows, pictures, a page. For WMT14: wmt14.sh.
#   bash scripts/nat.sh MODEL [key=value ...] [--runs DIR] [--out DIR]
# All but nat, nat_kd and cmlm begin with what vanilla NAT has learnt in as many epochs as nat trains.
# MODEL is nat, nacrf, inat, levt or cmlm, or nat_kd: on a teacher's translations of the training set;
# or one with latent alignments, ctc or dag, which begins with its likelihood in place of cross entropy.
# Settings of configs/nat/MODEL_small.yaml, e.g. data.folder=DIR (files that are there already),
# train.ce.flags.max-epoch=2; for nat and cmlm train.ce.flags.init-weights=FILE (of another model).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
choose "the model" "${1:-}" nat nat_kd nacrf inat levt cmlm ctc dag
model="$1"; shift
run_recipe "nat/${model}_small" "$@"
