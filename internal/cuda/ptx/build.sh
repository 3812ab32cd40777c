#!/bin/bash
# build.sh [MODULE...]: compiles kernels/*.cu, or some of them, to PTX for compute capability
# 6.0 and up, in this folder or in $OUT. Needs nvcc 11.8: others write other code.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "${OUT:-$here}" && pwd)
cd "$here/../kernels"
modules=("$@")
if [ $# -eq 0 ]; then
  rm -f "$out"/*.ptx.gz
  for f in *.cu; do modules+=("${f%.cu}"); done
fi

# The compiler states the newest version of PTX that it knows, and a driver refuses those
# newer than itself. The instructions need less: 6.0 is the version of CUDA 9.0. Names of
# anonymous things have numbers of the process in them, which go.
compile() {
  nvcc -ptx -arch=compute_60 -O3 -fmad=false -std=c++17 "$1.cu" -o "$out/$1.ptx"
  sed -i -E -e '/^\/\//d' -e '/^$/d' -e 's/^\.version .*/.version 6.0/' \
    -e 's/_cu_[0-9a-f]{8}(_[0-9]+)?/_cu/g' -e 's/[0-9]*_(INTERNAL|GLOBAL__N)__?[0-9a-f]{8}_/_\1_/g' "$out/$1.ptx"
  gzip -9nf "$out/$1.ptx"
}
for m in "${modules[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do sleep 0.1; done
  compile "$m" &
done
for p in $(jobs -p); do wait "$p"; done

# sources.txt tells what each module was made of: its file and all headers.
made=$out/sources.txt
[ $# -gt 0 ] && [ -e "$made" ] || : > "$made"
for m in "${modules[@]}"; do
  sed -i "/ $m\$/d" "$made"
  echo "$(cat *.cuh "$m.cu" | sha256sum | cut -d' ' -f1) $m" >> "$made"
done
LC_ALL=C sort -k2 -o "$made" "$made"
