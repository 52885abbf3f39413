/* A host with a handler for every signal that is showered with signals: its handlers run on its own threads only, never
 * on one of the library's, and never in a child that still shares the host's memory. */
#include "check.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { TIDS = 64 };

static dsh_executor_t *executor;
static pid_t host;
static atomic_int seen[TIDS]; /* the threads on which a handler has run */
static atomic_int counts[65];
static atomic_int foreign; /* handlers that ran in another process */
static atomic_int over;
static atomic_int own[TIDS]; /* the host's threads */
static atomic_int own_count;

static void handler(int number)
{
    int before = errno, tid = (int)syscall(SYS_gettid);
    counts[number]++;
    if (syscall(SYS_getpid) != host)
        foreign++;
    for (int i = 0; i < TIDS; i++) {
        int empty = 0;
        if (seen[i] == tid || atomic_compare_exchange_strong(&seen[i], &empty, tid))
            break;
    }
    errno = before;
}

static int is_own(int tid)
{
    for (int i = 0; i < own_count; i++)
        if (own[i] == tid)
            return 1;
    return 0;
}

static void handlers_ran_on_own_threads_only(void)
{
    CHECK(foreign == 0);
    for (int i = 0; i < TIDS && seen[i] != 0; i++)
        CHECK(is_own(seen[i]));
}

static void join_in(void)
{
    own[own_count++] = (int)syscall(SYS_gettid);
}

/* Every thread of the library blocks everything that can be blocked; 32 and 33 are the C library's. */
static void library_threads_block_everything(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300], line[256], name[64] = "";
        unsigned long long blocked = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (status == NULL)
            continue;
        while (fgets(line, sizeof line, status) != NULL) {
            sscanf(line, "Name: %63s", name);
            sscanf(line, "SigBlk: %llx", &blocked);
        }
        fclose(status);
        CHECK((strncmp(name, "dsh-", 4) == 0) == !is_own(atoi(task->d_name)));
        if (strncmp(name, "dsh-", 4) != 0)
            continue;
        found++;
        for (int number = 1; number <= 64; number++)
            if (number != SIGKILL && number != SIGSTOP && number != 32 && number != 33)
                CHECK(blocked >> (number - 1) & 1);
    }
    closedir(tasks);
    CHECK(found == 2);
}

static void *shower(void *unused)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGUSR1, SIGPIPE, SIGCHLD, SIGTERM, SIGALRM, SIGWINCH, SIGIO, 40, 64};
    (void)unused;
    join_in();
    for (size_t i = 0; !over; i++) {
        CHECK(kill(host, signals[i % (sizeof signals / sizeof *signals)]) == 0);
        struct timespec time = {0, 100000};
        nanosleep(&time, NULL);
    }
    return NULL;
}

static void one_round(int round)
{
    dsh_request_t request = request_of("head -c 70000 >/dev/null; echo out; exit 6");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    static char input[100000];
    request.input = input;
    request.input_len = sizeof input;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(info.outcome.exit == DSH_EXIT_CODE && info.outcome.code == 6);
    CHECK(is_text(info.out.data, info.out.len, "out\n"));
    dsh_result_free(result);

    dsh_process_t *process = start(executor, round % 2 ? "echo up; sleep 60" : "echo up; exit 5");
    if (round % 2)
        OK(dsh_kill(process, NULL, &error));
    OK(dsh_wait(process, 60000, &error));
    dsh_process_info_t end = info_of(process);
    CHECK(round % 2 ? end.outcome.signal == SIGTERM : end.outcome.code == 5 && end.out_total == 3);
    dsh_process_free(process);
}

static void *work(void *unused)
{
    (void)unused;
    join_in();
    for (int round = 0; round < 15; round++)
        one_round(round);
    return NULL;
}

/* Those that a process can block, and that don't take each other back as those that stop and continue it do. 32 and 33
 * are the C library's. */
static int is_ordinary(int number)
{
    return number != SIGKILL && (number < SIGCONT || number > SIGTTOU) && number != 32 && number != 33;
}

/* With nobody else to take them, signals would go to a thread of the library if it let them. */
static void nobody_of_the_library_takes_a_signal(void)
{
    sigset_t all, before;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int sum = 0, later = 0;
    for (int number = 1; number <= 64; number++)
        sum += counts[number];
    for (int number = 1; number <= 64; number++)
        if (is_ordinary(number))
            CHECK(kill(host, number) == 0);
    for (int round = 0; round < 4; round++)
        one_round(round);
    for (int number = 1; number <= 64; number++)
        later += counts[number];
    CHECK(later == sum);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0); /* all of them come now, on this thread */
    for (int number = 1; number <= 64; number++)
        if (is_ordinary(number))
            CHECK(counts[number] > 0);
}

/* Neither a command that takes no input nor a limit on file sizes is the host's business. */
static void the_library_raises_nothing_itself(void)
{
    static char input[300000];
    struct rlimit old, limit;
    dsh_request_t request = request_of("exec <&-; seq 100000");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    request.input = input;
    request.input_len = sizeof input;
    dsh_result_free(run(executor, &request, &info)); /* starts the guard, which takes a file of 512 KiB in memory */
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    limit = (struct rlimit){100000, old.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int round = 0; round < 3; round++)
        dsh_result_free(run(executor, &request, &info));
    dsh_process_t *process = NULL;
    OK(dsh_start(executor, &request, &process, &error));
    OK(dsh_wait(process, 60000, &error));
    dsh_process_free(process);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    for (int number = 1; number <= 64; number++)
        CHECK(number == SIGCHLD || counts[number] == 0); /* its children are the host's, and so is their SIGCHLD */
}

int main(void)
{
    pthread_t showerer, workers[2];
    struct sigaction action = {.sa_handler = handler};
    sigfillset(&action.sa_mask);
    host = getpid();
    join_in();
    for (int number = 1; number <= 64; number++)
        sigaction(number, &action, NULL); /* refused for some numbers */
    alarm(0);

    executor = quick_executor();
    the_library_raises_nothing_itself();
    library_threads_block_everything();
    CHECK(pthread_create(&showerer, NULL, shower, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&workers[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(workers[i], NULL) == 0);
    over = 1;
    CHECK(pthread_join(showerer, NULL) == 0);
    nobody_of_the_library_takes_a_signal();
    handlers_ran_on_own_threads_only();
    dsh_executor_free(executor);
    handlers_ran_on_own_threads_only();
    CHECK(counts[SIGUSR1] > 10);
    return 0;
}
