import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { facts, failure, reading, readUntil, run, start } from './observing.mjs'
import { isAlive, until } from './processes.mjs'

/**
 * The calls that are made of both executors. A case is `[name, request]` for a foreground run, or
 * `[name, async (shell, place) => observation]`, where `place.folder` is an empty folder of the case. `config` is the
 * plugin's row, `ambient` what the host has in its environment meanwhile.
 */
export const cases = []

function foreground(name, request, more = {}) {
  cases.push({ name, observe: (shell, place) => run(shell, at(request, place)), ...more })
}

function background(name, request, more = {}) {
  cases.push({ name, observe: (shell, place) => start(shell, at(request, place)), ...more })
}

function script(name, observe, more = {}) {
  cases.push({ name, observe, ...more })
}

function at(request, place) {
  return typeof request === 'function' ? request(place) : request
}

const small = { maxOutputBytes: 1_000, maxSpillBytes: 1_000_000, graceMs: 2_000 }

// How a command ends -------------------------------------------------------------------------------------------------

foreground('output and success', { command: 'echo hello' })
foreground('no output', { command: 'true' })
foreground('a non-zero exit', { command: 'echo out; exit 3' })
foreground('the highest exit code', { command: 'exit 255' })
foreground('an exit code that wraps', { command: 'exit 256' })
foreground('only stderr', { command: 'echo oops >&2' })
foreground('both streams', { command: 'echo out; echo err >&2; exit 1' })
foreground('death by SIGKILL of its own', { command: 'echo last; kill -KILL $$' })
foreground('death by SIGTERM of its own', { command: 'kill -TERM $$' })
foreground('death by SIGHUP of its own', { command: 'kill -HUP $$' })
foreground('death by SIGUSR1 of its own', { command: 'kill -USR1 $$' })
foreground('death of a child by a signal', { command: "exec 2>/dev/null; bash -c 'kill -KILL $$'; echo $?" })
foreground('a command that is not there', { command: 'no-such-command-of-any-kind' })
foreground('a file that may not be executed', { command: '/etc/passwd' })
foreground('a syntax error', { command: 'if then' })
foreground('an unclosed quote', { command: "echo 'open" })
foreground('an empty command', { command: '' })
foreground('a blank command', { command: '  \n\t ' })
foreground('a comment', { command: '# nothing' })
foreground('several lines and a here-document', {
  command: 'x=1\ncat <<EOF\nvalue $x\nEOF\nfor i in 1 2; do echo $i; done',
})
foreground('words that look like options', { command: '-x' })
foreground('characters beyond ASCII', { command: "printf '%s\\n' 'grüße 世界 🎉'" })
foreground('bytes that are not UTF-8', { command: "printf 'a\\xff\\xfe\\xc3b'" })
foreground('NUL bytes', { command: "printf 'a\\0b'" })
foreground('a byte-order mark', { command: "printf '\\xef\\xbb\\xbfx'" })
foreground('carriage returns and escapes', { command: "printf '1%%\\r100%%\\n\\033[1mbold\\033[0m\\r\\n'" })
foreground('no newline at the end', { command: 'printf x; printf y >&2' })
foreground('a pipeline and its status', { command: 'set -o pipefail; seq 1 5 | grep -c . | cat; false | true' })
foreground('a broken pipe', { command: 'yes 2>/dev/null | head -1; echo ${PIPESTATUS[0]}' })

// What the shell is --------------------------------------------------------------------------------------------------

foreground('its name, arguments and flags', { command: 'echo "$0|$#|$-"; shopt login_shell' })
script('no state from one call to the next', async (shell) => [
  await run(shell, { command: 'cd /; export KEPT=1; f() { :; }; true' }),
  await run(shell, { command: 'echo "${KEPT-unset}"; type f 2>/dev/null; pwd' }),
])
foreground('its own session and group', {
  command: 'read -r _ _ _ _ group session _ < /proc/$$/stat; [ $$ = $group ] && [ $$ = $session ] && echo own',
})
foreground('no controlling terminal', { command: ': < /dev/tty' })
// Not those ignored: the original passes on what its host was started with, and a shell's background job ignores two.
foreground('signals: none blocked or caught', {
  command: 'trap; awk \'/^Sig(Blk|Cgt)/ { print $1, ($2 ~ /^0+$/) ? "none" : "some" }\' /proc/self/status',
})
foreground('the limits and the mask of the host', { command: 'ulimit -n; ulimit -c; umask' })
foreground('the depth of shells', { command: 'echo $SHLVL' })
foreground('a stdout that can be opened again by name', { command: 'echo by-name > /dev/stdout' })
foreground('a long command', { command: `: ${'x'.repeat(100_000)}; echo done` })
foreground('a command longer than one argument may be', { command: `: ${'x'.repeat(200_000)}; echo done` })

// Where it runs ------------------------------------------------------------------------------------------------------

foreground('the working directory of the host', { command: 'pwd' })
foreground('a working directory', ({ folder }) => ({ command: 'pwd; ls -A', workdir: folder }))
foreground('an empty working directory', { command: 'pwd', workdir: '' })
foreground('a relative working directory', { command: 'basename "$PWD"', workdir: '..' })
foreground('a working directory through a link', ({ folder }) => {
  mkdirSync(join(folder, 'real'))
  symlinkSync('real', join(folder, 'link'))
  return { command: 'pwd -P | sed s,.*/,,', workdir: join(folder, 'link') }
})
foreground('a configured working directory', { command: 'pwd' }, { config: { cwd: '/' } })
foreground('a working directory over the configured one', { command: 'pwd', workdir: '/usr' }, { config: { cwd: '/' } })
foreground('a missing working directory', ({ folder }) => ({ command: 'echo never', workdir: join(folder, 'none') }))
foreground('a working directory that is a file', { command: 'echo never', workdir: '/etc/passwd' })
foreground(
  'a working directory that may not be entered',
  ({ folder }) => {
    mkdirSync(join(folder, 'closed'), { mode: 0o600 })
    return { command: 'echo never', workdir: join(folder, 'closed') }
  },
  { skip: process.getuid() === 0 && 'root may enter every directory' },
)
foreground('a working directory with a loop of links', ({ folder }) => {
  symlinkSync('loop', join(folder, 'loop'))
  return { command: 'echo never', workdir: join(folder, 'loop') }
})
foreground('a working directory with a name too long', { command: 'echo never', workdir: `/${'x'.repeat(300)}` })
script('a good working directory after a bad one', async (shell, { folder }) => [
  await run(shell, { command: 'echo never', workdir: join(folder, 'none') }),
  await run(shell, { command: 'echo fine', workdir: folder }),
])
script('the whole message about a missing working directory', async (shell, { folder }) => {
  const error = await shell.run(shell.resolve({ command: 'x', workdir: join(folder, 'none') })).catch((error) => error)
  return { message: error.message }
})

// What it reads ------------------------------------------------------------------------------------------------------

foreground('no input', { command: 'cat; readlink /proc/self/fd/0' })
foreground('input', { command: 'cat', stdin: 'first\nsecond äöü' })
foreground('empty input', { command: 'cat; [ "$(readlink /proc/self/fd/0)" = /dev/null ] || echo given', stdin: '' })
foreground('much input', { command: 'wc -c; cat', stdin: 'x'.repeat(1_000_000) })
foreground('input that nobody reads', { command: 'exit 3', stdin: 'x'.repeat(1_000_000) })
foreground('input that is read in part', { command: 'head -c 10', stdin: 'x'.repeat(1_000_000) })
foreground(
  'input and output at the same time',
  { command: 'cat', stdin: 'line\n'.repeat(40_000) },
  { config: { maxOutputBytes: 1_000_000 } },
)
foreground('a stdin that is not a terminal', { command: '[ -t 0 ] || echo no', stdin: 'x' })

// Its environment ----------------------------------------------------------------------------------------------------

const startFile = fileURLToPath(new URL('start-file.sh', import.meta.url))
const show = (...names) => `for n in ${names.join(' ')}; do echo "$n=\${!n-unset}"; done`

foreground('no colours and no pagers', { command: show('NO_COLOR', 'TERM', 'PAGER', 'GIT_PAGER') })
foreground('a caller over these', { command: show('NO_COLOR', 'TERM'), env: { TERM: 'xterm', NO_COLOR: '' } })
foreground('variables of the caller', {
  command: show('A', 'B', 'EMPTY'),
  env: { A: '1', B: 'two words=x\ny', EMPTY: '' },
})
foreground('a variable beyond ASCII', { command: show('UMLAUT'), env: { UMLAUT: 'grüße' } })
foreground('variables of the host', { command: show('ORDINARY', 'HOME') }, { ambient: { ORDINARY: 'kept' } })
foreground(
  'a variable of the host that the caller removes',
  { command: show('ORDINARY'), env: { ORDINARY: undefined } },
  { ambient: { ORDINARY: 'kept' } },
)
foreground(
  'credentials of the host',
  { command: show('FAKE_API_KEY', 'fake_password', 'FAKE_SECRET', 'FAKE_ACCESS_TOKEN', 'MY_SECRET_VALUE') },
  {
    ambient: { FAKE_API_KEY: 'k', fake_password: 'p', FAKE_SECRET: 's', FAKE_ACCESS_TOKEN: 't', MY_SECRET_VALUE: 'v' },
  },
)
foreground(
  'a credential that the caller gives',
  { command: show('FAKE_API_KEY'), env: { FAKE_API_KEY: 'mine' } },
  { ambient: { FAKE_API_KEY: 'k' } },
)
foreground(
  'harmless names of the host with KEY or TOKEN in them',
  { command: show('KEYBOARD_LAYOUT', 'TOKENIZERS_PARALLELISM') },
  {
    ambient: { KEYBOARD_LAYOUT: 'de', TOKENIZERS_PARALLELISM: 'false' },
  },
)
foreground(
  'credentials under other names',
  { command: show('FAKE_PASSPHRASE', 'FAKE_CREDENTIALS', 'FAKE_PASSWD') },
  {
    ambient: { FAKE_PASSPHRASE: 'p', FAKE_CREDENTIALS: 'c', FAKE_PASSWD: 'w' },
  },
)
foreground(
  'a value that is a credential',
  { command: show('FAKE_DATABASE_URL') },
  {
    ambient: { FAKE_DATABASE_URL: 'postgres://user:hunter2@localhost/db' },
  },
)
foreground(
  'managed variables of an outer harness',
  { command: show('DSH_STALE', 'dsh_stale', 'Dsh_Stale') },
  {
    ambient: { DSH_STALE: '1', dsh_stale: '2', Dsh_Stale: '3' },
  },
)
foreground('managed variables', {
  command: show('DSH_SESSION_ID', 'DSH_SHELL'),
  dshEnv: { DSH_SESSION_ID: 'abc', DSH_SHELL: '1' },
})
foreground(
  'a managed variable over the host and the caller',
  { command: show('DSH_SESSION_ID'), env: { DSH_SESSION_ID: 'forged' }, dshEnv: { DSH_SESSION_ID: 'real' } },
  { ambient: { DSH_SESSION_ID: 'stale' } },
)
foreground('a variable of the caller in the managed namespace', { command: show('DSH_EXTRA'), env: { DSH_EXTRA: 'x' } })
foreground('a removed variable in the managed namespace', {
  command: show('DSH_EXTRA', 'DSH_OTHER'),
  env: { DSH_EXTRA: undefined, DSH_OTHER: undefined },
  dshEnv: { DSH_OTHER: 'kept' },
})
foreground('start files of the host', { command: 'echo command' }, { ambient: { BASH_ENV: startFile, ENV: startFile } })
foreground('the mark of its tree', { command: '[ -n "${DSH_PROCESS_ID-}" ] && echo marked' })
foreground('a variable without a name', { command: 'echo ran', env: { '': 'x' } })
foreground('a variable with = in its name', { command: 'printenv A', env: { 'A=B': 'x' } })
foreground('a managed variable with a foreign name', { command: show('FOREIGN'), dshEnv: { FOREIGN: 'x' } })
foreground('a variable in the namespace, in small letters', { command: show('dsh_x'), env: { dsh_x: '1' } })
foreground('a name in the managed namespace with small letters', {
  command: show('DSH_small'),
  env: { DSH_small: '1' },
})
foreground('an environment that is too big', { command: 'echo never', env: { BIG: 'x'.repeat(200_000) } })
foreground('a PATH of the caller without bash', { command: 'echo never', env: { PATH: '/nonexistent' } })
foreground('a PATH of the caller with another bash', ({ folder }) => {
  writeFileSync(join(folder, 'bash'), '#!/bin/sh\necho "other bash: $*"\n', { mode: 0o755 })
  return { command: 'echo never', env: { PATH: folder } }
})
foreground('a PATH with a bash that may not be executed', ({ folder }) => {
  writeFileSync(join(folder, 'bash'), '#!/bin/sh\n', { mode: 0o644 })
  return { command: 'echo never', env: { PATH: folder } }
})
foreground('no PATH at all', { command: 'echo ran', env: { PATH: undefined } })

// How much of its output is kept -------------------------------------------------------------------------------------

foreground('a stream of exactly the cap', { command: "head -c 1000 /dev/zero | tr '\\0' x" }, { config: small })
foreground('a stream of one byte more', { command: "head -c 1001 /dev/zero | tr '\\0' x" }, { config: small })
foreground('a long stdout', { command: 'seq 1 20000' }, { config: small })
foreground('a long stderr', { command: 'seq 1 20000 >&2; echo short' }, { config: small })
foreground('both streams long', { command: 'seq 1 3000; seq 1 4000 >&2; exit 9' }, { config: small })
foreground('one long line', { command: "head -c 300000 /dev/zero | tr '\\0' x" }, { config: small })
foreground('a stream longer than its spill file may be', { command: 'seq 1 200000' }, { config: small })
foreground(
  'a cap for spill files below that for memory',
  { command: 'seq 1 5000' },
  { config: { ...small, maxSpillBytes: 100 } },
)
foreground('a budget of its own, higher', { command: 'seq 1 20000', stdoutMaxBytes: 200_000 }, { config: small })
foreground('a budget of its own, lower', { command: 'seq 1 100', stdoutMaxBytes: 10 }, { config: small })
foreground(
  'a budget of its own does nothing for stderr',
  { command: 'seq 1 20000 >&2', stdoutMaxBytes: 200_000 },
  { config: small },
)
foreground(
  'a tail that begins inside a character',
  { command: "for i in {1..400}; do printf '€'; done" },
  { config: small },
)

// Timeouts and cancellation ------------------------------------------------------------------------------------------

const short = { graceMs: 400 }

function timed(name, argv) {
  script(name, (shell) => {
    return run(
      { resolve: (value) => value, run: (value) => shell.runArgv(value, argv) },
      shell.resolve({ command: '', timeoutMs: 1_000 }),
    )
  })
}

foreground('a timeout', { command: 'echo before; exec sleep 60', timeoutMs: 1_000 })
foreground('a timeout with a trap that exits', {
  command: "trap 'echo bye; exit 0' TERM; sleep 60 & wait",
  timeoutMs: 1_000,
})
foreground(
  'a timeout with SIGTERM ignored',
  { command: "trap '' TERM; echo deaf; while :; do sleep 0.05; done", timeoutMs: 1_000 },
  { config: short },
)
foreground(
  'a timeout with a clean-up longer than the default grace',
  { command: "trap 'sleep 3.5; exit 9' TERM; sleep 60 & wait", timeoutMs: 1_000 },
  { config: { graceMs: 30_000 } },
)
foreground('a timeout of a whole pipeline', { command: 'sleep 60 | sleep 60', timeoutMs: 1_000 })
foreground(
  'a timeout that the configuration caps',
  { command: 'exec sleep 60', timeoutMs: 60_000 },
  { config: { maxTimeoutMs: 1_000 } },
)
timed('a timeout of an argv', ['sleep', '60'])
foreground('a timeout by default', { command: 'exec sleep 60' }, { config: { timeoutMs: 1_000 } })
foreground(
  'a timeout of a stopped command',
  { command: "trap 'echo bye; exit 0' TERM; kill -STOP $$; sleep 60", timeoutMs: 1_000 },
  { config: short },
)
foreground(
  'a timeout that passes while the pipes are still held',
  { command: 'sleep 60 2>&1 & echo up', timeoutMs: 1_000 },
  { config: { graceMs: 2_500 } },
)
foreground('a child that holds the pipes', { command: 'sleep 60 & echo up' }, { config: short })
foreground('a child that holds no pipe', { command: 'sleep 60 >/dev/null 2>&1 & echo up' })
script('no timeout when the spec says 0', async (shell) =>
  run(
    { resolve: (spec) => spec, run: (spec) => shell.run(spec) },
    { ...shell.resolve({ command: 'sleep 0.1; echo done' }), timeoutMs: 0 },
  ),
)
script(
  'a timeout longer than a timer of Node',
  async (shell) => run(shell, { command: 'echo done', timeoutMs: 1e12 }),
  { config: { maxTimeoutMs: 1e12 } },
)
script('a cancellation', async (shell, { folder }) => {
  const controller = new AbortController()
  const running = run(shell, { command: `: > ${folder}/up; exec sleep 60`, signal: controller.signal })
  await appears(join(folder, 'up'))
  controller.abort()
  return running
})
script('a cancellation with a trap that exits', async (shell, { folder }) => {
  const controller = new AbortController()
  const running = run(shell, {
    command: `trap 'echo bye; exit 7' TERM; : > ${folder}/up; while :; do sleep 0.05; done 2>/dev/null`,
    signal: controller.signal,
  })
  await appears(join(folder, 'up'))
  controller.abort(new Error('enough'))
  return running
})
script('a cancellation before a timeout', async (shell) => {
  return run(shell, { command: 'exec sleep 60', timeoutMs: 20_000, signal: AbortSignal.timeout(1_000) })
})
script(
  'a cancellation that comes while the pipes are still held',
  async (shell, { folder }) => {
    const controller = new AbortController()
    const running = run(shell, {
      command: `sleep 60 & echo $$ > ${folder}/writing; mv ${folder}/writing ${folder}/pid`,
      signal: controller.signal,
    })
    await appears(join(folder, 'pid'))
    await until('the end of the shell', () => !isAlive(Number.parseInt(readFileSync(join(folder, 'pid'), 'latin1'))))
    // Both executors must have been told of it, too.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    controller.abort()
    return running
  },
  { config: { graceMs: 5_000 } },
)
script('a cancellation after the end', async (shell) => {
  const controller = new AbortController()
  const value = await run(shell, { command: 'echo done', signal: controller.signal })
  controller.abort()
  return value
})
foreground('a cancellation before the start', () => ({ command: 'echo never', signal: AbortSignal.abort() }))
foreground('a cancellation before the start, with a reason', () => ({
  command: 'echo never',
  signal: AbortSignal.abort(new Error('changed my mind')),
}))
foreground('a cancellation before the start, with a word', () => ({
  command: 'echo never',
  signal: AbortSignal.abort('stop'),
}))

// In the background --------------------------------------------------------------------------------------------------

background('background: output and success', { command: 'echo hello' })
background('background: a non-zero exit', { command: 'echo out; echo err >&2; exit 3' })
background('background: no output', { command: 'true' })
background('background: only stderr', { command: 'echo oops >&2' })
background('background: no newline before stderr', { command: 'printf out; printf err >&2' })
background('background: death by a signal of its own', { command: 'kill -KILL $$' })
background(
  'background: no timeout',
  { command: 'sleep 0.5; echo done', timeoutMs: 100 },
  { config: { timeoutMs: 100, maxTimeoutMs: 100 } },
)
background('background: input', { command: 'cat', stdin: 'given' })
background('background: environment', { command: show('A', 'DSH_B', 'TERM'), env: { A: '1' }, dshEnv: { DSH_B: '2' } })
background('background: a working directory', ({ folder }) => ({ command: 'pwd', workdir: folder }))
background('background: long output', { command: 'seq 1 20000; seq 1 10000 >&2' }, { config: small })
background(
  'background: a budget for stdout does nothing',
  { command: 'seq 1 20000', stdoutMaxBytes: 200_000 },
  { config: small },
)
background('background: much output', { command: 'seq 1 60000' }, { config: { maxOutputBytes: 1_000_000 } })
background('background: a missing working directory', ({ folder }) => ({
  command: 'echo never',
  workdir: join(folder, 'none'),
}))
background('background: a working directory that is a file', { command: 'echo never', workdir: '/etc/passwd' })
background('background: an environment that is too big', { command: 'echo never', env: { BIG: 'x'.repeat(200_000) } })
background('background: no shell', { command: 'echo never', env: { PATH: '/nonexistent' } })
background('background: a cancellation before the start', () => ({
  command: 'echo never',
  signal: AbortSignal.abort(new Error('no')),
}))
background('background: a NUL byte in the command', { command: 'echo a\0b' })
foreground('a NUL byte in the command', { command: 'echo a\0b' })
foreground('a NUL byte in a variable', { command: 'echo never', env: { A: 'a\0b' } })
script('background: killed', async (shell) => {
  const handle = shell.start(shell.resolve({ command: 'echo up; exec sleep 60' }))
  const seen = await readUntil(handle, 'up\n')
  const kills = [handle.kill(), handle.kill()]
  const after = facts(handle)
  await handle.done
  return { seen, kills, after, last: facts(handle), again: handle.kill(), read: reading(handle.readOutput()) }
})
script(
  'background: killed with SIGTERM ignored',
  async (shell) => {
    const handle = shell.start(shell.resolve({ command: "trap '' TERM; echo up; while :; do sleep 0.05; done" }))
    await readUntil(handle, 'up\n')
    handle.kill()
    await handle.done
    return facts(handle)
  },
  { config: short },
)
script('background: killed with a trap that exits', async (shell) => {
  const handle = shell.start(shell.resolve({ command: "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done 2>/dev/null" }))
  await readUntil(handle, 'up\n')
  handle.kill()
  await handle.done
  return { ...facts(handle), read: reading(handle.readOutput()) }
})
script('background: cancelled', async (shell) => {
  const controller = new AbortController()
  const handle = shell.start(shell.resolve({ command: 'echo up; exec sleep 60', signal: controller.signal }))
  await readUntil(handle, 'up\n')
  controller.abort()
  await handle.done
  return { ...facts(handle), kill: handle.kill() }
})
script('background: cancelled with a trap that exits', async (shell) => {
  const controller = new AbortController()
  const handle = shell.start(
    shell.resolve({ command: "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done 2>/dev/null", signal: controller.signal }),
  )
  await readUntil(handle, 'up\n')
  controller.abort()
  await handle.done
  return facts(handle)
})
script('background: reads while it runs repeat nothing', async (shell, { folder }) => {
  const handle = shell.start(
    shell.resolve({
      command: 'echo one; until [ -e go ]; do sleep 0.02; done; printf two; echo problem >&2',
      workdir: folder,
    }),
  )
  const seen = await readUntil(handle, 'one\n')
  const nothing = reading(handle.readOutput())
  writeFileSync(join(folder, 'go'), '')
  await handle.done
  return { seen, nothing, rest: reading(handle.readOutput()), end: reading(handle.readOutput()) }
})
script(
  'background: a read too late, and one in time',
  async (shell, { folder }) => {
    const handle = shell.start(
      shell.resolve({
        command: 'seq 1 1000; touch written; until [ -e go ]; do sleep 0.02; done; seq 1 3',
        workdir: folder,
      }),
    )
    await appears(join(folder, 'written'))
    await new Promise((resolve) => setTimeout(resolve, 400))
    const late = reading(handle.readOutput())
    writeFileSync(join(folder, 'go'), '')
    await handle.done
    return { late, rest: reading(handle.readOutput()) }
  },
  { config: small },
)
script('background: a character that arrives in two halves', async (shell, { folder }) => {
  const handle = shell.start(
    shell.resolve({
      command: "printf 'ab\\xe2\\x82'; touch half; until [ -e go ]; do sleep 0.02; done; printf '\\xac'",
      workdir: folder,
    }),
  )
  await appears(join(folder, 'half'))
  await new Promise((resolve) => setTimeout(resolve, 400))
  const first = reading(handle.readOutput())
  writeFileSync(join(folder, 'go'), '')
  await handle.done
  return { first, second: reading(handle.readOutput()) }
})
script('background: a handle that failed to start, step by step', async (shell) => {
  const handle = shell.start(shell.resolve({ command: 'x', workdir: '/nonexistent' }))
  const first = { ...facts(handle), read: reading(handle.readOutput()) }
  await handle.done
  return {
    first,
    last: facts(handle),
    kill: handle.kill(),
    reads: [handle.readOutput(), handle.readOutput()].map(({ delta }) => delta.slice(0, 43)),
  }
})
script('background: a handle that failed to start, killed at once', async (shell) => {
  const handle = shell.start(shell.resolve({ command: 'x', workdir: '/nonexistent' }))
  const kill = handle.kill()
  await handle.done
  return { kill, ...facts(handle), again: handle.kill() }
})
script(
  'background: a child that outlives it and holds the pipes',
  async (shell) => {
    return start(shell, { command: 'sleep 60 & echo up' })
  },
  { config: short },
)
script('background: the fields of a handle', async (shell) => {
  const handle = shell.start(shell.resolve({ command: 'true' }))
  await handle.done
  return { keys: Object.keys(handle).sort(), done: await handle.done }
})

// An argv instead of a command: what executors that are built on this one use --------------------------------------------

function program(name, argv, more = {}) {
  const spec = (shell, place) => ({ ...shell.resolve({ command: 'ignored', ...at(more.request ?? {}, place) }) })
  const words = (place) => (typeof argv === 'function' ? argv(place) : argv)
  const settings = { config: more.config }
  script(
    `argv: ${name}`,
    (shell, place) => {
      return run({ resolve: (value) => value, run: (value) => shell.runArgv(value, words(place)) }, spec(shell, place))
    },
    settings,
  )
  script(
    `argv in the background: ${name}`,
    (shell, place) => {
      return start(
        { resolve: (value) => value, start: (value) => shell.startArgv(value, words(place)) },
        spec(shell, place),
      )
    },
    settings,
  )
}

const odd = ['', ' ', "it's", '"', '$HOME', '`id`', '$(id)', '*', '~', '\\', 'a\nb', '--', '-n', '!', '#', 'A=B', 'ü€']

program('a program and its words', ['printf', '<%s>\\n', ...odd])
program('a program by its path', ['/bin/echo', 'hello'])
program('a program whose name is a word of the shell', ['test', '-e', '/'])
program('a shell of its own', ['bash', '-c', 'echo "$0|$#|$1"; exit 4', 'name', 'word'])
program('the very argv of a command', ['bash', '-c', 'echo "$0|$#"; exit 4'])
program(
  'a program in the working directory',
  ({ folder }) => {
    writeFileSync(join(folder, 'tool'), '#!/bin/sh\necho "tool: $*"\n', { mode: 0o755 })
    return ['./tool', 'a b']
  },
  { request: ({ folder }) => ({ workdir: folder }) },
)
program(
  'a program in a PATH of the caller',
  ({ folder }) => {
    writeFileSync(join(folder, 'tool'), '#!/bin/sh\necho "tool: $*"\n', { mode: 0o755 })
    return ['tool', 'a b']
  },
  { request: ({ folder }) => ({ env: { PATH: folder } }) },
)
program('an own process, without a shell around it', ['sh', '-c', 'kill -KILL $$'])
program('a program that is not there', ['no-such-runner', '--flag'])
program('a path that is not there', ['/no/such/runner'])
program('a file that may not be executed', ['/etc/passwd'])
program('a folder', ['/etc'])
program('a script without its interpreter', ({ folder }) => {
  writeFileSync(join(folder, 'tool'), '#!/no/such/interpreter\n', { mode: 0o755 })
  return [join(folder, 'tool')]
})
program('a missing working directory', ['echo', 'x'], { request: { workdir: '/nonexistent' } })

// What a request becomes ---------------------------------------------------------------------------------------------

function resolved(name, request, config) {
  script(
    `resolve: ${name}`,
    async (shell, place) => {
      try {
        return { spec: shell.resolve(at(request, place)) }
      } catch (error) {
        return { threw: failure(error) }
      }
    },
    { config },
  )
}

resolved('defaults', { command: 'x' })
resolved(
  'a configured section',
  { command: 'x' },
  { cwd: '/srv', timeoutMs: 5_000, maxTimeoutMs: 7_000, maxOutputBytes: 123 },
)
resolved('its own terms', {
  command: 'x',
  workdir: '/w',
  timeoutMs: 1,
  stdoutMaxBytes: 2,
  stdin: '',
  env: {},
  dshEnv: {},
})
resolved('a timeout above the cap', { command: 'x', timeoutMs: 1e9 })
resolved('a default above the cap', { command: 'x' }, { timeoutMs: 9_000, maxTimeoutMs: 1_000 })
resolved('a fraction', { command: 'x', timeoutMs: 1.5 })
resolved('a sandbox policy', { command: 'x', sandboxPolicy: { mode: 'read-only', workspaceRoot: '/w' } })
for (const value of [0, -1, NaN, Infinity, '5']) {
  resolved(`timeoutMs of ${typeof value} ${value}`, { command: 'x', timeoutMs: value })
  resolved(`stdoutMaxBytes of ${typeof value} ${value}`, { command: 'x', stdoutMaxBytes: value })
}

/** Waits until a file is there. */
export async function appears(path) {
  while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** An observation with the case's folder written as `@DIR@`. */
export function withoutPlace(observation, folder) {
  const places = [folder, realpathSync(folder)]
  return JSON.parse(
    JSON.stringify(observation, (_key, value) => (value === undefined ? '@undefined@' : value)),
    (_key, value) =>
      typeof value === 'string' ? places.reduce((text, place) => text.replaceAll(place, '@DIR@'), value) : value,
  )
}
