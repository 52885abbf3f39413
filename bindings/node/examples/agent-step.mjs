// The step of an agent's loop that runs a command. The model asks for one in JSON, and what it gets back is text:
//
//     echo '{"command": "ls -l | head -3; exit 3", "timeout": 60000}' | node examples/agent-step.mjs
//
// Each line of the input is one request. Ctrl-C ends the command that runs, and the loop goes on with what is left.
import { createInterface } from 'node:readline'

import { DshError, Executor } from 'libdsh'

/**
 * What a model sees of a result: the output, then what there is to say about it, each on a line of its own.
 *
 * @param {import('libdsh').RunResult} result
 */
function render({ stdout, stderr, timedOut, timeoutMs, aborted, exitCode, signal }) {
  const lines = [stdout, stderr].map((stream) => stream.text.replace(/\n$/, '')).filter((text) => text !== '')
  if (lines.length === 0) lines.push('(no output)')
  for (const { omitted, spillPath } of [stdout, stderr]) {
    if (spillPath !== null) lines.push(`[output truncated; full output: ${spillPath}]`)
    else if (omitted > 0) lines.push(`[output truncated; ${omitted} bytes are lost]`)
  }
  if (timedOut) lines.push(`[timed out after ${timeoutMs}ms]`)
  if (aborted) lines.push('[cancelled by the user]')
  if (signal !== null) lines.push(`[killed by signal: ${signal}]`)
  else if (exitCode === null) lines.push('[exit code: unknown]')
  else if (exitCode !== 0) lines.push(`[exit code: ${exitCode}]`)
  return lines.join('\n')
}

/**
 * Runs what the model asks for. What it got wrong is for the model to read and mend; only a broken program throws.
 *
 * @param {Executor} executor
 * @param {string} request
 * @param {AbortSignal} signal
 */
async function step(executor, request, signal) {
  try {
    const { command, workdir, timeout } = JSON.parse(request)
    return render(await executor.run(command, { cwd: workdir, timeout, signal }))
  } catch (error) {
    if (error instanceof DshError) return `[not run: ${error.message} (${error.code})]`
    if (error instanceof SyntaxError || error instanceof TypeError) return `[not run: ${error.message}]`
    throw error
  }
}

// One executor for the whole session: what a command leaves running in the background goes on until its end, and the
// files with long outputs stay until then.
const executor = new Executor({ timeoutMs: 60_000 })
let controller = new AbortController()
process.on('SIGINT', () => controller.abort())
try {
  for await (const request of createInterface({ input: process.stdin })) {
    controller = new AbortController()
    console.log(await step(executor, request, controller.signal))
  }
} finally {
  await executor.shutdown()
}
