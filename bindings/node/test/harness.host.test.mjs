import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import './harness/place.mjs'
import { gone, isAlive } from './harness/processes.mjs'

const program = fileURLToPath(new URL('harness/host.mjs', import.meta.url))

/** A host program of its own that does what `script` says, see host.mjs; gives its output and how it ended. */
function host(script) {
  // Descriptor 3 is one that the host got without knowing of it.
  const child = spawn(process.execPath, [program, script], { stdio: ['ignore', 'pipe', 'inherit', 'ignore'] })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text))
  const pids = async () => {
    while (!output.endsWith('ready\n')) await Promise.race([once(child.stdout, 'data'), ended])
    return output.match(/\d+/g).map(Number)
  }
  return { child, ended, pids, output: () => output }
}

describe('the host', { concurrency: 3 }, () => {
  test('a host with nothing to do ends by itself, although it never ended its composition', async () => {
    const { ended, output } = host('idle')
    assert.deepEqual(await ended, { code: 0, signal: null })
    assert.equal(output(), 'ran\n')
  })

  test('a host that only waits for a background process is kept alive by it', async () => {
    const { ended, output } = host('wait')
    assert.deepEqual(await ended, { code: 0, signal: null })
    assert.equal(output(), 'completed\n')
  })

  test('a host that calls process.exit() leaves no orphan', async () => {
    const { ended, pids } = host('exit')
    const started = await pids()
    assert.deepEqual(await ended, { code: 7, signal: null })
    await Promise.all(started.map(gone))
  })

  test('a host that dies of an uncaught error leaves no orphan', async () => {
    const { ended, pids } = host('throw')
    const started = await pids()
    assert.equal((await ended).code, 1)
    await Promise.all(started.map(gone))
  })

  for (const signal of ['SIGTERM', 'SIGKILL']) {
    test(`a host that dies of ${signal} leaves no orphan`, async () => {
      const { child, ended, pids } = host('stay')
      const started = await pids()
      assert.ok(started.every(isAlive))
      child.kill(signal)
      assert.deepEqual(await ended, { code: null, signal })
      await Promise.all(started.map(gone))
    })
  }

  test('commands get none of the descriptors that the host has inherited', async () => {
    const { ended, output } = host('descriptors')
    assert.deepEqual(await ended, { code: 0, signal: null })
    assert.equal(output(), 'host has 3\ncommand has none\n')
  })
})
