/* What a process can observe about itself is the same before, during and after: everything that is the host's alone at
 * every moment; descriptors, threads and children once the executor has gone. */
#include "check.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

extern char **environ;

static char *text;
static size_t len;
static FILE *out;

/* The kernel's own view, with the numbers that the C library hides. */
static void signals(void)
{
    unsigned long long mask = 0, action[4];
    for (long number = 1; number <= 64; number++) {
        memset(action, 0, sizeof action);
        syscall(SYS_rt_sigaction, number, NULL, action, sizeof mask);
        fprintf(out, "signal %ld: %llx %llx %llx %llx\n", number, action[0], action[1], action[2], action[3]);
    }
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    fprintf(out, "mask: %llx\n", mask);
    stack_t stack;
    CHECK(sigaltstack(NULL, &stack) == 0);
    fprintf(out, "signal stack: %p %zu %d\n", stack.ss_sp, stack.ss_size, stack.ss_flags);
    for (int timer = 0; timer < 3; timer++) {
        struct itimerval value;
        CHECK(getitimer(timer, &value) == 0);
        fprintf(out, "timer %d: %d\n", timer, value.it_value.tv_sec + value.it_value.tv_usec != 0);
    }
}

static void limits_and_places(void)
{
    char folder[4096], line[256];
    for (int number = 0; number < RLIM_NLIMITS; number++) {
        struct rlimit limit;
        CHECK(getrlimit(number, &limit) == 0);
        fprintf(out, "limit %d: %llu %llu\n", number, (unsigned long long)limit.rlim_cur,
                (unsigned long long)limit.rlim_max);
    }
    CHECK(getcwd(folder, sizeof folder) != NULL);
    fprintf(out, "cwd: %s\nlocale: %s\n", folder, setlocale(LC_ALL, NULL));
    fprintf(out, "session: %d\ngroup: %d\npriority: %d\n", getsid(0), getpgrp(), getpriority(PRIO_PROCESS, 0));
    int subreaper = -1;
    CHECK(prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0);
    fprintf(out, "subreaper: %d\ndumpable: %d\nno new privileges: %d\nslack: %d\n", subreaper, prctl(PR_GET_DUMPABLE),
            prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), prctl(PR_GET_TIMERSLACK));
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "Umask", 5) == 0 || strncmp(line, "Cap", 3) == 0 || strncmp(line, "Seccomp", 7) == 0
            || strncmp(line, "Name", 4) == 0 || strncmp(line, "Sig", 3) == 0 || strncmp(line, "ShdPnd", 6) == 0
            || strncmp(line, "Groups", 6) == 0)
            if (strncmp(line, "SigQ", 4) != 0)
                fputs(line, out);
    fclose(status);
    fprintf(out, "environment: %p\n", (void *)environ);
    for (char **entry = environ; *entry != NULL; entry++)
        fprintf(out, "%p %s\n", (void *)*entry, *entry);
}

static void descriptors(void)
{
    for (int fd = 0; fd < 1024; fd++) {
        char path[64], target[4096];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, target, sizeof target - 1);
        if (size < 0)
            continue;
        target[size] = 0;
        fprintf(out, "descriptor %d: %s %x %x\n", fd, target, fcntl(fd, F_GETFD), fcntl(fd, F_GETFL));
    }
}

/* The names of a folder, without the order. */
static void tasks_and_children(void)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300], line[4096] = "";
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/children", task->d_name);
        FILE *children = fopen(path, "r");
        if (children != NULL && fgets(line, sizeof line, children) == NULL)
            line[0] = 0;
        fprintf(out, "thread %s: %s\n", task->d_name, line);
        if (children != NULL)
            fclose(children);
    }
    closedir(tasks);
}

static char *state(int everything)
{
    out = open_memstream(&text, &len);
    CHECK(out != NULL);
    signals();
    limits_and_places();
    if (everything) {
        descriptors();
        tasks_and_children();
    }
    fclose(out);
    return text;
}

static void same(const char *before, int everything, const char *when)
{
    char *now = state(everything);
    if (strcmp(before, now) != 0) {
        size_t at = 0;
        while (before[at] == now[at])
            at++;
        while (at > 0 && before[at - 1] != '\n')
            at--;
        fprintf(stderr, "changed by %s, from here on:\n%.500s\n--- after\n%.500s\n", when, before + at, now + at);
        exit(1);
    }
    free(now);
}

static void *nothing(void *unused)
{
    return unused;
}

int main(void)
{
    static char input[300000];
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGWINCH);
    CHECK(pthread_sigmask(SIG_BLOCK, &some, NULL) == 0);
    signal(SIGQUIT, SIG_IGN);
    CHECK(setenv("SOME_TOKEN", "secret", 1) == 0);
    pthread_t thread; /* with the first one, the C library takes signal 33 for itself */
    CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0);
    free(state(1));

    for (int round = 0; round < 2; round++) { /* what is done once per process is no excuse either */
        char *host = state(0), *before = state(1);
        dsh_executor_t *executor = quick_executor();
        same(host, 0, "dsh_executor_new");
        dsh_request_t request = request_of("exec <&-; seq 100000; cd /; umask 0; ulimit -n 20; export A=1");
        dsh_result_info_t info = DSH_RESULT_INFO_INIT;
        request.input = input;
        request.input_len = sizeof input;
        request.workdir = "/usr";
        dsh_result_t *result = run(executor, &request, &info);
        CHECK(info.out.spill_path != NULL);
        same(host, 0, "dsh_run");
        dsh_result_free(result);
        dsh_process_t *process = NULL;
        OK(dsh_start(executor, &request, &process, &error));
        dsh_process_t *deaf = start(executor, "trap '' TERM; setsid sleep 60 & echo up; sleep 60; sleep 60");
        same(host, 0, "dsh_start");
        OK(dsh_wait(process, 20000, &error));
        UNTIL(info_of(deaf).out_total == 3);
        same(host, 0, "dsh_wait");
        OK(dsh_kill(deaf, NULL, &error));
        same(host, 0, "dsh_kill");
        int32_t fd = -1;
        OK(dsh_executor_event_fd(executor, &fd, &error));
        request.workdir = "/nowhere";
        FAILS(dsh_run(executor, &request, &result, &error), DSH_E_WORKDIR_MISSING, "/nowhere");
        same(host, 0, "a run that fails");
        OK(dsh_wait(deaf, 20000, &error));
        dsh_process_free(process);
        dsh_process_free(deaf);
        OK(dsh_executor_shutdown(executor, 0, &error));
        same(host, 0, "dsh_executor_shutdown");
        dsh_executor_free(executor);
        same(before, 1, "everything");
        free(host);
        free(before);
    }
    CHECK(!has_children());
    return 0;
}
