#!/usr/bin/env bash
# The toy corpus, German-like to English-like, as {train,valid,test}.{de,en}; nothing is fetched.
#   bash scripts/prepare/toy.sh DEST [options of data/toy_corpus.py, e.g. --train 2000]
# Needs python on PATH.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
[ $# -ge 1 ] || die "usage: toy.sh DEST [options of data/toy_corpus.py] (--help says more)"
destination "$1"
dest="$1"; shift
package_python "$ROOT/data/toy_corpus.py" --out "$dest" "$@"
