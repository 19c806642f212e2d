// The parts of the load tool: options, one connection, the modes.
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "common.h"

struct options {
    const char *mode, *host, *port, *user, *password, *vhost, *queue;
    const char *tls_ca; // PEM file; NULL for plain TCP
    bool resume;        // offer the TLS session that the peer gave last
    bool v0_8;          // speak AMQP 0-8
    bool declare;       // exchange and queue, for a real broker
    bool wait;          // for a line on standard input before the measured phase and after it
    bool until_line;    // the measured phase ends at a line on standard input, if that comes first
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
    bool greeted;        // the protocol header is out (link_advance)
    bool may_end, ended; // its end is no reason to die, but is marked
    unsigned tries;      // to open it (storm)
};

// -- link.c: connecting, and what is asked and answered -------------------------------------------------------

void link_set_up(void); // before all else
// TCP, TLS, handshake, channel 1. Blocking; dies with the peer's own words if it refuses.
void link_open(struct conn *conn);
// The same without waiting, over plain TCP: begin, then advance whenever something can be read or, until the
// protocol header is out, written. True once channel 1 is open. The peer's refusal or end is marked in `ended`.
void link_begin(struct conn *conn, unsigned source); // see connect_begin
bool link_advance(struct conn *conn);
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
const char *link_tls_name(struct conn *conn); // "TLSv1.3 TLS_AES_256_GCM_SHA384 x25519", or ""
bool link_resumed(struct conn *conn);         // whether a TLS session was gone on with

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

// -- storm.c -------------------------------------------------------------------------------------------------

// Opens `count` connections at once, those that are refused or cut once more, until all are open: how often one had
// to try again. The histogram gets how long each took, with all its tries.
uint64_t storm_open(struct conn *conns, unsigned count);

// -- steps.c: modes that do one thing after the other ------------------------------------------------------------

void steps_idle(void);
// Reads what came (heartbeats) to those that are open, and says that they live: when it is time.
void keep_alive(struct conn *conns, unsigned count);
void steps_churn(void);
void steps_denied(void);

// Standard input: a line, or false at its end.
bool next_line(char *line, size_t size);
void say_ready(void);

#endif
