#!/usr/bin/env bash
# A corpus as GPT-2's BPE pieces, written as numbers, which is what BART reads.
#   bash scripts/prepare/encode_gpt2.sh TEXT DEST SOURCE TARGET BART
# TEXT has {train,valid,test}.{SOURCE,TARGET}; DEST gets the same files in pieces. BART is a folder
# with encoder.json and vocab.bpe.
# Needs the environment of the package (python with fairseq) on PATH.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
[ $# -eq 5 ] || die "usage: encode_gpt2.sh TEXT DEST SOURCE TARGET BART"
text="$1" dest="$2" source="$3" target="$4" bart="$5"
for file in encoder.json vocab.bpe; do [ -s "$bart/$file" ] || die "$bart has no file $file"; done
mkdir -p "$dest"
encoder="$(python -c 'import os, fairseq; print(os.path.dirname(fairseq.__file__))')/examples/roberta/multiprocessing_bpe_encoder.py"
for split in train valid test; do
    # Both sides at once: starting the encoder takes longer than a small file.
    python "$encoder" --encoder-json "$bart/encoder.json" --vocab-bpe "$bart/vocab.bpe" --keep-empty \
        --inputs "$text/$split".{"$source","$target"} --outputs "$dest/$split".{"$source","$target"} \
        --workers 2 2> "$dest/encode.log" || die "encoding $split failed: $dest/encode.log"
done
