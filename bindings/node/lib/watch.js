import { addon, facts, layout } from './addon.js'
import { QUIESCENT, SETTLED, hold, release, unwatch, watch } from './loop.js'

const { STATUS, QUIESCENT: IS_QUIESCENT } = layout
const RUNNING = 1

/** Waits for what happens to one process. It is registered, and kept, only while somebody waits. */
export class Watch {
  /** By the kinds that are waited for. @type {Map<number, { promise: Promise<void>, resolve: () => void }>} */
  #waiting = new Map()
  #handle
  #key

  /**
   * @param {object} handle
   * @param {number} key
   */
  constructor(handle, key) {
    this.#handle = handle
    this.#key = key
  }

  /** Its exit and its output are final. Does not keep the event loop. */
  settled() {
    this.want(SETTLED)
    return facts[STATUS] === RUNNING ? this.next(SETTLED) : Promise.resolve()
  }

  /** Nothing of its tree is alive. Does not keep the event loop. */
  quiescent() {
    this.want(QUIESCENT)
    return facts[IS_QUIESCENT] === 0 ? this.next(QUIESCENT) : Promise.resolve()
  }

  /**
   * Has events of these kinds told from here on, once each; what happened before is in the facts then. So nothing is
   * missed by who looks at them, and then calls `next` without waiting for anything else before.
   *
   * @param {number} kinds
   */
  want(kinds) {
    addon.want(this.#handle, kinds)
  }

  /**
   * Resolves with the first event of any of these kinds. Does not keep the event loop.
   *
   * @param {number} kinds
   */
  next(kinds) {
    let waiting = this.#waiting.get(kinds)
    if (waiting === undefined) {
      let resolve = () => {}
      /** @type {Promise<void>} */
      const promise = new Promise((settle) => (resolve = settle))
      waiting = { promise, resolve }
      if (this.#waiting.size === 0) watch(this.#key, this)
      this.#waiting.set(kinds, waiting)
    }
    return waiting.promise
  }

  /** @param {number} kinds */
  notice(kinds) {
    for (const [wanted, { resolve }] of this.#waiting) {
      if ((kinds & wanted) === 0) continue
      this.#waiting.delete(wanted)
      resolve()
    }
    if (this.#waiting.size === 0) unwatch(this.#key)
  }
}

/**
 * The same promise, with the event loop kept until it has settled.
 *
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
export function held(promise) {
  hold()
  return promise.finally(release)
}
