# SPDX-License-Identifier: MIT
# The verbs of this repository. The work is done by CMake (CMakeLists.txt, CMakePresets.json).

PREFIX ?= /usr/local
SEEDS ?= 10000
SEED := $(or $(SEED),$(shell date +%s))

# $(call build,<target...>): only these, of the release build. Tests are a lot to compile.
define build
@tools/bootstrap
@cmake --preset release >/dev/null
@cmake --build --preset release --target $(1)
endef

.NOTPARALLEL:
.PHONY: help run test sanitizers tidy check mutants property aarch64 proof fuzz stress soak bench bench-peers \
	bench-net bench-scaling inspect-cost limits profile release-pgo install deb clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 22

run: ## build the command and the examples, and run a tree of a million processes
	$(call build,skua_command examples/all)
	@echo
	build/release/skua run build/release/examples/08_skynet.so

test: test-release ## build, then run all tests, format, layers and reference included

# Not those that take longest, and not once more with tasks: that is for `make check`.
slow_programs = ^task\.|alloc_failure|long_end|lost_descriptors|_many$$|monitor_leak|api.memory|group_random|overflow_seeds|sim_socket_ends|supervisor_model|defer_mail|task_sim|sim_network_faults|example_kv|quota_random

sanitizers: ## run the test programs with the address and with the thread sanitizer
	tools/bootstrap
	set -e; for preset in asan tsan; do \
	  cmake --preset $$preset; \
	  cmake --build --preset $$preset --target test_programs; \
	  ctest --preset $$preset --label-regex '^program$$' --exclude-regex '$(slow_programs)'; \
	done

tidy: ## clang-tidy over the library, the command, the benchmarks and the examples
	tools/bootstrap check
	cmake --preset release >/dev/null
	tools/check_tidy

check: ## everything: tests in all builds, clang-tidy, mutants, random programs, fuzzing, packages
	tools/bootstrap check
	$(MAKE) test-release tidy mutants property fuzz test-asan test-tsan test-clang-release aarch64 deb

aarch64: ## build the library for aarch64 and run tasks in an emulator, if it is installed
	tests/builds/aarch64 build/aarch64 || [ $$? -eq 77 ]

# An input that fails is kept in build/fuzz. Threads run as they like: it may need some runs again.
fuzz_program = build/fuzz/tests/fuzz/fuzz_
fuzz: ## fuzz the interface for a minute, codecs for ten seconds; options of libFuzzer with ARGS=
	tools/bootstrap check
	$(MAKE) build-fuzz
	set -e; for target in api:60 codec:10; do \
	  $(fuzz_program)$${target%:*} -max_total_time=$${target#*:} -max_len=512 -len_control=0 \
	    -use_cmp=0 -timeout=120 -verbosity=0 -print_final_stats=1 -artifact_prefix=build/fuzz/ \
	    $(ARGS) || { echo "repeat with: $(fuzz_program)$${target%:*} -runs=1000" \
	    "$$(ls -t build/fuzz/*-* | head -n 1)"; exit 1; }; \
	done

property: build-release ## run random programs, simulated and on threads; SEEDS= how many, SEED= the first
	build/release/tests/property/property_programs --seeds $(SEEDS) --first $(SEED)
	build/release/tests/property/property_relations --seeds $(SEEDS) --first $(SEED)

mutants: build-release ## plant every fault of tests/model/mutants; some model must catch each
	tools/mutants

proof: build-release ## run all models and mutants, and update the tables in docs/proof.md
	tools/proof_table

stress: build-release ## run the stress programs, 100 million operations each; SEED= repeats a run
	@set -ex; for program in build/release/tests/stress/*; do $$program --ops 100000000 --seed $(SEED); done

KILLS ?= 1800000
soak: build-release ## kill 1,000 supervised processes a second, for half an hour; KILLS= how many
	build/release/tests/stress/stress_supervision --ops $(KILLS) --seed $(SEED)

bench: ## run the benchmarks; choose with ARGS=
	$(call build,skua_command)
	build/release/skua bench $(ARGS)

bench-peers: build-release ## compare with Go, Erlang, Tokio, CAF, ...; choose with ARGS=
	tools/bench_peers $(ARGS)

bench-net: build-release ## compare servers with epoll, libuv, Go, Tokio, Redis; choose with ARGS=
	tools/bench_net $(ARGS)

bench-scaling: build-release ## measure the cost by number of workers and by size; options with ARGS=
	tools/bench_scaling $(ARGS)

inspect-cost: build-release ## measure what the inspector costs; options with ARGS=
	tools/inspect_cost $(ARGS)

limits: ## measure the limits of this machine: the operations a runtime is made of
	$(call build,skua_limits)
	build/release/bench/limits $(ARGS)

profile: build-release ## count the instructions of a message or a process; options with ARGS=
	tools/profile $(ARGS)

release-pgo: ## build library and command with profile feedback, in build/release-pgo; two minutes
	tools/bootstrap
	tools/pgo

install: ## install to PREFIX (/usr/local), below DESTDIR
	$(call build,skua_shared skua_static skua_command skua_man)
	DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'

deb: ## build Debian packages in build/deb and try them in a root directory of their own
	tools/bootstrap
	tools/bootstrap packages debhelper dpkg-dev
	tools/deb
	tools/check_deb

clean: ## remove build/
	rm -rf build

# build-<preset> and test-<preset>, for any preset of CMakePresets.json.
build-%:
	tools/bootstrap
	cmake --preset $* && cmake --build --preset $*

test-%: build-%
	tools/bootstrap test
	ctest --preset $*
