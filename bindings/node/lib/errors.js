/** @typedef {import('./index.js').DshError} DeclaredDshError */

/** The library's status codes by their number, negated. */
const CODES = [
  'DSH_OK',
  'DSH_E_NULL',
  'DSH_E_INVALID',
  'DSH_E_STRUCT',
  'DSH_E_FLAGS',
  'DSH_E_COMMAND_NUL',
  'DSH_E_ENV_NAME',
  'DSH_E_ENV_RESERVED',
  'DSH_E_ENV_TOO_BIG',
  'DSH_E_WORKDIR_MISSING',
  'DSH_E_WORKDIR_NOT_DIR',
  'DSH_E_WORKDIR_DENIED',
  'DSH_E_WORKDIR_UNUSABLE',
  'DSH_E_SHELL_MISSING',
  'DSH_E_CANCELLED',
  'DSH_E_SHUTDOWN',
  'DSH_E_SPAWN',
  'DSH_E_SANDBOX_UNAVAILABLE',
  'DSH_E_TIMED_OUT',
  'DSH_E_SYSTEM',
  'DSH_E_OUT_OF_MEMORY',
  'DSH_E_FORKED',
  'DSH_E_PANIC',
]

/** @implements {DeclaredDshError} */
export class DshError extends Error {
  /**
   * @param {string} message
   * @param {{ code: string, errno?: number, stage?: string, cause?: unknown }} details
   */
  constructor(message, { code, errno = 0, stage = '', cause }) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.errno = errno
    this.stage = stage
  }
}
// On the prototype, as with every error of the language: it is no fact of one error.
Object.defineProperty(DshError.prototype, 'name', { value: 'DshError', configurable: true, writable: true })

/**
 * What the addon throws.
 *
 * @param {string} message
 * @param {number} status
 * @param {number} errno
 * @param {string} stage
 */
export function errorOfStatus(message, status, errno, stage) {
  const error = new DshError(message, { code: CODES[-status] ?? `DSH_E_${-status}`, errno, stage })
  Error.captureStackTrace(error, errorOfStatus)
  return error
}

/**
 * A value that can't be used, found before the library was asked.
 *
 * @param {string} message names the option and the value
 */
export function invalid(message, code = 'DSH_E_INVALID') {
  return new DshError(message, { code, stage: 'argument' })
}

/**
 * A value of the wrong type: a mistake in the program, not in what it was given.
 *
 * @param {string} message
 */
export function wrongType(message) {
  return Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_TYPE' })
}
