/**
 * libdsh runs shell commands for AI agents: bounded output, hard timeouts, and process trees that really die.
 *
 * ```js
 * import { Executor } from 'libdsh'
 *
 * const executor = new Executor()
 * const result = await executor.run('echo hello; exit 3')
 * console.log(result.stdout.text, result.exitCode)
 * await executor.shutdown()
 * ```
 *
 * Conventions. They hold for everything here; what a member adds stands with it.
 *
 * - **Units.** Times are milliseconds and sizes bytes. A value of 0 is refused where the default is meant by leaving
 *   the option out; so are negative ones and NaN. Fractions of a millisecond are rounded up. What is too large,
 *   `Infinity` included, is clamped, never wrapped.
 * - **Errors.** What could not be done is a {@link DshError}. A value of the wrong type, or an option that does not
 *   exist, is a `TypeError` with code `ERR_INVALID_ARG_TYPE`: a mistake of the program. Methods that give a promise
 *   reject it, the others throw; either way nothing has been started then.
 * - **Blocking.** Nothing blocks the event loop or a thread of Node's pool, however many commands run, but for one
 *   thing: the first confined command of an executor tries its backends, which takes some milliseconds each. The event
 *   loop is kept from ending only while somebody waits: for a run, `done`, `quiescent`, `wait`, `shutdown`,
 *   `sandboxDoctor`, the next chunk of output or the next event.
 * - **Workers.** Each worker has its executors of its own; none can be posted to another. When a worker ends, by itself
 *   or terminated, its executors are shut down.
 */

/** The version of the library inside, such as `'0.1.0'`. */
export const version: string

/** What went wrong, of the library or in what it was given. */
export class DshError extends Error {
  constructor(message: string, details: { code: DshErrorCode; errno?: number; stage?: string; cause?: unknown })

  /** Which error it is. */
  readonly code: DshErrorCode

  /** The system's error number, a positive one as in `os.constants.errno`; 0 when no system call failed. */
  readonly errno: number

  /**
   * Where it went wrong, a word that stays the same between versions: `argument`, `resolve`, `environment`, `workdir`,
   * `shell`, `pipe`, `script`, `clone`, `session`, `signals`, `descriptors`, `exec`, `guard`, `threads`, `poll`,
   * `wait`, `spill` or `sandbox`.
   */
  readonly stage: string

  /** With `DSH_E_CANCELLED`, the `reason` of the signal. */
  cause?: unknown
}

export type DshErrorCode =
  /** A value that can't be used; the message names the option and the value. */
  | 'DSH_E_INVALID'
  /** The command holds a NUL byte, which no command line can carry. */
  | 'DSH_E_COMMAND_NUL'
  /** The name of an environment variable can't be one. */
  | 'DSH_E_ENV_NAME'
  /** The name of an environment variable is in the reserved `DSH_` namespace. */
  | 'DSH_E_ENV_RESERVED'
  /** The environment is larger than the system takes; the message names the largest variables. */
  | 'DSH_E_ENV_TOO_BIG'
  /** The working directory does not exist. */
  | 'DSH_E_WORKDIR_MISSING'
  /** The working directory is something else than a directory. */
  | 'DSH_E_WORKDIR_NOT_DIR'
  /** The working directory may not be entered. */
  | 'DSH_E_WORKDIR_DENIED'
  /** The working directory can't be used for another reason (a loop of links, a name too long). */
  | 'DSH_E_WORKDIR_UNUSABLE'
  /** The shell is not there or can't be executed. */
  | 'DSH_E_SHELL_MISSING'
  /** The signal was aborted before the command was started. */
  | 'DSH_E_CANCELLED'
  /** The executor has been shut down. */
  | 'DSH_E_SHUTDOWN'
  /** The system refused to start the command; stage and errno say where and why. */
  | 'DSH_E_SPAWN'
  /** No confinement backend can be used, or the one that was used failed, so the command was not run. */
  | 'DSH_E_SANDBOX_UNAVAILABLE'
  /** The time given to a wait has passed; what was waited for goes on. */
  | 'DSH_E_TIMED_OUT'
  /** A system call that the library needs failed; stage and errno say which and why. */
  | 'DSH_E_SYSTEM'
  /** Memory was refused. */
  | 'DSH_E_OUT_OF_MEMORY'
  /** The call was made in a forked child of the process. */
  | 'DSH_E_FORKED'
  /** The library caught a failure of its own; what it happened to can no longer be used. */
  | 'DSH_E_PANIC'
  // A later library may know more.
  | (string & {})

/** What an executor is to allow. Everything may be left out, or undefined, for its default. */
export interface ExecutorOptions {
  /** Working directory of commands that name none, and the base of relative ones. Default: the host's, at each call. */
  cwd?: string | undefined
  /** The shell, a bash; a name without `/` is looked for in PATH, once. Default `'bash'`. */
  shell?: string | undefined
  /**
   * Where the private directory for spill files is made. Can't change while the executor lives. Default: TMPDIR of the
   * host, or `/tmp`.
   */
  spillDir?: string | undefined
  /** Timeout of runs that name none. Default 120,000. */
  timeoutMs?: number | undefined
  /** The most that any run gets; it caps the default too. Default 600,000. */
  maxTimeoutMs?: number | undefined
  /** Bytes of each stream kept in memory. Default 64,000. */
  maxOutputBytes?: number | undefined
  /** Bytes of each stream kept on disk; a longer stream has no spill file. Default 67,108,864. */
  maxSpillBytes?: number | undefined
  /** Bytes of all spill files together, beyond which no new one is begun. Default 1,073,741,824. */
  maxTotalSpillBytes?: number | undefined
  /** From SIGTERM to SIGKILL. Default 3,000. */
  graceMs?: number | undefined
  /** How long open pipes are waited for after the shell has exited. Default: `graceMs`. */
  drainMs?: number | undefined
  /**
   * Which part of a long stream stays in memory: the last bytes (the default), or half of them from the beginning and
   * half from the end.
   */
  keep?: 'tail' | 'head-tail' | undefined
  /** Whether commands get the host's environment, without its credentials. Default true. */
  inheritEnv?: boolean | undefined
  /** Globs (`*`, `?`) on names of host variables that are passed on although they look like credentials. */
  envAllow?: readonly string[] | undefined
  /** Globs on names of host variables that are not passed on. */
  envDeny?: readonly string[] | undefined
  /** Whether commands are ended when the host dies, in whatever way. Default true. */
  guard?: boolean | undefined
  /** Whether spill files are left behind when the executor ends. Default false. */
  keepSpillFiles?: boolean | undefined
  /** What commands may do, where their requests say nothing else. Default: no confinement. Changed as a whole. */
  sandbox?: SandboxPolicy | undefined
}

/** Changes to what an executor allows: undefined, or left out, is as before; null is the default again. */
export type ExecutorChanges = { [Name in keyof ExecutorOptions]?: ExecutorOptions[Name] | null }

/** The budgets in force, with every default filled in. */
export interface ExecutorConfig {
  /** undefined: the host's, at each call. */
  cwd: string | undefined
  /** An absolute path. */
  shell: string
  spillDir: string
  timeoutMs: number
  maxTimeoutMs: number
  maxOutputBytes: number
  maxSpillBytes: number
  maxTotalSpillBytes: number
  graceMs: number
  drainMs: number
  keep: 'tail' | 'head-tail'
  inheritEnv: boolean
  envAllow: string[]
  envDeny: string[]
  guard: boolean
  keepSpillFiles: boolean
  /** undefined: no confinement. */
  sandbox: SandboxConfig | undefined
}

/** What an executor is doing at one moment. */
export interface ExecutorStats {
  /** Processes of which something may be alive. */
  live: number
  /** Processes that have come and gone. */
  ended: number
  /** Bytes in spill files. */
  spillBytes: number
  /** Threads that the executor runs: 2, and 0 after its shutdown. */
  threads: number
  /** How children are created. `'vfork'`: at the same cost in a big host as in a small one. */
  spawnPath: 'vfork' | 'fork' | 'portable'
  /** The pid of the guard; undefined while there is none. */
  guardPid: number | undefined
}

/** The terms that a command is to run under. Everything may be left out, or undefined, for the executor's default. */
export interface RunOptions {
  /** Working directory; a relative one is taken from the executor's `cwd`. */
  cwd?: string | undefined
  /** Timeout of a run, capped by the executor's `maxTimeoutMs`. `start` has none, and ignores it. */
  timeout?: number | undefined
  /**
   * Ends the command when aborted, as `kill` does. Aborted before the command is started, it is `DSH_E_CANCELLED`, and
   * nothing is started.
   */
  signal?: AbortSignal | undefined
  /** The command's stdin, which is closed after it. `''` is an empty stdin; left out, it is `/dev/null`. */
  input?: string | Uint8Array | undefined
  /** Environment over the host's: a string sets, undefined or null removes. Names in `DSH_` are refused. */
  env?: Readonly<Record<string, string | undefined | null>> | undefined
  /** Trusted entries in the `DSH_` namespace: `DSH_` and `[A-Z][A-Z0-9_]*`. */
  dshEnv?: Readonly<Record<string, string>> | undefined
  /** Bytes of stdout that a run keeps in memory, in place of `maxOutputBytes`. `start` ignores it. */
  stdoutMaxBytes?: number | undefined
  /**
   * Sends stderr through stdout's pipe, so that both are kept in their order of arrival. Without it, the order between
   * the two is not known. Default false.
   */
  mergeStderr?: boolean | undefined
  /**
   * What happens to descendants that are still alive when the command has ended by itself. `'keep'`, the default: they
   * stay, owned by the executor, listed in the result, and are ended with the executor. `'kill'`: they are ended before
   * the result is there.
   */
  survivors?: 'keep' | 'kill' | undefined
  /** Any whole number of the caller's; comes back in {@link Process.tag} and {@link Spec.tag}. Default 0. */
  tag?: number | undefined
  /**
   * What the command may do, where that differs from the executor's policy. An empty `writable` or `hidden` is refused:
   * a list replaces the executor's, and can't take it away.
   */
  sandbox?: SandboxPolicy | undefined
}

/**
 * How much of the file system a command may change, the narrowest first.
 *
 * - `'read-only'`: nothing but `/dev/null` and a private directory for temporary files, in TMPDIR, which is gone
 *   afterwards;
 * - `'workspace-write'`: that, and the workspace with everything below it, and further writable paths;
 * - `'danger-full-access'`: no confinement.
 */
export type SandboxMode = 'read-only' | 'workspace-write' | 'danger-full-access'

/**
 * How much of the network a command may use: whatever the host can reach; a loopback interface of the command's own
 * (bubblewrap only); or no sockets but those of the file system and of the kernel's own services.
 */
export type SandboxNetwork = 'full' | 'loopback' | 'none'

/**
 * What carries a confinement out: `bwrap`, namespaces (Linux); Landlock, in the command itself and without a helper
 * program (Linux 5.13); `sandbox-exec` (macOS, never run); or the caller's own program.
 */
export type SandboxBackend = 'bubblewrap' | 'landlock' | 'seatbelt' | 'runner'

/**
 * What a confined command may do. What is left out, or undefined, is in a request what the executor's policy says, and
 * otherwise the default. Paths are absolute; they are resolved once, symbolic links followed.
 */
export interface SandboxPolicy {
  /** Default `'read-only'`. */
  mode?: SandboxMode | undefined
  /** The directory that `'workspace-write'` lets a command change. Default: the executor's `cwd`, not the request's. */
  workspace?: string | undefined
  /** Further paths that `'workspace-write'` lets a command change. They have to exist. */
  writable?: readonly string[] | undefined
  /** Paths whose contents a command does not get to see. Those that do not exist are passed over. */
  hidden?: readonly string[] | undefined
  /** Default `'full'`. */
  network?: SandboxNetwork | undefined
  /** The backends to be tried, in this order. Default: the runner if there is one, then all of the system. */
  backends?: readonly SandboxBackend[] | undefined
  /** The caller's own sandbox. */
  runner?: SandboxRunner | undefined
  /**
   * Whether a workspace that is a linked git worktree may change those parts of the main repository that a commit
   * needs: not its hooks, and not its configuration. Default false.
   */
  gitWorktree?: boolean | undefined
}

/** A sandbox of the caller's own, which is trusted to enforce the policy. */
export interface SandboxRunner {
  /**
   * A program (absolute, or found in PATH) and its first arguments, after which come the shell, `-c` and the command.
   * It finds the policy in the variables DSH_SANDBOX_MODE, DSH_SANDBOX_WORKSPACE, DSH_SANDBOX_WRITABLE (a list with `:`)
   * and DSH_SANDBOX_NETWORK.
   */
  command: readonly string[]
  /**
   * A line on stderr that contains one of these, whatever the case, says together with a non-zero exit that the runner
   * itself failed and the command did not run.
   */
  failures: readonly string[]
}

/** The policy in force. */
export interface SandboxConfig {
  mode: SandboxMode
  /** undefined: the executor's `cwd`. */
  workspace: string | undefined
  writable: string[]
  hidden: string[]
  network: SandboxNetwork
  /** undefined: the runner if there is one, then all of the system. */
  backends: SandboxBackend[] | undefined
  runner: { command: string[]; failures: string[] } | undefined
  gitWorktree: boolean
}

/** What is known of the confinement of a command; of a process it is final once that has settled. */
export interface Confinement {
  /** The mode that it ran under. */
  mode: SandboxMode
  /** What confined it; null under full access. */
  backend: SandboxBackend | null
  /** How much of the policy is enforced: all of it, or not what `missing` names; null under full access. */
  enforcement: 'full' | 'partial' | null
  /**
   * What the policy says and the backend can't enforce here: `metadata` (modes, owners, times and attributes of files),
   * `hidden-names`, `truncate`, `ioctl-dev`, `signal`, `abstract-unix-socket`, `private-loopback`.
   */
  missing: string[]
  /** The network that it could use. */
  network: SandboxNetwork
  /** The workspace without symbolic links; null under full access. */
  workspace: string | null
  /**
   * Whether it was kept from something: that is known of the kernel, and not guessed from output. null: there is no
   * telling (yet), or it did not matter to the command.
   */
  denied: boolean | null
  /** The path that it was kept from, absolute; null unless `denied`. */
  deniedPath: string | null
  /** The rule that forbids it, in a few words; null unless `denied`. */
  deniedRule: string | null
  /**
   * Why the backend failed to set itself up, in which case the command did not run; null when it did not fail. Of
   * processes only: `run` and `result` give `DSH_E_SANDBOX_UNAVAILABLE`.
   */
  runnerFailed: string | null
}

/**
 * The modes that are strictly wider than this one, the narrowest first: what could be asked for when a command was
 * denied something.
 */
export function widerModes(mode: SandboxMode): SandboxMode[]

/**
 * Tries every backend of the system with a shell that does nothing, and tells what works, why not more, and what would
 * mend it. That takes some milliseconds per backend, and 10 seconds at most when one hangs, on a thread of its own; a
 * worker or program that ends meanwhile waits for it.
 */
export function sandboxDoctor(): Promise<Doctor>

/** What confinement this system has. */
export interface Doctor {
  /** The whole report as text for people. */
  text: string
  /** The backends in the order in which they are tried by default. */
  backends: BackendReport[]
  /** Facts of the system that decide about them. */
  facts: Record<string, string>
}

/** What was found out about one backend by really running something under it. */
export interface BackendReport {
  backend: SandboxBackend
  /** It confines commands here. */
  usable: boolean
  /** It also gives them a network of their own, or none. */
  network: boolean
  /** The version of its interface; 0 when it has none. */
  version: number
  /** The system's error number of what failed; 0 when nothing did, or no system call. */
  errno: number
  /** What was tried. */
  tried: string
  /** What came back. */
  message: string
  /** What would mend it; null when it works. */
  remedy: string | null
}

/** What would run: a request with every default and cap applied. */
export interface Spec {
  /** The text for the shell's `-c`. */
  command: string
  /** The absolute path of the shell. */
  shell: string
  /** The absolute working directory. */
  cwd: string
  /** The effective timeout of a run. */
  timeoutMs: number
  /** Bytes of stdout kept in memory by a run. */
  stdoutMaxBytes: number
  /** Bytes of stderr, and of a background process's stdout, kept in memory. */
  maxOutputBytes: number
  /** From SIGTERM to SIGKILL. */
  graceMs: number
  /** How long open pipes are waited for after the shell has exited. */
  drainMs: number
  survivors: 'keep' | 'kill'
  mergeStderr: boolean
  tag: number
  /** The mode that it would be confined under; undefined when nobody has asked for confinement. */
  sandboxMode: SandboxMode | undefined
  /** Names of host variables that the command does not get because they look like credentials or are denied. */
  scrubbed: string[]
}

/** How a command ended. */
export interface Outcome {
  /**
   * By what the shell ended. `'unknown'`: it has ended, but the host took its status away (by ignoring SIGCHLD or
   * reaping strangers) on a system that can't tell it again. null: it has not ended yet, which is never so in a run's
   * result.
   */
  exit: 'code' | 'signal' | 'unknown' | null
  /** The exit code, 0 to 255; null when it did not exit with one. */
  exitCode: number | null
  /** The name of the signal that ended it; null when none did. Never made up from an exit code. */
  signal: NodeJS.Signals | (string & {}) | null
  /** That signal had memory dumped. */
  coreDumped: boolean
  /** The timeout was the first cause to cut the command short, whatever it then exited with. */
  timedOut: boolean
  /** A cancellation, kill or shutdown was the first cause to cut the command short. Never with `timedOut`. */
  aborted: boolean
  /** The first cause that cut the command short while it ran; null when it ended by itself. */
  cause: StopCause | null
  /** Who first ordered a stop, also of what was left behind after the command's own end; null when nobody did. */
  stoppedBy: StopCause | null
  /** How far that stop had to go: SIGTERM was enough, or SIGKILL was sent; null when nothing was signalled. */
  stopStage: 'term' | 'kill' | null
  /** Something still held the output pipes when `drainMs` had passed. */
  pipesHeld: boolean
  /** From the start until the shell's end. */
  durationMs: number
  /** CPU time in user mode, of the shell and the descendants that it waited for. */
  userMs: number
  /** The same in the kernel. */
  systemMs: number
  /** Peak resident memory of the largest of them. */
  maxRssBytes: number
  /** Bytes of input that the command took, or that were left in the pipe for it. */
  inputWritten: number
}

/**
 * Who stops a command: its timeout, its `AbortSignal`, `kill()`, the executor's shutdown, or, after its own end, the
 * request's `survivors: 'kill'`.
 */
export type StopCause = 'timeout' | 'cancel' | 'kill' | 'shutdown' | 'survivors'

/** A process that is still alive. */
export interface Survivor {
  pid: number
  /** When it started, in clock ticks since boot: with it, the pid can't be mistaken for a later process. */
  startTime: number
}

/** Bytes, and the same as text. */
export interface Text {
  /** As the command wrote them: not promised to be UTF-8. */
  readonly bytes: Buffer
  /** The bytes as UTF-8, with U+FFFD for what is none. Decoded when it is first asked for. */
  readonly text: string
  /** The same as `text`, for templates. */
  toString(): string
}

/** One stream as it was kept. */
export interface Captured extends Text {
  /** Bytes that the command wrote. */
  readonly total: number
  /** Bytes that were left out of `bytes`. */
  readonly omitted: number
  /** Where in `bytes` they are missing: an offset, 0 when only the tail was kept. */
  readonly omittedAt: number
  /** The file that holds the whole stream from its first byte; null when memory was enough, or `spillError` is set. */
  readonly spillPath: string | null
  /** Why there is no such file although memory was not enough; otherwise null. */
  readonly spillError: string | null
}

/** What a run gave. */
export interface RunResult extends Outcome {
  /** Its stdout (both streams, when they were merged). */
  stdout: Captured
  /** Its stderr. */
  stderr: Captured
  /** The pids that held the output pipes when the drain limit passed, as far as they could be seen. */
  heldBy: number[]
  /** Descendants that were still alive. */
  survivors: Survivor[]
  /** Names of host variables that the command did not get because they look like credentials or are denied. */
  scrubbed: string[]
  /** What is known of its confinement; undefined when nobody has asked for any. */
  sandbox: Confinement | undefined
  /** The effective timeout; 0 for a background process. */
  timeoutMs: number
  /** The library's number of the process, unique in its executor. */
  id: number
}

/** What is known of a background process at one moment. */
export interface ProcessInfo extends Outcome {
  /** The library's number of the process, unique in its executor. */
  id: number
  /** The shell's pid. Its number may belong to somebody else once the process has settled. */
  pid: number
  /** The request's tag. */
  tag: number
  status: ProcessStatus
  /** Nothing of the tree is alive any more. */
  quiescent: boolean
  /** How many descendants are still alive after the command's end, see {@link Process.survivors}. */
  survivors: number
  /** How many held the output pipes when the drain limit passed, see {@link Process.heldBy}. */
  heldBy: number
  /** Bytes of stdout (both streams, when they are merged) seen so far. */
  stdoutTotal: number
  /** Bytes of stderr seen so far. */
  stderrTotal: number
  /** What is known of its confinement; undefined when nobody has asked for any. */
  sandbox: Confinement | undefined
}

/**
 * What has become of a background process: not settled yet; ended by itself, with whatever code; or killed, cancelled,
 * or dead of a signal.
 */
export type ProcessStatus = 'running' | 'completed' | 'killed'

/** What has happened to a process, see {@link Process.events}. */
export type ProcessEvent = 'output' | 'exit' | 'settled' | 'quiescent'

/** One of the two streams. */
export type Stream = 'stdout' | 'stderr'

/**
 * What both streams got since the last consuming read, as one text: new stdout, then, when there is new stderr,
 * `[stderr]` on a line of its own and that. An incomplete UTF-8 sequence at the end waits for the next chunk.
 */
export interface OutputChunk extends Text {
  /** Bytes of stdout that had slid out of memory before this read, and are not in it. */
  readonly stdoutMissing: number
  /** Bytes of stderr that had. */
  readonly stderrMissing: number
  /** The file that holds the whole stdout; null when there is none. */
  readonly stdoutSpillPath: string | null
  /** The file that holds the whole stderr; null when there is none. */
  readonly stderrSpillPath: string | null
  /** Something is missing. */
  readonly lossy: boolean
  /** Both streams have ended and everything has been given. */
  readonly end: boolean
}

/** What one read by offset gave. */
export interface StreamReading extends Text {
  /** The offset of the first byte given; above the one that was asked for when the read is lossy. */
  readonly start: number
  /** The offset to ask for next. */
  readonly next: number
  /** Bytes between the offset that was asked for and `start`, which had slid out of memory. */
  readonly missing: number
  /** Something is missing. */
  readonly lossy: boolean
  /** The stream has ended and this read reached its end. */
  readonly end: boolean
}

/**
 * A command in the background: the shell and all its descendants. Made by {@link Executor.start}.
 *
 * The process is the executor's until nothing of it is alive. A handle that is forgotten is collected, and the process
 * goes on.
 */
export class Process implements AsyncDisposable {
  private constructor()

  /** The library's number of the process, unique in its executor. */
  readonly id: number
  /** The shell's pid. Its number may belong to somebody else once the process has settled. */
  readonly pid: number
  /** The request's tag. */
  readonly tag: number

  /** What has become of it. Set once, and final when `done` has resolved. */
  get status(): ProcessStatus
  /** The exit code; null while it runs, and when it did not exit with one. */
  get exitCode(): number | null
  /** The name of the signal that ended it; null while it runs, and when none did. */
  get signal(): NodeJS.Signals | (string & {}) | null

  /**
   * Resolves when the process has settled: its exit is known, and its output is complete or `drainMs` have passed;
   * with what is known of it then. Never rejects. Keeps the event loop from the first time it is asked for.
   */
  get done(): Promise<ProcessInfo>

  /**
   * Resolves when nothing of the process's tree is alive any more. Never rejects. Keeps the event loop from the first
   * time it is asked for.
   */
  get quiescent(): Promise<void>

  /**
   * Waits until the process has settled, and gives what is known of it now. After so long it rejects with
   * `DSH_E_TIMED_OUT`, which changes nothing about the process. 0 only looks; left out or `Infinity`, there is no
   * limit.
   */
  wait(ms?: number): Promise<ProcessInfo>

  /** What is known of it now. */
  info(): ProcessInfo

  /**
   * What it has given so far, in the form of a run's result, once it has settled; before that, `DSH_E_TIMED_OUT`.
   * `DSH_E_SANDBOX_UNAVAILABLE` when its backend failed, so that it did not run.
   */
  result(): RunResult

  /**
   * Ends the whole tree: SIGTERM and SIGCONT, and after `graceMs` SIGKILL to what is still alive, descendants that left
   * their session included. What a command that has ended left behind is ended too. Returns at once.
   *
   * Gives true when there was still a command to be killed: once, and never after its own end.
   */
  kill(): boolean

  /** Descendants that are still alive after the command's end. */
  survivors(): Survivor[]

  /** The pids that held the output pipes when the drain limit passed, as far as they could be seen. */
  heldBy(): number[]

  /** Takes what both streams got since the last call. No byte is given twice; an empty chunk means nothing new. */
  readOutput(): OutputChunk

  /**
   * Reads one stream from an absolute offset on (default 0), `maxBytes` at most (default 65,536). Consumes nothing, so
   * that many readers may read the same bytes, also after the process has ended. An empty reading means nothing new.
   */
  readStream(stream: Stream, offset?: number, maxBytes?: number): StreamReading

  /** The file that holds a whole stream, once it was too long for memory; null when there is none. */
  spillPath(stream: Stream): string | null

  /**
   * What happens to it, as hints, until nothing of its tree is alive: `'output'` (there is something new to read, or a
   * stream has ended; any number of times), `'exit'` (the shell has exited), `'settled'`, `'quiescent'`. Nothing is
   * consumed, and what has happened before the first hint is asked for is told too, so that any number of readers may
   * follow.
   */
  events(): AsyncGenerator<ProcessEvent, void, undefined>

  /**
   * The output as it comes, until both streams have ended. Consumes it as `readOutput` does: of several readers, each
   * gets a part.
   */
  [Symbol.asyncIterator](): AsyncGenerator<OutputChunk, void, undefined>

  /** Kills the process and waits until nothing of its tree is alive: for `graceMs` and one second at most. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Runs commands, and owns what it runs until nothing of it is alive.
 *
 * It has two threads, whatever the load, a spill directory, and the guard. `shutdown` ends all of that; so does the
 * end of the program or the worker. An executor that is forgotten is freed by the garbage collector once nothing of it
 * is alive: to forget it ends no command.
 */
export class Executor implements AsyncDisposable {
  /** Errors: `DSH_E_INVALID` and `DSH_E_SHELL_MISSING`, with a message that names the option, and `DSH_E_SYSTEM`. */
  constructor(options?: ExecutorOptions)

  /**
   * Runs a command in a fresh, non-interactive `bash -c`, and resolves when it has settled: its exit is known, and its
   * output is complete or `drainMs` have passed. The command is started before this returns.
   *
   * Everything that a command can do, exits and timeouts included, is a result. A rejection means that it was not run.
   *
   * Errors of the request: `DSH_E_INVALID`, `DSH_E_COMMAND_NUL`, `DSH_E_ENV_NAME`, `DSH_E_ENV_RESERVED`,
   * `DSH_E_ENV_TOO_BIG`, `DSH_E_CANCELLED`. Of the place: `DSH_E_WORKDIR_MISSING`, `DSH_E_WORKDIR_NOT_DIR`,
   * `DSH_E_WORKDIR_DENIED`, `DSH_E_WORKDIR_UNUSABLE`, `DSH_E_SHELL_MISSING`. Of the system: `DSH_E_SPAWN`,
   * `DSH_E_SYSTEM`, `DSH_E_SANDBOX_UNAVAILABLE`. Of the executor: `DSH_E_SHUTDOWN`.
   *
   * @param command the text for `bash -c`: anything but NUL, of any length; a string is passed as UTF-8
   */
  run(command: string | Uint8Array, options?: RunOptions): Promise<RunResult>

  /** Starts a command in the background. No timeout applies. Throws as `run` rejects. */
  start(command: string | Uint8Array, options?: RunOptions): Process

  /** Tells what would run, and starts nothing. Whether the directory can be entered is found out only by running. */
  resolve(command: string | Uint8Array, options?: RunOptions): Spec

  /**
   * Changes budgets. Commands that run keep theirs, the next one gets the new ones. Budgets that can't be used are
   * refused, and the executor stays on its last good ones.
   */
  configure(changes: ExecutorChanges): void

  /** The budgets in force: a copy that later changes do not touch. */
  get config(): ExecutorConfig

  /** What the executor is doing now. */
  stats(): ExecutorStats

  /**
   * Ends every process tree that the executor owns, and resolves when they are gone. No command is started any more
   * (`DSH_E_SHUTDOWN`); processes and their output stay readable. May be called any number of times.
   *
   * Rejects with `DSH_E_TIMED_OUT` when something is still being ended after `timeoutMs` (default: `graceMs` and one
   * second). It waits on a thread of its own.
   */
  shutdown(timeoutMs?: number): Promise<void>

  /** As `shutdown()`. */
  [Symbol.asyncDispose](): Promise<void>
}
