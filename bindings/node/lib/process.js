import { setImmediate } from 'node:timers/promises'
import { addon, facts, layout } from './addon.js'
import { DshError, invalid, wrongType } from './errors.js'
import { EXIT, OUTPUT, QUIESCENT, SETTLED, hold, release } from './loop.js'
import { exitCodeOf, exitOf, infoOf, resultOf, signalOf, statusOf, survivorsOf } from './outcome.js'
import { Text } from './text.js'
import { later } from './timer.js'
import { count, optionalWord, shown } from './values.js'
import { Watch, held } from './watch.js'

/** @typedef {import('./index.js').OutputChunk} DeclaredOutputChunk */
/** @typedef {import('./index.js').StreamReading} DeclaredStreamReading */
/** @typedef {import('./index.js').Process} DeclaredProcess */

const {
  KEY, PROCESS_ID, PID, OUT_TOTAL, ERR_TOTAL, OUT_MISSING, ERR_MISSING, START, NEXT, LOSSY, END,
  QUIESCENT: IS_QUIESCENT,
} = layout

const DEFAULT_READ = 65_536

/** The kinds of events by name, in the order in which they are told. */
const EVENTS = /** @type {const} */ ([
  [OUTPUT, 'output'],
  [EXIT, 'exit'],
  [SETTLED, 'settled'],
  [QUIESCENT, 'quiescent'],
])
const ONCE = EXIT | SETTLED | QUIESCENT

/** Of what happens once, what has happened, by the facts. */
function happenedOnce() {
  return (
    (exitOf() === null ? 0 : EXIT) |
    (statusOf() === 'running' ? 0 : SETTLED) |
    (facts[IS_QUIESCENT] === 0 ? 0 : QUIESCENT)
  )
}

/** @param {unknown} stream */
function streamNumber(stream) {
  if (stream === undefined) throw invalid("stream must be 'stdout' or 'stderr', not undefined")
  return optionalWord('stream', stream, ['stdout', 'stderr']) === 'stdout' ? 1 : 2
}

/** @implements {DeclaredOutputChunk} */
class OutputChunk extends Text {
  /** @param {any[]} parts what the addon has just given */
  constructor([bytes, stdoutSpillPath, stderrSpillPath]) {
    super(bytes)
    this.stdoutMissing = facts[OUT_MISSING]
    this.stderrMissing = facts[ERR_MISSING]
    /** @type {string | null} */
    this.stdoutSpillPath = stdoutSpillPath ?? null
    /** @type {string | null} */
    this.stderrSpillPath = stderrSpillPath ?? null
    this.lossy = facts[LOSSY] !== 0
    this.end = facts[END] !== 0
  }
}

/** @implements {DeclaredStreamReading} */
class StreamReading extends Text {
  /** @param {Buffer | undefined} bytes what the addon has just given */
  constructor(bytes) {
    super(bytes)
    this.start = facts[START]
    this.next = facts[NEXT]
    this.missing = facts[OUT_MISSING]
    this.lossy = facts[LOSSY] !== 0
    this.end = facts[END] !== 0
  }
}

/** @implements {DeclaredProcess} */
export class Process {
  #executor
  #handle
  #watch
  /** @type {Promise<import('./index.js').ProcessInfo> | undefined} */
  #done
  /** @type {Promise<void> | undefined} */
  #quiescent

  /**
   * What `start` of request.js has just given, the facts included.
   *
   * @param {import('./executor.js').Executor} executor kept, so that it is not forgotten before its processes
   * @param {{ handle: object, tag: number, token?: { dismiss(): void } }} started
   */
  constructor(executor, { handle, tag, token }) {
    this.#executor = executor
    this.#handle = handle
    this.id = facts[PROCESS_ID]
    this.pid = facts[PID]
    this.tag = tag
    this.#watch = new Watch(handle, facts[KEY])
    if (token !== undefined) this.#watch.settled().then(() => token.dismiss())
  }

  get status() {
    addon.info(this.#handle)
    return statusOf()
  }

  get exitCode() {
    addon.info(this.#handle)
    return exitCodeOf()
  }

  get signal() {
    addon.info(this.#handle)
    return signalOf()
  }

  get done() {
    return (this.#done ??= held(this.#watch.settled().then(() => this.info())))
  }

  get quiescent() {
    return (this.#quiescent ??= held(this.#watch.quiescent()))
  }

  /** @param {number} [ms] */
  async wait(ms = Infinity) {
    if (typeof ms !== 'number') throw wrongType(`ms must be a number of milliseconds, not ${shown(ms)}`)
    if (!(ms >= 0)) throw invalid(`ms must be 0 milliseconds or more, not ${ms}`)
    // The timer alone keeps the event loop, so that it may end when the time has passed.
    const timer = later(ms)
    await Promise.race([this.#watch.settled(), timer.passed]).finally(timer.clear)
    const info = this.info()
    if (info.status !== 'running') return info
    throw new DshError(`the process has not settled within ${ms} ms`, { code: 'DSH_E_TIMED_OUT', stage: 'wait' })
  }

  info() {
    const confinement = addon.sandbox(this.#handle)
    addon.info(this.#handle)
    return infoOf(this.tag, confinement)
  }

  result() {
    return resultOf(addon.result(this.#handle))
  }

  kill() {
    return addon.kill(this.#handle)
  }

  survivors() {
    return survivorsOf(addon.survivors(this.#handle))
  }

  /** @returns {number[]} */
  heldBy() {
    return addon.heldBy(this.#handle) ?? []
  }

  readOutput() {
    return new OutputChunk(addon.readOutput(this.#handle, false))
  }

  /**
   * @param {'stdout' | 'stderr'} stream
   * @param {number} [offset]
   * @param {number} [maxBytes]
   */
  readStream(stream, offset = 0, maxBytes = DEFAULT_READ) {
    const number = streamNumber(stream)
    return new StreamReading(
      addon.readStream(this.#handle, number, count('offset', offset), count('maxBytes', maxBytes)),
    )
  }

  /**
   * @param {'stdout' | 'stderr'} stream
   * @returns {string | null}
   */
  spillPath(stream) {
    return addon.spillPath(this.#handle, streamNumber(stream)) ?? null
  }

  async *events() {
    let told = 0
    let seen = 0
    while ((told & QUIESCENT) === 0) {
      const wanted = OUTPUT | (ONCE & ~told)
      this.#watch.want(wanted)
      const total = facts[OUT_TOTAL] + facts[ERR_TOTAL]
      let happened = happenedOnce() & ~told
      // The end of a stream is news too; at the latest, both have ended when it has settled.
      if (total !== seen || (happened & SETTLED) !== 0) happened |= OUTPUT
      if (happened === 0) {
        await held(this.#watch.next(wanted))
        continue
      }
      told |= happened
      seen = total
      for (const [kind, name] of EVENTS) if ((happened & kind) !== 0) yield name
    }
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      const chunk = new OutputChunk(addon.readOutput(this.#handle, true))
      const empty = chunk.bytes.length === 0 && !chunk.lossy
      if (!empty) yield chunk
      if (chunk.end) return
      // A command that never stops writing must not keep the event loop from everything else.
      await (empty ? held(this.#watch.next(OUTPUT)) : setImmediate())
    }
  }

  async [Symbol.asyncDispose]() {
    this.kill()
    const { graceMs } = this.#executor.config
    const timer = later(graceMs + 1000)
    hold()
    try {
      await Promise.race([this.#watch.quiescent(), timer.passed])
    } finally {
      release()
      timer.clear()
    }
  }
}
