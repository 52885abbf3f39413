/* What is kept of a stream. */
#define _GNU_SOURCE

#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_CAPACITY 4096

/* Memory comes as it is needed: most streams are short. Until it is all there, nothing wraps around. */
static int make_room(struct stream *stream, size_t len)
{
    size_t capacity = stream->capacity > 0 ? stream->capacity : FIRST_CAPACITY;
    while (capacity < PEER_KEPT && capacity < stream->total + len)
        capacity *= 2;
    capacity = capacity < PEER_KEPT ? capacity : PEER_KEPT;
    if (capacity == stream->capacity)
        return 0;
    char *ring = realloc(stream->ring, capacity);
    if (ring == NULL)
        return peer_fail("out of memory");
    stream->ring = ring;
    stream->capacity = capacity;
    return 0;
}

static int keep(struct stream *stream, const char *data, size_t len)
{
    if (stream->capacity < PEER_KEPT && make_room(stream, len) != 0)
        return -1;
    stream->total += len;
    if (len > PEER_KEPT) {
        data += len - PEER_KEPT;
        len = PEER_KEPT;
    }
    size_t at = (size_t)((stream->total - len) % PEER_KEPT), straight = PEER_KEPT - at;
    straight = len < straight ? len : straight;
    memcpy(stream->ring + at, data, straight);
    memcpy(stream->ring, data + straight, len - straight);
    return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno != EINTR)
            return peer_fail_errno("spill file");
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* The file begins with what memory has held so far. */
static int open_file(struct stream *stream)
{
    const char *folder = getenv("TMPDIR");
    snprintf(stream->path, sizeof stream->path, "%s/bench-spill-XXXXXX",
             folder != NULL && *folder != 0 ? folder : "/tmp");
    stream->file = mkostemp(stream->path, O_CLOEXEC);
    if (stream->file < 0) {
        stream->path[0] = 0;
        return peer_fail_errno("spill file");
    }
    return write_all(stream->file, stream->ring, (size_t)stream->total);
}

/* A stream that memory no longer holds goes to a file, unless it is too long for that too. */
static int spill(struct stream *stream, const char *data, size_t len)
{
    if (stream->total + len <= PEER_KEPT || stream->total + len > PEER_SPILLED)
        return 0;
    if (stream->path[0] == 0 && open_file(stream) != 0)
        return -1;
    return write_all(stream->file, data, len);
}

int stream_take(struct stream *stream, enum peer_mode mode, const char *data, size_t len)
{
    if (mode == PEER_SPILL && spill(stream, data, len) != 0)
        return -1;
    return keep(stream, data, len);
}

void stream_release(struct stream *stream)
{
    if (stream->path[0] != 0)
        close(stream->file);
    free(stream->ring);
    stream->ring = NULL;
    stream->capacity = 0;
}
