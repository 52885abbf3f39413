import { facts, layout } from './addon.js'
import { confinementOf } from './sandbox.js'
import { signalName } from './signals.js'
import { Text } from './text.js'

/** @typedef {import('./index.js').Captured} DeclaredCaptured */

const {
  EXIT, CODE, SIGNAL, CORE_DUMPED, TIMED_OUT, ABORTED, CAUSE, STOPPED_BY, STAGE, PIPES_HELD, WALL_US, USER_US,
  SYSTEM_US, MAX_RSS, PROCESS_ID, TIMEOUT, INPUT_WRITTEN, OUT_TOTAL, OUT_OMITTED, OUT_OMITTED_AT, ERR_TOTAL,
  ERR_OMITTED, ERR_OMITTED_AT, PID, STATUS, QUIESCENT, SURVIVORS_LEN, HELD_BY_LEN,
} = layout

const EXITS = /** @type {const} */ ([null, 'code', 'signal', 'unknown'])
const STOPS = /** @type {const} */ ([null, 'timeout', 'cancel', 'kill', 'shutdown', 'survivors'])
const STAGES = /** @type {const} */ ([null, 'term', 'kill'])
const STATUSES = /** @type {const} */ (['running', 'running', 'completed', 'killed'])

const EXITED_WITH_CODE = 1
const ENDED_BY_SIGNAL = 2

/** @implements {DeclaredCaptured} */
class Captured extends Text {
  /**
   * @param {Buffer | undefined} bytes
   * @param {number} total
   * @param {number} omitted
   * @param {number} omittedAt
   * @param {string | undefined} spillPath
   * @param {string | undefined} spillError
   */
  constructor(bytes, total, omitted, omittedAt, spillPath, spillError) {
    super(bytes)
    this.total = total
    this.omitted = omitted
    this.omittedAt = omittedAt
    this.spillPath = spillPath ?? null
    this.spillError = spillError ?? null
  }
}

/** What has become of the process. */
export function statusOf() {
  return STATUSES[facts[STATUS]]
}

/** By what the shell ended. */
export function exitOf() {
  return EXITS[facts[EXIT]]
}

/** The exit code, when there is one. */
export function exitCodeOf() {
  return facts[EXIT] === EXITED_WITH_CODE ? facts[CODE] : null
}

/** The name of the signal, when one ended it. */
export function signalOf() {
  return facts[EXIT] === ENDED_BY_SIGNAL ? signalName(facts[SIGNAL]) : null
}

function outcomeOf() {
  return {
    exit: exitOf(),
    exitCode: exitCodeOf(),
    signal: signalOf(),
    coreDumped: facts[CORE_DUMPED] !== 0,
    timedOut: facts[TIMED_OUT] !== 0,
    aborted: facts[ABORTED] !== 0,
    cause: STOPS[facts[CAUSE]],
    stoppedBy: STOPS[facts[STOPPED_BY]],
    stopStage: STAGES[facts[STAGE]],
    pipesHeld: facts[PIPES_HELD] !== 0,
    durationMs: facts[WALL_US] / 1000,
    userMs: facts[USER_US] / 1000,
    systemMs: facts[SYSTEM_US] / 1000,
    maxRssBytes: facts[MAX_RSS],
    inputWritten: facts[INPUT_WRITTEN],
  }
}

/**
 * @param {number[] | undefined} flat pids and start times by turns
 * @returns {import('./index.js').Survivor[]}
 */
export function survivorsOf(flat) {
  const survivors = []
  for (let i = 0; flat !== undefined && i < flat.length; i += 2) {
    survivors.push({ pid: flat[i], startTime: flat[i + 1] })
  }
  return survivors
}

/**
 * The result that the addon has just given.
 *
 * @param {any[]} parts
 * @returns {import('./index.js').RunResult}
 */
export function resultOf(parts) {
  const stdout = new Captured(
    parts[0], facts[OUT_TOTAL], facts[OUT_OMITTED], facts[OUT_OMITTED_AT], parts[2], parts[3],
  )
  const stderr = new Captured(
    parts[1], facts[ERR_TOTAL], facts[ERR_OMITTED], facts[ERR_OMITTED_AT], parts[4], parts[5],
  )
  return {
    stdout,
    stderr,
    ...outcomeOf(),
    heldBy: parts[6] ?? [],
    survivors: survivorsOf(parts[7]),
    scrubbed: parts[8] ?? [],
    sandbox: confinementOf(parts[9]),
    timeoutMs: facts[TIMEOUT],
    id: facts[PROCESS_ID],
  }
}

/**
 * What the addon has just said of a process.
 *
 * @param {number} tag
 * @param {any} confinement
 * @returns {import('./index.js').ProcessInfo}
 */
export function infoOf(tag, confinement) {
  return {
    id: facts[PROCESS_ID],
    pid: facts[PID],
    tag,
    status: statusOf(),
    ...outcomeOf(),
    quiescent: facts[QUIESCENT] !== 0,
    survivors: facts[SURVIVORS_LEN],
    heldBy: facts[HELD_BY_LEN],
    stdoutTotal: facts[OUT_TOTAL],
    stderrTotal: facts[ERR_TOTAL],
    sandbox: confinementOf(confinement),
  }
}
