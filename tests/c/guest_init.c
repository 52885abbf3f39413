/* A host that is the first process of a PID namespace: orphans become its children, and stay its business. Exits with
 * 77 and the reason where there can be no such host. */
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>

static dsh_executor_t *executor;
static atomic_int reaps;

static void *reap_everybody(void *unused)
{
    (void)unused;
    while (reaps)
        if (waitpid(-1, NULL, WNOHANG) <= 0)
            nap();
    return NULL;
}

static int alive_or_zombies(char wanted)
{
    int count = 0;
    DIR *processes = opendir("/proc");
    CHECK(processes != NULL);
    for (struct dirent *entry = readdir(processes); entry != NULL; entry = readdir(processes)) {
        char path[300], line[512] = "";
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *stat = atoi(entry->d_name) > 1 ? fopen(path, "r") : NULL;
        if (stat == NULL)
            continue;
        if (fgets(line, sizeof line, stat) != NULL) {
            int is_zombie = strrchr(line, ')')[2] == 'Z';
            count += is_zombie == (wanted == 'Z');
        }
        fclose(stat);
    }
    closedir(processes);
    return count;
}

static void commands_run(int reaped_by_host)
{
    dsh_request_t request = request_of("(setsid sleep .05 >/dev/null 2>&1 </dev/null &); echo $PPID; exit 7");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    for (int round = 0; round < 10; round++) {
        dsh_result_t *result = run(executor, &request, &info);
        CHECK(is_text(info.out.data, info.out.len, "1\n"));
        CHECK(reaped_by_host || info.outcome.exit == DSH_EXIT_CODE);
        CHECK(info.outcome.exit == DSH_EXIT_UNKNOWN || info.outcome.code == 7);
        dsh_result_free(result);
    }
}

/* Orphans of every kind, whose zombies nobody reaps: a zombie is dead. */
static void trees_end(void)
{
    const char *command = "sleep 60 & (setsid sleep 60 &); (sleep 60 & sleep 60 & exec true);"
                          " trap '' TERM; echo up; wait";
    dsh_request_t late = request_of(command);
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    late.timeout_ms = 200;
    dsh_result_free(run(executor, &late, &info));
    CHECK(info.outcome.timed_out && info.survivors_len == 0);

    dsh_process_t *process = start(executor, command);
    UNTIL(info_of(process).out_total == 3);
    OK(dsh_kill(process, NULL, &error));
    OK(dsh_wait(process, 20000, &error));
    UNTIL(info_of(process).quiescent);
    CHECK(info_of(process).survivors_len == 0);
    dsh_process_free(process);

    dsh_request_t kept = request_of("sleep 60 & setsid sleep 60 </dev/null >/dev/null 2>&1 & exit 0");
    kept.survivors = DSH_SURVIVORS_KILL;
    dsh_result_free(run(executor, &kept, &info));
    CHECK(info.survivors_len == 0);
}

static int host(void)
{
    CHECK(getpid() == 1);
    executor = quick_executor();
    commands_run(0);
    trees_end();
    dsh_process_t *process = start(executor, "setsid sleep 60 </dev/null >/dev/null 2>&1 & sleep 60 & echo up; wait");
    UNTIL(info_of(process).out_total == 3);
    OK(dsh_executor_shutdown(executor, 0, &error));
    dsh_process_free(process);
    dsh_executor_free(executor);
    CHECK(alive_or_zombies('R') == 0);
    CHECK(alive_or_zombies('Z') >= 10); /* strangers to the library, who are left to the host */
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    CHECK(!has_children());

    pthread_t thread;
    reaps = 1;
    CHECK(pthread_create(&thread, NULL, reap_everybody, NULL) == 0);
    executor = quick_executor();
    commands_run(1);
    trees_end();
    dsh_executor_free(executor);
    UNTIL(alive_or_zombies('R') == 0 && alive_or_zombies('Z') == 0);
    reaps = 0;
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}

static void map_self(const char *path, const char *format, unsigned id)
{
    FILE *map = fopen(path, "w");
    if (map != NULL) {
        fprintf(map, format, id, id);
        fclose(map);
    }
}

static int skip(const char *step)
{
    printf("skipped: %s: %s\n", step, strerror(errno));
    return 77;
}

int main(void)
{
    unsigned user = geteuid(), group = getegid();
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) != 0)
            return skip("no PID namespace");
        map_self("/proc/self/setgroups", "deny", 0);
        map_self("/proc/self/uid_map", "%u %u 1", user);
        map_self("/proc/self/gid_map", "%u %u 1", group);
    }
    int status = -1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(120);
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("proc", "/proc", "proc", 0, NULL) != 0)
            exit(skip("no /proc of its own"));
        exit(host());
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status))
        fprintf(stderr, "the host died of signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
