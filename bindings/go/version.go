package dsh

// #include "shim.h"
import "C"

// Feature is something that not every system can.
type Feature uint32

const (
	// FeaturePIDFD: processes can be held by descriptor, so that no other process is ever signalled by mistake.
	FeaturePIDFD Feature = C.DSH_FEATURE_PIDFD
	// FeatureVFork: children are created without copying the host's page tables. The first question creates a child
	// that ends at once.
	FeatureVFork Feature = C.DSH_FEATURE_VFORK
	// FeatureGuard: the library was built with its guard, which ends commands when the host dies.
	FeatureGuard Feature = C.DSH_FEATURE_GUARD
	// FeatureLandlock: the kernel has Landlock; Available is its version.
	FeatureLandlock Feature = C.DSH_FEATURE_LANDLOCK
	// FeatureBubblewrap: bwrap is in PATH. Whether it works is for [SandboxDoctor] to say.
	FeatureBubblewrap Feature = C.DSH_FEATURE_BUBBLEWRAP
)

// Available is 0 when this build on this system can't do it; otherwise 1, or the version of the system's interface where
// it has versions.
func (f Feature) Available() uint32 {
	return uint32(C.dsh_feature(C.dsh_feature_t(f)))
}

// Version is the version of the C library that was loaded, such as "0.1.0".
func Version() string {
	return C.GoString(C.dsh_version())
}

// ABIVersion is the version of its binary interface: the number in the soname.
func ABIVersion() uint32 {
	return uint32(C.dsh_abi_version())
}
