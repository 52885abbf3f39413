import z from '@deepseek-ai/schemastery'

/** @typedef {import('../harness.js').Config} SectionConfig */
/** @typedef {import('../harness.js').ResolvedConfig} ResolvedConfig */

/** The longest delay that one timer of Node can wait for; the harness allows no longer grace. */
const MAX_GRACE_MS = 2 ** 31 - 1

/** What libdsh allows all spill files together, unless a single one may be larger. */
const MAX_TOTAL_SPILL_BYTES = 1024 ** 3

/**
 * The schema of the plugin's row, and of the user's settings section that lies over it.
 *
 * @type {z<SectionConfig>}
 */
export const Config = z.object({
  cwd: z.string(),
  timeoutMs: z.number().default(120_000),
  maxTimeoutMs: z.number().default(600_000),
  maxOutputBytes: z.number().default(64_000),
  maxSpillBytes: z.number().default(64 * 1024 * 1024),
  graceMs: z.number().default(3_000),
})

/**
 * The wording, with the prefix `bash-local`, is that of the executor which this one stands in for: users, tests and
 * configuration surfaces know these messages.
 *
 * @param {string} name
 * @param {number} value
 */
export function assertPositiveFinite(name, value) {
  if (!(Number.isFinite(value) && value > 0)) {
    throw new Error(`bash-local: ${name} must be a positive finite number`)
  }
}

/**
 * Refuses a section that no command could run with: what the schema alone can't say.
 *
 * @param {SectionConfig} config
 */
export function assertServiceableBashConfig(config) {
  const section = /** @type {ResolvedConfig} */ (config)
  assertPositiveFinite('timeoutMs', section.timeoutMs)
  assertPositiveFinite('maxTimeoutMs', section.maxTimeoutMs)
  assertPositiveFinite('maxOutputBytes', section.maxOutputBytes)
  assertPositiveFinite('maxSpillBytes', section.maxSpillBytes)
  assertPositiveFinite('graceMs', section.graceMs)
  if (section.graceMs > MAX_GRACE_MS) throw new Error(`bash-local: graceMs must be no greater than ${MAX_GRACE_MS}`)
}

/**
 * The timeout of a request: its own or the default, and never more than the cap.
 *
 * @param {number | undefined} requested
 * @param {ResolvedConfig} config
 */
export function effectiveTimeout(requested, config) {
  if (requested !== undefined) assertPositiveFinite('request.timeoutMs', requested)
  return Math.min(requested ?? config.timeoutMs, config.maxTimeoutMs)
}

/**
 * What the section means to the libdsh executor that runs the commands.
 *
 * @param {ResolvedConfig} config
 * @param {string} shell
 */
export function executorOptions(config, shell) {
  // Sections may have fractions; libdsh counts whole bytes.
  const maxSpillBytes = Math.ceil(config.maxSpillBytes)
  return {
    shell,
    maxOutputBytes: Math.ceil(config.maxOutputBytes),
    maxSpillBytes,
    maxTotalSpillBytes: Math.max(MAX_TOTAL_SPILL_BYTES, maxSpillBytes),
    graceMs: config.graceMs,
    drainMs: config.graceMs,
    // resolve() has applied the cap of the section; a spec is taken at its word.
    maxTimeoutMs: Infinity,
  }
}
