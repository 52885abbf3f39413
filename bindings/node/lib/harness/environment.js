/** What every command finds in its environment unless its caller says otherwise: no colours, no pagers. */
export const ENV_OVERRIDES = Object.freeze(
  /** @type {const} */ ({ NO_COLOR: '1', TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat' }),
)

/** @typedef {Record<string, string | undefined>} Variables undefined removes */

/**
 * The variables of a spec in the two channels of libdsh. The harness lets its in-process callers put `DSH_` names into
 * the ordinary `env`, where a managed one of the same name wins; libdsh keeps that namespace to its trusted channel.
 *
 * @param {import('@deepseek-ai/dsh-shell').ShellExecSpec} spec
 */
export function channels(spec) {
  /** @type {Variables} */
  const env = {}
  /** @type {Record<string, string>} */
  const dshEnv = {}
  for (const [name, value] of Object.entries(spec.env ?? {})) {
    if (!name.startsWith('DSH_')) env[name] = value === undefined ? undefined : String(value)
    else if (value !== undefined) dshEnv[name] = String(value)
  }
  for (const [name, value] of Object.entries(spec.dshEnv ?? {})) dshEnv[name] = String(value)
  return { env, dshEnv }
}
