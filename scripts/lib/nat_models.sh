# The flags of fairseq's five non-autoregressive models, by $ARCH. Sourced by nat.sh; the sizes come
# from the files of the data sets. Sets MODEL, TASK, ITERATIONS (unless given) and EVAL.

MODEL=(--share-all-embeddings --encoder-learned-pos --decoder-learned-pos --apply-bert-init --activation-fn gelu)
LENGTH=(--pred-length-offset --length-loss-factor 0.1)
NOISE=(--noise full_mask)
case "$ARCH" in
    nat) MODEL+=(--arch nonautoregressive_transformer "${LENGTH[@]}") ;;
    nacrf) MODEL+=(--arch nacrf_transformer "${LENGTH[@]}" --word-ins-loss-factor 0.5
        --crf-lowrank-approx 32 --crf-beam-approx 64) ;;
    inat) MODEL+=(--arch iterative_nonautoregressive_transformer "${LENGTH[@]}" --train-step 4 --dae-ratio 0.5
        --stochastic-approx) ;;
    # Half of the examples show nothing of the target, as the first pass of decoding does, which is
    # what one-pass scores measure.
    cmlm) MODEL+=(--arch cmlm_transformer "${LENGTH[@]}"); NOISE=(--noise random_mask --full-mask-prob 0.5) ;;
    levt) MODEL+=(--arch levenshtein_transformer); NOISE=(--noise random_delete --full-mask-prob 0.5) ;;
esac
TASK=(--task noisy_translation_lev "${NOISE[@]}")
case "$ARCH" in
    nat|nacrf) ITERATIONS="${ITERATIONS:-0}" ;;
    *) ITERATIONS="${ITERATIONS:-0,1,3,9}" ;;
esac
# Validation decodes in one pass: what is compared, and ten times cheaper than refinement.
EVAL='{"iter_decode_max_iter": 0}'
