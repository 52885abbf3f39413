import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { DshError, Executor } from 'libdsh'

import { aFolder, anExecutor } from './support.mjs'

const WRONG_TYPE = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }

/** Asserts that a request is refused in every way to make it, and that nothing was started. */
async function refused(t, command, options, expected) {
  const executor = anExecutor(t)
  await assert.rejects(executor.run(command, options), expected)
  assert.throws(() => executor.start(command, options), expected)
  assert.throws(() => executor.resolve(command, options), expected)
  assert.deepEqual([executor.stats().live, executor.stats().ended], [0, 0])
}

for (const value of [0, -0, -1, NaN, -Infinity, -0.5]) {
  test(`a timeout of ${Object.is(value, -0) ? '-0' : value} is refused`, (t) => {
    const message = new RegExp(`^timeout .* not ${value}`)
    const expected = { name: 'DshError', code: 'DSH_E_INVALID', stage: 'argument', message }
    return refused(t, 'true', { timeout: value }, expected)
  })
}

for (const value of [0, -1, NaN, 1.5]) {
  test(`stdoutMaxBytes of ${value} is refused`, (t) => {
    const message = new RegExp(`^stdoutMaxBytes .* not ${value}`)
    return refused(t, 'true', { stdoutMaxBytes: value }, { code: 'DSH_E_INVALID', message })
  })
}

for (const value of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
  test(`a tag of ${value} is refused`, (t) =>
    refused(t, 'true', { tag: value }, { code: 'DSH_E_INVALID', message: /^tag / }))
}

for (const [name, value] of Object.entries({
  timeout: '5',
  stdoutMaxBytes: 5n,
  cwd: 5,
  input: 5,
  env: 'A=1',
  dshEnv: null,
  mergeStderr: 1,
  signal: {},
  tag: '1',
})) {
  test(`${name} of a wrong type is a TypeError that names it`, (t) =>
    refused(t, 'true', { [name]: value }, { ...WRONG_TYPE, message: new RegExp(`^${name} `) }))
}

test('a command that is neither string nor bytes is a TypeError', async (t) => {
  for (const command of [undefined, null, 5, ['true'], new ArrayBuffer(4)]) {
    await refused(t, command, undefined, WRONG_TYPE)
  }
})

test('an option that does not exist is refused, and not passed over', async (t) => {
  await refused(t, 'true', { timeoutMs: 5 }, { ...WRONG_TYPE, message: /timeoutMs/ })
  assert.throws(() => new Executor({ timeout: 5 }), { ...WRONG_TYPE, message: /timeout/ })
  // One that is undefined asks for nothing.
  assert.equal((await anExecutor(t).run('true', { timeoutMs: undefined })).exitCode, 0)
})

test('a word that is none of the choices is refused', (t) =>
  refused(t, 'true', { survivors: 'adopt' }, {
    code: 'DSH_E_INVALID',
    message: "survivors must be 'keep' or 'kill', not \"adopt\"",
  }))

test('a NUL is refused wherever text ends in one', async (t) => {
  await refused(t, 'echo a\0b', undefined, { code: 'DSH_E_COMMAND_NUL' })
  await refused(t, Buffer.from('echo a\0b'), undefined, { code: 'DSH_E_COMMAND_NUL' })
  await refused(t, 'true', { cwd: '/tmp\0/x' }, { code: 'DSH_E_INVALID', message: /^cwd / })
  await refused(t, 'true', { env: { A: 'a\0b' } }, { code: 'DSH_E_INVALID', message: 'env.A holds a NUL character' })
  await refused(t, 'true', { dshEnv: { DSH_A: 'a\0b' } }, { code: 'DSH_E_INVALID', message: /^dshEnv\.DSH_A / })
  await refused(t, 'true', { env: { 'A\0': 'b' } }, { code: 'DSH_E_ENV_NAME' })
  assert.throws(() => new Executor({ envDeny: ['A', 'B\0'] }), { code: 'DSH_E_INVALID', message: /^envDeny\[1\] / })
  assert.throws(() => new Executor({ shell: 'ba\0sh' }), { code: 'DSH_E_INVALID', message: /^shell / })
})

test('names of variables are checked', async (t) => {
  await refused(t, 'true', { env: { 'A=B': 'c' } }, { code: 'DSH_E_ENV_NAME', message: /A=B/ })
  await refused(t, 'true', { env: { '': 'c' } }, { code: 'DSH_E_ENV_NAME' })
  await refused(t, 'true', { env: { DSH_X: 'c' } }, { code: 'DSH_E_ENV_RESERVED', message: /DSH_X/ })
  await refused(t, 'true', { dshEnv: { OTHER: 'c' } }, (error) => /OTHER/.test(error.message))
  await refused(t, 'true', { env: { A: 5 } }, WRONG_TYPE)
})

test('options of an executor are checked in the same way', () => {
  const unusable = { timeoutMs: 0, graceMs: -1, drainMs: NaN, maxOutputBytes: 0.5, keep: 'head' }
  for (const [name, value] of Object.entries(unusable)) {
    assert.throws(() => new Executor({ [name]: value }), { code: 'DSH_E_INVALID', message: new RegExp(`^${name} `) })
  }
  const ofWrongType = { timeoutMs: '1', cwd: 1, guard: 'on', envAllow: 'A', envDeny: [1], keep: 1 }
  for (const [name, value] of Object.entries(ofWrongType)) {
    assert.throws(() => new Executor({ [name]: value }), (error) => error.message.startsWith(`${name} `))
  }
  assert.throws(() => new Executor(5), WRONG_TYPE)
  assert.throws(() => new Executor(null), WRONG_TYPE)
})

test('a shell that is not there is refused when the executor is made', () => {
  assert.throws(() => new Executor({ shell: 'no-such-shell' }), {
    name: 'DshError',
    code: 'DSH_E_SHELL_MISSING',
    stage: 'shell',
    errno: 2,
  })
})

test('the budgets in force have every default', (t) => {
  assert.deepEqual(
    { ...new Executor().config, shell: '', spillDir: '' },
    {
      cwd: undefined,
      shell: '',
      spillDir: '',
      timeoutMs: 120_000,
      maxTimeoutMs: 600_000,
      maxOutputBytes: 64_000,
      maxSpillBytes: 67_108_864,
      maxTotalSpillBytes: 1_073_741_824,
      graceMs: 3000,
      drainMs: 3000,
      keep: 'tail',
      inheritEnv: true,
      envAllow: [],
      envDeny: [],
      guard: true,
      keepSpillFiles: false,
      sandbox: undefined,
    },
  )
  assert.match(new Executor().config.shell, /^\/.*bash$/)
})

test('every option arrives', (t) => {
  const folder = aFolder(t)
  const options = {
    cwd: folder,
    shell: '/bin/sh',
    spillDir: folder,
    timeoutMs: 1001,
    maxTimeoutMs: 1002,
    maxOutputBytes: 1003,
    maxSpillBytes: 1004,
    maxTotalSpillBytes: 1005,
    graceMs: 1006,
    drainMs: 1007,
    keep: 'head-tail',
    inheritEnv: false,
    envAllow: ['A*', 'B'],
    envDeny: ['C?'],
    guard: false,
    keepSpillFiles: true,
    sandbox: {
      mode: 'workspace-write',
      workspace: folder,
      writable: ['/var', '/tmp'],
      hidden: ['/etc/shadow'],
      network: 'none',
      backends: ['landlock', 'runner'],
      runner: { command: ['my-runner', '--flag'], failures: ['my-runner: fatal'] },
      gitWorktree: true,
    },
  }
  assert.deepEqual(anExecutor(t, options).config, options)
})

test('configure changes what it names, and null goes back to the default', (t) => {
  const executor = anExecutor(t, { timeoutMs: 1000, envDeny: ['A'], graceMs: 700 })
  executor.configure({ timeoutMs: 2000, keep: undefined })
  assert.deepEqual([executor.config.timeoutMs, executor.config.envDeny], [2000, ['A']])
  assert.equal(executor.config.drainMs, 700)
  executor.configure({ graceMs: 900, envDeny: null })
  assert.deepEqual([executor.config.timeoutMs, executor.config.envDeny], [2000, []])
  // A default that follows another option goes on following it.
  assert.equal(executor.config.drainMs, 900)
})

test('budgets that can not be used leave the last good ones in force', (t) => {
  const executor = anExecutor(t, { timeoutMs: 1000 })
  assert.throws(() => executor.configure({ timeoutMs: 2000, shell: 'no-such-shell' }), { code: 'DSH_E_SHELL_MISSING' })
  assert.throws(() => executor.configure({ timeoutMs: 2000, graceMs: 0 }), { code: 'DSH_E_INVALID' })
  assert.equal(executor.config.timeoutMs, 1000)
  executor.configure({ maxOutputBytes: 5 })
  assert.equal(executor.config.timeoutMs, 1000)
})

test('an array of globs is not kept', (t) => {
  const envDeny = ['A']
  const executor = anExecutor(t, { envDeny })
  envDeny.push('B')
  executor.configure({ timeoutMs: 5 })
  assert.deepEqual(executor.config.envDeny, ['A'])
})

test('a spec is the request with every default and cap', (t) => {
  const executor = anExecutor(t, { maxTimeoutMs: 5000, maxOutputBytes: 10 })
  const spec = executor.resolve('echo x', { cwd: '/tmp', timeout: 9000, tag: 7, survivors: 'kill', mergeStderr: true })
  assert.deepEqual(
    { ...spec, shell: '', scrubbed: [] },
    {
      command: 'echo x',
      shell: '',
      cwd: '/tmp',
      timeoutMs: 5000,
      stdoutMaxBytes: 10,
      maxOutputBytes: 10,
      graceMs: 500,
      drainMs: 500,
      tag: 7,
      survivors: 'kill',
      mergeStderr: true,
      sandboxMode: undefined,
      scrubbed: [],
    },
  )
  assert.deepEqual([executor.stats().live, executor.stats().ended], [0, 0])
})

test('an option that is a getter may run another command', async (t) => {
  const executor = anExecutor(t)
  let inner
  const options = {
    timeout: 5000,
    get stdoutMaxBytes() {
      inner ??= executor.run('true', { timeout: 100_000 })
      return 5
    },
  }
  assert.equal((await executor.run('true', options)).timeoutMs, 5000)
  assert.equal((await inner).timeoutMs, 100_000)
})

test('errors of the place have code, errno and stage', async (t) => {
  const folder = aFolder(t)
  const executor = anExecutor(t)
  const missing = await executor.run('true', { cwd: `${folder}/none` }).catch((error) => error)
  assert.ok(missing instanceof DshError && missing instanceof Error)
  assert.deepEqual(
    { name: missing.name, code: missing.code, errno: missing.errno, stage: missing.stage },
    { name: 'DshError', code: 'DSH_E_WORKDIR_MISSING', errno: 2, stage: 'workdir' },
  )
  assert.match(missing.message, new RegExp(`${folder}/none`))
  assert.match(missing.stack, /options\.test\.mjs/)
  const file = fileURLToPath(import.meta.url)
  assert.throws(() => executor.start('true', { cwd: file }), { code: 'DSH_E_WORKDIR_NOT_DIR', errno: 20 })
  const env = { BIG: 'x'.repeat(4 << 20) }
  await assert.rejects(executor.run('true', { env }), { code: 'DSH_E_ENV_TOO_BIG', message: /BIG/ })
})

test('users of the package can make its errors', () => {
  const error = new DshError('text', { code: 'DSH_E_INVALID', cause: 5 })
  const { message, code, errno, stage, cause } = error
  assert.deepEqual([message, code, errno, stage, cause], ['text', 'DSH_E_INVALID', 0, '', 5])
  assert.equal(String(error), 'DshError: text')
})
