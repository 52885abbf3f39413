import { invalid, wrongType } from './errors.js'

/**
 * How a value looks in a message: short, and without calling anything of it.
 *
 * @param {unknown} value
 */
export function shown(value) {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return String(value)
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`
}

/**
 * Milliseconds for the library, which takes 0 as the default: so 0 is refused, and the default is asked for by leaving
 * the option out. Fractions are rounded up, and what is too large is clamped by the library.
 *
 * @param {string} name
 * @param {unknown} value
 */
export function milliseconds(name, value) {
  if (value === undefined) return 0
  if (typeof value !== 'number') throw wrongType(`${name} must be a number of milliseconds, not ${shown(value)}`)
  if (!(value > 0)) {
    throw invalid(`${name} must be more than 0 milliseconds, not ${value}; leave it out for the default`)
  }
  return value
}

/**
 * The same for a number of bytes, which has no fractions.
 *
 * @param {string} name
 * @param {unknown} value
 */
export function byteCount(name, value) {
  if (value === undefined) return 0
  if (typeof value !== 'number') throw wrongType(`${name} must be a number of bytes, not ${shown(value)}`)
  if (!(value > 0) || (value !== Infinity && !Number.isInteger(value))) {
    throw invalid(`${name} must be a whole number of bytes above 0, not ${value}; leave it out for the default`)
  }
  return value
}

/**
 * A whole number from 0 on.
 *
 * @param {string} name
 * @param {unknown} value
 */
export function count(name, value) {
  if (typeof value !== 'number') throw wrongType(`${name} must be a number, not ${shown(value)}`)
  if (!Number.isSafeInteger(value) || value < 0) {
    throw invalid(`${name} must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}, not ${value}`)
  }
  return value
}

/**
 * Text that goes to the system, which takes a NUL for its end.
 *
 * @param {string} name
 * @param {unknown} value
 * @returns {string | undefined}
 */
export function optionalString(name, value) {
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw wrongType(`${name} must be a string, not ${shown(value)}`)
  if (value.includes('\0')) throw invalid(`${name} holds a NUL character: ${shown(value)}`)
  return value
}

/**
 * A copy of a list of such text.
 *
 * @param {string} name
 * @param {unknown} value
 * @returns {string[] | undefined}
 */
export function optionalStrings(name, value) {
  if (value === undefined) return undefined
  // Spread, so that holes are seen too.
  if (!Array.isArray(value) || ![...value].every((text) => typeof text === 'string')) {
    throw wrongType(`${name} must be an array of strings, not ${shown(value)}`)
  }
  return value.map((text, index) => /** @type {string} */ (optionalString(`${name}[${index}]`, text)))
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {boolean | undefined}
 */
export function optionalBoolean(name, value) {
  if (value === undefined || typeof value === 'boolean') return value
  throw wrongType(`${name} must be a boolean, not ${shown(value)}`)
}

/**
 * @template {string} Word
 * @param {string} name
 * @param {unknown} value
 * @param {readonly Word[]} words
 * @returns {Word | undefined}
 */
export function optionalWord(name, value, words) {
  if (value === undefined || words.includes(/** @type {Word} */ (value))) return /** @type {Word | undefined} */ (value)
  throw invalid(`${name} must be ${words.map((word) => `'${word}'`).join(' or ')}, not ${shown(value)}`)
}

/**
 * Refuses options that do not exist: one that is misspelt, or that only a later version knows, must not be passed over
 * in silence.
 *
 * @param {string} name
 * @param {unknown} options
 * @param {ReadonlySet<string>} known
 */
export function checkNames(name, options, known) {
  if (typeof options !== 'object' || options === null) {
    throw wrongType(`${name} must be an object, not ${shown(options)}`)
  }
  for (const key in options) {
    if (!known.has(key) && /** @type {Record<string, unknown>} */ (options)[key] !== undefined) {
      throw wrongType(`${name} has an unknown member '${key}'`)
    }
  }
}
