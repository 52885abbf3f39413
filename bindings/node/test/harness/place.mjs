import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Everything temporary goes here, and is removed in the end: the original leaves its spill files behind, and so do hosts
// that are killed.
const place = mkdtempSync(join(tmpdir(), 'harness-'))
process.env.TMPDIR = place
process.on('exit', () => rmSync(place, { recursive: true, force: true }))
