module libdsh.org/dsh/bench

go 1.24

require libdsh.org/dsh v0.0.0

replace libdsh.org/dsh => ../../../bindings/go
