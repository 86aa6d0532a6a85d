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
	@echo 'make test         everything: sanitized unit tests and a minute of fuzzing for each parser, then all tests'
	@echo 'make sanitize     unit tests with the address and undefined behaviour sanitizers, and every fuzz target for a minute;'
	@echo '                  make thread: with the thread sanitizer'
	@echo 'make fuzz         the fuzz targets alone, each for SECONDS=60'
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
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS)
	@set -o pipefail; GENAI_FUZZ_SEED=0 GENAI_FUZZ_SECONDS=$(SECONDS) ctest --preset asan --label-regex fuzz --parallel 1 --verbose | grep -E '_fuzz: |tests passed|FAIL|ERROR'

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
