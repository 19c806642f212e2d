// A counting sink: as much of an AMQP 0-9-1 broker as the load tool needs, and faster than any proxy.
//
//   sink HOST PORT
//
// Publishes are counted and forgotten. After confirm.select they are confirmed, once per chunk received
// (so singly when one comes at a time). A basic.consume of the queue `bench.deliver.SIZE` is answered with
// deliveries of that size without end, until basic.cancel; of `bench.deliver.SIZE.COUNT`, with COUNT of them.
// Those of `bench.deliver.headers.SIZE` and the like have headers.
// One channel of a connection publishes, one consumes. Standard input is its remote control: each line is
// answered with a line of JSON (totals since the start), its end ends the sink.
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct conn {
    int fd;
    uint32_t events; // what epoll watches
    bool greeted, open, gone;
    struct walker walker;
    struct bytes kept; // of an incomplete frame
    struct bytes out;  // not sent yet
    // Confirms.
    unsigned confirm_channel;
    uint64_t confirm_base, confirmed;
    // Deliveries.
    struct chunk chunk;
    size_t chunk_at; // octets of the chunk that are sent
    unsigned consume_channel;
    uint64_t tag, left; // of the last message sent, messages to send
    bool cancel;
    struct conn *next, *previous;
};

static int epoll;
static struct conn *all, *dead;
static uint64_t opened, published, octets, delivered, errors;
static char last_error[256] = "";
static uint8_t scratch[SCRATCH];

static void watch(struct conn *conn, uint32_t events) {
    if (conn->events == events)
        return;
    struct epoll_event event = {.events = events, .data.ptr = conn};
    epoll_ctl(epoll, conn->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, conn->fd, &event);
    conn->events = events;
}

// Freed at the end of the loop's pass: epoll may have reported it twice.
static void drop(struct conn *conn, const char *error) {
    if (conn->gone)
        return;
    conn->gone = true;
    if (error) {
        errors++;
        snprintf(last_error, sizeof last_error, "%s", error);
    }
    published += conn->walker.messages;
    octets += conn->walker.octets;
    close(conn->fd);
    if (conn->next)
        conn->next->previous = conn->previous;
    *(conn->previous ? &conn->previous->next : &all) = conn->next;
    conn->next = dead;
    dead = conn;
}

static void bury(void) {
    while (dead) {
        struct conn *conn = dead;
        dead = conn->next;
        free(conn->kept.at);
        free(conn->out.at);
        free(conn->chunk.bytes.at);
        free(conn);
    }
}

// -- answers -----------------------------------------------------------------------------------------------

static void put_field(struct bytes *to, const char *name, const char *value) {
    put_short(to, name);
    put8(to, 'S');
    put_long(to, value, strlen(value));
}

static void say_start(struct conn *conn) {
    struct bytes capabilities = {0}, properties = {0};
    static const char *able[] = {"publisher_confirms", "consumer_cancel_notify", "basic.nack",
                                 "authentication_failure_close"};
    for (size_t i = 0; i < sizeof able / sizeof *able; i++) {
        put_short(&capabilities, able[i]);
        put_raw(&capabilities, "t\x01", 2);
    }
    put_short(&properties, "capabilities");
    put8(&properties, 'F');
    put_long(&properties, capabilities.at, capabilities.len);
    put_field(&properties, "product", "bench sink");
    size_t mark = method_begin(&conn->out, 0, CONNECTION_START);
    put_raw(&conn->out, "\x00\x09", 2);
    put_long(&conn->out, properties.at, properties.len);
    put_long(&conn->out, "PLAIN AMQPLAIN", 14);
    put_long(&conn->out, "en_US", 5);
    frame_end(&conn->out, mark);
    free(capabilities.at);
    free(properties.at);
}

static void say(struct conn *conn, unsigned channel, uint32_t id) {
    frame_end(&conn->out, method_begin(&conn->out, channel, id));
}

static void say_text(struct conn *conn, unsigned channel, uint32_t id, const char *text) {
    size_t mark = method_begin(&conn->out, channel, id);
    put_short(&conn->out, text);
    frame_end(&conn->out, mark);
}

// A shortstr argument as C string; the end of the arguments cuts it.
static const uint8_t *read_short(const uint8_t *at, const uint8_t *end, char text[256]) {
    size_t len = at < end ? *at++ : 0;
    if (len > (size_t)(end - at))
        len = (size_t)(end - at);
    memcpy(text, at, len);
    text[len] = 0;
    return at + len;
}

static void consume(struct conn *conn, unsigned channel, const uint8_t *at, const uint8_t *end) {
    char queue[256], tag[256];
    at = read_short(at + 2, end, queue);
    read_short(at, end, tag);
    say_text(conn, channel, BASIC_CONSUME_OK, *tag ? tag : "bench");
    unsigned long long size, count;
    int fields = sscanf(queue, "bench.deliver.headers.%llu.%llu", &size, &count);
    with_headers = fields > 0;
    if (!with_headers)
        fields = sscanf(queue, "bench.deliver.%llu.%llu", &size, &count);
    if (fields < 1)
        return;
    free(conn->chunk.bytes.at);
    consumer_tag = *tag ? tag : "bench";
    conn->chunk = make_chunk(BASIC_DELIVER, channel, size, 1);
    conn->chunk_at = 0;
    conn->consume_channel = channel;
    conn->left = fields == 2 ? count : UINT64_MAX;
    conn->cancel = false;
}

static void queue_declared(struct conn *conn, unsigned channel, const uint8_t *at, const uint8_t *end) {
    char queue[256];
    read_short(at + 2, end, queue);
    size_t mark = method_begin(&conn->out, channel, QUEUE_DECLARE_OK);
    put_short(&conn->out, *queue ? queue : "amq.gen-bench");
    put64(&conn->out, 0); // messages, consumers
    frame_end(&conn->out, mark);
}

static bool on_method_of(void *context, unsigned channel, uint32_t id, const uint8_t *at, size_t len) {
    struct conn *conn = context;
    const uint8_t *end = at + len;
    switch (id) {
    case CONNECTION_START_OK: {
        size_t mark = method_begin(&conn->out, 0, CONNECTION_TUNE);
        put16(&conn->out, CHANNEL_MAX);
        put32(&conn->out, FRAME_MAX);
        put16(&conn->out, HEARTBEAT);
        frame_end(&conn->out, mark);
        break;
    }
    case CONNECTION_TUNE_OK:
    case CONNECTION_CLOSE_OK:
    case CHANNEL_CLOSE_OK:
    case BASIC_ACK:
        break;
    case CONNECTION_OPEN:
        say_text(conn, 0, CONNECTION_OPEN_OK, "");
        conn->open = true;
        opened++;
        break;
    case CONNECTION_CLOSE:
        say(conn, 0, CONNECTION_CLOSE_OK);
        break;
    case CHANNEL_OPEN: {
        size_t mark = method_begin(&conn->out, channel, CHANNEL_OPEN_OK);
        put32(&conn->out, 0);
        frame_end(&conn->out, mark);
        break;
    }
    case CHANNEL_CLOSE:
        say(conn, channel, CHANNEL_CLOSE_OK);
        break;
    case EXCHANGE_DECLARE:
        say(conn, channel, EXCHANGE_DECLARE_OK);
        break;
    case QUEUE_DECLARE:
        queue_declared(conn, channel, at, end);
        break;
    case QUEUE_BIND:
        say(conn, channel, QUEUE_BIND_OK);
        break;
    case BASIC_QOS:
        say(conn, channel, BASIC_QOS_OK);
        break;
    case BASIC_CONSUME:
        if (len < 3)
            return false;
        consume(conn, channel, at, end);
        break;
    case BASIC_CANCEL:
        conn->cancel = true; // answered when the message under way is out
        conn->consume_channel = channel;
        break;
    case CONFIRM_SELECT:
        say(conn, channel, CONFIRM_SELECT_OK);
        conn->confirm_channel = channel;
        conn->confirm_base = conn->confirmed = conn->walker.messages;
        break;
    default:
        conn->walker.error = "method that the sink does not know";
        return false;
    }
    return true;
}

static void confirm(struct conn *conn) {
    uint64_t news = conn->walker.messages - conn->confirmed;
    if (!conn->confirm_channel || !news)
        return;
    conn->confirmed += news;
    size_t mark = method_begin(&conn->out, conn->confirm_channel, BASIC_ACK);
    put64(&conn->out, conn->confirmed - conn->confirm_base);
    put8(&conn->out, news > 1);
    frame_end(&conn->out, mark);
}

// -- sockets -----------------------------------------------------------------------------------------------

static bool sent_all(struct conn *conn, const uint8_t *at, size_t len, size_t *done) {
    ssize_t sent = send(conn->fd, at, len, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno != EAGAIN)
            drop(conn, NULL);
        return false;
    }
    *done += (size_t)sent;
    return (size_t)sent == len;
}

static bool mid_message(struct conn *conn) {
    return conn->chunk.stride && conn->chunk_at % conn->chunk.stride;
}

// One send of deliveries; true if there is more to say.
static bool blast(struct conn *conn) {
    struct chunk *chunk = &conn->chunk;
    if (conn->cancel && !mid_message(conn))
        conn->left = 0;
    if (!conn->left) {
        if (conn->cancel)
            say_text(conn, conn->consume_channel, BASIC_CANCEL_OK, "bench");
        conn->cancel = false;
        return conn->out.len > 0;
    }
    if (conn->chunk_at == 0)
        for (size_t i = 0; i < chunk->count; i++)
            set64(chunk->bytes.at + i * chunk->stride + chunk->tag_at, conn->tag + i + 1);
    size_t room = chunk->bytes.len - conn->chunk_at, begun = conn->chunk_at % chunk->stride, before;
    if (conn->cancel)
        room = chunk->stride - begun;
    else if (conn->left < chunk->count && conn->left * chunk->stride - begun < room)
        room = conn->left * chunk->stride - begun;
    before = conn->chunk_at / chunk->stride;
    sent_all(conn, chunk->bytes.at + conn->chunk_at, room, &conn->chunk_at);
    uint64_t messages = conn->chunk_at / chunk->stride - before;
    conn->tag += messages;
    conn->left -= messages;
    delivered += messages;
    if (conn->chunk_at == chunk->bytes.len)
        conn->chunk_at = 0;
    return true;
}

static void flush(struct conn *conn) {
    // Nothing may cut a message that is half sent.
    bool more = (conn->left || conn->cancel) && (mid_message(conn) || !conn->out.len) && blast(conn);
    if (!conn->gone && conn->out.len && !mid_message(conn)) {
        size_t done = 0;
        more |= !sent_all(conn, conn->out.at, conn->out.len, &done);
        memmove(conn->out.at, conn->out.at + done, conn->out.len - done);
        conn->out.len -= done;
        more |= conn->left || conn->cancel;
    }
    if (!conn->gone)
        watch(conn, EPOLLIN | (more ? EPOLLOUT : 0));
}

static void receive(struct conn *conn) {
    size_t kept = conn->kept.len;
    if (kept)
        memcpy(scratch, conn->kept.at, kept);
    ssize_t got = recv(conn->fd, scratch + kept, sizeof scratch - kept, 0);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            drop(conn, NULL);
        return;
    }
    size_t len = kept + (size_t)got;
    const uint8_t *at = scratch;
    conn->kept.len = 0;
    if (!conn->greeted && len >= 8) {
        if (memcmp(at, PROTOCOL_HEADER, 8)) {
            drop(conn, "wrong protocol header");
            return;
        }
        conn->greeted = true;
        say_start(conn);
        at += 8;
        len -= 8;
    }
    ssize_t done = conn->greeted ? walk(&conn->walker, at, len, on_method_of, conn) : 0;
    if (done < 0) {
        drop(conn, conn->walker.error);
        return;
    }
    put_raw(&conn->kept, at + done, len - (size_t)done);
    confirm(conn);
    if (conn->out.len || conn->left || conn->cancel)
        flush(conn);
}

static void accept_all(int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        no_delay(fd);
        struct conn *conn = take(sizeof *conn);
        conn->fd = fd;
        conn->next = all;
        if (all)
            all->previous = conn;
        all = conn;
        watch(conn, EPOLLIN);
    }
}

static void heartbeats(void) {
    for (struct conn *conn = all; conn; conn = conn->next)
        // One that is busy shows that it lives.
        if (conn->open && !conn->out.len && !conn->left)
            (void)!send(conn->fd, HEARTBEAT_FRAME, 8, MSG_NOSIGNAL);
}

static void report(void) {
    uint64_t messages = published, body = octets, connections = 0;
    for (struct conn *conn = all; conn; conn = conn->next) {
        messages += conn->walker.messages;
        body += conn->walker.octets;
        connections += conn->open;
    }
    printf("{\"published\": %llu, \"byte_count\": %llu, \"delivered\": %llu, \"connections\": %llu, \"opened\": %llu, "
           "\"errors\": %llu, \"last_error\": \"%s\", \"cpu_ns\": %llu}\n",
           (unsigned long long)messages, (unsigned long long)body, (unsigned long long)delivered,
           (unsigned long long)connections, (unsigned long long)opened, (unsigned long long)errors, last_error,
           (unsigned long long)own_cpu_ns());
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc != 3)
        die("usage: sink HOST PORT");
    raise_file_limit();
    epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener = listen_on(argv[1], argv[2]);
    static char listening, control;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &(struct epoll_event){.events = EPOLLIN, .data.ptr = &listening});
    epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &(struct epoll_event){.events = EPOLLIN, .data.ptr = &control});
    report();
    uint64_t beat = now_ns() + HEARTBEAT_EVERY * 1000000000ull;
    for (;;) {
        struct epoll_event events[256];
        int count = epoll_wait(epoll, events, 256, 1000);
        for (int i = 0; i < count; i++) {
            struct conn *conn = events[i].data.ptr;
            if ((void *)conn == &listening) {
                accept_all(listener);
            } else if ((void *)conn == &control) {
                char line[256];
                if (read(0, line, sizeof line) <= 0)
                    return 0;
                report();
            } else if (!conn->gone) {
                if (events[i].events & ~(uint32_t)EPOLLOUT)
                    receive(conn);
                if (!conn->gone && events[i].events & EPOLLOUT)
                    flush(conn);
            }
        }
        bury();
        if (now_ns() > beat) {
            heartbeats();
            beat = now_ns() + HEARTBEAT_EVERY * 1000000000ull;
        }
    }
}
