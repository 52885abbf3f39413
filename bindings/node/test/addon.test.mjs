// What the one file of the addon shows to the rest of the program.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { test } from 'node:test'

import { anExecutor } from './support.mjs'

const addonPath = process.env.LIBDSH_ADDON || new URL('../dsh.node', import.meta.url).pathname

test('the addon exports what Node looks for, and nothing of the library', () => {
  const lines = execFileSync('nm', ['-D', '--defined-only', addonPath], { encoding: 'utf8' }).trim().split('\n')
  const names = lines.map((line) => line.split(' ').pop()).sort()
  assert.deepEqual(names, ['napi_register_module_v1', 'node_api_module_get_api_version_v1'])
})

test('the addon needs no libdsh beside it, and nothing of Node but Node-API', () => {
  const dynamic = execFileSync('readelf', ['-dW', addonPath], { encoding: 'utf8' })
  const needed = [...dynamic.matchAll(/\(NEEDED\).*\[(.*?)\]/g)].map((match) => match[1])
  for (const library of needed) assert.match(library, /^(libc|libm|libgcc_s|libpthread|libdl|ld-linux[^.]*)\.so/)
  const undefined_ = execFileSync('nm', ['-D', '--undefined-only', addonPath], { encoding: 'utf8' })
  assert.doesNotMatch(undefined_, /\b(uv_|_ZN2v8|_ZN4node|dsh_)/)
})

test('the addon stays loaded, as the library wants it', () => {
  assert.match(execFileSync('readelf', ['-dW', addonPath], { encoding: 'utf8' }), /NODELETE/)
})

test('a second copy of the package in one program works beside the first', async (t) => {
  const require = createRequire(import.meta.url)
  const second = await import(`${import.meta.resolve('libdsh')}?second`)
  assert.notEqual(require, undefined)
  assert.equal((await anExecutor(t).run('echo 1')).stdout.text, '1\n')
  const executor = new second.Executor()
  assert.equal((await executor.run('echo 2')).stdout.text, '2\n')
  await executor.shutdown()
})
