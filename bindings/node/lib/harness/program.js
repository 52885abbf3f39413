import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

/** @typedef {{ path: string, code?: undefined } | { path?: undefined, code: 'ENOENT' | 'EACCES' }} Found */

/** Where execvp() looks when there is no PATH at all. */
const DEFAULT_PATH = '/usr/local/bin:/bin:/usr/bin'

/**
 * The file that running `name` with the variables `env` over the host's would execute, as execvp() finds it from `cwd`; or
 * a code: ENOENT, or EACCES when there is one that may not be executed.
 *
 * @param {string} name
 * @param {import('./environment.js').Variables} env
 * @param {string} cwd
 * @returns {Found}
 */
export function findProgram(name, env, cwd) {
  if (name.includes('/')) return examine(resolve(cwd, name))
  /** @type {Found} */
  let result = { code: 'ENOENT' }
  for (const folder of searchPath(env).split(':')) {
    const found = examine(resolve(cwd, folder, name))
    if (found.path !== undefined) return found
    if (found.code === 'EACCES') result = found
  }
  return result
}

/** @param {import('./environment.js').Variables} env */
function searchPath(env) {
  return ('PATH' in env ? env.PATH : process.env.PATH) ?? DEFAULT_PATH
}

/**
 * @param {string} path
 * @returns {Found}
 */
function examine(path) {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return { code: 'ENOENT' }
    if (!stats.isFile()) return { code: 'EACCES' }
    accessSync(path, constants.X_OK)
    return { path }
  } catch (error) {
    return { code: /** @type {NodeJS.ErrnoException} */ (error).code === 'EACCES' ? 'EACCES' : 'ENOENT' }
  }
}

/**
 * Whether a file is a script whose interpreter is not there: the system then says of the script that it is missing.
 *
 * @param {string} path
 */
export function lacksInterpreter(path) {
  const line = Buffer.alloc(256)
  let length
  try {
    const fd = openSync(path, 'r')
    try {
      length = readSync(fd, line, 0, line.length, 0)
    } finally {
      closeSync(fd)
    }
  } catch {
    return false // a program that may be executed, but not read
  }
  const interpreter = /^#![ \t]*(\/[^ \t\n]+)/.exec(line.toString('latin1', 0, length))?.[1]
  return interpreter !== undefined && !existsSync(Buffer.from(interpreter, 'latin1'))
}
