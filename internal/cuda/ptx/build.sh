#!/bin/bash
# build.sh [MODULE...]: compiles kernels/*.cu, or some of them, to PTX here, for compute
# capability 6.0 and up. Needs nvcc 11.8. Where MODULE is given the others stay as they are.
set -euo pipefail
cd "$(dirname "$0")/../kernels"
nvcc=${NVCC:-nvcc}
modules=("$@")
[ $# -gt 0 ] || { rm -f ../ptx/*.ptx; for f in *.cu; do modules+=("${f%.cu}"); done; }

# A compiler writes the newest version of PTX that it knows; drivers refuse those newer than
# themselves. What the instructions need is less: version 6.0 has all that compute_60 has.
for m in "${modules[@]}"; do
  $nvcc -ptx -arch=compute_60 -O3 -fmad=false -std=c++17 "$m.cu" -o "../ptx/$m.ptx"
  sed -i -e '/^\/\//d' -e '/^$/d' -e 's/^\.version .*/.version 6.0/' "../ptx/$m.ptx"
done

# Each module's line tells what it was made of.
for f in *.cu; do
  printf '%s %s\n' "$(cat *.cuh "$f" | sha256sum | cut -d' ' -f1)" "${f%.cu}"
done > ../ptx/sources.new
touch ../ptx/sources.txt
for f in *.cu; do
  m=${f%.cu}
  if [[ " ${modules[*]} " == *" $m "* ]]; then grep " $m\$" ../ptx/sources.new; else grep " $m\$" ../ptx/sources.txt || true; fi
done > ../ptx/sources.tmp
mv ../ptx/sources.tmp ../ptx/sources.txt
rm ../ptx/sources.new
