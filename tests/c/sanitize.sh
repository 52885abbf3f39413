#!/bin/sh
# Runs the C programs of this folder with library and program under AddressSanitizer, leaks included.
#
#   tests/c/sanitize.sh [TARGET_DIRECTORY]
#
# The sanitizer is an unstable option of a stable compiler, hence RUSTC_BOOTSTRAP; nothing but this build uses it.
set -eu
cd "$(dirname "$0")/../.."
target=${1:-${CARGO_TARGET_DIR:-target}/sanitize}
triple=$(rustc -vV | sed -n 's/^host: //p')

RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=address -Cforce-frame-pointers=yes' \
    cargo rustc --quiet --lib --crate-type staticlib --target "$triple" --target-dir "$target"

mkdir -p "$target/c"
failed=0
for name in version structs arguments run background events wake sandbox threads budgets forked; do
    ${CC:-cc} -std=c11 -g -O1 -D_GNU_SOURCE -pthread -fsanitize=address -fno-omit-frame-pointer \
        -Wall -Wextra -Werror -Iinclude "tests/c/$name.c" "$target/$triple/debug/libdsh.a" \
        -lgcc_s -lutil -lrt -lpthread -lm -ldl -o "$target/c/$name"
    if ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1 "$target/c/$name" >"$target/c/$name.log" 2>&1; then
        echo "sanitize $name ok"
    else
        echo "sanitize $name FAILED"
        cat "$target/c/$name.log"
        failed=1
    fi
done
exit $failed
