#!/usr/bin/env bash
# Two texts of your own, of one style each, that are no translations of one another.
#   bash scripts/prepare/styles.sh DEST A B --data DIR [--first N] [--first-valid N]
# DIR has {train,valid,test}.{A,B}, plain words (tokenised), a sentence a line, and may have
# human.{A,B}: what people have written instead of the test sentences. In a recipe:
# data.prepare=styles data.options=[A,B]; styles.py says what DEST holds then.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE/../lib/common.sh"
[ $# -ge 3 ] || die "usage: styles.sh DEST A B --data DIR [--first N] [--first-valid N] (--help says more)"
destination "$1"
dest="$1" a="$2" b="$3" data="" options=(); shift 3
for style in "$a" "$b"; do
    [[ "$style" =~ ^[A-Za-z0-9][A-Za-z0-9_@]*$ ]] || die "A and B are the ends of the files' names, letters and digits, not '$style'"
done
while [ $# -gt 0 ]; do
    case "$1" in
        --data) data="${2:?--data needs a folder}"; shift 2 ;;
        --first|--first-valid) options+=("$1" "${2:?$1 needs a number}"); shift 2 ;;
        --monolingual) shift ;;
        *) die "unknown option $1 (choose from --data, --first, --first-valid, --monolingual)" ;;
    esac
done
[ -n "$data" ] || die "--data DIR is needed: a folder with {train,valid,test}.{$a,$b}"
[ -d "$data" ] || die "--data: there is no folder $data"
for file in {train,valid,test}.{"$a","$b"}; do
    [ -s "$data/$file" ] || die "--data: $data has no file $file (or an empty one)"
done
if [ -e "$data/human.$a" ] || [ -e "$data/human.$b" ]; then
    options+=(--human "$data/human.$a" "$data/human.$b")
fi
mkdir -p "$dest"
package_python "$HERE/styles.py" "$dest" "$a" "$b" --train "$data/train.$a" "$data/train.$b" \
    --valid "$data/valid.$a" "$data/valid.$b" --test "$data/test.$a" "$data/test.$b" \
    ${options[@]+"${options[@]}"} || exit 2
say "$a and $b are in $dest"
