# What a person types. The build itself is CMake's (CMakePresets.json); what has to be installed is tools/setup.sh's.

SHELL := /bin/bash
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/genai
MODEL ?= $(CACHE)/models/SmolLM2-135M-Instruct.Q4_1.gguf
SOC ?= SM8650
PROMPT ?= What is the capital of France?
ARGS ?=
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

SOURCES = $(shell git ls-files --cached --others --exclude-standard 'src/*.c' 'src/*.h' 'src/*.cpp' 'include/*.h' 'tests/*.c' 'tests/*.h' 'bench/*.c' 'examples/*.c')

.PHONY: help setup setup-test setup-develop build run test sanitize thread fuzz install format format-check tidy clean

help:
	@echo 'make run          build, and answer PROMPT="$(PROMPT)" with MODEL on the simulator of SOC=$(SOC); more options: ARGS="..."'
	@echo 'make build        build/genai'
	@echo 'make test         everything: sanitized unit tests, then all tests'
	@echo 'make sanitize     unit tests with the address and undefined behaviour sanitizers; make thread: with the thread sanitizer'
	@echo 'make fuzz         each fuzz target for SECONDS=60'
	@echo 'make install      into PREFIX=$(PREFIX)'
	@echo 'make format, make format-check, make tidy, make clean'
	@echo 'make setup        what run needs (others install what they need by themselves)'

setup:
	@tools/setup.sh run
setup-test:
	@tools/setup.sh test
setup-develop:
	@tools/setup.sh develop

build:
	@tools/setup.sh build
	@said=$$(cmake --preset release 2>&1) || { echo "$$said"; exit 1; }
	@cmake --build --preset release --parallel $(JOBS) --target genai

run: setup build
	build/genai run '$(MODEL)' --soc $(SOC) --prompt '$(PROMPT)' $(ARGS)

sanitize: setup-test
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS)
	ctest --preset asan

thread: setup-test
	cmake --preset tsan
	cmake --build --preset tsan --parallel $(JOBS)
	ctest --preset tsan

# The last lines are CTest's summary of all tests.
test: sanitize
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)
	ctest --preset release

SECONDS ?= 60
fuzz: setup-test
	cmake --preset fuzz
	cmake --build --preset fuzz --parallel $(JOBS)
	@for target in build-fuzz/fuzz/*_fuzz; do \
	  name=$$(basename $$target); seeds=tests/data/fuzz/$$name; corpus=build-fuzz/corpus/$$name; mkdir -p $$corpus; \
	  echo "$$target, $(SECONDS) s"; \
	  $$target -max_total_time=$(SECONDS) -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix=build-fuzz/ $$corpus \
	    $$([ -d $$seeds ] && echo $$seeds) >build-fuzz/fuzz.log 2>&1 || { tail -40 build-fuzz/fuzz.log; exit 1; }; \
	  grep -E '^(Done|stat::number_of_executed_units|stat::peak_rss)' build-fuzz/fuzz.log; \
	done

install: build
	@cmake --build --preset release --parallel $(JOBS) --target genai_library
	cmake --install build --prefix $(PREFIX)

format: setup-develop
	clang-format -i $(SOURCES)
format-check: setup-develop
	clang-format --dry-run --Werror $(SOURCES)

# The checks of .clang-tidy over the C sources of the library and the program; some ten minutes.
tidy: setup-develop build
	run-clang-tidy -quiet -p build -j $(JOBS) '$(CURDIR)/src/.*\.c$$'

clean:
	rm -rf build build-*
