/* The library is loaded by hand, used, shut down and closed a hundred times: nothing adds up. */
#include <dlfcn.h>

#include "check.h"

static int threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static long mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    long lines = 0;
    CHECK(maps != NULL);
    for (int c = fgetc(maps); c != EOF; c = fgetc(maps))
        lines += c == '\n';
    fclose(maps);
    return lines;
}

static void *use(void *unused)
{
    dsh_status_t (*executor_new)(const dsh_config_t *, dsh_executor_t **, dsh_error_t **);
    dsh_status_t (*run_command)(const dsh_executor_t *, const dsh_request_t *, dsh_result_t **, dsh_error_t **);
    dsh_status_t (*start_command)(const dsh_executor_t *, const dsh_request_t *, dsh_process_t **, dsh_error_t **);
    dsh_status_t (*shutdown)(const dsh_executor_t *, uint64_t, dsh_error_t **);
    void (*result_free)(dsh_result_t *);
    void (*process_free)(dsh_process_t *);
    void (*executor_free)(dsh_executor_t *);
    dsh_config_t config = DSH_CONFIG_INIT;
    dsh_request_t request = request_of("echo hello"), background = request_of("sleep 60");
    dsh_executor_t *executor = NULL;
    dsh_process_t *process = NULL;
    dsh_result_t *result = NULL;
    void *library = dlopen("libdsh.so.0", RTLD_NOW | RTLD_LOCAL);
    (void)unused;
    CHECK(library != NULL);
    *(void **)&executor_new = dlsym(library, "dsh_executor_new");
    *(void **)&run_command = dlsym(library, "dsh_run");
    *(void **)&start_command = dlsym(library, "dsh_start");
    *(void **)&shutdown = dlsym(library, "dsh_executor_shutdown");
    *(void **)&result_free = dlsym(library, "dsh_result_free");
    *(void **)&process_free = dlsym(library, "dsh_process_free");
    *(void **)&executor_free = dlsym(library, "dsh_executor_free");
    config.grace_ms = 300;
    CHECK(executor_new(&config, &executor, NULL) == DSH_OK);
    CHECK(run_command(executor, &request, &result, NULL) == DSH_OK);
    CHECK(start_command(executor, &background, &process, NULL) == DSH_OK);
    result_free(result);
    CHECK(shutdown(executor, 0, NULL) == DSH_OK);
    process_free(process);
    executor_free(executor);
    CHECK(dlclose(library) == 0);
    return NULL;
}

int main(void)
{
    int files = 0, tasks = 0;
    long maps = 0;
    for (int round = 0; round < 100; round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, use, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        if (round == 0) {
            files = open_descriptors();
            tasks = threads();
        }
        if (round == 9)
            maps = mappings();
        CHECK(open_descriptors() == files && threads() == tasks && !has_children());
    }
    CHECK(mappings() <= maps + 5);
    return 0;
}
