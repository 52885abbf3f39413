package dsh

// #include "shim.h"
import "C"

import (
	"fmt"
	"time"
)

// Keep says which part of a stream stays in memory once it is longer than its cap.
type Keep uint32

const (
	// KeepTail: the last bytes, since errors and results come at the end. The default.
	KeepTail Keep = C.DSH_KEEP_TAIL
	// KeepHeadTail: half the cap from the beginning, half from the end, and the exact count of what was left out between.
	KeepHeadTail Keep = C.DSH_KEEP_HEAD_TAIL
)

// String gives "tail" or "head_tail".
func (k Keep) String() string {
	return nameOf(k, "tail", "head_tail")
}

// Config is the budgets of an executor: what it allows. The zero value of a field means the default.
type Config struct {
	// Dir is the working directory of commands that name none, and the base of relative ones. Default: the host's, at
	// each call.
	Dir string
	// Shell is a bash; a name without "/" is looked for in PATH, once. Default "bash".
	Shell string
	// SpillDir is where the private directory for spill files is made. It can't change while the executor lives.
	// Default: os.TempDir of the host.
	SpillDir string
	// EnvAllow are globs (*, ?) on names of host variables that are passed on although they look like credentials.
	EnvAllow []string
	// EnvDeny are globs on names of host variables that are not passed on.
	EnvDeny []string
	// Timeout of runs that name none. Default 2 minutes.
	Timeout time.Duration
	// MaxTimeout is the most that any run gets; it caps the default too. Default 10 minutes.
	MaxTimeout time.Duration
	// MaxOutput is how many bytes of each stream are kept in memory. Default 64,000.
	MaxOutput int64
	// MaxSpill is how many bytes of each stream are kept on disk; a longer stream has no spill file. Default 64 MiB.
	MaxSpill int64
	// MaxTotalSpill is how many bytes all spill files may have together before no new one is begun. Default 1 GiB.
	MaxTotalSpill int64
	// Grace is the time from SIGTERM to SIGKILL. Default 3 seconds.
	Grace time.Duration
	// Drain is how long open pipes are waited for after the shell has exited. Default: the same as Grace.
	Drain time.Duration
	// Keep says which part of a long stream stays in memory. Default: the tail.
	Keep Keep
	// Sandbox is the policy under which commands are confined, where they say nothing else. Default: no confinement.
	Sandbox *SandboxPolicy
	// NoInheritEnv: commands get nothing of the host's environment.
	NoInheritEnv bool
	// NoGuard: commands go on when the host dies.
	NoGuard bool
	// KeepSpillFiles: spill files are left behind when the executor ends.
	KeepSpillFiles bool
}

// Option changes the budgets that an executor is made with, see [New] and [Executor.Configure].
type Option func(*Config)

// WithConfig sets all budgets at once. Options behind it change single ones.
func WithConfig(config Config) Option {
	return func(c *Config) { *c = config }
}

// WithDir sets [Config.Dir].
func WithDir(dir string) Option {
	return func(c *Config) { c.Dir = dir }
}

// WithShell sets [Config.Shell].
func WithShell(shell string) Option {
	return func(c *Config) { c.Shell = shell }
}

// WithSpillDir sets [Config.SpillDir].
func WithSpillDir(dir string) Option {
	return func(c *Config) { c.SpillDir = dir }
}

// WithEnvAllow adds to [Config.EnvAllow].
func WithEnvAllow(globs ...string) Option {
	return func(c *Config) { c.EnvAllow = append(c.EnvAllow[:len(c.EnvAllow):len(c.EnvAllow)], globs...) }
}

// WithEnvDeny adds to [Config.EnvDeny].
func WithEnvDeny(globs ...string) Option {
	return func(c *Config) { c.EnvDeny = append(c.EnvDeny[:len(c.EnvDeny):len(c.EnvDeny)], globs...) }
}

// WithTimeout sets [Config.Timeout].
func WithTimeout(d time.Duration) Option {
	return func(c *Config) { c.Timeout = d }
}

// WithMaxTimeout sets [Config.MaxTimeout].
func WithMaxTimeout(d time.Duration) Option {
	return func(c *Config) { c.MaxTimeout = d }
}

// WithMaxOutput sets [Config.MaxOutput].
func WithMaxOutput(bytes int64) Option {
	return func(c *Config) { c.MaxOutput = bytes }
}

// WithMaxSpill sets [Config.MaxSpill].
func WithMaxSpill(bytes int64) Option {
	return func(c *Config) { c.MaxSpill = bytes }
}

// WithMaxTotalSpill sets [Config.MaxTotalSpill].
func WithMaxTotalSpill(bytes int64) Option {
	return func(c *Config) { c.MaxTotalSpill = bytes }
}

// WithGrace sets [Config.Grace].
func WithGrace(d time.Duration) Option {
	return func(c *Config) { c.Grace = d }
}

// WithDrain sets [Config.Drain].
func WithDrain(d time.Duration) Option {
	return func(c *Config) { c.Drain = d }
}

// WithKeep sets [Config.Keep].
func WithKeep(keep Keep) Option {
	return func(c *Config) { c.Keep = keep }
}

// WithSandbox sets [Config.Sandbox].
func WithSandbox(policy SandboxPolicy) Option {
	return func(c *Config) { c.Sandbox = &policy }
}

// WithoutInheritedEnv sets [Config.NoInheritEnv].
func WithoutInheritedEnv() Option {
	return func(c *Config) { c.NoInheritEnv = true }
}

// WithoutGuard sets [Config.NoGuard].
func WithoutGuard() Option {
	return func(c *Config) { c.NoGuard = true }
}

// WithSpillFilesKept sets [Config.KeepSpillFiles].
func WithSpillFilesKept() Option {
	return func(c *Config) { c.KeepSpillFiles = true }
}

func configOf(options []Option) *Config {
	config := new(Config)
	for _, option := range options {
		option(config)
	}
	return config
}

// budgets are a config as the shim takes it.
type budgets struct {
	config C.dsh_config_t
	policy *C.dshgo_policy_t
	texts  packed
}

func (c *Config) budgets() (budgets, error) {
	config := C.dsh_config_t{
		size:          C.sizeof_dsh_config_t,
		env_allow_len: C.size_t(len(c.EnvAllow)),
		env_deny_len:  C.size_t(len(c.EnvDeny)),
		keep:          C.dsh_keep_t(c.Keep),
	}
	var p packer
	config.timeout_ms = p.millis("timeout", c.Timeout)
	config.max_timeout_ms = p.millis("max_timeout", c.MaxTimeout)
	config.grace_ms = p.millis("grace", c.Grace)
	config.drain_ms = p.millis("drain", c.Drain)
	config.max_output_bytes = p.bytes("max_output", c.MaxOutput)
	config.max_spill_bytes = p.bytes("max_spill", c.MaxSpill)
	config.max_total_spill_bytes = p.bytes("max_total_spill", c.MaxTotalSpill)
	config.flags = flag(c.NoInheritEnv, C.DSH_CONFIG_NO_INHERIT_ENV) |
		flag(c.NoGuard, C.DSH_CONFIG_NO_GUARD) |
		flag(c.KeepSpillFiles, C.DSH_CONFIG_KEEP_SPILL_FILES)
	p.text("dir", c.Dir)
	p.text("shell", c.Shell)
	p.text("spill_dir", c.SpillDir)
	p.list("env_allow", c.EnvAllow)
	p.list("env_deny", c.EnvDeny)
	policy := p.sandbox(c.Sandbox)
	return budgets{config, policy, p.texts}, p.err
}

// config is the way back from C.
func config(c *C.dsh_config_t) Config {
	return Config{
		Dir:            C.GoString(c.cwd),
		Shell:          C.GoString(c.shell),
		SpillDir:       C.GoString(c.spill_dir),
		EnvAllow:       goStrings(c.env_allow, c.env_allow_len),
		EnvDeny:        goStrings(c.env_deny, c.env_deny_len),
		Timeout:        duration(uint64(c.timeout_ms)),
		MaxTimeout:     duration(uint64(c.max_timeout_ms)),
		MaxOutput:      signed(uint64(c.max_output_bytes)),
		MaxSpill:       signed(uint64(c.max_spill_bytes)),
		MaxTotalSpill:  signed(uint64(c.max_total_spill_bytes)),
		Grace:          duration(uint64(c.grace_ms)),
		Drain:          duration(uint64(c.drain_ms)),
		Keep:           Keep(c.keep),
		Sandbox:        sandboxPolicy(c.sandbox),
		NoInheritEnv:   c.flags&C.DSH_CONFIG_NO_INHERIT_ENV != 0,
		NoGuard:        c.flags&C.DSH_CONFIG_NO_GUARD != 0,
		KeepSpillFiles: c.flags&C.DSH_CONFIG_KEEP_SPILL_FILES != 0,
	}
}

// flag is the bit when it is on.
func flag(on bool, bit C.uint64_t) C.uint64_t {
	if on {
		return bit
	}
	return 0
}

// nameOf names a constant; a number that has no name speaks for itself.
func nameOf[T ~uint32](number T, names ...string) string {
	if int(number) < len(names) {
		return names[number]
	}
	return fmt.Sprint(uint32(number))
}
