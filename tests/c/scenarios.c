/* Plays scenario lists through the C ABI and prints what happened: the driver that tests/scenarios/README.md describes.
 *
 *     scenarios LIST.scn... </dev/null
 */
#include "check.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>

#define DEFAULT_TIMEOUT_MS 120000u
#define ENTRIES 16

/* ---- Bytes that grow. ------------------------------------------------------------------------------------------- */

struct text {
    char *data; /* with a NUL behind it, once there is anything */
    size_t len, capacity;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void add(struct text *text, const void *data, size_t len)
{
    if (text->data == NULL || text->len + len >= text->capacity) {
        text->capacity = 2 * (text->len + len) + 64;
        text->data = realloc(text->data, text->capacity);
        if (text->data == NULL)
            fail("memory");
    }
    if (len > 0)
        memcpy(text->data + text->len, data, len);
    text->len += len;
    text->data[text->len] = '\0';
}

static void add_string(struct text *text, const char *string)
{
    add(text, string, strlen(string));
}

__attribute__((format(printf, 2, 3))) static void add_format(struct text *text, const char *format, ...)
{
    char small[256]; /* numbers and names only */
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (len < 0 || (size_t)len >= sizeof small)
        fail("format");
    add(text, small, (size_t)len);
}

static const char ESCAPES[] = "n\nt\tr\r\\\\\"\"";

static void add_quoted(struct text *text, const void *data, size_t len)
{
    const unsigned char *bytes = data;
    add(text, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        const char *known = NULL;
        for (const char *pair = ESCAPES; *pair != '\0'; pair += 2)
            if ((unsigned char)pair[1] == bytes[i])
                known = pair;
        if (known != NULL)
            add_format(text, "\\%c", *known);
        else if (bytes[i] < 0x20 || bytes[i] > 0x7e)
            add_format(text, "\\x%02x", bytes[i]);
        else
            add(text, &bytes[i], 1);
    }
    add(text, "\"", 1);
}

static void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

/* ---- A case: its folder, its executor, the terms of its next request. ------------------------------------------- */

/* A list of strings that an option struct points to. */
struct entries {
    char *strings[ENTRIES];
    size_t len;
};

/* Names and what they stand for, in the order of the constants. */
static const char *const MODES[] = {"none", "read-only", "workspace-write", "danger-full-access", NULL};
static const char *const NETWORKS[] = {"default", "full", "loopback", "none", NULL};
static const char *const BACKENDS[] = {"none", "bubblewrap", "landlock", "seatbelt", "runner", NULL};
static const char *const ENFORCEMENTS[] = {"none", "full", "partial", NULL};
static const char *const DENIALS[] = {"unknown", "no", "yes", NULL};

struct policy {
    int is_set;
    char *workspace;
    struct entries writable, hidden;
    dsh_backend_t backends[ENTRIES];
    dsh_sandbox_t option; /* as the library takes it */
};

struct terms {
    struct text command, input;
    char *workdir;
    struct entries env, dsh_env;
    uint64_t timeout_ms, stdout_max_bytes, tag, flags;
    dsh_survivors_t survivors;
    int has_input, cancels;
    struct policy policy;
};

struct budgets {
    char *cwd, *shell, *spill_dir;
    struct entries env_allow, env_deny;
    struct policy policy;
    dsh_config_t numbers; /* everything that points nowhere */
};

static struct {
    int is_open;
    char dir[4096];
    struct budgets budgets;
    struct terms terms;
    dsh_executor_t *executor;
    dsh_cancel_t *token;
    dsh_process_t *process;
    uint64_t process_id;
    int had_input;       /* whether the last request had */
    unsigned events;     /* the kinds that the process had so far, as bits */
    int32_t events_wait; /* readable while events wait */
} scene;

static const char *line_of_list; /* for complaints */

static void unknown(void)
{
    fprintf(stderr, "a line that this driver does not know: %s\n", line_of_list);
    exit(2);
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        unknown();
    return value;
}

/* A value of the list: escapes become what they stand for, and @DIR@ the folder of the case. */
static struct text value_of(const char *value)
{
    struct text text = {0};
    add(&text, "", 0);
    while (*value != '\0') {
        if (strncmp(value, "@DIR@", 5) == 0) {
            add_string(&text, scene.dir);
            value += 5;
        } else if (*value != '\\') {
            add(&text, value++, 1);
        } else if (value[1] == 'x') {
            char digits[3] = {0}, *end = NULL;
            strncpy(digits, value + 2, 2);
            unsigned char byte = (unsigned char)strtoul(digits, &end, 16);
            if (end != digits + 2)
                unknown();
            add(&text, &byte, 1);
            value += 4;
        } else {
            const char *pair = ESCAPES;
            while (*pair != '\0' && *pair != value[1])
                pair += 2;
            if (*pair == '\0')
                unknown();
            add(&text, pair + 1, 1);
            value += 2;
        }
    }
    return text;
}

static void assign(char **string, const char *value)
{
    free(*string);
    *string = value_of(value).data;
}

static void append(struct entries *entries, const char *value)
{
    if (entries->len == ENTRIES)
        unknown();
    entries->strings[entries->len++] = value_of(value).data;
}

static void entries_free(struct entries *entries)
{
    while (entries->len > 0)
        free(entries->strings[--entries->len]);
}

static void policy_free(struct policy *policy)
{
    free(policy->workspace);
    entries_free(&policy->writable);
    entries_free(&policy->hidden);
}

static void terms_free(struct terms *terms)
{
    text_free(&terms->command);
    text_free(&terms->input);
    free(terms->workdir);
    entries_free(&terms->env);
    entries_free(&terms->dsh_env);
    policy_free(&terms->policy);
    *terms = (struct terms){0};
}

static void budgets_free(struct budgets *budgets)
{
    free(budgets->cwd);
    free(budgets->shell);
    free(budgets->spill_dir);
    entries_free(&budgets->env_allow);
    entries_free(&budgets->env_deny);
    policy_free(&budgets->policy);
    *budgets = (struct budgets){0};
}

/* ---- What is printed. ------------------------------------------------------------------------------------------- */

/* Prints a line, with @DIR@ for the folder of the case. */
static void print_line(const char *line)
{
    const char *at;
    while ((at = strstr(line, scene.dir)) != NULL) {
        printf("%.*s@DIR@", (int)(at - line), line);
        line = at + strlen(scene.dir);
    }
    puts(line);
}

/* Prints a result line, and empties it. */
static void say_text(struct text *text)
{
    printf("= ");
    print_line(text->data);
    text_free(text);
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    printf("= %s\n", line);
}

static void say_quoted(const char *key, const void *data, size_t len)
{
    struct text line = {0};
    add_format(&line, "%s ", key);
    add_quoted(&line, data, len);
    say_text(&line);
}

static const char *code_name(dsh_status_t code)
{
    static const char *const NAMES[] = {
        "OK",          "NULL",           "INVALID",          "STRUCT",           "FLAGS",
        "COMMAND_NUL", "ENV_NAME",       "ENV_RESERVED",     "ENV_TOO_BIG",      "WORKDIR_MISSING",
        "WORKDIR_NOT_DIR", "WORKDIR_DENIED", "WORKDIR_UNUSABLE", "SHELL_MISSING", "CANCELLED",
        "SHUTDOWN",    "SPAWN",          "SANDBOX_UNAVAILABLE", "TIMED_OUT",     "SYSTEM",
        "OUT_OF_MEMORY", "FORKED",       "PANIC",
    };
    size_t index = (size_t)-code;
    return index < sizeof NAMES / sizeof *NAMES ? NAMES[index] : "UNKNOWN";
}

static void say_error(dsh_error_t *error)
{
    struct text line = {0};
    add_format(&line, "error %s stage=%s ", code_name(dsh_error_code(error)), dsh_error_stage(error));
    if (dsh_error_errno(error) != 0)
        add_format(&line, "errno=%d ", (int)dsh_error_errno(error));
    add_quoted(&line, dsh_error_message(error), strlen(dsh_error_message(error)));
    dsh_error_free(error);
    say_text(&line);
}

/* A call whose failure is what the step prints. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        dsh_error_t *error = NULL;                                                                                     \
        if ((call) != DSH_OK) {                                                                                        \
            say_error(error);                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

static void say_outcome(const dsh_outcome_t *outcome, int with_zero)
{
    static const char *const WHO[] = {NULL, "timeout", "cancel", "kill", "shutdown", "survivors"};
    static const char *const STAGES[] = {NULL, "term", "kill"};
    if (outcome->exit == DSH_EXIT_CODE && (outcome->code != 0 || with_zero))
        say("exit code %d", (int)outcome->code);
    if (outcome->exit == DSH_EXIT_SIGNAL)
        say("exit signal %d", (int)outcome->signal);
    if (outcome->exit == DSH_EXIT_UNKNOWN)
        say("exit unknown");
    if (outcome->timed_out)
        say("timed out");
    if (outcome->aborted)
        say("aborted");
    if (outcome->cause != DSH_STOP_NONE)
        say("cause %s", WHO[outcome->cause]);
    if (outcome->stopped_by != DSH_STOP_NONE)
        say("stopped by %s", WHO[outcome->stopped_by]);
    if (outcome->stage != DSH_STOP_STAGE_NONE)
        say("stage %s", STAGES[outcome->stage]);
    if (outcome->pipes_held)
        say("pipes held");
}

static void say_count(const char *key, uint64_t count)
{
    if (count != 0)
        say("%s %llu", key, (unsigned long long)count);
}

static void say_input(uint64_t written)
{
    if (scene.had_input)
        say("input %llu", (unsigned long long)written);
}

static void say_captured(const char *name, const dsh_captured_t *captured)
{
    struct text line = {0};
    struct stat file;
    if (captured->total == 0)
        return;
    add_format(&line, "%s total=%llu ", name, (unsigned long long)captured->total);
    if (captured->omitted != 0)
        add_format(&line, "omitted=%llu ", (unsigned long long)captured->omitted);
    if (captured->omitted_at != 0)
        add_format(&line, "at=%llu ", (unsigned long long)captured->omitted_at);
    if (captured->spill_path != NULL) {
        int is_whole = stat(captured->spill_path, &file) == 0 && (uint64_t)file.st_size == captured->total
                       && (file.st_mode & 07777) == 0600;
        add_format(&line, "spill=%s ", is_whole ? "whole" : "broken");
    } else if (captured->spill_error != NULL) {
        add_string(&line, "spill=failed ");
    }
    add_quoted(&line, captured->data, captured->len);
    say_text(&line);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void say_scrubbed(const char *const *names, size_t len)
{
    struct text line = {0};
    const char **sorted = calloc(len + 1, sizeof *sorted);
    if (sorted == NULL)
        fail("memory");
    if (len > 0)
        memcpy(sorted, names, len * sizeof *sorted);
    qsort(sorted, len, sizeof *sorted, by_text);
    for (size_t i = 0; i < len; i++)
        if (strncmp(sorted[i], "SCENARIO_", 9) == 0) {
            add_string(&line, line.len == 0 ? "scrubbed " : " ");
            add_string(&line, sorted[i]);
        }
    free(sorted);
    if (line.len > 0)
        say_text(&line);
}

static void say_facts(const dsh_sandbox_facts_t *facts, int is_settled)
{
    struct text line = {0};
    if (facts->mode == DSH_SANDBOX_DEFAULT)
        return;
    say("sandbox %s %s %s %s", MODES[facts->mode], BACKENDS[facts->backend], ENFORCEMENTS[facts->enforcement],
        NETWORKS[facts->network]);
    for (size_t i = 0; i < facts->missing_len; i++)
        add_format(&line, "%s%s", i == 0 ? "missing " : " ", facts->missing[i]);
    if (line.len > 0)
        say_text(&line);
    if (facts->runner_failed != NULL) {
        say("runner failed");
    } else if (is_settled) {
        say("denied %s", DENIALS[facts->denied]);
        if (facts->denied == DSH_DENIED_YES) {
            add_string(&line, "denied path ");
            add_quoted(&line, facts->denied_path, strlen(facts->denied_path));
            add_string(&line, " rule ");
            add_quoted(&line, facts->denied_rule, strlen(facts->denied_rule));
            say_text(&line);
        }
    }
}

static void say_process(void)
{
    static const char *const STATUS[] = {"unknown", "running", "completed", "killed"};
    dsh_process_info_t info = DSH_PROCESS_INFO_INIT;
    dsh_sandbox_facts_t facts = DSH_SANDBOX_FACTS_INIT;
    TRY(dsh_process_info(scene.process, &info, &error));
    OK(dsh_process_sandbox(scene.process, &facts, &error));
    say("status %s", STATUS[info.status]);
    say_outcome(&info.outcome, 1);
    say_count("held by", info.held_by_len);
    say_count("survivors", info.survivors_len);
    say_facts(&facts, info.status != DSH_PROCESS_RUNNING);
    say_count("out", info.out_total);
    say_count("err", info.err_total);
    say_input(info.input_written);
    say_count("tag", info.tag);
}

/* ---- Steps. ----------------------------------------------------------------------------------------------------- */

/* A policy as the library takes it, NULL when nothing was said; what it points to stays the policy's. */
static const dsh_sandbox_t *option_of(struct policy *policy)
{
    policy->option.size = sizeof policy->option;
    policy->option.workspace = policy->workspace;
    policy->option.writable = (const char *const *)policy->writable.strings;
    policy->option.writable_len = policy->writable.len;
    policy->option.hidden = (const char *const *)policy->hidden.strings;
    policy->option.hidden_len = policy->hidden.len;
    policy->option.backends = policy->backends;
    return policy->is_set ? &policy->option : NULL;
}

/* Makes the budgets of the case an option struct; what it points to stays the case's. */
static dsh_config_t config_of(void)
{
    dsh_config_t config = scene.budgets.numbers;
    config.size = sizeof config;
    config.flags |= test_flags();
    config.cwd = scene.budgets.cwd;
    config.shell = scene.budgets.shell;
    config.spill_dir = scene.budgets.spill_dir;
    config.env_allow = (const char *const *)scene.budgets.env_allow.strings;
    config.env_allow_len = scene.budgets.env_allow.len;
    config.env_deny = (const char *const *)scene.budgets.env_deny.strings;
    config.env_deny_len = scene.budgets.env_deny.len;
    config.sandbox = option_of(&scene.budgets.policy);
    return config;
}

static dsh_request_t request_from_terms(void)
{
    struct terms *terms = &scene.terms;
    dsh_request_t request = DSH_REQUEST_INIT;
    request.command = terms->command.data;
    request.command_len = terms->command.len;
    request.workdir = terms->workdir;
    request.input = terms->has_input ? terms->input.data : NULL;
    request.input_len = terms->input.len;
    request.env = (const char *const *)terms->env.strings;
    request.env_len = terms->env.len;
    request.dsh_env = (const char *const *)terms->dsh_env.strings;
    request.dsh_env_len = terms->dsh_env.len;
    request.cancel = terms->cancels ? scene.token : NULL;
    request.timeout_ms = terms->timeout_ms;
    request.stdout_max_bytes = terms->stdout_max_bytes;
    request.tag = terms->tag;
    request.flags = terms->flags;
    request.survivors = terms->survivors;
    request.sandbox = option_of(&terms->policy);
    scene.had_input = terms->has_input;
    return request;
}

/* Takes the events that wait; waits for some when there are none. */
static void take_events(void)
{
    struct pollfd waiting = {.fd = scene.events_wait, .events = POLLIN, .revents = 0};
    dsh_event_t event = DSH_EVENT_INIT;
    if (poll(&waiting, 1, -1) < 0 && errno != EINTR)
        fail("poll");
    do {
        OK(dsh_next_event(scene.executor, &event, &error));
        if (event.process_id == scene.process_id)
            scene.events |= 1u << event.kind;
    } while (event.kind != DSH_EVENT_NONE);
}

static void step_run(char *rest)
{
    dsh_request_t request = request_from_terms();
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_sandbox_facts_t facts = DSH_SANDBOX_FACTS_INIT;
    dsh_result_t *result = NULL;
    (void)rest;
    TRY(dsh_run(scene.executor, &request, &result, &error));
    OK(dsh_result_info(result, &info, &error));
    OK(dsh_result_sandbox(result, &facts, &error));
    say_outcome(&info.outcome, 0);
    say_count("held by", info.held_by_len);
    say_count("survivors", info.survivors_len);
    say_facts(&facts, 1);
    say_captured("stdout", &info.out);
    say_captured("stderr", &info.err);
    if (info.timeout_ms != DEFAULT_TIMEOUT_MS)
        say("timeout %llu", (unsigned long long)info.timeout_ms);
    say_input(info.input_written);
    say_scrubbed(info.scrubbed, info.scrubbed_len);
    dsh_result_free(result);
}

static void step_start(char *rest)
{
    dsh_request_t request = request_from_terms();
    dsh_process_info_t info = DSH_PROCESS_INFO_INIT;
    (void)rest;
    dsh_process_free(scene.process);
    scene.process = NULL;
    TRY(dsh_start(scene.executor, &request, &scene.process, &error));
    OK(dsh_process_info(scene.process, &info, &error));
    scene.process_id = info.process_id;
    scene.events = 0;
    say("started");
}

/* The word before the first space of `*rest`, which becomes what comes after it. */
static char *word_of(char **rest)
{
    char *word = *rest, *space = strchr(word, ' ');
    *rest = space == NULL ? word + strlen(word) : space + 1;
    if (space != NULL)
        *space = '\0';
    return word;
}

static dsh_stream_t stream_of(const char *name)
{
    if (strcmp(name, "stdout") != 0 && strcmp(name, "stderr") != 0)
        unknown();
    return strcmp(name, "stdout") == 0 ? DSH_STDOUT : DSH_STDERR;
}

static int contains(const struct text *text, const struct text *wanted)
{
    for (size_t at = 0; at + wanted->len <= text->len; at++)
        if (memcmp(text->data + at, wanted->data, wanted->len) == 0)
            return 1;
    return 0;
}

static void step_until(char *rest)
{
    dsh_stream_t stream = stream_of(word_of(&rest));
    struct text wanted = value_of(rest), seen = {0};
    dsh_reading_t reading = DSH_READING_INIT;
    int has_come = 0;
    add(&seen, "", 0);
    while (!has_come && !reading.end) {
        char buffer[4096];
        OK(dsh_read_stream(scene.process, stream, reading.next, buffer, sizeof buffer, &reading, &error));
        add(&seen, buffer, reading.len);
        has_come = contains(&seen, &wanted);
        if (!has_come && !reading.end && reading.len == 0)
            take_events();
    }
    say(has_come ? "seen" : "ended");
    text_free(&wanted);
    text_free(&seen);
}

static void step_wait(char *rest)
{
    uint64_t limit = *rest == '\0' ? DSH_WAIT_FOREVER : number(rest);
    dsh_error_t *error = NULL;
    dsh_status_t status = dsh_wait(scene.process, limit, &error);
    if (status == DSH_OK) {
        say_process();
    } else if (status == DSH_E_TIMED_OUT) {
        say("timed out");
        dsh_error_free(error);
    } else {
        say_error(error);
    }
}

/* Consuming reads as long as `go_on`, to the end; otherwise one. */
static void read_chunks(int go_on)
{
    struct text text = {0};
    dsh_chunk_info_t info = DSH_CHUNK_INFO_INIT;
    uint64_t missing[2] = {0, 0};
    int spills[2] = {0, 0};
    add(&text, "", 0);
    do {
        dsh_chunk_t *chunk = NULL;
        OK(dsh_read_output(scene.process, &chunk, &error));
        OK(dsh_chunk_info(chunk, &info, &error));
        add(&text, info.data, info.len);
        missing[0] += info.out_missing;
        missing[1] += info.err_missing;
        spills[0] = info.out_spill_path != NULL;
        spills[1] = info.err_spill_path != NULL;
        dsh_chunk_free(chunk);
        if (go_on && !info.end && info.len == 0)
            take_events();
    } while (go_on && !info.end);
    if (missing[0] != 0 || missing[1] != 0)
        say("missing %llu %llu", (unsigned long long)missing[0], (unsigned long long)missing[1]);
    if (spills[0])
        say("spill out");
    if (spills[1])
        say("spill err");
    if (info.end)
        say("end");
    say_quoted("text", text.data, text.len);
    text_free(&text);
}

static void step_read(char *rest)
{
    (void)rest;
    read_chunks(0);
}

static void step_read_all(char *rest)
{
    (void)rest;
    OK(dsh_wait(scene.process, DSH_WAIT_FOREVER, &error));
    read_chunks(1);
}

static void step_stream(char *rest)
{
    dsh_stream_t stream = stream_of(word_of(&rest));
    uint64_t offset = number(word_of(&rest));
    size_t capacity = (size_t)number(rest);
    dsh_reading_t reading = DSH_READING_INIT;
    char *buffer = malloc(capacity + 1);
    if (buffer == NULL)
        fail("memory");
    OK(dsh_read_stream(scene.process, stream, offset, buffer, capacity, &reading, &error));
    if (reading.missing == 0)
        say("start %llu next %llu", (unsigned long long)reading.start, (unsigned long long)reading.next);
    else
        say("start %llu next %llu missing %llu", (unsigned long long)reading.start, (unsigned long long)reading.next,
            (unsigned long long)reading.missing);
    if (reading.end)
        say("end");
    say_quoted("text", buffer, (size_t)reading.len);
    free(buffer);
}

static void step_kill(char *rest)
{
    uint32_t was_running = 0;
    (void)rest;
    TRY(dsh_kill(scene.process, &was_running, &error));
    say(was_running ? "was running" : "was not running");
}

static void step_cancel(char *rest)
{
    (void)rest;
    TRY(dsh_cancel(scene.token, &error));
}

static void step_quiescent(char *rest)
{
    (void)rest;
    while (!(scene.events & 1u << DSH_EVENT_QUIESCENT))
        take_events();
}

static void step_events(char *rest)
{
    static const char *const KINDS[] = {NULL, "OUTPUT", "EXIT", "SETTLED", "QUIESCENT"};
    struct text line = {0};
    step_quiescent(rest);
    add_string(&line, "events");
    for (size_t kind = 1; kind < sizeof KINDS / sizeof *KINDS; kind++)
        if (scene.events & 1u << kind)
            add_format(&line, " %s", KINDS[kind]);
    say_text(&line);
}

static void step_resolve(char *rest)
{
    dsh_request_t request = request_from_terms();
    dsh_spec_info_t info = DSH_SPEC_INFO_INIT;
    dsh_spec_t *spec = NULL;
    (void)rest;
    TRY(dsh_resolve(scene.executor, &request, &spec, &error));
    OK(dsh_spec_info(spec, &info, &error));
    say_quoted("command", info.command, info.command_len < 60 ? info.command_len : 60);
    say_quoted("workdir", info.workdir, strlen(info.workdir));
    say("timeout %llu", (unsigned long long)info.timeout_ms);
    say("stdout max %llu", (unsigned long long)info.stdout_max_bytes);
    say("max output %llu", (unsigned long long)info.max_output_bytes);
    say("grace %llu", (unsigned long long)info.grace_ms);
    say("drain %llu", (unsigned long long)info.drain_ms);
    say("survivors %s", info.survivors == DSH_SURVIVORS_KILL ? "kill" : "keep");
    if (info.sandbox_mode != DSH_SANDBOX_DEFAULT)
        say("sandbox %s", MODES[info.sandbox_mode]);
    if (info.flags & DSH_REQUEST_MERGE_STDERR)
        say("merge_stderr");
    say_count("tag", info.tag);
    say_scrubbed(info.scrubbed, info.scrubbed_len);
    dsh_spec_free(spec);
}

static void step_configure(char *rest)
{
    dsh_config_t config = config_of();
    (void)rest;
    TRY(dsh_executor_configure(scene.executor, &config, &error));
    say("configured");
}

static void step_shutdown(char *rest)
{
    (void)rest;
    TRY(dsh_executor_shutdown(scene.executor, 0, &error));
}

/* ---- Budgets and terms by their names. -------------------------------------------------------------------------- */

static const struct number_budget {
    const char *name;
    size_t offset;
} NUMBERS[] = {
    {"timeout_ms", offsetof(dsh_config_t, timeout_ms)},
    {"max_timeout_ms", offsetof(dsh_config_t, max_timeout_ms)},
    {"max_output_bytes", offsetof(dsh_config_t, max_output_bytes)},
    {"max_spill_bytes", offsetof(dsh_config_t, max_spill_bytes)},
    {"max_total_spill_bytes", offsetof(dsh_config_t, max_total_spill_bytes)},
    {"grace_ms", offsetof(dsh_config_t, grace_ms)},
    {"drain_ms", offsetof(dsh_config_t, drain_ms)},
};

/* Switches, and what the flag means for them. */
static const struct switch_budget {
    const char *name;
    uint64_t flag;
    int set_is_on;
} SWITCHES[] = {
    {"inherit_env", DSH_CONFIG_NO_INHERIT_ENV, 0},
    {"guard", DSH_CONFIG_NO_GUARD, 0},
    {"keep_spill_files", DSH_CONFIG_KEEP_SPILL_FILES, 1},
};

static uint64_t *number_budget(dsh_config_t *config, const char *name)
{
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (strcmp(NUMBERS[i].name, name) == 0)
            return (uint64_t *)(void *)((char *)config + NUMBERS[i].offset);
    return NULL;
}

static const struct switch_budget *switch_budget(const char *name)
{
    for (size_t i = 0; i < sizeof SWITCHES / sizeof *SWITCHES; i++)
        if (strcmp(SWITCHES[i].name, name) == 0)
            return &SWITCHES[i];
    return NULL;
}

static int is_on(const char *value)
{
    if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
        unknown();
    return strcmp(value, "on") == 0;
}

/* The number of a name, which is not the first. */
static uint32_t number_of(const char *const *names, const char *name)
{
    for (uint32_t number = 1; names[number] != NULL; number++)
        if (strcmp(names[number], name) == 0)
            return number;
    unknown();
    return 0;
}

/* Takes a `sandbox.KEY VALUE`. */
static void set_policy(struct policy *policy, const char *key, const char *value)
{
    policy->is_set = 1;
    key += strlen("sandbox.");
    if (strcmp(key, "mode") == 0)
        policy->option.mode = number_of(MODES, value);
    else if (strcmp(key, "network") == 0)
        policy->option.network = number_of(NETWORKS, value);
    else if (strcmp(key, "workspace") == 0)
        assign(&policy->workspace, value);
    else if (strcmp(key, "writable") == 0)
        append(&policy->writable, value);
    else if (strcmp(key, "hidden") == 0)
        append(&policy->hidden, value);
    else if (strcmp(key, "backend") == 0 && policy->option.backends_len < ENTRIES)
        policy->backends[policy->option.backends_len++] = number_of(BACKENDS, value);
    else if (strcmp(key, "git_worktree") == 0)
        policy->option.flags = is_on(value) ? DSH_SANDBOX_GIT_WORKTREE : DSH_SANDBOX_NO_GIT_WORKTREE;
    else
        unknown();
}

static int is_of_policy(const char *key)
{
    return strncmp(key, "sandbox.", strlen("sandbox.")) == 0;
}

static void prepare_config(char *rest)
{
    struct budgets *budgets = &scene.budgets;
    const char *key = word_of(&rest);
    const struct switch_budget *which = switch_budget(key);
    uint64_t *field = number_budget(&budgets->numbers, key);
    if (field != NULL)
        *field = number(rest);
    else if (which != NULL && is_on(rest) == which->set_is_on)
        budgets->numbers.flags |= which->flag;
    else if (which != NULL)
        budgets->numbers.flags &= ~which->flag;
    else if (strcmp(key, "cwd") == 0)
        assign(&budgets->cwd, rest);
    else if (strcmp(key, "shell") == 0)
        assign(&budgets->shell, rest);
    else if (strcmp(key, "spill_dir") == 0)
        assign(&budgets->spill_dir, rest);
    else if (strcmp(key, "env_allow") == 0)
        append(&budgets->env_allow, rest);
    else if (strcmp(key, "env_deny") == 0)
        append(&budgets->env_deny, rest);
    else if (is_of_policy(key))
        set_policy(&budgets->policy, key, rest);
    else if (strcmp(key, "keep") == 0)
        budgets->numbers.keep = strcmp(rest, "head_tail") == 0 ? DSH_KEEP_HEAD_TAIL : DSH_KEEP_TAIL;
    else
        unknown();
}

static void say_path(const char *key, const char *path)
{
    struct text line = {0};
    add_format(&line, "%s ", key);
    add_string(&line, path == NULL ? "" : path);
    say_text(&line);
}

static void step_settings(char *key)
{
    dsh_settings_t *settings = NULL;
    dsh_config_t config = DSH_CONFIG_INIT;
    const struct switch_budget *which = switch_budget(key);
    const uint64_t *field = number_budget(&config, key);
    TRY(dsh_executor_config(scene.executor, &settings, &error));
    OK(dsh_settings_info(settings, &config, &error));
    if (field != NULL)
        say("%s %llu", key, (unsigned long long)*field);
    else if (which != NULL)
        say("%s %s", key, ((config.flags & which->flag) != 0) == which->set_is_on ? "on" : "off");
    else if (strcmp(key, "cwd") == 0)
        say_path(key, config.cwd);
    else if (strcmp(key, "shell") == 0)
        say_path(key, config.shell);
    else if (strcmp(key, "spill_dir") == 0)
        say_path(key, config.spill_dir);
    else if (strcmp(key, "sandbox.mode") == 0)
        say("%s %s", key, MODES[config.sandbox == NULL ? DSH_SANDBOX_DEFAULT : config.sandbox->mode]);
    else if (strcmp(key, "keep") == 0)
        say("keep %s", config.keep == DSH_KEEP_HEAD_TAIL ? "head_tail" : "tail");
    else
        unknown();
    dsh_settings_free(settings);
}

static void set_text(const char *key, struct text value)
{
    struct terms *terms = &scene.terms;
    struct text *field = strcmp(key, "command") == 0 ? &terms->command : &terms->input;
    if (field == &terms->input)
        terms->has_input = 1;
    text_free(field);
    *field = value;
}

static void prepare_set(char *rest)
{
    struct terms *terms = &scene.terms;
    const char *key = word_of(&rest);
    if (strcmp(key, "command") == 0 || strcmp(key, "input") == 0)
        set_text(key, value_of(rest));
    else if (strcmp(key, "workdir") == 0)
        assign(&terms->workdir, rest);
    else if (strcmp(key, "timeout_ms") == 0)
        terms->timeout_ms = number(rest);
    else if (strcmp(key, "stdout_max_bytes") == 0)
        terms->stdout_max_bytes = number(rest);
    else if (strcmp(key, "tag") == 0)
        terms->tag = number(rest);
    else if (strcmp(key, "env") == 0)
        append(&terms->env, rest);
    else if (strcmp(key, "dsh_env") == 0)
        append(&terms->dsh_env, rest);
    else if (strcmp(key, "merge_stderr") == 0)
        terms->flags |= is_on(rest) ? DSH_REQUEST_MERGE_STDERR : 0;
    else if (strcmp(key, "survivors") == 0)
        terms->survivors = strcmp(rest, "kill") == 0 ? DSH_SURVIVORS_KILL : DSH_SURVIVORS_KEEP;
    else if (is_of_policy(key))
        set_policy(&terms->policy, key, rest);
    else if (strcmp(key, "cancel") == 0)
        terms->cancels = is_on(rest);
    else
        unknown();
}

static void prepare_fill(char *rest)
{
    const char *key = word_of(&rest);
    uint64_t count = number(word_of(&rest));
    struct text value = value_of(rest), filled = {0};
    if (strcmp(key, "command") != 0 && strcmp(key, "input") != 0)
        unknown();
    add(&filled, "", 0);
    while (count-- > 0)
        add(&filled, value.data, value.len);
    text_free(&value);
    set_text(key, filled);
}

static void prepare_file(char *rest)
{
    const char *name = word_of(&rest);
    mode_t mode = (mode_t)strtoul(word_of(&rest), NULL, 8);
    struct text path = {0}, value = value_of(rest);
    add_string(&path, scene.dir);
    add_string(&path, "/");
    add_string(&path, name);
    if (path.data[path.len - 1] == '/') {
        if (mkdir(path.data, mode) != 0)
            fail(path.data);
    } else {
        int file = open(path.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file < 0 || write(file, value.data, value.len) != (ssize_t)value.len)
            fail(path.data);
        close(file);
    }
    if (chmod(path.data, mode) != 0) /* whatever the umask */
        fail(path.data);
    text_free(&path);
    text_free(&value);
}

/* ---- Playing. --------------------------------------------------------------------------------------------------- */

static const struct word {
    const char *name;
    void (*act)(char *rest);
    int makes_request;
} STEPS[] = {
    {"run", step_run, 1},
    {"start", step_start, 1},
    {"resolve", step_resolve, 1},
    {"until", step_until, 0},
    {"wait", step_wait, 0},
    {"read", step_read, 0},
    {"read_all", step_read_all, 0},
    {"stream", step_stream, 0},
    {"kill", step_kill, 0},
    {"cancel", step_cancel, 0},
    {"quiescent", step_quiescent, 0},
    {"events", step_events, 0},
    {"configure", step_configure, 0},
    {"settings", step_settings, 0},
    {"shutdown", step_shutdown, 0},
}, PREPARATIONS[] = {
    {"config", prepare_config, 0},
    {"set", prepare_set, 0},
    {"fill", prepare_fill, 0},
    {"file", prepare_file, 0},
};

static const struct word *find(const struct word *words, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(words[i].name, name) == 0)
            return &words[i];
    return NULL;
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *place)
{
    (void)stat, (void)kind, (void)place;
    return remove(path);
}

static void end_case(void)
{
    if (!scene.is_open)
        return;
    dsh_process_free(scene.process);
    dsh_executor_free(scene.executor);
    dsh_cancel_free(scene.token);
    terms_free(&scene.terms);
    budgets_free(&scene.budgets);
    nftw(scene.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    memset(&scene, 0, sizeof scene);
}

static void begin_case(void)
{
    struct text folder = {0};
    end_case();
    add_string(&folder, getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    add_string(&folder, "/scenario-XXXXXX");
    if (mkdtemp(folder.data) == NULL || realpath(folder.data, scene.dir) == NULL)
        fail(folder.data);
    text_free(&folder);
    OK(dsh_cancel_new(&scene.token, &error));
    scene.is_open = 1;
}

static void make_executor(void)
{
    dsh_config_t config = config_of();
    TRY(dsh_executor_new(&config, &scene.executor, &error));
    /* Before anything is started: events are kept from here on. */
    OK(dsh_executor_event_fd(scene.executor, &scene.events_wait, &error));
}

static void play_line(char *line)
{
    line_of_list = line;
    if (*line == '\0' || *line == '#' || strncmp(line, "= ", 2) == 0)
        return;
    if (strncmp(line, "case ", 5) == 0) {
        puts(line);
        begin_case();
        return;
    }
    char *copy = strdup(line), *rest = copy;
    if (copy == NULL)
        fail("memory");
    const char *name = word_of(&rest);
    const struct word *step = find(STEPS, sizeof STEPS / sizeof *STEPS, name);
    const struct word *preparation = find(PREPARATIONS, sizeof PREPARATIONS / sizeof *PREPARATIONS, name);
    if (!scene.is_open || (step == NULL && preparation == NULL))
        unknown();
    if (preparation != NULL) {
        preparation->act(rest);
    } else {
        print_line(line);
        if (scene.executor == NULL)
            make_executor();
        if (scene.executor != NULL)
            step->act(rest);
        if (step->makes_request)
            terms_free(&scene.terms);
    }
    free(copy);
}

/* All of a file. It is not read line by line, because valgrind has a forked child tidy up the streams of its parent. */
static struct text contents(const char *path)
{
    struct text text = {0};
    char buffer[4096];
    size_t len;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail(path);
    add(&text, "", 0);
    while ((len = fread(buffer, 1, sizeof buffer, file)) > 0)
        add(&text, buffer, len);
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(end_case); /* no folder is left behind, however this ends */
    for (int i = 1; i < argc; i++) {
        struct text list = contents(argv[i]);
        for (char *line = list.data, *end; line != NULL; line = end) {
            end = strchr(line, '\n');
            if (end != NULL)
                *end++ = '\0';
            play_line(line);
        }
        end_case();
        text_free(&list);
    }
    return 0;
}
