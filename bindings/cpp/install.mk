# Puts the C++ headers and the CMake package next to an installed dsh.h:
#
#   make -f bindings/cpp/install.mk PREFIX=/usr/local DESTDIR=
#
# or `include bindings/cpp/install.mk` below the first target of another makefile, and let its install need install-cpp.

PREFIX ?= /usr/local
DSH_CPP := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))

.PHONY: install-cpp
install-cpp:
	install -d $(DESTDIR)$(PREFIX)/include/dsh/detail $(DESTDIR)$(PREFIX)/lib/cmake/dsh
	install -m 644 $(DSH_CPP)/include/dsh.hpp $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(DSH_CPP)/include/dsh/*.hpp $(DESTDIR)$(PREFIX)/include/dsh/
	install -m 644 $(DSH_CPP)/include/dsh/detail/*.hpp $(DESTDIR)$(PREFIX)/include/dsh/detail/
	install -m 644 $(DSH_CPP)/cmake/dsh-config.cmake $(DSH_CPP)/cmake/dsh-config-version.cmake \
		$(DESTDIR)$(PREFIX)/lib/cmake/dsh/
