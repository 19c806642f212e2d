// One connection to a broker or proxy: TCP or TLS, the AMQP handshake, synchronous methods.
#define _GNU_SOURCE
#include "load.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
static SSL_CTX *tls_context;
static SSL_SESSION *tls_session; // that the peer gave last, where it is to be gone on with
#endif

enum { PATIENCE_MS = 30000 };

void (*on_confirm)(struct conn *, uint64_t, bool);
void (*on_refusal)(unsigned, const char *);
static uint8_t scratch[SCRATCH];

// -- octets ------------------------------------------------------------------------------------------------

#ifdef WITH_TLS
// TLS 1.3 gives sessions behind the handshake, several of them, and each is good for one connection.
static int keep_session(SSL *tls, SSL_SESSION *session) {
    (void)tls;
    SSL_SESSION_free(tls_session);
    tls_session = session;
    return 1;
}
#endif

void link_set_up(void) {
    if (!options.tls_ca)
        return;
#ifdef WITH_TLS
    tls_context = SSL_CTX_new(TLS_client_method());
    if (!tls_context || !SSL_CTX_load_verify_locations(tls_context, options.tls_ca, NULL))
        die("TLS: cannot read %s", options.tls_ca);
    SSL_CTX_set_verify(tls_context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(tls_context, options.resume ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
                                                               : SSL_SESS_CACHE_OFF);
    if (options.resume)
        SSL_CTX_sess_set_new_cb(tls_context, keep_session);
    SSL_CTX_set_mode(tls_context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
#else
    die("this tool was built without TLS");
#endif
}

static void await_fd(struct conn *conn, short events) {
    struct pollfd one = {.fd = conn->fd, .events = events};
    if (poll(&one, 1, PATIENCE_MS) == 0)
        die("no answer within %d s", PATIENCE_MS / 1000);
}

#ifdef WITH_TLS
// What an SSL call's failure means: true to try again later.
static bool tls_later(struct conn *conn, int result) {
    int error = SSL_get_error(conn->tls, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return true;
    die("TLS: the peer closed the connection (error %d, %s)", error, ERR_reason_error_string(ERR_get_error()));
}

static void tls_open(struct conn *conn) {
    SSL *tls = SSL_new(tls_context);
    conn->tls = tls;
    SSL_set_fd(tls, conn->fd);
    SSL_set_tlsext_host_name(tls, "localhost");
    SSL_set1_host(tls, "localhost");
    if (tls_session)
        SSL_set_session(tls, tls_session);
    int result;
    while ((result = SSL_connect(tls)) != 1)
        if (tls_later(conn, result))
            await_fd(conn, SSL_want_write(tls) ? POLLOUT : POLLIN);
}
#endif

size_t link_try_send(struct conn *conn, const uint8_t *at, size_t len) {
#ifdef WITH_TLS
    if (conn->tls) {
        size_t written = 0;
        int result = SSL_write_ex(conn->tls, at, len, &written);
        return result == 1 || tls_later(conn, result) ? written : 0;
    }
#endif
    ssize_t sent = send(conn->fd, at, len, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && !(conn->ended = conn->may_end))
        die("send: %s", strerror(errno));
    return sent < 0 ? 0 : (size_t)sent;
}

void link_send(struct conn *conn, const void *data, size_t len) {
    for (const uint8_t *at = data; len;) {
        size_t sent = link_try_send(conn, at, len);
        if (!sent)
            await_fd(conn, POLLOUT);
        at += sent;
        len -= sent;
    }
}

// Octets received; 0 if none are there now.
static size_t try_receive(struct conn *conn, uint8_t *to, size_t room) {
#ifdef WITH_TLS
    if (conn->tls) {
        size_t all = 0, got;
        int result = 1;
        // A record at a time is all that SSL_read gives.
        while (all < room && (result = SSL_read_ex(conn->tls, to + all, room - all, &got)) == 1)
            all += got;
        // An end behind octets shows again at the next call, if anyone still wants to know.
        if (result != 1 && !all)
            tls_later(conn, result);
        return all;
    }
#endif
    ssize_t got = recv(conn->fd, to, room, 0);
    if ((got == 0 || (got < 0 && errno != EAGAIN)) && (conn->ended = conn->may_end))
        return 0;
    if (got == 0)
        die("the peer closed the connection");
    if (got < 0 && errno != EAGAIN)
        die("receive: %s", strerror(errno));
    return got < 0 ? 0 : (size_t)got;
}

bool link_pending(struct conn *conn) {
#ifdef WITH_TLS
    return conn->tls && SSL_has_pending(conn->tls);
#else
    (void)conn;
    return false;
#endif
}

#ifdef WITH_TLS
static const char *group_of(SSL *tls) {
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    const char *name = SSL_group_to_name(tls, (int)SSL_get_negotiated_group(tls));
    return name ? name : "";
#else
    (void)tls;
    return "";
#endif
}
#endif

const char *link_tls_name(struct conn *conn) {
    static char name[128] = "";
#ifdef WITH_TLS
    if (conn->tls)
        snprintf(name, sizeof name, "%s %s %s", SSL_get_version(conn->tls), SSL_get_cipher_name(conn->tls),
                 group_of(conn->tls));
#else
    (void)conn;
#endif
    return name;
}

bool link_resumed(struct conn *conn) {
#ifdef WITH_TLS
    return conn->tls && SSL_session_reused(conn->tls);
#else
    (void)conn;
    return false;
#endif
}

// -- methods -----------------------------------------------------------------------------------------------

static void refused(struct conn *conn, const uint8_t *at, size_t len) {
    char text[256] = "";
    if (len < 3)
        die("malformed close");
    size_t room = at[2] < len - 3 ? at[2] : len - 3;
    memcpy(text, at + 3, room);
    if (conn->may_end) {
        conn->ended = true;
        return;
    }
    if (!on_refusal)
        die("closed by the peer: %u %s", get16(at), text);
    on_refusal(get16(at), text);
}

// AMQP 0-8 has connection.close and close-ok elsewhere.
static uint32_t connection_close(void) { return options.v0_8 ? CONNECTION_CLOSE_0_8 : CONNECTION_CLOSE; }

static bool on_method_of(void *context, unsigned channel, uint32_t id, const uint8_t *at, size_t len) {
    struct conn *conn = context;
    (void)channel;
    switch (id) {
    case BASIC_ACK:
        if (len < 9)
            return false;
        if (on_confirm)
            on_confirm(conn, get64(at), at[8] & 1);
        return true;
    case BASIC_NACK:
        die("the broker refused a message (basic.nack)");
    case CHANNEL_CLOSE:
        refused(conn, at, len);
        break;
    default:
        if (id == connection_close())
            refused(conn, at, len);
        break;
    }
    conn->reply = id;
    return true;
}

bool link_receive(struct conn *conn) {
    size_t kept = conn->kept.len;
    if (kept)
        memcpy(scratch, conn->kept.at, kept);
    size_t got = try_receive(conn, scratch + kept, sizeof scratch - kept);
    if (!got)
        return false;
    conn->kept.len = 0;
    ssize_t done = walk(&conn->walker, scratch, kept + got, on_method_of, conn);
    if (done < 0)
        die("%s", conn->walker.error);
    put_raw(&conn->kept, scratch + done, kept + got - (size_t)done);
    return true;
}

void link_await(struct conn *conn, uint32_t id) {
    while (conn->reply != id)
        if (!link_receive(conn))
            await_fd(conn, POLLIN);
    conn->reply = 0;
}

void link_call(struct conn *conn, struct bytes *frame, uint32_t answer) {
    link_send(conn, frame->at, frame->len);
    free(frame->at);
    link_await(conn, answer);
}

// -- opening and closing -----------------------------------------------------------------------------------

static struct bytes start_ok(void) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 0, CONNECTION_START_OK);
    // Who does not understand these two may not share a connection to the broker.
    static const char properties[] = "\x07product" "S\0\0\0\x0a" "bench load"
        "\x0c" "capabilities" "F\0\0\0\x26"
        "\x0a" "basic.nack" "t\x01" "\x16" "consumer_cancel_notify" "t\x01";
    put_long(&frame, properties, sizeof properties - 1);
    put_short(&frame, "PLAIN");
    size_t user = strlen(options.user), password = strlen(options.password);
    put32(&frame, (uint32_t)(2 + user + password));
    put8(&frame, 0);
    put_raw(&frame, options.user, user);
    put8(&frame, 0);
    put_raw(&frame, options.password, password);
    put_short(&frame, "en_US");
    frame_end(&frame, mark);
    return frame;
}

static struct bytes tune_ok(void) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 0, CONNECTION_TUNE_OK);
    put16(&frame, CHANNEL_MAX);
    put32(&frame, FRAME_MAX);
    put16(&frame, HEARTBEAT);
    frame_end(&frame, mark);
    mark = method_begin(&frame, 0, CONNECTION_OPEN);
    put_short(&frame, options.vhost);
    put16(&frame, 0); // two reserved ones
    frame_end(&frame, mark);
    return frame;
}

static struct bytes channel_open(void) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 1, CHANNEL_OPEN);
    put8(&frame, 0);
    frame_end(&frame, mark);
    return frame;
}

void link_open(struct conn *conn) {
    conn->fd = connect_to(options.host, options.port);
    set_nonblocking(conn->fd);
#ifdef WITH_TLS
    if (tls_context)
        tls_open(conn);
#endif
    link_send(conn, options.v0_8 ? PROTOCOL_HEADER_0_8 : PROTOCOL_HEADER, 8);
    link_await(conn, CONNECTION_START);
    struct bytes frame = start_ok();
    link_call(conn, &frame, CONNECTION_TUNE);
    frame = tune_ok();
    link_call(conn, &frame, CONNECTION_OPEN_OK);
    frame = channel_open();
    link_call(conn, &frame, CHANNEL_OPEN_OK);
}

void link_begin(struct conn *conn, unsigned source) {
    conn->fd = connect_begin(options.host, options.port, source);
    conn->may_end = true;
    conn->ended = conn->fd < 0;
}

// What is sent here are a few hundred octets on a fresh connection: the kernel takes them.
static void answer(struct conn *conn, struct bytes frame) {
    if (link_try_send(conn, frame.at, frame.len) < frame.len)
        conn->ended = true;
    free(frame.at);
}

bool link_advance(struct conn *conn) {
    if (!conn->greeted) {
        size_t sent = link_try_send(conn, (const uint8_t *)PROTOCOL_HEADER, 8);
        conn->greeted = sent == 8;
        return false;
    }
    while (!conn->ended && link_receive(conn)) {
        uint32_t said = conn->reply;
        conn->reply = 0;
        switch (said) {
        case CONNECTION_START:
            answer(conn, start_ok());
            break;
        case CONNECTION_TUNE:
            answer(conn, tune_ok());
            break;
        case CONNECTION_OPEN_OK:
            answer(conn, channel_open());
            break;
        case CHANNEL_OPEN_OK:
            // From now on as any other.
            conn->may_end = conn->ended = false;
            return true;
        }
    }
    return false;
}

void link_close(struct conn *conn) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 0, connection_close());
    put16(&frame, 200);
    put_short(&frame, "done");
    put32(&frame, 0);
    frame_end(&frame, mark);
    link_call(conn, &frame, options.v0_8 ? CONNECTION_CLOSE_OK_0_8 : CONNECTION_CLOSE_OK);
#ifdef WITH_TLS
    if (conn->tls) {
        SSL_shutdown(conn->tls);
        SSL_free(conn->tls);
    }
#endif
    close(conn->fd);
    free(conn->kept.at);
    memset(conn, 0, sizeof *conn);
}

// -- synchronous methods -----------------------------------------------------------------------------------

static struct bytes basic_qos(void) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 1, BASIC_QOS);
    put_raw(&frame, "\0\0\0\0\0\0\0", 7); // no limits
    frame_end(&frame, mark);
    return frame;
}

void say_fence(struct conn *conn) {
    struct bytes frame = basic_qos();
    link_send(conn, frame.at, frame.len);
    free(frame.at);
}

void say_cancel(struct conn *conn) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 1, BASIC_CANCEL);
    put_short(&frame, "bench");
    put8(&frame, 0);
    frame_end(&frame, mark);
    link_send(conn, frame.at, frame.len);
    free(frame.at);
}

void ask_confirms(struct conn *conn) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 1, CONFIRM_SELECT);
    put8(&frame, 0);
    frame_end(&frame, mark);
    link_call(conn, &frame, CONFIRM_SELECT_OK);
}

void ask_consume(struct conn *conn, const char *queue) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 1, BASIC_CONSUME);
    put16(&frame, 0);
    put_short(&frame, queue);
    put_short(&frame, "bench");
    put8(&frame, 2); // no-ack
    if (!options.v0_8)
        put32(&frame, 0); // no arguments
    frame_end(&frame, mark);
    link_call(conn, &frame, BASIC_CONSUME_OK);
}

void ask_topology(struct conn *conn, bool exclusive) {
    struct bytes frame = {0};
    size_t mark = method_begin(&frame, 1, EXCHANGE_DECLARE);
    put16(&frame, 0);
    put_short(&frame, EXCHANGE);
    put_short(&frame, "direct");
    put8(&frame, 4); // auto-delete: goes with its last binding
    put32(&frame, 0);
    frame_end(&frame, mark);
    link_call(conn, &frame, EXCHANGE_DECLARE_OK);
    frame = (struct bytes){0};
    mark = method_begin(&frame, 1, QUEUE_DECLARE);
    put16(&frame, 0);
    put_short(&frame, options.queue);
    put8(&frame, exclusive ? 4 : 8); // exclusive, or auto-delete
    put32(&frame, 0);
    frame_end(&frame, mark);
    link_call(conn, &frame, QUEUE_DECLARE_OK);
    frame = (struct bytes){0};
    mark = method_begin(&frame, 1, QUEUE_BIND);
    put16(&frame, 0);
    put_short(&frame, options.queue);
    put_short(&frame, EXCHANGE);
    put_short(&frame, KEY_PREFIX "00000");
    put8(&frame, 0);
    put32(&frame, 0);
    frame_end(&frame, mark);
    link_call(conn, &frame, QUEUE_BIND_OK);
}
