import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { Context } from '@deepseek-ai/cordis'
import LocalSubprocessRuntime from '@deepseek-ai/dsh-subprocess-local'

import { appears } from './harness/cases.mjs'
import { compose } from './harness/composition.mjs'
import { executors, Ours } from './harness/executors.mjs'
import { facts, readUntil } from './harness/observing.mjs'
import { gone, isAlive } from './harness/processes.mjs'

/** Starts a command that says its pid and stays. */
async function background(shell, command = 'exec sleep 300') {
  const handle = shell.start(shell.resolve({ command: `echo pid $$.; ${command}` }))
  const pid = Number(/pid (\d+)\./.exec(await readUntil(handle, '.\n'))[1])
  return { handle, pid }
}

/** Starts a foreground run that has begun when this returns. */
async function foreground(shell, place, more = {}) {
  const running = shell.run(shell.resolve({ command: `echo $$ > ${place}/run; exec sleep 300`, ...more }))
  await appears(join(place, 'run'))
  return { running, pid: () => Number(readFileSync(join(place, 'run'), 'latin1')) }
}

function context(t) {
  const ctx = new Context()
  t.after(() => ctx.fiber.dispose())
  return ctx
}

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'harness-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

for (const [name, Shell] of executors) {
  test(`${name}: the end of the composition kills background processes and waits for them`, async (t) => {
    const { shell, end } = await compose(Shell, { t })
    const { handle, pid } = await background(shell)
    await end()
    assert.equal(isAlive(pid), false)
    await handle.done
    assert.deepEqual(facts(handle), { status: 'killed', exitCode: null, signal: 'SIGTERM' })
  })

  test(`${name}: the end of the composition outlasts a process that ignores SIGTERM`, async (t) => {
    const { shell, end } = await compose(Shell, { config: { graceMs: 300 }, t })
    const { handle, pid } = await background(shell, "trap '' TERM; while :; do sleep 0.05; done")
    await end()
    assert.equal(isAlive(pid), false)
    await handle.done
    assert.equal(handle.signal, 'SIGKILL')
  })

  test(`${name}: the end of the composition settles a foreground run, as neither timed out nor aborted`, async (t) => {
    const { shell, end } = await compose(Shell, { t })
    const { running } = await foreground(shell, folder(t))
    await end()
    const { exitCode, signal, timedOut, aborted } = await running
    assert.deepEqual(
      { exitCode, signal, timedOut, aborted },
      { exitCode: null, signal: 'SIGTERM', timedOut: false, aborted: false },
    )
  })

  test(`${name}: the end of the composition may be asked for twice, also at once`, async (t) => {
    const { shell, end } = await compose(Shell, { t })
    const { pid } = await background(shell)
    await Promise.all([end(), end()])
    await end()
    assert.equal(isAlive(pid), false)
  })

  test(`${name}: the end of the shell service alone leaves background processes running and readable`, async (t) => {
    const { shell, row, end } = await compose(Shell, { t })
    const { handle, pid } = await background(shell, 'read -r _ < <(sleep 0.3); echo later; exec sleep 300')
    await row.dispose()
    assert.equal(handle.status, 'running')
    assert.ok(isAlive(pid))
    await readUntil(handle, 'later\n')
    assert.equal(handle.kill(), true)
    await handle.done
    assert.deepEqual(facts(handle), { status: 'killed', exitCode: null, signal: 'SIGTERM' })
    await end()
  })

  test(`${name}: a reload of the shell service leaves background processes to the composition`, async (t) => {
    const { ctx, shell, row, end } = await compose(Shell, { t })
    const { handle, pid } = await background(shell)
    row.update({ timeoutMs: 1234 })
    await row.await()
    const next = ctx.get('shell')
    assert.notEqual(next, shell)
    assert.equal(next.resolve({ command: 'x' }).timeoutMs, 1234)
    assert.equal((await next.run(next.resolve({ command: 'echo new' }))).stdout.text, 'new\n')
    assert.ok(isAlive(pid))
    assert.equal(handle.status, 'running')
    await end()
    assert.equal(isAlive(pid), false)
  })

  test(`${name}: a foreground run outlives a reload of the shell service`, async (t) => {
    const place = folder(t)
    const { shell, row, end } = await compose(Shell, { t })
    const running = shell.run(
      shell.resolve({ command: 'touch up; until [ -e go ]; do sleep 0.02; done; echo done', workdir: place }),
    )
    await appears(join(place, 'up'))
    await row.restart()
    const other = await compose(Shell, { t })
    await other.shell.run(other.shell.resolve({ command: 'touch go', workdir: place }))
    const { exitCode, stdout } = await running
    assert.deepEqual({ exitCode, text: stdout.text }, { exitCode: 0, text: 'done\n' })
    await Promise.all([end(), other.end()])
  })

  test(`${name}: a shell service whose composition has ended runs nothing more`, async (t) => {
    const place = folder(t)
    const { shell, end } = await compose(Shell, { t })
    const spec = shell.resolve({ command: 'touch ran', workdir: place })
    await end()
    await assert.rejects(async () => shell.run(spec))
    assert.throws(() => shell.start(spec))
    assert.deepEqual(readdirSync(place), [])
  })

  test(`${name}: a kill that comes too late leaves alone what the command left behind, until the end`, async (t) => {
    const { shell, end } = await compose(Shell, { t })
    const handle = shell.start(shell.resolve({ command: 'sleep 300 >/dev/null 2>&1 & echo $!.' }))
    const pid = Number.parseInt(await readUntil(handle, '.\n'))
    await handle.done
    assert.equal(handle.kill(), false)
    assert.equal(handle.status, 'completed')
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.ok(isAlive(pid))
    await end()
    assert.equal(isAlive(pid), false)
  })

  test(`${name}: the end of the process provider ends what runs`, async (t) => {
    const ctx = context(t)
    const provider = ctx.plugin(LocalSubprocessRuntime)
    await provider
    await ctx.plugin(Shell, {})
    const { handle, pid } = await background(ctx.get('shell'))
    await provider.dispose()
    assert.equal(isAlive(pid), false)
    await handle.done
    assert.equal(handle.status, 'killed')
    await ctx.fiber.dispose()
  })

  test(`${name}: commands run again after a reload of the process provider`, async (t) => {
    const ctx = context(t)
    const provider = ctx.plugin(LocalSubprocessRuntime)
    await provider
    await ctx.plugin(Shell, {})
    const { pid } = await background(ctx.get('shell'))
    await provider.restart()
    assert.equal(isAlive(pid), false)
    for (let shell; ;) {
      shell = ctx.get('shell')
      if (shell === undefined) await new Promise(setImmediate)
      else {
        assert.equal((await shell.run(shell.resolve({ command: 'echo again' }))).stdout.text, 'again\n')
        break
      }
    }
    const second = await background(ctx.get('shell'))
    await ctx.fiber.dispose()
    assert.equal(isAlive(second.pid), false)
  })

  test(`${name}: a second shell service in one composition is refused, and the first goes on`, async (t) => {
    const { ctx, shell, end } = await compose(Shell, { t })
    class Second extends Shell {}
    await assert.rejects(async () => ctx.plugin(Second, {}), /service "shell" has been registered/)
    assert.equal((await shell.run(shell.resolve({ command: 'echo first' }))).stdout.text, 'first\n')
    await end()
  })

  test(`${name}: signals are not listened to any longer than needed`, async (t) => {
    const { shell, end } = await compose(Shell, { t })
    const { signal } = new AbortController()
    for (let i = 0; i < 20; i++) {
      await shell.run(shell.resolve({ command: 'true', signal }))
      await shell.start(shell.resolve({ command: 'true', signal })).done
    }
    assert.equal(getEventListeners(signal, 'abort').length, 0)
    await end()
  })

  test(`${name}: fifty commands at a time, each with all of its own output`, async (t) => {
    const { shell, end } = await compose(Shell, { t })
    const runs = Array.from({ length: 25 }, (_, i) => shell.run(shell.resolve({ command: `seq ${i} ${i + 500}` })))
    const handles = Array.from({ length: 25 }, (_, i) => shell.start(shell.resolve({ command: `seq ${i} ${i + 500}` })))
    const lines = (i) => Array.from({ length: 501 }, (_, n) => `${i + n}\n`).join('')
    for (const [i, { stdout }] of (await Promise.all(runs)).entries()) assert.equal(stdout.text, lines(i))
    for (const [i, handle] of handles.entries()) {
      await handle.done
      assert.equal(handle.readOutput().delta, lines(i))
    }
    await end()
  })
}

test('without a process provider, the end of the shell service is the end of what it runs', async (t) => {
  const { shell, row, end } = await compose(Ours, { subprocess: false, t })
  assert.equal((await shell.run(shell.resolve({ command: 'echo alone' }))).stdout.text, 'alone\n')
  const { handle, pid } = await background(shell)
  await row.dispose()
  assert.equal(isAlive(pid), false)
  await handle.done
  assert.equal(handle.status, 'killed')
  await assert.rejects(async () => shell.run(shell.resolve({ command: 'true' })), { code: 'INACTIVE_EFFECT' })
  await end()
})

test('without a process provider, a reload is an end, and the next service runs commands', async (t) => {
  const { ctx, shell, row, end } = await compose(Ours, { subprocess: false, t })
  const { pid } = await background(shell)
  await row.restart()
  assert.equal(isAlive(pid), false)
  const next = ctx.get('shell')
  assert.equal((await next.run(next.resolve({ command: 'echo next' }))).stdout.text, 'next\n')
  const second = await background(next)
  await end()
  assert.equal(isAlive(second.pid), false)
})

test('a process provider that comes later takes what is started from then on', async (t) => {
  const { ctx, shell, row, end } = await compose(Ours, { subprocess: false, t })
  const early = await background(shell)
  await ctx.plugin(LocalSubprocessRuntime)
  const late = await background(shell)
  await row.dispose()
  assert.equal(isAlive(early.pid), false)
  assert.ok(isAlive(late.pid))
  await end()
  assert.equal(isAlive(late.pid), false)
})

test('a process provider that goes leaves a shell service that works', async (t) => {
  const ctx = context(t)
  const provider = ctx.plugin(LocalSubprocessRuntime)
  await provider
  await ctx.plugin(Ours, {})
  const shell = ctx.get('shell')
  const { pid } = await background(shell)
  await provider.dispose()
  assert.equal(isAlive(pid), false)
  assert.equal((await shell.run(shell.resolve({ command: 'echo on' }))).stdout.text, 'on\n')
  await ctx.fiber.dispose()
})

test('two shell services with one process provider keep their own budgets', async (t) => {
  const ctx = context(t)
  await ctx.plugin(LocalSubprocessRuntime)
  const [first, second] = [ctx.isolate('shell'), ctx.isolate('shell')]
  await first.plugin(Ours, { maxOutputBytes: 10 })
  await second.plugin(Ours, { maxOutputBytes: 20 })
  const run = (scope) => scope.get('shell').run(scope.get('shell').resolve({ command: 'seq 1 100' }))
  const results = await Promise.all([run(first), run(second), run(first), run(second)])
  assert.deepEqual(
    results.map(({ stdout }) => stdout.text.length),
    [10, 20, 10, 20],
  )
  await ctx.fiber.dispose()
})

test('the end of the composition also finds what has left the session', async (t) => {
  const place = folder(t)
  const { shell, end } = await compose(Ours, { t })
  await shell.run(
    shell.resolve({
      command: `(setsid bash -c 'echo $$ > left; exec sleep 300' </dev/null >/dev/null 2>&1 &); until [ -s left ]; do sleep 0.02; done`,
      workdir: place,
    }),
  )
  const pid = Number(readFileSync(join(place, 'left'), 'latin1'))
  assert.ok(isAlive(pid))
  await end()
  await gone(pid)
})
