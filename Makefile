# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
#
#   make            the release libraries
#   make demo       builds, compiles the C host against an installed-looking header and library, and runs it
#   make test       everything, in every language
#   make cost       what a command costs its host, in exact counts; COST=--update sets the bounds anew, COST=--profile tells where
#   make bench      what commands cost, compared with other ways of running them, into docs/benchmarks: some minutes;
#                   QUICK=1 for a first look, ONLY=latency for one of the works
#   make tsan       the unit tests and the race soak under ThreadSanitizer (sets up a toolchain of its own; 2.2 GB with what it builds)
#   make bindings   the C++, Node, Go and Python bindings; LANGUAGES="cpp go" for some of them
#   make header     writes include/dsh.h anew, after a change of src/capi
#   make install    PREFIX=/usr/local DESTDIR=

CARGO   ?= cargo
CC      ?= cc
PREFIX  ?= /usr/local
TARGET  := $(or $(CARGO_TARGET_DIR),target)
STAGE   := $(TARGET)/stage
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

ifeq ($(shell uname -s),Darwin)
SHARED  := libdsh.dylib
SONAME  := libdsh.0.dylib
else
SHARED  := libdsh.so
SONAME  := libdsh.so.0
endif

.PHONY: all demo test lint unit c-memory bindings cost bench bench-check tsan header install tools clean

all:
	$(CARGO) build --release

include bindings/cpp/install.mk

demo: all
	@$(MAKE) --no-print-directory install DESTDIR=$(STAGE) PREFIX=/usr >/dev/null
	@$(CC) -std=c99 -Wall -Wextra -O1 -o $(STAGE)/demo bindings/c/demo.c \
		-I$(STAGE)/usr/include -L$(STAGE)/usr/lib -Wl,-rpath,$(abspath $(STAGE))/usr/lib -ldsh -lpthread
	@$(STAGE)/demo

# Each part can be run by itself.
test: tools lint unit c-memory cost bindings demo bench-check

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	@# The guard and the warden are programs of their own, which the build script compiles.
	for program in tree/guard sandbox/warden; do \
		clippy-driver --edition 2021 --crate-name "dsh_$${program#*/}" --crate-type bin --cfg dsh_guard_program \
			-C panic=abort --emit=metadata -o "$(TARGET)/$${program#*/}.rmeta" -D warnings \
			"src/$$program/program.rs" || exit 1; \
	done
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --no-deps --document-private-items

unit:
	$(CARGO) test

# The C hosts with library and program under AddressSanitizer; valgrind has its turn in `unit`.
c-memory:
	tests/c/sanitize.sh $(TARGET)/sanitize

# Each language by its own means, against the library as it is installed. One of them: `make bindings LANGUAGES=go`.
LANGUAGES ?= cpp node go python
bindings: all
	@$(MAKE) --no-print-directory install DESTDIR= PREFIX=$(abspath $(TARGET))/prefix >/dev/null
	@for language in $(LANGUAGES); do \
		DSH_BUILD_DIR=$(abspath $(TARGET))/bindings bindings/$$language/check $(abspath $(TARGET))/prefix || exit 1; \
	done

# Instructions, system calls, allocations and copies of a run, against tests/cost/bounds.
cost: all
	@$(MAKE) --no-print-directory install DESTDIR= PREFIX=$(abspath $(TARGET))/prefix >/dev/null
	@CC='$(CC)' tests/cost/check $(abspath $(TARGET))/prefix $(abspath $(TARGET))/cost $(COST)

tsan:
	tests/thread_sanitizer.sh $(TARGET)/tsan

header:
	DSH_UPDATE_HEADER=1 $(CARGO) test --quiet --test capi_header the_committed_header

install: all install-cpp
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 include/dsh.h $(DESTDIR)$(PREFIX)/include/
	install -m 755 $(TARGET)/release/$(SHARED) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/$(SHARED)
	install -m 644 $(TARGET)/release/libdsh.a $(DESTDIR)$(PREFIX)/lib/
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' bindings/c/dsh.pc.in \
		>$(DESTDIR)$(PREFIX)/lib/pkgconfig/dsh.pc

# The peers are built against the library as it is installed; what one of them needs and isn't here leaves it out.
BENCH := $(abspath $(TARGET))/bench
bench: all
	@$(MAKE) --no-print-directory install DESTDIR= PREFIX=$(BENCH)/prefix >/dev/null
	@CARGO='$(CARGO)' CC='$(CC)' benches/build $(BENCH) $(BENCH)/prefix
	@$(BENCH)/bench $(BENCH) $(if $(SMOKE),--smoke) $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

# That the benchmarks don't rot: every peer does everything once, nothing is measured.
bench-check:
	cd benches && $(CARGO) fmt --check && $(CARGO) clippy --target-dir $(BENCH)/cargo --all-targets --quiet -- -D warnings \
		&& $(CARGO) test --target-dir $(BENCH)/cargo --quiet
	@$(MAKE) --no-print-directory bench SMOKE=1

# What the tests need besides Rust: installed where that may be done, else named.
tools:
	@missing=; \
	for tool in $(CC):gcc c++:g++ valgrind:valgrind strace:strace setpriv:util-linux nm:binutils bwrap:bubblewrap git:git \
		python3:python3 node:nodejs npm:npm; do \
		command -v $${tool%%:*} >/dev/null 2>&1 || missing="$$missing $${tool##*:}"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; \
	else \
		echo "the tests need:$$missing. Install them first, for example: sudo apt-get install$$missing" >&2; exit 1; \
	fi

clean:
	$(CARGO) clean
