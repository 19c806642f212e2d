// Plays one step with Node's amqplib: see ../../steps.py for the steps and ../scripts.py for the conversation.
'use strict';

const crypto = require('node:crypto');
const readline = require('node:readline');
const amqplib = require(process.env.AMQPLIB || 'amqplib');

const env = process.env;
const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Have the operator do something, and wait for the answer. */
async function ask(what) {
  process.stdout.write(`ask ${what}\n`);
  const { value } = await input.next();
  return JSON.parse(value);
}

async function connected(changes = {}, options = {}) {
  const at = {
    protocol: 'amqp',
    hostname: env.AMQP_HOST,
    port: Number(env.AMQP_PORT),
    username: env.AMQP_USER,
    password: env.AMQP_PASSWORD,
    vhost: env.AMQP_VHOST,
    ...changes,
  };
  const connection = await amqplib.connect(at, { clientProperties: { connection_name: 'interop' }, ...options });
  connection.on('error', () => {});
  return connection;
}

async function channel(connection, kind = 'createChannel') {
  const ch = await connection[kind]();
  ch.on('error', () => {});
  return ch;
}

const ownQueue = async (ch, args) => (await ch.assertQueue('', { exclusive: true, arguments: args })).queue;
const counts = (ok) => [ok.queue, ok.messageCount, ok.consumerCount];
const text = (error) => /with message "(.*)"$/s.exec(error.message)[1];
const once = (emitter, event) => new Promise((resolve) => emitter.once(event, resolve));

const steps = {
  async declare(connection) {
    const ch = await channel(connection);
    const named = counts(await ch.assertQueue('declare', { durable: true, maxLength: 10 }));
    const passive = counts(await ch.checkQueue('declare'));
    const own = await ownQueue(ch);
    ch.sendToQueue('declare', Buffer.from('x'));
    const purged = (await ch.purgeQueue('declare')).messageCount;
    const deleted = (await ch.deleteQueue('declare')).messageCount;
    return { named, passive, server_named: own.startsWith('amq.gen-'), purged, deleted };
  },

  async exchanges(connection) {
    const ch = await channel(connection);
    const seen = {};
    for (const queue of ['red', 'blue']) await ch.assertQueue(queue, { exclusive: true });
    const count = async (name) => {
      seen[name] = [];
      for (const queue of ['red', 'blue']) seen[name].push((await ch.purgeQueue(queue)).messageCount);
    };
    const publish = (exchange, key, headers) => ch.publish(exchange, key, Buffer.alloc(0), { headers });
    for (const kind of ['direct', 'fanout', 'topic', 'headers']) {
      await ch.assertExchange(`x.${kind}`, kind, { autoDelete: true });
    }
    for (const queue of ['red', 'blue']) {
      await ch.bindQueue(queue, 'x.direct', queue);
      await ch.bindQueue(queue, 'x.fanout', '');
    }
    await ch.bindQueue('red', 'x.topic', '*.fast.#');
    await ch.bindQueue('blue', 'x.topic', 'slow.*');
    await ch.bindQueue('red', 'x.headers', '', { 'x-match': 'all', a: 1, b: 'x' });
    await ch.bindQueue('blue', 'x.headers', '', { 'x-match': 'any', a: 1, c: true });

    publish('x.direct', 'red');
    await count('direct');
    publish('x.fanout', 'anything');
    await count('fanout');
    for (const key of ['car.fast.now', 'slow.car', 'car.fast']) publish('x.topic', key);
    await count('topic');
    publish('x.headers', '', { a: 1, b: 'x' });
    publish('x.headers', '', { a: 1 });
    await count('headers');
    await ch.assertExchange('x.source', 'fanout');
    await ch.bindExchange('x.direct', 'x.source', 'red');
    publish('x.source', 'red');
    await count('exchange_bind');
    await ch.unbindExchange('x.direct', 'x.source', 'red');
    publish('x.source', 'red');
    await count('exchange_unbind');
    await ch.deleteExchange('x.source');
    await ch.unbindQueue('red', 'x.fanout', '');
    publish('x.fanout', '');
    await count('queue_unbind');
    return seen;
  },

  async properties(connection) {
    const ch = await channel(connection);
    const queue = await ownQueue(ch);
    const names = {
      content_type: 'contentType',
      content_encoding: 'contentEncoding',
      delivery_mode: 'deliveryMode',
      correlation_id: 'correlationId',
      reply_to: 'replyTo',
      message_id: 'messageId',
      user_id: 'userId',
      app_id: 'appId',
    };
    const properties = JSON.parse(env.STEP_PROPERTIES);
    const options = { headers: JSON.parse(env.STEP_HEADERS) };
    for (const [name, value] of Object.entries(properties)) options[names[name] || name] = value;
    ch.sendToQueue(queue, Buffer.alloc(0), options);
    const got = (await ch.get(queue, { noAck: true })).properties;
    const told = {};
    for (const name of Object.keys(properties)) told[name] = got[names[name] || name];
    return { properties: told, headers: got.headers };
  },

  async header_types(connection) {
    const ch = await channel(connection);
    const queue = await ownQueue(ch);
    const sent = {
      bytes: Buffer.from([0, 255]),
      double: 0.1,
      float: { '!': 'float', value: 0.25 },
      byte: -5,
      short: 300,
      int: -70000,
      long: 2 ** 52,
      timestamp: { '!': 'timestamp', value: 1700000000 },
      decimal: { '!': 'decimal', value: { digits: 314, places: 2 } },
      no: false,
      nothing: [],
      empty: {},
      mixed: [1, 'x', null, true, { a: [2] }],
      large: 'y'.repeat(60000),
    };
    ch.sendToQueue(queue, Buffer.alloc(0), { headers: sent });
    const got = (await ch.get(queue, { noAck: true })).properties.headers;
    return [{ ...sent, float: 0.25 }, got];
  },

  async confirms(connection) {
    const ch = await channel(connection, 'createConfirmChannel');
    const queue = await ownQueue(ch);
    let acked = 0;
    let nacked = 0;
    for (let n = 0; n < 100; n++) {
      ch.sendToQueue(queue, Buffer.from('x'), {}, (error) => (error ? nacked++ : acked++));
    }
    await ch.waitForConfirms();
    return { acked, nacked, in_queue: (await ch.checkQueue(queue)).messageCount };
  },

  async confirm_nack(connection) {
    const ch = await channel(connection, 'createConfirmChannel');
    const queue = await ownQueue(ch, { 'x-max-length': 1, 'x-overflow': 'reject-publish' });
    const seen = [];
    for (let n = 0; n < 2; n++) {
      seen.push(
        await new Promise((done) => {
          ch.sendToQueue(queue, Buffer.from('x'), {}, (error) => done(error ? 'nack' : 'ack'));
        }),
      );
    }
    return seen;
  },

  async returns(connection) {
    const ch = await channel(connection);
    ch.publish('', 'nowhere', Buffer.from('lost'), { mandatory: true });
    const { fields, content } = await once(ch, 'return');
    return [fields.replyCode, fields.replyText, fields.exchange, fields.routingKey, content.toString()];
  },

  async acks(connection) {
    const ch = await channel(connection);
    const dead = await ownQueue(ch);
    const queue = await ownQueue(ch, { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': dead });
    for (const body of ['one', 'two', 'three']) ch.sendToQueue(queue, Buffer.from(body));
    await ch.prefetch(1);
    const deliveries = [];
    await new Promise((done) => {
      ch.consume(queue, (message) => {
        const body = message.content.toString();
        deliveries.push([body, message.fields.redelivered]);
        if (deliveries.length === 1) ch.nack(message, false, true);
        else if (body === 'two') ch.reject(message, false);
        else ch.ack(message);
        if (body === 'three') done();
      });
    });
    const letter = await ch.get(dead, { noAck: true });
    return { deliveries, dead: [letter.content.toString(), letter.properties.headers['x-death'][0].reason] };
  },

  async recover(connection) {
    const ch = await channel(connection);
    const queue = await ownQueue(ch);
    ch.sendToQueue(queue, Buffer.from('x'));
    const first = (await ch.get(queue)).fields.redelivered;
    await ch.recover();
    return [first, (await ch.get(queue)).fields.redelivered];
  },

  async get(connection) {
    const ch = await channel(connection);
    const queue = await ownQueue(ch);
    const empty = await ch.get(queue);
    for (const body of ['one', 'two']) ch.sendToQueue(queue, Buffer.from(body));
    const { content, fields } = await ch.get(queue, { noAck: true });
    return { empty: empty || null, full: [content.toString(), fields.redelivered, fields.messageCount] };
  },

  async consume(connection) {
    const ch = await channel(connection);
    const queue = await ownQueue(ch);
    for (let n = 0; n < 10; n++) ch.sendToQueue(queue, Buffer.from(`m${n}`));
    const bodies = [];
    let tag;
    await new Promise((done) => {
      const onMessage = (message) => {
        bodies.push(message.content.toString());
        ch.ack(message);
        if (bodies.length === 10) done();
      };
      ch.consume(queue, onMessage, { consumerTag: 'reader' }).then((ok) => (tag = ok.consumerTag));
    });
    await ch.cancel('reader');
    const left = await ch.checkQueue(queue);
    return { tag, bodies, left: left.messageCount + left.consumerCount };
  },

  async cancel_notify(connection) {
    const ch = await channel(connection);
    await ch.assertQueue('doomed');
    const cancelled = new Promise((done) => {
      ch.consume('doomed', (message) => done(message === null ? 'watcher' : 'a message'), {
        consumerTag: 'watcher',
      }).then(async () => (await channel(connection)).deleteQueue('doomed'));
    });
    return cancelled;
  },

  async exclusive(connection) {
    await (await channel(connection)).assertQueue('mine', { exclusive: true, durable: false });
    const other = await connected();
    try {
      await (await channel(other)).assertQueue('mine', { exclusive: true, durable: false });
    } catch (error) {
      return [error.code, text(error)];
    }
  },

  async reply_to(connection) {
    const ch = await channel(connection);
    await ch.assertQueue('rpc', { exclusive: true });
    const pseudo = 'amq.rabbitmq.reply-to';
    let got;
    const answer = new Promise((done) => (got = done));
    await ch.consume(pseudo, (message) => got(message.content.toString()), { noAck: true });
    ch.sendToQueue('rpc', Buffer.from('ping'), { replyTo: pseudo });
    const request = await ch.get('rpc', { noAck: true });
    const { replyTo } = request.properties;
    (await channel(connection)).sendToQueue(replyTo, Buffer.from('pong'));
    return { pseudo_queue: replyTo.startsWith(`${pseudo}.`), answer: await answer };
  },

  async priorities(connection) {
    const ch = await channel(connection);
    const queue = await ownQueue(ch);
    const who = [];
    let finish;
    const done = new Promise((resolve) => (finish = resolve));
    for (const [name, priority] of [['low', 1], ['high', 10]]) {
      const onMessage = () => who.push(name) === 5 && finish();
      await ch.consume(queue, onMessage, { noAck: true, priority });
    }
    for (let n = 0; n < 5; n++) ch.sendToQueue(queue, Buffer.alloc(0));
    await done;
    return who;
  },

  async quorum(connection) {
    const ch = await channel(connection, 'createConfirmChannel');
    await ch.assertQueue('quorum', { arguments: { 'x-queue-type': 'quorum' } });
    ch.sendToQueue('quorum', Buffer.from('x'));
    await ch.waitForConfirms();
    const seen = [];
    await new Promise((done) => {
      ch.consume('quorum', (message) => {
        const count = (message.properties.headers || {})['x-delivery-count'];
        seen.push(count === undefined ? null : count);
        if (seen.length === 1) return ch.nack(message, false, true);
        ch.ack(message);
        return done();
      }, { consumerTag: 'quorum' });
    });
    await ch.cancel('quorum');
    await ch.deleteQueue('quorum');
    return seen;
  },

  async stream(connection) {
    const ch = await channel(connection, 'createConfirmChannel');
    await ch.assertQueue('stream', { arguments: { 'x-queue-type': 'stream' } });
    for (let n = 0; n < 3; n++) ch.sendToQueue('stream', Buffer.from(`s${n}`));
    await ch.waitForConfirms();
    await ch.prefetch(10);
    const seen = [];
    await new Promise((done) => {
      const onMessage = (message) => {
        seen.push([message.content.toString(), message.properties.headers['x-stream-offset']]);
        ch.ack(message);
        if (seen.length === 3) done();
      };
      ch.consume('stream', onMessage, { consumerTag: 'stream', arguments: { 'x-stream-offset': 'first' } });
    });
    await ch.cancel('stream');
    await ch.deleteQueue('stream');
    return seen;
  },

  async bodies(connection) {
    const ch = await channel(connection);
    const queue = await ownQueue(ch);
    const big = Buffer.alloc(3 * 1024 * 1024, Buffer.from(Array.from({ length: 256 }, (_, n) => n)));
    const seen = [];
    for (const body of [big, Buffer.alloc(0)]) {
      ch.sendToQueue(queue, body);
      const { content } = await ch.get(queue, { noAck: true });
      seen.push([content.length, crypto.createHash('sha256').update(content).digest('hex')]);
    }
    return seen;
  },

  async channel_errors(connection) {
    const seen = {};
    await (await channel(connection)).assertQueue('errors', { durable: true });
    const acts = [
      (ch) => ch.checkQueue('nothing'),
      (ch) => ch.assertQueue('errors', { durable: false }),
      (ch) => ch.assertExchange('amq.mine', 'direct'),
    ];
    for (const act of acts) {
      try {
        await act(await channel(connection));
      } catch (error) {
        seen[error.code] = text(error);
      }
    }
    const { messageCount } = await (await channel(connection)).deleteQueue('errors');
    seen.usable = messageCount === 0;
    return seen;
  },

  async update_secret(connection) {
    await connection.updateSecret(Buffer.from(env.AMQP_PASSWORD), 'interop');
    return counts(await (await channel(connection)).assertQueue('update_secret', { exclusive: true }));
  },

  async blocked(connection) {
    const ch = await channel(connection);
    const queue = await ownQueue(ch);
    ch.sendToQueue(queue, Buffer.from('x'));
    const blocked = once(connection, 'blocked');
    const unblocked = once(connection, 'unblocked');
    await ask('alarm');
    let reason;
    try {
      ch.sendToQueue(queue, Buffer.from('y'));
      reason = await blocked;
    } finally {
      await ask('clear');
    }
    await unblocked;
    return [reason, 'unblocked'];
  },

  async operator_close(connection) {
    const closed = once(connection, 'error').catch(() => {});
    const end = once(connection, 'close');
    await ask('close');
    // The library calls a 320 a normal end, and tells it with `close` alone.
    const error = await Promise.race([closed, end]);
    return [error.code, text(error)];
  },

  connection_list: () => ask('connections'),
};

const refusals = {
  wrong_password: { password: 'wrong' },
  unknown_vhost: { vhost: 'nowhere' },
};

async function main(name) {
  if (name in refusals) {
    try {
      await connected(refusals[name]);
    } catch (error) {
      const close = /server: (\d+) \(.*\) with message "(.*)"$/s.exec(error.message);
      return close ? [Number(close[1]), close[2]] : error.message;
    }
  }
  if (name === 'amqplain') {
    const connection = await connected({}, { credentials: amqplib.credentials.amqplain(env.AMQP_USER, env.AMQP_PASSWORD) });
    return counts(await (await channel(connection)).assertQueue('amqplain', { exclusive: true }));
  }
  return steps[name](await connected());
}

main(process.argv[2]).then(
  (saw) => {
    process.stdout.write(`saw ${JSON.stringify(saw)}\n`, () => process.exit(0));
  },
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
