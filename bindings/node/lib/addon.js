import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const besideThisPackage = fileURLToPath(new URL('../dsh.node', import.meta.url))
const path = process.env.LIBDSH_ADDON || besideThisPackage
if (!existsSync(path)) {
  throw new Error(
    `${path} is not there: build it with \`node scripts/build.mjs --prefix=PREFIX\`, or name another in LIBDSH_ADDON`,
  )
}

/** The compiled half. Its functions are described in src/addon.cc and what that includes. */
export const addon = createRequire(import.meta.url)(path)

/** Where in `facts` a number stands, by its name in src/facts.h. @type {Record<string, number>} */
export const layout = addon.facts

/** The numbers of the last call, either way: read them before the next one. */
export const facts = new Float64Array(Object.keys(layout).length)
