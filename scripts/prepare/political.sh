#!/usr/bin/env bash
# Comments on posts of members of Congress, by their party (Voigt et al., 2018, as used for style
# transfer by Prabhumoye et al. and Tian et al., 2018), into a folder; styles.py says what it holds.
#   bash scripts/prepare/political.sh DEST --data DIR [--first N] [--held-out N]
# DIR has train.{0,1} (0 democratic, 1 republican), test.merge and test.labels, its labels (0 or 1 a
# line); see github.com/YouzhiTian/Structured-Content-Preservation-for-Unsupervised-Text-Style-Transfer.
# The last 200 training sentences of each side (--held-out) are for validation. --monolingual changes
# nothing: the text of both sides is always there as mono.{train,valid}.republican.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE/../lib/common.sh"
[ $# -ge 1 ] || die "usage: political.sh DEST --data DIR [--first N] [--held-out N] (--help says more)"
destination "$1"
dest="$1" data="" held=200 options=(); shift
while [ $# -gt 0 ]; do
    case "$1" in
        --data) data="${2:?--data needs a folder}"; shift 2 ;;
        --held-out) held="${2:?--held-out needs a number}"; shift 2 ;;
        --first) options+=("$1" "${2:?--first needs a number}"); shift 2 ;;
        --monolingual) shift ;;
        *) die "unknown option $1 (choose from --data, --first, --held-out, --monolingual)" ;;
    esac
done
[ -n "$data" ] || die "--data DIR is needed; the head of this script says what it holds"
[ -d "$data" ] || die "--data: there is no folder $data"
for file in train.{0,1} test.merge test.labels; do
    [ -s "$data/$file" ] || die "--data: $data has no file $file (or an empty one)"
done
mkdir -p "$dest"
package_python "$HERE/styles.py" "$dest" democratic republican --train "$data"/train.{0,1} \
    --held-out "$held" --merged-test "$data"/test.{merge,labels} \
    ${options[@]+"${options[@]}"} || exit 2
say "the comments are in $dest"
