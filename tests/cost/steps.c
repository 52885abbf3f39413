/* Counts the instructions that a program executes between two marks (see marks.h), on its first thread, by stepping
 * through them one by one:
 *
 *     steps TRACE PROGRAM [ARGUMENT...]
 *
 * prints a line for each pair of marks: instructions of libdsh, and of the C library with its loader. TRACE, unless it
 * is empty, becomes a file of every program counter and stack pointer, after the text of the memory map.
 *
 * Stepping needs no counters of the processor, which virtual machines seldom have, and unlike valgrind changes nothing of
 * what is executed: under valgrind the library finds no clone that shares memory, no pidfds and no guard, and goes other
 * ways. Nothing of the kernel counts, nor of children, which are not traced.
 *
 * All of it is kept on one processor: that makes a step less than half as long, and the order in which the program and
 * its children get their turns nearly the same each time.
 */
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marks.h"

enum { DSH, LIBC, ELSEWHERE, OBJECTS };

static struct range {
    uint64_t from, to;
    int object;
} ranges[64];
static int known;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int object_of(const char *path)
{
    const char *libc[] = {"/libc.so", "/libc-", "/ld-linux", "/libpthread", "/libgcc_s"};
    if (strstr(path, "/libdsh.so"))
        return DSH;
    for (size_t i = 0; i < sizeof libc / sizeof *libc; i++)
        if (strstr(path, libc[i]))
            return LIBC;
    return ELSEWHERE; /* the program itself, and what the kernel maps, such as its clock */
}

static void read_map(pid_t pid, FILE *trace)
{
    char name[64], line[1024];
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *map = fopen(name, "r");
    if (!map)
        fail(name);
    while (fgets(line, sizeof line, map)) {
        unsigned long long from, to;
        char mode[8];
        if (trace)
            fputs(line, trace);
        if (sscanf(line, "%llx-%llx %7s", &from, &to, mode) == 3 && mode[2] == 'x' && known < 64)
            ranges[known++] = (struct range){from, to, object_of(line)};
    }
    if (trace)
        fputc('\n', trace);
    fclose(map);
}

static int object_at(uint64_t address)
{
    static struct range last;
    if (address < last.from || address >= last.to) {
        last = (struct range){0, 0, ELSEWHERE};
        for (int i = 0; i < known; i++)
            if (address >= ranges[i].from && address < ranges[i].to)
                last = ranges[i];
    }
    return last.object;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one); /* if it may not be, it takes longer */
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            fail("ptrace");
        execv(argv[2], argv + 2);
        fail(argv[2]);
    }
    FILE *trace = *argv[1] ? fopen(argv[1], "w") : NULL;
    uint64_t counts[OBJECTS] = {0};
    int status, stepping = 0, skipping = 0, signal = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return 1;
    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
    for (;;) {
        if (ptrace(stepping && !skipping ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, (void *)(long)signal) < 0)
            fail("ptrace");
        signal = 0;
        if (waitpid(pid, &status, 0) != pid)
            fail("waitpid");
        if (!WIFSTOPPED(status)) {
            if (trace)
                fclose(trace);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        }
        if (WSTOPSIG(status) != SIGTRAP) {
            signal = WSTOPSIG(status);
            continue;
        }
        uint64_t at = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), NULL);
        int object = stepping ? object_at(at) : ELSEWHERE;
        if (object == ELSEWHERE) {
            siginfo_t info;
            ptrace(PTRACE_GETSIGINFO, pid, NULL, &info);
            if (info.si_code == SI_KERNEL) {
                switch (ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rax), NULL)) {
                case MARK_BEGIN:
                    if (known == 0)
                        read_map(pid, trace);
                    memset(counts, 0, sizeof counts);
                    stepping = 1;
                    break;
                case MARK_END:
                    printf("%llu %llu\n", (unsigned long long)counts[DSH], (unsigned long long)counts[LIBC]);
                    stepping = 0;
                    break;
                case MARK_SKIP:
                    skipping = 1;
                    break;
                case MARK_ON:
                    skipping = 0;
                    break;
                }
                continue;
            }
        }
        /* The instruction at this address is about to be executed. */
        counts[object]++;
        if (trace) {
            uint64_t entry[2] = {at, ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rsp), NULL)};
            fwrite(entry, sizeof entry, 1, trace);
        }
    }
}
