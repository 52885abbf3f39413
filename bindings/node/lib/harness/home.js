import { Context, symbols } from '@deepseek-ai/cordis'

import { Executor } from '../index.js'

/**
 * The home of each owner: a provider of `ctx.subprocess`, or the context of a shell service that has none.
 *
 * @type {WeakMap<object, Home>}
 */
const homes = new WeakMap()

/**
 * Where the processes of a shell service live: one libdsh executor, and the fiber whose end is their end.
 *
 * With a provider of `ctx.subprocess` that is the provider's fiber, as for everything else that runs in the
 * composition: a reload of the shell service leaves its background processes alone. Without one it is the shell
 * service's own.
 */
export class Home {
  /** Made by the first command. @type {Executor | undefined} */
  #executor

  /** Its options, as text. @type {string | undefined} */
  #options

  /**
   * Where what `ctx`, the context of a shell service, starts now is to live. Throws when that has ended.
   *
   * @param {Context} ctx
   */
  static of(ctx) {
    const provider = /** @type {any} */ (ctx.get('subprocess'))
    // Not what the composition hands out, whose `ctx` is that of whoever asks.
    const service = provider?.[symbols.original] ?? provider
    const [key, owner] = Context.is(service?.ctx) ? [service, service.ctx] : [ctx, ctx]
    return homes.get(key) ?? new Home(key, owner)
  }

  /**
   * @param {object} key what the home is found by
   * @param {Context} owner whose fiber ends it
   */
  constructor(key, owner) {
    owner.effect(() => {
      homes.set(key, this)
      return () => {
        homes.delete(key)
        return this.#executor?.shutdown()
      }
    }, 'libdsh processes')
  }

  /**
   * The executor, set up for the next command. What runs already keeps what it was started with.
   *
   * @param {import('../index.js').ExecutorOptions} options
   */
  configured(options) {
    const text = JSON.stringify(options)
    // They change only with the settings, and where shell services with different rows share a provider.
    if (this.#executor === undefined) this.#executor = new Executor(options)
    else if (text !== this.#options) this.#executor.configure(options)
    this.#options = text
    return this.#executor
  }
}
