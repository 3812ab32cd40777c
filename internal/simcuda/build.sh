#!/bin/bash
# build.sh DIR [DRIVER]: makes DIR/libcuda.so.1, a stand-in for NVIDIA's driver, and DIR/kernels.so,
# the project's kernels compiled for the host. Needs g++ and no CUDA toolkit. Compiles
# only what changed. DIR/libraries gets the stand-ins of NVIDIA's libraries. With DRIVER, a
# folder made before whose driver loads them, it makes kernels.so alone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernels=$(cd "${KERNELS:-$here/../cuda/kernels}" && pwd)
driver=.
if [ $# = 2 ]; then driver=$(cd "$2" && pwd); fi
mkdir -p "$1/obj"
cd "$1"
CXX=${CXX:-g++}
flags="-std=c++17 -O2 -fPIC -fvisibility=hidden -fno-strict-aliasing -Wall -Wno-unknown-pragmas -Wno-unused-variable"
# As on the device: no product is fused with a sum unless it says so.
device="$flags -DSIMCUDA -ffp-contract=off -fno-math-errno -fno-trapping-math"
if [ "$(uname -m)" = x86_64 ]; then device="$device -march=native"; fi

# stale OUT SOURCE: does not exist, is older than what it was made of, or was made of
# another checkout's.
stale() {
  [ -e "$1" ] && [ -e "$1.d" ] && grep -qF "$2" "$1.d" || return 0
  [ "$1" -nt "$here/build.sh" ] || return 0
  local f
  for f in $(sed -e 's/^[^:]*://' -e 's/\\$//' "$1.d"); do
    [ -e "$f" ] && [ "$1" -nt "$f" ] || return 0
  done
  return 1
}

driver() { # driver NAME
  $CXX $flags -MMD -MF "obj/$1.o.d" -c "$here/src/$1.cpp" -o "obj/$1.o"
}

# kernel FILE: its kernels are those functions that remain with the attribute of
# __global__ after preprocessing.
kernel() {
  local name=$(basename "$1" .cu) list
  list=$($CXX -x c++ $device -I"$here/src" -E -P "$1" | tr '\n' ' ' |
    grep -oE '__attribute__ ?\(\(flatten\)\) *void *[A-Za-z0-9_]+' | grep -oE '[A-Za-z0-9_]+$') ||
    { echo "$1: no kernels" >&2; return 1; }
  { echo "#include \"$1\""; for k in $list; do echo "SIMCUDA_KERNEL($k)"; done; } > "obj/$name.cu.cpp"
  rm -f "obj/$name.cu.o" # what does not compile is left out
  $CXX $device -I"$here/src" -MMD -MF "obj/$name.cu.o.d" -c "obj/$name.cu.cpp" -o "obj/$name.cu.o"
}

device() { $CXX $device -ftls-model=initial-exec -I"$here/src" -MMD -MF obj/block.o.d -c "$here/src/block.cpp" -o obj/block.o; }

# compile runs jobs on all cores. Later ones run even if one fails.
failed=0
compile() {
  local pids=()
  for job in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do sleep 0.05; done
    $job & pids+=($!)
  done
  for p in "${pids[@]}"; do wait "$p" || failed=1; done
}

link() { # link OUT FLAGS OBJECTS: in one step, so that a running program keeps the old one
  local out=$1; shift
  $CXX -shared -o "$out.new" -Wl,-z,defs "$@" && mv "$out.new" "$out"
}

if [ "$driver" = . ]; then
  todo=() o=(obj/block.o)
  if stale obj/block.o "$here/src/block.cpp"; then todo+=(device); fi
  for f in device queue memory launch; do
    o+=("obj/$f.o")
    if stale "obj/$f.o" "$here/src/$f.cpp"; then todo+=("driver $f"); fi
  done
  if [ "${#todo[@]}" != 0 ] || [ ! -e libcuda.so.1 ]; then
    compile "${todo[@]}"
    link libcuda.so.1 -Wl,-soname,libcuda.so.1 "${o[@]}" -ldl -lpthread
  fi

  mkdir -p libraries
  for lib in cublas.so.12 cudnn.so.9; do
    f=${lib%%.*}
    if stale "obj/$f.o" "$here/src/$f.cpp" || [ ! -e "libraries/lib$lib" ]; then
      compile "driver $f"
      link "libraries/lib$lib" -Wl,-soname,"lib$lib" "obj/$f.o" libcuda.so.1
    fi
  done
fi

todo=() o=()
for f in "$kernels"/*.cu; do
  [ -e "$f" ] || continue
  out=obj/$(basename "$f").o
  o+=("$out")
  if stale "$out" "$f"; then todo+=("kernel $f"); fi
done
if [ "${#todo[@]}" != 0 ] || [ ! -e kernels.so ]; then
  compile "${todo[@]}"
  for i in "${!o[@]}"; do [ -e "${o[i]}" ] || unset "o[i]"; done
  link kernels.so "${o[@]}" "$driver/libcuda.so.1"
fi
exit $failed
