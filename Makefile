# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
#
#   make            the release libraries
#   make demo       builds, compiles the C host against an installed-looking header and library, and runs it
#   make test       everything, in every language
#   make bench      ratios to other ways of running commands, in one run
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

.PHONY: all demo test lint unit c-memory bindings bench tsan header install tools clean

all:
	$(CARGO) build --release

include bindings/cpp/install.mk

demo: all
	@$(MAKE) --no-print-directory install DESTDIR=$(STAGE) PREFIX=/usr >/dev/null
	@$(CC) -std=c99 -Wall -Wextra -O1 -o $(STAGE)/demo bindings/c/demo.c \
		-I$(STAGE)/usr/include -L$(STAGE)/usr/lib -Wl,-rpath,$(abspath $(STAGE))/usr/lib -ldsh -lpthread
	@$(STAGE)/demo

# Each part can be run by itself.
test: tools lint unit c-memory bindings demo

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

bench:
	$(CARGO) bench --bench ratios

# What the tests need besides Rust: installed where that may be done, else named.
tools:
	@missing=; \
	for tool in $(CC):gcc c++:g++ valgrind:valgrind setpriv:util-linux nm:binutils bwrap:bubblewrap git:git \
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
