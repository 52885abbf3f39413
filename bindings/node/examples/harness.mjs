/**
 * One step of an agent's loop in the DeepSeek Harness, with libdsh as the shell service: what a model asks for, and the text
 * that it sees.
 *
 *     node examples/harness.mjs
 *     node examples/harness.mjs 'ls -l /; exit 3'
 */
import { Context } from '@deepseek-ai/cordis'
import Jobs from '@deepseek-ai/dsh-jobs-local'
import * as ShellEnv from '@deepseek-ai/dsh-shell-env'
import Subprocess from '@deepseek-ai/dsh-subprocess-local'
import SystemPrompt from '@deepseek-ai/dsh-system-prompt'
import * as BashTool from '@deepseek-ai/dsh-tool-bash'
import * as JobTools from '@deepseek-ai/dsh-tool-jobs'
import Tools from '@deepseek-ai/dsh-tools'
import Shell from 'libdsh/harness'

const ctx = new Context()
await ctx.plugin(Subprocess)
// The one row that changes: it was `@deepseek-ai/dsh-bash-local`.
await ctx.plugin(Shell, { timeoutMs: 2_000, maxOutputBytes: 2_000 })
for (const plugin of [SystemPrompt, Tools, ShellEnv, Jobs, JobTools, BashTool]) await ctx.plugin(plugin, {})

let calls = 0

/**
 * What the loop does with a tool call of the model.
 *
 * @param {string} name
 * @param {Record<string, unknown>} args
 */
async function call(name, args) {
  console.log(`> ${name} ${JSON.stringify(args)}`)
  const { signal } = new AbortController()
  const callId = /** @type {import('@deepseek-ai/dsh-tools').ToolExecutionInput['callId']} */ (`call-${++calls}`)
  const { content } = await ctx.tools.execute({ callId, name, arguments: args, signal })
  for (const block of content) if (block.type === 'text') console.log(`${block.text}\n`)
}

const wanted = process.argv.slice(2)
if (wanted.length > 0) {
  for (const command of wanted) await call('bash', { command, description: 'Run what was asked for' })
} else {
  await call('bash', { command: 'echo out; echo err >&2; exit 3', description: 'Fail with output' })
  await call('bash', { command: 'true', description: 'Say nothing' })
  await call('bash', { command: 'echo waiting; sleep 60', description: 'Wait too long', timeoutMs: 500 })
  await call('bash', { command: 'seq 1 2000 | tail -n 700', description: 'Print a lot' })
  await call('bash', { command: 'pwd', description: 'Look around', workdir: '/no/such/place' })
  await call('bash', { command: 'echo up; exec sleep 60', description: 'Start a server', run_in_background: true })
  await call('job_kill', { job_id: 'bash-1' })
  await call('job_output', { job_id: 'bash-1', wait: true })
}

await ctx.fiber.dispose()
