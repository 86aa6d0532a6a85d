#!/bin/sh
# Runs one fuzz target for GENAI_FUZZ_SECONDS (60), beginning with its seeds and with what earlier runs found in this build directory. What it tries
# follows GENAI_FUZZ_SEED (1: the same in every clean clone, as far as it gets; 0: something else each time).
# Usage: fuzz.sh TARGET SEEDS WORK_FOLDER
target=$1 seeds=$2 work=$3 seed=${GENAI_FUZZ_SEED:-1}
name=$(basename "$target")
mkdir -p "$work/corpus/$name" && cd "$work" || exit 1
[ -d "$seeds" ] || { echo "$seeds is missing: every target has seeds"; exit 1; }
# Addresses and the clock take part in libFuzzer's choices: the first are fixed where that is allowed, the corpus is not read again meanwhile.
still=
[ "$seed" = 0 ] || ! setarch -R true 2>/dev/null || still="setarch -R"
$still "$target" -seed="$seed" -reload=0 -max_total_time="${GENAI_FUZZ_SECONDS:-60}" -timeout=20 -malloc_limit_mb=256 -rss_limit_mb=2048 \
  -print_final_stats=1 -artifact_prefix="$work/$name-" "corpus/$name" "$seeds" >"$name.log" 2>&1
code=$?
if [ $code != 0 ]; then
  tail -60 "$name.log"
  exit $code
fi
printf '%s: ' "$name"
awk '/ cov: /{ for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) } /^Done /{ runs = $2; seconds = $5 } /peak_rss_mb/{ peak = $2 }
     /slowest_unit/{ slowest = $2 } END { printf "%d runs in %d s, %d edges, peak %d MB, slowest input %d s\n", runs, seconds, edges, peak, slowest }' "$name.log"
