# Everything here needs Go alone; `race` a C compiler, too.
GO ?= go
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all test levels race full bench lint cross generate generate-check examples fuzz

all: lint test

test:
	$(GO) test ./...

# The kernels' own tests go through the levels themselves.
# Go remembers a result whatever TestMain read from the environment: hence the count.
levels:
	@set -e; for l in portable avx2 avx512 avx512bf16; do \
	  SNUG_LEVEL=$$l $(GO) test -run '^$$' ./internal/host/kern >/dev/null || { echo "$$l: not on this machine"; continue; }; \
	  echo "$$l:"; SNUG_LEVEL=$$l $(GO) test -count 1 . ./internal/host; done

race:
	CGO_ENABLED=1 $(GO) test -race -short -timeout 40m ./...

# What is too long for every change: whole sweeps, fuzzing.
full: lint cross generate-check
	SNUG_FULL=1 $(GO) test -timeout 60m ./...
	CGO_ENABLED=1 $(GO) test -race -timeout 60m ./...
	$(GO) test -tags snugdebug ./...
	$(MAKE) fuzz

fuzz:
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s $$p; done; done

bench:
	$(GO) test -run '^$$' -bench . ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "not gofmt-ed"; exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) mod tidy -diff
	cd internal/host/kern/gen && $(GO) vet ./...

cross:
	GOOS=linux GOARCH=arm64 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=windows GOARCH=amd64 $(GO) build ./...

# The generator is a module of its own, so that users do not depend on it.
generate:
	cd internal/host/kern && $(GO) generate ./...

generate-check: generate
	@git diff --exit-code -- internal/host/kern || { echo "run make generate and commit"; exit 1; }

examples: # trains on real data: some minutes
	$(GO) run ./examples/mlp
	$(GO) run ./examples/resnet
