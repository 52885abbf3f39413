// Compiled, not run: the declared types against the published ones, as programs would use them.
import { Context } from '@deepseek-ai/cordis'
import Original, * as original from '@deepseek-ai/dsh-bash-local'
import type { ShellExecutor, ShellProcess, ShellRunResult } from '@deepseek-ai/dsh-shell'
import Shell, { DshBashExecutor, ENV_OVERRIDES, LocalBashExecutor, assertServiceableBashConfig } from 'libdsh/harness'
import type { Config } from 'libdsh/harness'

const ctx = new Context()
ctx.plugin(Shell, { timeoutMs: 1_000 })
ctx.plugin(LocalBashExecutor, {})

// The two stand in for each other, as classes, configs and modules.
const constructors: (new (ctx: Context, config: Config) => ShellExecutor)[] = [Original, Shell, DshBashExecutor]
const config: Config = {} satisfies original.Config
const theirs: original.Config = config
const exported: Pick<typeof original, 'ENV_OVERRIDES' | 'assertServiceableBashConfig'> = {
  ENV_OVERRIDES,
  assertServiceableBashConfig,
}
const schema: typeof Original.Config = Shell.Config

// A subclass as for the original.
class Confined extends DshBashExecutor {
  static override inject = ['sandbox']

  override async run(spec: Parameters<ShellExecutor['run']>[0]): Promise<ShellRunResult> {
    const timeout: number = this.config.timeoutMs
    return this.runArgv(spec, ['timeout', String(timeout), 'bash', '-c', spec.command])
  }

  override start(spec: Parameters<ShellExecutor['start']>[0]): ShellProcess {
    return this.startArgv(spec, ['bash', '-c', spec.command])
  }

  protected override onProcessDone(process: ShellProcess, stderr: string, failed: boolean, error?: unknown): void {
    process.sandbox = { mode: 'read-only', denied: stderr.includes('denied') }
    super.onProcessDone(process, stderr, failed, error)
  }
}

export async function useEverything(): Promise<string> {
  const result = await ctx.shell.run(ctx.shell.resolve({ command: 'true' }))
  return `${result.stdout.text} ${constructors.length} ${theirs.cwd} ${exported.ENV_OVERRIDES.TERM} ${schema} ${Confined}`
}

// @ts-expect-error a field that there is not
ctx.plugin(Shell, { timeout: 1 })
// @ts-expect-error for subclasses only
new Shell(ctx, {}).runArgv
