// What several test files need.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { Executor } from 'libdsh'

/** How long anything may take before it counts as hanging. */
const PATIENCE_MS = 60_000

/** An executor that is shut down when the test is over. */
export function anExecutor(t, options) {
  const executor = new Executor({ graceMs: 500, ...options })
  t.after(() => executor.shutdown(PATIENCE_MS))
  return executor
}

/** An empty folder that is removed when the test is over. */
export function aFolder(t) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-test-')))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Waits until a condition holds. */
export async function until(condition, what) {
  const start = performance.now()
  while (!(await condition())) {
    if (performance.now() - start > PATIENCE_MS) throw new Error(`it never came to pass: ${what}`)
    await sleep(10)
  }
}

/** Whether a process is there, and no zombie that nobody has waited for yet. */
export function isAlive(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}

/** What this program holds of the system: threads and descriptors. */
export function held() {
  return { threads: readdirSync('/proc/self/task').length, descriptors: readdirSync('/proc/self/fd').length }
}

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')

/** Collects garbage, and lets finalizers run, until a condition holds. */
export async function collected(condition, what) {
  await until(async () => {
    gc()
    await new Promise(setImmediate)
    return condition()
  }, what)
}

/** Runs a program that imports `libdsh`, and gives its exit code and output once it has ended by itself. */
export async function inAProgram(source) {
  const file = promisify(execFile)
  try {
    const { stdout, stderr } = await file(process.execPath, ['--input-type=module', '--eval', source], {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      timeout: PATIENCE_MS,
    })
    return { code: 0, stdout, stderr }
  } catch (error) {
    return { code: error.code ?? error.signal, stdout: error.stdout, stderr: error.stderr }
  }
}
