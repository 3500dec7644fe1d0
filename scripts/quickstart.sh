#!/usr/bin/env bash
# From nothing to a result in a few minutes, on a CPU and without a download of data: a toy corpus,
# CE training on targets with 50% repeated words, EISL fine-tuning from it, translation of the test
# set, a table and a picture.
#   bash scripts/quickstart.sh [--out DIR] [--seed N]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

RUN="$ROOT/runs/quickstart" SEED=1
while [ $# -gt 0 ]; do
    case "$1" in
        --out) RUN="${2:?--out needs a folder}"; shift 2 ;;
        --seed) SEED="${2:?--seed needs a number}"; shift 2 ;;
        -h|--help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) die "unknown option $1 (choose from --out, --seed, --help)" ;;
    esac
done
[[ "$SEED" =~ ^[0-9]+$ ]] || die "--seed needs a whole number, not '$SEED'"

use_environment plots
source "$ROOT/scripts/lib/recipe.sh"
tune_cpu
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
mkdir -p "$RUN"
RUN="$(cd "$RUN" && pwd)"

TEXT="$RUN/text" DATA="$RUN/data" BPE="" DEVICE=(--cpu)
TASK=(--task noisy_translation --target-noise repeat:0.5 --target-noise-seed "$SEED")
MODEL=(--arch transformer --share-all-embeddings --dropout 0.1
    --encoder-layers 2 --encoder-embed-dim 64 --encoder-ffn-embed-dim 256 --encoder-attention-heads 4
    --decoder-layers 2 --decoder-embed-dim 64 --decoder-ffn-embed-dim 256 --decoder-attention-heads 4)
BATCH=(--max-tokens 1000 --max-tokens-valid 4000 --optimizer adam --clip-norm 1.0 --lr-scheduler inverse_sqrt)

if [ ! -e "$DATA/done" ]; then
    say "writing the toy corpus"
    python "$ROOT/data/toy_corpus.py" --out "$TEXT" --seed 1
    rm -rf "$DATA"
    run "$RUN/preprocess.log" fairseq-preprocess -s de -t en --trainpref "$TEXT/train" --validpref "$TEXT/valid" \
        --testpref "$TEXT/test" --destdir "$DATA" --joined-dictionary
    touch "$DATA/done"
fi

train ce "" --criterion label_smoothed_cross_entropy --lr 4e-3 --warmup-updates 200 --max-epoch 4
train eisl "$RUN/ce/checkpoint_best.pt" --criterion eisl --ngram 1,2 --ngram-weight 0.5,0.5 \
    --lr 5e-4 --warmup-updates 50 --max-epoch 1

generate ce --beam 5
generate eisl --beam 5
report "Toy corpus, repeat:0.5, seed $SEED" "$TEXT/test.de" "$TEXT/test.en" 3 \
    test_set="toy test" noise=repeat:0.5 command="scripts/quickstart.sh --seed $SEED"
