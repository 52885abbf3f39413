// Plays scenario files through this binding, and prints what happened in the form of the files: the driver that
// tests/scenarios/README.md, at the top of the source, describes.
//
//     node test/scenarios.mjs FILE...
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'

import { DshError, Executor } from 'libdsh'

/** What a result line leaves out: the default timeout. */
const DEFAULT_TIMEOUT = 120_000

/** Names of budgets in the files and here. */
const BUDGETS = {
  cwd: 'cwd',
  shell: 'shell',
  spill_dir: 'spillDir',
  timeout_ms: 'timeoutMs',
  max_timeout_ms: 'maxTimeoutMs',
  max_output_bytes: 'maxOutputBytes',
  max_spill_bytes: 'maxSpillBytes',
  max_total_spill_bytes: 'maxTotalSpillBytes',
  grace_ms: 'graceMs',
  drain_ms: 'drainMs',
  keep: 'keep',
  inherit_env: 'inheritEnv',
  env_allow: 'envAllow',
  env_deny: 'envDeny',
  guard: 'guard',
  keep_spill_files: 'keepSpillFiles',
}

/** Terms of a policy in the files and here. */
const POLICY = {
  mode: 'mode',
  workspace: 'workspace',
  writable: 'writable',
  hidden: 'hidden',
  network: 'network',
  backend: 'backends',
  git_worktree: 'gitWorktree',
}

/** A line that this driver does not know. */
class UnknownLine extends Error {}

const ESCAPES = { n: '\n', t: '\t', r: '\r', '\\': '\\', '"': '"' }

/** The bytes of a value of the files, as a binary string. */
function unescaped(text) {
  const binary = Buffer.from(text).toString('latin1')
  return binary.replace(/\\(?:x([0-9a-fA-F]{2})|(.))/gs, (whole, hex, letter) => {
    if (hex !== undefined) return String.fromCharCode(parseInt(hex, 16))
    if (!(letter in ESCAPES)) throw new UnknownLine(`an unknown escape ${whole}`)
    return ESCAPES[letter]
  })
}

function quoted(bytes) {
  const text = Buffer.from(bytes)
    .toString('latin1')
    .replace(/["\\\x00-\x1f\x7f-\xff]/g, (character) => {
      const known = Object.entries(ESCAPES).find(([, meant]) => meant === character)
      return known ? `\\${known[0]}` : `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
    })
  return `"${text}"`
}

/** One case: its executor, its terms, and what came of its steps. */
class Case {
  #dir = realpathSync(mkdtempSync(join(tmpdir(), 'scenario-')))
  #config = {}
  #terms = {}
  #abort = new AbortController()
  #executor
  #process
  #inputGiven = false

  /** Steps by their word. Each gives the lines that it prints. */
  static STEPS = {
    run: (self) => self.#run(),
    start: (self) => self.#start(),
    until: (self, [stream, ...text]) => self.#until(stream, text.join(' ')),
    wait: (self, [ms]) => self.#wait(ms),
    read: (self) => self.#chunk([self.#process.readOutput()]),
    read_all: (self) => self.#readAll(),
    stream: (self, [stream, offset, capacity]) => self.#stream(stream, Number(offset), Number(capacity)),
    kill: (self) => [self.#process.kill() ? 'was running' : 'was not running'],
    cancel: (self) => self.#cancel(),
    quiescent: (self) => self.#process.quiescent.then(() => []),
    events: (self) => self.#events(),
    resolve: (self) => self.#resolve(),
    configure: (self) => self.#configure(),
    settings: (self, [key]) => self.#settings(key),
    shutdown: (self) => self.#shutdown(),
  }

  // Preparing.

  config(key, value) {
    if (key.startsWith('sandbox.')) return this.#policy(this.#config, key.slice('sandbox.'.length), value)
    const name = BUDGETS[key]
    const text = this.#text(value)
    switch (key) {
      case 'cwd':
      case 'shell':
      case 'spill_dir':
        this.#config[name] = text
        break
      case 'env_allow':
      case 'env_deny':
        this.#config[name] = [...(this.#config[name] ?? []), text]
        break
      case 'keep':
        this.#config[name] = text.replace('_', '-')
        break
      case 'inherit_env':
      case 'guard':
      case 'keep_spill_files':
        this.#config[name] = text === 'on'
        break
      default:
        if (name === undefined) throw new UnknownLine(`an unknown budget ${key}`)
        // In the files, 0 is the default.
        this.#config[name] = Number(text) || null
    }
  }

  set(key, value) {
    if (key.startsWith('sandbox.')) return this.#policy(this.#terms, key.slice('sandbox.'.length), value)
    switch (key) {
      case 'command':
      case 'input':
        this.#terms[key] = this.#bytes(value)
        break
      case 'workdir':
        this.#terms.cwd = this.#text(value)
        break
      case 'timeout_ms':
        this.#terms.timeout = Number(value) || undefined
        break
      case 'stdout_max_bytes':
        this.#terms.stdoutMaxBytes = Number(value) || undefined
        break
      case 'tag':
        this.#terms.tag = Number(value)
        break
      case 'env':
      case 'dsh_env': {
        const [, name, content] = /^([^=]*)(?:=(.*))?$/s.exec(this.#text(value))
        const option = key === 'env' ? 'env' : 'dshEnv'
        this.#terms[option] = { ...this.#terms[option], [name]: content }
        break
      }
      case 'merge_stderr':
        this.#terms.mergeStderr = value === 'on'
        break
      case 'survivors':
        this.#terms.survivors = value
        break
      case 'cancel':
        this.#terms.signal = value === 'on' ? this.#abort.signal : undefined
        break
      default:
        throw new UnknownLine(`an unknown term ${key}`)
    }
  }

  fill(key, count, text) {
    if (key !== 'command' && key !== 'input') throw new UnknownLine(`an unknown term ${key}`)
    this.#terms[key] = Buffer.from(this.#bytes(text).toString('latin1').repeat(Number(count)), 'latin1')
  }

  file(name, mode, text) {
    const path = join(this.#dir, name)
    if (name.endsWith('/')) mkdirSync(path, { mode: parseInt(mode, 8) })
    else writeFileSync(path, this.#bytes(text), { mode: parseInt(mode, 8) })
  }

  #policy(target, key, value) {
    const name = POLICY[key]
    const text = this.#text(value)
    const policy = (target.sandbox ??= {})
    if (name === undefined) throw new UnknownLine(`an unknown term sandbox.${key}`)
    if (key === 'git_worktree') policy[name] = text === 'on'
    else if (['writable', 'hidden', 'backend'].includes(key)) policy[name] = [...(policy[name] ?? []), text]
    else policy[name] = text
  }

  /** Takes a step and gives its lines. */
  async step(word, rest) {
    try {
      this.#executor ??= new Executor(withoutNulls(this.#config))
      return (await Case.STEPS[word](this, rest)).map((line) => line.replaceAll(this.#dir, '@DIR@'))
    } catch (error) {
      if (!(error instanceof DshError)) throw error
      const errno = error.errno === 0 ? '' : ` errno=${error.errno}`
      const line = `error ${error.code.replace('DSH_E_', '')} stage=${error.stage}${errno} ${quoted(error.message)}`
      return [line.replaceAll(this.#dir, '@DIR@')]
    }
  }

  async end() {
    await this.#executor?.shutdown()
    rmSync(this.#dir, { recursive: true, force: true })
  }

  // Steps.

  async #run() {
    const [command, options] = this.#request()
    return this.#result(await this.#executor.run(command, options))
  }

  #start() {
    const [command, options] = this.#request()
    this.#process = this.#executor.start(command, options)
    return ['started']
  }

  async #until(stream, text) {
    const wanted = this.#bytes(text)
    let seen = Buffer.alloc(0)
    let offset = 0
    const events = this.#process.events()
    for (;;) {
      const reading = this.#process.readStream(stream, offset)
      offset = reading.next
      seen = Buffer.concat([seen, reading.bytes])
      if (seen.includes(wanted)) break
      if (reading.end) return ['ended']
      if (reading.bytes.length === 0) await events.next()
    }
    return ['seen']
  }

  async #wait(ms) {
    try {
      return this.#processLines(await this.#process.wait(ms === undefined ? Infinity : Number(ms)))
    } catch (error) {
      if (error.code === 'DSH_E_TIMED_OUT') return ['timed out']
      throw error
    }
  }

  async #readAll() {
    await this.#process.done
    const chunks = []
    do chunks.push(this.#process.readOutput())
    while (!chunks.at(-1).end)
    return this.#chunk(chunks)
  }

  #stream(stream, offset, capacity) {
    const reading = this.#process.readStream(stream, offset, capacity)
    const missing = reading.missing === 0 ? '' : ` missing ${reading.missing}`
    return [
      `start ${reading.start} next ${reading.next}${missing}`,
      ...when(reading.end, 'end'),
      `text ${quoted(reading.bytes)}`,
    ]
  }

  #cancel() {
    this.#abort.abort()
    return []
  }

  async #events() {
    const seen = new Set()
    for await (const event of this.#process.events()) seen.add(event)
    const kinds = ['output', 'exit', 'settled', 'quiescent'].filter((kind) => seen.has(kind))
    return [`events ${kinds.join(' ').toUpperCase()}`]
  }

  #resolve() {
    const [command, options] = this.#request()
    const spec = this.#executor.resolve(command, options)
    return [
      `command ${quoted(Buffer.from(spec.command).subarray(0, 60))}`,
      `workdir ${quoted(spec.cwd)}`,
      `timeout ${spec.timeoutMs}`,
      `stdout max ${spec.stdoutMaxBytes}`,
      `max output ${spec.maxOutputBytes}`,
      `grace ${spec.graceMs}`,
      `drain ${spec.drainMs}`,
      `survivors ${spec.survivors}`,
      ...when(spec.sandboxMode !== undefined, `sandbox ${spec.sandboxMode}`),
      ...when(spec.mergeStderr, 'merge_stderr'),
      ...when(spec.tag !== 0, `tag ${spec.tag}`),
      ...scrubbedLines(spec.scrubbed),
    ]
  }

  #configure() {
    this.#executor.configure(this.#config)
    return ['configured']
  }

  #settings(key) {
    if (key === 'sandbox.mode') return [`${key} ${this.#executor.config.sandbox?.mode ?? 'none'}`]
    const value = this.#executor.config[BUDGETS[key]]
    if (!(key in BUDGETS)) throw new UnknownLine(`an unknown budget ${key}`)
    if (typeof value === 'boolean') return [`${key} ${value ? 'on' : 'off'}`]
    return [`${key} ${String(value ?? '').replace('-', key === 'keep' ? '_' : '-')}`]
  }

  async #shutdown() {
    await this.#executor.shutdown()
    return []
  }

  // What they print.

  #result(result) {
    return [
      ...exitLines(result, false),
      ...stopLines(result),
      ...when(result.heldBy.length > 0, `held by ${result.heldBy.length}`),
      ...when(result.survivors.length > 0, `survivors ${result.survivors.length}`),
      ...sandboxLines(result.sandbox, true),
      ...capturedLines('stdout', result.stdout),
      ...capturedLines('stderr', result.stderr),
      ...when(result.timeoutMs !== DEFAULT_TIMEOUT, `timeout ${result.timeoutMs}`),
      ...when(this.#inputGiven, `input ${result.inputWritten}`),
      ...scrubbedLines(result.scrubbed),
    ]
  }

  #processLines(info) {
    return [
      `status ${info.status}`,
      ...exitLines(info, true),
      ...stopLines(info),
      ...when(info.heldBy > 0, `held by ${info.heldBy}`),
      ...when(info.survivors > 0, `survivors ${info.survivors}`),
      ...sandboxLines(info.sandbox, info.status !== 'running'),
      ...when(info.stdoutTotal > 0, `out ${info.stdoutTotal}`),
      ...when(info.stderrTotal > 0, `err ${info.stderrTotal}`),
      ...when(this.#inputGiven, `input ${info.inputWritten}`),
      ...when(info.tag !== 0, `tag ${info.tag}`),
    ]
  }

  #chunk(chunks) {
    const sum = (name) => chunks.reduce((total, chunk) => total + chunk[name], 0)
    const missing = [sum('stdoutMissing'), sum('stderrMissing')]
    const last = chunks.at(-1)
    return [
      ...when(missing.some((count) => count > 0), `missing ${missing.join(' ')}`),
      ...when(last.stdoutSpillPath !== null, 'spill out'),
      ...when(last.stderrSpillPath !== null, 'spill err'),
      ...when(last.end, 'end'),
      `text ${quoted(Buffer.concat(chunks.map((chunk) => chunk.bytes)))}`,
    ]
  }

  #request() {
    const { command = '', ...options } = this.#terms
    this.#terms = {}
    this.#inputGiven = options.input !== undefined
    return [command, options]
  }

  #bytes(value) {
    return Buffer.from(unescaped(value).replaceAll('@DIR@', this.#dir), 'latin1')
  }

  #text(value) {
    return this.#bytes(value).toString()
  }
}

function withoutNulls(config) {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null))
}

function when(said, line) {
  return said ? [line] : []
}

function exitLines({ exit, exitCode, signal }, always) {
  if (exit === 'code') return when(always || exitCode !== 0, `exit code ${exitCode}`)
  if (exit === 'signal') return [`exit signal ${constants.signals[signal]}`]
  return when(exit === 'unknown', 'exit unknown')
}

function stopLines({ timedOut, aborted, cause, stoppedBy, stopStage, pipesHeld }) {
  return [
    ...when(timedOut, 'timed out'),
    ...when(aborted, 'aborted'),
    ...when(cause !== null, `cause ${cause}`),
    ...when(stoppedBy !== null, `stopped by ${stoppedBy}`),
    ...when(stopStage !== null, `stage ${stopStage}`),
    ...when(pipesHeld, 'pipes held'),
  ]
}

function sandboxLines(facts, settled) {
  if (facts === undefined) return []
  const { mode, backend, enforcement, network, missing, denied, deniedPath, deniedRule, runnerFailed } = facts
  const lines = [
    `sandbox ${mode} ${backend ?? 'none'} ${enforcement ?? 'none'} ${network}`,
    ...when(missing.length > 0, `missing ${missing.join(' ')}`),
  ]
  if (runnerFailed !== null) return [...lines, 'runner failed']
  if (!settled) return lines
  return [
    ...lines,
    `denied ${denied === null ? 'unknown' : denied ? 'yes' : 'no'}`,
    ...when(denied, `denied path ${quoted(deniedPath ?? '')} rule ${quoted(deniedRule ?? '')}`),
  ]
}

function capturedLines(name, { bytes, total, omitted, omittedAt, spillPath, spillError }) {
  if (total === 0) return []
  const parts = [`total=${total}`]
  if (omitted !== 0) parts.push(`omitted=${omitted}`)
  if (omittedAt !== 0) parts.push(`at=${omittedAt}`)
  if (spillPath !== null) parts.push(`spill=${isWhole(spillPath, total) ? 'whole' : 'broken'}`)
  else if (spillError !== null) parts.push('spill=failed')
  return [`${name} ${parts.join(' ')} ${quoted(bytes)}`]
}

function isWhole(path, total) {
  const { size, mode } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return size === total && (mode & 0o777) === 0o600
}

function scrubbedLines(names) {
  const ours = names.filter((name) => name.startsWith('SCENARIO_')).sort()
  return when(ours.length > 0, `scrubbed ${ours.join(' ')}`)
}

async function play(file) {
  let current
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#') || line === '=' || line.startsWith('= ')) continue
    const [word, ...words] = line.split(' ')
    const tail = (index) => words.slice(index).join(' ')
    try {
      if (word === 'case') {
        await current?.end()
        current = new Case()
        console.log(line)
      } else if (word === 'config') current.config(words[0], tail(1))
      else if (word === 'set') current.set(words[0], tail(1))
      else if (word === 'fill') current.fill(words[0], words[1], tail(2))
      else if (word === 'file') current.file(words[0], words[1], tail(2))
      else if (word in Case.STEPS) {
        console.log(line)
        for (const printed of await current.step(word, words)) console.log(`= ${printed}`)
      } else throw new UnknownLine('an unknown line')
    } catch (error) {
      if (!(error instanceof UnknownLine)) throw error
      console.error(`${file}: ${error.message}: ${line}`)
      process.exit(2)
    }
  }
  await current?.end()
}

for (const file of process.argv.slice(2)) await play(file)
