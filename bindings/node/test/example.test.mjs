import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { text } from 'node:stream/consumers'

const EXAMPLE = new URL('../examples/agent-step.mjs', import.meta.url).pathname

/** Runs the example with these requests. */
async function play(requests) {
  const child = spawn(process.execPath, [EXAMPLE], { stdio: ['pipe', 'pipe', 'inherit'] })
  const output = text(child.stdout)
  for (const request of requests) {
    child.stdin.write(`${typeof request === 'string' ? request : JSON.stringify(request)}\n`)
  }
  child.stdin.end()
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
  return (await output).trimEnd()
}

for (const [what, request, expected] of [
  ['output and nothing more', { command: 'echo out; echo err >&2' }, /^out\nerr$/],
  ['that there was none', { command: 'true' }, /^\(no output\)$/],
  ['an exit code', { command: 'echo x; exit 3' }, /^x\n\[exit code: 3\]$/],
  ['a timeout', { command: 'sleep 600', timeout: 300 }, /\n\[timed out after 300ms\]\n\[killed by signal: SIGTERM\]$/],
  ['a signal', { command: 'kill -KILL $$' }, /^\(no output\)\n\[killed by signal: SIGKILL\]$/],
  ['where the whole output is', { command: 'seq 100000' }, /\n100000\n\[output truncated; full output: \/.*\]$/],
  ['why nothing was run', { command: '', workdir: '/no/such' }, /^\[not run: .*such.* \(DSH_E_WORKDIR_MISSING\)\]$/],
  ['what it got wrong', { command: 5 }, /^\[not run: command must be a string/],
  ['that it made no sense', '{', /^\[not run: /],
]) {
  test(`the model sees ${what}`, async () => assert.match(await play([request]), expected))
}

test('Ctrl-C ends the command, and the loop goes on', async () => {
  const output = await play([{ command: 'echo x; kill -INT $PPID; sleep 600' }, { command: 'echo next' }])
  assert.equal(output, 'x\n[cancelled by the user]\n[killed by signal: SIGTERM]\nnext')
})
