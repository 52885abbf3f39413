/** @typedef {import('@deepseek-ai/dsh-shell').ShellProcess} ShellProcess */

/**
 * A background process as the harness knows it, over one of libdsh.
 *
 * @param {import('../index.js').Process} process
 * @param {(handle: ShellProcess, stderr: string) => void} settled is called once everything is known of it, before its
 *   `done` resolves
 */
export function runningProcess(process, settled) {
  /** @type {ShellProcess} */
  const handle = {
    status: 'running',
    exitCode: null,
    signal: null,
    done: process.done.then(({ status, exitCode, signal }) => {
      Object.assign(handle, { status, exitCode, signal })
      settled(handle, process.result().stderr.text)
    }),
    readOutput() {
      const { text, lossy, stdoutSpillPath, stderrSpillPath } = process.readOutput()
      return {
        delta: text,
        lossy,
        ...(stdoutSpillPath !== null && { stdoutSpillPath }),
        ...(stderrSpillPath !== null && { stderrSpillPath }),
      }
    },
    kill() {
      // A command that has just ended by itself was not killed, although what it left behind is ended now.
      if (handle.status !== 'running' || !process.kill()) return false
      handle.status = 'killed'
      return true
    },
  }
  return handle
}

/**
 * The handle of a process that could not be started: it settles as killed, and its only output says why, once.
 *
 * @param {Error} error
 * @param {(handle: ShellProcess, note: string) => void} settled as for a process that runs; never before this call has
 *   returned
 */
export function failedProcess(error, settled) {
  let note = ''
  /** @type {ShellProcess} */
  const handle = {
    status: 'running',
    exitCode: null,
    signal: null,
    done: Promise.resolve().then(() => {
      handle.status = 'killed'
      note = `spawn failed: ${error}`
      settled(handle, note)
    }),
    readOutput() {
      const delta = note && `[stderr]\n${note}`
      note = ''
      return { delta, lossy: false }
    },
    kill() {
      if (handle.status !== 'running') return false
      handle.status = 'killed'
      return true
    },
  }
  return handle
}
