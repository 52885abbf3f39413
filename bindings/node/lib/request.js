import { addon, facts, layout } from './addon.js'
import { tokenOf } from './cancel.js'
import { DshError, invalid, wrongType } from './errors.js'
import { differenceOf } from './sandbox.js'
import {
  byteCount, checkNames, count, milliseconds, optionalBoolean, optionalString, optionalWord, shown,
} from './values.js'

const { TIMEOUT, STDOUT_MAX, TAG, FLAGS, SURVIVORS } = layout
const MERGE_STDERR = 1

const NAMES = new Set([
  'cwd', 'timeout', 'signal', 'input', 'env', 'dshEnv', 'stdoutMaxBytes', 'mergeStderr', 'survivors', 'tag',
  'sandbox',
])

/** @typedef {string | Uint8Array} Text */
/** @typedef {import('./index.js').RunOptions} RunOptions */

/** @type {RunOptions} */
const NONE = Object.freeze({})

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {Text}
 */
function text(name, value) {
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) {
    throw wrongType(`${name} must be a string or a Uint8Array, not ${shown(value)}`)
  }
  return value
}

/**
 * @param {string} name
 * @param {string} what
 * @param {string} key
 */
function badName(name, what, key) {
  return invalid(`${name} has a name with ${what} in it: ${shown(key)}`, 'DSH_E_ENV_NAME')
}

/**
 * Entries for the library: `NAME=VALUE` sets, `NAME` alone removes.
 *
 * @param {string} name
 * @param {unknown} env
 */
function entries(name, env) {
  if (env === undefined) return undefined
  if (typeof env !== 'object' || env === null) throw wrongType(`${name} must be an object, not ${shown(env)}`)
  return Object.entries(env).map(([key, value]) => {
    // The library could not tell where such a name ends.
    if (key.includes('=')) throw badName(name, 'an equals sign', key)
    if (key.includes('\0')) throw badName(name, 'a NUL character', key)
    if (value === undefined || value === null) return key
    if (typeof value !== 'string') throw wrongType(`${name}.${key} must be a string, not ${shown(value)}`)
    // What it holds is not shown: it may be a secret.
    if (value.includes('\0')) throw invalid(`${name}.${key} holds a NUL character`)
    return `${key}=${value}`
  })
}

/**
 * @param {unknown} signal
 * @returns {AbortSignal | undefined}
 */
function abortSignal(signal) {
  // By its shape: there are signals of other realms.
  const shape = /** @type {Partial<AbortSignal> | null | undefined} */ (signal)
  if (shape === undefined) return undefined
  if (typeof shape?.aborted === 'boolean' && typeof shape.addEventListener === 'function') {
    return /** @type {AbortSignal} */ (shape)
  }
  throw wrongType(`signal must be an AbortSignal, not ${shown(signal)}`)
}

/**
 * Checks a request, puts its numbers into the facts, and calls the addon with the rest.
 *
 * @param {Function} call the addon's `run`, `start` or `resolve`
 * @param {object} executor
 * @param {unknown} command
 * @param {RunOptions} options
 * @param {number} tag
 * @param {object} [cancel]
 */
function submit(call, executor, command, options, tag, cancel) {
  command = text('command', command)
  const cwd = optionalString('cwd', options.cwd)
  const input = options.input === undefined ? undefined : text('input', options.input)
  const env = entries('env', options.env)
  const dshEnv = entries('dshEnv', options.dshEnv)
  const mergeStderr = optionalBoolean('mergeStderr', options.mergeStderr)
  const survivors = optionalWord('survivors', options.survivors, ['keep', 'kill'])
  const timeout = milliseconds('timeout', options.timeout)
  const stdoutMaxBytes = byteCount('stdoutMaxBytes', options.stdoutMaxBytes)
  const sandbox = differenceOf('sandbox', options.sandbox)
  // Only now, and in one go: an option may be a getter that runs another command.
  facts[TIMEOUT] = timeout
  facts[STDOUT_MAX] = stdoutMaxBytes
  facts[TAG] = tag
  facts[FLAGS] = mergeStderr ? MERGE_STDERR : 0
  facts[SURVIVORS] = survivors === 'kill' ? 1 : 0
  return call(executor, command, cwd, input, env, dshEnv, cancel, sandbox)
}

/** @param {RunOptions | undefined} options */
function checked(options) {
  if (options === undefined) return NONE
  checkNames('options', options, NAMES)
  return options
}

/** @param {RunOptions} options */
function tagOf(options) {
  return options.tag === undefined ? 0 : count('tag', options.tag)
}

/**
 * Starts a command. What the addon says of it is in the facts then.
 *
 * @param {Function} call the addon's `run` or `start`
 * @param {object} executor
 * @param {unknown} command
 * @param {RunOptions | undefined} given
 */
export function start(call, executor, command, given) {
  const options = checked(given)
  const tag = tagOf(options)
  const signal = abortSignal(options.signal)
  if (signal === undefined) return { handle: submit(call, executor, command, options, tag), tag, token: undefined }
  const token = tokenOf(signal)
  try {
    const handle = submit(call, executor, command, options, tag, token.handle)
    token.enlist()
    return { handle, tag, token }
  } catch (error) {
    if (error instanceof DshError && error.code === 'DSH_E_CANCELLED') {
      Object.defineProperty(error, 'cause', { value: signal.reason, configurable: true, writable: true })
    }
    throw error
  }
}

/**
 * @param {object} executor
 * @param {unknown} command
 * @param {RunOptions | undefined} given
 */
export function resolve(executor, command, given) {
  const options = checked(given)
  abortSignal(options.signal)
  return submit(addon.resolve, executor, command, options, tagOf(options))
}
