/* A host that leaves descriptors open across every exec: neither commands, nor their children, nor the guard get them;
 * and nothing of the library's shows in a command. */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void has_only(const dsh_executor_t *executor, const char *command, int with_input)
{
    dsh_request_t request = request_of(command);
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    if (with_input) {
        request.input = "in";
        request.input_len = 2;
    }
    dsh_result_t *result = run(executor, &request, &info);
    if (!is_text(info.out.data, info.out.len, "0\n1\n2\n"))
        fprintf(stderr, "%s: %.*s\n", command, (int)info.out.len, (const char *)info.out.data);
    CHECK(is_text(info.out.data, info.out.len, "0\n1\n2\n"));
    dsh_result_free(result);
}

/* The guard holds a handful of its own, and neither pipe, socket nor file of the host's. */
static void the_guard_has_its_own(pid_t guard)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", guard);
    DIR *files = opendir(path);
    CHECK(guard > 0 && files != NULL);
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        if (file->d_name[0] == '.')
            continue;
        count++;
        CHECK(atoi(file->d_name) < 6);
    }
    closedir(files);
    CHECK(count <= 5);
}

static void the_environment_shows_one_mark(const dsh_executor_t *executor)
{
    dsh_request_t request = request_of("env | grep -E '^(DSH|LD_PRELOAD)'");
    dsh_result_info_t info = DSH_RESULT_INFO_INIT;
    dsh_result_t *result = run(executor, &request, &info);
    CHECK(strncmp(info.out.data, "DSH_PROCESS_ID=", 15) == 0);
    CHECK(memchr(info.out.data, '\n', info.out.len) == (const char *)info.out.data + info.out.len - 1);
    dsh_result_free(result);
}

int main(void)
{
    static char longer[140000];
    struct rlimit limit;
    int ends[2], sockets[2];
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < 40; i++)
        CHECK(open("/dev/null", O_RDWR) >= 0 && pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    CHECK(dup2(ends[1], (int)(limit.rlim_cur < 900 ? limit.rlim_cur - 1 : 900)) > 0);

    dsh_executor_t *executor = quick_executor();
    dsh_stats_t stats = DSH_STATS_INIT;
    int32_t fd = -1;
    OK(dsh_executor_event_fd(executor, &fd, &error));
    dsh_process_t *other = start(executor, "sleep 60"); /* whose pipes are none of the next one's business */
    for (int with_input = 0; with_input < 2; with_input++) {
        has_only(executor, "ls /proc/$$/fd; true", with_input);
        has_only(executor, "bash -c 'ls /proc/$$/fd; true'", with_input);
        has_only(executor, "(ls /proc/$BASHPID/fd; true) & wait", with_input);
    }
    memset(longer, ' ', sizeof longer - 1);
    memcpy(longer, "ls /proc/$$/fd; true", 20);
    has_only(executor, longer, 1);
    the_environment_shows_one_mark(executor);
    OK(dsh_executor_stats(executor, &stats, &error));
    the_guard_has_its_own(stats.guard_pid);
    OK(dsh_kill(other, NULL, &error));
    dsh_process_free(other);
    dsh_executor_free(executor);
    return 0;
}
