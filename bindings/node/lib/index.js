import { addon } from './addon.js'

export { DshError } from './errors.js'
export { Executor } from './executor.js'
export { Process } from './process.js'
export { sandboxDoctor, widerModes } from './sandbox.js'

/** The version of the library inside. */
export const version = addon.version
