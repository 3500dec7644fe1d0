#!/usr/bin/env bash
# Multi30k German-English with noise on the English training targets: CE, EISL from it, scores on
# test2018 (1071 lines, lower-cased, tokenised), pictures and a page.
#   bash scripts/multi30k.sh MODEL NOISE [key=value ...] [--runs DIR] [--out DIR]
# MODEL  small       a Transformer of 1.9 M parameters from scratch, about 40 CPU minutes. It undoes
#                    repetition and some blanks; shuffled text needs a model that knows the target
#                    language
#        bart_small  the same size, denoising pretraining on English captions first
#        bart        BART-base, the paper's setting (fetched; or data.gpt2=DIR, an unpacked bart.base
#                    with model.pt, dict.txt, encoder.json, vocab.bpe)
# NOISE  none, repeat:0.5, blank:0.4, shuffle:3, synthetic:5, ...
# Settings of configs/base/multi30k_MODEL.yaml, e.g. data.folder=DIR (files that are there already),
# seed=2, device=cpu, train.eisl.flags.lr=1e-4. Run it again to go on after a kill.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
choose "the model" "${1:-}" small bart_small bart
[ $# -ge 2 ] && [[ "$2" != *=* ]] || die "the second argument is the noise, e.g. repeat:0.5"
model="$1" noise="$2"; shift 2
if [ "$model" = bart ] && [[ " $*" != *" data.gpt2="* ]]; then
    bash "$ROOT/scripts/prepare/bart_base.sh" "$ROOT/runs/bart.base"
    set -- "data.gpt2=$ROOT/runs/bart.base" "$@"
fi
run_recipe "base/multi30k_$model" "noise=$noise" "name=multi30k_${model}_${noise//[:,]/_}" "$@"
