import { addon } from './addon.js'
import { invalid, wrongType } from './errors.js'
import { checkNames, optionalBoolean, optionalString, optionalStrings, optionalWord, shown } from './values.js'
import { held } from './watch.js'

// The library's numbers are these positions, counted from 1.
const MODES = /** @type {const} */ (['read-only', 'workspace-write', 'danger-full-access'])
const NETWORKS = /** @type {const} */ (['full', 'loopback', 'none'])
const BACKENDS = /** @type {const} */ (['bubblewrap', 'landlock', 'seatbelt', 'runner'])
const ENFORCEMENTS = /** @type {const} */ (['full', 'partial'])

const DENIED = /** @type {const} */ ([null, false, true])

const GIT_WORKTREE = 1
const NO_GIT_WORKTREE = 2

const NAMES = new Set(['mode', 'workspace', 'writable', 'hidden', 'network', 'backends', 'runner', 'gitWorktree'])
const RUNNER_NAMES = new Set(['command', 'failures'])

/**
 * The number of a word; 0 without one.
 *
 * @param {string} name
 * @param {unknown} value
 * @param {readonly string[]} words
 */
function numberOf(name, value, words) {
  const word = optionalWord(name, value, words)
  return word === undefined ? 0 : words.indexOf(word) + 1
}

/**
 * The library takes an empty list for none, and that for its default.
 *
 * @template {unknown[] | undefined} List
 * @param {string} name
 * @param {List} list
 * @param {string} otherwise what to do instead
 * @returns {List}
 */
function filled(name, list, otherwise) {
  if (list?.length === 0) throw invalid(`${name} is empty: ${otherwise}`)
  return list
}

/**
 * @param {string} name
 * @param {unknown} value
 */
function backendsOf(name, value) {
  if (value === undefined) return undefined
  if (!Array.isArray(value)) throw wrongType(`${name} must be an array of backends, not ${shown(value)}`)
  const numbers = Array.from(value, (backend, index) => {
    const number = numberOf(`${name}[${index}]`, backend, BACKENDS)
    if (number === 0) throw wrongType(`${name}[${index}] must be the name of a backend, not undefined`)
    return number
  })
  return filled(name, numbers, 'leave it out for all of the system')
}

/**
 * @param {string} name
 * @param {unknown} value
 */
function runnerOf(name, value) {
  if (value === undefined) return {}
  checkNames(name, value, RUNNER_NAMES)
  const { command = [], failures = [] } = /** @type {Record<string, unknown>} */ (value)
  return {
    runner: filled(`${name}.command`, optionalStrings(`${name}.command`, command), 'it must name a program'),
    runnerFailures: filled(
      `${name}.failures`,
      optionalStrings(`${name}.failures`, failures),
      'without it a broken runner would pass for a failing command',
    ),
  }
}

/**
 * A copy of a policy in the form of the addon.
 *
 * @param {string} name
 * @param {unknown} value
 */
export function policyOf(name, value) {
  if (value === undefined) return undefined
  checkNames(name, value, NAMES)
  const policy = /** @type {Record<string, unknown>} */ (value)
  const gitWorktree = optionalBoolean(`${name}.gitWorktree`, policy.gitWorktree)
  return {
    mode: numberOf(`${name}.mode`, policy.mode, MODES),
    workspace: optionalString(`${name}.workspace`, policy.workspace),
    writable: optionalStrings(`${name}.writable`, policy.writable),
    hidden: optionalStrings(`${name}.hidden`, policy.hidden),
    network: numberOf(`${name}.network`, policy.network, NETWORKS),
    backends: backendsOf(`${name}.backends`, policy.backends),
    flags: gitWorktree === undefined ? 0 : gitWorktree ? GIT_WORKTREE : NO_GIT_WORKTREE,
    ...runnerOf(`${name}.runner`, policy.runner),
  }
}

/**
 * The same of a request, whose policy says what differs from the executor's. An empty list would not: it would get the
 * executor's, where less was asked for.
 *
 * @param {string} name
 * @param {unknown} value
 */
export function differenceOf(name, value) {
  const policy = policyOf(name, value)
  filled(`${name}.writable`, policy?.writable, "leave it out for the executor's")
  filled(`${name}.hidden`, policy?.hidden, "leave it out for the executor's")
  return policy
}

/**
 * An executor's policy as the addon gives it.
 *
 * @param {any} policy
 * @returns {import('./index.js').SandboxConfig | undefined}
 */
export function namedPolicy(policy) {
  if (policy === undefined) return undefined
  const { mode, workspace, writable = [], hidden = [], network, backends, runner, runnerFailures, flags } = policy
  return {
    mode: MODES[mode - 1] ?? 'read-only',
    workspace,
    writable,
    hidden,
    network: NETWORKS[network - 1] ?? 'full',
    backends: backends.length === 0 ? undefined : backends.map((/** @type {number} */ number) => BACKENDS[number - 1]),
    runner: runner === undefined ? undefined : { command: runner, failures: runnerFailures },
    gitWorktree: (flags & GIT_WORKTREE) !== 0,
  }
}

/**
 * What is known of the confinement of a command, as the addon gives it.
 *
 * @param {any} facts
 * @returns {import('./index.js').Confinement | undefined}
 */
export function confinementOf(facts) {
  if (facts === undefined) return undefined
  return {
    mode: MODES[facts.mode - 1],
    backend: BACKENDS[facts.backend - 1] ?? null,
    enforcement: ENFORCEMENTS[facts.enforcement - 1] ?? null,
    missing: facts.missing ?? [],
    network: NETWORKS[facts.network - 1],
    workspace: facts.workspace ?? null,
    denied: DENIED[facts.denied],
    deniedPath: facts.deniedPath ?? null,
    deniedRule: facts.deniedRule ?? null,
    runnerFailed: facts.runnerFailed ?? null,
  }
}

/**
 * @param {import('./index.js').SandboxMode} mode
 * @returns {import('./index.js').SandboxMode[]}
 */
export function widerModes(mode) {
  if (mode === undefined) throw wrongType('mode must be the name of a mode, not undefined')
  const wider = addon.widerModes(numberOf('mode', mode, MODES))
  return wider.map((/** @type {number} */ number) => MODES[number - 1])
}

/** @returns {Promise<import('./index.js').Doctor>} */
export async function sandboxDoctor() {
  const { text, backends, facts = [] } = await held(addon.sandboxDoctor())
  return {
    text,
    backends: backends.map((/** @type {any} */ report) => ({
      ...report,
      backend: BACKENDS[report.backend - 1],
      remedy: report.remedy ?? null,
    })),
    facts: Object.fromEntries(
      facts.map((/** @type {string} */ fact) => {
        const end = fact.indexOf('=')
        return [fact.slice(0, end), fact.slice(end + 1)]
      }),
    ),
  }
}
