// The modes in which all connections work at once: publish, deliver, confirm, openloop, e2e.
//
// Each runs twice: `warmup` seconds that nobody counts, then the measured phase. A phase ends when all that was
// sent has verifiably arrived, so what a proxy did for it is done too.
#define _GNU_SOURCE
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>

static const uint64_t FOREVER = UINT64_MAX, SECOND = 1000000000, PATIENCE = 30 * 1000000000ull;

static enum mode { PUBLISH, DELIVER, CONFIRM, OPENLOOP, E2E } mode;
static int epoll;
static struct conn *conns;
static unsigned count; // connections
static struct chunk chunk;
static bool stopping;
static char input; // stands for standard input in epoll
static uint64_t start, scheduled, interval; // open loop: messages sent in time, nanoseconds between two of a connection

static void watch(struct conn *conn, uint32_t events) {
    if (conn->events == events)
        return;
    struct epoll_event event = {.events = events, .data.ptr = conn};
    epoll_ctl(epoll, conn->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, conn->fd, &event);
    conn->events = events;
}

static bool publishes(const struct conn *conn) { return mode == E2E ? conn != conns : mode != DELIVER; }

// -- sending -----------------------------------------------------------------------------------------------

static uint64_t limit_of(const struct conn *conn) {
    uint64_t limit = conn->target;
    if (mode == CONFIRM || mode == E2E)
        limit = (conn->settled + options.window) * chunk.stride;
    else if (mode == OPENLOOP)
        limit = conn->limit;
    return limit < conn->target ? limit : conn->target;
}

static void push(struct conn *conn) {
    uint64_t limit = limit_of(conn);
    bool full = false;
    while (conn->sent < limit && !full) {
        size_t at = conn->sent % chunk.bytes.len, len = chunk.bytes.len - at;
        if (limit - conn->sent < len)
            len = limit - conn->sent;
        uint64_t now = conn->times ? now_ns() : 0;
        size_t sent = link_try_send(conn, chunk.bytes.at + at, len);
        conn->sent += sent;
        if (conn->times)
            for (; conn->begun * chunk.stride < conn->sent; conn->begun++)
                conn->times[conn->begun % options.window] = now;
        full = sent < len;
        if (mode == PUBLISH)
            break; // the others' turn
    }
    if (mode == PUBLISH && conn->sent == conn->target && !conn->fenced) {
        say_fence(conn);
        conn->fenced = true;
    }
    watch(conn, EPOLLIN | (conn->sent < limit ? EPOLLOUT : 0));
}

// -- arriving ----------------------------------------------------------------------------------------------

static uint64_t intended(const struct conn *conn, uint64_t message) {
    return start + conn->offset + (message - conn->before) * interval;
}

static void arrived(struct conn *conn, uint64_t message, uint64_t now) {
    if (!conn->times) {
        histogram_add(now - intended(conn, message));
        return;
    }
    uint64_t *sent = &conn->times[message % options.window];
    if (*sent)
        histogram_add(now - *sent);
    *sent = 0;
}

static void confirmed(struct conn *conn, uint64_t tag, bool multiple) {
    uint64_t now = now_ns(), ahead = conn->sent / chunk.stride;
    if (tag == 0)
        tag = ahead; // "all so far" (section 1.8.3.13)
    if (tag <= conn->settled || tag > ahead)
        die("confirm of a message that is not under way");
    if (!conn->times || multiple)
        for (uint64_t message = conn->settled; message < tag; message++)
            arrived(conn, message, now);
    else
        arrived(conn, tag - 1, now);
    if (!conn->times)
        conn->settled = tag;
    else
        // Single confirms may overtake each other.
        while (conn->settled < ahead && !conn->times[conn->settled % options.window])
            conn->settled++;
}

static void receive(struct conn *conn) {
    uint64_t before = conn->walker.messages;
    do
        link_receive(conn);
    while (link_pending(conn));
    if (mode == E2E && conn == conns) {
        uint64_t now = now_ns();
        for (struct conn *from = conns + 1; before < conn->walker.messages; before++)
            arrived(from, from->settled++, now);
        conn++;
    }
    if (publishes(conn) && conn->sent < limit_of(conn) && !(conn->events & EPOLLOUT))
        push(conn);
}

// -- a phase -----------------------------------------------------------------------------------------------

static void begin(struct conn *conn, unsigned number, uint64_t messages) {
    conn->fenced = false;
    conn->reply = 0;
    if (mode == DELIVER) {
        char queue[64];
        conn->before = conn->walker.messages;
        snprintf(queue, sizeof queue, messages ? "bench.deliver%s.%zu.%llu" : "bench.deliver%s.%zu",
                 with_headers ? ".headers" : "", options.size,
                 (unsigned long long)messages);
        conn->target = messages ? conn->before + messages : FOREVER;
        ask_consume(conn, queue);
        return;
    }
    conn->before = conn->sent / chunk.stride;
    conn->target = messages ? (conn->before + messages) * chunk.stride : FOREVER;
    conn->limit = conn->sent;
    // Somewhere in the interval, but always at the same place.
    conn->offset = interval ? (number * 0x9E3779B97F4A7C15ull >> 16) % interval : 0;
    if (publishes(conn) && mode != OPENLOOP)
        push(conn);
}

// No more than is under way. TLS may have a record under way, which does not reach beyond the chunk's end.
static void stop(struct conn *conn) {
    if (mode == DELIVER) {
        say_cancel(conn);
        return;
    }
    uint64_t unit = mode == PUBLISH ? chunk.bytes.len : chunk.stride;
    uint64_t next = mode == PUBLISH ? conn->sent / unit + 1 : (conn->sent + unit - 1) / unit;
    if (mode == OPENLOOP)
        next = conn->limit / unit;
    if (next * unit < conn->target)
        conn->target = next * unit;
    if (publishes(conn))
        push(conn);
}

static bool done(const struct conn *conn) {
    switch (mode) {
    case PUBLISH:
        return conn->fenced && conn->reply == BASIC_QOS_OK;
    case DELIVER:
        return conn->reply == BASIC_CANCEL_OK;
    default:
        return conn->sent == conn->target && conn->settled * chunk.stride == conn->target;
    }
}

static bool all_done(void) {
    for (unsigned i = 0; i < count; i++)
        if ((mode == DELIVER || publishes(&conns[i])) && !done(&conns[i]))
            return false;
    return true;
}

static bool deliveries_complete(void) {
    for (unsigned i = 0; i < count; i++)
        if (conns[i].walker.messages < conns[i].target)
            return false;
    return true;
}

static int by_offset(const void *left, const void *right) {
    const struct conn *one = *(struct conn *const *)left, *other = *(struct conn *const *)right;
    return (one->offset > other->offset) - (one->offset < other->offset);
}

// Open loop: allow what is due, whatever became of what came before. When the next one is due.
static uint64_t send_due(struct conn **order, uint64_t now, uint64_t until) {
    for (;; scheduled++) {
        struct conn *conn = order[scheduled % count];
        uint64_t due = start + conn->offset + scheduled / count * interval;
        if (due >= until || conn->limit >= conn->target)
            return FOREVER;
        if (due > now)
            return due;
        conn->limit += chunk.stride;
        push(conn);
        now = now_ns();
    }
}

static void phase(double seconds, uint64_t messages) {
    uint64_t share = (messages + count - 1) / count;
    struct conn **order = take(count * sizeof *order);
    stopping = false;
    scheduled = 0;
    histogram_reset();
    start = now_ns();
    uint64_t until = start + (uint64_t)(seconds * 1e9), last = start;
    for (unsigned i = 0; i < count; i++) {
        begin(&conns[i], i, share);
        order[i] = &conns[i];
    }
    qsort(order, count, sizeof *order, by_offset);
    for (;;) {
        uint64_t now = now_ns(), next = until;
        if (!stopping && mode == OPENLOOP)
            next = send_due(order, now, until);
        if (next > until)
            next = until;
        if (!stopping && (now >= until || (messages && mode == DELIVER && deliveries_complete()))) {
            stopping = true;
            for (unsigned i = 0; i < count; i++)
                stop(&conns[i]);
        }
        if (all_done())
            break;
        if (now > last + PATIENCE)
            die("stalled: nothing arrived for %d s", (int)(PATIENCE / SECOND));
        uint64_t span = stopping ? SECOND : next > now ? next - now : 0;
        struct timespec timeout = {(time_t)(span / SECOND), (long)(span % SECOND)};
        struct epoll_event events[64];
        int ready = epoll_pwait2(epoll, events, 64, &timeout, NULL);
        if (ready > 0)
            last = now;
        for (int i = 0; i < ready; i++) {
            struct conn *conn = events[i].data.ptr;
            if ((void *)conn == &input) {
                char line[64];
                next_line(line, sizeof line);
                epoll_ctl(epoll, EPOLL_CTL_DEL, 0, NULL);
                until = now;
                continue;
            }
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                receive(conn);
            if (events[i].events & EPOLLOUT)
                push(conn);
        }
    }
    free(order);
}

// -- the whole ---------------------------------------------------------------------------------------------

static void open_all(void) {
    count = mode == E2E ? 2 : options.connections;
    conns = take(count * sizeof *conns);
    if (mode != DELIVER)
        chunk = make_chunk(BASIC_PUBLISH, 1, options.size, options.keys);
    if (mode == OPENLOOP)
        interval = (uint64_t)(1e9 / options.rate);
    for (unsigned i = 0; i < count; i++) {
        struct conn *conn = &conns[i];
        link_open(conn);
        if (options.declare && i == 0)
            ask_topology(conn, mode != E2E);
        if (mode == CONFIRM || mode == OPENLOOP)
            ask_confirms(conn);
        if (mode == CONFIRM || (mode == E2E && i == 1))
            conn->times = take(options.window * sizeof *conn->times);
        if (mode == E2E && i == 0)
            ask_consume(conn, options.queue);
        watch(conn, EPOLLIN);
    }
    on_confirm = mode == CONFIRM || mode == OPENLOOP ? confirmed : NULL;
}

static uint64_t counted(void) {
    uint64_t messages = 0;
    for (unsigned i = 0; i < count; i++)
        if (mode == DELIVER)
            messages += conns[i].walker.messages - conns[i].before;
        else if (publishes(&conns[i]))
            messages += conns[i].sent / chunk.stride - conns[i].before;
    return messages;
}

void phases_run(void) {
    static const char *names[] = {"publish", "deliver", "confirm", "openloop", "e2e"};
    for (mode = PUBLISH; strcmp(names[mode], options.mode); mode++)
        if (mode == E2E)
            die("no such mode: %s", options.mode);
    // Without it the kernel may delay every timer by 50 us.
    prctl(PR_SET_TIMERSLACK, 1);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    open_all();
    phase(options.warmup, 0);
    say_ready();
    if (options.until_line)
        epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &(struct epoll_event){.events = EPOLLIN, .data.ptr = &input});
    uint64_t cpu = own_cpu_ns();
    phase(options.seconds, options.messages);
    double seconds = (double)(now_ns() - start) / 1e9;
    cpu = own_cpu_ns() - cpu;
    printf("{\"mode\": \"%s\", \"messages\": %llu, \"seconds\": %.6f, \"cpu_ns\": %llu, \"tls\": \"%s\", \"latency\": ",
           options.mode, (unsigned long long)counted(), seconds, (unsigned long long)cpu, link_tls_name(conns));
    histogram_print();
    printf("}\n");
    fflush(stdout);
    char line[64];
    if (options.wait)
        next_line(line, sizeof line);
    for (unsigned i = 0; i < count; i++)
        link_close(&conns[i]);
}
