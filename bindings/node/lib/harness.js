/**
 * libdsh as the shell service (`ctx.shell`) of the DeepSeek Harness: a composition names `libdsh/harness` in the row
 * where it named `@deepseek-ai/dsh-bash-local`, and everything built on `ctx.shell` goes on working.
 *
 * What is the same and what is better on purpose: docs/harness.md.
 */
export { assertServiceableBashConfig } from './harness/config.js'
export { ENV_OVERRIDES } from './harness/environment.js'
export {
  DshBashExecutor,
  DshBashExecutor as LocalBashExecutor,
  DshBashExecutor as default,
} from './harness/executor.js'
