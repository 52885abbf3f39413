import { Context } from '@deepseek-ai/cordis'
import LocalSubprocessRuntime from '@deepseek-ai/dsh-subprocess-local'

import './place.mjs'

/**
 * A composition with one shell service, as a host would have it. `rows` are further plugins, each `[plugin, config]`. It
 * is ended after the test `t`, if not before.
 */
export async function compose(Shell, { config = {}, subprocess = true, rows = [], t } = {}) {
  const ctx = new Context()
  t?.after(() => ctx.fiber.dispose())
  if (subprocess) await ctx.plugin(LocalSubprocessRuntime)
  const row = ctx.plugin(Shell, config)
  await row
  for (const [plugin, options] of rows) await ctx.plugin(plugin, options)
  return { ctx, row, shell: ctx.get('shell'), end: () => ctx.fiber.dispose() }
}
