/* What the C tests share. A test is a program: it says what is wrong and exits with 1, or exits with 0. */
#ifndef CHECK_H
#define CHECK_H

#include <dirent.h>
#include <dsh.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A call that has to succeed; its last argument is `&error`. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        dsh_error_t *error = NULL;                                                                                     \
        dsh_status_t status = (call);                                                                                  \
        if (status != DSH_OK || error != NULL) {                                                                       \
            fprintf(stderr, "%s:%d: %s gave %d: %s\n", __FILE__, __LINE__, #call, status, dsh_error_message(error));   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A call that has to fail with this status, and a message that holds all of these texts. */
#define FAILS(call, expected, ...)                                                                                     \
    do {                                                                                                               \
        dsh_error_t *error = NULL;                                                                                     \
        dsh_status_t status = (call);                                                                                  \
        const char *texts[] = {__VA_ARGS__, NULL};                                                                     \
        for (const char **text = texts; *text != NULL; text++)                                                         \
            if (status != (expected) || !strstr(dsh_error_message(error), *text)) {                                    \
                fprintf(stderr, "%s:%d: %s gave %d, not %d with \"%s\": %s\n", __FILE__, __LINE__, #call, status,      \
                        (expected), *text, dsh_error_message(error));                                                  \
                exit(1);                                                                                               \
            }                                                                                                          \
        CHECK(dsh_error_code(error) == status);                                                                        \
        dsh_error_free(error);                                                                                         \
    } while (0)

/* A hang ends; commands do not inherit this. */
__attribute__((constructor)) static void limit_time(void)
{
    alarm(240);
}

/* Valgrind starts no guard, since it executes no file without a name, and takes a second for what is done the first
 * time. */
static inline uint64_t test_flags(void)
{
    return getenv("CHECK_UNDER_VALGRIND") ? DSH_CONFIG_NO_GUARD : 0;
}

static inline uint64_t test_grace_ms(void)
{
    return getenv("CHECK_UNDER_VALGRIND") ? 20000 : 300;
}

static inline uint64_t test_drain_ms(void)
{
    return getenv("CHECK_UNDER_VALGRIND") ? 20000 : 200;
}

/* An executor with a short grace. */
static inline dsh_executor_t *quick_executor(void)
{
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_executor_t *executor = NULL;
    config.grace_ms = test_grace_ms();
    config.drain_ms = test_drain_ms();
    config.flags = test_flags();
    OK(dsh_executor_new(&config, &executor, &error));
    return executor;
}

static inline dsh_request_t request_of(const char *command)
{
    dsh_request_t request = DSH_REQUEST_INIT;
    request.command = command;
    request.command_len = strlen(command);
    return request;
}

static inline dsh_result_t *run(const dsh_executor_t *executor, const dsh_request_t *request, dsh_result_info_t *info)
{
    dsh_result_t *result = NULL;
    OK(dsh_run(executor, request, &result, &error));
    OK(dsh_result_info(result, info, &error));
    return result;
}

static inline dsh_process_t *start(const dsh_executor_t *executor, const char *command)
{
    dsh_request_t request = request_of(command);
    dsh_process_t *process = NULL;
    OK(dsh_start(executor, &request, &process, &error));
    return process;
}

static inline dsh_process_info_t info_of(const dsh_process_t *process)
{
    dsh_process_info_t info = DSH_PROCESS_INFO_INIT;
    OK(dsh_process_info(process, &info, &error));
    return info;
}

static inline int is_text(const void *data, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(data, text, len) == 0;
}

static inline void nap(void)
{
    struct timespec time = {0, 5 * 1000 * 1000};
    nanosleep(&time, NULL);
}

/* Until the condition holds; a hang ends after some 20 seconds. */
#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        int naps = 0;                                                                                                  \
        while (!(condition)) {                                                                                         \
            CHECK(naps++ < 4000);                                                                                      \
            nap();                                                                                                     \
        }                                                                                                              \
    } while (0)

static inline int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static inline int has_children(void)
{
    return waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

#endif
