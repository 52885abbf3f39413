// Compiles the addon: node scripts/build.mjs [--prefix=PREFIX] [--out=FOLDER]
//
// PREFIX (by default /usr/local) is where `make install` has put the library; its static form becomes part of the one
// file FOLDER/dsh.node (by default in this package). Nothing is downloaded, and nothing is done when all that it is
// made of is as it was. CXX and CXXFLAGS are honoured.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

const here = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({
  options: { prefix: { type: 'string', default: '/usr/local' }, out: { type: 'string', default: here } },
})
const prefix = resolve(values.prefix)
const out = resolve(values.out)
const source = join(here, 'src')
const header = join(prefix, 'include', 'dsh.h')
const library = join(prefix, 'lib', 'libdsh.a')
for (const path of [header, library]) {
  if (!existsSync(path)) {
    console.error(`${path} is not there: run \`make install PREFIX=${prefix}\` at the top of the source first`)
    process.exit(1)
  }
}

const nodeHeaders = createRequire(import.meta.url)('node-api-headers').include_dir
const compiler = process.env.CXX || 'c++'
const compileFlags = [
  '-std=c++17', '-O2', '-fPIC', '-fvisibility=hidden', '-pthread', '-Wall', '-Wextra', '-Wpedantic', '-Werror',
  '-DNAPI_VERSION=8', `-I${join(prefix, 'include')}`, '-isystem', nodeHeaders,
  ...(process.env.CXXFLAGS ?? '').split(' ').filter(Boolean),
]
// Node brings the napi_ functions. Nothing is exported but what is in exports.map, so that no other library of the
// program meets this one's symbols; and the file stays loaded after a dlclose, as the library wants it.
const linkFlags =
  process.platform === 'darwin'
    ? ['-bundle', '-undefined', 'dynamic_lookup', '-Wl,-exported_symbol,_napi_register_module_v1',
        '-Wl,-exported_symbol,_node_api_module_get_api_version_v1', '-Wl,-dead_strip', '-lpthread', '-lm']
    : ['-shared', '-Wl,--exclude-libs,ALL', `-Wl,--version-script,${join(source, 'exports.map')}`, '-Wl,-z,nodelete',
        '-Wl,-z,relro', '-Wl,-z,now', '-Wl,--gc-sections', '-Wl,--strip-debug', '-static-libstdc++',
        '-lpthread', '-ldl', '-lm', '-lgcc_s']

const sources = readdirSync(source).filter((name) => name.endsWith('.cc'))
const objects = join(out, 'objects')
const addon = join(out, 'dsh.node')
const seal = join(objects, 'seal')

/** What the addon is made of, as a digest. */
function ingredients() {
  const digest = createHash('sha256').update(JSON.stringify([compiler, compileFlags, linkFlags]))
  for (const path of [header, library, ...readdirSync(source).sort().map((name) => join(source, name))]) {
    digest.update(path).update(readFileSync(path))
  }
  return digest.digest('hex')
}

const run = promisify(execFile)

/** Two at a time. */
async function compile() {
  const left = [...sources]
  const worker = async () => {
    for (let name; (name = left.pop()) !== undefined; ) {
      await run(compiler, [...compileFlags, '-c', join(source, name), '-o', join(objects, `${name}.o`)])
    }
  }
  await Promise.all([worker(), worker()])
}

const made = ingredients()
if (!existsSync(addon) || !existsSync(seal) || readFileSync(seal, 'utf8') !== made) {
  mkdirSync(objects, { recursive: true })
  // A program that has the old one loaded keeps its file.
  rmSync(addon, { force: true })
  try {
    await compile()
    await run(compiler, ['-o', addon, ...sources.map((name) => join(objects, `${name}.o`)), library, ...linkFlags])
  } catch (error) {
    console.error(/** @type {{ stderr?: string }} */ (error).stderr || error)
    process.exit(1)
  }
  writeFileSync(seal, made)
}
