#!/usr/bin/env bash
# A non-autoregressive model with EISL: cross entropy, then as many updates again of cross entropy
# and of EISL (orders 2,3,4) from the same checkpoint; the last 5 checkpoints of each are averaged
# and scored at several numbers of refinement iterations. Rows and pictures.
#   bash scripts/nat.sh ARCH --small [--data DIR] [--kd] ...   Multi30k en-de, models for a CPU
#   bash scripts/nat.sh ARCH --data DIR [--kd] ...             WMT14 en-de, the published setting
# ARCH is nat, nacrf, inat, levt or cmlm. Options:
#   --data DIR     --small: folder with the Multi30k files (default: they are fetched); else a folder
#                  with {train,valid,test}.{en,de}, tokenised and split into @@ pieces
#   --small        3+3 layers, 128 wide, joint BPE of 4000; test2016 (1000 lines)
#   --kd           train on a teacher's translations of the training set (scripts/lib/distil.sh)
#   --iterations L refinement iterations to score, e.g. 0,1,3 (default: 0 for nat and nacrf, which
#                  are made for one pass; 0,1,3,9 for the others)
#   --out DIR      default: runs/nat/<data>-<ARCH>-seed<N>; run it again to go on after a kill
#   --start FILE   checkpoint, also of another ARCH, that the first stage begins with (default: random
#                  weights); parameters that FILE lacks are random
#   --epochs N     epochs of the first stage (default: 20 with --small)
#   --updates N    updates of each second stage (default: 1300 with --small)
#   --seed N       default: 1
#   --cpu          do not use a GPU
#   -- FLAGS       more fairseq-train flags, for all stages (the last value of a flag counts)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
ARCHS="nat, nacrf, inat, levt, cmlm"

ARCH="${1:-}" DATA_DIR="" KIND=wmt14 KD="" ITERATIONS="" OUT="" START="" EPOCHS="" UPDATES="" SEED=1 CPU="" EXTRA=()
case "$ARCH" in
    nat|nacrf|inat|levt|cmlm) shift ;;
    -h|--help) sed -n '2,25s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "the first argument is the architecture, not '$ARCH' (choose from $ARCHS)" ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in
        --data) DATA_DIR="${2:?--data needs a folder}"; shift 2 ;;
        --small) KIND=multi30k; shift ;;
        --kd) KD=yes; shift ;;
        --iterations) ITERATIONS="${2:?--iterations needs numbers}"; shift 2 ;;
        --out) OUT="${2:?--out needs a folder}"; shift 2 ;;
        --start) START="${2:?--start needs a checkpoint}"; shift 2 ;;
        --epochs) EPOCHS="${2:?--epochs needs a number}"; shift 2 ;;
        --updates) UPDATES="${2:?--updates needs a number}"; shift 2 ;;
        --seed) SEED="${2:?--seed needs a number}"; shift 2 ;;
        --cpu) CPU=yes; shift ;;
        --) shift; EXTRA=("$@"); break ;;
        -h|--help) sed -n '2,25s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) die "unknown option $1 (choose from --data, --small, --kd, --iterations, --out, --start, --epochs, --updates, --seed, --cpu, --)" ;;
    esac
done
[[ "$SEED" =~ ^[0-9]+$ ]] || die "--seed needs a whole number, not '$SEED'"
[[ "$EPOCHS$UPDATES" =~ ^[0-9]*$ ]] || die "--epochs and --updates need whole numbers, not '$EPOCHS', '$UPDATES'"
[ -z "$START" ] || [ -s "$START" ] || die "--start: there is no checkpoint $START"
[[ "$ITERATIONS" =~ ^([0-9]+(,[0-9]+)*)?$ ]] || die "--iterations needs numbers such as 0,1,3, not '$ITERATIONS'"
[ "$KIND" = multi30k ] || [ -n "$DATA_DIR" ] || die "WMT14 needs --data DIR (or give --small)"

use_environment plots
source "$ROOT/scripts/lib/recipe.sh"
source "$ROOT/scripts/lib/nat_models.sh"
BUDGET="${START:+ --start $(basename "$START")}${EPOCHS:+ --epochs $EPOCHS}${UPDATES:+ --updates $UPDATES}" # for the rows' command
TARGETS=raw; [ -z "$KD" ] || TARGETS=kd
RUN="${OUT:-$ROOT/runs/nat/$KIND-$TARGETS-$ARCH-seed$SEED}"
mkdir -p "$RUN"
RUN="$(cd "$RUN" && pwd)" TEXT="$RUN/text" DATA="$RUN/data"
if [ -z "$CPU" ] && has_cuda; then
    DEVICE=(--fp16)
else
    DEVICE=(--cpu); tune_cpu; export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
fi
source "$ROOT/scripts/lib/nat_$KIND.sh"
[ -e "$DATA/done" ] || { rm -rf "$DATA"; say "preparing the data"; prepare_data; touch "$DATA/done"; }
if [ -n "$KD" ]; then
    source "$ROOT/scripts/lib/distil.sh"
    distil
fi

# The two stages that are compared start from the same checkpoint and see the same batches.
train ce "" --criterion nat_loss "${CE_STAGE[@]}" ${START:+--init-weights "$START"}
train ce_continued "$RUN/ce/checkpoint_best.pt" --criterion nat_loss --label-smoothing 0.1 "${SECOND_STAGE[@]}"
train eisl "$RUN/ce/checkpoint_best.pt" --criterion eisl "${EISL_STAGE[@]}" "${SECOND_STAGE[@]}"

# score STAGE SYSTEM ITERATIONS [FLAGS...]: translate and append a row.
score() {
    local stage="$1" system="$2" iterations="$3" name; shift 3
    name="$RUN/$stage/test.iterations$iterations${1:+.candidates$2}.out"
    translate "$RUN/$stage/average.pt" "$name" "${TASK[@]}" --iter-decode-max-iter "$iterations" --beam 1 "$@"
    python -m fairseq_eisl.evaluation score --log "$name" --reference "$TEXT/test.de" --rows "$RUN/rows.csv" \
        --set system="$system" arch="$ARCH" iterations="$iterations" length_candidates="${2:-1}" targets="$TARGETS" \
        seed="$SEED" test_set="$TEST_SET" training_seconds="$(training_seconds "$stage")" updates="$UPDATES" \
        command="scripts/nat.sh $ARCH $([ $KIND = wmt14 ] || echo --small)${KD:+ --kd}$BUDGET --seed $SEED${EXTRA[*]:+ -- ${EXTRA[*]}}" > /dev/null
}
rm -f "$RUN/rows.csv"
for stage in ce_continued eisl; do
    system=EISL; [ $stage = eisl ] || system=CE
    python -m fairseq_eisl.checkpoints average --folder "$RUN/$stage" --last 5 --by-updates --output "$RUN/$stage/average.pt"
    for iterations in ${ITERATIONS//,/ }; do
        say "$system: translating the test set, $iterations refinement iterations"
        score "$stage" "$system" "$iterations"
    done
    [ "$ARCH" = levt ] || score "$stage" "$system" 0 --iter-decode-with-beam 5
done

evaluate=(python -m fairseq_eisl.evaluation)
first="${ITERATIONS%%,*}"
"${evaluate[@]}" plot --rows "$RUN/rows.csv" --where length_candidates=1 iterations="$first" --out "$RUN/compare.png"
[ "$first" = "$ITERATIONS" ] || \
    "${evaluate[@]}" iterations --rows "$RUN/rows.csv" --where length_candidates=1 --out "$RUN/iterations.png"
"${evaluate[@]}" examples --source "$TEXT/test.en" --reference "$TEXT/test.de" -n 5 --seed "$SEED" \
    --system CE="$RUN/ce_continued/test.iterations$first.out" EISL="$RUN/eisl/test.iterations$first.out"
"${evaluate[@]}" table --rows "$RUN/rows.csv" --columns system iterations length_candidates bleu repetition \
    length_ratio length_error sentences bleu_signature
say "rows and pictures: $RUN"
