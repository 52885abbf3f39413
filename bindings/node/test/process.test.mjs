import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

import { Process } from 'libdsh'

import { aFolder, anExecutor, isAlive, until } from './support.mjs'

/** Collects what a process says, up to a point. */
async function readUntil(process, text) {
  let seen = ''
  for await (const chunk of process) {
    seen += chunk.text
    if (seen.includes(text)) return seen
  }
  throw new Error(`${JSON.stringify(text)} never came, but ${JSON.stringify(seen)}`)
}

test('a process is there at once, and done tells how it ended', async (t) => {
  const process = anExecutor(t).start('read line; echo "got $line"; exit 3', { input: 'x\n', tag: 5 })
  assert.ok(process instanceof Process)
  assert.ok(process.pid > 1)
  assert.equal(process.tag, 5)
  const info = await process.done
  assert.deepEqual([info.status, info.exitCode, info.signal, info.tag], ['completed', 3, null, 5])
  assert.deepEqual([info.pid, info.id], [process.pid, process.id])
  assert.deepEqual([process.status, process.exitCode, process.signal], ['completed', 3, null])
  assert.equal(info.stdoutTotal, 6)
  assert.equal(process.result().stdout.text, 'got x\n')
})

test('while it runs it has neither exit code nor signal nor result', async (t) => {
  const process = anExecutor(t).start('sleep 600')
  assert.deepEqual([process.status, process.exitCode, process.signal], ['running', null, null])
  assert.equal(process.info().exit, null)
  assert.throws(() => process.result(), { code: 'DSH_E_TIMED_OUT' })
})

test('no timeout applies', async (t) => {
  const info = await anExecutor(t, { timeoutMs: 50 }).start('sleep 0.3', { timeout: 50 }).done
  assert.deepEqual([info.status, info.timedOut], ['completed', false])
})

test('kill answers true once, and done tells of it', async (t) => {
  const process = anExecutor(t).start('sleep 600')
  assert.equal(process.kill(), true)
  assert.equal(process.kill(), false)
  const info = await process.done
  assert.deepEqual([info.status, info.signal, info.aborted, info.cause], ['killed', 'SIGTERM', true, 'kill'])
  assert.equal(process.kill(), false)
})

test('kill of what has ended by itself answers false', async (t) => {
  const process = anExecutor(t).start('true')
  await process.done
  assert.equal(process.kill(), false)
  assert.equal(process.status, 'completed')
})

test('kill ends what ignores SIGTERM, and what left the session', async (t) => {
  const process = anExecutor(t, { graceMs: 100 }).start('trap "" TERM; setsid sleep 600 & echo $!; sleep 600')
  const escaped = Number(await readUntil(process, '\n'))
  process.kill()
  await process.quiescent
  assert.equal(isAlive(escaped), false)
  assert.equal(process.info().stopStage, 'kill')
  assert.equal(process.info().quiescent, true)
})

test('done and quiescent may be asked for at any time and any number of times', async (t) => {
  const process = anExecutor(t).start('true')
  await process.quiescent
  assert.equal(process.quiescent, process.quiescent)
  assert.equal(process.done, process.done)
  const infos = await Promise.all([process.done, process.done, process.wait(), process.wait(0)])
  for (const info of infos) assert.equal(info.exitCode, 0)
})

test('wait gives up without doing anything to the process', async (t) => {
  const process = anExecutor(t).start('sleep 600')
  await assert.rejects(process.wait(20), { code: 'DSH_E_TIMED_OUT', message: /20 ms/ })
  await assert.rejects(process.wait(0), { code: 'DSH_E_TIMED_OUT' })
  assert.equal(process.status, 'running')
  await assert.rejects(process.wait(-1), { code: 'DSH_E_INVALID', message: /^ms .* not -1/ })
  await assert.rejects(process.wait(NaN), { code: 'DSH_E_INVALID' })
  await assert.rejects(process.wait('1'), { code: 'ERR_INVALID_ARG_TYPE' })
  // Longer than any timer of Node goes: it must not fire at once.
  const waiting = process.wait(2 ** 40)
  setTimeout(() => process.kill(), 50)
  assert.equal((await waiting).status, 'killed')
})

test('a consuming read gives nothing twice', async (t) => {
  const process = anExecutor(t).start('echo one; read line; echo two; echo three >&2', { input: '' })
  await process.done
  const chunk = process.readOutput()
  assert.equal(chunk.text, 'one\ntwo\n[stderr]\nthree\n')
  assert.deepEqual([chunk.end, chunk.lossy], [true, false])
  assert.equal(process.readOutput().bytes.length, 0)
  assert.equal(process.readOutput().end, true)
})

test('iteration gives the output as it comes, until its end', async (t) => {
  const process = anExecutor(t).start('echo one; sleep 0.05; echo two >&2; sleep 0.05; echo three')
  const chunks = []
  for await (const chunk of process) chunks.push(chunk.text)
  assert.ok(chunks.length > 1)
  assert.equal(chunks.join(''), 'one\n[stderr]\ntwo\nthree\n')
})

test('iteration tells what it has missed', async (t) => {
  const executor = anExecutor(t, { maxOutputBytes: 1000, spillDir: aFolder(t) })
  const process = executor.start('seq 1 100000')
  await process.done
  let [missing, bytes, path] = [0, 0, null]
  for await (const chunk of process) {
    missing += chunk.stdoutMissing
    bytes += chunk.bytes.length
    path = chunk.stdoutSpillPath
    assert.equal(chunk.lossy, true)
  }
  assert.equal(missing + bytes, process.info().stdoutTotal)
  assert.equal(readFileSync(path).length, process.info().stdoutTotal)
  assert.equal(process.spillPath('stdout'), path)
  assert.equal(process.spillPath('stderr'), null)
  assert.ok(existsSync(path))
})

test('iteration never splits a character', async (t) => {
  const process = anExecutor(t).start("printf '\\xe2\\x82'; sleep 0.1; printf '\\xac\\n'")
  let text = ''
  for await (const chunk of process) text += chunk.text
  assert.equal(text, '€\n')
})

test('an endless producer leaves the event loop to others', async (t) => {
  const process = anExecutor(t).start('yes')
  let turns = 0
  let turning = setImmediate(function turn() {
    turns++
    turning = setImmediate(turn)
  })
  let chunks = 0
  let before = -1
  for await (const chunk of process) {
    assert.ok(chunk.bytes.length > 0)
    assert.ok(turns > before, `no turn of the event loop before chunk ${chunks}`)
    before = turns
    // So slow a reader that there is always something new already.
    const start = performance.now()
    while (performance.now() - start < 10);
    if (++chunks === 50) break
  }
  clearImmediate(turning)
  assert.equal(process.kill(), true)
})

test('a loop that is left early leaves the process alone', async (t) => {
  const process = anExecutor(t).start('echo one; sleep 600')
  for await (const chunk of process) {
    assert.equal(chunk.text, 'one\n')
    break
  }
  assert.equal(process.status, 'running')
})

test('streams are read by offset, by any number of readers, also after the end', async (t) => {
  const process = anExecutor(t).start('printf 0123456789; printf abc >&2')
  await process.done
  for (let reader = 0; reader < 2; reader++) {
    const first = process.readStream('stdout', 0, 4)
    assert.deepEqual([first.text, first.start, first.next, first.end], ['0123', 0, 4, false])
    const second = process.readStream('stdout', first.next)
    assert.deepEqual([second.text, second.next, second.end, second.lossy], ['456789', 10, true, false])
    assert.equal(process.readStream('stderr').text, 'abc')
  }
  assert.equal(process.readStream('stdout', 99).bytes.length, 0)
  assert.equal(process.readStream('stdout', 0, 0).bytes.length, 0)
  assert.equal(process.readStream('stdout', 0, Number.MAX_SAFE_INTEGER).text, '0123456789')
  assert.throws(() => process.readStream('stdin'), { code: 'DSH_E_INVALID', message: /stream .* "stdin"/ })
  assert.throws(() => process.readStream('stdout', -1), { code: 'DSH_E_INVALID', message: /^offset / })
  assert.throws(() => process.readStream('stdout', 0, 1.5), { code: 'DSH_E_INVALID', message: /^maxBytes / })
})

test('a read by offset tells what has slid out of memory', async (t) => {
  const process = anExecutor(t, { maxOutputBytes: 100 }).start('seq 1 1000')
  await process.done
  const reading = process.readStream('stdout', 0)
  assert.equal(reading.lossy, true)
  assert.equal(reading.missing, reading.start)
  assert.equal(reading.start + reading.bytes.length, 3893)
})

test('events tell what happens, and what has happened, without consuming anything', async (t) => {
  const process = anExecutor(t).start('echo one; sleep 0.05; echo two')
  const events = []
  let offset = 0
  let text = ''
  for await (const event of process.events()) {
    events.push(event)
    const reading = process.readStream('stdout', offset)
    offset = reading.next
    text += reading.text
  }
  assert.equal(text, 'one\ntwo\n')
  assert.ok(events.filter((event) => event === 'output').length >= 2)
  assert.deepEqual(events.filter((event) => event !== 'output'), ['exit', 'settled', 'quiescent'])
  const again = []
  for await (const event of process.events()) again.push(event)
  assert.deepEqual(again, ['output', 'exit', 'settled', 'quiescent'])
  assert.equal(process.readOutput().text, 'one\ntwo\n')
})

test('several followers of one process all see everything', async (t) => {
  const process = anExecutor(t).start('for i in 1 2 3 4 5; do echo $i; sleep 0.02; done')
  const follow = async () => {
    let [offset, text] = [0, '']
    for await (const event of process.events()) {
      const reading = process.readStream('stdout', offset)
      offset = reading.next
      text += reading.text
      if (event === 'settled') break
    }
    return text
  }
  const texts = await Promise.all([follow(), follow(), follow(), process.done.then(follow)])
  assert.deepEqual(texts, Array(4).fill('1\n2\n3\n4\n5\n'))
})

test('what outlives the command is listed, and kill ends it too', async (t) => {
  const process = anExecutor(t, { drainMs: 50 }).start('sleep 600 & echo $!')
  const info = await process.done
  const pid = Number(process.readOutput().text)
  assert.deepEqual([info.status, info.survivors, info.pipesHeld, info.heldBy], ['completed', 1, true, 1])
  assert.deepEqual(process.survivors().map((survivor) => survivor.pid), [pid])
  assert.deepEqual(process.heldBy(), [pid])
  assert.equal(process.kill(), false)
  await process.quiescent
  assert.equal((await process.wait()).stoppedBy, 'kill')
  assert.deepEqual(process.survivors(), [])
  assert.equal(isAlive(pid), false)
})

test('asyncDispose kills and waits until nothing is alive', async (t) => {
  const process = anExecutor(t, { graceMs: 100 }).start('trap "" TERM; echo up; while :; do sleep 0.01; done')
  await readUntil(process, 'up')
  await process[Symbol.asyncDispose]()
  assert.equal(process.info().quiescent, true)
  assert.equal(process.status, 'killed')
  await process[Symbol.asyncDispose]()
})

test('a process whose handle is forgotten goes on', async (t) => {
  const folder = aFolder(t)
  const executor = anExecutor(t)
  executor.start(`sleep 0.2; echo done >${folder}/file`)
  await until(() => existsSync(`${folder}/file`) && readFileSync(`${folder}/file`, 'utf8') === 'done\n', 'the file')
})
