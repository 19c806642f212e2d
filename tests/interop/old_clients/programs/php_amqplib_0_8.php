<?php
// Plays steps with php-amqplib in its 0-8 mode: see ../steps.py for the steps and ../clients.py for the
// conversation.
declare(strict_types=1);

define('AMQP_PROTOCOL', '8.0');

require '/usr/share/php/PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPConnectionClosedException;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPArray;
use PhpAmqpLib\Wire\AMQPDecimal;
use PhpAmqpLib\Wire\AMQPTable;

error_reporting(E_ALL & ~E_DEPRECATED);
const TIMEOUT = 20;
// So many requests are answered before a delivery that was to come counts as held back.
const ROUND_TRIPS = 20;

/** A connection that shows what connection.start has told. */
class Connection extends AMQPStreamConnection
{
    public function told(): array
    {
        $mechanisms = $this->mechanisms;
        sort($mechanisms);
        return [
            'version' => [$this->version_major, $this->version_minor],
            'product' => $this->server_properties['product'][1],
            'mechanisms' => $mechanisms,
            'known_hosts' => '',
        ];
    }
}

/** Have the operator do something, and wait for the answer. */
function ask(string $what)
{
    echo "ask $what\n";
    return json_decode(fgets(STDIN), true);
}

function connected(array $changes = []): Connection
{
    $at = $changes + ['password' => getenv('AMQP_PASSWORD'), 'vhost' => getenv('AMQP_VHOST')];
    return new Connection(
        getenv('AMQP_HOST'), getenv('AMQP_PORT'), getenv('AMQP_USER'), $at['password'], $at['vhost'], false,
        'AMQPLAIN', null, 'en_US', TIMEOUT, TIMEOUT
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

/** Code, text, class and method of what closed a connection: the library makes "text(class, method)" of it. */
function told(callable $work): ?array
{
    try {
        $work();
    } catch (AMQPConnectionClosedException $error) {
        preg_match('/^(.*)\((\d+), (\d+)\)$/s', $error->getMessage(), $parts);
        return $parts ? [$error->getCode(), $parts[1], [(int) $parts[2], (int) $parts[3]]] : [$error->getMessage()];
    }
    return null;
}

$steps = [
    'server' => fn () => connected()->told(),

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

    'bindings' => function () {
        $ch = connected()->channel();
        $seen = [];
        foreach (['red', 'blue'] as $queue) {
            $ch->queue_declare($queue, false, false, true, false);
        }
        $count = function (string $name) use ($ch, &$seen) {
            $seen[$name] = [$ch->queue_purge('red'), $ch->queue_purge('blue')];
        };
        foreach (['direct', 'fanout', 'topic', 'headers'] as $kind) {
            $ch->exchange_declare("x.$kind", $kind, false, false, false);
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
        $ch->queue_unbind('red', 'x.fanout');
        send($ch, '', exchange: 'x.fanout');
        $count('unbind');
        foreach (['direct', 'fanout', 'topic', 'headers'] as $kind) {
            $ch->exchange_delete("x.$kind");
        }
        try {
            $ch->exchange_declare('x.topic', 'topic', true);
        } catch (AMQPProtocolChannelException $error) {
            $seen['deleted'] = $error->amqp_reply_code;
        }
        return $seen;
    },

    'properties' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $headers = new AMQPTable(json_decode(getenv('STEP_HEADERS'), true));
        $properties = json_decode(getenv('STEP_PROPERTIES'), true);
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
        $table->set('yes', true);
        $table->set('void', null);
        $table->set('list', new AMQPArray([1, 'x', new AMQPTable(['deep' => 1])]));
        $table->set('large', str_repeat('y', 70000));
        $sent = $table->getNativeData();
        send($ch, $queue, '', ['application_headers' => $table]);
        $got = $ch->basic_get($queue, true)->get('application_headers')->getNativeData();
        return [$sent, $got];
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
        $tag = $ch->basic_consume($queue, '', false, false, false, false, function ($message) use (&$deliveries) {
            $deliveries[] = [$message->body, $message->isRedelivered()];
            if (count($deliveries) === 1) {
                $message->reject(true);
            } elseif ($message->body === 'two') {
                $message->reject(false);
            } else {
                $message->ack();
            }
        });
        wait_until($ch, function () use (&$deliveries) { return count($deliveries) === 4; });
        $ch->basic_cancel($tag);
        return ['deliveries' => $deliveries, 'dead' => $ch->queue_purge($dead), 'left' => $ch->queue_purge($queue)];
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

    'qos' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        for ($n = 0; $n < 5; $n++) {
            send($ch, $queue, "m$n");
        }
        $ch->basic_qos(0, 2, false);
        $seen = [];
        $ch->basic_consume($queue, '', false, false, false, false, function ($message) use (&$seen) { $seen[] = $message; });
        wait_until($ch, function () use (&$seen) { return count($seen) === 2; });
        $ready = $ch->queue_declare($queue, true)[1];
        $seen[1]->ack(true);
        wait_until($ch, function () use (&$seen) { return count($seen) === 4; });
        return ['ready' => $ready, 'then' => array_map(fn ($message) => $message->body, $seen)];
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

    'access' => function () {
        $ch = connected()->channel();
        $ticket = $ch->access_request('/data', false, false, true, true, true);
        $queue = own_queue($ch);
        send($ch, $queue, 'ticket');
        return [$ticket, $ch->basic_get($queue, true)->body];
    },

    'errors' => function () {
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
                $seen[$error->amqp_reply_code] = [$error->amqp_reply_text, $error->amqp_method_sig];
            }
        }
        return $seen + ['usable' => $connection->channel()->queue_delete('errors') === 0];
    },

    'connection_error' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $consume = fn () => $ch->basic_consume($queue, 'reader', false, false, false, false, function () {});
        $consume();
        // Said by hand: the library itself refuses a tag that it knows.
        $ch->callbacks = [];
        return told($consume);
    },

    'unknown_vhost' => fn () => told(fn () => connected(['vhost' => 'nowhere'])),
    'wrong_password' => fn () => told(fn () => connected(['password' => 'wrong'])),

    'operator_close' => function () {
        $connection = connected();
        ask('close');
        return told(fn () => $connection->wait(null, false, TIMEOUT));
    },

    'close' => function () {
        $connection = connected();
        $connection->channel()->close();
        $connection->close();
        return !$connection->isConnected();
    },

    'flow' => function () {
        $ch = connected()->channel();
        $queue = own_queue($ch);
        $seen = [];
        $ch->basic_consume($queue, '', false, false, false, false, function ($message) use (&$seen) {
            $seen[] = $message->body;
        });
        $off = $ch->flow(false);
        send($ch, $queue, 'later');
        for ($n = 0; $n < ROUND_TRIPS; $n++) {
            $ch->basic_qos(0, 10, false);
        }
        $meanwhile = $seen;
        $on = $ch->flow(true);
        wait_until($ch, function () use (&$seen) { return count($seen) === 1; });
        return compact('off', 'meanwhile', 'on') + ['then' => $seen];
    },

    'foreign' => function () {
        $ch = connected()->channel();
        $ch->queue_declare('foreign', false, false, false, false);
        ask('foreign');
        $message = $ch->basic_get('foreign', true);
        $names = array_keys($message->get('application_headers')->getNativeData());
        sort($names);
        return [$message->body, $names];
    },
];

foreach (array_slice($argv, 1) as $name) {
    echo "step $name\n";
    try {
        $told = ['saw', $steps[$name]()];
    } catch (Throwable $error) {
        $told = ['failed', get_class($error) . ': ' . $error->getMessage()];
    }
    echo $told[0], ' ', json_encode($told[1], JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION), "\n";
}
