import { constants } from 'node:os'

const NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))
// Numbers with two names have the one that everybody uses.
for (const name of /** @type {const} */ (['SIGABRT', 'SIGIO'])) NAMES.set(constants.signals[name], name)

/**
 * The name of a signal; a real-time one, which has none, is `SIGRTMIN+n`.
 *
 * @param {number} number
 */
export function signalName(number) {
  return NAMES.get(number) ?? (number >= 34 && number <= 64 ? `SIGRTMIN+${number - 34}` : `SIG${number}`)
}
