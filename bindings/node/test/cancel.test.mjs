import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { existsSync } from 'node:fs'
import { test } from 'node:test'

import { DshError } from 'libdsh'

import { aFolder, anExecutor, isAlive } from './support.mjs'

test('a signal that is aborted already is an error, and nothing is started', async (t) => {
  const folder = aFolder(t)
  const executor = anExecutor(t)
  const reason = new Error('no longer wanted')
  const signal = AbortSignal.abort(reason)
  const error = await executor.run(`touch ${folder}/file`, { signal }).catch((error) => error)
  assert.ok(error instanceof DshError)
  assert.equal(error.code, 'DSH_E_CANCELLED')
  assert.equal(error.cause, reason)
  assert.throws(() => executor.start(`touch ${folder}/file`, { signal }), { code: 'DSH_E_CANCELLED', cause: reason })
  assert.deepEqual([executor.stats().live, executor.stats().ended], [0, 0])
  assert.equal(existsSync(`${folder}/file`), false)
})

test('an abort while the command runs is a result', async (t) => {
  const controller = new AbortController()
  const running = anExecutor(t).run('echo before; sleep 600', { signal: controller.signal })
  controller.abort()
  const result = await running
  assert.deepEqual([result.aborted, result.timedOut, result.cause], [true, false, 'cancel'])
  assert.equal(result.signal, 'SIGTERM')
})

test('an abort ends the whole tree before the result is there', async (t) => {
  const controller = new AbortController()
  const executor = anExecutor(t, { graceMs: 100 })
  const process = executor.start('trap "" TERM; (trap "" TERM; echo $BASHPID; exec sleep 600) & wait; sleep 600', {
    signal: controller.signal,
  })
  let pid
  for await (const chunk of process) {
    pid = Number(chunk.text)
    break
  }
  controller.abort()
  const info = await process.done
  assert.deepEqual([info.status, info.cause], ['killed', 'cancel'])
  await process.quiescent
  assert.equal(isAlive(pid), false)
})

test('an abort after the end changes nothing, and the signal has no listener any more', async (t) => {
  const controller = new AbortController()
  const { signal } = controller
  const executor = anExecutor(t)
  const process = executor.start('true', { signal })
  const running = executor.run('true', { signal })
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  assert.equal((await running).aborted, false)
  await process.done
  await new Promise(setImmediate)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  controller.abort()
  assert.equal(process.status, 'completed')
})

test('a signal serves again after it had no command', async (t) => {
  const controller = new AbortController()
  const { signal } = controller
  const executor = anExecutor(t)
  assert.equal((await executor.run('true', { signal })).exitCode, 0)
  const running = executor.run('sleep 600', { signal })
  controller.abort('enough')
  assert.equal((await running).cause, 'cancel')
  await assert.rejects(executor.run('true', { signal }), { code: 'DSH_E_CANCELLED', cause: 'enough' })
})

test('a signal that was aborted while it had no command is still aborted', async (t) => {
  const controller = new AbortController()
  const { signal } = controller
  const executor = anExecutor(t)
  await executor.run('true', { signal })
  controller.abort()
  await assert.rejects(executor.run('true', { signal }), { code: 'DSH_E_CANCELLED' })
})

test('a refused request leaves no listener', async (t) => {
  const { signal } = new AbortController()
  await assert.rejects(anExecutor(t).run('true', { signal, cwd: '/no/such/place' }), { code: 'DSH_E_WORKDIR_MISSING' })
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

test('AbortSignal.timeout and AbortSignal.any work', async (t) => {
  const executor = anExecutor(t)
  const signals = [AbortSignal.timeout(50), AbortSignal.any([new AbortController().signal, AbortSignal.timeout(50)])]
  const results = await Promise.all(signals.map((signal) => executor.run('sleep 600', { signal })))
  assert.deepEqual(results.map((result) => result.cause), ['cancel', 'cancel'])
})

test('one signal ends any number of commands, with one listener', async (t) => {
  const controller = new AbortController()
  const { signal } = controller
  const executor = anExecutor(t)
  const runs = Array.from({ length: 30 }, () => executor.run('sleep 600', { signal }))
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  controller.abort()
  for (const result of await Promise.all(runs)) assert.equal(result.cause, 'cancel')
})

test('a storm of cancellations at arbitrary moments leaves nothing behind', async (t) => {
  const executor = anExecutor(t)
  let seed = 12345
  const random = (limit) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % limit
  const outcomes = await Promise.all(
    Array.from({ length: 300 }, async (_, i) => {
      const controller = new AbortController()
      const { signal } = controller
      await new Promise((resolve) => setTimeout(resolve, random(400)))
      setTimeout(() => controller.abort(), random(60))
      // Some are over before they are cancelled, some would never be.
      const last = i % 4 === 0 ? '600' : `0.0${random(9)}`
      const command = `echo ${i}; sleep 0.0${random(9)}; (sleep ${last}; echo late) & wait`
      if (i % 3 === 0) {
        const process = executor.start(command, { signal })
        if (i % 2 === 0) setTimeout(() => process.kill(), random(60))
        await process.done
        await process.quiescent
        return process.info().cause
      }
      return (await executor.run(command, { signal })).cause
    }),
  )
  for (const cause of outcomes) assert.ok([null, 'cancel', 'kill'].includes(cause), String(cause))
  assert.ok(outcomes.includes('cancel'))
  await executor.shutdown()
  assert.equal(executor.stats().live, 0)
  assert.equal(executor.stats().ended, 300)
})
