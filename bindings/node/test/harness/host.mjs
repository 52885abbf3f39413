/** A host program for harness.host.test.mjs: what it does is its argument. */
import { existsSync } from 'node:fs'

import Shell from 'libdsh/harness'

import { compose } from './composition.mjs'
import { readUntil } from './observing.mjs'

const { shell } = await compose(Shell, { config: { graceMs: 500 } })

const scripts = {
  async idle() {
    await shell.run(shell.resolve({ command: 'true' }))
    console.log('ran')
  },
  async descriptors() {
    console.log(existsSync('/proc/self/fd/3') ? 'host has 3' : 'host has none')
    const command = '[ -e /proc/$$/fd/3 ] && echo command has 3 || echo command has none'
    process.stdout.write((await shell.run(shell.resolve({ command }))).stdout.text)
  },
  async wait() {
    const handle = shell.start(shell.resolve({ command: 'sleep 0.3' }))
    await handle.done
    console.log(handle.status)
  },
  async exit() {
    await startSome()
    process.exit(7)
  },
  async throw() {
    process.stderr.write = () => true
    await startSome()
    setTimeout(() => {
      throw new Error('on purpose')
    })
  },
  async stay() {
    await startSome()
    setInterval(() => {}, 1_000)
  },
}

/** One that obeys, one that ignores SIGTERM, one that left the session: their pids, then `ready`. */
async function startSome() {
  for (const command of [
    'echo $$.; exec sleep 300',
    "trap '' TERM; echo $$.; while :; do sleep 0.05; done",
    "setsid bash -c 'echo $$.; exec sleep 300' & wait",
  ]) {
    const handle = shell.start(shell.resolve({ command }))
    console.log(await readUntil(handle, '.\n'))
  }
  console.log('ready')
}

await scripts[process.argv[2]]()
