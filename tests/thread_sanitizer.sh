#!/bin/sh
# Runs the unit tests and the race soak under ThreadSanitizer.
#
#   tests/thread_sanitizer.sh [FOLDER]      FOLDER (target/tsan) holds the toolchain and what is built with it
#
# ThreadSanitizer is exact only when the standard library is built with it as well, and a stable toolchain comes without
# the sources of that. So a rustc of Debian's with its sources is unpacked into FOLDER; nothing is installed, and the
# toolchain in use stays what it is. The runtime of the sanitizer and cargo are the installed toolchain's.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-target/tsan}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
target=x86_64-unknown-linux-gnu

missing() {
	echo "thread_sanitizer.sh: $1" >&2
	exit 1
}

[ "$(uname -sm)" = "Linux x86_64" ] || missing "this takes Linux on x86-64"
for tool in apt-get dpkg rustup cc; do
	command -v $tool >/dev/null || missing "$tool is missing (the toolchain is made of Debian's packages rustc-web and rust-web-src)"
done
installed=$(rustc --print sysroot)
runtime=$(ls "$installed"/lib/rustlib/$target/lib/librustc-*_rt.tsan.a 2>/dev/null) ||
	missing "the toolchain in use has no librustc-*_rt.tsan.a: use rustup's"

rustc=$folder/rustc
if ! "$rustc" --version >/dev/null 2>&1; then
	rm -rf "$folder/deb" "$folder/root"
	mkdir -p "$folder/deb" "$folder/root"
	depends() { apt-cache depends "$1" | sed -n "s/^ *Depends: \($2[^<>]*\)$/\1/p" | head -n 1; }
	[ -n "$(depends libstd-rust-web-dev libstd)" ] || { [ "$(id -u)" = 0 ] && apt-get update -qq; } || true
	std=$(depends libstd-rust-web-dev libstd)
	[ -n "$std" ] || missing "the package lists know no libstd-rust-web-dev: apt-get update, on Debian 12 or newer"
	(cd "$folder/deb" && apt-get -qq -o APT::Sandbox::User=root download \
		rustc-web rust-web-src libstd-rust-web-dev "$std" "$(depends "$std" libllvm)")
	for package in "$folder"/deb/*.deb; do dpkg -x "$package" "$folder/root"; done
	# Of the sources only the library is needed.
	rm -rf "$folder/deb" "$folder"/root/usr/share "$folder"/root/usr/src/rustc-*/compiler
	ln -sf "$runtime" "$folder/root/usr/lib/rustlib/$target/lib/"
	printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
		"$folder/root/usr/lib/x86_64-linux-gnu" "$folder/root/usr/bin/rustc" >"$rustc"
	chmod +x "$rustc"
fi

# The library asks for that name to know that it is run under the sanitizer, where it creates children by fork.
export RUSTFLAGS="-Zsanitizer=thread -Clink-arg=-Wl,--export-dynamic-symbol=__tsan_init"
# Few cases of each property: what is looked for here is races.
export PROPTEST_CASES=8
export RUSTC="$rustc" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$folder/build" DSH_EXPECTS_FORK=1
# Cargo itself and not rustup's stand-in, which would choose its own compiler.
exec "$installed/bin/cargo" test -Zbuild-std --target $target --lib --test race
