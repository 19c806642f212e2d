<?php
// Plays one step with php-amqplib: see ../steps.py for the steps and scripts.py for the conversation.
declare(strict_types=1);

require '/usr/share/php/PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPBasicCancelException;
use PhpAmqpLib\Exception\AMQPConnectionClosedException;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPArray;
use PhpAmqpLib\Wire\AMQPDecimal;
use PhpAmqpLib\Wire\AMQPTable;

error_reporting(E_ALL & ~E_DEPRECATED);
const TIMEOUT = 20;

/** Have the operator do something, and wait for the answer. */
function ask(string $what)
{
    echo "ask $what\n";
    return json_decode(fgets(STDIN), true);
}

function connected(string $method = 'PLAIN', array $changes = []): AMQPStreamConnection
{
    $at = $changes + ['user' => getenv('AMQP_USER'), 'password' => getenv('AMQP_PASSWORD'), 'vhost' => getenv('AMQP_VHOST')];
    return new AMQPStreamConnection(
        getenv('AMQP_HOST'), getenv('AMQP_PORT'), $at['user'], $at['password'], $at['vhost'], false, $method,
        null, 'en_US', TIMEOUT, TIMEOUT
    );
}

function own_queue($ch, array $arguments = []): string
{
    return $ch->queue_declare('', false, false, true, false, false, new AMQPTable($arguments))[0];
}

function send($ch, string $key, string $body = '', array $properties = [], string $exchange = ''): void
{
    $ch->basic_publish(new AMQPMessage($body, $properties), $exchange, $key);
}

/** Let the channel work until $done() is true. */
function wait_until($ch, callable $done): void
{
    while (!$done()) {
        $ch->wait(null, false, TIMEOUT);
    }
}

/** Code and text of a connection.close, from which the library makes "text(class, method)". */
function closed(AMQPConnectionClosedException $error): array
{
    return [$error->getCode(), preg_replace('/\(\d+, \d+\)$/', '', $error->getMessage())];
}

$steps = [
    'declare' => function () {
        $ch = connected()->channel();
        $arguments = new AMQPTable(['x-max-length' => 10]);
        $named = $ch->queue_declare('declare', false, true, false, false, false, $arguments);
        $passive = $ch->queue_declare('declare', true);
        $own = own_queue($ch);
        send($ch, 'declare', 'x');
        $purged = $ch->queue_purge('declare');
        $deleted = $ch->queue_delete('declare');
        $server_named = str_starts_with($own, 'amq.gen-');
        return compact('named', 'passive', 'server_named', 'purged', 'deleted');
    },

    'exchanges' => function () {
        $ch = connected()->channel();
        $seen = [];
        foreach (['red', 'blue'] as $queue) {
            $ch->queue_declare($queue, false, false, true, false);
        }
        $count = function (string $name) use ($ch, &$seen) {
            $seen[$name] = [$ch->queue_purge('red'), $ch->queue_purge('blue')];
        };
        foreach (['direct', 'fanout', 'topic', 'headers'] as $kind) {
            $ch->exchange_declare("x.$kind", $kind, false, false, true);
        }
        foreach (['red', 'blue'] as $queue) {
            $ch->queue_bind($queue, 'x.direct', $queue);
            $ch->queue_bind($queue, 'x.fanout');
        }
        $ch->queue_bind('red', 'x.topic', '*.fast.#');
        $ch->queue_bind('blue', 'x.topic', 'slow.*');
        $ch->queue_bind('red', 'x.headers', '', false, new AMQPTable(['x-match' => 'all', 'a' => 1, 'b' => 'x']));
        $ch->queue_bind('blue', 'x.headers', '', false, new AMQPTable(['x-match' => 'any', 'a' => 1, 'c' => true]));

        send($ch, 'red', exchange: 'x.direct');
        $count('direct');
        send($ch, 'anything', exchange: 'x.fanout');
        $count('fanout');
        foreach (['car.fast.now', 'slow.car', 'car.fast'] as $key) {
            send($ch, $key, exchange: 'x.topic');
        }
        $count('topic');
        foreach ([['a' => 1, 'b' => 'x'], ['a' => 1]] as $headers) {
            send($ch, '', '', ['application_headers' => new AMQPTable($headers)], 'x.headers');
        }
        $count('headers');
        $ch->exchange_declare('x.source', 'fanout', false, false, false);
        $ch->exchange_bind('x.direct', 'x.source', 'red');
        send($ch, 'red', exchange: 'x.source');
        $count('exchange_bind');
        $ch->exchange_unbind('x.direct', 'x.source', 'red');
        send($ch, 'red', exchange: 'x.source');
        $count('exchange_unbind');
        $ch->exchange_delete('x.source');
        $ch->queue_unbind('red', 'x.fanout');
        send($ch, '', exchange: 'x.fanout');
        $count('queue_unbind');
        return $seen;
    },

    'properties' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $properties = json_decode(getenv('STEP_PROPERTIES'), true);
        $headers = new AMQPTable(json_decode(getenv('STEP_HEADERS'), true));
        send($ch, $queue, '', $properties + ['application_headers' => $headers]);
        $got = $ch->basic_get($queue, true)->get_properties();
        $headers = $got['application_headers']->getNativeData();
        unset($got['application_headers']);
        return ['properties' => $got, 'headers' => $headers];
    },

    'header_types' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $table = new AMQPTable();
        $table->set('byte', -5, AMQPTable::T_INT_SHORTSHORT);
        $table->set('ubyte', 200, AMQPTable::T_INT_SHORTSHORT_U);
        $table->set('short', -300, AMQPTable::T_INT_SHORT);
        $table->set('ushort', 60000, AMQPTable::T_INT_SHORT_U);
        $table->set('long', -70000, AMQPTable::T_INT_LONG);
        $table->set('ulong', 4000000000, AMQPTable::T_INT_LONG_U);
        $table->set('longlong', PHP_INT_MIN, AMQPTable::T_INT_LONGLONG);
        $table->set('decimal', new AMQPDecimal(314, 2));
        $table->set('time', 1700000000, AMQPTable::T_TIMESTAMP);
        $table->set('bytes', 'abc', AMQPTable::T_BYTES);
        $table->set('void', null);
        $table->set('list', new AMQPArray([1, 'x', new AMQPTable(['deep' => 1])]));
        $table->set('large', str_repeat('y', 70000));
        $sent = $table->getNativeData();
        send($ch, $queue, '', ['application_headers' => $table]);
        $got = $ch->basic_get($queue, true)->get('application_headers')->getNativeData();
        return [$sent, $got];
    },

    'confirms' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $seen = ['acked' => 0, 'nacked' => 0];
        $ch->set_ack_handler(function () use (&$seen) { $seen['acked']++; });
        $ch->set_nack_handler(function () use (&$seen) { $seen['nacked']++; });
        $ch->confirm_select();
        for ($n = 0; $n < 100; $n++) {
            send($ch, $queue, 'x');
        }
        $ch->wait_for_pending_acks(TIMEOUT);
        return $seen + ['in_queue' => $ch->queue_declare($queue, true)[1]];
    },

    'confirm_nack' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch, ['x-max-length' => 1, 'x-overflow' => 'reject-publish']);
        $seen = [];
        $ch->set_ack_handler(function () use (&$seen) { $seen[] = 'ack'; });
        $ch->set_nack_handler(function () use (&$seen) { $seen[] = 'nack'; });
        $ch->confirm_select();
        for ($n = 0; $n < 2; $n++) {
            send($ch, $queue, 'x');
            $ch->wait_for_pending_acks(TIMEOUT);
        }
        return $seen;
    },

    'returns' => function () {
        $ch = connected()->channel();
        $seen = null;
        $ch->set_return_listener(function ($code, $text, $exchange, $key, $message) use (&$seen) {
            $seen = [$code, $text, $exchange, $key, $message->body];
        });
        $ch->basic_publish(new AMQPMessage('lost'), '', 'nowhere', true);
        wait_until($ch, function () use (&$seen) { return $seen !== null; });
        return $seen;
    },

    'acks' => function () {
        $ch = connected()->channel();
        $dead = own_queue($ch);
        $queue = own_queue($ch, ['x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => $dead]);
        foreach (['one', 'two', 'three'] as $body) {
            send($ch, $queue, $body);
        }
        $ch->basic_qos(0, 1, false);
        $deliveries = [];
        $ch->basic_consume($queue, '', false, false, false, false, function ($message) use (&$deliveries) {
            $deliveries[] = [$message->body, $message->isRedelivered()];
            if (count($deliveries) === 1) {
                $message->nack(true);
            } elseif ($message->body === 'two') {
                $message->reject(false);
            } else {
                $message->ack();
            }
        });
        wait_until($ch, function () use (&$deliveries) { return count($deliveries) === 4; });
        $letter = $ch->basic_get($dead, true);
        $death = $letter->get('application_headers')->getNativeData()['x-death'][0];
        return ['deliveries' => $deliveries, 'dead' => [$letter->body, $death['reason']]];
    },

    'recover' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        send($ch, $queue, 'x');
        $first = $ch->basic_get($queue)->isRedelivered();
        $ch->basic_recover(true);
        return [$first, $ch->basic_get($queue)->isRedelivered()];
    },

    'get' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $empty = $ch->basic_get($queue);
        send($ch, $queue, 'one');
        send($ch, $queue, 'two');
        $full = $ch->basic_get($queue, true);
        return ['empty' => $empty, 'full' => [$full->body, $full->isRedelivered(), $full->getMessageCount()]];
    },

    'consume' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        for ($n = 0; $n < 10; $n++) {
            send($ch, $queue, "m$n");
        }
        $bodies = [];
        $tag = $ch->basic_consume($queue, 'reader', false, false, false, false, function ($message) use (&$bodies) {
            $bodies[] = $message->body;
            $message->ack();
        });
        wait_until($ch, function () use (&$bodies) { return count($bodies) === 10; });
        $ch->basic_cancel($tag);
        [, $messages, $consumers] = $ch->queue_declare($queue, true);
        return ['tag' => $tag, 'bodies' => $bodies, 'left' => $messages + $consumers];
    },

    'tx' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $ch->tx_select();
        send($ch, $queue, 'x');
        $ch->tx_rollback();
        $rolled_back = $ch->queue_purge($queue);
        send($ch, $queue, 'y');
        send($ch, $queue, 'z');
        $ch->tx_commit();
        return ['rolled_back' => $rolled_back, 'committed' => $ch->queue_purge($queue)];
    },

    'cancel_notify' => function () {
        $connection = connected();
        $ch = $connection->channel();
        $ch->queue_declare('doomed', false, false, false, false);
        $ch->basic_consume('doomed', 'watcher', false, false, false, false, function () {});
        $connection->channel()->queue_delete('doomed');
        try {
            $ch->wait(null, false, TIMEOUT);
        } catch (AMQPBasicCancelException $error) {
            return $error->getConsumerTag();
        }
    },

    'exclusive' => function () {
        $owner = connected();
        $owner->channel()->queue_declare('mine', false, false, true, false);
        try {
            connected()->channel()->queue_declare('mine', false, false, true, false);
        } catch (AMQPProtocolChannelException $error) {
            return [$error->amqp_reply_code, $error->amqp_reply_text];
        }
    },

    'reply_to' => function () {
        $connection = connected();
        $ch = $connection->channel();
        $ch->queue_declare('rpc', false, false, true, false);
        $pseudo = 'amq.rabbitmq.reply-to';
        $answer = null;
        $ch->basic_consume($pseudo, '', false, true, false, false, function ($message) use (&$answer) {
            $answer = $message->body;
        });
        send($ch, 'rpc', 'ping', ['reply_to' => $pseudo]);
        $address = $ch->basic_get('rpc', true)->get('reply_to');
        send($connection->channel(), $address, 'pong');
        wait_until($ch, function () use (&$answer) { return $answer !== null; });
        return ['pseudo_queue' => str_starts_with($address, "$pseudo."), 'answer' => $answer];
    },

    'priorities' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $who = [];
        foreach (['low' => 1, 'high' => 10] as $name => $priority) {
            $on_message = function () use (&$who, $name) { $who[] = $name; };
            $arguments = new AMQPTable(['x-priority' => $priority]);
            $ch->basic_consume($queue, $name, false, true, false, false, $on_message, null, $arguments);
        }
        for ($n = 0; $n < 5; $n++) {
            send($ch, $queue);
        }
        wait_until($ch, function () use (&$who) { return count($who) === 5; });
        return $who;
    },

    'quorum' => function () {
        $ch = connected()->channel();
        $type = new AMQPTable(['x-queue-type' => 'quorum']);
        $ch->queue_declare('quorum', false, true, false, false, false, $type);
        $ch->confirm_select();
        send($ch, 'quorum', 'x');
        $ch->wait_for_pending_acks(TIMEOUT);
        $counts = [];
        $ch->basic_consume('quorum', 'q', false, false, false, false, function ($message) use (&$counts) {
            $headers = $message->has('application_headers') ? $message->get('application_headers')->getNativeData() : [];
            $counts[] = $headers['x-delivery-count'] ?? null;
            count($counts) === 1 ? $message->nack(true) : $message->ack();
        });
        wait_until($ch, function () use (&$counts) { return count($counts) === 2; });
        $ch->basic_cancel('q');
        $ch->queue_delete('quorum');
        return $counts;
    },

    'stream' => function () {
        $ch = connected()->channel();
        $type = new AMQPTable(['x-queue-type' => 'stream']);
        $ch->queue_declare('stream', false, true, false, false, false, $type);
        $ch->confirm_select();
        for ($n = 0; $n < 3; $n++) {
            send($ch, 'stream', "s$n");
        }
        $ch->wait_for_pending_acks(TIMEOUT);
        $ch->basic_qos(0, 10, false);
        $seen = [];
        $on_message = function ($message) use (&$seen) {
            $headers = $message->get('application_headers')->getNativeData();
            $seen[] = [$message->body, $headers['x-stream-offset']];
            $message->ack();
        };
        $first = new AMQPTable(['x-stream-offset' => 'first']);
        $ch->basic_consume('stream', 's', false, false, false, false, $on_message, null, $first);
        wait_until($ch, function () use (&$seen) { return count($seen) === 3; });
        $ch->basic_cancel('s');
        $ch->queue_delete('stream');
        return $seen;
    },

    'bodies' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $seen = [];
        $bytes = implode('', array_map('chr', range(0, 255)));
        foreach ([str_repeat($bytes, 3 * 1024 * 1024 / 256), ''] as $body) {
            send($ch, $queue, $body);
            $got = $ch->basic_get($queue, true)->body;
            $seen[] = [strlen($got), hash('sha256', $got)];
        }
        return $seen;
    },

    'channel_errors' => function () {
        $connection = connected();
        $seen = [];
        $connection->channel()->queue_declare('errors', false, true, false, false);
        $acts = [
            fn ($ch) => $ch->queue_declare('nothing', true),
            fn ($ch) => $ch->queue_declare('errors', false, false, false, false),
            fn ($ch) => $ch->exchange_declare('amq.mine', 'direct'),
        ];
        foreach ($acts as $act) {
            try {
                $act($connection->channel());
            } catch (AMQPProtocolChannelException $error) {
                $seen[$error->amqp_reply_code] = $error->amqp_reply_text;
            }
        }
        $connection->channel()->queue_delete('errors');
        return $seen + ['usable' => $connection->isConnected()];
    },

    'wrong_password' => function () {
        try {
            connected('PLAIN', ['password' => 'wrong']);
        } catch (AMQPConnectionClosedException $error) {
            return closed($error);
        }
    },

    'unknown_vhost' => function () {
        try {
            connected('PLAIN', ['vhost' => 'nowhere']);
        } catch (AMQPConnectionClosedException $error) {
            return closed($error);
        }
    },

    'amqplain' => function () {
        return connected('AMQPLAIN')->channel()->queue_declare('amqplain', false, false, true);
    },

    'blocked' => function () {
        $connection = connected();
        $ch = $connection->channel();
        $queue = own_queue($ch);
        send($ch, $queue, 'x');
        $seen = [];
        $connection->set_connection_block_handler(function ($reason) use (&$seen) { $seen[] = $reason; });
        $connection->set_connection_unblock_handler(function () use (&$seen) { $seen[] = 'unblocked'; });
        ask('alarm');
        try {
            send($ch, $queue, 'y');
            wait_until($connection, function () use (&$seen) { return count($seen) === 1; });
        } finally {
            ask('clear');
        }
        wait_until($connection, function () use (&$seen) { return count($seen) === 2; });
        return $seen;
    },

    'operator_close' => function () {
        $connection = connected();
        ask('close');
        try {
            $connection->wait(null, false, TIMEOUT);
        } catch (AMQPConnectionClosedException $error) {
            return closed($error);
        }
    },

    'connection_list' => function () {
        $connection = connected();
        return ask('connections');
    },
];

$saw = $steps[$argv[1]]();
echo 'saw ', json_encode($saw, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION), "\n";
