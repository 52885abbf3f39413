import { addon, facts, layout } from './addon.js'
import { changed } from './config.js'
import { hold, release, unwatch, watch } from './loop.js'
import { resultOf } from './outcome.js'
import { Process } from './process.js'
import { resolve, start } from './request.js'
import { namedPolicy } from './sandbox.js'
import { milliseconds } from './values.js'
import { held } from './watch.js'

/** @typedef {import('./index.js').Executor} DeclaredExecutor */

const { KEY } = layout

/** A foreground run that is under way. */
class Run {
  /**
   * @param {Executor} executor kept, so that it is not forgotten before its runs
   * @param {{ token?: { dismiss(): void } }} started what `start` of request.js has just given, the facts included
   * @param {(result: import('./index.js').RunResult) => void} fulfil
   * @param {(reason: unknown) => void} fail
   */
  constructor(executor, { token }, fulfil, fail) {
    this.executor = executor
    this.key = facts[KEY]
    this.token = token
    this.fulfil = fulfil
    this.fail = fail
    watch(this.key, this)
    hold()
  }

  /** It has settled: no other event was asked for. */
  notice() {
    unwatch(this.key)
    release()
    this.token?.dismiss()
    try {
      this.fulfil(resultOf(addon.finish(this.key)))
    } catch (error) {
      this.fail(error)
    }
  }
}

/** @implements {DeclaredExecutor} */
export class Executor {
  #handle
  #options

  /** @param {import('./index.js').ExecutorOptions} [options] */
  constructor(options = {}) {
    this.#options = changed({}, options)
    /** @type {object} */
    this.#handle = addon.executorNew(this.#options)
  }

  /**
   * @param {string | Uint8Array} command
   * @param {import('./index.js').RunOptions} [options]
   * @returns {Promise<import('./index.js').RunResult>}
   */
  run(command, options) {
    // What this throws rejects the promise; the command is started before this call returns.
    return new Promise((fulfil, fail) => {
      new Run(this, start(addon.run, this.#handle, command, options), fulfil, fail)
    })
  }

  /**
   * @param {string | Uint8Array} command
   * @param {import('./index.js').RunOptions} [options]
   */
  start(command, options) {
    return new Process(this, start(addon.start, this.#handle, command, options))
  }

  /**
   * @param {string | Uint8Array} command
   * @param {import('./index.js').RunOptions} [options]
   * @returns {import('./index.js').Spec}
   */
  resolve(command, options) {
    return resolve(this.#handle, command, options)
  }

  /** @param {import('./index.js').ExecutorChanges} changes */
  configure(changes) {
    const options = changed(this.#options, changes)
    addon.executorConfigure(this.#handle, options)
    this.#options = options
  }

  /** @returns {import('./index.js').ExecutorConfig} */
  get config() {
    const config = addon.executorConfig(this.#handle)
    config.sandbox = namedPolicy(config.sandbox)
    return config
  }

  /** @returns {import('./index.js').ExecutorStats} */
  stats() {
    return addon.executorStats(this.#handle)
  }

  /**
   * @param {number} [timeoutMs]
   * @returns {Promise<void>}
   */
  async shutdown(timeoutMs) {
    await held(addon.executorShutdown(this.#handle, milliseconds('timeoutMs', timeoutMs)))
  }

  [Symbol.asyncDispose]() {
    return this.shutdown()
  }
}
