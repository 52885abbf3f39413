// Numbers cross the border in one Float64Array that both sides hold, so that a call costs no property per number. This
// list is its layout; JavaScript gets it as `addon.facts`.
#pragma once

#define DSH_NODE_FACTS(X)                                                                                              \
    /* What a request says. */                                                                                         \
    X(TIMEOUT)                                                                                                         \
    X(STDOUT_MAX)                                                                                                      \
    X(TAG)                                                                                                             \
    X(FLAGS)                                                                                                           \
    X(SURVIVORS)                                                                                                       \
    /* What a process is. */                                                                                           \
    X(KEY)                                                                                                             \
    X(PROCESS_ID)                                                                                                      \
    X(PID)                                                                                                             \
    X(STATUS)                                                                                                          \
    X(QUIESCENT)                                                                                                       \
    X(SURVIVORS_LEN)                                                                                                   \
    X(HELD_BY_LEN)                                                                                                     \
    X(INPUT_WRITTEN)                                                                                                   \
    /* How it ended. */                                                                                                \
    X(EXIT)                                                                                                            \
    X(CODE)                                                                                                            \
    X(SIGNAL)                                                                                                          \
    X(CORE_DUMPED)                                                                                                     \
    X(TIMED_OUT)                                                                                                       \
    X(ABORTED)                                                                                                         \
    X(CAUSE)                                                                                                           \
    X(STOPPED_BY)                                                                                                      \
    X(STAGE)                                                                                                           \
    X(PIPES_HELD)                                                                                                      \
    X(WALL_US)                                                                                                         \
    X(USER_US)                                                                                                         \
    X(SYSTEM_US)                                                                                                       \
    X(MAX_RSS)                                                                                                         \
    /* What it wrote. */                                                                                               \
    X(OUT_TOTAL)                                                                                                       \
    X(OUT_OMITTED)                                                                                                     \
    X(OUT_OMITTED_AT)                                                                                                  \
    X(ERR_TOTAL)                                                                                                       \
    X(ERR_OMITTED)                                                                                                     \
    X(ERR_OMITTED_AT)                                                                                                  \
    /* What a read gave. */                                                                                            \
    X(OUT_MISSING)                                                                                                     \
    X(ERR_MISSING)                                                                                                     \
    X(START)                                                                                                           \
    X(NEXT)                                                                                                            \
    X(LOSSY)                                                                                                           \
    X(END)

namespace dsh_node {

enum Fact : unsigned {
#define X(name) FACT_##name,
    DSH_NODE_FACTS(X)
#undef X
        FACT_COUNT
};

} // namespace dsh_node
