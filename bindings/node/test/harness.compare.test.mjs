import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, describe, test } from 'node:test'

import { cases } from './harness/cases.mjs'
import { ABSENT, differences } from './harness/differences.mjs'
import { Original, Ours } from './harness/executors.mjs'
import { Player, ambient } from './harness/playing.mjs'

/** The fields in which two observations differ, each with both values. */
function differing(original, ours, path = '', fields = {}) {
  if (isRecord(original) && isRecord(ours)) {
    for (const key of new Set([...Object.keys(original), ...Object.keys(ours)])) {
      const at = path ? `${path}.${key}` : key
      differing(valueAt(original, key), valueAt(ours, key), at, fields)
    }
  } else if (!same(original, ours)) fields[path] = [original, ours]
  return fields
}

const isRecord = (value) => typeof value === 'object' && value !== null
const valueAt = (record, key) => (Object.hasOwn(record, key) ? record[key] : ABSENT)
const same = (a, b) => Object.is(a, b)

/** Plays a case on both executors, and compares them field by field. */
async function compare(players, { name, ambient: variables = {}, ...rest }) {
  const [original, ours] = await ambient(variables, () => Promise.all(players.map((player) => player.play(rest))))
  assert.deepEqual(differing(original, ours), differences[name]?.fields ?? {})
}

describe('the same call gives the same result as with the original', { concurrency: 4 }, () => {
  const players = [new Player(Original), new Player(Ours)]
  after(() => Promise.all(players.map((player) => player.end())))
  for (const one of cases.filter((one) => one.ambient === undefined)) {
    test(one.name, { skip: one.skip }, () => compare(players, one))
  }
})

// One at a time: these change the environment of this process.
describe('the same environment of the host gives the same to a command as with the original', () => {
  const players = [new Player(Original), new Player(Ours)]
  after(() => Promise.all(players.map((player) => player.end())))
  for (const one of cases.filter((one) => one.ambient !== undefined)) {
    test(one.name, { skip: one.skip }, () => compare(players, one))
  }
})

describe('the same calls without a process provider give the same results', { concurrency: 4 }, () => {
  const players = [new Player(Original), new Player(Ours, { subprocess: false })]
  after(() => Promise.all(players.map((player) => player.end())))
  for (const one of cases.filter((_one, index) => index % 5 === 0)) {
    if (one.ambient === undefined) test(one.name, { skip: one.skip }, () => compare(players, one))
  }
})

test('every difference is of a case, and is explained in the documentation', () => {
  const names = new Set(cases.map(({ name }) => name))
  const documentation = readFileSync(new URL('../docs/harness.md', import.meta.url), 'utf8')
  for (const [name, { heading }] of Object.entries(differences)) {
    assert.ok(names.has(name), `no case ${JSON.stringify(name)}`)
    assert.ok(documentation.includes(`**${heading}**`), `docs/harness.md says nothing of ${JSON.stringify(heading)}`)
  }
})

test('no two cases have one name', () => {
  const names = cases.map(({ name }) => name)
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
})
