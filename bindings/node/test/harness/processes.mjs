import { readFileSync } from 'node:fs'

/** Whether a process is there and not a zombie. */
export function isAlive(pid) {
  try {
    return !/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

/** Waits until it is true; a test that hangs here names what it waits for. */
export async function until(what, predicate, limit = 30_000) {
  const end = Date.now() + limit
  while (!(await predicate())) {
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export const gone = (pid) => until(`the end of process ${pid}`, () => !isAlive(pid))
