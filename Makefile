# Everything here needs Go, git and make, nothing else. Start with 'make run'.

# The Go command; another one for a try with another release.
GO ?= go
# Where the binary goes. Nothing else is written into the tree.
BINARY := bin/operator-lab
# More arguments for the command of a target: make run ARGS='--seed 8', make test ARGS='-run Kubectl'.
ARGS ?=
# What test tests; what takes longest begins first.
PACKAGES ?= ./lessons ./scenarios ./cmd/operator-lab/script ./scenarios/verify ./...
# What is tested under the race detector: where goroutines meet. Nothing of it needs all of Kubernetes built again.
# What takes longest begins first.
RACE_PACKAGES ?= ./sandbox ./sandbox/lab ./lessons/tutor ./scenarios/oracle ./sandbox/labapi \
	$(addprefix ./sandbox/,fault gate guard images/... link members network node/... operatorhost packages remote sandboxtest storage taps trace traffic) \
	$(addprefix ./scenarios/,expression report runner) $(addprefix ./lessons/,book progress session)

# One version of each tool, built by Go from its source. CI takes them from here.
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

GORELEASER_VERSION := v2.15.1
GORELEASER := $(GO) run github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
CYCLONEDX_VERSION := v1.10.0

GOVULNCHECK_VERSION := v1.9.0
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

# A static binary; also in tests, so that build, test and lint share one build of Kubernetes, which takes minutes.
export CGO_ENABLED := 0
# No paths of this machine in the binary; everywhere, for the same reason.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# Without symbol table and debugger's data: a third smaller.
LDFLAGS := -s -w

# A state directory of its own, gone afterwards, so that tests see no sandbox of yours and leave none; a place there for
# what kubectl would keep in your home; the binary they drive; and the same binary as the etcd and kube-apiserver of an
# envtest suite. Its many processes live for seconds: they collect garbage less often, and need more memory.
WITH_LAB = state=$$(mktemp -d) || exit; \
	trap 'rm -rf "$$state"' EXIT; trap 'exit 130' INT TERM; \
	GOGC=$${GOGC:-400}; export GOGC; \
	OPERATOR_LAB_STATE_DIR=$$state; KUBECACHEDIR=$$state/kubectl; OPERATOR_LAB_BINARY='$(abspath $(BINARY))'; \
	export OPERATOR_LAB_STATE_DIR KUBECACHEDIR OPERATOR_LAB_BINARY; \
	KUBEBUILDER_ASSETS=$$($(BINARY) assets -p path) || exit; export KUBEBUILDER_ASSETS;

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/operator-lab (first time 5 minutes, then seconds)
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BINARY) ./cmd/operator-lab

.PHONY: run
run: build ## Build and run 'operator-lab run zundoko'
	$(BINARY) run zundoko $(ARGS)

# -vet=off: lint runs vet; here it would first have to look through all of Kubernetes. GOMAXPROCS: the programs of several
# sandboxes share the machine anyway, and each needs a seventh less CPU time when it runs on one core at a time; so Go has
# to be told how many packages to test at once. -parallel: that many sandboxes for each of them. Much of their time is waiting: with
# two at once all lessons and scenarios took 1,245 s on two cores, of which a fifth was idle; with three 1,020 s. -timeout:
# the longest package takes 20 minutes; one that hangs has to say where before CI ends it after 90.
TEST = GOMAXPROCS=$${GOMAXPROCS:-1} $(GO) test -vet=off -timeout 40m -parallel 3 -p $(PACKAGES_AT_ONCE)
PACKAGES_AT_ONCE ?= $(shell getconf _NPROCESSORS_ONLN)

# Short tests wait a third of their time (651 s in all, of which 422 s of CPU time): one package more at once.
.PHONY: test
test: PACKAGES_AT_ONCE = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
test: build ## Run the tests, all but what takes long, on the binary
	@$(WITH_LAB) $(TEST) -short $(ARGS) $(PACKAGES)

.PHONY: test-all
test-all: build ## Run all tests: all scenarios and lessons, killing at random, long scripts
	@$(WITH_LAB) $(TEST) $(ARGS) $(PACKAGES)

.PHONY: test-race
test-race: build ## Run the race detector over the packages that it is for (needs a C compiler)
	@$(WITH_LAB) CGO_ENABLED=1 $(TEST) -race -cpu 4 $(ARGS) $(RACE_PACKAGES)

.PHONY: list-race
list-race: ## List the packages that test-race tests
	@$(GO) list $(RACE_PACKAGES)

# Releases of controller-runtime that the taps are built and run with.
COMPAT ?= v0.19.7 v0.20.4 v0.21.0 v0.22.5 v0.23.3 v0.24.1 v0.25.2

.PHONY: compat
compat: build ## Build and run an operator with the taps and each supported release of controller-runtime
	@$(WITH_LAB) OPERATOR_LAB_COMPAT='$(COMPAT)' $(GO) test -vet=off -timeout 60m -count=1 -run TestReleases $(ARGS) ./sandbox/portable

.PHONY: cover
cover: build ## Run all tests and show how much of each package they reach
	@$(WITH_LAB) $(GO) test -vet=off -timeout 20m -coverprofile=bin/cover.out $(ARGS) $(PACKAGES) && \
		$(GO) tool cover -func=bin/cover.out | tail -n 1

.PHONY: golden
golden: build ## Write what the commands print now into the tests, for you to read in the diff
	@$(WITH_LAB) $(GO) test -vet=off -timeout 20m ./cmd/operator-lab/cli ./cmd/operator-lab/script -update $(ARGS)

# How often what takes seconds is measured; what is shown is the median.
BENCH_COUNT ?= 7
# One row for each measure of each benchmark.
BENCH_TABLE = awk '/^Benchmark/ { sub(/-[0-9]+$$/, "", $$1); sub(/^Benchmark/, "", $$1); \
	for (i = 3; i < NF; i += 2) printf "%-28s %-34s %12s\n", $$1, $$(i + 1), $$i }'

.PHONY: bench
bench: build ## Measure everything; bin/bench.txt has it in the format of 'go test -bench' (OPERATOR_LAB_BENCH_COLD=1: cold build too)
	@$(WITH_LAB) { \
		$(GO) test -vet=off -timeout 60m -run '^$$' -bench . -benchtime $(BENCH_COUNT)x ./sandbox && \
		$(GO) test -vet=off -timeout 60m -run '^$$' -bench . -benchtime 3x ./sandbox/durability && \
		$(GO) test -vet=off -timeout 60m -run '^$$' -bench . -benchtime 3x ./scenarios && \
		$(GO) test -vet=off -timeout 60m -run '^$$' -bench . -benchtime 1x ./scenarios/verify && \
		$(GO) test -vet=off -timeout 60m -run '^$$' -bench . -benchtime 5x ./lessons/tutor && \
		$(GO) test -vet=off -timeout 60m -run '^$$' -bench 'Find|Build|Save' -benchtime $(BENCH_COUNT)x ./sandbox/project && \
		$(GO) test -vet=off -timeout 60m -run '^$$' -bench Reconciles -benchtime 60x -p 1 ./sandbox/taps ./sandbox/project && \
		$(GO) test -vet=off -timeout 60m -run '^$$' -bench . -p 1 ./sandbox/gate ./sandbox/remote ./sandbox/trace ./cmd/operator-lab/tui; \
	} >bin/bench.txt 2>&1 || { cat bin/bench.txt; exit 1; }
	@$(BENCH_TABLE) bin/bench.txt

# How long everything is broken, and the seed of a run that is to be repeated.
DURATION ?= 3m
SEED ?=

.PHONY: durability
durability: build ## Break everything around an etcd cluster for DURATION (3m) and judge what its clients saw (SEED=… repeats)
	@$(WITH_LAB) OPERATOR_LAB_DURABILITY=$(DURATION) OPERATOR_LAB_SEED=$(SEED) \
		$(GO) test -vet=off -timeout 60m -count=1 -v -run TestDurability $(ARGS) ./sandbox/durability

.PHONY: lint
lint: ## Run the linters; ARGS=--fix repairs what can be repaired
	$(GOLANGCI_LINT) run $(ARGS)

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that the binary reaches (asks the database of Go)
	$(GOVULNCHECK) $(ARGS) ./cmd/operator-lab

.PHONY: fmt
fmt: ## Format the code
	$(GOLANGCI_LINT) fmt

.PHONY: generate
generate: ## Generate deep copies, CRDs and roles again
	$(GO) generate ./...

.PHONY: tidy
tidy: ## Bring go.mod and go.sum up to date
	$(GO) mod tidy

.PHONY: verify
verify: fmt generate tidy ## Fail unless the tree is committed, formatted, generated and tidy
	@git --no-pager diff --exit-code
	@if [ -n "$$(git status --porcelain)" ]; then git status --short; exit 1; fi

.PHONY: package
package: build ## Write what packages hold beside the binary into bin/package: completions and the manual page
	@mkdir -p bin/package/completions bin/package/man
	@for shell in bash zsh fish; do $(BINARY) completion $$shell >bin/package/completions/operator-lab.$$shell || exit; done
	@$(BINARY) man >bin/package/man/operator-lab.1

.PHONY: release
release: package ## Build a release into dist; ARGS='--snapshot --skip=ko' without a tag and Docker. Publishes nothing
	GOBIN=$(abspath bin/tools) $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)
	PATH=$(abspath bin/tools):$$PATH $(GORELEASER) release --clean $(if $(PUBLISH),,--skip=publish) $(ARGS)

.PHONY: clean
clean: ## Delete what was built; sandboxes stay, see 'operator-lab down --all --delete'
	rm -rf bin dist
