#!/usr/bin/env bash
# A corpus as the pieces of one joint sentencepiece BPE, with the dictionary of both sides.
#   bash scripts/prepare/encode_sentencepiece.sh TEXT DEST SOURCE TARGET SIZE [BLANK]
# TEXT has {train,valid,test}.{SOURCE,TARGET} and may have mono.{train,valid}.TARGET; DEST gets the
# same files in pieces, bpe.model, and dict.txt for fairseq-preprocess --srcdict. BLANK becomes a
# symbol of the dictionary, one piece that stands for a word.
# Needs the environment of the package (python, fairseq-preprocess) on PATH.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
[ $# -ge 5 ] || die "usage: encode_sentencepiece.sh TEXT DEST SOURCE TARGET SIZE [BLANK]"
text="$1" dest="$2" source="$3" target="$4" size="$5" blank="${6:-}"
pieces="$ROOT/scripts/prepare/sentencepiece_bpe.py"
mkdir -p "$dest"
# In the order of the alphabet, so that a corpus has one segmentation in both directions.
mapfile -t sides < <(printf '%s\n' "$text/train.$source" "$text/train.$target" | LC_ALL=C sort)
python "$pieces" train --size "$size" --model "$dest/bpe" "${sides[@]}"
for file in "$text"/{train,valid,test}.{"$source","$target"} "$text"/mono.{train,valid}."$target"; do
    [[ "$file" != */mono.* || -e "$file" ]] || continue
    python "$pieces" encode --model "$dest/bpe.model" < "$file" > "$dest/${file##*/}"
done
run "$dest/dictionary.log" fairseq-preprocess -s "$source" -t "$target" --trainpref "$dest/train" \
    --destdir "$dest/dictionary" --joined-dictionary --dict-only
dictionary="$dest/dictionary/dict.$target.txt"
if [ -n "$blank" ]; then
    # A filler of fairseq's dictionary becomes the blank, so that size and order stay.
    sed "s/^madeupword0000 0$/$blank 0/" "$dictionary" > "$dest/dict.txt.part"
    grep -q "^$blank " "$dest/dict.txt.part" || die "$dictionary has no filler to make a blank from"
else
    cp "$dictionary" "$dest/dict.txt.part"
fi
mv "$dest/dict.txt.part" "$dest/dict.txt"
