#!/usr/bin/env bash
# Multi30k German-English with noise on the English training targets: CE, EISL from it, scores on
# test2018 (1071 lines, lower-cased, tokenised) and a picture.
#   bash scripts/multi30k.sh --small [--data DIR] [--noise SPEC] ...   small Transformer, from scratch
#   bash scripts/multi30k.sh [--bart DIR] [--data DIR] ...             BART-base, the paper's setting
# Options:
#   --data DIR     folder with the Multi30k files (default: they are fetched)
#   --noise SPEC   repeat:0.5 (default), blank:0.4, shuffle:3, synthetic:5, ...
#   --small        a Transformer of 1.9 M parameters: 34 to 43 CPU minutes from scratch. It undoes
#                  repetition and some blanks; shuffled text needs a model that knows the target
#                  language, such as BART
#   --bart DIR     unpacked bart.base (model.pt, dict.txt, encoder.json, vocab.bpe; default: fetched)
#   --out DIR      default: runs/multi30k/<model>-<noise>-seed<N>; run it again to go on after a kill
#   --seed N       of training and noise (default: 1)
#   --cpu          do not use a GPU
#   -- FLAGS       more fairseq-train flags, for both stages (the last value of a flag counts)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

DATA_DIR="" NOISE=repeat:0.5 KIND=bart BART="" OUT="" SEED=1 CPU="" EXTRA=()
while [ $# -gt 0 ]; do
    case "$1" in
        --data) DATA_DIR="${2:?--data needs a folder}"; shift 2 ;;
        --noise) NOISE="${2:?--noise needs a specification}"; shift 2 ;;
        --small) KIND=small; shift ;;
        --bart) BART="${2:?--bart needs a folder}"; shift 2 ;;
        --out) OUT="${2:?--out needs a folder}"; shift 2 ;;
        --seed) SEED="${2:?--seed needs a number}"; shift 2 ;;
        --cpu) CPU=yes; shift ;;
        --) shift; EXTRA=("$@"); break ;;
        -h|--help) sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) die "unknown option $1 (choose from --data, --noise, --small, --bart, --out, --seed, --cpu, --)" ;;
    esac
done
[[ "$SEED" =~ ^[0-9]+$ ]] || die "--seed needs a whole number, not '$SEED'"
[ "$KIND" = bart ] || [ -z "$BART" ] || die "--small and --bart exclude each other"

use_environment plots
# A wrong noise stops here, not after an hour.
python -c 'import sys; from fairseq_eisl.noise import parse_noise
try: parse_noise(sys.argv[1])
except ValueError as err: sys.exit(str(err))' "$NOISE" || exit 2
source "$ROOT/scripts/lib/recipe.sh"
RUN="${OUT:-$ROOT/runs/multi30k/$KIND-${NOISE//[:,]/_}-seed$SEED}"
mkdir -p "$RUN"
RUN="$(cd "$RUN" && pwd)" TEXT="$RUN/text" DATA="$RUN/data"
if [ -z "$CPU" ] && has_cuda; then
    DEVICE=(--fp16)
else
    DEVICE=(--cpu); tune_cpu; export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
fi
TASK=(--task noisy_translation --target-noise "$NOISE" --target-noise-seed "$SEED")
bash "$ROOT/scripts/prepare/multi30k.sh" "$TEXT" ${DATA_DIR:+--data "$DATA_DIR"}
source "$ROOT/scripts/lib/multi30k_$KIND.sh"

[ -e "$DATA/done" ] || { rm -rf "$DATA"; say "preparing the data"; prepare_data; touch "$DATA/done"; }
train_stages

for name in ce eisl; do generate "$name" --beam 5 --max-len-a 1.2 --max-len-b 10 "${GENERATE[@]}"; done
report "Multi30k de-en, $NOISE, seed $SEED" "$TEXT/test.de" "$TEXT/test.en" 5 \
    command="scripts/multi30k.sh $([ $KIND = bart ] || echo "--$KIND ")--noise $NOISE --seed $SEED${EXTRA[*]:+ -- ${EXTRA[*]}}" \
    test_set="Multi30k test2018 de-en, lc.norm.tok" noise="$NOISE" model="$KIND"
