/**
 * Where the results are not those of the original, on purpose: for each case that differs, the fields that do, as
 * `[original, libdsh]`, and the heading in docs/harness.md under which it is explained. All other fields are the same.
 */
export const differences = {}

/** Stands for a field that is not there. */
export const ABSENT = '@absent@'

function differs(heading, name, fields) {
  differences[name] = { heading, fields }
}

/** The fields of a run that one of the two refused, against those of the result of the other. */
const refusedHere = (rejected, stdout) => ({
  rejected: [rejected, ABSENT],
  ...plain(stdout, (value) => [ABSENT, value]),
})
const refusedThere = (rejected, stdout) => ({
  rejected: [ABSENT, rejected],
  ...plain(stdout, (value) => [value, ABSENT]),
})

function plain(stdout, pair, timeoutMs = 120_000) {
  const result = {
    exitCode: 0,
    signal: null,
    timedOut: false,
    aborted: false,
    timeoutMs,
    stdout: { text: stdout, truncated: false },
    stderr: { text: '', truncated: false },
  }
  return Object.fromEntries(Object.entries(result).map(([key, value]) => [key, pair(value)]))
}

const invalid = (message) => ({ name: 'TypeError', message, code: 'ERR_INVALID_ARG_VALUE' })

// ---------------------------------------------------------------------------------------------------------------------

const ERRORS = 'Errors go on to say what is wrong'

differs(ERRORS, 'the whole message about a missing working directory', {
  message: [
    'spawn bash ENOENT',
    `spawn bash ENOENT: workdir "@DIR@/none": can't be entered: No such file or directory (os error 2)`,
  ],
})
for (const [name, key] of [
  ['a NUL byte in the command', 'rejected'],
  ['background: a NUL byte in the command', 'threw'],
]) {
  differs(ERRORS, name, {
    [`${key}.message`]: [
      "The argument 'args[1]' must be a string without null bytes. Received 'echo a\\x00b'",
      'command: holds a NUL byte at offset 6, which no command line can carry',
    ],
  })
}
differs(ERRORS, 'a NUL byte in a variable', {
  'rejected.message': [
    "The property 'options.env['A']' must be a string without null bytes. Received 'a\\x00b'",
    'env.A holds a NUL character',
  ],
})

const SETTLES = 'start() reports every failed spawn through its handle'

for (const [name, code, errno] of [
  ['background: a working directory that is a file', 'ENOTDIR', -20],
  ['background: an environment that is too big', 'E2BIG', -7],
]) {
  differs(SETTLES, name, {
    threw: [{ name: 'Error', message: `spawn ${code}`, code, errno, syscall: 'spawn' }, ABSENT],
    first: [ABSENT, { status: 'running', exitCode: null, signal: null }],
    last: [ABSENT, { status: 'killed', exitCode: null, signal: null }],
    reads: [
      ABSENT,
      [
        { delta: `[stderr]\nspawn failed: Error: spawn ${code}`, lossy: false },
        { delta: '', lossy: false },
      ],
    ],
    killed: [ABSENT, false],
  })
}

const NAMES = 'Names of variables are checked'

differs(NAMES, 'a variable without a name', refusedThere(invalid('env[0] "": the name is empty'), 'ran\n'))
differs(
  NAMES,
  'a variable with = in its name',
  refusedThere(invalid('env has a name with an equals sign in it: "A=B"'), 'B=x\n'),
)
differs(
  NAMES,
  'a managed variable with a foreign name',
  refusedThere(invalid('dsh_env[0] "FOREIGN": the name is not DSH_ and then [A-Z][A-Z0-9_]*'), 'FOREIGN=x\n'),
)
differs(
  NAMES,
  'a name in the managed namespace with small letters',
  refusedThere(invalid('dsh_env[0] "DSH_small": the name is not DSH_ and then [A-Z][A-Z0-9_]*'), 'DSH_small=1\n'),
)
differs(
  NAMES,
  'a variable in the namespace, in small letters',
  refusedThere(invalid('env[0] "dsh_x": names in DSH_ are reserved; dsh_env takes some'), 'dsh_x=1\n'),
)

const SCRUB = 'Credentials are recognised by words of the name, and by value'

differs(SCRUB, 'harmless names of the host with KEY or TOKEN in them', {
  'stdout.text': [
    'KEYBOARD_LAYOUT=unset\nTOKENIZERS_PARALLELISM=unset\n',
    'KEYBOARD_LAYOUT=de\nTOKENIZERS_PARALLELISM=false\n',
  ],
})
differs(SCRUB, 'credentials under other names', {
  'stdout.text': [
    'FAKE_PASSPHRASE=p\nFAKE_CREDENTIALS=c\nFAKE_PASSWD=w\n',
    'FAKE_PASSPHRASE=unset\nFAKE_CREDENTIALS=unset\nFAKE_PASSWD=unset\n',
  ],
})
differs(SCRUB, 'a value that is a credential', {
  'stdout.text': ['FAKE_DATABASE_URL=postgres://user:hunter2@localhost/db\n', 'FAKE_DATABASE_URL=unset\n'],
})

differs('Start files of the host are not read', 'start files of the host', {
  'stdout.text': ['from the start file\ncommand\n', 'command\n'],
})

differs('Commands carry the mark of their tree', 'the mark of its tree', {
  exitCode: [1, 0],
  'stdout.text': ['', 'marked\n'],
})

differs(
  'Long commands run',
  'a command longer than one argument may be',
  refusedHere({ name: 'Error', message: 'spawn E2BIG', code: 'E2BIG', errno: -7, syscall: 'spawn' }, 'done\n'),
)

differs('Output goes through pipes', 'a stdout that can be opened again by name', {
  exitCode: [1, 0],
  'stdout.text': ['', 'by-name\n'],
  'stderr.text': ['bash: line 1: /dev/stdout: No such device or address\n', ''],
})

const CHARACTERS = 'No character is cut in two'

differs(CHARACTERS, 'a tail that begins inside a character', {
  'stdout.text': [`\ufffd${'€'.repeat(333)}`, '€'.repeat(333)],
})
differs(CHARACTERS, 'background: a character that arrives in two halves', {
  'first.delta': ['ab\ufffd', 'ab'],
  'second.delta': ['\ufffd', '€'],
})

const TIMEOUTS = 'Timeouts and cancellations'

differs(TIMEOUTS, 'a timeout of a stopped command', {
  exitCode: [null, 0],
  signal: ['SIGKILL', null],
  'stdout.text': ['', 'bye\n'],
})
differs(TIMEOUTS, 'a timeout that passes while the pipes are still held', { timedOut: [true, false] })
differs(TIMEOUTS, 'a cancellation that comes while the pipes are still held', { aborted: [true, false] })
differs(TIMEOUTS, 'a timeout longer than a timer of Node', {
  rejected: [
    { name: 'Error', message: 'deadline timeoutMs must be a positive finite number no greater than 2147483647' },
    ABSENT,
  ],
  ...plain('done\n', (value) => [ABSENT, value], 1e12),
})
