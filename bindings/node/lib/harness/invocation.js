import { channels } from './environment.js'
import { spawnError } from './errors.js'
import { findProgram, lacksInterpreter } from './program.js'

/**
 * What libdsh is to run for an argv. libdsh runs shell commands, so an argv other than a shell's own becomes the one
 * command `exec` with exactly these words: the shell is replaced by the program, in the same process.
 *
 * Throws what spawning the argv would have failed with when its program is not there.
 *
 * @param {import('@deepseek-ai/dsh-shell').ShellExecSpec} spec
 * @param {readonly string[]} argv
 */
export function invocation(spec, argv) {
  const { env, dshEnv } = channels(spec)
  const cwd = spec.workdir || process.cwd()
  const path = requireProgram(argv, env, cwd)
  if (argv[0] === 'bash' && argv[1] === '-c' && argv.length === 3) {
    return { command: argv[2], bash: path, env, dshEnv }
  }
  if (lacksInterpreter(path)) throw spawnError(argv, 'ENOENT', `the interpreter of ${path} does not exist`)
  const command = `exec -- ${argv.map(quote).join(' ')}`
  return { command, bash: findProgram('bash', env, cwd).path ?? 'bash', env, dshEnv }
}

/**
 * @param {readonly string[]} argv
 * @param {import('./environment.js').Variables} env
 * @param {string} cwd
 */
function requireProgram(argv, env, cwd) {
  const { path, code } = findProgram(argv[0], env, cwd)
  if (path !== undefined) return path
  const why = code === 'EACCES' ? 'was found, but may not be executed' : 'was not found'
  throw spawnError(argv, code, `the program ${JSON.stringify(argv[0])} ${why}`)
}

/**
 * A word that the shell reads as exactly this text.
 *
 * @param {string} word
 */
function quote(word) {
  return `'${word.replaceAll("'", `'\\''`)}'`
}
