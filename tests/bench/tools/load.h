// The parts of the load tool: options, one connection, the modes.
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "common.h"

struct options {
    const char *mode, *host, *port, *user, *password, *vhost, *queue;
    const char *tls_ca; // PEM file; NULL for plain TCP
    bool v0_8;          // speak AMQP 0-8
    bool declare;       // exchange and queue, for a real broker
    bool wait;          // for a line on standard input before the measured phase and after it
    unsigned connections, keys, window;
    size_t size;
    double seconds, warmup, rate; // rate: messages per second and connection
    uint64_t messages;            // 0: as many as `seconds` allow
};

extern struct options options;

// One connection with at most one channel, number 1. Its messages are those of the chunk, over and over.
struct conn {
    int fd;
    void *tls;       // SSL *, or NULL
    uint32_t events; // what epoll watches
    struct walker walker;
    struct bytes kept; // of an incomplete frame
    uint32_t reply;    // last answer to a synchronous method
    // Since the connection was opened, in octets: sent, and what may be sent now and at all.
    uint64_t sent, limit, target;
    // Since the connection was opened, in messages: begun, known to have arrived (with all before), in earlier
    // phases.
    uint64_t begun, settled, before;
    uint64_t *times; // ring of `window`: when those from `settled` to `begun` were sent; 0 once arrived
    uint64_t offset; // nanoseconds from the phase's start to the first message (open loop)
    bool fenced;
};

// -- link.c: connecting, and what is asked and answered -------------------------------------------------------

void link_set_up(void); // before all else
// TCP, TLS, handshake, channel 1. Blocking; dies with the peer's own words if it refuses.
void link_open(struct conn *conn);
// connection.close, close-ok, and the end of the socket.
void link_close(struct conn *conn);
// Sends all of it, waiting as long as needed (10 s at most without progress).
void link_send(struct conn *conn, const void *at, size_t len);
// What can be sent now; 0 if nothing.
size_t link_try_send(struct conn *conn, const uint8_t *at, size_t len);
// Receives what is there and walks it. False if nothing was there.
bool link_receive(struct conn *conn);
// Whether octets are held back in the TLS layer, of which epoll knows nothing.
bool link_pending(struct conn *conn);
// Receives until the answer `id` is there.
void link_await(struct conn *conn, uint32_t id);
void link_call(struct conn *conn, struct bytes *frame, uint32_t answer); // send, free, await
const char *link_tls_name(struct conn *conn); // "TLSv1.3 TLS_AES_256_GCM_SHA384", or ""

// Synchronous methods on channel 1.
void ask_confirms(struct conn *conn);
void ask_consume(struct conn *conn, const char *queue);
void ask_topology(struct conn *conn, bool exclusive);
void say_fence(struct conn *conn);  // basic.qos; its answer follows everything that was sent before
void say_cancel(struct conn *conn); // ends deliveries

// Set, confirms are passed on: of the message `tag`, and of all before it if `multiple`.
extern void (*on_confirm)(struct conn *conn, uint64_t tag, bool multiple);
// Set, a refusal of the broker ends here instead of ending the tool.
extern void (*on_refusal)(unsigned code, const char *text);

// -- histogram.c -----------------------------------------------------------------------------------------------

void histogram_reset(void);
void histogram_add(uint64_t ns);
// {"count": ..., "p50": ...} in microseconds.
void histogram_print(void);

// -- phases.c: modes in which all connections work at once -------------------------------------------------------

void phases_run(void);

// -- steps.c: modes that do one thing after the other ------------------------------------------------------------

void steps_idle(void);
void steps_churn(void);
void steps_denied(void);

// Standard input: a line, or false at its end.
bool next_line(char *line, size_t size);
void say_ready(void);

#endif
