# Everything here needs Go alone; `race` and `test-cuda` a C compiler, `test-cuda-sim` one for C++.
GO ?= go
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all test race full bench bench-peers bench-cuda lint cross arm64 generate generate-check examples fuzz test-cuda simulated test-cuda-sim test-cuda-orders ptx ptx-check

all: lint test

test:
	$(GO) test ./...

# The kernels' own tests go through the levels themselves.
# Go remembers a result whatever TestMain read from the environment: hence the count.
levels:
	@set -e; for l in portable avx2 avx512 avx512bf16; do \
	  SNUG_LEVEL=$$l $(GO) test -count 1 -run '^$$' ./internal/host/kern >/dev/null || { echo "$$l: not on this machine"; continue; }; \
	  echo "$$l:"; SNUG_LEVEL=$$l $(GO) test -count 1 . ./internal/host; done

race:
	CGO_ENABLED=1 $(GO) test -race -short -timeout 40m ./...

# The CUDA backend needs a C compiler, and no CUDA toolkit. On a GPU:
CUDA = eval "$$($(GO) run ./cmd/snug cuda env)" && export SNUG_DEVICE=cuda:0 &&

test-cuda:
	$(CUDA) $(GO) test -tags cuda -count 1 -timeout 60m $(TESTFLAGS) ./...

# On the simulated one, which needs a C++ compiler. It is kept and compiled anew where its
# sources changed.
SIM ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/snug/simcuda

SIMULATED = $(CUDA) export SNUG_CUDA_DRIVER=$(SIM)/libcuda.so.1 SIMCUDA=$(SIM) SIMCUDA_DEVICES=2 &&

simulated:
	mkdir -p $(SIM)
	internal/simcuda/build.sh $(SIM)

test-cuda-sim: simulated
	$(CUDA) $(GO) vet -tags cuda ./... && $(STATICCHECK) -tags cuda ./internal/cuda .
	$(SIMULATED) $(GO) test -tags cuda -count 1 -timeout 60m $(TESTFLAGS) ./...
	$(SIMULATED) export SIMCUDA_PEER=0 SIMCUDA_GROWABLE=0 && \
	  $(GO) test -tags cuda -count 1 $(TESTFLAGS) -run 'Receive|AcrossDevices|Start|TooMuch|Refuses|SameBits' ./internal/cuda .
	$(SIMULATED) export LD_LIBRARY_PATH=$(SIM)/libraries && \
	  $(GO) test -tags cuda -count 1 $(TESTFLAGS) -run 'Librar|TF32' ./internal/cuda && \
	  $(GO) test -tags cuda -count 1 $(TESTFLAGS) -run 'MatMul|Linear|Conv|Attention|SameBits|Prediction' .

# Other orders of what streams run, and each block in memory of its own.
test-cuda-orders: simulated
	$(SIMULATED) for seed in 2 3 4; do SIMCUDA_SEED=$$seed \
	  $(GO) test -tags cuda -short -count 1 . ./internal/cuda ./offload ./checkpoint ./optim || exit 1; done
	$(SIMULATED) $(GO) test -tags "cuda snugdebug" -count 1 -timeout 60m ./...

# What the driver compiles for its card, made by nvcc 11.8.
ptx:
	internal/cuda/ptx/build.sh

ptx-check: SHELL = /bin/bash
ptx-check:
	@command -v nvcc >/dev/null || { echo "no nvcc: the PTX is not compiled again"; exit 0; }; \
	  set -e; dir=$$(mktemp -d); trap 'rm -r $$dir' EXIT; OUT=$$dir internal/cuda/ptx/build.sh; \
	  for f in $$dir/*.gz; do cmp <(zcat $$f) <(zcat internal/cuda/ptx/$$(basename $$f)) || \
	    { [ $$(basename $$f) = attention.ptx.gz ] && echo "nvcc makes attention otherwise from run to run"; }; done; gunzip $$dir/*.gz; \
	  for f in $$dir/*.ptx; do for sm in 60 70 80 90; do ptxas -arch=sm_$$sm $$f -o /dev/null; done; done

# What is too long for every change: whole sweeps, fuzzing.
full: lint cross generate-check ptx-check
	SNUG_FULL=1 $(GO) test -timeout 60m ./...
	CGO_ENABLED=1 $(GO) test -race -timeout 60m ./...
	$(GO) test -tags snugdebug ./...
	$(MAKE) arm64
	$(MAKE) test-cuda-sim
	$(MAKE) test-cuda-orders
	$(MAKE) fuzz

fuzz:
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s $$p; done; done

bench:
	$(GO) test -run '^$$' -bench . ./...

# Beside PyTorch and other Go libraries, in turns; a quarter of an hour on a machine with
# nothing else to do. TABLE=steps and its like measures that table alone.
bench-peers:
	/usr/bin/python3 -c 'import torch' || $(GO) run ./internal/peers -install
	$(GO) run ./internal/peers -only "$(TABLE)" -o docs/speed.md

# The same on a card, beside PyTorch where that is installed.
bench-cuda:
	eval "$$($(GO) run ./cmd/snug cuda env)" && $(GO) run -tags cuda ./internal/peers -device cuda:0

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "not gofmt-ed"; exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) mod tidy -diff
	cd internal/host/kern/gen && $(GO) vet ./...
	cd internal/peers/gopeers && $(GO) vet ./...

cross:
	GOOS=linux GOARCH=arm64 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=windows GOARCH=amd64 $(GO) build ./...

# The tests on arm64, emulated by qemu-user (Debian: qemu-user-static): minutes. What memory
# is resident is the emulator's there.
ARM64 ?= . ./internal/driver ./internal/stack ./internal/host/... ./memory ./nn ./optim

arm64:
	CGO_ENABLED=0 GOARCH=arm64 $(GO) test -short -timeout 30m -exec qemu-aarch64-static -skip GivesBack $(ARM64)

# The generator is a module of its own, so that users do not depend on it.
generate:
	cd internal/host/kern && $(GO) generate ./...

generate-check: generate
	@git diff --exit-code -- internal/host/kern || { echo "run make generate and commit"; exit 1; }

examples: # trains on real data: some minutes
	$(GO) run ./examples/mlp
	$(GO) run ./examples/resnet
