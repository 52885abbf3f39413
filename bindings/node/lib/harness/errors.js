import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'

import { DshError } from '../index.js'

/** @typedef {keyof typeof constants.errno} ErrnoName */

/**
 * Failures that Node reports with the program's name, as an event; the others it throws, without.
 *
 * @type {ReadonlySet<ErrnoName>}
 */
const NAMED = new Set(['ENOENT', 'EACCES', 'EAGAIN', 'EMFILE', 'ENFILE'])

/**
 * Codes that mean: the place or the system did not let the command run. With the errno name for when libdsh has none.
 *
 * @type {ReadonlyMap<string, ErrnoName>}
 */
const SPAWN_FAILURES = new Map([
  ['DSH_E_WORKDIR_MISSING', 'ENOENT'],
  ['DSH_E_WORKDIR_NOT_DIR', 'ENOTDIR'],
  ['DSH_E_WORKDIR_DENIED', 'EACCES'],
  ['DSH_E_WORKDIR_UNUSABLE', 'EINVAL'],
  ['DSH_E_SHELL_MISSING', 'ENOENT'],
  ['DSH_E_ENV_TOO_BIG', 'E2BIG'],
  ['DSH_E_SPAWN', 'EINVAL'],
  ['DSH_E_SYSTEM', 'EINVAL'],
  ['DSH_E_OUT_OF_MEMORY', 'ENOMEM'],
])

/** Codes that mean: no system could have run it, because of what was asked. */
const ARGUMENT_FAILURES = new Set(['DSH_E_INVALID', 'DSH_E_COMMAND_NUL', 'DSH_E_ENV_NAME', 'DSH_E_ENV_RESERVED'])

/** Which errors spawnError() has made. @type {WeakSet<object>} */
const spawnErrors = new WeakSet()

/**
 * The error of a spawn that failed, with the fields that Node's own has (`code`, `errno`, `syscall`, `path`,
 * `spawnargs`) and a message that goes on to say what was really wrong.
 *
 * @param {readonly string[]} argv
 * @param {ErrnoName} code
 * @param {string} why
 * @param {Error} [cause]
 */
export function spawnError(argv, code, why, cause) {
  const named = NAMED.has(code)
  const syscall = named ? `spawn ${argv[0]}` : 'spawn'
  const error = new Error(`${syscall} ${code}: ${why}`, cause && { cause })
  Object.assign(error, { errno: -constants.errno[code], code, syscall })
  if (named) Object.assign(error, { path: argv[0], spawnargs: argv.slice(1) })
  spawnErrors.add(error)
  return error
}

/**
 * Whether start() reports this error through its handle rather than by throwing it.
 *
 * @param {unknown} error
 * @returns {error is Error}
 */
export function isSpawnFailure(error) {
  return error instanceof Error && spawnErrors.has(error)
}

/**
 * An error of libdsh as callers of the harness know it. What has no counterpart there is given as it is.
 *
 * @param {unknown} error
 * @param {readonly string[]} argv
 */
export function translated(error, argv) {
  if (!(error instanceof DshError)) return error
  const known = SPAWN_FAILURES.get(error.code)
  if (known !== undefined) {
    const code = error.errno ? /** @type {ErrnoName} */ (getSystemErrorName(-error.errno)) : known
    return spawnError(argv, code, error.message, error)
  }
  if (ARGUMENT_FAILURES.has(error.code)) {
    return Object.assign(new TypeError(error.message, { cause: error }), { code: 'ERR_INVALID_ARG_VALUE' })
  }
  return error
}

/**
 * What run() rejects with, and start() throws, when the signal has been aborted before anything was started.
 *
 * @param {AbortSignal | undefined} signal
 */
export function assertNotAborted(signal) {
  if (signal?.aborted) throw new Error(`aborted before spawn: ${String(signal.reason ?? 'aborted')}`)
}
