import { policyOf } from './sandbox.js'
import {
  byteCount, checkNames, milliseconds, optionalBoolean, optionalString, optionalStrings, optionalWord,
} from './values.js'

/** @param {string} name @param {unknown} value */
const bytes = (name, value) => byteCount(name, value) || undefined
/** @param {string} name @param {unknown} value */
const time = (name, value) => milliseconds(name, value) || undefined

/** What each option must be. @type {Record<string, (name: string, value: unknown) => unknown>} */
const READERS = {
  cwd: optionalString,
  shell: optionalString,
  spillDir: optionalString,
  timeoutMs: time,
  maxTimeoutMs: time,
  maxOutputBytes: bytes,
  maxSpillBytes: bytes,
  maxTotalSpillBytes: bytes,
  graceMs: time,
  drainMs: time,
  keep: (name, value) => optionalWord(name, value, ['tail', 'head-tail']),
  inheritEnv: optionalBoolean,
  envAllow: optionalStrings,
  envDeny: optionalStrings,
  guard: optionalBoolean,
  keepSpillFiles: optionalBoolean,
  sandbox: policyOf,
}

const NAMES = new Set(Object.keys(READERS))

/**
 * What an executor was told, with changes. An option that is undefined stays as it was, one that is null goes back to
 * its default.
 *
 * The executor's own words are kept, and not the budgets that the library made of them, because some defaults follow
 * other options: without `drainMs`, a new `graceMs` is the new drain too.
 *
 * @param {Record<string, unknown>} options
 * @param {unknown} changes
 */
export function changed(options, changes) {
  checkNames('options', changes, NAMES)
  const result = { ...options }
  for (const [name, value] of Object.entries(/** @type {object} */ (changes))) {
    if (value === null) delete result[name]
    else if (value !== undefined) result[name] = READERS[name](name, value)
  }
  return result
}
