import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import Jobs from '@deepseek-ai/dsh-jobs-local'
import * as ShellEnv from '@deepseek-ai/dsh-shell-env'
import SystemPrompt from '@deepseek-ai/dsh-system-prompt'
import * as BashTool from '@deepseek-ai/dsh-tool-bash'
import * as JobTools from '@deepseek-ai/dsh-tool-jobs'
import Tools from '@deepseek-ai/dsh-tools'

import { appears } from './harness/cases.mjs'
import { compose } from './harness/composition.mjs'
import { executors, Original, Ours } from './harness/executors.mjs'
import { isAlive, until } from './harness/processes.mjs'

/** A composition up to the tools that a model sees, and `call`, which is what the agent loop does with a tool call. */
async function withTools(t, Shell, config = {}) {
  const composition = await compose(Shell, {
    config,
    t,
    rows: [
      [SystemPrompt, {}],
      [Tools, {}],
      [ShellEnv, { dshHome: '/srv/dsh' }],
      [Jobs, {}],
      [JobTools, {}],
      [BashTool, {}],
    ],
  })
  const tools = composition.ctx.get('tools')
  let calls = 0
  const call = async (name, args, signal = new AbortController().signal) => {
    return tools.execute({ callId: `call-${++calls}`, name, arguments: args, signal })
  }
  return { ...composition, tools, call }
}

const bash = (command, more = {}) => ['bash', { command, description: 'Do what the test wants', ...more }]

/** What a model sees of a call, without the name of a spill file. */
const seen = ({ isError, content }) => ({
  isError,
  text: content.map(({ text }) => text.replace(/(full output: ).*?\]/, '$1PATH]')).join('\n'),
})

/** What the first background job says until it has said `word`. */
async function outputUntil(call, word) {
  let text = ''
  await until(`${word} from the job`, async () => {
    text += seen(await call('job_output', { job_id: 'bash-1' })).text
    return text.includes(word)
  })
  return text
}

const calls = {
  output: bash('echo hello'),
  'no output': bash('true'),
  'both streams': bash('echo out; echo err >&2'),
  'a non-zero exit': bash('echo out; exit 3'),
  'a signal': bash('kill -KILL $$'),
  'a timeout': bash('echo before; exec sleep 60', { timeoutMs: 300 }),
  'long output': bash('seq 1 3000'),
  'a working directory': bash('pwd', { workdir: '/usr' }),
  'managed variables': bash('echo $DSH_HOME $DSH_SHELL'),
  'an empty command': bash('  '),
  'a bad timeout': bash('true', { timeoutMs: 0 }),
  'permissions that the executor has no notion of': bash('true', {
    sandbox_permissions: 'workspace-write',
    justification: 'because',
  }),
}

for (const [name, [tool, args]] of Object.entries(calls)) {
  test(`a model sees the same as with the original: ${name}`, async (t) => {
    const texts = []
    for (const Shell of [Original, Ours]) {
      const { call } = await withTools(t, Shell, { maxOutputBytes: 1_000 })
      texts.push(seen(await call(tool, args)))
    }
    assert.deepEqual(texts[1], texts[0])
  })
}

test('a model sees what is wrong with a working directory, where the original blames the shell', async (t) => {
  const { call } = await withTools(t, Ours)
  const { isError, text } = seen(await call(...bash('true', { workdir: '/nonexistent' })))
  assert.equal(isError, true)
  assert.match(text, /^Error: spawn bash ENOENT: .*\/nonexistent/)
})

test('the tools offered to a model are those of the original', async (t) => {
  const schemas = []
  for (const Shell of [Original, Ours]) {
    const { tools } = await withTools(t, Shell)
    schemas.push(tools.schemas())
  }
  assert.deepEqual(schemas[1], schemas[0])
})

for (const [name, Shell] of executors) {
  test(`${name}: a background job is started, read, waited for and listed`, async (t) => {
    const place = mkdtempSync(join(tmpdir(), 'harness-'))
    t.after(() => rmSync(place, { recursive: true }))
    const { call } = await withTools(t, Shell)
    const started = await call(
      ...bash('echo one; touch up; until [ -e go ]; do sleep 0.02; done; echo two; exit 3', {
        run_in_background: true,
        workdir: place,
      }),
    )
    assert.deepEqual(seen(started), { isError: false, text: 'started background job bash-1' })
    await appears(join(place, 'up'))
    const text = await outputUntil(call, 'one\n')
    assert.match(text, /one\n\[status: running\]$/)
    await call(...bash('touch go', { workdir: place }))
    assert.deepEqual(
      seen(await call('job_output', { job_id: 'bash-1', wait: true })).text,
      'two\n[status: completed, exit code: 3]',
    )
    assert.match(seen(await call('job_list', {})).text, /^bash-1 \[bash\] completed/)
  })

  test(`${name}: a background job is killed`, async (t) => {
    const { call } = await withTools(t, Shell)
    await call(...bash('echo up; exec sleep 300', { run_in_background: true }))
    assert.equal(seen(await call('job_kill', { job_id: 'bash-1' })).text, 'requested cancellation of job bash-1')
    assert.match(
      seen(await call('job_output', { job_id: 'bash-1', wait: true })).text,
      /\[status: killed, signal: SIGTERM\]$/,
    )
  })

  test(`${name}: a background job that can't start says why, once`, async (t) => {
    const { call } = await withTools(t, Shell)
    await call(...bash('true', { run_in_background: true, workdir: '/nonexistent' }))
    const first = seen(await call('job_output', { job_id: 'bash-1', wait: true })).text
    assert.match(first, /^\[stderr\]\nspawn failed: Error: spawn bash ENOENT/)
    assert.match(first, /\[status: killed, killed before exit\]$/)
    assert.equal(
      seen(await call('job_output', { job_id: 'bash-1' })).text,
      '(no new output)\n[status: killed, killed before exit]',
    )
  })

  test(`${name}: a cancelled tool call ends its command`, async (t) => {
    const place = mkdtempSync(join(tmpdir(), 'harness-'))
    t.after(() => rmSync(place, { recursive: true }))
    const { call } = await withTools(t, Shell)
    const controller = new AbortController()
    const running = call(...bash('touch up; exec sleep 300', { workdir: place }), controller.signal)
    await appears(join(place, 'up'))
    controller.abort()
    const { isError, text } = seen(await running)
    assert.deepEqual({ isError, text }, { isError: true, text: 'Error: tool call aborted' })
  })

  test(`${name}: the end of the composition ends its jobs`, async (t) => {
    const { call, end } = await withTools(t, Shell)
    await call(...bash('echo $$.; exec sleep 300', { run_in_background: true }))
    const text = await outputUntil(call, '.')
    const pid = Number(/(\d+)\./.exec(text)[1])
    assert.ok(isAlive(pid))
    await end()
    assert.equal(isAlive(pid), false)
  })
}
