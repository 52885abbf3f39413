const NO_BYTES = Buffer.alloc(0)

/** @typedef {import('./index.js').Text} DeclaredText */

/**
 * Bytes with their text, which is made when it is asked for.
 *
 * @implements {DeclaredText}
 */
export class Text {
  /** @type {string | undefined} */
  #text

  /** @param {Buffer | undefined} bytes */
  constructor(bytes) {
    this.bytes = bytes ?? NO_BYTES
  }

  get text() {
    return (this.#text ??= this.bytes.toString())
  }

  toString() {
    return this.text
  }
}
