import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'

import { anExecutor, held, inAProgram, isAlive, until } from './support.mjs'

/** A worker that runs a module which has an `Executor`, a `parentPort` and a `threadId`. */
function aWorker(source) {
  const head = `
    import { parentPort, threadId } from 'node:worker_threads'
    import { Executor } from ${JSON.stringify(import.meta.resolve('libdsh'))}
  `
  return new Worker(new URL(`data:text/javascript,${encodeURIComponent(head + source)}`))
}

test('workers run commands side by side with the main thread', async (t) => {
  const workers = Array.from({ length: 3 }, (_, i) =>
    aWorker(`
      const executor = new Executor()
      const results = await Promise.all(Array.from({ length: 20 }, (_, j) => executor.run('echo ${i} ' + j)))
      const process = executor.start('echo background')
      await process.done
      await executor.shutdown()
      parentPort.postMessage(results.map((result) => result.stdout.text).join('') + process.readOutput().text)
    `),
  )
  const messages = workers.map((worker) => once(worker, 'message'))
  const exits = workers.map((worker) => once(worker, 'exit'))
  const mine = await anExecutor(t).run('echo main')
  assert.equal(mine.stdout.text, 'main\n')
  const texts = await Promise.all(messages)
  texts.forEach(([text], i) => {
    assert.equal(text, Array.from({ length: 20 }, (_, j) => `${i} ${j}\n`).join('') + 'background\n')
  })
  assert.deepEqual(await Promise.all(exits), [[0], [0], [0]])
})

test('a worker with an idle executor ends by itself', async () => {
  const worker = aWorker(`
    const executor = new Executor({ graceMs: 100 })
    await executor.run('true')
    parentPort.postMessage(executor.start('sleep 600').pid)
  `)
  const [[pid]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')])
  await until(() => !isAlive(pid), `the end of ${pid}`)
})

test('a worker that is terminated in the middle takes its commands along, and leaks nothing', async () => {
  const before = held()
  for (let round = 0; round < 12; round++) {
    const worker = aWorker(`
      const executor = new Executor({ graceMs: 100 })
      const pids = []
      for (let i = 0; i < 5; i++) pids.push(executor.start('trap "" TERM; sleep 600; sleep 600').pid)
      for (let i = 0; i < 5; i++) executor.run('sleep 600').catch(() => {})
      executor.start('yes')[Symbol.asyncIterator]().next()
      executor.start('sleep 600').done.catch(() => {})
      const other = new Executor({ graceMs: 100 })
      other.start('sleep 600', { signal: AbortSignal.timeout(${round * 3}) })
      if (${round} % 3 === 0) executor.shutdown().catch(() => {})
      parentPort.postMessage(pids)
      // Busy with calls at the very moment of the end.
      for (;;) await other.run('echo x').catch(() => {})
    `)
    const [pids] = await once(worker, 'message')
    await worker.terminate()
    await until(() => !pids.some(isAlive), `the end of ${pids}`)
  }
  await until(
    () => held().threads <= before.threads && held().descriptors <= before.descriptors,
    `threads and descriptors as before: ${JSON.stringify(before)}`,
  )
})

test('process.exit in a worker ends its commands', async () => {
  const worker = aWorker(`
    const executor = new Executor({ graceMs: 100 })
    executor.run('sleep 600')
    parentPort.postMessage(executor.start('sleep 600').pid)
    setTimeout(() => process.exit(3), 10)
  `)
  const [[pid], [code]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')])
  assert.equal(code, 3)
  await until(() => !isAlive(pid), `the end of ${pid}`)
})

test('a program may end while workers run commands', async () => {
  const program = await inAProgram(`
    import { once } from 'node:events'
    import { Worker } from 'node:worker_threads'
    const source = \`
      import { parentPort } from 'node:worker_threads'
      import { Executor } from ${JSON.stringify(import.meta.resolve('libdsh'))}
      const executor = new Executor({ graceMs: 100 })
      executor.run('sleep 600')
      parentPort.postMessage('up')
      for (;;) await executor.run('true')
    \`
    const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(source)))
    await once(worker, 'message')
    process.exit(5)
  `)
  assert.deepEqual(program, { code: 5, stdout: '', stderr: '' })
})
