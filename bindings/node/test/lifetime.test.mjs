// What is freed when, by whom remembers and by whom forgets.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

import { Executor } from 'libdsh'

import { aFolder, anExecutor, collected, held, isAlive, until } from './support.mjs'

test('a thousand runs leave no handle, descriptor or thread behind', async (t) => {
  const executor = anExecutor(t)
  const once = async () => {
    const controller = new AbortController()
    const process = executor.start('echo x', { signal: controller.signal })
    const [result] = await Promise.all([
      executor.run('echo y; echo z >&2', { input: 'in', signal: controller.signal }),
      process.quiescent,
    ])
    assert.equal(result.stdout.text, 'y\n')
    process.readOutput()
  }
  for (let i = 0; i < 10; i++) await once()
  const before = held()
  for (let i = 0; i < 50; i++) await Promise.all(Array.from({ length: 10 }, once))
  await until(() => executor.stats().live === 0, 'nothing alive')
  assert.equal(executor.stats().ended, 2 * 510)
  await collected(
    () => held().threads <= before.threads && held().descriptors <= before.descriptors,
    `threads and descriptors as before: ${JSON.stringify(before)}`,
  )
})

test('results that are let go take their memory along', async (t) => {
  const executor = anExecutor(t, { maxOutputBytes: 1 << 20 })
  const once = () => executor.run('head -c 1000000 /dev/zero')
  for (let i = 0; i < 5; i++) await once()
  await collected(() => true)
  const before = process.memoryUsage().rss
  for (let i = 0; i < 60; i++) await once()
  // 60 MB were given; a leak would keep them.
  await collected(() => process.memoryUsage().rss < before + 30e6, 'memory as before')
})

test('handles of processes are collected when they are forgotten', async (t) => {
  const executor = anExecutor(t)
  let live = 0
  const registry = new FinalizationRegistry(() => live--)
  for (let i = 0; i < 50; i++) {
    live++
    registry.register(executor.start('sleep 600'), undefined)
  }
  await collected(() => live === 0, 'all handles collected')
  assert.equal(executor.stats().live, 50)
})

test('a handle that somebody waits on is not collected before it has settled', async (t) => {
  const executor = anExecutor(t)
  const settled = []
  for (let i = 0; i < 20; i++) executor.start(`sleep 0.3; exit ${i}`).done.then((info) => settled.push(info.exitCode))
  await collected(() => settled.length === 20, 'all settled')
})

test('a handle with a signal is kept until it has settled, so that the signal still ends it', async (t) => {
  const executor = anExecutor(t)
  const controller = new AbortController()
  const pid = executor.start('sleep 600', { signal: controller.signal }).pid
  await collected(() => true)
  controller.abort()
  await until(() => !isAlive(pid), `the end of ${pid}`)
})

test('an executor that is forgotten is freed once nothing of it is alive', async () => {
  const before = held()
  for (let i = 0; i < 20; i++) assert.equal((await new Executor().run('echo x')).exitCode, 0)
  await collected(
    () => held().threads <= before.threads && held().descriptors <= before.descriptors,
    `threads and descriptors as before: ${JSON.stringify(before)}`,
  )
})

test('to forget an executor ends no command', async (t) => {
  const before = held()
  let gone = false
  const registry = new FinalizationRegistry(() => (gone = true))
  const file = `${aFolder(t)}/file`
  const start = () => {
    const executor = new Executor()
    registry.register(executor)
    return executor.start(`sleep 0.5; echo survived >${file}`).pid
  }
  start()
  await collected(() => gone, 'the executor collected')
  await until(() => existsSync(file) && readFileSync(file, 'utf8') === 'survived\n', 'the file')
  // The next thing that happens in this program finds it with nothing alive.
  await collected(async () => {
    await new Executor().shutdown()
    return held().threads <= before.threads + 2
  }, 'its threads gone')
})

test('a run of a forgotten executor is finished', async () => {
  const result = new Executor().run('sleep 0.3; echo done')
  let text
  result.then((result) => (text = result.stdout.text))
  await collected(() => text !== undefined, 'the result')
  assert.equal(text, 'done\n')
})

test('a process keeps its executor', async () => {
  const process = new Executor().start('sleep 0.3; echo done')
  let ended = false
  process.done.then(() => (ended = true))
  await collected(() => ended, 'the end')
  assert.equal(process.readOutput().text, 'done\n')
})

test('a shutdown while commands run settles all of them', async (t) => {
  const executor = anExecutor(t, { graceMs: 100 })
  const runs = Array.from({ length: 10 }, () => executor.run('trap "" TERM; sleep 600; sleep 600'))
  const processes = Array.from({ length: 10 }, () => executor.start('sleep 600'))
  const [results, infos] = await Promise.all([
    Promise.all(runs),
    Promise.all(processes.map((process) => process.done)),
    executor.shutdown(),
    executor.shutdown(),
  ])
  for (const { cause, aborted } of [...results, ...infos]) assert.deepEqual([cause, aborted], ['shutdown', true])
  await assert.rejects(executor.run('true'), { code: 'DSH_E_SHUTDOWN' })
  assert.throws(() => executor.start('true'), { code: 'DSH_E_SHUTDOWN' })
  await executor.shutdown()
  assert.deepEqual([executor.stats().live, executor.stats().threads], [0, 0])
  assert.equal(processes[0].readOutput().end, true)
})

test('a shutdown that takes longer than it may is an error, and may be repeated', async (t) => {
  const executor = anExecutor(t, { graceMs: 1500 })
  const process = executor.start('trap "" TERM; echo up; while :; do sleep 0.05; done')
  for await (const chunk of process) if (chunk.text.includes('up')) break
  await assert.rejects(executor.shutdown(50), { name: 'DshError', code: 'DSH_E_TIMED_OUT' })
  await executor.shutdown(30_000)
  assert.equal(process.status, 'killed')
  await assert.rejects(executor.shutdown(0), { code: 'DSH_E_INVALID', message: /^timeoutMs / })
})

test('asyncDispose of an executor shuts it down', async () => {
  const executor = new Executor()
  const process = executor.start('sleep 600')
  await executor[Symbol.asyncDispose]()
  assert.equal(process.status, 'killed')
})
