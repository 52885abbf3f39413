// Node's ways of running commands, as a peer of the benchmark: peer.mjs VARIANT [--ballast MIB]
//
// Requests come as lines on stdin, and each is answered with one line on stdout; benches/README.md has the protocol.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'

const BASH = '/bin/bash'
const KEPT = 64_000

// How each variant runs commands -------------------------------------------------------------------------------------
//
// A variant is a function that gives
//
//   version              what is measured
//   run(command, mode)   a promise of { text, bytes, files }: the kept stdout, its whole length, and what was spilled to
//   tidy()               after all runs of a request, if there is something to be tidied up
//   start(command)       a command in the background: { pid, read(heard), kill(), ended }
//   end()                a promise that resolves when nothing of it is there any more
//   events               whether read() is told of output, or has to look for it from time to time
//   spills               whether it knows the mode `spill`
//
// read(heard) calls `heard` with each piece of stdout until it gives true, or until stdout has ended; its promise
// resolves then. kill() sends SIGTERM to the group, and `ended` is a promise of the end.

/** The end of a stream: whole chunks, until there are enough without the first. */
class Tail {
  chunks = []
  kept = 0
  total = 0

  push(chunk) {
    this.chunks.push(chunk)
    this.kept += chunk.length
    this.total += chunk.length
    while (this.kept - this.chunks[0].length >= KEPT) this.kept -= this.chunks.shift().length
  }

  get text() {
    return Buffer.concat(this.chunks).subarray(-KEPT).toString()
  }
}

/**
 * Processes of Node's own kind, however they were created: `create` gives a ChildProcess and a promise of its end.
 */
function nodeProcesses(version, create) {
  const alive = new Set()
  process.on('exit', () => {
    for (const child of alive) signal(child, 'SIGKILL')
  })

  function signal(child, name) {
    // Once it has been waited for, its number may be somebody else's.
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, name)
  }

  function begin(command) {
    const { child, ended } = create(command)
    if (child.pid === undefined) {
      ended.catch(() => {})
      throw new Error('no process could be created')
    }
    alive.add(child)
    const stdout = new Tail()
    const stderr = new Tail()
    child.stdout.on('data', (chunk) => stdout.push(chunk))
    child.stderr.on('data', (chunk) => stderr.push(chunk))
    return { child, stdout, stderr, ended: ended.finally(() => alive.delete(child)) }
  }

  return {
    version,
    events: true,
    async run(command) {
      const { stdout, stderr, ended } = begin(command)
      await ended
      return { text: stdout.text + stderr.text, bytes: stdout.total, files: [] }
    },
    start(command) {
      const { child, stdout, ended } = begin(command)
      // Nobody is left to be told when the peer is on its way out.
      ended.catch(() => {})
      return {
        pid: child.pid,
        ended,
        kill: () => signal(child, 'SIGTERM'),
        read(heard) {
          return new Promise((resolve) => {
            if (stdout.total > 0 && heard(Buffer.from(stdout.text))) return resolve()
            const listen = (chunk) => {
              if (!heard(chunk)) return
              child.stdout.off('data', listen)
              resolve()
            }
            child.stdout.on('data', listen)
            if (child.stdout.closed) resolve()
            child.stdout.once('close', resolve)
          })
        },
      }
    },
    async end() {},
  }
}

function childProcess() {
  return nodeProcesses('child_process', (command) => {
    const child = spawn(BASH, ['-c', command], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    const ended = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    return { child, ended }
  })
}

/** With `buffer: false`, since its bound on what it buffers, `maxBuffer`, keeps the beginning and ends the command. */
async function execaProcess() {
  const { execa } = await import('execa')
  const options = { detached: true, stdin: 'ignore', buffer: false, reject: false }
  return nodeProcesses(`execa ${versionOf('execa')}`, (command) => {
    const child = execa(BASH, ['-c', command], options)
    return { child, ended: child }
  })
}

/** The executor of the DeepSeek Harness over its subprocess service, as a composition has them. */
async function reference() {
  // It leaves its directory for spill files behind.
  const place = mkdtempSync(join(tmpdir(), 'dsh-bench-'))
  process.on('exit', () => rmSync(place, { recursive: true, force: true }))
  process.env.TMPDIR = place

  const { Context } = await import('@deepseek-ai/cordis')
  const { default: LocalBashExecutor } = await import('@deepseek-ai/dsh-bash-local')
  const { default: LocalSubprocessRuntime } = await import('@deepseek-ai/dsh-subprocess-local')

  /** Its results tell neither the pid nor how long the output was: the handle below has both. */
  let latest
  class SeenSubprocessRuntime extends LocalSubprocessRuntime {
    spawn(spec) {
      return (latest = super.spawn(spec))
    }
  }

  async function compose(config) {
    const ctx = new Context()
    await ctx.plugin(SeenSubprocessRuntime)
    await ctx.plugin(LocalBashExecutor, config)
    return { shell: ctx.get('shell'), end: () => ctx.fiber.dispose() }
  }

  // Output that is longer than this is not written to disk, from its first byte on.
  const keeping = await compose({ maxSpillBytes: 1 })
  const spilling = await compose({})

  return {
    version: `@deepseek-ai/dsh-bash-local ${versionOf('@deepseek-ai/dsh-bash-local')}`,
    events: false,
    spills: true,
    async run(command, mode) {
      const { shell } = mode === 'spill' ? spilling : keeping
      const running = shell.run(shell.resolve({ command }))
      // The process has been created by the time the call returns, so this is its handle.
      const { collected } = latest
      const { stdout, stderr } = await running
      const files = [stdout.spillPath, stderr.spillPath].filter(Boolean)
      return { text: stdout.text + stderr.text, bytes: collected.stdout.total, files }
    },
    start(command) {
      const { shell } = keeping
      const handle = shell.start(shell.resolve({ command }))
      const { pid } = latest
      return {
        pid,
        ended: handle.done,
        kill: () => handle.kill(),
        // There is nothing to be told by.
        async read(heard) {
          for (;;) {
            const running = handle.status === 'running'
            const { delta } = handle.readOutput()
            if ((delta !== '' && heard(Buffer.from(delta))) || !running) return
            await pause(5)
          }
        },
      }
    },
    async end() {
      await keeping.end()
      await spilling.end()
    },
  }
}

/** This library, through its binding. */
async function dsh() {
  const { Executor, version } = await import('libdsh')
  // Output that is longer than this is not written to disk, from its first byte on.
  const keeping = new Executor({ shell: BASH, maxSpillBytes: 1 })
  let spilling

  return {
    version: `libdsh ${version}`,
    events: true,
    spills: true,
    async run(command, mode) {
      const executor = mode === 'spill' ? (spilling ??= new Executor({ shell: BASH })) : keeping
      const { stdout, stderr } = await executor.run(command)
      const files = [stdout.spillPath, stderr.spillPath].filter(Boolean)
      return { text: stdout.text + stderr.text, bytes: stdout.total, files }
    },
    start(command) {
      const running = keeping.start(command)
      return {
        pid: running.pid,
        get ended() {
          return running.done
        },
        kill: () => running.kill(),
        async read(heard) {
          for await (const { bytes } of running) if (heard(bytes)) return
        },
      }
    },
    async tidy() {
      await spilling?.shutdown()
      spilling = undefined
    },
    end: () => keeping.shutdown(),
  }
}

const variants = { child_process: childProcess, execa: execaProcess, reference, dsh }

// What is asked of them -----------------------------------------------------------------------------------------------

/** Microseconds on a clock that only goes forward. */
const now = () => performance.now() * 1000

/** Microseconds of this process on all processors. */
function cpu() {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Fields of /proc/self/status, as numbers. */
function status(...names) {
  const text = readFileSync('/proc/self/status', 'latin1')
  return names.map((name) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(text)[1]))
}

function versionOf(name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version
}

const SLEEPER = 'echo r; exec sleep 300'
const QUIET = 'exec sleep 300'
const CHATTERER = 'while :; do echo chatter; done'
const TELLING_TIME = 'sleep 0.005; echo $EPOCHREALTIME'

/** A read from a pipe that nothing ever comes from is a pause that costs no process. */
const lines = (count) =>
  `exec 9<> <(:); for ((i = 0; i < ${count}; i++)); do echo line $i; read -t 0.001 -u 9; done; true`

/** For who wants to hear one piece of output only. */
const once = () => true

/** Until the shell has become what it is to be. */
async function becomesSleep({ pid }) {
  while (readFileSync(`/proc/${pid}/comm`, 'latin1') !== 'sleep\n') await pause(1)
}

/** Ends all of them, and waits for that; also when something has gone wrong between. */
async function endAll(started) {
  for (const command of started) command.kill()
  for (const command of started) await command.ended
}

async function run(variant, [count, mode, ...words]) {
  const command = words.join('\t')
  if (mode === 'spill' && !variant.spills) return unsupported
  const wall = []
  let bytes = 0
  const before = cpu()
  for (let i = 0; i < Number(count); i++) {
    const since = now()
    const result = await variant.run(command, mode)
    wall.push(now() - since)
    bytes = result.bytes
    for (const file of result.files) rmSync(file)
  }
  const answer = { wall_us: wall, cpu_us: cpu() - before, bytes }
  await variant.tidy?.()
  return answer
}

async function parallel(variant, [callers, count, ...words]) {
  const command = words.join('\t')
  let left = Number(count)
  const caller = async () => {
    while (left-- > 0) await variant.run(command, 'keep')
  }
  const before = cpu()
  const since = now()
  await Promise.all(Array.from({ length: Number(callers) }, caller))
  return { wall_us: now() - since, cpu_us: cpu() - before }
}

/**
 * Node has raised the limit of descriptors to the hard one when it started. Without enough of them, some variants would
 * end with an exception that nobody can catch.
 */
function needDescriptors(processes) {
  const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))
  if (2 * processes + 64 > Number(limit)) throw new Error(`${limit} descriptors are not enough`)
}

async function many(variant, [count]) {
  needDescriptors(Number(count))
  const started = []
  try {
    const [rssBefore] = status('VmRSS')
    const since = now()
    const startCpu = cpu()
    for (let i = 0; i < Number(count); i++) started.push(variant.start(SLEEPER))
    for (const command of started) await command.read(once)
    const answer = { ready_us: now() - since, start_cpu_us: cpu() - startCpu }
    const [rss, threads] = status('VmRSS', 'Threads')
    // Not the one by which the directory is read.
    const fds = readdirSync('/proc/self/fd').length - 1
    await pause(200)
    const idle = cpu()
    await pause(1000)
    Object.assign(answer, { rss_kib: Math.max(0, rss - rssBefore), threads, fds, idle_us: cpu() - idle })
    const killCpu = cpu()
    const killed = now()
    await endAll(started)
    return { ...answer, kill_us: now() - killed, kill_cpu_us: cpu() - killCpu }
  } finally {
    await endAll(started)
  }
}

async function kill(variant, [count]) {
  const wall = []
  for (let i = 0; i < Number(count); i++) {
    const command = variant.start(SLEEPER)
    try {
      await command.read(once)
      await becomesSleep(command)
      const since = now()
      command.kill()
      await command.ended
      wall.push(now() - since)
    } finally {
      await endAll([command])
    }
  }
  return { wall_us: wall }
}

/**
 * What has to be added to `now` for the microseconds since 1970, which Node has in milliseconds only: it is seen when
 * they change. The largest difference is that of the change that was seen soonest.
 */
function epoch() {
  let largest = -Infinity
  for (let i = 0; i < 5; i++) {
    const last = Date.now()
    let next
    while ((next = Date.now()) === last);
    largest = Math.max(largest, next * 1000 - now())
  }
  return largest
}

async function firstByte(variant, [count, chatty]) {
  if (!variant.events) return unsupported
  needDescriptors(Number(chatty))
  const wall = []
  const started = []
  try {
    for (let i = 0; i < Number(chatty); i++) started.push(variant.start(CHATTERER))
    await pause(100) // until they chatter
    const offset = epoch()
    for (let i = 0; i < Number(count); i++) {
      const command = variant.start(TELLING_TIME)
      started.push(command)
      await command.read((bytes) => {
        const read = now() + offset
        // Six digits follow the decimal point, which is a comma in some languages.
        wall.push(Math.max(0, read - Number(bytes.toString().replace(/\D/g, ''))))
        return true
      })
      await command.ended
      started.pop()
    }
  } finally {
    await endAll(started)
  }
  return { wall_us: wall }
}

async function wakeup(variant, [pipes, count]) {
  if (!variant.events) return unsupported
  const quiet = Number(pipes) >> 1
  needDescriptors(quiet)
  const started = []
  try {
    for (let i = 0; i < quiet; i++) started.push(variant.start(QUIET))
    for (const command of started) await becomesSleep(command)
    await pause(200)
    let wakeups = 0
    const before = cpu()
    const command = variant.start(lines(count))
    started.push(command)
    await command.read(() => {
      wakeups++
      return false
    })
    await command.ended
    return { cpu_us: cpu() - before, wakeups }
  } finally {
    await endAll(started)
  }
}

const unsupported = Symbol('unsupported')
const requests = { run, parallel, many, kill, first_byte: firstByte, wakeup }

// The conversation ----------------------------------------------------------------------------------------------------

function shown(answer) {
  if (answer === unsupported) return 'unsupported'
  const integers = (value) => (Array.isArray(value) ? value.map(Math.round).join(',') : Math.round(value))
  return Object.entries(answer)
    .map(([key, value]) => `${key}=${integers(value)}`)
    .join('\t')
}

async function answerTo(variant, line) {
  const [name, ...fields] = line.split('\t')
  try {
    return shown(Object.hasOwn(requests, name) ? await requests[name](variant, fields) : unsupported)
  } catch (error) {
    return `error\t${String(error?.message ?? error).replace(/\s+/g, ' ')}`
  }
}

const say = (line) => process.stdout.write(`${line}\n`)

const [name, option, mebibytes] = process.argv.slice(2)
if (!Object.hasOwn(variants, name) || (option !== undefined && option !== '--ballast')) {
  console.error(`usage: peer ${Object.keys(variants).join('|')} [--ballast MIB]`)
  process.exit(2)
}
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1))

// Filled with something, since the system gives no memory for what is only zeros. A buffer may not have more than 4 GiB.
globalThis.ballast = Array.from({ length: Number(mebibytes ?? 0) }, () => Buffer.alloc(1 << 20, 1))

const variant = await variants[name]()
for (let i = 0; i < 10; i++) await variant.run('true', 'keep')
say(`ready\tversion=Node ${process.versions.node}, ${variant.version}`)
for await (const line of createInterface({ input: process.stdin })) say(await answerTo(variant, line))
await variant.end()
process.exit()
