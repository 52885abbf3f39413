/* The library is loaded by hand, used, closed and stays where it is; threads that used it end after that. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static void *library;

static void *use(void *unused)
{
    dsh_status_t (*executor_new)(const dsh_config_t *, dsh_executor_t **, dsh_error_t **);
    dsh_status_t (*run_command)(const dsh_executor_t *, const dsh_request_t *, dsh_result_t **, dsh_error_t **);
    void (*result_free)(dsh_result_t *);
    void (*executor_free)(dsh_executor_t *);
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_request_t request = request_of("echo hello");
    dsh_executor_t *executor = NULL;
    dsh_result_t *result = NULL;
    (void)unused;
    *(void **)&executor_new = dlsym(library, "dsh_executor_new");
    *(void **)&run_command = dlsym(library, "dsh_run");
    *(void **)&result_free = dlsym(library, "dsh_result_free");
    *(void **)&executor_free = dlsym(library, "dsh_executor_free");
    config.flags = test_flags();
    CHECK(executor_new(&config, &executor, NULL) == DSH_OK);
    CHECK(run_command(executor, &request, &result, NULL) == DSH_OK);
    result_free(result);
    executor_free(executor);
    CHECK(dlclose(library) == 0);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    const char *(*version)(void);
    for (int round = 0; round < 2; round++) {
        library = dlopen("libdsh.so.0", RTLD_NOW | RTLD_LOCAL);
        CHECK(library != NULL);
        *(void **)&version = dlsym(library, "dsh_version");
        CHECK(pthread_create(&thread, NULL, use, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(strlen(version()) > 0);
    }
    return 0;
}
