import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'

/** What can be compared of a result: the path of a spill file becomes what is in it. */
export function result(value) {
  return { ...value, stdout: captured(value.stdout), stderr: captured(value.stderr) }
}

function captured({ spillPath, ...stream }) {
  return spillPath === undefined ? stream : { ...stream, spill: file(spillPath) }
}

/** What can be compared of one incremental read; of a failed spawn's note, as of its error, the part that Node writes. */
export function reading({ stdoutSpillPath, stderrSpillPath, ...read }) {
  read.delta = read.delta.replace(/(spawn failed: Error: spawn(?: \S+)? E[A-Z0-9]+): .*$/s, '$1')
  if (stdoutSpillPath !== undefined) read.stdoutSpill = file(stdoutSpillPath)
  if (stderrSpillPath !== undefined) read.stderrSpill = file(stderrSpillPath)
  return read
}

function file(path) {
  const bytes = readFileSync(path)
  return {
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    mode: (statSync(path).mode & 0o777).toString(8),
  }
}

/** What can be compared of an error. Of a spawn's message only the part that Node writes: more may follow. */
export function failure(error) {
  const { name, message, code, errno, syscall, path, spawnargs } = error
  const fields = { name, message: message.replace(/^(spawn(?: \S+)? E[A-Z0-9]+): .*$/s, '$1') }
  for (const [key, value] of Object.entries({ code, errno, syscall, path, spawnargs })) {
    if (value !== undefined) fields[key] = value
  }
  return fields
}

/** The result of a foreground run, or why there is none. */
export async function run(shell, request) {
  try {
    return result(await shell.run(shell.resolve(request)))
  } catch (error) {
    return { rejected: failure(error) }
  }
}

/** A background process from its start to its end, with one read there and one more, which must be empty. */
export async function start(shell, request) {
  let handle
  try {
    handle = shell.start(shell.resolve(request))
  } catch (error) {
    return { threw: failure(error) }
  }
  const first = facts(handle)
  await handle.done
  return {
    first,
    last: facts(handle),
    reads: [reading(handle.readOutput()), reading(handle.readOutput())],
    killed: handle.kill(),
  }
}

/** What a handle says of its process now. */
export function facts({ status, exitCode, signal }) {
  return { status, exitCode, signal }
}

/** Reads until `text` has been delivered, and gives all deltas put together. */
export async function readUntil(handle, text) {
  let seen = ''
  while (!seen.includes(text)) {
    seen += handle.readOutput().delta
    if (handle.status !== 'running' && !seen.includes(text)) {
      throw new Error(`ended without ${JSON.stringify(text)}: ${seen}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return seen
}
