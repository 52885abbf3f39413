import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { withoutPlace } from './cases.mjs'
import { compose } from './composition.mjs'

// The original listens for the end of the host once per composition.
process.setMaxListeners(100)

/** Plays cases on one executor; compositions with the same row are shared. */
export class Player {
  #compositions = new Map()

  constructor(Shell, options = {}) {
    this.Shell = Shell
    this.options = options
  }

  async play({ observe, config = {} }) {
    const key = JSON.stringify(config)
    if (!this.#compositions.has(key)) this.#compositions.set(key, compose(this.Shell, { ...this.options, config }))
    const { shell } = await this.#compositions.get(key)
    const folder = mkdtempSync(join(tmpdir(), 'harness-'))
    try {
      return withoutPlace(await observe(shell, { folder }), folder)
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  async end() {
    for (const composition of this.#compositions.values()) await (await composition).end()
  }
}

/** Runs `act` with these variables in the environment of this process. */
export async function ambient(variables, act) {
  const before = Object.keys(variables).map((name) => [name, process.env[name]])
  Object.assign(process.env, variables)
  try {
    return await act()
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}
