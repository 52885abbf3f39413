/* What the C peers that have no library for it keep of a stream: its last bytes, and the whole of it in a file. */
#ifndef STREAM_H
#define STREAM_H

#include "peer.h"

/* All zero at first. */
struct stream {
    /* The last bytes: a ring once it is as long as `PEER_KEPT`, until then all there were. */
    char *ring;
    size_t capacity;
    /* How many bytes there were. */
    uint64_t total;
    /* The file, once `path` names one. */
    int file;
    char path[256];
};

/* Takes what was read. Gives 0, or -1 after peer_fail(). */
int stream_take(struct stream *stream, enum peer_mode mode, const char *data, size_t len);
/* Closes the file and frees the memory. */
void stream_release(struct stream *stream);

#endif
