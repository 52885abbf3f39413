// Puts together what is installed, with the compiled addon: node scripts/package.mjs [--prefix=PREFIX] --out=FOLDER
//
// FOLDER/package is a whole package for this kind of machine, for `npm install FOLDER/package` or `npm pack
// FOLDER/package`.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({
  options: { prefix: { type: 'string', default: '/usr/local' }, out: { type: 'string' } },
})
if (values.out === undefined) {
  console.error('usage: node scripts/package.mjs [--prefix=PREFIX] --out=FOLDER')
  process.exit(1)
}
const out = resolve(values.out)
const folder = join(out, 'package')

execFileSync(process.execPath, [join(here, 'scripts', 'build.mjs'), `--prefix=${values.prefix}`, `--out=${out}`], {
  stdio: 'inherit',
})
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
const { scripts, devDependencies, ...manifest } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
for (const name of [...manifest.files, 'README.md']) {
  const from = join(here, name)
  if (name !== 'dsh.node' && existsSync(from)) cpSync(from, join(folder, name), { recursive: true })
}
cpSync(join(out, 'dsh.node'), join(folder, 'dsh.node'))
const described = { ...manifest, cpu: [process.arch], os: [process.platform] }
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(described, null, 2)}\n`)
