# SPDX-License-Identifier: MIT
# The verbs of this repository. The work is done by CMake (CMakeLists.txt, CMakePresets.json).

PREFIX ?= /usr/local
SEED := $(or $(SEED),$(shell date +%s))

.NOTPARALLEL:
.PHONY: help run test check stress bench install clean

help: ## list the verbs
	@sed -n 's/^\([a-z]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 18

run: build-release ## build, then run the skynet example
	build/release/examples/02_skynet

test: test-release ## build, then run all tests

check: ## all tests in all builds (plain, sanitizers, clang), format and layers
	tools/bootstrap check && tools/check_format && tools/check_layers
	$(MAKE) test-release test-asan test-tsan test-clang-release

stress: build-release ## stress programs, 100 million operations each; repeat one with SEED=
	@set -ex; for program in build/release/tests/stress/*; do $$program --ops 100000000 --seed $(SEED); done

bench: build-release ## run the benchmarks; choose with ARGS=
	build/release/bench/skua-bench $(ARGS)

install: build-release ## install to PREFIX (/usr/local), below DESTDIR
	DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'

clean: ## remove all that was built
	rm -rf build

# build-<preset> and test-<preset>, for any preset of CMakePresets.json.
build-%:
	tools/bootstrap
	cmake --preset $* && cmake --build --preset $*

test-%: build-%
	ctest --preset $*
