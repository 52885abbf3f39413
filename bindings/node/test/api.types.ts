// Compiled and never run: what the types allow, and what they refuse.
import {
  DshError,
  Executor,
  Process,
  sandboxDoctor,
  version,
  widerModes,
  type Captured,
  type Confinement,
  type Doctor,
  type ExecutorConfig,
  type ExecutorOptions,
  type OutputChunk,
  type ProcessEvent,
  type ProcessInfo,
  type ProcessStatus,
  type RunOptions,
  type RunResult,
  type SandboxMode,
  type SandboxPolicy,
  type Spec,
  type StopCause,
  type StreamReading,
} from 'libdsh'

/** Holds only for the same type, not for one that merely fits. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function same<A, B>(_proof: Same<A, B>): void {}

export async function running(): Promise<void> {
  await using executor = new Executor({ timeoutMs: 5, keep: 'head-tail', envAllow: ['A*'] as const, guard: undefined })
  const { signal } = new AbortController()
  const options: RunOptions = {
    cwd: '/tmp',
    timeout: 5,
    signal,
    input: new Uint8Array(2),
    env: { A: 'x', B: undefined, C: null },
    dshEnv: { DSH_A: 'x' },
    stdoutMaxBytes: 5,
    mergeStderr: true,
    survivors: 'kill',
    tag: 5,
  }
  const result = await executor.run('true', options)
  same<typeof result, RunResult>(true)
  same<typeof result.stdout, Captured>(true)
  same<typeof result.stdout.bytes, Buffer>(true)
  same<typeof result.exitCode, number | null>(true)
  same<typeof result.cause, StopCause | null>(true)
  if (result.signal === 'SIGKILL') same<typeof result.stdout.spillPath, string | null>(true)
  await executor.run(Buffer.from('true'), { env: process.env })

  // @ts-expect-error: the command is missing
  await executor.run()
  // @ts-expect-error: no such option
  await executor.run('true', { timeoutMs: 5 })
  // @ts-expect-error: no such word
  await executor.run('true', { survivors: 'adopt' })
  // @ts-expect-error: reserved variables can't be removed
  await executor.run('true', { dshEnv: { DSH_A: undefined } })
  // @ts-expect-error: results are no promises of text
  const text: string = result.stdout
  void text

  same<ReturnType<typeof executor.resolve>, Spec>(true)
  executor.configure({ timeoutMs: null, keep: undefined })
  // @ts-expect-error: options of a new executor have no null
  const wrong: ExecutorOptions = { timeoutMs: null }
  void wrong
  same<typeof executor.config, ExecutorConfig>(true)
  // @ts-expect-error: changed by configure alone
  executor.config = executor.config
  same<ReturnType<typeof executor.shutdown>, Promise<void>>(true)
}

export async function inTheBackground(executor: Executor): Promise<void> {
  await using process = executor.start('true', { tag: 5 })
  same<typeof process, Process>(true)
  same<typeof process.status, ProcessStatus>(true)
  same<typeof process.done, Promise<ProcessInfo>>(true)
  same<typeof process.quiescent, Promise<void>>(true)
  const killed: boolean = process.kill()
  void killed
  for await (const chunk of process) same<typeof chunk, OutputChunk>(true)
  for await (const event of process.events()) same<typeof event, ProcessEvent>(true)
  same<ReturnType<typeof process.readStream>, StreamReading>(true)
  process.readStream('stderr', 5, 10)
  // @ts-expect-error: no such stream
  process.readStream('stdin')
  // @ts-expect-error: made by an executor alone
  new Process()
}

export async function confined(executor: Executor): Promise<void> {
  const policy: SandboxPolicy = { mode: 'workspace-write', writable: ['/var'] as const, network: undefined }
  const { sandbox } = await executor.run('true', { sandbox: policy })
  same<typeof sandbox, Confinement | undefined>(true)
  if (sandbox?.denied) same<typeof sandbox.deniedPath, string | null>(true)
  same<ReturnType<typeof widerModes>, SandboxMode[]>(true)
  same<ReturnType<typeof sandboxDoctor>, Promise<Doctor>>(true)
  executor.configure({ sandbox: null })
  // The policy in force is a policy.
  executor.configure({ sandbox: executor.config.sandbox ?? null })
  // @ts-expect-error: no such mode
  widerModes('full')
  // @ts-expect-error: no such backend
  await executor.run('true', { sandbox: { backends: ['docker'] } })
}

export function failing(error: unknown): string {
  if (!(error instanceof DshError)) return version
  switch (error.code) {
    case 'DSH_E_WORKDIR_MISSING':
      return `${error.errno} ${error.stage}`
    case 'DSH_E_CANCELLED':
      return String(error.cause)
    default:
      // A later library may know more codes than this version does.
      return error.code
  }
}
