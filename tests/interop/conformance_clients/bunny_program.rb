# bunny: publishes all before it waits for confirms, consumes on two channels at once, gets, and leaves.
require 'bunny'

BODIES = ['', 'small', 'x' * 300_000, 'four', 'five'].freeze

connection = Bunny.new(ENV['AMQP_URL'], heartbeat: 1, automatically_recover: false, recover_from_connection_close: false)
connection.start
publisher = connection.create_channel
consumers = [connection.create_channel, connection.create_channel]
publisher.confirm_select
queues = consumers.map { |channel| channel.queue('', exclusive: true) }
returned = Queue.new
exchange = publisher.default_exchange
exchange.on_return { |_, _, body| returned << body }
BODIES.each { |body| queues.each { |queue| exchange.publish(body, routing_key: queue.name, headers: { 'n' => 1 }, priority: 3) } }
exchange.publish('lost', routing_key: 'nowhere', mandatory: true)
puts 'nacked' unless publisher.wait_for_confirms
raise 'returned' unless returned.pop == 'lost'

got = [[], []]
left = Queue.new
tags = queues.each_with_index.map do |queue, number|
  queue.subscribe(manual_ack: true) do |delivery, _, body|
    consumers[number].ack(delivery.delivery_tag)
    got[number] << body
    left << body
  end
end
(2 * BODIES.size).times { left.pop }
raise 'other bodies' unless got == [BODIES, BODIES]

tags.each(&:cancel)
raise 'a message' unless queues[0].pop[2].nil?

consumers[1].close
connection.close
