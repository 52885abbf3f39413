import { installSettingsSection } from '@deepseek-ai/dsh-settings'
import { SHELL_SETTINGS_NAMESPACE, ShellExecutor } from '@deepseek-ai/dsh-shell'

import {
  Config,
  assertPositiveFinite,
  assertServiceableBashConfig,
  effectiveTimeout,
  executorOptions,
} from './config.js'
import { assertNotAborted, isSpawnFailure, translated } from './errors.js'
import { Home } from './home.js'
import { invocation } from './invocation.js'
import { failedProcess, runningProcess } from './process.js'

/** @typedef {import('@deepseek-ai/dsh-shell').ShellExecRequest} ShellExecRequest */
/** @typedef {import('@deepseek-ai/dsh-shell').ShellExecSpec} ShellExecSpec */
/** @typedef {import('@deepseek-ai/dsh-shell').ShellProcess} ShellProcess */
/** @typedef {import('@deepseek-ai/dsh-shell').ShellRunResult} ShellRunResult */
/** @typedef {import('../harness.js').Config} SectionConfig */
/** @typedef {import('../harness.js').ResolvedConfig} ResolvedConfig */

/** The shell service of the harness over libdsh. Its public face is described in harness.d.ts. */
export class DshBashExecutor extends ShellExecutor {
  // Nothing: a provider of `ctx.subprocess` decides how long processes live, see Home, but is not needed to run them.
  /** @type {string[]} */
  static inject = []
  static Config = Config

  /**
   * @param {import('@deepseek-ai/cordis').Context} ctx
   * @param {SectionConfig} config
   */
  constructor(ctx, config) {
    super(ctx)
    assertServiceableBashConfig(config)
    // Not `this.ctx`, which in a call through `ctx.shell` is the caller's.
    this.home = () => Home.of(ctx)
    this.source = () => /** @type {ResolvedConfig} */ (config)
    installSettingsSection(ctx, SHELL_SETTINGS_NAMESPACE, Config, config, {
      validate: assertServiceableBashConfig,
      setSource: (source) => (this.source = /** @type {() => ResolvedConfig} */ (source)),
      // Nothing to be told: each command asks for the config.
      onChange: () => {},
    })
  }

  get config() {
    return this.source()
  }

  /**
   * @param {ShellExecRequest} request
   * @returns {ShellExecSpec}
   */
  resolve(request) {
    const { command, signal, stdin, env, dshEnv, sandboxPolicy } = request
    const config = this.config
    const timeoutMs = effectiveTimeout(request.timeoutMs, config)
    const stdoutMaxBytes = request.stdoutMaxBytes ?? config.maxOutputBytes
    assertPositiveFinite('request.stdoutMaxBytes', stdoutMaxBytes)
    return {
      command,
      workdir: request.workdir ?? config.cwd ?? process.cwd(),
      timeoutMs,
      stdoutMaxBytes,
      ...(signal && { signal }),
      ...(stdin !== undefined && { stdin }),
      ...(env !== undefined && { env }),
      ...(dshEnv !== undefined && { dshEnv }),
      sandboxPolicy,
    }
  }

  /** @param {ShellExecSpec} spec */
  async run(spec) {
    return this.runArgv(spec, ['bash', '-c', spec.command])
  }

  /** @param {ShellExecSpec} spec */
  start(spec) {
    return this.startArgv(spec, ['bash', '-c', spec.command])
  }

  /**
   * @param {ShellExecSpec} spec
   * @param {readonly string[]} argv
   * @returns {Promise<ShellRunResult>}
   */
  async runArgv(spec, argv) {
    let result
    try {
      const { executor, command, options } = prepared(this, spec, argv)
      const stdoutMaxBytes = Math.ceil(spec.stdoutMaxBytes)
      result = await executor.run(command, { ...options, timeout: runTimeout(spec), stdoutMaxBytes })
    } catch (error) {
      throw translated(error, argv)
    }
    return {
      exitCode: result.exitCode,
      signal: /** @type {NodeJS.Signals | null} */ (result.signal),
      timedOut: result.timedOut,
      // By its caller only: what ends with the composition was not aborted.
      aborted: result.cause === 'cancel',
      timeoutMs: spec.timeoutMs,
      stdout: collected(result.stdout),
      stderr: collected(result.stderr),
    }
  }

  /**
   * @param {ShellExecSpec} spec
   * @param {readonly string[]} argv
   * @returns {ShellProcess}
   */
  startArgv(spec, argv) {
    try {
      const { executor, command, options } = prepared(this, spec, argv)
      return runningProcess(executor.start(command, options), (handle, stderr) => {
        this.onProcessDone(handle, stderr, false)
      })
    } catch (thrown) {
      const error = translated(thrown, argv)
      if (!isSpawnFailure(error)) throw error
      return failedProcess(error, (handle, note) => this.onProcessDone(handle, note, true, error))
    }
  }

  /**
   * For subclasses that attach facts to a background process; nothing here.
   *
   * @param {ShellProcess} _process
   * @param {string} _stderr
   * @param {boolean} _spawnFailed
   * @param {unknown} [_spawnError]
   */
  onProcessDone(_process, _stderr, _spawnFailed, _spawnError) {}
}

/**
 * What both ways of running an argv begin with. The executor is set up for this command: before that is started, nothing
 * else may run.
 *
 * @param {DshBashExecutor} shell
 * @param {ShellExecSpec} spec
 * @param {readonly string[]} argv
 */
function prepared(shell, spec, argv) {
  assertNotAborted(spec.signal)
  const { command, bash, env, dshEnv } = invocation(spec, argv)
  return {
    executor: shell.home().configured(executorOptions(shell.config, bash)),
    command,
    options: { cwd: spec.workdir || undefined, signal: spec.signal, input: spec.stdin, env, dshEnv },
  }
}

/**
 * A spec may say that there is no timeout, although no request can.
 *
 * @param {ShellExecSpec} spec
 */
function runTimeout({ timeoutMs }) {
  if (Number.isNaN(timeoutMs)) assertPositiveFinite('spec.timeoutMs', timeoutMs)
  return timeoutMs > 0 ? timeoutMs : Infinity
}

/**
 * A stream of a finished run as the harness has it.
 *
 * @param {import('../index.js').Captured} stream
 */
function collected({ text, omitted, spillPath }) {
  return { text, truncated: omitted > 0, ...(spillPath !== null && { spillPath }) }
}
