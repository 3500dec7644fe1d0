#!/usr/bin/env bash
# A WMT corpus that lies in a folder already, as {train,valid,test}.{SOURCE,TARGET}: text.sh by
# another name. Nothing is fetched: the corpora are gigabytes, and which parts of them are meant is
# the experiment's to say.
#   bash scripts/prepare/wmt.sh DEST SOURCE TARGET --data DIR [--size N]
# DIR has the six files, tokenised; N: only the first N pairs of the training set.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
[ $# -ge 3 ] || die "usage: wmt.sh DEST SOURCE TARGET --data DIR [--size N] (--help says more)"
exec bash "$ROOT/scripts/prepare/text.sh" "$@"
