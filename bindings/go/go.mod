module libdsh.org/dsh

go 1.24
