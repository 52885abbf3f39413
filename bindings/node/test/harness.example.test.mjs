import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const example = fileURLToPath(new URL('../examples/harness.mjs', import.meta.url))

/** What the example prints, without the calls of the model. */
async function play(...commands) {
  const { stdout } = await promisify(execFile)(process.execPath, [example, ...commands])
  return stdout.replace(/^> .*\n/gm, '')
}

test('the example shows a model what it asked for', async () => {
  assert.equal(
    await play('echo out; echo err >&2; exit 3', 'true'),
    'out\n[stderr]\nerr\n[exit code: 3]\n\n(no output)\n\n',
  )
})

test('the example without a wish shows one of everything', async () => {
  const output = await play()
  for (const line of [
    /^\[exit code: 3\]$/m,
    /^\(no output\)$/m,
    /^\[timed out after 500ms\]\n\[killed by signal: SIGTERM\]$/m,
    /^\[output truncated; full output: \/.*\]$/m,
    /^Error: spawn bash ENOENT: .*"\/no\/such\/place"/m,
    /^started background job bash-1$/m,
    /^\[status: killed, signal: SIGTERM\]$/m,
  ]) {
    assert.match(output, line)
  }
})
