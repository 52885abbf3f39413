import assert from 'node:assert/strict'
import { test } from 'node:test'

import { compose } from './harness/composition.mjs'
import { executors } from './harness/executors.mjs'
import { facts, failure } from './harness/observing.mjs'

/**
 * An executor that runs everything through a runner, as a sandboxing one does, and notes what it is told about its
 * background processes.
 */
function through(Shell, runner) {
  return class Wrapped extends Shell {
    notes = []

    run(spec) {
      return this.runArgv(spec, [...runner, 'bash', '-c', spec.command])
    }

    start(spec) {
      const handle = this.startArgv(spec, [...runner, 'bash', '-c', spec.command])
      this.notes.push({ started: handle.status })
      return handle
    }

    onProcessDone(handle, stderr, spawnFailed, spawnError) {
      handle.sandbox = { mode: 'read-only', denied: stderr.includes('denied') }
      this.notes.push({
        ...facts(handle),
        stderr: stderr.replace(/(E[A-Z]+): .*/, '$1'),
        spawnFailed,
        error: spawnError && failure(spawnError),
      })
      super.onProcessDone(handle, stderr, spawnFailed, spawnError)
    }
  }
}

for (const [name, Shell] of executors) {
  test(`${name}: a subclass runs its commands through a runner`, async (t) => {
    const { shell } = await compose(through(Shell, ['env', 'RUNNER=yes']), { t })
    const { exitCode, stdout } = await shell.run(shell.resolve({ command: 'echo "$RUNNER"; exit 4' }))
    assert.deepEqual({ exitCode, text: stdout.text }, { exitCode: 4, text: 'yes\n' })
    const handle = shell.start(shell.resolve({ command: 'echo "$RUNNER"' }))
    await handle.done
    assert.equal(handle.readOutput().delta, 'yes\n')
  })

  test(`${name}: a subclass is told once of each end, after the facts and before done`, async (t) => {
    const { shell } = await compose(through(Shell, ['env']), { t })
    const handle = shell.start(shell.resolve({ command: 'echo it was denied >&2; exit 5' }))
    handle.readOutput()
    let sandbox
    await handle.done.then(() => (sandbox = handle.sandbox))
    assert.deepEqual(sandbox, { mode: 'read-only', denied: true })
    assert.deepEqual(shell.notes, [
      { started: 'running' },
      {
        status: 'completed',
        exitCode: 5,
        signal: null,
        stderr: 'it was denied\n',
        spawnFailed: false,
        error: undefined,
      },
    ])
  })

  test(`${name}: a subclass is told of a long stderr's end`, async (t) => {
    const { shell } = await compose(through(Shell, ['env']), { config: { maxOutputBytes: 100 }, t })
    const handle = shell.start(shell.resolve({ command: 'seq 1 1000 >&2; echo denied >&2' }))
    await handle.done
    assert.equal(shell.notes[1].stderr.length, 100)
    assert.match(shell.notes[1].stderr, /\n1000\ndenied\n$/)
  })

  test(`${name}: a subclass is told of a runner that is not there, with evidence`, async (t) => {
    const { shell } = await compose(through(Shell, ['no-such-runner', '--flag']), { t })
    const error = {
      name: 'Error',
      message: 'spawn no-such-runner ENOENT',
      code: 'ENOENT',
      errno: -2,
      syscall: 'spawn no-such-runner',
      path: 'no-such-runner',
      spawnargs: ['--flag', 'bash', '-c', 'true'],
    }
    // One that says nothing of folders which may not be searched.
    const env = { PATH: '/usr/bin:/bin' }
    const handle = shell.start(shell.resolve({ command: 'true', env }))
    await handle.done
    assert.deepEqual(shell.notes, [
      { started: 'running' },
      {
        status: 'killed',
        exitCode: null,
        signal: null,
        stderr: 'spawn failed: Error: spawn no-such-runner ENOENT',
        spawnFailed: true,
        error,
      },
    ])
    await assert.rejects(shell.run(shell.resolve({ command: 'true', env })), (thrown) => {
      assert.deepEqual(failure(thrown), error)
      return true
    })
  })

  test(`${name}: a subclass sees the config that is in force`, async (t) => {
    const { shell } = await compose(class Sub extends Shell {}, { config: { timeoutMs: 5_000 }, t })
    assert.equal(shell.config.timeoutMs, 5_000)
    assert.equal(shell.config.graceMs, 3_000)
    assert.equal(shell.sandboxMode, undefined)
  })
}
