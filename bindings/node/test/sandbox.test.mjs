// Confinement as this binding shows it. What the backends enforce is tested beside the library.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'

import { Executor, sandboxDoctor, widerModes } from 'libdsh'

import { aFolder, anExecutor, collected, held, inAProgram, until } from './support.mjs'

const WRONG_TYPE = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }
const BACKENDS = ['bubblewrap', 'landlock']
const NOTHING_DENIED = { denied: false, deniedPath: null, deniedRule: null, runnerFailed: null }

/** A workspace and a folder beside it, both away from /tmp, of which a confined command may have its own. */
function aPlace(t) {
  const folder = realpathSync(mkdtempSync('/var/tmp/dsh-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const place = { workspace: `${folder}/workspace`, outside: `${folder}/outside` }
  for (const path of Object.values(place)) mkdirSync(path)
  return place
}

/** An executor that confines, and its place. */
function confining(t, policy) {
  const place = aPlace(t)
  const sandbox = { mode: 'workspace-write', workspace: place.workspace, ...policy }
  return { ...place, executor: anExecutor(t, { cwd: place.workspace, sandbox }) }
}

/** A program of the test's own in an empty folder. */
function aProgram(t, name, text) {
  const folder = aFolder(t)
  writeFileSync(`${folder}/${name}`, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return `${folder}/${name}`
}

test('without a policy there are no facts', async (t) => {
  const executor = anExecutor(t)
  const process = executor.start('true')
  assert.equal((await executor.run('true')).sandbox, undefined)
  assert.equal((await process.done).sandbox, undefined)
  assert.equal(executor.resolve('true').sandboxMode, undefined)
  assert.equal(executor.config.sandbox, undefined)
})

for (const backend of BACKENDS) {
  const enforced =
    backend === 'landlock' ? { enforcement: 'partial', missing: ['metadata'] } : { enforcement: 'full', missing: [] }

  test(`the facts say what confined a command, under ${backend}`, async (t) => {
    const { executor, workspace } = confining(t, { backends: [backend] })
    const result = await executor.run('echo x >file; exit 3')
    assert.equal(result.exitCode, 3)
    assert.deepEqual(result.sandbox, {
      mode: 'workspace-write', backend, ...enforced, network: 'full', workspace, ...NOTHING_DENIED,
    })
    assert.deepEqual(readdirSync(workspace), ['file'])
  })

  test(`a command that was kept from something is told so, with the path and the rule, under ${backend}`, async (t) => {
    const { executor, outside } = confining(t, { backends: [backend] })
    const { sandbox, exitCode } = await executor.run(`touch ${outside}/file 2>/dev/null`)
    assert.equal(exitCode, 1)
    assert.deepEqual(
      [sandbox.denied, sandbox.deniedPath, sandbox.deniedRule],
      [true, `${outside}/file`, 'outside the workspace (workspace-write)'],
    )
    assert.equal(existsSync(`${outside}/file`), false)
  })

  test(`further paths can be written, and hidden ones not read, under ${backend}`, async (t) => {
    const { outside, executor } = confining(t, { backends: [backend] })
    const other = aPlace(t).outside
    writeFileSync(`${outside}/secret`, 'secret')
    const { stdout } = await executor.run(`cat ${outside}/secret; echo x >${other}/file; echo x >${outside}/file`, {
      sandbox: { writable: [other], hidden: [`${outside}/secret`, '/no/such/place'] },
    })
    assert.equal(stdout.text, '')
    assert.deepEqual([readdirSync(other), readdirSync(outside)], [['file'], ['secret']])
  })

  test(`without a network a command reaches nobody, under ${backend}`, async (t) => {
    const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const connect = `(exec 3<>/dev/tcp/127.0.0.1/${server.address().port}) 2>/dev/null && echo connected`
    const { executor } = confining(t, { backends: [backend] })
    assert.equal((await executor.run(connect)).stdout.text, 'connected\n')
    const { stdout, sandbox } = await executor.run(connect, { sandbox: { network: 'none' } })
    assert.deepEqual([stdout.text, sandbox.network], ['', 'none'])
  })

  test(`a process has facts from the start, and a verdict when it has settled, under ${backend}`, async (t) => {
    const { executor, outside, workspace } = confining(t, { backends: [backend] })
    const process = executor.start(`until [ -e go ]; do sleep 0.01; done; touch ${outside}/file`)
    const { sandbox: running } = process.info()
    assert.deepEqual([running.mode, running.backend, running.denied], ['workspace-write', backend, null])
    assert.deepEqual([running.deniedPath, running.deniedRule], [null, null])
    writeFileSync(`${workspace}/go`, '')
    const { sandbox } = await process.done
    assert.deepEqual([sandbox.denied, sandbox.deniedPath], [true, `${outside}/file`])
    assert.deepEqual(process.result().sandbox, sandbox)
  })
}

test('full access is no confinement, and says so', async (t) => {
  const { executor, outside } = confining(t)
  const { sandbox } = await executor.run(`touch ${outside}/file`, { sandbox: { mode: 'danger-full-access' } })
  assert.deepEqual(sandbox, {
    mode: 'danger-full-access',
    backend: null,
    enforcement: null,
    missing: [],
    network: 'full',
    workspace: null,
    ...NOTHING_DENIED,
  })
  assert.ok(existsSync(`${outside}/file`))
})

test("a request's policy says what differs from the executor's", async (t) => {
  const { executor, workspace } = confining(t, { mode: 'read-only', backends: ['landlock'], network: 'none' })
  const denied = await executor.run('touch file')
  assert.deepEqual([denied.sandbox.mode, denied.sandbox.deniedRule], ['read-only', 'read-only mode'])
  const options = { sandbox: { mode: 'workspace-write' } }
  const { sandbox, exitCode } = await executor.run('touch file', options)
  assert.equal(exitCode, 0)
  assert.deepEqual([sandbox.mode, sandbox.backend, sandbox.network], ['workspace-write', 'landlock', 'none'])
  assert.equal(sandbox.workspace, workspace)
  assert.equal(executor.resolve('true', options).sandboxMode, 'workspace-write')
  assert.equal(executor.resolve('true').sandboxMode, 'read-only')
  // An empty one asks for confinement, with every default.
  assert.equal((await anExecutor(t).run('true', { sandbox: {} })).sandbox.mode, 'read-only')
})

test('the policy in force has every default, is a policy again, and goes with null', (t) => {
  const executor = anExecutor(t, { sandbox: {} })
  const { sandbox } = executor.config
  assert.deepEqual(sandbox, {
    mode: 'read-only',
    workspace: undefined,
    writable: [],
    hidden: [],
    network: 'full',
    backends: undefined,
    runner: undefined,
    gitWorktree: false,
  })
  executor.configure({ timeoutMs: 5000 })
  assert.deepEqual(executor.config.sandbox, sandbox)
  executor.configure({ sandbox: { ...sandbox, mode: 'workspace-write' } })
  assert.deepEqual(executor.config.sandbox, { ...sandbox, mode: 'workspace-write' })
  executor.configure({ sandbox: null })
  assert.equal(executor.config.sandbox, undefined)
})

test('a policy is not kept', (t) => {
  const sandbox = { writable: ['/var'], mode: 'read-only' }
  const executor = anExecutor(t, { sandbox })
  sandbox.writable.push('/usr')
  sandbox.mode = 'danger-full-access'
  executor.configure({ timeoutMs: 5000 })
  assert.deepEqual([executor.config.sandbox.writable, executor.config.sandbox.mode], [['/var'], 'read-only'])
})

for (const [policy, expected] of [
  [5, { ...WRONG_TYPE, message: 'sandbox must be an object, not 5' }],
  ['read-only', { ...WRONG_TYPE, message: /^sandbox must be an object, not "read-only"/ }],
  [{ readOnly: true }, { ...WRONG_TYPE, message: "sandbox has an unknown member 'readOnly'" }],
  [{ mode: 'full' }, { code: 'DSH_E_INVALID', message: /^sandbox\.mode must be 'read-only' or .*, not "full"$/ }],
  [{ network: 'off' }, { code: 'DSH_E_INVALID', message: /^sandbox\.network must be .*, not "off"$/ }],
  [{ workspace: 5 }, { ...WRONG_TYPE, message: 'sandbox.workspace must be a string, not 5' }],
  [{ workspace: '/a\0b' }, { code: 'DSH_E_INVALID', message: /^sandbox\.workspace holds a NUL/ }],
  [{ workspace: 'here' }, { code: 'DSH_E_INVALID', message: 'sandbox.workspace "here": is not absolute' }],
  [{ workspace: '' }, { code: 'DSH_E_INVALID', message: /^sandbox\.workspace "": / }],
  [{ writable: '/var' }, { ...WRONG_TYPE, message: /^sandbox\.writable must be an array of strings, not "\/var"/ }],
  [{ writable: ['/var', 'x'] }, { code: 'DSH_E_INVALID', message: /^sandbox\.writable\[1\] "x"/ }],
  [{ hidden: ['/a\0'] }, { code: 'DSH_E_INVALID', message: /^sandbox\.hidden\[0\] holds a NUL/ }],
  [{ hidden: [undefined] }, WRONG_TYPE],
  [{ backends: 'landlock' }, { ...WRONG_TYPE, message: /^sandbox\.backends must be an array/ }],
  [{ backends: ['docker'] }, { code: 'DSH_E_INVALID', message: /^sandbox\.backends\[0\] must be .*, not "docker"$/ }],
  [{ backends: [undefined] }, { ...WRONG_TYPE, message: /^sandbox\.backends\[0\] / }],
  [{ backends: [] }, { code: 'DSH_E_INVALID', message: /^sandbox\.backends is empty/ }],
  [{ backends: ['runner'] }, { code: 'DSH_E_INVALID', message: /^sandbox\.backends: names the runner/ }],
  [{ gitWorktree: 1 }, { ...WRONG_TYPE, message: 'sandbox.gitWorktree must be a boolean, not 1' }],
  [{ runner: 'firejail' }, { ...WRONG_TYPE, message: /^sandbox\.runner must be an object/ }],
  [{ runner: { failures: ['x'] } }, { code: 'DSH_E_INVALID', message: /^sandbox\.runner\.command is empty/ }],
  [{ runner: { command: ['x'] } }, { code: 'DSH_E_INVALID', message: /^sandbox\.runner\.failures is empty/ }],
  [{ runner: { command: [5], failures: ['x'] } }, { ...WRONG_TYPE, message: /^sandbox\.runner\.command / }],
]) {
  test(`a policy is refused by field and value: ${JSON.stringify(policy)}`, async (t) => {
    const executor = anExecutor(t)
    assert.throws(() => new Executor({ sandbox: policy }), expected)
    await assert.rejects(executor.run('true', { sandbox: policy }), expected)
    assert.throws(() => executor.start('true', { sandbox: policy }), expected)
    assert.throws(() => executor.resolve('true', { sandbox: policy }), expected)
    assert.deepEqual([executor.stats().live, executor.stats().ended], [0, 0])
  })
}

test('null as the policy of a request is refused: it would have to mean full access, or nothing', async (t) => {
  const { executor } = confining(t)
  const expected = { ...WRONG_TYPE, message: 'sandbox must be an object, not null' }
  await assert.rejects(executor.run('true', { sandbox: null }), expected)
})

test("a request can't take a list of the executor's away without knowing", async (t) => {
  const { executor } = confining(t, { writable: ['/var'], hidden: [] })
  for (const name of ['writable', 'hidden']) {
    const expected = { code: 'DSH_E_INVALID', message: new RegExp(`^sandbox\\.${name} is empty`) }
    await assert.rejects(executor.run('true', { sandbox: { [name]: [] } }), expected)
  }
})

test('what no backend can do is an error, and nothing runs', async (t) => {
  const { executor, workspace } = confining(t, { backends: ['landlock'], network: 'loopback' })
  const expected = { name: 'DshError', code: 'DSH_E_SANDBOX_UNAVAILABLE', stage: 'sandbox', message: /loopback/ }
  await assert.rejects(executor.run('touch file'), expected)
  assert.throws(() => executor.start('touch file'), expected)
  assert.deepEqual(readdirSync(workspace), [])
})

test('a runner of the caller stands before the shell and knows the policy', async (t) => {
  const command = aProgram(t, 'runner', 'echo "$1 $DSH_SANDBOX_MODE $DSH_SANDBOX_NETWORK"; shift; exec "$@"')
  const { executor } = confining(t, { runner: { command: [command, '--flag'], failures: ['my-runner: fatal'] } })
  const { stdout, exitCode, sandbox } = await executor.run('echo command; exit 5')
  assert.equal(stdout.text, '--flag workspace-write full\ncommand\n')
  assert.deepEqual([exitCode, sandbox.backend], [5, 'runner'])
})

test('a runner that fails is an error and no exit code, and a fact of a process', async (t) => {
  const command = aProgram(t, 'runner', 'echo "My-Runner: fatal: no luck" >&2; exit 7')
  const { executor } = confining(t, { runner: { command: [command], failures: ['my-runner: fatal'] } })
  const expected = { code: 'DSH_E_SANDBOX_UNAVAILABLE', stage: 'sandbox', message: /no luck/ }
  await assert.rejects(executor.run('true'), expected)
  const process = executor.start('true')
  const { sandbox } = await process.done
  assert.match(sandbox.runnerFailed, /no luck/)
  assert.throws(() => process.result(), expected)
})

test('a linked git worktree commits when it may, and a request may say that it may not', async (t) => {
  const { outside } = aPlace(t)
  const identity = 'git config user.name a && git config user.email a@b'
  const made = await anExecutor(t).run(
    `git init -q r && cd r && ${identity} && git commit -q --allow-empty -m first && git worktree add -q ../w`,
    { cwd: outside },
  )
  assert.equal(made.exitCode, 0, made.stderr.text)
  const cwd = `${outside}/w`
  const sandbox = { mode: 'workspace-write', gitWorktree: true, backends: ['landlock'] }
  const executor = anExecutor(t, { cwd, sandbox })
  const commit = 'git commit -q --allow-empty -m second'
  assert.notEqual((await executor.run(commit, { sandbox: { gitWorktree: false } })).exitCode, 0)
  const allowed = await executor.run(commit)
  assert.equal(allowed.exitCode, 0, allowed.stderr.text)
})

test('the modes that are wider are known', () => {
  assert.deepEqual(widerModes('read-only'), ['workspace-write', 'danger-full-access'])
  assert.deepEqual(widerModes('workspace-write'), ['danger-full-access'])
  assert.deepEqual(widerModes('danger-full-access'), [])
  assert.throws(() => widerModes('full'), { code: 'DSH_E_INVALID', message: /^mode / })
  assert.throws(() => widerModes(), WRONG_TYPE)
})

test('the doctor tells what works, without holding the event loop up', async () => {
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const { text, backends, facts } = await sandboxDoctor()
  clearInterval(timer)
  assert.ok(turns > 0)
  assert.deepEqual(backends.map((report) => report.backend), BACKENDS)
  for (const report of backends) {
    assert.deepEqual(
      { ...report, backend: '', version: 0, tried: '' },
      { backend: '', usable: true, network: true, version: 0, errno: 0, tried: '', message: 'works', remedy: null },
    )
    assert.notEqual(report.tried, '')
  }
  assert.ok(backends[1].version > 0)
  assert.equal(facts.landlock, String(backends[1].version))
  assert.match(facts.bwrap, /^\/.*bwrap$/)
  assert.match(text, /^bubblewrap: works\n/)
})

test('the doctor tells why a backend does not work, and keeps the event loop until then', async (t) => {
  const bwrap = aProgram(t, 'bwrap', "echo 'bwrap: no such luck' >&2; exit 1")
  const { code, stdout, stderr } = await inAProgram(`
    process.env.PATH = ${JSON.stringify(bwrap.replace(/\/bwrap$/, ''))} + ':' + process.env.PATH
    const { Executor, sandboxDoctor } = await import('libdsh')
    const executor = new Executor({ sandbox: {} })
    const { sandbox } = await executor.run('true')
    await executor.shutdown()
    const { backends: [{ usable, network, message, remedy }] } = await sandboxDoctor()
    console.log(JSON.stringify([sandbox.backend, usable, network, message, typeof remedy]))
  `)
  assert.deepEqual([code, stderr], [0, ''])
  const [backend, usable, network, message, remedy] = JSON.parse(stdout)
  assert.deepEqual([backend, usable, network, remedy], ['landlock', false, false, 'string'])
  assert.match(message, /no such luck/)
})

test('a worker may end while the doctor is at work', async () => {
  const worker = new Worker(
    new URL(
      `data:text/javascript,${encodeURIComponent(`
        import { parentPort } from 'node:worker_threads'
        import { sandboxDoctor } from ${JSON.stringify(import.meta.resolve('libdsh'))}
        for (let i = 0; i < 3; i++) sandboxDoctor()
        parentPort.postMessage('asked')
      `)}`,
    ),
  )
  await once(worker, 'message')
  await worker.terminate()
})

test('confined runs and doctors leave no descriptor, thread or file behind', async (t) => {
  const spillDir = aFolder(t)
  const { workspace, executor: first } = confining(t)
  const executor = anExecutor(t, { ...first.config, spillDir })
  const once = async () => {
    const { sandbox } = await executor.run('echo x >$TMPDIR/file', {
      sandbox: { writable: ['/var/tmp'], hidden: ['/etc/shadow'], backends: ['landlock', 'bubblewrap'] },
    })
    assert.equal(sandbox.denied, false)
    await assert.rejects(executor.run('true', { sandbox: { writable: ['/no/such/place'] } }), /writable/)
  }
  await once()
  await sandboxDoctor()
  const before = held()
  for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 5 }, once))
  await Promise.all(Array.from({ length: 5 }, sandboxDoctor))
  await until(() => executor.stats().live === 0, 'nothing alive')
  await collected(
    () => held().threads <= before.threads && held().descriptors <= before.descriptors,
    `threads and descriptors as before: ${JSON.stringify(before)}`,
  )
  await executor.shutdown()
  assert.deepEqual([readdirSync(spillDir), readdirSync(workspace)], [[], []])
})
