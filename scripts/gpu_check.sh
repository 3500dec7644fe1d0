#!/usr/bin/env bash
# Everything that only a CUDA machine can tell, within 10 minutes: the CUDA tests (half precision
# among them), the benchmarks at vocabularies of 32k and 50k and 6000 tokens, a short run of CE and
# EISL under --fp16 with half of the words repeated, and each kind of one-pass model under --fp16 from
# its first update to its translations. A short table last, rows in --out.
#   bash scripts/gpu_check.sh [--out DIR] [--wheels DIR] [--data DIR] [--cpu]
#   --out DIR     default: runs/gpu_check
#   --wheels DIR  no network: a folder of wheels that the environment's python installs from, into a
#                 folder of its own (what the machine has, torch for one, is used as it is)
#   --data DIR    folder with the Multi30k files (default: the toy corpus)
#   --cpu         the same steps at tiny sizes without a GPU, to prove this script
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

OUT="$ROOT/runs/gpu_check" WHEELS="" DATA_DIR="" DEVICE=cuda
while [ $# -gt 0 ]; do
    case "$1" in
        --out) OUT="${2:?--out needs a folder}"; shift 2 ;;
        --wheels) WHEELS="${2:?--wheels needs a folder}"; shift 2 ;;
        --data) DATA_DIR="${2:?--data needs a folder}"; shift 2 ;;
        --cpu) DEVICE=cpu; shift ;;
        *) die "unknown option $1 (choose from --out, --wheels, --data, --cpu)" ;;
    esac
done
for folder in "$WHEELS" "$DATA_DIR"; do
    [ -z "$folder" ] || [ -d "$folder" ] || die "there is no folder $folder"
done
mkdir -p "$OUT"
OUT="$(cd "$OUT" && pwd)"
cd "$ROOT"
if [ -n "$WHEELS" ]; then
    python -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$OUT/site" "$WHEELS"/*.whl || \
        die "the wheels of $WHEELS could not be installed"
    export PYTHONPATH="$OUT/site:$ROOT" PATH="$OUT/site/bin:$PATH"
else
    use_environment test,plots
    export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
fi
[ "$DEVICE" = cpu ] || python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || \
    die "torch finds no usable GPU here (give --cpu to try this script without one)"

FAILED=()
# step NAME SECONDS COMMAND...: one part, within its time; the rest goes on where it fails.
step() {
    local name="$1" seconds="$2" started=$SECONDS; shift 2
    say "$name (log: $OUT/$name.log)"
    if timeout "$seconds" "$@" > "$OUT/$name.log" 2>&1; then
        say "$name: done in $((SECONDS - started)) s"
    else
        tail -n 12 "$OUT/$name.log" >&2
        say "$name: FAILED after $((SECONDS - started)) s"
        FAILED+=("$name")
    fi
}

rm -f "$OUT"/{losses,steps}.csv
BENCHMARK=(python scripts/benchmarks/losses.py --device "$DEVICE" --out "$OUT/losses.csv")
STEPS=(python scripts/benchmarks/steps.py --device "$DEVICE" --out "$OUT/steps.csv")
if [ "$DEVICE" = cuda ]; then
    step tests 120 python -m pytest -q -p no:cacheprovider -n 4 tests/losses tests/criterions -k cuda
    step losses_float32 50 "${BENCHMARK[@]}" --sizes 150x40x32000,120x50x50000
    step losses_float16 40 "${BENCHMARK[@]}" --sizes 150x40x32000,120x50x50000 --dtype float16
    step losses_bfloat16 30 "${BENCHMARK[@]}" --sizes 150x40x32000 --dtype bfloat16
    step steps 50 "${STEPS[@]}" --batch 128 --length 46 --vocabulary 32000
    RECIPE=(configs/smoke/quickstart.yaml device=cuda)
    [ -z "$DATA_DIR" ] || RECIPE=(configs/base/multi30k_small.yaml noise=repeat:0.5 device=cuda
        "data.folder=$DATA_DIR" train.ce.flags.max-epoch=4 train.eisl.flags.max-update=200
        train.ce.flags.max-tokens=6000 train.eisl.flags.max-tokens=6000)
else
    step tests 150 python -m pytest -q -p no:cacheprovider tests/losses/test_eisl_values.py
    step losses_float32 300 "${BENCHMARK[@]}" --sizes 8x16x4000 --repeats 2
    step losses_bfloat16 300 "${BENCHMARK[@]}" --sizes 8x16x4000 --repeats 2 --dtype bfloat16
    step steps 60 "${STEPS[@]}" --batch 4 --length 8 --vocabulary 500 --repeats 1
    RECIPE=(configs/smoke/multi30k_repeat50.yaml train.ce.flags.max-epoch=1 train.eisl.flags.max-update=5)
fi
# One model of models that write in one pass, after vanilla NAT, whose training they share.
one_pass() {
    local model
    for model in nacrf ctc dag; do
        python -m fairseq_eisl.recipes run "configs/nat/${model}_small.yaml" "device=$DEVICE" \
            data.prepare=toy 'data.options=[--train,"1000",--seed,"1"]' data.source=de data.target=en \
            data.vocabulary=null data.test_set=toy train.vanilla.flags.max-epoch=4 \
            train.ce.flags.max-epoch=4 train.ce_continued=null train.eisl.flags.max-update=20 \
            train.eisl.flags.warmup-updates=5 average=null \
            'variants=[{columns:{iterations:0},flags:{iter-decode-max-iter:0}}]' \
            $([ "$model" = nacrf ] || echo train.count=null) tune=null \
            --runs "$OUT/runs" --out "$OUT/$model" || return
    done
}
export -f one_pass
export DEVICE OUT
step one_pass "$([ "$DEVICE" = cpu ] && echo 900 || echo 150)" bash -c one_pass
step run 150 python -m fairseq_eisl.recipes run "${RECIPE[@]}" name=gpu_check --runs "$OUT/runs" --out "$OUT/run"

echo "== $(python -c 'import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU", "| torch", torch.__version__)')"
tail -n 1 "$OUT/tests.log"
for name in losses_float32 losses_float16 losses_bfloat16 steps; do
    if [ -e "$OUT/$name.log" ]; then echo "== $name"; grep -E "^(system|kind|eisl|released|label|cross|nat|features|ar|exact)[a-z_]* " "$OUT/$name.log" | cut -c1-120 || true; fi
done
for model in nacrf ctc dag; do
    echo "== $model"; grep -hE "^[^[]*(loss|BLEU)" "$OUT/$model"/{ce,eisl}/log 2>/dev/null | tail -n 2 | cut -c1-160 || true
done
echo "== run"; grep -E "^(system|CE|EISL) " "$OUT/run.log" || true
say "$SECONDS s in all; rows: $OUT/losses.csv, $OUT/steps.csv, $OUT/run/rows.csv"
[ ${#FAILED[@]} -eq 0 ] || die "failed: ${FAILED[*]}"
