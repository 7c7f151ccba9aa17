# Everything goes through meson; this file only gives the usual names to its commands. `make help` lists them.

PREFIX ?= /usr/local
DESTDIR ?=
LISTEN ?= 127.0.0.1:7717
FUZZ_SECONDS ?= 60
VALGRIND_PROCESSES ?= 10250
SEED ?= 1
N ?= 200
ROUNDS ?= 100

.PHONY: all run test test-clients test-vm bench asan asan-quick chaos fuzz valgrind mutants lint house format install deps clean help

## all: build; programs in build/bin, libraries in build/lib (the default)
all: deps
	@scripts/build build

## run: serve HTTP on LISTEN (127.0.0.1:7717) in the foreground, show coop at work through it, say what to type next
run: all
	@scripts/demo build/bin/coop $(LISTEN)

## test: build and run the whole test suite
test: all
	@COOP_BUILD=build tests/run

## test-clients: the MCP server with the official clients, the inspector and the conformance suite (fetched from npm once)
test-clients: deps
	@scripts/test-clients build-clients

## test-vm: the tests of limits, kill and freeze on Debian's kernel with cgroup v2, in a virtual machine (slow)
test-vm: all
	@scripts/test-vm build

## asan: the same suite with AddressSanitizer and UndefinedBehaviorSanitizer
asan: deps
	@scripts/asan build-asan

## asan-quick: the same without the test files that take half of the time (tests/slow.txt)
asan-quick: deps
	@scripts/asan build-asan --quick

## chaos: kill each kind of process ROUNDS (100) times under load, by SEED (1): is anything forgotten, or left? (slow)
chaos: all
	@COOP_BUILD=build tests/chaos/run --rounds $(ROUNDS) --seed $(SEED) --verbose

## fuzz: run each fuzzer for FUZZ_SECONDS (60)
fuzz: deps
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

## valgrind: VALGRIND_PROCESSES (10250: 10,000 that start, and some that cannot) through a keeper under memcheck
valgrind: all
	@scripts/valgrind-keeper build/bin/coop-keeper $(VALGRIND_PROCESSES)

## mutants: N (200) small wrong changes drawn by SEED (1) in AREAS, one at a time: do the tests notice? (slow; goes on where it was)
mutants: deps
	@SEED=$(SEED) N=$(N) scripts/mutants build-mutants

## bench: speed against the floors and against node; one table, raw samples in build/bench.json
bench: all
	@COOP_BUILD=build tests/bench/run

## lint: format, clang-tidy, cppcheck, include direction, shell, man pages, file sizes
lint: all
	@scripts/lint build

## house: how the code is cut, in figures: rings of includes, full folders, who knows what, comments, size
house:
	@scripts/house

## format: let clang-format rewrite the sources
format: deps
	@scripts/sources | xargs clang-format -i

## install: install under PREFIX (/usr/local), below DESTDIR if given
install: deps
	@scripts/build build --prefix "$(PREFIX)"
	@scripts/install build "$(PREFIX)" "$(DESTDIR)"

## deps: install the Debian packages that are missing (every target above does this first)
deps:
	@scripts/deps

## clean: remove the build directories
clean:
	rm -rf build build-asan build-clients build-fuzz build-mutants

## help: this list
help:
	@sed -n 's/^## \([a-z-]*\): /\1\t/p' Makefile | expand -t 14
