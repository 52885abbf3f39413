// The event loop: what keeps it, and that nothing blocks it.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'node:test'

import { anExecutor, held, inAProgram } from './support.mjs'

test('500 background processes run at the same time, and each gives all of its output', async (t) => {
  const executor = anExecutor(t)
  const before = held()
  const processes = Array.from({ length: 500 }, (_, i) =>
    executor.start(`read line; printf '%s\\n' ${i} "$line"; seq 1 200; echo end ${i} >&2`, { input: `input ${i}\n` }),
  )
  const numbers = Array.from({ length: 200 }, (_, i) => `${i + 1}\n`).join('')
  assert.ok(held().threads <= before.threads + 2, 'there is no thread per command')
  const texts = await Promise.all(
    processes.map(async (process) => {
      let text = ''
      for await (const chunk of process) text += chunk.text
      return text
    }),
  )
  texts.forEach((text, i) => {
    const parts = text.split('[stderr]\n')
    assert.equal(parts.length, 2)
    assert.equal(text.replace(`[stderr]\nend ${i}\n`, ''), `${i}\ninput ${i}\n${numbers}`)
  })
  for (const info of await Promise.all(processes.map((process) => process.done))) assert.equal(info.exitCode, 0)
})

test('500 runs under way at the same time settle from one event loop', async (t) => {
  const executor = anExecutor(t)
  const results = await Promise.all(Array.from({ length: 500 }, (_, i) => executor.run(`sleep 0.1; echo ${i}`)))
  results.forEach((result, i) => assert.equal(result.stdout.text, `${i}\n`))
})

test('more news than fit at once are told one part after the other', async (t) => {
  const executor = anExecutor(t)
  const runs = Array.from({ length: 700 }, () => executor.run('true'))
  // Not back in the event loop before there is news of all of them.
  while (executor.stats().ended < runs.length);
  for (const result of await Promise.all(runs)) assert.equal(result.exitCode, 0)
})

test('the event loop goes on while many commands run', async (t) => {
  const executor = anExecutor(t)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const commands = Array.from({ length: 100 }, () => executor.start('sleep 0.5; seq 1 1000'))
  delay.enable()
  await Promise.all(commands.map((process) => process.done))
  delay.disable()
  // Half of the time the loop was free within this; a loop that waits for a command would show its half second.
  assert.ok(delay.percentile(50) < 100e6, `the median delay was ${delay.percentile(50) / 1e6} ms`)
})

test("no thread of Node's pool is taken by commands that run", async (t) => {
  const executor = anExecutor(t)
  // More than the pool has threads: if each took one, the read could never be done before they end.
  const runs = Array.from({ length: 30 }, () => executor.run('sleep 600', { timeout: 60_000 }))
  const order = []
  const ended = Promise.all(runs).then(() => order.push('commands'))
  const shutdowns = []
  await readFile(new URL(import.meta.url)).then(() => order.push('read'))
  shutdowns.push(executor.shutdown())
  await Promise.all([ended, ...shutdowns])
  assert.deepEqual(order, ['read', 'commands'])
})

test('a shutdown does not block the event loop', async (t) => {
  const executor = anExecutor(t, { graceMs: 400 })
  const process = executor.start('trap "" TERM; echo up; while :; do sleep 0.01; done')
  for await (const chunk of process) if (chunk.text.includes('up')) break
  let ticks = 0
  const timer = setInterval(() => ticks++, 5)
  await executor.shutdown()
  clearInterval(timer)
  assert.ok(ticks > 5, `${ticks} ticks`)
  assert.equal(process.info().cause, 'shutdown')
})

test('an executor, idle or with commands that nobody waits for, does not keep a program', async () => {
  const idle = await inAProgram(`
    import { Executor } from 'libdsh'
    const executor = new Executor({ graceMs: 200 })
    await executor.run('true')
    globalThis.process_ = executor.start('sleep 600')
    console.log(globalThis.process_.pid)
  `)
  assert.equal(idle.stderr, '')
  assert.equal(idle.code, 0)
  assert.ok(Number(idle.stdout) > 1)
  const silent = { code: 0, stdout: '', stderr: '' }
  assert.deepEqual(await inAProgram(`import 'libdsh'`), silent)
  assert.deepEqual(await inAProgram(`import { Executor } from 'libdsh'; new Executor().start('sleep 600')`), silent)
})

for (const [what, source] of Object.entries({
  'a run': `executor.run('sleep 0.2').then(() => console.log('waited'))`,
  done: `executor.start('sleep 0.2').done.then(() => console.log('waited'))`,
  quiescent: `executor.start('sleep 0.2').quiescent.then(() => console.log('waited'))`,
  wait: `executor.start('sleep 0.2').wait().then(() => console.log('waited'))`,
  iteration: `void (async () => { for await (const _ of executor.start('sleep 0.2')); console.log('waited') })()`,
  events: `void (async () => { for await (const _ of executor.start('sleep 0.2').events()); console.log('waited') })()`,
  disposal: `executor.start('trap "" TERM; sleep 600')[Symbol.asyncDispose]().then(() => console.log('waited'))`,
  'a shutdown': `executor.start('trap "" TERM; sleep 600'); executor.shutdown().then(() => console.log('waited'))`,
})) {
  test(`who waits for ${what} keeps the program until then`, async () => {
    const program = await inAProgram(`
      import { Executor } from 'libdsh'
      const executor = new Executor({ graceMs: 200 })
      ${source}
    `)
    assert.deepEqual(program, { code: 0, stdout: 'waited\n', stderr: '' })
  })
}

test('who has given up waiting keeps the program no longer', async () => {
  const program = await inAProgram(`
    import { Executor } from 'libdsh'
    const executor = new Executor({ graceMs: 200 })
    await executor.start('sleep 600').wait(50).catch((error) => console.log(error.code))
    for await (const chunk of executor.start('echo x; sleep 600')) break
    for await (const event of executor.start('echo x; sleep 600').events()) break
  `)
  assert.deepEqual(program, { code: 0, stdout: 'DSH_E_TIMED_OUT\n', stderr: '' })
})

test('a program that ends takes its commands along', async (t) => {
  for (const end of ['', 'process.exit(0)', 'process.kill(process.pid, "SIGKILL")']) {
    const { stdout } = await inAProgram(`
      import { Executor } from 'libdsh'
      const executor = new Executor({ graceMs: 100 })
      const command = executor.start('trap "" TERM; setsid sleep 600 & echo $!; wait; sleep 600')
      for await (const chunk of command) {
        console.log(chunk.text.trim())
        break
      }
      ${end}
    `)
    const pid = Number(stdout)
    assert.ok(pid > 1)
    const asked = `for i in $(seq 300); do grep -qs ^State:.[^Z] /proc/${pid}/status || exit 0; sleep 0.1; done; exit 1`
    assert.equal((await anExecutor(t).run(asked)).exitCode, 0, `after ${end || 'the end of the loop'}`)
  }
})
