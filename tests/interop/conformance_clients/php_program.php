<?php
// php-amqplib: publishes with confirms, consumes on two channels at once, gets, and leaves.
declare(strict_types=1);
error_reporting(E_ALL & ~E_DEPRECATED);
if (getenv('AMQP_OLD')) define('AMQP_PROTOCOL', '8.0');
require '/usr/share/php/PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

$bodies = ['', 'small', str_repeat('x', 300000), 'four', 'five'];
$connection = new AMQPStreamConnection(getenv('AMQP_HOST'), getenv('AMQP_PORT'), 'guest', 'guest', '/', false,
    'AMQPLAIN', null, 'en_US', 20, 20, null, false, getenv('AMQP_HEARTBEAT') ? 1 : 0);
[$publisher, $consumer, $other] = [$connection->channel(), $connection->channel(), $connection->channel()];
$returned = [];
if (!getenv('AMQP_OLD')) {
    $publisher->confirm_select();
}
$publisher->set_return_listener(function (...$told) use (&$returned) { $returned[] = end($told)->getBody(); });
$queues = [];
foreach ([0, 1] as $_) $queues[] = $publisher->queue_declare('', false, false, true)[0];
foreach ($bodies as $body) {
    foreach ($queues as $queue) {
        $headers = new AMQPTable(['n' => 1]);
        $publisher->basic_publish(new AMQPMessage($body, ['application_headers' => $headers, 'priority' => 3]), '', $queue);
    }
}
$publisher->basic_publish(new AMQPMessage('lost'), '', 'nowhere', true);
if (getenv('AMQP_OLD')) $publisher->wait(null, false, 20); else $publisher->wait_for_pending_acks_returns(20);
if ($returned !== ['lost']) throw new Exception('returned: ' . json_encode($returned));
$got = [[], []];
$tags = [];
foreach ([$consumer, $other] as $number => $channel) {
    $take = function ($message) use (&$got, $number) {
        $got[$number][] = $message->getBody();
        $message->ack();
    };
    $tags[] = $channel->basic_consume($queues[$number], '', false, false, false, false, $take);
}
foreach ([$consumer, $other] as $number => $channel) {
    while (count($got[$number]) < count($bodies)) $channel->wait(null, false, 20);
}
if ($got !== [$bodies, $bodies]) throw new Exception('other bodies');
foreach ([$consumer, $other] as $number => $channel) $channel->basic_cancel($tags[$number]);
if ($publisher->basic_get($queues[0]) !== null) throw new Exception('a message');
$other->close();
$connection->close();
