/**
 * libdsh as the shell service (`ctx.shell`) of the DeepSeek Harness.
 *
 * A composition names `libdsh/harness` in the row where it named `@deepseek-ai/dsh-bash-local`, with the same config:
 *
 * ```yaml
 * - id: bash
 *   name: 'libdsh/harness'
 *   config:
 *     timeoutMs: 120000
 * ```
 *
 * docs/harness.md says what is the same and what is better on purpose.
 */
import type { Context } from '@deepseek-ai/cordis'
import { ShellExecutor } from '@deepseek-ai/dsh-shell'
import type { ShellExecRequest, ShellExecSpec, ShellProcess, ShellRunResult } from '@deepseek-ai/dsh-shell'
import type z from '@deepseek-ai/schemastery'

/** The plugin's row. Everything may be left out for its default. */
export interface Config {
  /** Working directory of commands that name none. Default: that of the host, at each call. */
  cwd?: string
  /** Timeout in milliseconds of foreground runs that name none. Default 120,000. */
  timeoutMs?: number
  /** The most, in milliseconds, that a foreground run gets. Default 600,000. */
  maxTimeoutMs?: number
  /** Bytes of each stream kept in memory; of a longer one the end is kept, and all of it in a file. Default 64,000. */
  maxOutputBytes?: number
  /** Bytes of each stream kept in a file; a longer stream has none. Default 67,108,864. */
  maxSpillBytes?: number
  /**
   * Milliseconds from SIGTERM to SIGKILL, and for which open pipes are waited for after the shell has exited. At most
   * 2,147,483,647. Default 3,000.
   */
  graceMs?: number
}

/** A config with its defaults; `cwd` has none. */
export type ResolvedConfig = Required<Omit<Config, 'cwd'>> & Pick<Config, 'cwd'>

/** What every command has in its environment unless its caller says otherwise. */
export declare const ENV_OVERRIDES: {
  readonly NO_COLOR: '1'
  readonly TERM: 'dumb'
  readonly PAGER: 'cat'
  readonly GIT_PAGER: 'cat'
}

/**
 * Checks what the schema can't: that every number is positive and finite, and the grace not too long for a timer.
 *
 * @param config a section with its defaults
 * @throws Error that names the field
 */
export declare function assertServiceableBashConfig(config: Config): void

/**
 * Runs the commands of a composition with libdsh: `ctx.shell`.
 *
 * **How long processes live.** Where the composition has a provider of `ctx.subprocess`, what was started lives until that
 * provider is disposed, which kills and awaits it; a reload of this plugin alone leaves it running. Without a provider,
 * this plugin's own disposal is that end. When the host dies, in whatever way, everything is killed.
 *
 * **Event loop.** Runs and background processes that have not ended keep it alive, an idle service does not. No
 * method blocks it.
 */
export declare class DshBashExecutor extends ShellExecutor {
  /** No service is required; `subprocess` is used as above when it is there. */
  static inject: string[]

  /** The schema of {@link Config}, with its defaults. */
  static Config: z<Config>

  /**
   * Registers the service and its section of the user's settings, which lies over `config` while a settings provider is
   * there. Nothing is started before the first command.
   *
   * @throws Error when no command could run with `config`
   */
  constructor(ctx: Context, config: Config)

  /** The config that the next command runs with: the section of the settings, or else the row. */
  get config(): ResolvedConfig

  /**
   * Fills in what a request leaves open, and caps its timeout. Starts nothing.
   *
   * @throws Error when `timeoutMs` or `stdoutMaxBytes` is not positive and finite
   */
  resolve(request: ShellExecRequest): ShellExecSpec

  /**
   * Runs a command and resolves once it has ended, or was ended by its timeout or its signal.
   *
   * Rejects only when the command did not run: with the `code`, `errno`, `syscall`, `path` and `spawnargs` of Node's own
   * spawn errors for the place and the system, a `TypeError` with code `ERR_INVALID_ARG_VALUE` for an argument that
   * no command can have, and `aborted before spawn: …` for a signal that was aborted before. The message says what was
   * wrong, and `cause` is libdsh's own error.
   */
  run(spec: ShellExecSpec): Promise<ShellRunResult>

  /**
   * Starts a command in the background. No timeout applies.
   *
   * A command that can't be started gives a handle, too: it settles as killed, and its only output says why, once.
   *
   * @throws the other errors of {@link run}: an argument that no command can have, a signal that was aborted before
   */
  start(spec: ShellExecSpec): ShellProcess

  /**
   * For subclasses: {@link run} with an argv in place of the command, such as a sandbox runner and its words. The program
   * gets exactly these words. It is looked for as Node would, and not finding it is Node's error.
   */
  protected runArgv(spec: ShellExecSpec, argv: readonly string[]): Promise<ShellRunResult>

  /** For subclasses: {@link start} with an argv in place of the command. */
  protected startArgv(spec: ShellExecSpec, argv: readonly string[]): ShellProcess

  /**
   * For subclasses: called once everything is known of a background process, before its `done` resolves, and never before
   * {@link startArgv} has returned. Does nothing here.
   *
   * @param process the handle
   * @param stderr what is kept of its stderr; of a process that could not be started, the note about that
   * @param spawnFailed whether it could not be started
   * @param spawnError why, as {@link run} would have rejected
   */
  protected onProcessDone(process: ShellProcess, stderr: string, spawnFailed: boolean, spawnError?: unknown): void
}

export { DshBashExecutor as LocalBashExecutor, DshBashExecutor as default }
