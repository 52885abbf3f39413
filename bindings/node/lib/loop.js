import { addon, facts } from './addon.js'
import { errorOfStatus } from './errors.js'

/** The kinds of events, as bits. */
export const OUTPUT = 1 << 1
export const EXIT = 1 << 2
export const SETTLED = 1 << 3
export const QUIESCENT = 1 << 4

/** @typedef {{ notice(kinds: number): void }} Watcher */

/**
 * Who waits for events, by the key of the process. Only they are here, so that whoever is forgotten by everybody else
 * can be collected.
 *
 * @type {Map<number, Watcher>}
 */
const watchers = new Map()

let holds = 0

/** Pairs of a key and kinds of events. */
const events = new Float64Array(2 * 512)

/** @param {number} count */
function dispatch(count) {
  for (let i = 0; i < 2 * count; i += 2) watchers.get(events[i])?.notice(events[i + 1])
}

addon.setUp(dispatch, errorOfStatus, facts, events)

/**
 * @param {number} key
 * @param {Watcher} watcher
 */
export function watch(key, watcher) {
  watchers.set(key, watcher)
}

/** @param {number} key */
export function unwatch(key) {
  watchers.delete(key)
}

/** Somebody waits: the event loop must not end. */
export function hold() {
  if (holds++ === 0) addon.hold()
}

/** Nobody waits any more, when this was the last hold. */
export function release() {
  if (--holds === 0) addon.release()
}
