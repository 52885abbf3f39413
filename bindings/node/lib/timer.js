/** The most that a timer of Node takes; a longer one would fire at once. */
const LONGEST = 2 ** 31 - 1

/**
 * A promise that resolves when so many milliseconds have passed, however many they are.
 *
 * @param {number} ms
 */
export function later(ms) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  /** @type {Promise<void>} */
  const passed = new Promise((resolve) => {
    /** @param {number} left */
    const arm = (left) => {
      if (left === Infinity) left = Number.MAX_VALUE
      const step = Math.min(left, LONGEST)
      timer = setTimeout(() => (left > step ? arm(left - step) : resolve()), step)
    }
    arm(ms)
  })
  return { passed, clear: () => clearTimeout(timer) }
}
