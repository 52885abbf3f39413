import { addon } from './addon.js'

/**
 * The library's cancel token of an `AbortSignal`. One token and one listener serve all commands with that signal.
 */
class Token {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal
    this.handle = addon.cancelNew()
    this.users = 0
    this.listener = () => addon.cancel(this.handle)
    if (signal.aborted) this.listener()
  }

  /** A command has been started with it. */
  enlist() {
    if (this.users++ === 0) this.signal.addEventListener('abort', this.listener, { once: true })
  }

  /** That command has settled. */
  dismiss() {
    if (--this.users === 0) this.signal.removeEventListener('abort', this.listener)
  }
}

/** @type {WeakMap<AbortSignal, Token>} */
const tokens = new WeakMap()

/** @param {AbortSignal} signal */
export function tokenOf(signal) {
  let token = tokens.get(signal)
  // Nobody may have listened when the signal was aborted.
  if (token === undefined || (signal.aborted && token.users === 0)) tokens.set(signal, (token = new Token(signal)))
  return token
}
