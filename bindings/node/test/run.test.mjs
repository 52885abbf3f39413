import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { Executor, version } from 'libdsh'

import { aFolder, anExecutor, isAlive, until } from './support.mjs'

test('a result has the exit code and both streams, as bytes and as text', async (t) => {
  const result = await anExecutor(t).run('printf "out\\n"; printf "err\\n" >&2; exit 3')
  assert.equal(result.exit, 'code')
  assert.equal(result.exitCode, 3)
  assert.equal(result.signal, null)
  assert.deepEqual(result.stdout.bytes, Buffer.from('out\n'))
  assert.equal(result.stdout.text, 'out\n')
  assert.equal(`${result.stderr}`, 'err\n')
  assert.equal(result.stdout.total, 4)
  assert.deepEqual([result.timedOut, result.aborted, result.cause, result.stoppedBy], [false, false, null, null])
  assert.ok(result.durationMs > 0)
  assert.ok(result.maxRssBytes > 0)
})

test('a command that prints nothing gives empty streams', async (t) => {
  const { stdout, stderr } = await anExecutor(t).run('true')
  assert.equal(stdout.bytes.length, 0)
  assert.equal(stdout.text, '')
  assert.equal(stderr.text, '')
})

test('a signal is told by its name, and is no exit code', async (t) => {
  const executor = anExecutor(t)
  const killed = await executor.run('kill -SEGV $$')
  assert.deepEqual([killed.exit, killed.exitCode, killed.signal], ['signal', null, 'SIGSEGV'])
  assert.deepEqual([killed.timedOut, killed.aborted], [false, false])
  assert.equal((await executor.run('kill -ABRT $$')).signal, 'SIGABRT')
  assert.equal((await executor.run('exit 137')).exitCode, 137)
})

test('a timeout is the first cause even when the command then exits with 0', async (t) => {
  const result = await anExecutor(t).run('trap "exit 0" TERM; while :; do sleep 0.01; done', { timeout: 100 })
  assert.deepEqual([result.timedOut, result.aborted, result.cause], [true, false, 'timeout'])
  assert.equal(result.exitCode, 0)
  assert.equal(result.stopStage, 'term')
  assert.equal(result.timeoutMs, 100)
})

test('a timeout ends what ignores SIGTERM before the result is there', async (t) => {
  const executor = anExecutor(t, { graceMs: 100 })
  const result = await executor.run('(trap "" TERM; echo $BASHPID; exec sleep 600) & wait', { timeout: 300 })
  assert.equal(result.cause, 'timeout')
  assert.equal(result.stopStage, 'kill')
  assert.deepEqual(result.survivors, [])
  assert.equal(isAlive(Number(result.stdout.text)), false)
})

test('a timeout is capped by maxTimeoutMs, and the default is too', async (t) => {
  const executor = anExecutor(t, { maxTimeoutMs: 1500 })
  assert.equal((await executor.run('true')).timeoutMs, 1500)
  assert.equal((await executor.run('true', { timeout: 2 ** 70 })).timeoutMs, 1500)
  assert.equal((await executor.run('true', { timeout: Infinity })).timeoutMs, 1500)
  assert.equal((await executor.run('true', { timeout: 2 ** 32 + 1 })).timeoutMs, 1500)
  assert.equal((await executor.run('sleep 0.05', { timeout: 1200.5 })).timeoutMs, 1201)
})

test('stdoutMaxBytes is the budget of stdout alone', async (t) => {
  const executor = anExecutor(t, { maxOutputBytes: 10 })
  const result = await executor.run('seq 1000; seq 1000 >&2', { stdoutMaxBytes: 100_000 })
  assert.equal(result.stdout.omitted, 0)
  assert.equal(result.stdout.bytes.length, 3893)
  assert.equal(result.stderr.bytes.length, 10)
  assert.equal(result.stderr.omitted, 3883)
})

test('a stream that is too long for memory is in a file as a whole', async (t) => {
  const executor = anExecutor(t, { maxOutputBytes: 100, spillDir: aFolder(t) })
  const { stdout } = await executor.run('seq 1 10000')
  assert.equal(stdout.total, 48_894)
  assert.equal(stdout.omitted, stdout.total - stdout.bytes.length)
  assert.ok(stdout.text.endsWith('9999\n10000\n'))
  assert.equal(statSync(stdout.spillPath).mode & 0o777, 0o600)
  assert.equal(readFileSync(stdout.spillPath, 'utf8').split('\n').length, 10_001)
  await executor.shutdown()
  assert.equal(existsSync(stdout.spillPath), false)
})

test('a spill file that can not be made is told, and the tail is there all the same', async (t) => {
  const spillDir = join(aFolder(t), 'none', 'such')
  const { stdout } = await anExecutor(t, { maxOutputBytes: 100, spillDir }).run('seq 1 10000')
  assert.equal(stdout.spillPath, null)
  assert.match(stdout.spillError, /./)
  assert.ok(stdout.text.endsWith('10000\n'))
})

test('head and tail are kept with the place of the gap', async (t) => {
  const { stdout } = await anExecutor(t, { maxOutputBytes: 20, keep: 'head-tail' }).run('printf %050d 1')
  assert.equal(stdout.omitted, 30)
  assert.equal(stdout.omittedAt, 10)
})

test('output is bytes: what is no UTF-8 is there as it was', async (t) => {
  const { stdout } = await anExecutor(t).run("printf 'a\\xff\\0b'")
  assert.deepEqual([...stdout.bytes], [0x61, 0xff, 0, 0x62])
  assert.equal(stdout.text, 'a\ufffd\0b')
})

test('commands may be bytes, of any length', async (t) => {
  const executor = anExecutor(t)
  const bytes = Buffer.from("printf 'caf\\351' #\xe9", 'latin1')
  assert.deepEqual((await executor.run(bytes)).stdout.bytes, Buffer.from('caf\xe9', 'latin1'))
  assert.equal((await executor.run(`: ${'x'.repeat(300_000)}; echo done`)).stdout.text, 'done\n')
  assert.equal((await executor.run(new Uint8Array(Buffer.from('echo €')))).stdout.text, '€\n')
})

test('without input stdin is /dev/null, with an empty one it is an empty pipe', async (t) => {
  const executor = anExecutor(t)
  const asked = 'readlink /proc/self/fd/0; cat'
  assert.equal((await executor.run(asked)).stdout.text, '/dev/null\n')
  assert.match((await executor.run(asked, { input: '' })).stdout.text, /^pipe:/)
})

test('input is text or bytes, and how much was taken is told', async (t) => {
  const executor = anExecutor(t)
  const text = await executor.run('cat', { input: 'grüße' })
  assert.equal(text.stdout.text, 'grüße')
  assert.equal(text.inputWritten, 7)
  const much = Buffer.alloc(4 << 20, 'x')
  const counted = await executor.run('wc -c', { input: much })
  assert.equal(counted.stdout.text.trim(), String(much.length))
  const unread = await executor.run('exit 3', { input: much })
  assert.equal(unread.exitCode, 3)
  assert.ok(unread.inputWritten < much.length)
})

test('env sets and removes, dshEnv sets what is reserved', async (t) => {
  process.env.LIBDSH_TEST_GONE = 'here'
  t.after(() => delete process.env.LIBDSH_TEST_GONE)
  const { stdout } = await anExecutor(t).run('echo "$A|${LIBDSH_TEST_GONE-unset}|${HOME-unset}|$DSH_JOB"', {
    env: { A: 'x=y z', LIBDSH_TEST_GONE: undefined, HOME: null },
    dshEnv: { DSH_JOB: '7' },
  })
  assert.equal(stdout.text, 'x=y z|unset|unset|7\n')
})

test('credentials of the host are left out, and their names told', async (t) => {
  process.env.LIBDSH_TEST_API_KEY = 'secret'
  process.env.LIBDSH_TEST_OTHER = 'plain'
  t.after(() => {
    delete process.env.LIBDSH_TEST_API_KEY
    delete process.env.LIBDSH_TEST_OTHER
  })
  const asked = 'echo "${LIBDSH_TEST_API_KEY-none} ${LIBDSH_TEST_OTHER-none}"'
  const result = await anExecutor(t).run(asked)
  assert.equal(result.stdout.text, 'none plain\n')
  assert.ok(result.scrubbed.includes('LIBDSH_TEST_API_KEY'))
  const allowing = anExecutor(t, { envAllow: ['LIBDSH_TEST_*_KEY'], envDeny: ['*_OTHER'] })
  assert.equal((await allowing.run(asked)).stdout.text, 'secret none\n')
  assert.equal((await anExecutor(t, { inheritEnv: false }).run(asked)).stdout.text, 'none none\n')
})

test('a relative working directory is taken from the one of the executor', async (t) => {
  const folder = aFolder(t)
  const executor = anExecutor(t, { cwd: folder })
  await executor.run('mkdir below')
  assert.equal((await executor.run('pwd', { cwd: 'below' })).stdout.text, `${folder}/below\n`)
})

test('merged streams keep their order', async (t) => {
  const command = 'for i in 1 2 3; do echo o$i; echo e$i >&2; done'
  const { stdout, stderr } = await anExecutor(t).run(command, { mergeStderr: true })
  assert.equal(stdout.text, 'o1\ne1\no2\ne2\no3\ne3\n')
  assert.equal(stderr.total, 0)
})

test('what outlives its command is listed, and goes on', async (t) => {
  const result = await anExecutor(t).run('sleep 600 >/dev/null 2>&1 & echo $!')
  const pid = Number(result.stdout.text)
  assert.deepEqual(result.survivors.map((survivor) => survivor.pid), [pid])
  assert.ok(result.survivors[0].startTime > 0)
  assert.equal(isAlive(pid), true)
})

test('what outlives its command is ended first when the request says so', async (t) => {
  const result = await anExecutor(t).run('sleep 600 & echo $!', { survivors: 'kill' })
  assert.deepEqual(result.survivors, [])
  assert.deepEqual([result.cause, result.stoppedBy, result.exitCode], [null, 'survivors', 0])
  assert.equal(isAlive(Number(result.stdout.text)), false)
})

test('a held pipe does not hold the result for longer than the drain', async (t) => {
  const result = await anExecutor(t, { drainMs: 100 }).run('sleep 600 & echo $!')
  assert.equal(result.pipesHeld, true)
  assert.deepEqual(result.heldBy, [Number(result.stdout.text)])
  assert.equal(result.exitCode, 0)
})

test('what a command left behind dies with the executor', async (t) => {
  const executor = anExecutor(t, { drainMs: 50 })
  const pid = Number((await executor.run('setsid sleep 600 & echo $!')).stdout.text)
  await executor.shutdown()
  await until(() => !isAlive(pid), `the end of ${pid}`)
})

test('the command is started before run returns, so that a change of budgets comes too late for it', async (t) => {
  const executor = anExecutor(t)
  const before = executor.run('true')
  executor.configure({ timeoutMs: 5000 })
  const after = executor.run('true')
  assert.equal((await before).timeoutMs, 120_000)
  assert.equal((await after).timeoutMs, 5000)
})

test('many runs at the same time have each their own output', async (t) => {
  const executor = anExecutor(t)
  const results = await Promise.all(Array.from({ length: 40 }, (_, i) => executor.run(`echo ${i}`, { tag: i })))
  assert.deepEqual(results.map((result) => Number(result.stdout.text)), Array.from({ length: 40 }, (_, i) => i))
  assert.equal(new Set(results.map((result) => result.id)).size, 40)
})

test('a shell may be named by its path', async (t) => {
  const shell = join(aFolder(t), 'shell')
  writeFileSync(shell, '#!/bin/bash\necho "mine: $*"\n')
  chmodSync(shell, 0o755)
  assert.equal((await anExecutor(t, { shell }).run('x')).stdout.text, 'mine: -c x\n')
})

test('the version is that of the library', () => {
  assert.match(version, /^\d+\.\d+\.\d+$/)
  assert.equal(typeof Executor, 'function')
})
