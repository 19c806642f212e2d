# Plays one step with Ruby's bunny: see ../steps.py for the steps and scripts.py for the conversation.
# frozen_string_literal: true

require 'bunny'
require 'digest'
require 'json'

Thread.report_on_exception = false
TIMEOUT = 20

# Have the operator do something, and wait for the answer.
def ask(what)
  $stdout.puts "ask #{what}"
  $stdout.flush
  JSON.parse($stdin.gets)
end

def connected(**changes)
  options = {
    host: ENV['AMQP_HOST'], port: ENV['AMQP_PORT'].to_i, vhost: ENV['AMQP_VHOST'],
    user: ENV['AMQP_USER'], password: ENV['AMQP_PASSWORD'],
    automatically_recover: false, recover_from_connection_close: false, log_level: :fatal,
    continuation_timeout: TIMEOUT * 1000, connection_name: 'interop'
  }
  Bunny.new(**options.merge(changes)).start
end

def own_queue(channel, arguments = {})
  channel.queue('', exclusive: true, arguments: arguments)
end

def counts(ok)
  [ok.queue, ok.message_count, ok.consumer_count]
end

# A list that other threads fill and that a step waits for.
class Inbox
  attr_reader :items

  def initialize
    @items = []
    @lock = Mutex.new
    @filled = ConditionVariable.new
  end

  def put(item)
    @lock.synchronize do
      @items << item
      @filled.broadcast
    end
  end

  def wait(number)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + TIMEOUT
    @lock.synchronize do
      while @items.size < number
        left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        raise "got only #{@items.inspect}" if left <= 0

        @filled.wait(@lock, left)
      end
    end
    @items
  end
end

STEPS = {
  'declare' => lambda {
    ch = connected.create_channel
    named = counts(ch.queue_declare('declare', durable: true, arguments: { 'x-max-length' => 10 }))
    passive = counts(ch.queue_declare('declare', passive: true))
    own = own_queue(ch).name
    ch.basic_publish('x', '', 'declare')
    {
      named: named,
      passive: passive,
      server_named: own.start_with?('amq.gen-'),
      purged: ch.queue_purge('declare').message_count,
      deleted: ch.queue_delete('declare').message_count
    }
  },

  'exchanges' => lambda {
    ch = connected.create_channel
    seen = {}
    %w[red blue].each { |queue| ch.queue_declare(queue, exclusive: true) }
    count = ->(name) { seen[name] = %w[red blue].map { |queue| ch.queue_purge(queue).message_count } }
    %w[direct fanout topic headers].each { |kind| ch.exchange_declare("x.#{kind}", kind, auto_delete: true) }
    %w[red blue].each do |queue|
      ch.queue_bind(queue, 'x.direct', routing_key: queue)
      ch.queue_bind(queue, 'x.fanout')
    end
    ch.queue_bind('red', 'x.topic', routing_key: '*.fast.#')
    ch.queue_bind('blue', 'x.topic', routing_key: 'slow.*')
    ch.queue_bind('red', 'x.headers', arguments: { 'x-match' => 'all', 'a' => 1, 'b' => 'x' })
    ch.queue_bind('blue', 'x.headers', arguments: { 'x-match' => 'any', 'a' => 1, 'c' => true })

    ch.basic_publish('', 'x.direct', 'red')
    count.call('direct')
    ch.basic_publish('', 'x.fanout', 'anything')
    count.call('fanout')
    %w[car.fast.now slow.car car.fast].each { |key| ch.basic_publish('', 'x.topic', key) }
    count.call('topic')
    ch.basic_publish('', 'x.headers', '', headers: { 'a' => 1, 'b' => 'x' })
    ch.basic_publish('', 'x.headers', '', headers: { 'a' => 1 })
    count.call('headers')
    ch.exchange_declare('x.source', 'fanout')
    ch.exchange_bind('x.source', 'x.direct', routing_key: 'red')
    ch.basic_publish('', 'x.source', 'red')
    count.call('exchange_bind')
    ch.exchange_unbind('x.source', 'x.direct', routing_key: 'red')
    ch.basic_publish('', 'x.source', 'red')
    count.call('exchange_unbind')
    ch.exchange_delete('x.source')
    ch.queue_unbind('red', 'x.fanout')
    ch.basic_publish('', 'x.fanout', '')
    count.call('queue_unbind')
    seen
  },

  'properties' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    sent = JSON.parse(ENV['STEP_PROPERTIES']).transform_keys(&:to_sym)
    headers = JSON.parse(ENV['STEP_HEADERS'])
    options = sent.merge(headers: headers)
    ch.basic_publish('', '', queue.name, options)
    _, got, = queue.pop
    told = got.to_h
    headers = told.delete(:headers)
    told[:timestamp] = told[:timestamp].to_i
    { properties: told, headers: headers }
  },

  'header_types' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    sent = {
      'double' => 0.1, 'long' => 2**62, 'negative' => -(2**62), 'no' => false, 'time' => Time.at(1_700_000_000),
      'nothing' => [], 'empty' => {}, 'mixed' => [1, 'x', true, { 'a' => [2] }], 'large' => 'y' * 70_000
    }
    ch.basic_publish('', '', queue.name, headers: sent)
    _, got, = queue.pop
    [sent, got.headers]
  },

  'confirms' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    ch.confirm_select
    100.times { ch.basic_publish('x', '', queue.name) }
    ch.wait_for_confirms
    nacked = ch.nacked_set.size
    { acked: 100 - nacked, nacked: nacked, in_queue: queue.message_count }
  },

  'confirm_nack' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch, 'x-max-length' => 1, 'x-overflow' => 'reject-publish')
    ch.confirm_select
    Array.new(2) do
      ch.basic_publish('x', '', queue.name)
      ch.wait_for_confirms ? 'ack' : 'nack'
    end
  },

  'returns' => lambda {
    ch = connected.create_channel
    inbox = Inbox.new
    exchange = ch.default_exchange
    exchange.on_return do |info, _properties, body|
      inbox.put([info.reply_code, info.reply_text, info.exchange, info.routing_key, body])
    end
    exchange.publish('lost', routing_key: 'nowhere', mandatory: true)
    inbox.wait(1).first
  },

  'acks' => lambda {
    ch = connected.create_channel
    dead = own_queue(ch)
    queue = own_queue(ch, 'x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => dead.name)
    %w[one two three].each { |body| ch.basic_publish(body, '', queue.name) }
    ch.basic_qos(1)
    inbox = Inbox.new
    queue.subscribe(manual_ack: true) do |info, _properties, body|
      first = inbox.items.empty?
      inbox.put([body, info.redelivered?])
      if first
        ch.nack(info.delivery_tag, false, true)
      elsif body == 'two'
        ch.reject(info.delivery_tag, false)
      else
        ch.ack(info.delivery_tag)
      end
    end
    inbox.wait(4)
    _, properties, body = dead.pop
    { deliveries: inbox.items, dead: [body, properties.headers['x-death'][0]['reason']] }
  },

  'recover' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    ch.basic_publish('x', '', queue.name)
    first, = ch.basic_get(queue.name)
    ch.basic_recover(true)
    second, = ch.basic_get(queue.name)
    [first.redelivered, second.redelivered]
  },

  'get' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    empty, = ch.basic_get(queue.name)
    %w[one two].each { |body| ch.basic_publish(body, '', queue.name) }
    info, _, body = ch.basic_get(queue.name, manual_ack: false)
    { empty: empty, full: [body, info.redelivered, info.message_count] }
  },

  'consume' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    10.times { |n| ch.basic_publish("m#{n}", '', queue.name) }
    inbox = Inbox.new
    ok = ch.basic_consume(queue.name, 'reader') do |info, _properties, body|
      ch.ack(info.delivery_tag)
      inbox.put(body)
    end
    inbox.wait(10)
    ch.basic_cancel('reader')
    left = ch.queue_declare(queue.name, passive: true)
    { tag: ok.consumer_tag, bodies: inbox.items, left: left.message_count + left.consumer_count }
  },

  'tx' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    ch.tx_select
    ch.basic_publish('x', '', queue.name)
    ch.tx_rollback
    rolled_back = ch.queue_purge(queue.name).message_count
    2.times { ch.basic_publish('y', '', queue.name) }
    ch.tx_commit
    { rolled_back: rolled_back, committed: ch.queue_purge(queue.name).message_count }
  },

  'cancel_notify' => lambda {
    connection = connected
    ch = connection.create_channel
    queue = ch.queue('doomed')
    inbox = Inbox.new
    consumer = Bunny::Consumer.new(ch, queue, 'watcher')
    consumer.on_cancellation { |cancel| inbox.put(cancel.consumer_tag) }
    ch.basic_consume_with(consumer)
    connection.create_channel.queue_delete('doomed')
    inbox.wait(1).first
  },

  'exclusive' => lambda {
    owner = connected
    owner.create_channel.queue_declare('mine', exclusive: true)
    begin
      connected.create_channel.queue_declare('mine', exclusive: true)
    rescue Bunny::ResourceLocked => e
      [e.channel_close.reply_code, e.channel_close.reply_text]
    end
  },

  'reply_to' => lambda {
    connection = connected
    ch = connection.create_channel
    ch.queue_declare('rpc', exclusive: true)
    pseudo = 'amq.rabbitmq.reply-to'
    inbox = Inbox.new
    ch.basic_consume(pseudo, '', true) { |_info, _properties, body| inbox.put(body) }
    ch.basic_publish('ping', '', 'rpc', reply_to: pseudo)
    _, request, = ch.basic_get('rpc', manual_ack: false)
    address = request[:reply_to]
    connection.create_channel.basic_publish('pong', '', address)
    { pseudo_queue: address.start_with?("#{pseudo}."), answer: inbox.wait(1).first }
  },

  'priorities' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    inbox = Inbox.new
    { 'low' => 1, 'high' => 10 }.each do |name, priority|
      ch.basic_consume(queue.name, name, true, false, { 'x-priority' => priority }) { inbox.put(name) }
    end
    5.times { ch.basic_publish('', '', queue.name) }
    inbox.wait(5)
  },

  'quorum' => lambda {
    ch = connected.create_channel
    ch.queue_declare('quorum', durable: true, arguments: { 'x-queue-type' => 'quorum' })
    ch.confirm_select
    ch.basic_publish('x', '', 'quorum')
    ch.wait_for_confirms
    inbox = Inbox.new
    ch.basic_consume('quorum', 'q') do |info, properties, _body|
      inbox.items.empty? ? ch.nack(info.delivery_tag, false, true) : ch.ack(info.delivery_tag)
      inbox.put((properties.headers || {})['x-delivery-count'])
    end
    inbox.wait(2)
    ch.basic_cancel('q')
    ch.queue_delete('quorum')
    inbox.items
  },

  'stream' => lambda {
    ch = connected.create_channel
    ch.queue_declare('stream', durable: true, arguments: { 'x-queue-type' => 'stream' })
    ch.confirm_select
    3.times { |n| ch.basic_publish("s#{n}", '', 'stream') }
    ch.wait_for_confirms
    ch.basic_qos(10)
    inbox = Inbox.new
    first = { 'x-stream-offset' => 'first' }
    ch.basic_consume('stream', 's', false, false, first) do |info, properties, body|
      ch.ack(info.delivery_tag)
      inbox.put([body, properties.headers['x-stream-offset']])
    end
    inbox.wait(3)
    ch.basic_cancel('s')
    ch.queue_delete('stream')
    inbox.items
  },

  'bodies' => lambda {
    ch = connected.create_channel
    queue = own_queue(ch)
    bytes = (0..255).to_a.pack('C*')
    [bytes * (3 * 1024 * 1024 / 256), ''].map do |body|
      ch.basic_publish(body, '', queue.name)
      _, _, got = queue.pop
      [got.bytesize, Digest::SHA256.hexdigest(got)]
    end
  },

  'channel_errors' => lambda {
    connection = connected
    seen = {}
    connection.create_channel.queue_declare('errors', durable: true)
    acts = [
      ->(ch) { ch.queue_declare('nothing', passive: true) },
      ->(ch) { ch.queue_declare('errors', durable: false) },
      ->(ch) { ch.exchange_declare('amq.mine', 'direct') }
    ]
    acts.each do |act|
      act.call(connection.create_channel)
    rescue Bunny::ChannelLevelException => e
      seen[e.channel_close.reply_code] = e.channel_close.reply_text
    end
    connection.create_channel.queue_delete('errors')
    seen['usable'] = connection.open?
    seen
  },

  'wrong_password' => lambda {
    begin
      connected(password: 'wrong')
    rescue Bunny::AuthenticationFailureError => e
      e.message
    end
  },

  'unknown_vhost' => lambda {
    begin
      connected(vhost: 'nowhere')
    rescue Bunny::NotAllowedError => e
      [e.connection_close.reply_code, e.connection_close.reply_text]
    end
  },

  'update_secret' => lambda {
    connection = connected
    connection.update_secret(ENV['AMQP_PASSWORD'], 'interop')
    counts(connection.create_channel.queue_declare('update_secret', exclusive: true))
  },

  'blocked' => lambda {
    connection = connected
    inbox = Inbox.new
    connection.on_blocked { |notice| inbox.put(notice.reason) }
    connection.on_unblocked { inbox.put('unblocked') }
    ch = connection.create_channel
    queue = own_queue(ch)
    ch.basic_publish('x', '', queue.name)
    ask('alarm')
    begin
      ch.basic_publish('y', '', queue.name)
      inbox.wait(1)
    ensure
      ask('clear')
    end
    inbox.wait(2)
  },

  'operator_close' => lambda {
    inbox = Inbox.new
    handler = Object.new
    handler.define_singleton_method(:raise) { |error, *| inbox.put(error) }
    connected(session_error_handler: handler)
    ask('close')
    close = inbox.wait(1).first.connection_close
    [close.reply_code, close.reply_text]
  },

  'connection_list' => lambda {
    connected
    ask('connections')
  }
}.freeze

saw = STEPS.fetch(ARGV[0]).call
$stdout.puts "saw #{JSON.generate(saw)}"
$stdout.flush
exit!(0)
