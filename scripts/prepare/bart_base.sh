#!/usr/bin/env bash
# BART-base as fairseq published it, with the files of GPT-2's BPE: model.pt, dict.txt, encoder.json,
# vocab.bpe. Files that are there are kept; a broken download goes on where it stopped.
#   bash scripts/prepare/bart_base.sh DEST
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
URL=https://dl.fbaipublicfiles.com/fairseq
[ $# -eq 1 ] || die "usage: bart_base.sh DEST (--help says more)"
destination "$1"
dest="$1"
if [ ! -s "$dest/model.pt" ]; then
    say "fetching bart.base (about 1 GB)"
    mkdir -p "$dest"
    curl -fL --retry 5 -C - -o "$dest/bart.base.tar.gz" "$URL/models/bart.base.tar.gz" || \
        die "could not fetch bart.base; unpack it yourself into $dest"
    # Whole or not at all: the model is moved last.
    tar -C "$dest" --strip-components 1 -xzf "$dest/bart.base.tar.gz" --transform 's/model[.]pt$/model.pt.part/'
    mv "$dest/model.pt.part" "$dest/model.pt"
    rm "$dest/bart.base.tar.gz"
fi
for file in model.pt dict.txt; do [ -s "$dest/$file" ] || die "$dest has no file $file"; done
for file in encoder.json vocab.bpe; do
    [ -s "$dest/$file" ] && continue
    curl -fsL --retry 5 -o "$dest/$file.part" "$URL/gpt2_bpe/$file" || \
        die "$dest has no $file (GPT-2's BPE), and it could not be fetched"
    mv "$dest/$file.part" "$dest/$file"
done
