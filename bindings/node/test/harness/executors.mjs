import Original from '@deepseek-ai/dsh-bash-local'
import Ours from 'libdsh/harness'

/** Both executors, for tests that must come out the same for the one as for the other. */
export const executors = Object.entries({ original: Original, libdsh: Ours })
export { Original, Ours }
