import assert from 'node:assert/strict'
import { test } from 'node:test'

import { SHELL_SETTINGS_NAMESPACE } from '@deepseek-ai/dsh-shell'

import { compose } from './harness/composition.mjs'
import { executors, Original, Ours } from './harness/executors.mjs'
import { failure, readUntil } from './harness/observing.mjs'
import { MemorySettings } from './harness/settings.mjs'
import { isAlive, until } from './harness/processes.mjs'

const ns = SHELL_SETTINGS_NAMESPACE

/** A composition with a settings provider that holds `document`. */
async function composed(t, Shell, config = {}, document = {}) {
  const composition = await compose(Shell, { config, t })
  const provider = composition.ctx.plugin(MemorySettings, { document })
  await provider
  const settings = composition.ctx.get('settings')
  await until('the section of the shell', () => settings.describe().length > 0)
  return { ...composition, provider, settings }
}

const budget = (shell) => {
  const { timeoutMs, stdoutMaxBytes, workdir } = shell.resolve({ command: 'x' })
  return { timeoutMs, stdoutMaxBytes, workdir }
}

const printed = async (shell, command = 'seq 1 1000') => {
  return (await shell.run(shell.resolve({ command }))).stdout.text.length
}

/** The values that no command could run with, and those that are odd but usable. */
const values = {
  cwd: ['', '/', 5, null],
  timeoutMs: [0, -1, NaN, Infinity, 1e12, 0.5, 'x', null],
  maxTimeoutMs: [0, -1, NaN, Infinity, 1e12, 'x'],
  maxOutputBytes: [0, -1, NaN, Infinity, 1, 'x'],
  maxSpillBytes: [0, -1, NaN, Infinity, 1, 'x'],
  graceMs: [0, -1, NaN, Infinity, 2 ** 31 - 1, 2 ** 31, 'x'],
}

/** Loads a row with one value: its resolved config, or what it is refused with. */
async function load(Shell, config) {
  const composition = await compose(Shell, { config }).catch((error) => ({ error }))
  if (composition.error) return { refused: failure(composition.error) }
  const { config: resolved } = composition.shell
  await composition.end()
  return { resolved: { ...resolved } }
}

for (const [field, list] of Object.entries(values)) {
  for (const value of list) {
    test(`a row with ${field} of ${typeof value} ${value} comes out as with the original`, async () => {
      assert.deepEqual(await load(Ours, { [field]: value }), await load(Original, { [field]: value }))
    })
  }
}

test('a row without a config has the same defaults as the original', async () => {
  assert.deepEqual(await load(Ours, undefined), await load(Original, undefined))
  assert.deepEqual(await load(Ours, {}), await load(Original, {}))
})

test('configuration surfaces see the same description as of the original', async (t) => {
  const describe = async (Shell) => {
    const { settings } = await composed(t, Shell, { timeoutMs: 5_000 }, { [ns]: { graceMs: 1_000 } })
    return settings.describe().map(({ schema, ...rest }) => ({ ...rest, fields: fieldsOf(schema) }))
  }
  assert.deepEqual(await describe(Ours), await describe(Original))
})

/** A serialized schema by field; the numbers that it refers by differ from schema to schema. */
function fieldsOf({ uid, refs }) {
  const { type, dict, meta } = refs[uid]
  return { type, meta, fields: Object.entries(dict).map(([name, ref]) => [name, refs[ref]]) }
}

for (const [name, Shell] of executors) {
  test(`${name}: a section of the user lies over the row, field by field`, async (t) => {
    const { shell } = await composed(
      t,
      Shell,
      { timeoutMs: 5_000, maxOutputBytes: 50, cwd: '/' },
      { [ns]: { timeoutMs: 7_000 } },
    )
    assert.deepEqual(budget(shell), { timeoutMs: 7_000, stdoutMaxBytes: 50, workdir: '/' })
  })

  test(`${name}: the next command runs with a changed section`, async (t) => {
    const { shell, settings } = await composed(t, Shell, { maxOutputBytes: 50 })
    assert.equal(await printed(shell), 50)
    await settings.update(ns, { maxOutputBytes: 70 })
    assert.equal(await printed(shell), 70)
    settings.changeOutside({ [ns]: { maxOutputBytes: 90, cwd: '/usr' } })
    assert.equal(await printed(shell), 90)
    assert.equal(budget(shell).workdir, '/usr')
    await settings.replace(ns, {})
    assert.equal(await printed(shell), 50)
  })

  test(`${name}: the next background process has a changed section, and both streams do`, async (t) => {
    const { shell, settings } = await composed(t, Shell, { maxOutputBytes: 50 })
    const kept = async () => {
      const handle = shell.start(shell.resolve({ command: 'seq 1 1000; seq 1 1000 >&2' }))
      await handle.done
      return handle
        .readOutput()
        .delta.split('[stderr]\n')
        .map((text) => text.length)
    }
    assert.deepEqual(await kept(), [50, 50])
    await settings.update(ns, { maxOutputBytes: 80 })
    assert.deepEqual(await kept(), [80, 80])
  })

  test(`${name}: a command that runs keeps the section that it was started with`, async (t) => {
    const { shell, settings } = await composed(t, Shell, { maxOutputBytes: 50 })
    const handle = shell.start(shell.resolve({ command: 'echo up; read -r _ < <(sleep 0.3); seq 1 1000' }))
    await readUntil(handle, 'up\n')
    await settings.update(ns, { maxOutputBytes: 5_000 })
    await handle.done
    const { delta, lossy } = handle.readOutput()
    assert.deepEqual({ length: delta.length, lossy }, { length: 50, lossy: true })
  })

  test(`${name}: a changed grace is that of the next command`, async (t) => {
    const { shell, settings } = await composed(t, Shell, { graceMs: 60_000 })
    await shell.run(shell.resolve({ command: 'true' }))
    await settings.update(ns, { graceMs: 200 })
    const { signal } = await shell.run(
      shell.resolve({ command: "trap '' TERM; while :; do sleep 0.05; done", timeoutMs: 200 }),
    )
    assert.equal(signal, 'SIGKILL')
  })

  test(`${name}: the end of the composition waits as long as each command's own grace`, async (t) => {
    const { shell, settings, end } = await composed(t, Shell, { graceMs: 1_800 })
    const handle = shell.start(shell.resolve({ command: "trap '' TERM; echo $$.; while :; do sleep 0.05; done" }))
    const pid = Number.parseInt(await readUntil(handle, '.\n'))
    await settings.update(ns, { graceMs: 50 })
    await shell.run(shell.resolve({ command: 'true' }))
    await end()
    assert.equal(isAlive(pid), false)
    await handle.done
    assert.equal(handle.signal, 'SIGKILL')
  })

  test(`${name}: a write of values that can't be used is refused, and nothing changes`, async (t) => {
    const { shell, settings } = await composed(t, Shell, { timeoutMs: 5_000 })
    await settings.update(ns, { timeoutMs: 6_000 })
    await assert.rejects(settings.update(ns, { timeoutMs: 0 }), {
      message: 'bash-local: timeoutMs must be a positive finite number',
    })
    await assert.rejects(settings.update(ns, { graceMs: 2 ** 31 }), {
      message: 'bash-local: graceMs must be no greater than 2147483647',
    })
    await assert.rejects(settings.update(ns, { maxOutputBytes: 'much' }))
    assert.equal(budget(shell).timeoutMs, 6_000)
    assert.equal((await shell.run(shell.resolve({ command: 'echo fine' }))).stdout.text, 'fine\n')
  })

  test(`${name}: a changed document with values that can't be used leaves the last good section`, async (t) => {
    const { shell, settings } = await composed(t, Shell, {}, { [ns]: { timeoutMs: 6_000 } })
    settings.changeOutside({ [ns]: { timeoutMs: -1 } })
    assert.equal(budget(shell).timeoutMs, 6_000)
    settings.changeOutside({ [ns]: { timeoutMs: 8_000 } })
    assert.equal(budget(shell).timeoutMs, 8_000)
  })

  test(`${name}: without its provider, the row alone applies again`, async (t) => {
    const { shell, provider } = await composed(t, Shell, { timeoutMs: 5_000 }, { [ns]: { timeoutMs: 6_000 } })
    assert.equal(budget(shell).timeoutMs, 6_000)
    await provider.dispose()
    assert.equal(budget(shell).timeoutMs, 5_000)
    assert.equal((await shell.run(shell.resolve({ command: 'echo fine' }))).stdout.text, 'fine\n')
  })

  test(`${name}: the end of the service frees its section for another`, async (t) => {
    const { ctx, row, settings } = await composed(t, Shell)
    await row.dispose()
    assert.deepEqual(settings.describe(), [])
    await ctx.plugin(Shell, { timeoutMs: 5_000 })
    await until('the section of the second service', () => settings.describe().length > 0)
    assert.equal(budget(ctx.get('shell')).timeoutMs, 5_000)
  })
}
