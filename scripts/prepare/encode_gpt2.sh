#!/usr/bin/env bash
# A corpus as GPT-2's BPE pieces, written as numbers, which is what BART reads.
#   bash scripts/prepare/encode_gpt2.sh TEXT DEST SOURCE TARGET BART
# TEXT has {train,valid,test}.{SOURCE,TARGET}; DEST gets the same files in pieces. BART is a folder
# with encoder.json and vocab.bpe. White space of any kind is a space, and how many lines that
# touched is said.
# Needs the environment of the package (python with fairseq) on PATH.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
[ $# -eq 5 ] || die "usage: encode_gpt2.sh TEXT DEST SOURCE TARGET BART (--help says more)"
text="$1" dest="$2" source="$3" target="$4" bart="$5"
destination "$dest"
for file in encoder.json vocab.bpe; do [ -s "$bart/$file" ] || die "$bart has no file $file"; done
for file in {train,valid,test}.{"$source","$target"}; do
    [ -s "$text/$file" ] || die "$text has no file $file (or an empty one)"
done
[ ! "$text" -ef "$dest" ] || die "TEXT and DEST are one folder, $dest: the text would be written over; choose another DEST"
mkdir -p "$dest"
plain="$(mktemp -d "$dest/.plain-XXXXXX")"
trap 'rm -rf "$plain"' EXIT
for split in train valid test; do
    sentences --for-pieces "$text/$split.$source" "$plain/$split.$source" \
        "$text/$split.$target" "$plain/$split.$target"
done
# Without its import, which takes seconds.
encoder="$(python -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("fairseq").origin))')/examples/roberta/multiprocessing_bpe_encoder.py"
# All files as one: starting the encoder takes longer than a small file.
files=({train,valid,test}.{"$source","$target"})
(cd "$plain" && cat "${files[@]}") > "$plain/all"
python "$encoder" --encoder-json "$bart/encoder.json" --vocab-bpe "$bart/vocab.bpe" --keep-empty \
    --inputs "$plain/all" --outputs "$plain/pieces" --workers 2 2> "$dest/encode.log" || \
    die "encoding failed: $dest/encode.log"
[ "$(wc -l < "$plain/pieces")" = "$(wc -l < "$plain/all")" ] || \
    die "encoding failed: GPT-2's encoder has not given a line for each line ($dest/encode.log)"
first=1
for file in "${files[@]}"; do
    last=$((first + $(wc -l < "$plain/$file") - 1))
    sed -n "$first,${last}p;${last}q" "$plain/pieces" > "$plain/$file.part"
    first=$((last + 1))
done
for file in "${files[@]}"; do mv "$plain/$file.part" "$dest/$file"; done
