// The load tool: an AMQP 0-9-1 client that is cheaper than any proxy.
//
//   load MODE [options]
//
//   publish   as fast as possible, until a basic.qos sent behind is answered
//   deliver   consume as fast as possible what the sink sends
//   confirm   publish with at most --window messages unconfirmed (1: ping-pong)
//   openloop  publish --rate messages per second on each connection, confirmed; latency counts from the
//             time at which a message was to be sent, so a stall shows in all that it delayed
//   e2e       publish on one connection, consume on another, at most --window messages under way
//   idle      hold connections open, made one by one or all at once (see steps.c for its remote control)
//   churn     connect, log in, open a channel, publish, close, again and again; with --tls-ca by a full handshake
//             each, with --resume too by the session of the one before
//   denied    try to declare --queue, print the refusal
//
// One line of JSON is the result; latencies are in microseconds. With --wait the tool says "ready" when it is
// warm, starts at a line on standard input, and closes its connections at the next (or its end).
#define _GNU_SOURCE
#include "load.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {
    .host = "127.0.0.1",
    .port = "5672",
    .user = "guest",
    .password = "guest",
    .vhost = "/",
    .queue = "bench.queue",
    .connections = 1,
    .keys = 1,
    .window = 1,
    .size = 16,
    .seconds = 1,
    .warmup = 0.2,
    .rate = 200,
};

bool next_line(char *line, size_t size) {
    if (!fgets(line, (int)size, stdin))
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

void say_ready(void) {
    char line[64];
    if (!options.wait)
        return;
    puts("ready");
    fflush(stdout);
    if (strcmp(options.mode, "idle") && !next_line(line, sizeof line))
        exit(0);
}

static double number(const char *text, double least, double most) {
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value >= least && value <= most))
        die("'%s': a number from %g to %g is wanted", text, least, most);
    return value;
}

enum { HOST, PORT, USER, PASSWORD, VHOST, QUEUE, TLS, RESUME, V0_8, DECLARE, WAIT, UNTIL_LINE, HEADERS, CONNECTIONS, KEYS,
       WINDOW, SIZE, SECONDS, WARMUP, RATE, MESSAGES };

static const struct option long_options[] = {
    {"host", required_argument, NULL, HOST},
    {"port", required_argument, NULL, PORT},
    {"user", required_argument, NULL, USER},
    {"password", required_argument, NULL, PASSWORD},
    {"vhost", required_argument, NULL, VHOST},
    {"queue", required_argument, NULL, QUEUE},
    {"tls-ca", required_argument, NULL, TLS},
    {"resume", no_argument, NULL, RESUME},
    {"0-8", no_argument, NULL, V0_8},
    {"declare", no_argument, NULL, DECLARE},
    {"wait", no_argument, NULL, WAIT},
    {"until-line", no_argument, NULL, UNTIL_LINE},
    {"headers", no_argument, NULL, HEADERS},
    {"connections", required_argument, NULL, CONNECTIONS},
    {"keys", required_argument, NULL, KEYS},
    {"window", required_argument, NULL, WINDOW},
    {"size", required_argument, NULL, SIZE},
    {"seconds", required_argument, NULL, SECONDS},
    {"warmup", required_argument, NULL, WARMUP},
    {"rate", required_argument, NULL, RATE},
    {"messages", required_argument, NULL, MESSAGES},
    {0},
};

static void set(int option, const char *value) {
    switch (option) {
    case HOST: options.host = value; break;
    case PORT: options.port = value; break;
    case USER: options.user = value; break;
    case PASSWORD: options.password = value; break;
    case VHOST: options.vhost = value; break;
    case QUEUE: options.queue = value; break;
    case TLS: options.tls_ca = value; break;
    case RESUME: options.resume = true; break;
    case V0_8: options.v0_8 = true; break;
    case DECLARE: options.declare = true; break;
    case WAIT: options.wait = true; break;
    case UNTIL_LINE: options.until_line = true; break;
    case HEADERS: with_headers = true; break;
    case CONNECTIONS: options.connections = (unsigned)number(value, 1, 65535); break;
    case KEYS: options.keys = (unsigned)number(value, 1, 99999); break;
    case WINDOW: options.window = (unsigned)number(value, 1, 1e6); break;
    case SIZE: options.size = (size_t)number(value, 0, 64 << 20); break;
    case SECONDS: options.seconds = number(value, 0.001, 86400); break;
    case WARMUP: options.warmup = number(value, 0, 3600); break;
    case RATE: options.rate = number(value, 0.001, 1e6); break;
    case MESSAGES: options.messages = (uint64_t)number(value, 1, 1e15); break;
    default: exit(2); // getopt has said why
    }
}

int main(int argc, char **argv) {
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        set(option, optarg);
    if (optind != argc - 1)
        die("usage: load MODE [--host H] [--port P] ... (the modes and options are listed in load.c)");
    options.mode = argv[optind];
    if (strlen(options.user) + strlen(options.password) > 200 || strlen(options.queue) > 200)
        die("name too long");
    signal(SIGPIPE, SIG_IGN);
    raise_file_limit();
    link_set_up();
    if (!strcmp(options.mode, "idle"))
        steps_idle();
    else if (!strcmp(options.mode, "churn"))
        steps_churn();
    else if (!strcmp(options.mode, "denied"))
        steps_denied();
    else
        phases_run();
    return 0;
}
